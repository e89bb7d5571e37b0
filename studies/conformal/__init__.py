"""Study intervals that keep their coverage.

ConformalTracker beside ACI, DtACI, SAOCP, conformal PI and windows, on errors of simple forecasters of real series and
on synthetic drifts: interval scores, coverage of the whole and of every 100 rounds, with pictures and a page that
explains them. If you interrupt it, the same command continues.

\b
thalweg study conformal
thalweg study conformal --small --out /tmp/look
"""
