"""Streams to play on: drifting regressions with a planted model, and real series from installed packages.

A stream is a problem with its domain and the constants that learners ask for. The constants hold in every round and are
known in advance: from how the data is drawn, or, for real data, from the range it was scaled by.
"""

from __future__ import annotations

import contextlib
import difflib
import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np

from thalweg._core.extras import need
from thalweg._core.validate import check_count, check_text
from thalweg.cards import Setting
from thalweg.domains._base import Domain
from thalweg.domains.ball import Ball
from thalweg.domains.simplex import Simplex
from thalweg.errors import InputError, MissingExtraError
from thalweg.problems.generators import gradual, paper_ellipsoid, piecewise_stationary
from thalweg.problems.linear_model import LinearModel
from thalweg.problems.models import LinearRegression, LogisticRegression

HORIZON = 20_000  # rounds of a synthetic stream, as in the paper
DIM = 8  # entries of a decision, as in the paper
STAGES = 25  # stages of the paper's jumping stream


@dataclass(frozen=True)
class Stream:
    """A problem, its domain, and constants that hold in every round.

    Attributes
    ----------
    name : str
        Its name.
    domain : Domain
        Where decisions lie.
    problem : LinearModel
        The losses, squared unless said otherwise.
    gradient_bound : float
        G, at least the length of any gradient in the domain.
    smoothness : float or None
        L; None where the losses are not smooth.
    loss_bound : float
        B, at least any loss in the domain.
    changes : tuple of int
        The rounds, counted from 0, at which a planted model jumps.
    """

    name: str
    domain: Domain
    problem: LinearModel
    gradient_bound: float
    smoothness: float | None
    loss_bound: float
    changes: tuple[int, ...] = ()

    @property
    def setting(self) -> Setting:
        """Everything that a learner may know of it."""
        G, B, L = self.gradient_bound, self.loss_bound, self.smoothness
        return Setting(self.domain, len(self.problem), G, B, L, self.problem.nonnegative)


def planted(
    name: str,
    domain: Domain,
    horizon: int,
    seed: int,
    *,
    noise: float = 0.1,
    stages: int | None = None,
    step: float | None = None,
) -> Stream:
    """A regression whose planted model jumps `stages` - 1 times, or else walks in steps of length `step`.

    The domain lies in the ball of its radius R around the origin. With features and models at most R long and noise of
    at most n, an error is at most 2 R^2 + n.
    """
    problem: LinearModel
    changes: tuple[int, ...] = ()
    if stages is None:
        problem = gradual(domain, horizon, step=step, rng=seed, noise=noise)
    else:
        problem = piecewise_stationary(domain, horizon, stages, rng=seed, noise=noise)
        lengths = [len(part) for part in np.array_split(np.arange(horizon), stages)]
        changes = tuple(int(start) for start in np.cumsum(lengths)[:-1])
    R = domain.radius
    error = 2 * R**2 + noise
    return Stream(name, domain, problem, R * error, R**2, error**2 / 2, changes)


# ------------------------------------------------------------------------------------------------------------ synthetic


def _fast_walk(seed: int, T: int, dim: int) -> Stream:
    domain = paper_ellipsoid(dim)
    return planted("fast-walk", domain, T, seed, step=domain.diameter / math.sqrt(T))


def _classification(seed: int, T: int, dim: int) -> Stream:
    """Labels +1 with the probability that the planted weights give; the weights walk in steps of D/sqrt(T)."""
    domain = Ball(dim, radius=3.0)
    rng = np.random.default_rng(seed)
    walk = gradual(domain, T, step=domain.diameter / math.sqrt(T), rng=rng, noise=0.0)
    chance = 1 / (1 + np.exp(-walk.labels))  # without noise these are <x_t, w*_t>
    labels = np.where(rng.random(T) < chance, 1.0, -1.0)
    problem = LogisticRegression(walk.features, labels, comparators=walk.comparators)
    R = domain.radius
    return Stream("classification", domain, problem, R, R**2 / 4, math.log1p(math.exp(R**2)))


# ----------------------------------------------------------------------------------------------------------------- real


def _polls() -> Stream:
    """Percentages go from [30, 55] to [0, 1]. With weights that sum to 1 such a shift changes no prediction."""
    rows = list(_need("river.datasets").TrumpApproval())
    features = np.array([[value for key, value in x.items() if key != "ordinal_date"] for x, _ in rows])
    labels = np.array([y for _, y in rows])
    problem = LinearRegression((features - 30) / 25, (labels - 30) / 25)
    return Stream("polls", Simplex(5), problem, math.sqrt(5), 5.0, 0.5)


def _glucose() -> Stream:
    """Blood sugar (in 400 mg/dl) from the sensor's current (in 100 nA) and an intercept, without the rows with gaps."""
    data = _need("bokeh_sampledata.glucose").data[["isig", "glucose"]]
    current, sugar = data.apply(_need("pandas").to_numeric, errors="coerce").dropna().to_numpy(dtype=float).T
    problem = LinearRegression(np.c_[np.ones(current.size), current / 100], sugar / 400)
    error = 3 * math.sqrt(2) + 1  # features at most sqrt 2 long, labels at most 1
    return Stream("glucose", Ball(2, radius=3.0), problem, math.sqrt(2) * error, 2.0, error**2 / 2)


