"""Checks that a part of one's own has the functions of its kind, before a compiler looks for them."""

from thalweg._kernels.jit import CHOSEN, Function


def check_implemented(part: type, *functions: Function) -> None:
    """Raise a TypeError if one of these generic functions is not implemented for the class."""
    for function in functions:
        if part not in CHOSEN[function]:
            name = function.__name__
            raise TypeError(f"{part.__name__} lacks `{name}`: write one under @implement({name}, {part.__name__}).")
