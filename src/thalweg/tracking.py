"""The Tracker on a ball: scale-free descents on cut losses and members with curvature, under records on a cover.

`thalweg.algorithms.tracker` has the equations in one place, `thalweg._machines.tracker` the round.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg._kernels.covers import slots_in_use
from thalweg._kernels.projections import BALL
from thalweg._machines.curvature import Curvature
from thalweg._machines.cut_descent import COUNT, CURVED, LENGTHS, ROWS, SQUARES, Around, Members
from thalweg._machines.records import ANCHORED, GAINED, MARKERS, Records
from thalweg._machines.tracker import TrackerSettings, TrackerState
from thalweg._types import Array
from thalweg._validate import check_choice, check_nonnegative, check_number
from thalweg.domains import Domain
from thalweg.errors import InputError
from thalweg.learner import read_start
from thalweg.machine import Machine

__all__ = ["Tracking"]

SMALL = 64  # entries of a decision up to which members with curvature are worth their d^2
MARKS = 1024  # the rounds of so many markers are remembered
SLOTS = 58  # markers are 16 rounds apart or more, so these hold for 2^62 rounds
LARGEST = 1e145  # of a gradient times the diameter: its square can then be added up


class Tracking(Machine):
    """What `Tracker` runs on the ball around its domain; see there.

    Parameters
    ----------
    domain : Ball
        Y.
    intervals, curvature, loss_floor
        As of `Tracker`.
    start : array, optional
        Where members begin; the centre when left out.
    owner : str, optional
        Who speaks in error messages.
    """

    anytime = True
    unknown = math.inf
    _floor = -math.inf

    def __init__(
        self,
        domain: Domain,
        *,
        intervals: bool = True,
        curvature: bool | str = "auto",
        loss_floor: float | None = 0.0,
        start: ArrayLike | None = None,
        owner: str | None = None,
    ) -> None:
        super().__init__(domain)
        self._owner = name = owner or type(self).__name__
        if domain.onto is not BALL:
            raise InputError(f"{name} moves its members on a ball around the domain. Got {domain!r} as surrogate.")
        self.intervals = check_choice(name, "intervals", intervals, (True, False))
        choices: tuple[str | bool, ...] = "auto", True, False
        self.curvature = check_choice(name, "curvature", curvature, choices)
        self.uses_loss = loss_floor is not None
        self.loss_floor = None if loss_floor is None else check_number(name, "loss_floor", loss_floor)
        if self.loss_floor is not None:
            self._floor = self.loss_floor
        self._square_bound = (LARGEST / max(1.0, domain.diameter)) ** 2
        self._home = domain.center.ravel().copy()
        if start is not None:
            self._home = read_start(name, domain, start).ravel()
        d = domain.dim
        curved = d <= SMALL if curvature == "auto" else bool(curvature)
        J = 1 + (SLOTS if self.intervals else 0)
        self._adopt(
            TrackerState(
                Members(np.zeros((ROWS, d)), np.zeros(4), np.zeros(3, dtype=np.int64), np.zeros(ROWS)),
                Curvature(np.zeros((2 if curved else 0, d, d)), np.zeros(4)),
                Records(
                    A=np.zeros((J, ROWS)),
                    V=np.zeros(J),
                    B=np.zeros(J),
                    R=np.zeros(J),
                    W=np.zeros(J),
                    p=np.zeros((J, ROWS)),
                    prior=np.zeros(J),
                    anchors=np.zeros(J, dtype=np.int64),
                    flat=np.zeros(J, dtype=np.int64),
                    born=np.zeros(J - 1, dtype=np.int64),
                    weights=np.zeros(J),
                    totals=np.zeros(5),
                    counts=np.zeros(3, dtype=np.int64),
                    marks=np.zeros(MARKS if self.intervals else 0, dtype=np.int64),
                ),
                np.zeros(ROWS),
                np.zeros(d),
                np.zeros(1, dtype=np.int64),
                self._clock,
            ),
            TrackerSettings(
                Around(domain.center.ravel().copy(), float(domain.radius), self._home),
                curved,
                self.intervals,
                self._floor,
                np.zeros(ROWS),
                np.zeros((J, ROWS)),
                np.zeros(d),
            ),
        )
        self._restart()

    def _restart(self) -> None:
        for key, array in self._arrays.items():
            if key != "clock":
                array[...] = 0
        self._parts[0].y[:] = self._home

    def _peek(self) -> Array:
        y: Array = self._parts[0].y
        return y

    def _why_floor(self) -> str:
        return (
            f"{self._owner} was told that no loss is below loss_floor = {self._floor:g}. Give the lower bound that "
            "holds for your losses, or loss_floor=None to do without their values."
        )

    def _beyond_range(self) -> InputError:
        return InputError(f"{self._who()}: loss is too large for floating point. Pass losses below 1e150.")

    def _settings(self) -> dict[str, Any]:
        own = {"intervals": self.intervals, "curvature": str(self.curvature), "home": self._home}
        return super()._settings() | own | {"loss_floor": self._floor}

    def _read_state(self, saved: Any) -> dict[str, NDArray[Any]]:
        read = super()._read_state(saved)
        count, k0, K = (int(n) for n in read["members.sizes"])
        if count and not (-20 <= k0 <= -4 and K >= 1 and count == CURVED + K - k0 + 5 <= ROWS):
            raise self._unfit(f"it has {count} members from step {k0} to {K}")
        m, born = int(read["records.counts"][MARKERS]), read["records.born"]
        alive = [k for k in range(SLOTS) if m >> k & 1] if self.intervals else []
        if m < 0 or m >> SLOTS or (m and not self.intervals) or np.flatnonzero(born).tolist() != alive:
            raise self._unfit(f"its records do not fit its {m} markers")
        if not set(read["curved"].tolist()) <= {0, 1} or (read["curved"][0] and not self._parts[1].curvature):
            raise self._unfit("it has members with curvature that this learner has not")
        if not set(read["records.flat"].tolist()) <= {0, 1} or (np.abs(read["records.anchors"]) > 2000).any():
            raise self._unfit("its records are damaged")
        return read

    # ------------------------------------------------------------------ what it tells

    @property
    def multipliers(self) -> Array:
        """2^k of the descents that are there."""
        _, k0, K = self._parts[0].members.sizes
        return 2.0 ** np.arange(k0 - 4, K + 1) if self._parts[0].members.sizes[COUNT] else np.zeros(0)

    @property
    def weights(self) -> Array:
        """p_i: of the two members with curvature (0 where there are none), then of the descents."""
        p: Array = self._parts[0].p[: self._parts[0].members.sizes[COUNT]].copy()
        return p

    @property
    def points(self) -> Array:
        """y_i, in the order of `weights`."""
        members = self._parts[0].members
        points: Array = members.points[: members.sizes[COUNT]].reshape(-1, *self.domain.shape).copy()
        return points

    @property
    def marker_count(self) -> int:
        """Markers so far."""
        return int(self._parts[0].records.counts[MARKERS])

    @property
    def markers(self) -> list[int]:
        """The rounds, counted from 1, that set the latest markers: at most 1024 of them."""
        s = self._parts[0].records
        kept = range(max(0, self.marker_count - s.marks.size), self.marker_count)
        return [int(s.marks[i % s.marks.size]) for i in kept]

    @property
    def anchored(self) -> int:
        """How often a record was anchored anew."""
        return int(self._parts[0].records.counts[ANCHORED])

    @property
    def records(self) -> dict[int, float]:
        """The weight of every record: 0 for the one since the start, k + 1 for that of slot k."""
        s = self._parts[0].records
        alive = [0] + [k + 1 for k in range(slots_in_use(self.marker_count)) if s.born[k] > 0]
        return {j: float(s.weights[j]) for j in alive}

    def regret_bound(self, path_length: float = 0.0) -> float:
        """The most regret so far against any comparators in the domain whose path has at most this length: (T1').

        From what was seen: nothing is assumed but convexity, and values >= the floor where they were given.
        """
        P = check_nonnegative(self._owner, "path_length", path_length)
        members, records, R = self._parts[0].members, self._parts[0].records, self.domain.radius
        gained = float(records.totals[GAINED])
        simple = 2 * R * float(members.sums[LENGTHS]) + gained
        if not members.sizes[COUNT]:
            return simple
        c = self.multipliers
        pool = (2 + 2 * P / R) / c + c + np.where(c <= 2, 0.0, c + 2)
        A = records.A[0, CURVED : members.sizes[COUNT]]
        return min(simple, float((R * math.sqrt(members.sums[SQUARES]) * pool + A).min()) + gained)
