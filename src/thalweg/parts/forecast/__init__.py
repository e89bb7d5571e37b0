"""Parts of `thalweg.estimators.Forecaster`: the past of a series, candidates, their combination, and intervals."""
