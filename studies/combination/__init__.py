"""Study how forecasts are best combined.

The Aggregator beside the rules of OPERA, in its R and in its Python version, on polls, on forecasts of real series by
simple means, and on made-up experts; with experts that sleep and with answers that come late: errors, with pictures and
a page that explains them. If you interrupt it, the same command continues.

\b
thalweg study combination
thalweg study combination --small --out /tmp/look
"""
