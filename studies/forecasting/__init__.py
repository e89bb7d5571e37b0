"""Study forecasts of real series.

Forecaster beside AutoETS, AutoTheta, AutoARIMA, MSTL and the naive forecasts of statsforecast and HoltWinters and
SNARIMAX of river, on real series that come with packages, one and several steps ahead: errors, coverage and scores of
intervals, seconds, with pictures and a page that explains them. If you interrupt it, the same command continues.

\b
thalweg study forecasting
thalweg study forecasting --small --out /tmp/look
"""
