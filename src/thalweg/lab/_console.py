"""Messages to users: nothing in them can control the terminal."""

import sys
from collections.abc import Sequence

from thalweg._core.validate import visible


def notify(text: str) -> None:
    """Print a line on stderr, if there is one."""
    if sys.stderr is not None:
        sys.stderr.write(f"{visible(text)}\n")


def echo(text: str) -> None:
    """Print lines without control characters of the terminal."""
    import typer

    typer.echo("\n".join(map(visible, text.split("\n"))))


def shows_progress(wanted: bool | None) -> bool:
    """Return whether to show progress: as asked, or else if stderr is a terminal."""
    return sys.stderr.isatty() if wanted is None else wanted


def aligned(heads: Sequence[str], rows: Sequence[Sequence[object]], left: int = 1) -> str:
    """Return columns as text: the first `left` of them aligned left, the others right."""
    cells = [[str(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(heads))]
    lines = [
        "  ".join(c.ljust(w) if k < left else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True)))
        for row in cells
    ]
    return "\n".join(line.rstrip() for line in lines)
