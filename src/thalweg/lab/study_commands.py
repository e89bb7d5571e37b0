"""The commands that run a whole study and leave a report."""

from __future__ import annotations

import pathlib
import shlex
import sys
from typing import Annotated

import typer

from thalweg.errors import InputError
from thalweg.lab._options import Engine, Scheduler, Workers

__all__ = ["control", "pca", "reproduce"]

Small = Annotated[bool, typer.Option("--small", help="A version of seconds, to see that it works.")]
Shown = Annotated[bool, typer.Option("--progress/--no-progress", help="Progress on stderr.")]


def _command() -> str:
    """What was typed."""
    return shlex.join(["thalweg", *sys.argv[1:]])


def reproduce(
    out: Annotated[pathlib.Path, typer.Option(help="Folder for results.", metavar="DIR")] = pathlib.Path(
        "results/paper"
    ),
    full: Annotated[
        bool, typer.Option("--full", help="The slow projection at full size too: half an hour or more.")
    ] = False,
    small: Small = False,
    engine: Engine = "local",
    workers: Workers = None,
    scheduler: Scheduler = None,
    progress: Shown = True,
) -> None:
    """Run the paper's experiments.

    Leaves its figure, its table, all numbers, and a page that explains them. Interrupted, the same command again goes
    on where it was.

    \b
    thalweg reproduce
    thalweg reproduce --small --out /tmp/look
    thalweg reproduce --engine dask --scheduler tcp://10.0.0.5:8786
    """
    from thalweg.lab.reproduce import reproduce as make

    if full and small:
        raise InputError("--full and --small exclude each other.")
    page = make(
        out,
        full=full,
        small=small,
        engine=engine,
        workers=workers,
        scheduler=scheduler,
        progress=progress,
        command=_command(),
    )
    typer.echo(f"Open {page}")


def control(
    out: Annotated[pathlib.Path, typer.Option(help="Folder for results.", metavar="DIR")] = pathlib.Path(
        "results/control"
    ),
    small: Small = False,
    engine: Engine = "local",
    workers: Workers = None,
    progress: Shown = True,
) -> None:
    """Study controllers for linear systems.

    LQR, H-infinity, GPC, Scream and ours on known plants with changing costs and disturbances: cost, queries and time,
    with pictures and a page that explains them. Interrupted, the same command again goes on where it was.

    \b
    thalweg control
    thalweg control --small --out /tmp/look
    """
    from thalweg.lab.control_study import control_study

    page = control_study(
        out, small=small, engine=engine, workers=workers, progress=progress, command=_command()
    )  # fmt: skip
    typer.echo(f"Open {page}")


def pca(
    out: Annotated[pathlib.Path, typer.Option(help="Folder for results.", metavar="DIR")] = pathlib.Path("results/pca"),
    small: Small = False,
    engine: Engine = "local",
    workers: Workers = None,
    progress: Shown = True,
) -> None:
    """Study learners that follow a subspace.

    Ours, static and adaptive ones, Oja's rule and IncrementalPCA on subspaces that switch and rotate and on real data:
    compression loss, guarantee and time, with pictures and a page that explains them. Interrupted, the same command
    again goes on where it was.

    \b
    thalweg pca
    thalweg pca --small --out /tmp/look
    """
    from thalweg.lab.pca_study import pca_study

    page = pca_study(
        out, small=small, engine=engine, workers=workers, progress=progress, command=_command()
    )  # fmt: skip
    typer.echo(f"Open {page}")
