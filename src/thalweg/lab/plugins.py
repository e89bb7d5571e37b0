"""Learners and domains of other packages, by their entry points.

A package that is installed beside Thalweg announces them in its pyproject.toml:

    [project.entry-points."thalweg.learners"]
    MyLearner = "mine:MyLearner"

    [project.entry-points."thalweg.domains"]
    cone = "mine:Cone"

A learner is a class with a card (`thalweg.cards.Card`). A domain is a class or a function of the dimension and of
numbers by name that returns a `Domain`. From then on `thalweg list` names them, and `run`, `compare` and the laboratory
build them. An entry point that cannot be used is left out with a `PluginWarning`.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from importlib import metadata
from typing import Any

from thalweg._core.validate import real_number
from thalweg.cards import KINDS
from thalweg.domains._base import Domain
from thalweg.errors import PluginWarning
from thalweg.learners.base import Learner, outside

LEARNERS, DOMAINS = "thalweg.learners", "thalweg.domains"


def _loaded(group: str) -> list[tuple[metadata.EntryPoint, Any]]:
    """Return every entry point of a group with the object it names."""
    found = []
    for point in sorted(metadata.entry_points(group=group)):
        try:
            found.append((point, point.load()))
        except Exception as error:
            _refuse(point, f"importing it raised {type(error).__name__}: {error}")
    return found


def _refuse(point: metadata.EntryPoint, why: str) -> None:
    package = f" of the package {point.dist.name}" if point.dist is not None else ""
    warnings.warn(
        f"The entry point {point.name} = {point.value}{package} in {point.group} is left out: {why}.",
        PluginWarning,
        stacklevel=outside(),
    )


@functools.cache
def load_learners() -> None:
    """Import the learners of all packages; a class with a card registers itself."""
    ours = dict(KINDS)
    for point, kind in _loaded(LEARNERS):
        if not (isinstance(kind, type) and issubclass(kind, Learner) and "card" in vars(kind)):
            _refuse(point, "it must be a class of learners with a card of its own")
        elif ours.get(kind.__name__, kind) is not kind:
            KINDS[kind.__name__] = ours[kind.__name__]
            _refuse(point, f"Thalweg has a learner {kind.__name__} already; give the class another name")


@functools.cache
def domains() -> dict[str, tuple[str, dict[str, float], Callable[..., Domain]]]:
    """Return the domains of all packages by name: one line about each, its options with defaults, and its builder."""
    found = {}
    for point, make in _loaded(DOMAINS):
        try:
            first, *options = inspect.signature(make).parameters.values()
            numbers = {option.name: float(real_number(option.default)) for option in options}
        except (TypeError, ValueError):
            first, numbers = None, {}
        if first is None or any(number != number for number in numbers.values()):
            _refuse(point, "it must take the dimension, and options that have numbers as defaults")
        else:
            about = (inspect.getdoc(make) or "").partition("\n")[0].rstrip(".")
            found[point.name] = (about or f"from {point.value}", numbers, make)
    return found
