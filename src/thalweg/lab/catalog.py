"""Algorithms and sets by name: their text form, and how they are built for a stream."""

from __future__ import annotations

import difflib
import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from thalweg._core.validate import ask, check_text, short_repr, wrong
from thalweg.cards import Recipe, recipes
from thalweg.domains._base import Domain
from thalweg.domains.ball import Ball
from thalweg.domains.box import Box
from thalweg.domains.l1_ball import L1Ball
from thalweg.domains.simplex import Simplex
from thalweg.errors import InputError
from thalweg.lab import plugins
from thalweg.lab.streams import Stream
from thalweg.learners.base import Learner
from thalweg.learners.delayed_feedback import DelayedFeedback
from thalweg.problems.generators import paper_ellipsoid

T = TypeVar("T")


class _Current(Mapping[str, T]):
    """Entries by name, looked up whenever they are asked for: classes and packages may add to them at any time."""

    def __init__(self, look_up: Callable[[], Mapping[str, T]]) -> None:
        self._look_up = look_up

    def __getitem__(self, name: str) -> T:
        return self._look_up()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._look_up())

    def __len__(self) -> int:
        return len(self._look_up())


def _algorithms() -> dict[str, Recipe]:
    """Every learner with a card and its variants, also those of other packages."""
    plugins.load_learners()
    return recipes()


ALGORITHMS = _Current(_algorithms)


def prompt() -> dict[str, Recipe]:
    """Return those that get a gradient right after every decision, not delayed feedback or values only."""
    return {
        name: r for name, r in ALGORITHMS.items() if not (r.kind.values_only or issubclass(r.kind, DelayedFeedback))
    }


USUAL = "Tracker"  # where none is named: it needs no constants


def build(name: str, stream: Stream) -> Learner:
    """A fresh learner for a stream, with the stream's constants.

    Parameters
    ----------
    name : str
        A key of `ALGORITHMS`, whatever its case; or "module:name": a learner class of yours with a card, built as the
        card says, or a function (or another class) that takes the domain and returns a learner.
    stream : Stream
        The stream to play.

    Returns
    -------
    Learner

    Examples
    --------
    >>> import thalweg as tw
    >>> from thalweg.lab import build, draw
    >>> stream = draw("piecewise", horizon=1000)
    >>> tw.play(build("EfficientDynamic", stream), stream.problem).queries
    Queries(projections=1000, gradients=1000, values=0)
    """
    if not isinstance(stream, Stream):
        raise wrong("build", "stream", "a Stream", stream)
    known = find("algorithm", check_text("build", "name", name), ALGORITHMS)
    if ":" in known:
        made = _imported(known)
        if not (isinstance(made, type) and issubclass(made, Learner) and vars(made).get("card")):
            return _called(known, made, "learner", Learner, stream.domain)
        recipe = Recipe(known, made, vars(made)["card"])
    else:
        recipe = ALGORITHMS[known]
    setting = stream.setting
    card = recipe.card
    if card.smooth and not setting.small_loss:
        lacks = "smooth" if stream.smoothness is None else "free of negative values"
        others = ", ".join(
            key for key, other in recipes().items() if not other.card.smooth and other.card.regret == card.regret
        )
        raise InputError(
            f"{name} needs losses that are smooth and never negative. The {stream.problem.loss} losses of "
            f"{stream.name!r} are not {lacks}. For {card.regret} regret without that: {others}."
        )
    return recipe.build(setting)


