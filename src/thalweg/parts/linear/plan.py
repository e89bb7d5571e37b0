"""The plan of a linear model: its candidates, their weights, and the capacity for features and rows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from thalweg._core.memory import Saved
from thalweg._core.state import Block, Past, Plan
from thalweg._core.validate import LARGEST_ENTRY
from thalweg.parts.jury import begin_jury, jury_plan
from thalweg.parts.linear.guests import BELIEVED as BELIEVED_GUESTS
from thalweg.parts.linear.guests import FORGET, begin_guests, guests_plan
from thalweg.parts.linear.losses import HINGE, HUBER, LOG, QUANTILE, SQUARED
from thalweg.parts.linear.members import BELIEVED, RATES, members_plan
from thalweg.parts.linear.rows import GAUGE, UNIT, LinearSettings, LinearState
from thalweg.parts.records import rounds_for, slots_for, slots_of
from thalweg.parts.shares import begin_shares, shares_plan
from thalweg.parts.spread import spread_plan

KINDS = {
    "squared_error": SQUARED,
    "huber": HUBER,
    "absolute_error": QUANTILE,
    "quantile": QUANTILE,
    "hinge": HINGE,
    "log_loss": LOG,
}
BY_CANDIDATE = ("jury.records.A", "jury.records.p", "jury.weights", "shares.beliefs")  # arrays with a column for each
LAST = 0.05  # prior weight of the last label, where it is a candidate
GUESTS = 0.7  # prior weight of all guests together
WIDEST = 512  # features up to which there can be guests: they take 40 D^2 bytes, and O(D^2) a row


@dataclass(frozen=True)
class LinearLayout:
    """A linear model of one target, in all its sizes: see `thalweg._core.memory.Layout`.

    Sizes are `features`, `guests` (0 or 1: whether there are any) and `slots` of the jury, which grow with the rows.

    Attributes
    ----------
    features : int
        Positions with capacity at the start. They count from 1.
    loss : str
        A key of `KINDS`. Labels of "log_loss" and "hinge" are -1 and +1.
    par : float
        tau of "quantile", epsilon of "huber"; else it does not matter.
    intercept : bool
        Whether there is one. Without, features and labels are not centred.
    guests : bool
        Whether there are guests at the start, where `features` is at most `WIDEST`; a row then costs O(positions in use
        squared), without O(present).
    open : bool
        Whether no position is in use at the start.
    last : bool
        Whether the last label is a candidate; not for "log_loss" and "hinge".
    """

    features: int
    loss: str = "squared_error"
    par: float = 0.5
    intercept: bool = True
    guests: bool = True
    open: bool = False
    last: bool = False

    def sizes(self) -> dict[str, int]:
        """Return the sizes of a fresh state."""
        return {
            "features": self.features,
            "guests": int(self.guests and self.features <= WIDEST),
            "slots": self.slots(0),
        }

    def sizes_of(self, saved: Saved) -> dict[str, int]:
        """Return the sizes of a saved state: those of a fresh one, but for the slots."""
        return self.sizes() | {"slots": slots_of(saved["jury.records.born"]) if self.slots(0) else 0}

    def slots(self, rounds: int) -> int:
        """Return the slots that a number of rows needs; for the log loss the jury does not judge."""
        return 0 if self.loss == "log_loss" else slots_for(rounds)

    def rounds(self, sizes: Mapping[str, int]) -> int:
        """Return how many rows there are slots for."""
        return rounds_for(sizes["slots"] if self.slots(0) else None)

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """Return the plan for these sizes."""
        return _plan(self, sizes["features"], sizes["guests"], sizes["slots"])


@lru_cache(256)  # every size is planned once for all models of a kind
def _plan(layout: LinearLayout, features: int, guests: int, slots: int) -> Plan:
    D, kind = features + 1, KINDS[layout.loss]
    G, M = len(FORGET) if guests else 0, RATES.size
    priors = np.r_[GUESTS * BELIEVED_GUESTS, (1.0 - GUESTS) * BELIEVED] if G else BELIEVED
    if layout.last:
        priors = np.r_[(1.0 - LAST) * priors, LAST]
    par = 0.5 if layout.loss == "absolute_error" else float(layout.par)
    return Plan(
        LinearState,
        LinearSettings(kind, par, layout.intercept, layout.open, priors),
        {"D": D, "M": M, "N": priors.size, "R": int(layout.last)},
        {
            "features": spread_plan(D, layout.intercept),
            "label": spread_plan(1, layout.intercept),
            "members": members_plan(D),
            "guests": guests_plan(G, D),
            "jury": jury_plan(priors, slots),
            "shares": shares_plan(priors.size, kind == LOG),
        },
        holds=_holds,
        begin=begin_linear,
    )


def begin_linear(s: LinearState, c: LinearSettings) -> None:
    """Before the first row; all arrays are 0."""
    begin_guests(s.guests, c.kind == LOG)
    begin_jury(s.jury, c.jury)
    begin_shares(s.shares, c.priors)
    s.target[UNIT] = s.target[GAUGE] = 1.0 if c.kind in (LOG, HINGE) else 0.0
    s.clock[1] = 1 if c.open else s.features.mean.size


def _holds(s: LinearState, c: LinearSettings, past: Past) -> Iterator[tuple[str, bool]]:
    """Relations that the next row relies on."""
    rows, used, positions = int(s.clock[0]), int(s.clock[1]), s.features.mean.size
    yield "positions", (1 if c.open else positions) <= used <= positions
    yield "positions", not s.features.seen[max(used, 0) :].any()
    yield "jury", int(s.jury.heard[0]) <= rows
    level, unit, low, high, scale, gauge, _ = s.target
    yield "labels", bool(min(unit, scale, gauge) >= 0 and low <= high and max(-low, high, abs(level)) <= LARGEST_ENTRY)
    classes = c.kind in (LOG, HINGE)
    yield "labels", bool((unit == gauge == 1.0) if classes else (unit == s.label.spread[0]))


def moved(block: Block, plan: Plan) -> Block:
    """Return a model that knows the same, with more features, or without its guests: the others share their weight.

    A feature that is new is as before its first row.
    """
    other, mine = Block.fresh(plan), block.arrays
    theirs = other.arrays
    gone = mine["jury.weights"].size - theirs["jury.weights"].size
    for name, array in mine.items():
        kept = array[..., gone:] if name in BY_CANDIDATE else array
        if kept.size and theirs[name].size:
            theirs[name][tuple(map(slice, kept.shape))] = kept
    for name in BY_CANDIDATE[1:] if gone else ():
        weights = theirs[name]
        total = weights.sum(axis=-1, keepdims=True)
        weights[...] = np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1.0 / weights.shape[-1])
    return other
