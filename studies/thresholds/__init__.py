"""Study when a new expert should start.

EfficientAdaptive with the printed threshold times 1e-6 to 1, with both restart points and both feedback ranges, beside
other learners, on drifting regressions and on real series: losses, with pictures and a page that explains them. If you
interrupt it, the same command continues.

\b
thalweg study thresholds
thalweg study thresholds --small --out /tmp/look
"""
