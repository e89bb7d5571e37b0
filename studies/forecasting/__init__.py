"""Study forecasts of real series, one step ahead and at a horizon.

Forecaster beside AutoETS, AutoTheta, AutoARIMA, MSTL and the naives of statsforecast and HoltWinters and SNARIMAX of
river, on real series that packages carry: errors, coverage and scores of intervals, seconds, with pictures and a page
that explains them. Interrupted, the same command again goes on where it was.

\b
thalweg study forecasting
thalweg study forecasting --small --out /tmp/look
"""
