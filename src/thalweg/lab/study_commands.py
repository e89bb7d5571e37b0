"""The commands that run a whole study and leave a report: one for each entry of `STUDIES`."""

import pathlib
import shlex
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from thalweg.errors import InputError
from thalweg.lab._options import Engine, Scheduler, Workers
from thalweg.lab.studies import Entry

__all__ = ["command_of"]

Out = Annotated[pathlib.Path, typer.Option(help="Folder for results.", metavar="DIR")]
Small = Annotated[bool, typer.Option("--small", help="A version of seconds, to see that it works.")]
Shown = Annotated[bool, typer.Option("--progress/--no-progress", help="Progress on stderr.")]


def command_of(name: str, entry: Entry) -> Callable[..., None]:
    """The command of a study. Its help is the docstring of the study's package."""
    Full = Annotated[bool, typer.Option("--full", help=entry.full, hidden=not entry.full)]

    def command(
        out: Out = pathlib.Path(entry.folder),
        full: Full = False,
        small: Small = False,
        engine: Engine = "local",
        workers: Workers = None,
        scheduler: Scheduler = None,
        progress: Shown = True,
    ) -> None:
        from thalweg.lab import study

        if full and small:
            raise InputError("--full and --small exclude each other.")
        size = "full" if full else "small" if small else "usual"
        how: dict[str, Any] = {"engine": engine, "workers": workers, "scheduler": scheduler, "progress": progress}
        page = study.run(entry.load(), out, size, command=shlex.join(["thalweg", *sys.argv[1:]]), **how)
        typer.echo(f"Open {page}")

    command.__name__, command.__doc__ = name, entry.package.__doc__
    return command
