"""Study learners that follow a subspace.

Ours, static and adaptive ones, Oja's rule and IncrementalPCA on subspaces that switch and rotate and on real data:
compression loss, guarantee and time, with pictures and a page that explains them. If you interrupt it, the same command
continues.

\b
thalweg study pca
thalweg study pca --small --out /tmp/look
"""
