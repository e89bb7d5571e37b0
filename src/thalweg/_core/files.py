"""Learners in files: one file holds the class, its arguments, the state, the schema and the version. No pickle.

The file is an .npz, which `numpy.load` opens too: an uncompressed zip of .npy arrays and of one text, `thalweg.json`:

    {"thalweg": version, "schema": n, "rounds": t, "objects": [...], "state": {...}}                      (1)

Objects are in the order in which they are built, the learner last: {"class": name, "arguments": {...}} or {"partial":
name, "positional": [...], "arguments": {...}}. Numbers, words, null and lists are JSON (Python writes floats such that
they are read bit for bit); the rest is a table of one entry:

    {"object": i}  one of those before    {"name": ...}  a class or function of this package    {"tuple": [...]}
    {"array": member of the zip}          {"float": "inf"}                                      {"missing": what}  (2)
    {"dict": [[key, value], ...]}

A name is looked up among the public names of the package and nowhere else; nothing is imported because a file says so.
The zip and its arrays are in `thalweg._core.archive`. Invalid files raise a `StateError`.
"""

from __future__ import annotations

import functools
import importlib
import json
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from thalweg._core.archive import (
    ARRAY_KINDS,
    LONGEST_TEXT,
    SCHEMA,
    Archive,
    is_,
    plain_text,
    read_path,
    reading,
    write_archive,
)
from thalweg._core.guests import remember, return_to
from thalweg._core.recorded import CLASSES, Recorded, build, parameters, public_name
from thalweg._core.state import at_most
from thalweg._core.types import AnyArray
from thalweg._version import __version__
from thalweg.errors import InputError, MissingExtraError, StateError

PLACES = ("domains", "experts", "metas", "", "control", "pca", "estimators", "scaling")  # where public names are
DEEPEST = 16  # values in values
BUDGET = 2**24  # numbers that objects may hold together without a word; beyond, 64 times those of the file


# ----------------------------------------------------------------------------------------------------------------- save


def write(learner: Any, path: str | os.PathLike[str]) -> None:
    """See `Kept.save`."""
    path = read_path(f"{type(learner).__name__}.save", path)
    writer = _Writer()
    writer.add(learner)
    state = {key: writer.plain(value, f"state.{key}") for key, value in learner.state().items()}
    about = {"thalweg": __version__, "schema": SCHEMA, "rounds": learner.rounds}
    text = json.dumps(about | {"objects": writer.objects, "state": state}, allow_nan=False)
    if len(text) > LONGEST_TEXT:
        raise StateError(f"{type(learner).__name__} has more names and words than a file may hold: {len(text)} bytes.")
    write_archive(path, text, writer.arrays)


