"""Run the paper's experiments.

Writes the figure, the table, all numbers, and a page that explains them. If you interrupt it, the same command
continues.

\b
thalweg reproduce
thalweg reproduce --small --out /tmp/look
thalweg reproduce --engine dask --scheduler tcp://10.0.0.5:8786
"""

FULL = "Also play the slow runs to their end: half an hour."
