"""Linear models of the value h steps ahead, one for each of a few horizons, on top of an exponential smoothing.

    z_{t+h-1} - base_h from z_{t-1} - base_h, two steps of z, the last two errors of the base, and for a season its last
    error and its last value in the phase of the target; the forecasts of two other smoothings; a constant           (1)

Pairs of features and answer are complete h rounds later, so features wait. Horizons between two of those that have a
model take the weights of the lower one. After g missing values a forecast of h steps takes those of g + h; beyond the
last horizon there is none. Weights are those of least squares (`thalweg.parts.forecast.ridge`), with a ridge that grows
with h.
"""

from collections.abc import Iterator
from typing import NamedTuple

from thalweg._core.rules import within
from thalweg._core.state import Floats, Past, Plan, field, scratch
from thalweg._kernels.jit import inner
from thalweg.parts.forecast.lagged import KAPPA
from thalweg.parts.forecast.past import ABSENT, is_there, size_or_absent
from thalweg.parts.forecast.ridge import are_sums, learn_ridge, packed, solve_ridge

__all__ = ["FEATURES", "DirectSettings", "DirectState", "direct_plan", "learn_direct", "shift_bases", "solve_direct"]

FEATURES = 10
BASE = FEATURES  # in a waiting row, after its features
LARGEST_FEATURE = 1e108


class DirectState(NamedTuple):
    """Sums of M models at A horizons, and rows that wait for their answer."""

    A: Floats = field("M A T", called="direct models")
    c: Floats = field("M A D", called="direct models")
    rows: Floats = field("M A", within(0.0, 2.0**62), called="direct models")
    waiting: Floats = field("M S X", size_or_absent(LARGEST_FEATURE), called="waiting features", start=ABSENT)


class DirectSettings(NamedTuple):
    """Scratch space."""

    w: Floats = scratch("A D")
    root: Floats = scratch("T")
    x: Floats = scratch("X")
    known: Floats = scratch("A")  # whether there are weights for a horizon


def direct_plan(models: int, horizons: int, slots: int) -> Plan:
    """Return the plan for a number of models and of horizons; the sum of the horizons is `slots`."""
    sizes = {"M": models, "A": horizons, "S": slots, "D": FEATURES, "X": FEATURES + 1, "T": packed(FEATURES)}
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
def learn_direct(s: DirectState, i: int, d: int, a: int, slot: int, z: float) -> None:
    """The answer z to the row that waits in this slot."""
    row = s.waiting[i, slot]
    if is_there(row[BASE]):
        s.rows[i, a] += 1.0
        learn_ridge(s.A[i, a], s.c[i, a], row, d, z - row[BASE])


@inner
def shift_bases(s: DirectState, i: int, shift: float) -> None:
    """The level of the series has changed."""
    for slot in range(s.waiting.shape[1]):
        if is_there(s.waiting[i, slot, BASE]):
            s.waiting[i, slot, BASE] += shift
