"""A fleet's folder in words: keys, rounds, bytes and damage. Nothing is changed, locked or built but the template."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from thalweg._core.recorded import Recorded
from thalweg._core.saving import call_text
from thalweg._core.types import Ints
from thalweg.errors import StateError
from thalweg.files import load
from thalweg.fleet.families.base import Family, Sizes
from thalweg.fleet.families.choose import family_of
from thalweg.fleet.journal import entries
from thalweg.fleet.store import TEMPLATE, open_segment, read_manifest


def describe(folder: str | os.PathLike[str], keys: int = 5) -> str:
    """Return a description of a folder, with some keys as examples.

    Examples
    --------
    >>> import tempfile, thalweg as tw
    >>> from thalweg.estimators import Forecaster
    >>> from thalweg.fleet.describe import describe
    >>> with tempfile.TemporaryDirectory() as folder, tw.Fleet(Forecaster(), folder=folder + "/tea") as fleet:
    ...     _ = fleet.run(["green", "black", "green"], [1.0, 2.0, 3.0])
    ...     _ = fleet.checkpoint()
    ...     _ = fleet.run(["green"], [2.0])
    ...     print(describe(folder + "/tea").split("bytes")[0])
    Fleet of Forecaster()
    streams   2: 'green', 'black'
    rounds    3 in streams, at most 2 of a key
    journal   1 calls with 1 rows since checkpoint 2
    """
    path = Path(folder)
    manifest = read_manifest(path)
    facts = manifest["facts"]
    template = load(path / TEMPLATE)
    family = family_of(template, facts["options"]["columns"])
    known, rounds, size = np.zeros(facts["top"], dtype=np.bool_), [np.zeros(0, dtype=np.int64)], 0
    named: list[Any] = []
    damage: list[str] = []
    for generation, _, _ in reversed(manifest["segments"]):
        segment = open_segment(path / f"{generation:012d}.segment")
        if isinstance(segment, StateError):
            damage.append(str(segment))
            continue
        size += len(segment.data)
        damage += [f"{generation:012d}.segment: one copy of its {part}; the other serves" for part in segment.damage]
        names = segment.names
        for sizes, first, words, sound in segment.words():
            streams = names.streams[first : first + len(words)]
            mine = ~known[streams]
            rounds.append(words[mine & sound, _place(family, sizes)])
            chosen = np.flatnonzero(mine & sound)[: keys - len(named)].tolist()
            named += [names.keys.key(first + i) for i in chosen]
            lost = [names.keys.key(first + i) for i in np.flatnonzero(mine & ~sound).tolist()]
            if lost:
                damage.append(f"{generation:012d}.segment: {len(lost)} streams: {', '.join(map(repr, lost))}")
        known[names.streams] = known[names.gone] = True
    shown = call_text(template) if isinstance(template, Recorded) else repr(template)
    return _text(path, manifest, shown, np.concatenate(rounds), named, size, damage)


def _place(family: Family, sizes: Sizes) -> int:
    """Return which word of a stream counts its rounds."""
    memory = family.memory(family.template)
    found: int = memory.layout.plan(dict(sizes)).places.fields[family.rounds_at].first
    return found


def _text(
    path: Path, manifest: dict[str, Any], template: str, rounds: Ints, named: list[Any], size: int, damage: list[str]
) -> str:
    generation = manifest["generation"]
    journal, calls, rows = path / f"{generation:012d}.journal", 0, 0
    try:
        for said, arrays, _ in entries(journal):
            calls += 1
            rows += len(arrays.get("keys", arrays.get("lengths", ()))) if said["call"] not in ("set", "drop") else 0
    except StateError as error:
        damage.append(str(error))
    shown = ", ".join(map(repr, named)) + (", ..." if rounds.size > len(named) else "")
    kept = journal.stat().st_size if journal.exists() else 0
    lines = [
        f"Fleet of {template}",
        f"streams   {rounds.size}{': ' if shown else ''}{shown}",
        f"rounds    {int(rounds.sum())} in streams, at most {int(rounds.max(initial=0))} of a key",
        f"journal   {calls} calls with {rows} rows since checkpoint {generation}",
        f"bytes     {size} in {len(manifest['segments'])} segments, {kept} in the journal",
    ]
    return "\n".join([*lines, *(f"damage    {line}" for line in damage or ["none"])])
