"""The command `thalweg`. What it can do is in `thalweg.lab.commands`, which needs the extra `lab`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code: 0; 1 for an error; 2 for wrong usage; 130 for Ctrl-C."""
    try:
        import typer  # noqa: F401
    except ImportError:
        sys.stderr.write("error: The command line needs typer. Install it with: pip install 'thalweg[lab]'\n")
        sys.exit(1)
    from thalweg.lab.commands import app

    app(args=None if arguments is None else list(arguments), prog_name="thalweg")


if __name__ == "__main__":
    main()
