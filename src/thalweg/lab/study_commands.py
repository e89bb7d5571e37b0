"""The commands that run a whole study and leave a report: one for each entry of `STUDIES`."""

from __future__ import annotations

import pathlib
import shlex
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from thalweg.errors import InputError
from thalweg.lab._options import Engine, Scheduler, Workers
from thalweg.lab.studies import Entry

__all__ = ["command_of"]

Out = Annotated[pathlib.Path, typer.Option(help="Folder for results.", metavar="DIR")]
Full = Annotated[bool, typer.Option("--full", help="The slow projection at full size too: half an hour or more.")]
Small = Annotated[bool, typer.Option("--small", help="A version of seconds, to see that it works.")]
Shown = Annotated[bool, typer.Option("--progress/--no-progress", help="Progress on stderr.")]


def command_of(name: str, entry: Entry) -> Callable[..., None]:
    """The command of a study. Its help is the docstring of the study's package."""
    folder = pathlib.Path(entry.folder)

    def usual(
        out: Out = folder,
        small: Small = False,
        engine: Engine = "local",
        workers: Workers = None,
        scheduler: Scheduler = None,
        progress: Shown = True,
    ) -> None:
        _run(entry, out, "small" if small else "usual", engine, workers, scheduler, progress)

    def with_full(
        out: Out = folder,
        full: Full = False,
        small: Small = False,
        engine: Engine = "local",
        workers: Workers = None,
        scheduler: Scheduler = None,
        progress: Shown = True,
    ) -> None:
        if full and small:
            raise InputError("--full and --small exclude each other.")
        size = "full" if full else "small" if small else "usual"
        _run(entry, out, size, engine, workers, scheduler, progress)

    command = with_full if entry.full else usual
    command.__name__, command.__doc__ = name, entry.package.__doc__
    return command


def _run(
    entry: Entry,
    folder: pathlib.Path,
    size: str,
    engine: str,
    workers: int | None,
    scheduler: str | None,
    progress: bool,
) -> None:
    from thalweg.lab import study

    page = study.run(
        entry.load(),
        folder,
        size,
        engine=engine,
        workers=workers,
        scheduler=scheduler,
        progress=progress,
        command=shlex.join(["thalweg", *sys.argv[1:]]),
    )
    typer.echo(f"Open {page}")
