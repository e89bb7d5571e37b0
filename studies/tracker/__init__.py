"""Study the Tracker: the cost of not knowing any constant.

The Tracker beside the library's other learners with one projection (given their constants) and common methods (river's
optimisers, recursive least squares, coin betting, persistence) on 36 streams; after a long calm; on PyNOL's example; on
all dyadic intervals; and where it is known to fail. With pictures and a page that explains them. If you interrupt it,
the same command continues.

\b
thalweg study tracker
thalweg study tracker --small --out /tmp/look
"""
