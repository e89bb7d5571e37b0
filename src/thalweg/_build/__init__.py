"""The build: `python -m thalweg._build` makes the shared library with the package's kernels, or renews it.

`specimens` are small runs that call every kernel the package can need; `catalogue` records the calls; `make`
compiles them.
"""
