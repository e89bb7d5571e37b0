"""Forecasters of many series in a folder, a `Fleet`, so that `thalweg forecast --id` can go on later."""

from __future__ import annotations

import os
import pathlib
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from thalweg._core.interrupts import interrupts
from thalweg.errors import InputError
from thalweg.estimators import Forecaster
from thalweg.fleet.fleet import Fleet

OFTEN = 1_000  # rows of a pipe between two checkpoints


class KeptSeries:
    """Forecasters by the names of their series.

    Parameters
    ----------
    save, resume : path or None
        The folder to write and the one to go on with; they may be the same.
    make : callable
        Returns a fresh forecaster. With `resume`, a series that is not there gets one like the others.
    check : callable
        Refuses the kept forecasters if they do not go with the options that were typed.
    names : dict of str
        Names of columns, as for `Fleet`.
    """

    def __init__(
        self,
        save: pathlib.Path | None,
        resume: pathlib.Path | None,
        make: Callable[[], Forecaster],
        check: Callable[[Forecaster], None],
        names: Mapping[str, Any],
    ) -> None:
        for word, path in (("--save", save), ("--resume", resume)):
            if path is not None and path.is_file():
                raise InputError(
                    f"{word} with --id is a folder, but {path} is a file. Name a folder, or leave --id out."
                )
        same = save is not None and resume is not None and save.resolve() == resume.resolve()
        if save is not None and not same and save.exists() and any(save.iterdir()):
            raise InputError(f"{save} is not empty. Go on with it by --resume {save}, or name another folder.")
        self.save, self.names, self.same, self.puts = save, dict(names), same, 0
        if resume is None:
            self.fleet = Fleet(make(), **self.names)
        else:
            with Fleet.open(resume) as kept:
                if not isinstance(kept.template, Forecaster):
                    kind = type(kept.template).__name__
                    raise InputError(f"{resume} holds a fleet of {kind}, no forecasters that --save kept.")
                check(kept.template)
                self.fleet = Fleet.from_bytes(kept.template, kept.to_bytes(), **self.names)
        self.first: Forecaster = self.fleet.template
        keys = self.fleet.keys()
        self._kind: type | None = type(keys[0]) if keys else None

    def key(self, label: object) -> object:
        """Return the key of a series: a pipe has its names as text, a file may have them as numbers."""
        if self._kind is int and isinstance(label, str) and label.removeprefix("-").isdecimal():
            return int(label)
        return str(label) if self._kind is str else label

    def of(self, label: object) -> Forecaster:
        """Return the forecaster of a series, a fresh one if it is new."""
        key = self.key(label)
        if key in self.fleet:
            kept: Forecaster = self.fleet[key]
            return kept
        return Forecaster(**self.first._arguments())

    def write(self, made: Mapping[object, Forecaster]) -> None:
        """Write these forecasters, and those kept before, to the folder; if it fails, the folder is as it was."""
        assert self.save is not None
        folder = self.save.resolve()
        draft, old = (folder.with_name(f".{folder.name}.{os.getpid()}.{end}") for end in ("new", "old"))
        try:
            self._copy(draft, {self.key(label): one for label, one in made.items()}).close()
            with interrupts():
                if folder.exists():
                    folder.rename(old)
                try:
                    draft.rename(folder)
                except BaseException:
                    if old.exists():
                        old.rename(folder)
                    raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)

    def _copy(self, folder: pathlib.Path, made: Mapping[object, Forecaster]) -> Fleet:
        """Return a new fleet in a folder: the one that was kept, with these forecasters in it."""
        fleet = Fleet(self.first, folder=folder, **self.names)
        for key in self.fleet:
            if key not in made:
                fleet[key] = self.fleet[key]
        for key, one in made.items():
            fleet[key] = one
        fleet.checkpoint()
        return fleet

    def open(self) -> None:
        """Make the folder ready for `put`."""
        assert self.save is not None
        self.fleet = Fleet.open(self.save) if self.same else self._copy(self.save, {})

    def put(self, label: object, forecaster: Forecaster) -> None:
        """Keep a forecaster at once, as rows of a pipe need it."""
        self.fleet[self.key(label)] = forecaster
        self.puts += 1
        if self.puts % OFTEN == 0:
            self.fleet.checkpoint()

    def close(self) -> None:
        """Release the folder."""
        self.fleet.close()
