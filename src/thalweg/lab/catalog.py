"""Algorithms and sets by name: what a user types, what it means, and how it is built for a stream."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

import thalweg as tw
from thalweg.algorithms import thresholds
from thalweg.domains import Ball, Box, Domain, L1Ball, Simplex
from thalweg.errors import InputError
from thalweg.lab.streams import Stream

__all__ = ["ALGORITHMS", "DOMAINS", "Recipe", "Shape", "build", "build_domain"]

# Parts of the printed thresholds with which several experts live on the paper's stream (docs/thresholds.md).
EAGER_SACS, EAGER_ADAPTIVE, EAGER_INTERVAL = 1e-2, 1e-3, 1e-4


@dataclass(frozen=True)
class Recipe:
    """An algorithm by name.

    Attributes
    ----------
    about : str
        One line.
    regret : str
        "static", "dynamic", "adaptive" or "interval dynamic".
    bound : str
        The order of its regret. P is the length of the comparators' path, F their loss, |I| the length of an interval.
    make : callable
        A fresh learner for a stream; call `build`, which checks what the method needs.
    smooth : bool
        Whether the method needs losses that are smooth and never negative.
    """

    about: str
    regret: str
    bound: str
    make: Callable[[Stream], tw.Learner]
    smooth: bool = False


# ----------------------------------------------------------------------------------------------------------- algorithms


def _rounds(s: Stream) -> int:
    return len(s.problem)


def _range(s: Stream) -> float:
    """At least the difference of any two values that a loss takes in the domain."""
    lipschitz = s.gradient_bound * s.domain.diameter
    return min(s.loss_bound, lipschitz) if s.problem.nonnegative else lipschitz


def _smoothness(s: Stream) -> float:
    assert s.smoothness is not None  # `build` has checked
    return s.smoothness


def _ogd(s: Stream) -> tw.Learner:
    return tw.OGD(s.domain, horizon=_rounds(s), gradient_bound=s.gradient_bound)


def _ader(s: Stream, gradients: str) -> tw.Learner:
    return tw.Ader(s.domain, _rounds(s), s.gradient_bound, gradients=gradients, loss_range=_range(s))


def _sword(s: Stream, gradients: str) -> tw.Learner:
    return tw.Sword(
        s.domain, _rounds(s), s.gradient_bound, _smoothness(s), gradients=gradients, loss_bound=s.loss_bound
    )


def _efficient_dynamic(s: Stream, small_loss: bool) -> tw.Learner:
    L = s.smoothness if small_loss and s.problem.nonnegative else None
    return tw.EfficientDynamic(s.domain, _rounds(s), s.gradient_bound, L, loss_bound=s.loss_bound)


def _cbce(s: Stream, gradients: str) -> tw.Learner:
    return tw.CBCE(s.domain, s.gradient_bound, gradients=gradients, loss_range=_range(s), horizon=_rounds(s))


def _sacs(s: Stream, cover: str, scale: float) -> tw.Learner:
    L = _smoothness(s)
    C = scale * thresholds.sacs(L=L, D=s.domain.diameter, delta=1.0)
    return tw.SACS(s.domain, s.loss_bound, L, cover=cover, threshold=C, horizon=_rounds(s))


def _efficient_adaptive(s: Stream, scale: float) -> tw.Learner:
    T, G, L = _rounds(s), s.gradient_bound, _smoothness(s)
    if scale == 1:
        return tw.EfficientAdaptive(s.domain, T, G, L)
    C = partial(thresholds.adaptive_paper, T=T, G=G, L=L, R=s.domain.surrogate.radius, delta=1.0)
    return tw.EfficientAdaptive(s.domain, T, G, L, threshold=lambda m: scale * C(m), feedback_range="observed")


def _efficient_interval(s: Stream, scale: float) -> tw.Learner:
    T, G, L, B, D = _rounds(s), s.gradient_bound, _smoothness(s), s.loss_bound, s.domain.diameter
    if scale == 1:
        return tw.EfficientIntervalDynamic(s.domain, T, G, L, loss_bound=B)
    R = s.domain.surrogate.radius
    N = tw.algorithms.pools.small_loss_pool(T, L, B, R, D).size
    C = partial(thresholds.interval_dynamic, T=T, G=G, L=L, R=R, N=N)
    return tw.EfficientIntervalDynamic(
        s.domain, T, G, L, loss_bound=B, threshold=lambda m: scale * C(m), feedback_range="observed"
    )


def _aoa(s: Stream) -> tw.Learner:
    return tw.AOA(s.domain, s.gradient_bound, loss_range=_range(s), horizon=_rounds(s))


_DYNAMIC = "sqrt(T (1 + P_T))"
_SMALL = "sqrt((1 + P_T + F_T)(1 + P_T))"
_ADAPTIVE = "sqrt(|I| log T)"
_ADAPTIVE_SMALL = "sqrt(F_I log F_I log F_T)"
_INTERVAL = "sqrt(|I| (log T + P_I))"
_INTERVAL_SMALL = "sqrt((F_I + P_I)(P_I + log(F_T + P_T)) log(F_I + P_I))"
_FREE = "sqrt((D^2 + D P_I) sum_I ||g||^2), up to logarithms"

ALGORITHMS: dict[str, Recipe] = {
    "OGD": Recipe("gradient descent with one step size", "static", "sqrt(T)", _ogd),
    "SOGD": Recipe(
        "scale-free gradient descent, needs no constants", "static", "sqrt(F_T)", lambda s: tw.SOGD(s.domain)
    ),
    "Ader": Recipe("a pool of step sizes, one gradient", "dynamic", _DYNAMIC, partial(_ader, gradients="shared")),
    "Ader-own": Recipe(
        "Ader as first published: each member its own gradient", "dynamic", _DYNAMIC, partial(_ader, gradients="own")
    ),
    "Sword": Recipe(
        "a pool for small losses, each member its own gradient",
        "dynamic",
        _SMALL,
        partial(_sword, gradients="own"),
        smooth=True,
    ),
    "Sword-shared": Recipe(
        "Sword with one gradient", "dynamic", _SMALL, partial(_sword, gradients="shared"), smooth=True
    ),
    "EfficientDynamic": Recipe(
        "Algorithm 1: one projection (Theorem 2 where losses are not smooth)",
        "dynamic",
        "sqrt((F_T + P_T)(1 + P_T))",
        partial(_efficient_dynamic, small_loss=True),
    ),
    "EfficientDynamic-worst-case": Recipe(
        "Algorithm 1 with the step sizes of Theorem 2",
        "dynamic",
        _DYNAMIC,
        partial(_efficient_dynamic, small_loss=False),
    ),
    "CBCE": Recipe(
        "coin betting over intervals, each expert its own gradient",
        "adaptive",
        _ADAPTIVE,
        partial(_cbce, gradients="own"),
    ),
    "CBCE-shared": Recipe("CBCE with one gradient", "adaptive", _ADAPTIVE, partial(_cbce, gradients="shared")),
    "SACS": Recipe(
        "scale-free experts on intervals that end by loss",
        "adaptive",
        _ADAPTIVE_SMALL,
        partial(_sacs, cover="problem", scale=1.0),
        smooth=True,
    ),
    "SACS-eager": Recipe(
        "SACS with 1/100 of its threshold: experts come sooner",
        "adaptive",
        "none proved",
        partial(_sacs, cover="problem", scale=EAGER_SACS),
        smooth=True,
    ),
    "SACS-compact": Recipe(
        "SACS with a new expert every round",
        "adaptive",
        "sqrt(F_I log T log |I|)",
        partial(_sacs, cover="compact", scale=1.0),
        smooth=True,
    ),
    "EfficientCBCE": Recipe(
        "CBCE with one projection and one gradient",
        "adaptive",
        _ADAPTIVE,
        lambda s: tw.EfficientCBCE(s.domain, s.gradient_bound, horizon=_rounds(s)),
    ),
    "EfficientAdaptive": Recipe(
        "Algorithm 2: one projection, thresholds as printed",
        "adaptive",
        f"min({_ADAPTIVE_SMALL}, {_ADAPTIVE})",
        partial(_efficient_adaptive, scale=1.0),
        smooth=True,
    ),
    "EfficientAdaptive-eager": Recipe(
        "Algorithm 2 with 1/1000 of its thresholds: experts come sooner",
        "adaptive",
        "none proved",
        partial(_efficient_adaptive, scale=EAGER_ADAPTIVE),
        smooth=True,
    ),
    "AOA": Recipe("Ader on every interval of a cover", "interval dynamic", _INTERVAL, _aoa),
    "EfficientAOA": Recipe(
        "AOA with one projection and one gradient",
        "interval dynamic",
        _INTERVAL,
        lambda s: tw.EfficientAOA(s.domain, s.gradient_bound, horizon=_rounds(s)),
    ),
    "EfficientIntervalDynamic": Recipe(
        "Algorithm 3: one projection, thresholds as printed",
        "interval dynamic",
        _INTERVAL_SMALL,
        partial(_efficient_interval, scale=1.0),
        smooth=True,
    ),
    "EfficientIntervalDynamic-eager": Recipe(
        "Algorithm 3 with 1/10 000 of its thresholds: experts come sooner",
        "interval dynamic",
        "none proved",
        partial(_efficient_interval, scale=EAGER_INTERVAL),
        smooth=True,
    ),
    "CutkoskyAdaptive": Recipe(
        "no step sizes: levels that correct each other",
        "interval dynamic",
        _FREE,
        lambda s: tw.CutkoskyAdaptive(s.domain, _rounds(s), s.gradient_bound),
    ),
    "EfficientCutkosky": Recipe(
        "CutkoskyAdaptive with one projection",
        "interval dynamic",
        _FREE,
        lambda s: tw.EfficientCutkosky(s.domain, _rounds(s), s.gradient_bound),
    ),
    "CutkoskyPrintedVariant": Recipe(
        "the variant of the paper's appendix, to compare with",
        "interval dynamic",
        "none (its guarantee fails)",
        lambda s: tw.CutkoskyPrintedVariant(s.domain, _rounds(s), s.gradient_bound),
    ),
}


def build(name: str, stream: Stream) -> tw.Learner:
    """A fresh learner for a stream, with the stream's constants.

    Parameters
    ----------
    name : str
        A key of `ALGORITHMS`; upper and lower case are the same.
    stream : Stream
        What it will play.

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
    recipe = ALGORITHMS[find("algorithm", name, ALGORITHMS)]
    if recipe.smooth and (stream.smoothness is None or not stream.problem.nonnegative):
        lacks = "smooth" if stream.smoothness is None else "free of negative values"
        others = ", ".join(
            key for key, other in ALGORITHMS.items() if not other.smooth and other.regret == recipe.regret
        )
        raise InputError(
            f"{name} needs losses that are smooth and never negative. The {stream.problem.loss} losses of "
            f"{stream.name!r} are not {lacks}. For {recipe.regret} regret without that: {others}."
        )
    return recipe.make(stream)


