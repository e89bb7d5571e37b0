"""What is told to people: nothing in it can steer their terminal."""

import sys

from thalweg._validate import visible

__all__ = ["tell"]


def tell(text: str) -> None:
    """A line on stderr, where there is one."""
    if sys.stderr is not None:
        sys.stderr.write(f"{visible(text)}\n")
