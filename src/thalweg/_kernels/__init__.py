"""Compiled kernels: Numba functions on plain arrays and numbers, cached on disk, no Python objects.

Parts are combined by types (`jit.generic`), or at run time by addresses (`pointers`) and flat parameter arrays: a
kernel that takes a function, a closure or a jitclass would be compiled again in every process.
"""