def find(kind: str, name: str, known: Iterable[str]) -> str:
    """The known name that was meant, whatever its case; an error that names near ones if there is none."""
    names = {key.lower(): key for key in known}
    if name.lower() in names:
        return names[name.lower()]
    near = [names[key] for key in difflib.get_close_matches(name.lower(), names, n=3)]
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise InputError(f"There is no {kind} {name!r}.{hint} 'thalweg list {kind}s' names all.")


# ----------------------------------------------------------------------------------------------------------------- sets


@dataclass(frozen=True)
class Shape:
    """A set by name: one line about it and, where numbers describe it, what builds it from (dimension, options)."""

    about: str
    options: dict[str, float] = field(default_factory=dict)
    make: Callable[..., Domain] | None = None

    @property
    def usage(self) -> str:
        """What may follow the name, with the defaults; empty for sets that are built in Python only."""
        return ",".join(f"{key}={value:g}" for key, value in self.options.items())


def _ellipsoid(dim: int, diameter: float, condition: float) -> Domain:
    return tw.problems.paper_ellipsoid(dim, diameter, condition=condition)


DOMAINS: dict[str, Shape] = {
    "ball": Shape("all points within a distance of the origin", {"radius": 3.0}, Ball),
    "box": Shape(
        "every entry between two numbers",
        {"lower": -1.0, "upper": 1.0},
        lambda dim, lower, upper: Box(lower, upper, shape=dim),
    ),
    "simplex": Shape("entries that are not negative and sum to a total", {"total": 1.0}, Simplex),
    "l1": Shape("entries whose absolute values sum to at most a radius", {"radius": 1.0}, L1Ball),
    "ellipsoid": Shape(
        "the paper's: diagonal, in a ball of its diameter", {"diameter": 6.0, "condition": 10.0}, _ellipsoid
    ),
    "HalfSpace": Shape("one linear inequality"),
    "Polytope": Shape("linear inequalities"),
    "Intersection": Shape("the points that several sets share"),
    "ProductOfBalls": Shape("a ball for each block of entries"),
    "SpectralBalls": Shape("matrices with bounded singular values"),
    "Fantope": Shape("matrices with eigenvalues in [0, 1] that sum to k"),
    "Custom": Shape("any projection of yours"),
}


def build_domain(text: str, dim: int) -> Domain:
    """The set that a text such as "ball:radius=3" or "box:lower=0,upper=1" describes.

    Parameters
    ----------
    text : str
        A lower-case key of `DOMAINS`, then options after a colon; those left out have their defaults.
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
    name, _, rest = text.partition(":")
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
    return shape.make(dim, **options)
