"""Run the paper's experiments.

Leaves its figure, its table, all numbers, and a page that explains them. Interrupted, the same command again goes on
where it was.

\b
thalweg reproduce
thalweg reproduce --small --out /tmp/look
thalweg reproduce --engine dask --scheduler tcp://10.0.0.5:8786
"""

FULL = "The slow projection at full size too: half an hour or more."