def find(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the known name, whatever its case; raise an error that lists near ones if there is none."""
    if ":" in name:
        return name  # a function of the user's own
    names = {key.lower(): key for key in known}
    if name.lower() in names:
        return names[name.lower()]
    near = [names[key] for key in difflib.get_close_matches(name.lower(), names, n=3)]
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise InputError(f"There is no {kind} {name!r}.{hint} 'thalweg list {kind}s' names all.")


def _imported(text: str) -> Callable[..., object]:
    """The function or class that "module:name" names; modules of the present folder are found, too."""
    module, _, name = text.partition(":")
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        function: object = getattr(importlib.import_module(module), name, None)
    except ModuleNotFoundError as error:
        raise InputError(f"{text!r} names a module that cannot be imported: {error}. Is it in this folder?") from None
    except Exception as error:
        raise InputError(f"{text!r}: importing {module} raised {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(here)
    if not callable(function):
        raise InputError(f"{text!r}: {module} has no function {name!r}. Write module:function.")
    return function


def _called(text: str, function: Callable[..., object], what: str, kind: type[T], *arguments: object) -> T:
    """Return the result, checked to be of this kind."""
    made = ask(text, what, function, *arguments)
    if not isinstance(made, kind):
        raise InputError(f"{text!r} must return a thalweg {kind.__name__}. Got {short_repr(made)}.")
    return made


# ----------------------------------------------------------------------------------------------------------------- sets


@dataclass(frozen=True)
class Shape:
    """A set by name: one line about it and, where numbers describe it, its builder from (dimension, options)."""

    about: str
    options: dict[str, float] = field(default_factory=dict)
    make: Callable[..., Domain] | None = None

    @property
    def usage(self) -> str:
        """The options after the name, with the defaults; empty for sets that are built in Python only."""
        return ",".join(f"{key}={value:g}" for key, value in self.options.items())


OURS: dict[str, Shape] = {
    "ball": Shape("all points within a distance of the origin", {"radius": 3.0}, Ball),
    "box": Shape(
        "every entry between two numbers",
        {"lower": -1.0, "upper": 1.0},
        lambda dim, lower, upper: Box(lower, upper, shape=dim),
    ),
    "simplex": Shape("entries that are not negative and sum to a total", {"total": 1.0}, Simplex),
    "l1": Shape("entries whose absolute values sum to at most a radius", {"radius": 1.0}, L1Ball),
    "ellipsoid": Shape(
        "the paper's: diagonal, in a ball of its diameter",
        {"diameter": 6.0, "condition": 10.0},
        paper_ellipsoid,
    ),
    "HalfSpace": Shape("one linear inequality"),
    "Polytope": Shape("linear inequalities"),
    "Intersection": Shape("the points that several sets share"),
    "ProductOfBalls": Shape("a ball for each block of entries"),
    "SpectralBalls": Shape("matrices with bounded singular values"),
    "Fantope": Shape("matrices with eigenvalues in [0, 1] that sum to k"),
    "Custom": Shape("any projection of yours"),
}


def _domains() -> dict[str, Shape]:
    """Our sets and those of other packages."""
    return OURS | {name: Shape(*found) for name, found in plugins.domains().items() if name not in OURS}


DOMAINS = _Current(_domains)


def build_domain(text: str, dim: int) -> Domain:
    """The set that a text such as "ball:radius=3" or "box:lower=0,upper=1" describes.

    Parameters
    ----------
    text : str
        A lower-case key of `DOMAINS`, then options after a colon; those left out have their defaults. Or
        "module:function", a function of yours that takes the dimension and returns a domain.
    dim : int
        The dimension of its points.

    Returns
    -------
    Domain

    Examples
    --------
    >>> from thalweg.lab import build_domain
    >>> build_domain("ball:radius=2", 4)
    Ball(4, radius=2)
    """
    name, _, rest = check_text("build_domain", "text", text).partition(":")
    if rest.isidentifier() and name.strip().lower() not in map(str.lower, DOMAINS):
        return _called(text, _imported(text), "domain", Domain, dim)
    shape = DOMAINS[find("domain", name.strip(), DOMAINS)]
    if shape.make is None:
        typed = ", ".join(key for key, other in DOMAINS.items() if other.make is not None)
        raise InputError(
            f"{name} takes arrays, so it is built in Python (thalweg.domains). By name there are: {typed}."
        )
    options = dict(shape.options)
    for part in filter(None, (part.strip() for part in rest.split(","))):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in options:
            raise InputError(f"The domain {name!r} has no option {key!r}. It is written {name}:{shape.usage}.")
        try:
            options[key] = float(value)
        except ValueError:
            raise InputError(f"The option {key!r} of the domain {name!r} must be a number. Got {value!r}.") from None
    return _called(name, functools.partial(shape.make, **options), "domain", Domain, dim)