class _Writer:
    """Values as (2), and the objects and arrays that they need."""

    def __init__(self) -> None:
        self.objects: list[dict[str, object]] = []
        self.arrays: dict[str, AnyArray] = {}
        self._places: dict[int, tuple[int, object]] = {}  # of objects by id; keeping them alive keeps their ids

    def add(self, value: Any) -> int:
        """Add an object to `objects`, after those it is built from, and return its index."""
        if id(value) not in self._places:
            if isinstance(value, functools.partial):
                entry = {"partial": public_name(value.func), "positional": self.plain(list(value.args), "partial")}
                given = value.keywords
            else:
                entry, given = {"class": type(value).__qualname__}, value._arguments()
                if public_name(type(value)) is None:
                    entry["foreign"] = True
                given = {key: given[key] for key in [*parameters(type(value)), *given] if key in given}
            entry["arguments"] = {key: self.plain(item, f"argument.{key}") for key, item in given.items()}
            self._places[id(value)] = len(self.objects), value
            self.objects.append(entry)
        return self._places[id(value)][0]

    def plain(self, value: object, name: str) -> object:
        """A value as JSON can hold it."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.ndarray) and value.dtype.kind in ARRAY_KINDS and value.dtype.itemsize <= 8:
            name = f"{name}-{len(self.arrays)}" if name in self.arrays else name
            self.arrays[name] = value
            return {"array": name}
        if type(value) is list:
            return [self.plain(item, name) for item in value]
        if type(value) is tuple:
            return {"tuple": [self.plain(item, name) for item in value]}
        if type(value) is dict:
            return {"dict": [[self.plain(key, name), self.plain(item, name)] for key, item in value.items()]}
        if isinstance(value, Recorded) or (isinstance(value, functools.partial) and public_name(value.func)):
            return {"object": self.add(value)}
        if public_name(value):
            return {"name": public_name(value)}
        return {"missing": f"{getattr(value, '__qualname__', None) or type(value).__qualname__}"}


# ----------------------------------------------------------------------------------------------------------------- load


def load(path: str | os.PathLike[str], *, cls: type | tuple[type, ...] = (), **arguments: object) -> Any:
    """Load a learner, estimator, PCA learner or controller that `save` wrote; it continues bit for bit.

    Parameters
    ----------
    path : str or path
        The file. It need not be trusted: it can build objects of this package and nothing else.
    cls : class or tuple of classes
        Classes of your own that the file names: the learner's, or those of sets, experts and meta-learners in it.
    **arguments
        Arguments that a file cannot hold, by name: functions and objects of your own. One inside another argument has a
        dotted name: `load(path, **{"domain.project": f})`, or give the whole: `load(path, domain=Custom(f, ...))`.
        `horizon`, where it is another one, is that of `learner.extended(horizon)`.

    Raises
    ------
    StateError
        The file is damaged, of a newer version, or needs arguments that were not given; the message says which.

    Examples
    --------
    >>> import os, tempfile, numpy as np, thalweg as tw
    >>> path = os.path.join(tempfile.mkdtemp(), "learner.npz")
    >>> clip = lambda y: np.clip(y, 0.0, 1.0)
    >>> learner = tw.SOGD(tw.domains.Custom(clip, shape=2, center=0.5, radius=0.75))
    >>> learner.save(path)
    >>> tw.load(path)
    Traceback (most recent call last):
        ...
    thalweg.errors.StateError: ... a file cannot hold <lambda>, the argument 'domain.project' of SOGD. Give it again:
    load(path, **{'domain.project': ...}).
    >>> tw.load(path, **{"domain.project": clip})
    SOGD(Custom(<lambda>, shape=2, radius=0.75); 0 rounds played)
    """
    classes = tuple(cls) if isinstance(cls, tuple | list) else (cls,)
    for kind in classes:
        if not isinstance(kind, type):
            raise InputError(f"load needs classes of your own in cls, one or a tuple of them. Got {kind!r}.")
    horizon = arguments.pop("horizon", None)
    with reading(path) as archive:
        learner = _Reader(path, archive, classes, arguments).learner()
    return learner if horizon is None else learner.extended(horizon)


def _public(name: str) -> object:
    """Return the class or function of this package that a file may name, or None.

    Classes with recorded arguments are found once their module is imported, as those of the package's public modules
    are here. Estimators of other libraries' kinds must be public.
    """
    for place in PLACES:
        module = importlib.import_module(f"thalweg.{place}".rstrip("."))
        kind = getattr(module, name) if name in module.__all__ else None
        if isinstance(kind, type) and hasattr(kind, "_arguments") and public_name(kind) == name:
            return kind
    if name in CLASSES and public_name(CLASSES[name]) == name:
        return CLASSES[name]
    thresholds = importlib.import_module("thalweg.algorithms.thresholds")
    return vars(thresholds).get(name) if name in {*thresholds.__all__} - {"Threshold", "read"} else None


class _Reader:
    """Builds the objects that a file describes."""

    def __init__(
        self, path: str | os.PathLike[str], archive: Archive, classes: tuple[type, ...], given: dict[str, object]
    ) -> None:
        self.path, self.archive, self.given = os.fspath(path), archive, given
        self.own = {kind.__qualname__: kind for kind in classes}
        self.objects = is_(list, archive.about.get("objects"))
        self.used: set[str] = set()
        self.built: dict[int, object] = {}
        numbers = sum(array.size for array in archive.arrays.values())
        self.budget = [max(BUDGET, 64 * numbers)]

    def learner(self) -> Any:
        """The learner, in its state."""
        root = len(self.objects) - 1
        kind = self._kind(is_(dict, self.objects[root]) if self.objects else {})
        if not hasattr(kind, "restore"):
            raise StateError(f"{self.path!r} describes {kind.__name__}, which is no learner.")
        unknown = {name for name in self.given if "." not in name} - {*parameters(kind)}
        if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters(kind).values()):
            raise InputError(f"{kind.__name__} has no argument {sorted(unknown)[0]!r}.")
        learner = self._build(root, "", kind.__name__, 0)
        for name in self.given.keys() - self.used:
            raise InputError(f"{self.path!r} has no argument {name!r} that could be given.")
        self._continue(learner)
        return learner

    def _continue(self, learner: Any) -> None:
        state = is_(dict, self.archive.about.get("state"))
        try:
            learner.restore({key: self._read(value, "", key, 0) for key, value in state.items()})
            self._check_decision(learner)
        except (StateError, Warning):
            raise
        except Exception as error:
            raise StateError(f"{self.path!r} has a state that cannot be used: {error}") from error

    def _check_decision(self, learner: Any) -> None:
        """Check that its next decision lies in its domain; the state is left unchanged."""
        who = getattr(learner, "learner", learner)  # of a controller
        if hasattr(who, "decision") and hasattr(who, "domain"):
            before = remember(learner)
            x = who.decision
            if not (np.isfinite(x).all() and np.abs(x - who.domain.center).max() <= 2 * who.domain.radius + 1e-6):
                raise StateError(f"{self.path!r} has a state whose decision is not near the domain.")
            if not who.domain.contains(x, tol=1e-6):
                raise StateError(f"{self.path!r} has a state whose decision is no point of the domain.")
            getattr(who, "components", None)  # of a PCA learner: its drawn subspace
            return_to(learner, before)

    def _kind(self, entry: dict[str, object]) -> Any:
        name = is_(str, entry.get("class", entry.get("partial")))
        if name in self.own:
            return self.own[name]
        if entry.get("foreign") is not None:
            short = name[:80]
            raise StateError(f"{self.path!r} holds a {short!r}, a class of your own. Give it: load(path, cls=...).")
        kind = _public(name)
        if kind is None:
            raise StateError(
                f"{self.path!r} names {name[:80]!r}, which thalweg {__version__} has not. The file was written by "
                f"{self.archive.version[:40]!r}."
            )
        return kind

    def _build(self, place: int, path: str, who: str, depth: int) -> object:
        """Build object number `place`; `path` is its dotted name and `who` the learner."""
        if place not in self.built:
            entry = is_(dict, self.objects[place])
            kind, below = self._kind(entry), f"{path}." if path else ""
            given = is_(dict, entry.get("arguments"))
            added = {name: None for name in self.given if not path and "." not in name and name not in given}
            read = {
                name: self._read(value, f"{below}{name}", who, depth, place) for name, value in (given | added).items()
            }
            if "partial" in entry:
                positional = self._read(is_(list, entry.get("positional")), f"{below}args", who, depth, place)
                self.built[place] = functools.partial(kind, *positional, **read)
            elif isinstance(kind, type):
                self.budget[0] -= _size(kind, read)
                if self.budget[0] < 0:
                    raise StateError(f"{self.path!r} describes sets or learners that are far larger than the file.")
                try:
                    with at_most(self.budget):
                        self.built[place] = build(kind, read)
                except (StateError, MissingExtraError, Warning):
                    raise
                except Exception as error:
                    raise StateError(f"{self.path!r} cannot be loaded. {kind.__name__} says: {error}") from error
            else:
                raise StateError(f"{self.path!r} names {kind.__name__} as a class, which it is not.")
        return self.built[place]

    def _read(self, value: object, path: str, who: str, depth: int, before: int = 0) -> Any:
        """A value of (2); objects must lie before the one they are for."""
        if path in self.given:
            self.used.add(path)
            if isinstance(value, dict) and isinstance(value.get("object"), int):
                self.built[value["object"]] = self.given[path]  # for all that share it
            return self.given[path]
        if depth > DEEPEST:
            raise StateError(f"{self.path!r} has values in values in values, more than {DEEPEST} times.")
        if isinstance(value, list):
            return [self._read(item, f"{path}.{i}", who, depth + 1, before) for i, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        if len(value) != 1:
            raise StateError(f"{self.path!r} has a value that cannot be read: {sorted(value)[:3]!r}.")
        ((what, item),) = value.items()
        if what == "object" and 0 <= is_(int, item) < before:
            return self._build(item, path, who, depth + 1)
        if what == "array" and is_(str, item) in self.archive.arrays:
            return self.archive.arrays[item]
        if what == "tuple":
            return tuple(self._read(is_(list, item), path, who, depth + 1, before))
        if what == "dict":
            pairs = [self._read(is_(list, pair), path, who, depth + 1, before) for pair in is_(list, item)]
            return {key: one for key, one in pairs}  # noqa: C416  # a pair of three is an error
        if what == "name":
            return self._kind({"class": item})
        if what == "float" and item in ("inf", "-inf", "nan"):
            return float(item)
        if what == "missing":
            call = f"{path}=..." if path.isidentifier() else f"**{{{path!r}: ...}}"
            raise StateError(
                f"{self.path!r}: a file cannot hold {plain_text(str(item))}, the argument {path!r} of {who}. "
                f"Give it again: load(path, {call})."
            )
        raise StateError(f"{self.path!r} has a value that cannot be read: {what[:40]!r}.")


def _size(kind: type, given: Mapping[str, Any]) -> int:
    """Estimate the number of entries of an object from arguments that only state its size."""
    shape = given.get("shape", given.get("dim", 0))
    size = math.prod(_count(n) for n in (shape if isinstance(shape, list | tuple) else [shape]))
    size *= 1 if "rank" in parameters(kind) else 4  # a few arrays of that size
    d = getattr(given.get("domain"), "dim", 0)
    if "rank" in parameters(kind):  # matrices
        size **= 2
    if "curvature" in parameters(kind) and given.get("curvature") is True:
        size += 2 * d**2
    if given.get("surrogate") is not None:
        size += 2 * d**2
    if np.ndim(given.get("A", 0)) == 2:  # a polytope, or a system
        size += np.shape(given["A"])[1] ** 2
    if hasattr(kind, "marker_count"):  # levels of pools
        size += _count(given.get("horizon") or 2**10).bit_length() ** 2 * d
    system, constants = given.get("system"), given.get("constants")
    if system is not None:
        memory = getattr(constants, "memory", 0) or min(_count(given.get("memory") or 50), 10_000)
        size += memory * getattr(system, "state_dim", 0) * getattr(system, "input_dim", 0)
    return size


def _count(value: object) -> int:
    """Return a count, or 0 for an invalid one: the constructor then raises."""
    return int(min(value, 2**64)) if isinstance(value, int | float) and value > 0 else 0


# ----------------------------------------------------------------------------------------------------------------- show


def summary(path: str | os.PathLike[str]) -> str:
    """Describe a file as text: class, version, schema, rounds, arguments and arrays. Nothing is built.

    Examples
    --------
    >>> import os, tempfile, thalweg as tw
    >>> path = os.path.join(tempfile.mkdtemp(), "learner.npz")
    >>> tw.SOGD(tw.domains.Ball(2)).save(path)
    >>> print(tw.files.summary(path))  # doctest: +ELLIPSIS
    SOGD, 0 rounds played
    thalweg 0.2.0, schema 4
    <BLANKLINE>
    domain  Ball(shape=2)
    ...
    """
    with reading(path) as archive:
        objects = [is_(dict, entry) for entry in is_(list, archive.about.get("objects"))]
        if not objects:
            raise StateError(f"{os.fspath(path)!r} describes nothing.")
        root, as_text = objects[-1], functools.partial(_as_text, objects, archive)
        rows = [(plain_text(key), as_text(value, 0)) for key, value in is_(dict, root.get("arguments")).items()]
        arrays = [
            (plain_text(key.removeprefix("state.")), f"{array.dtype} {'x'.join(map(str, array.shape)) or 'number'}")
            for key, array in archive.arrays.items()
            if key.startswith("state.")
        ]
        name = plain_text(is_(str, root.get("class"))) + (" (a class of your own)" if root.get("foreign") else "")
        head = [
            f"{name}, {is_(int, archive.about.get('rounds'))} rounds played",
            f"thalweg {plain_text(archive.version, 40)}, schema {archive.schema}",
        ]
    width = max((len(name) for name, _ in [*rows, *arrays]), default=0)
    columns = [[f"{name.ljust(width)}  {text}" for name, text in part] for part in (rows, arrays)]
    return "\n".join([*head, "", *columns[0], "", *columns[1]])


def _as_text(objects: list[dict[str, object]], archive: Archive, value: object, depth: int) -> str:
    """A value of (2) as text."""
    deeper: Callable[[object], str] = functools.partial(_as_text, objects, archive, depth=depth + 1)
    if depth > 5:
        return "..."
    if isinstance(value, list):
        shown = [deeper(item) for item in value[:6]]
        return f"[{', '.join([*shown, '...'] if len(value) > 6 else shown)}]"
    if not isinstance(value, dict) or len(value) != 1:
        return plain_text(repr(value))
    ((what, item),) = value.items()
    if what == "object" and isinstance(item, int) and 0 <= item < len(objects):
        entry = objects[item]
        name = plain_text(str(entry.get("class", entry.get("partial"))))
        shown = [f"{plain_text(key)}={deeper(part)}" for key, part in is_(dict, entry.get("arguments")).items()]
        return f"{name}({', '.join(shown[:12])})"
    if what == "array" and isinstance(item, str) and item in archive.arrays:
        array = archive.arrays[item]
        return repr(array.tolist()) if array.size <= 6 else f"<array {array.shape}>"
    if what in ("tuple", "dict"):
        return deeper(item)
    if what == "missing":
        return f"<not saved: {plain_text(str(item))}>"
    return plain_text(str(item))