def _sea() -> Stream:
    """The sea's temperature (in 25 degrees C) from 30, 60, 90 minutes and a day ago; it hardly drifts."""
    data = _need("bokeh_sampledata.sea_surface_temperature").sea_surface_temperature
    z = data["temperature"].to_numpy(dtype=float) / 25
    features = np.stack([z[48 - lag : z.size - lag] for lag in (1, 2, 3, 48)], axis=1)
    problem = LinearRegression(features, z[48:])
    return Stream("sea", Ball(4, radius=1.5), problem, 2 * 4.0, 4.0, 8.0)  # features at most 2 long, |error| <= 4


def _water() -> Stream:
    """The flow of water through a pipe (in 120 l/s) from 1, 2 and 24 hours ago and an intercept."""
    z = np.array([y for _, y in _need("river.datasets").WaterFlow()]) / 120
    features = np.stack([z[24 - lag : z.size - lag] for lag in (1, 2, 24)] + [np.ones(z.size - 24)], axis=1)
    problem = LinearRegression(features, z[24:])
    return Stream("water", Ball(4, radius=1.5), problem, 2 * 4.0, 4.0, 8.0)


def _need(module: str) -> ModuleType:
    """Import a package that holds data, or say how to get it."""
    with warnings.catch_warnings(action="ignore"):  # warnings of these packages are not for our reader
        return need(module, "data", "This stream")


# ---------------------------------------------------------------------------------------------------------- by name


@dataclass(frozen=True)
class Source:
    """The source of a stream: one line about it, whether its data is real, and the function that draws it.

    `draw` takes (seed, horizon, dim) where the data is synthetic and nothing where it is real. Call `thalweg.lab.draw`
    instead: it checks the arguments and knows the defaults.
    """

    about: str
    draw: Callable[..., Stream]
    real: bool = False


STREAMS: dict[str, Source] = {
    "piecewise": Source(
        "the paper's jumps: 25 stages on an ellipsoid, d = 8, D = 6",
        lambda seed, T, dim: planted("piecewise", paper_ellipsoid(dim), T, seed, stages=min(STAGES, T)),
    ),
    "gradual": Source(
        "the paper's slow walk: steps of D/T on the same ellipsoid",
        lambda seed, T, dim: planted("gradual", paper_ellipsoid(dim), T, seed),
    ),
    "fast-walk": Source("a walk that crosses the ellipsoid: steps of D/sqrt(T)", _fast_walk),
    "ball-piecewise": Source(
        "jumps every 500 rounds on the unit ball, noise up to 0.5",
        lambda seed, T, dim: planted("ball-piecewise", Ball(dim), T, seed, noise=0.5, stages=max(1, T // 500)),
    ),
    "classification": Source("logistic loss, weights that walk in a ball of radius 3", _classification),
    "polls": Source("weigh 5 pollsters to predict a president's approval, 1001 days", _polls, real=True),
    "glucose": Source("calibrate a glucose sensor by its current, 51 220 readings", _glucose, real=True),
    "sea": Source("predict the sea's temperature from its past, 19 178 half-hours", _sea, real=True),
    "water": Source("predict the flow of water in a pipe from its past, 1244 hours", _water, real=True),
}


def draw(name: str, seed: int = 0, *, horizon: int | None = None, dim: int | None = None) -> Stream:
    """Draw a stream by its name.

    Parameters
    ----------
    name : str
        A key of `STREAMS`.
    seed : int
        The seed of synthetic data; real data is always the same.
    horizon : int, optional
        Rounds. Synthetic streams have 20 000 when left out; real ones are cut to this length.
    dim : int, optional
        Entries of a decision, for synthetic streams; 8 when left out, 20 on "ball-piecewise".

    Returns
    -------
    Stream

    Examples
    --------
    >>> from thalweg.lab import draw
    >>> stream = draw("piecewise", seed=3, horizon=1000)
    >>> len(stream.problem), stream.domain.diameter, len(stream.changes)
    (1000, 6.0, 24)
    """
    source = STREAMS.get(check_text("draw", "name", name))
    if source is None:
        near = difflib.get_close_matches(name, STREAMS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InputError(f"There is no stream {name!r}.{hint} The streams are {', '.join(STREAMS)}.")
    seed = check_count("draw", "seed", seed, least=0, most=2**128)
    T = None if horizon is None else check_count("draw", "horizon", horizon)
    if not source.real:
        d = (20 if name == "ball-piecewise" else DIM) if dim is None else check_count("draw", "dim", dim)
        return source.draw(seed, HORIZON if T is None else T, d)
    if dim is not None:
        raise InputError(f"The stream {name!r} is real data, so its dimension is given. Leave out 'dim'.")
    stream = source.draw()
    return stream if T is None else replace(stream, problem=stream.problem[:T])


def installed(names: Iterable[str]) -> tuple[str, ...]:
    """Return the streams whose data is installed; unknown names are kept, as if they needed no data."""
    found = []
    for name in names:
        with contextlib.suppress(MissingExtraError):
            if name in STREAMS and STREAMS[name].real:
                draw(name, horizon=10)
            found.append(name)
    return tuple(found)


def measured(name: str, domain: Domain, problem: LinearModel, changes: tuple[int, ...] = ()) -> Stream:
    """A stream whose constants are computed from its data."""
    G, B = problem.gradient_bound(domain), problem.loss_bound(domain)
    return Stream(name, domain, problem, G, problem.smoothness, B, changes)


def with_domain(stream: Stream, domain: Domain) -> Stream:
    """The same data on another domain, with constants computed from the data. Planted models may lie outside it."""
    data = stream.problem[:]
    data.comparators = None
    return measured(stream.name, domain, data, stream.changes)
