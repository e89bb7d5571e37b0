"""Compiled kernels: functions on plain arrays and numbers, without Python objects.

`jit` has the decorators and the call from Python, `library` the machine code that comes with the package, `kinds` and
`handle` the form of their arguments, `pointers` kernels that others call by address. Parts are combined by types
(`jit.generic`), or at run time by addresses and flat parameter arrays.
"""
