"""What is told to people: nothing in it can steer their terminal."""

import sys

__all__ = ["tell", "visible"]


def visible(text: str) -> str:
    r"""Text on one line, with control characters and all else that cannot be seen written out.

    Examples
    --------
    >>> print(visible("load\x1b[2J.csv"))
    load\x1b[2J.csv
    """
    return "".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in text)


def tell(text: str) -> None:
    """A line on stderr, where there is one."""
    if sys.stderr is not None:
        sys.stderr.write(f"{visible(text)}\n")
