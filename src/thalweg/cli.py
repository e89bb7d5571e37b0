"""The command `thalweg`. Its subcommands are in `thalweg.lab.commands`, which needs the extra `lab`."""

import errno
import os
import sys
from collections.abc import Sequence

from thalweg._core.extras import need
from thalweg.errors import MissingExtraError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code: 0; 1 for an error; 2 for wrong usage; 130 for Ctrl-C."""
    if sys.stderr is None:  # closed by `2>&-`
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        sys.exit("error: The standard output is closed. Send it to a file, or to /dev/null.")
    try:
        need("typer", "lab", "The command line")
    except MissingExtraError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(1)
    from thalweg.lab.commands import app

    try:
        app(args=None if arguments is None else list(arguments), prog_name="thalweg")
    except SystemExit as done:
        sys.exit(_flushed(done.code))


def _flushed(code: str | int | None) -> str | int | None:
    """Flush all output and return the exit code: 1 where it cannot be written."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not code and error.errno != errno.EPIPE:
            sys.stderr.write(f"error: {error.strerror}.\n")
            return 1
    return code


if __name__ == "__main__":
    main()
