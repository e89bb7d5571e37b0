"""The build: `python -m thalweg._build` makes the shared library with the package's kernels, or renews it.

`specimens` are small runs that ask for everything the package can need; `catalogue` records what they ask for; `make`
compiles it.
"""
