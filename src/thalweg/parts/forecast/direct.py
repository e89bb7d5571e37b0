"""Linear models of the value h steps ahead, one for each of a few horizons, on top of an exponential smoothing.

    z_{t+h-1} - base_h from two steps of z, the last two errors of the base, a constant; z_{t-1} - base_h, the forecasts
    of two other smoothings, and for a season the last error and the last value in the phase of the target          (1)

Pairs of features and answer are complete h rounds later, so features wait. The first five are the same at all horizons
and wait once. Horizons between two of those that have a model take the weights of the lower one. After g missing values
a forecast of h steps takes those of g + h; beyond the last horizon there is none. Weights are those of least squares
(`thalweg.parts.forecast.ridge`), with a ridge that grows with h.
"""

from collections.abc import Iterator
from typing import NamedTuple

from thalweg._core.rules import magnitude, within
from thalweg._core.state import Past, Plan, field, scratch
from thalweg._core.types import Floats, Ints
from thalweg._kernels.jit import inner
from thalweg.parts.forecast.lagged import KAPPA
from thalweg.parts.forecast.past import ABSENT, is_there, size_or_absent
from thalweg.parts.forecast.ridge import are_sums, learn_ridge, packed, solve_ridge

FEATURES = 10
SHARED = 5  # the first features: the same at all horizons
BASE = FEATURES - SHARED  # in a waiting row, after the other features
LARGEST_FEATURE = 1e108


class DirectState(NamedTuple):
    """Sums of M models at A horizons, and features of the last H rounds that wait for their answers."""

    A: Floats = field("M A T", called="direct models")
    c: Floats = field("M A D", called="direct models")
    rows: Floats = field("M A", within(0.0, 2.0**62), called="direct models")
    shared: Floats = field("M H F", magnitude(LARGEST_FEATURE), called="waiting features")  # of time t at t modulo H
    waiting: Floats = field("M S X", size_or_absent(LARGEST_FEATURE), called="waiting features", start=ABSENT)


class DirectSettings(NamedTuple):
    """Scratch space."""

    w: Floats = scratch("A D")
    root: Floats = scratch("T")
    x: Floats = scratch("D")
    known: Floats = scratch("A")  # whether there are weights for a horizon


def direct_plan(models: int, horizons: Ints) -> Plan:
    """Return the plan for a number of models at these horizons, in ascending order."""
    sizes = {"M": models, "A": horizons.size, "S": int(horizons.sum()), "H": int(horizons[-1])}
    sizes |= {"D": FEATURES, "F": SHARED, "X": BASE + 1, "T": packed(FEATURES)}
    return Plan(DirectState, DirectSettings(), sizes, holds=_holds)


def _holds(s: DirectState, c: DirectSettings, past: Past) -> Iterator[tuple[str, bool]]:
    yield "direct models", are_sums(s.A, s.c)


@inner
def solve_direct(s: DirectState, c: DirectSettings, i: int, d: int, a: int, h: int) -> None:
    """w[a] <- the weights of model i at the a-th horizon, h."""
    c.known[a] = 0.0
    if s.rows[i, a] > 2.0:
        c.known[a] = 1.0
        solve_ridge(s.A[i, a], s.c[i, a], d, s.rows[i, a], KAPPA * h, c.root, c.w[a])


@inner
def keep_shared(s: DirectState, c: DirectSettings, i: int, t: int) -> None:
    """Keep the first features of time t."""
    row = s.shared[i, t % s.shared.shape[1]]
    for k in range(SHARED):
        row[k] = c.x[k]


@inner
def wait_direct(s: DirectState, c: DirectSettings, i: int, slot: int, base: float) -> None:
    """The other features and their base wait in this slot; ABSENT: there is no base."""
    row = s.waiting[i, slot]
    for k in range(BASE):
        row[k] = c.x[SHARED + k]
    row[BASE] = base


@inner
def learn_direct(s: DirectState, c: DirectSettings, i: int, d: int, a: int, slot: int, t: int, z: float) -> None:
    """The answer z to the features of time t, which wait in this slot."""
    row, shared = s.waiting[i, slot], s.shared[i, t % s.shared.shape[1]]
    if is_there(row[BASE]):
        for k in range(SHARED):
            c.x[k] = shared[k]
        for k in range(BASE):
            c.x[SHARED + k] = row[k]
        s.rows[i, a] += 1.0
        learn_ridge(s.A[i, a], s.c[i, a], c.x, d, z - row[BASE])


@inner
def shift_bases(s: DirectState, i: int, shift: float) -> None:
    """The level of the series has changed."""
    for slot in range(s.waiting.shape[1]):
        if is_there(s.waiting[i, slot, BASE]):
            s.waiting[i, slot, BASE] += shift
