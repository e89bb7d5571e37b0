"""Study how forecasts are best combined.

The Aggregator beside the rules of OPERA, in its R and in its Python version, on polls, on forecasts of real series by
simple means, and on made-up experts; with experts that sleep and with answers that come late: errors, with pictures and
a page that explains them. Interrupted, the same command again goes on where it was.

\b
thalweg study combination
thalweg study combination --small --out /tmp/look
"""
