"""The Tracker on a ball: scale-free descents on cut losses and members with curvature, under records on a cover.

`thalweg.algorithms.tracker` has the equations in one place, `thalweg._machines.tracker` the round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg._kernels.clock import ROUNDS
from thalweg._kernels.covers import slots_in_use
from thalweg._kernels.hulls import FULL
from thalweg._kernels.projections import BALL
from thalweg._machines.curvature import Curvature
from thalweg._machines.cut_descent import BELOW, COUNT, CURVED, LENGTHS, ROWS, SQUARES, Around, Members
from thalweg._machines.estimate import HELPERS, Estimate
from thalweg._machines.records import ANCHORED, BEHIND, CHANGES, GAINED, MARKERS, OTHERS, SLOTS, new_records
from thalweg._machines.tracker import ENOUGH, TrackerSettings, TrackerState
from thalweg._machines.tracker import LARGEST as LARGEST_LOSS
from thalweg._sound import born
from thalweg._types import Array
from thalweg._validate import check_choice, check_nonnegative, check_number, told, wrong
from thalweg.domains import Domain
from thalweg.errors import InputError
from thalweg.learners.base import read_start
from thalweg.machine import Machine

__all__ = ["Tracking"]

SMALL = 64  # entries of a decision up to which members with curvature are worth their d^2
MARKS = 1024  # the rounds of so many markers are remembered
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
    directions : (int, array), optional
        Those of all gradients, where they lie in a flat: `thalweg._kernels.hulls`.
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
        directions: tuple[int, Array] | None = None,
        owner: str | None = None,
    ) -> None:
        super().__init__(domain)
        self._owner = name = owner or type(self).__name__
        if domain.onto is not BALL:
            raise InputError(f"{name} moves its members on a ball around the domain. Got {told(domain)} as surrogate.")
        self.intervals = check_choice(name, "intervals", intervals, (True, False))
        choices: tuple[str | bool, ...] = "auto", True, False
        self.curvature = check_choice(name, "curvature", curvature, choices)
        self.uses_loss = loss_floor is not None
        self.loss_floor = None if loss_floor is None else check_number(name, "loss_floor", loss_floor)
        if self.loss_floor is not None:
            self._floor = self.loss_floor
        self.nonnegative = self._floor >= 0.0
        if abs(self.loss_floor or 0.0) > LARGEST_LOSS:
            raise wrong(name, "loss_floor", f"at most {LARGEST_LOSS:g} in size, or None", loss_floor)
        self._square_bound = (LARGEST / max(1.0, domain.diameter)) ** 2
        self._home = domain.center.ravel().copy()
        if start is not None:
            self._home = read_start(name, domain, start).ravel()
        d = domain.dim
        curved = d <= SMALL if curvature == "auto" else bool(curvature)
        records, helpers = new_records(ROWS, MARKS if self.intervals else 0), HELPERS if curved else 0
        self._adopt(
            TrackerState(
                Members(np.zeros((ROWS, d)), np.zeros(4), np.zeros(3, dtype=np.int64), np.zeros(ROWS)),
                Curvature(np.zeros((2 if curved else 0, d, d)), np.zeros(4)),
                Estimate(np.zeros((helpers, d)), np.zeros(helpers), np.zeros(helpers), np.zeros(2)),
                records,
                np.zeros(ROWS),
                np.zeros(d),
                np.zeros(1, dtype=np.int64),
                self._clock,
            ),
            TrackerSettings(
                Around(
                    domain.center.ravel().copy(), float(domain.radius), self._home, *(directions or (FULL, np.zeros(0)))
                ),
                curved,
                self.intervals,
                self._floor,
                np.zeros(ROWS),
                np.zeros((records.V.size, ROWS)),
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

    def _who(self) -> str:
        return f"{self._owner}, round {self.rounds + 1}"

    def _read_state(self, saved: Any) -> dict[str, NDArray[Any]]:
        """Every number that the next round relies on is looked at: damaged ones could lead out of the arrays."""
        self._check_kind(saved)
        read = self._read_arrays(saved, self._arrays)
        count, k0, K = (int(n) for n in read["members.sizes"])
        if count == 0:
            first = {key: np.zeros_like(array) for key, array in read.items()} | {"y": self._home}
            if any(not np.array_equal(read[key], first[key]) for key in read if key != "clock"):
                raise self._unfit("it has no members, but not what a first round has either")
            return self._sound(read)
        if not (-20 <= k0 <= -4 and K >= 1 and count == CURVED + K - k0 + 5 <= ROWS):
            raise self._unfit(f"it has {count} members from step {k0} to {K}")
        m, changes, births = *(int(read["records.counts"][i]) for i in (MARKERS, CHANGES)), read["records.born"]
        most = min(2**SLOTS - 2, int(read["clock"][ROUNDS]) // 16) if self.intervals else 0
        possible = 0 <= m <= most and 0 <= changes <= read["clock"][ROUNDS] * self.intervals
        if not possible or births.tolist() != [changes, *born(m, births.size - 1)]:
            raise self._unfit(f"its records do not fit its {m} markers")
        if read["curved"][0] not in (0, self._parts[1].curvature):
            raise self._unfit("it has members with curvature that this learner has not")
        return self._sound(read)

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        yield from super()._look(read)
        if read["members.sizes"][COUNT] == 0:
            return
        curved = bool(read["curved"][0])
        rows = slice(0 if curved else CURVED, read["members.sizes"][COUNT])
        R, rounds = self.domain.radius, read["clock"][ROUNDS] * (1 + 1e-6)
        S, H, shortest, following = read["members.sums"]
        _, k0, K = read["members.sizes"]
        yield "sums", shortest == 2.0 ** (k0 - BELOW) and following == 2.0 ** (K + 1)
        yield "sums", 0 < S <= rounds * self._square_bound
        yield "sums", np.sqrt(S) * (1 - 1e-6) <= H <= np.sqrt(rounds * S) * (1 + 1e-6)
        points = np.vstack([read["members.points"][rows], read["y"]]) - self.domain.center.ravel()
        slack = 1e-9 * self.domain._scale(self.domain.center)
        yield "points", bool((np.linalg.norm(points, axis=1) <= R + slack).all())
        yield "log-priors", bool((np.abs(read["members.logs"][rows]) < 100).all())
        records = {key.removeprefix("records."): array for key, array in read.items() if key.startswith("records.")}
        alive = np.append(True, records["born"] > 0)
        beliefs = np.vstack([records["p"][alive, rows], read["p"][rows]])
        yield "beliefs", bool((beliefs >= 0).all() and (np.abs(beliefs.sum(axis=1) - 1) < 1e-9).all())
        weights = records["weights"][alive]
        yield "weights", bool((weights >= 0).all() and abs(weights.sum() - 1) < 1e-9)
        priors = np.log(3.0 / np.where(np.arange(records["born"].size) == 0, 1, records["born"])[alive[1:]])
        yield "priors", bool((np.abs(records["prior"][alive] - np.append(0.0, priors)) < 1e-9).all())
        A, V, B = records["A"][alive, rows], records["V"][alive], records["B"][alive]
        most = 4 * R * np.sqrt(S)
        yield "spreads", bool((np.minimum(V, B) >= 0).all() and V.max() <= most**2 and B.max() <= most)
        root = np.maximum(np.sqrt(B * B + V), 1e-150)
        best = A.max(axis=1)
        yield "gains", bool((np.abs(A) <= 4 * R * H).all() and (best <= 40 * root + rounds * 1e-149).all())
        yield "gains", bool((best >= -1e290 * root).all())
        since, largest, first, seen, _ = records["totals"]
        yield "totals", 0 <= since <= 16 * largest and 0 <= first <= seen <= most and (first > 1e-150 or seen == 0)
        gained, squares = records["R"][alive], records["W"][alive]
        yield "gains of records", bool((np.abs(gained) <= rounds * seen).all())
        yield "gains of records", bool(((squares >= 0) & (squares <= rounds * seen * seen)).all())
        _, least, anchored, _ = records["counts"]
        wanted = 0.5 * np.log2(seen / first) if first > 0 else 0.0
        yield "counts", 0 <= anchored <= 60 * rounds and -0.001 <= least - wanted < 1.001
        behind = least - records["anchors"][alive]
        yield "anchors", bool(((behind >= 0) & (behind <= BEHIND) & (behind <= least)).all())
        yield "marks", bool(((records["marks"] >= 0) & (records["marks"] <= rounds)).all())
        yield "flat", bool(np.isin(records["flat"], (0, 1, 2)).all())
        helped, (longest, age) = read["estimate.points"] - self.domain.center.ravel(), read["estimate.seen"]
        yield "estimate", 0 <= age <= rounds and age % 1 == 0 and (age >= ENOUGH or not curved or age == 0)
        if age > 0:
            yield "estimate", bool((np.linalg.norm(helped, axis=1) <= R + slack).all())
            yield "estimate", bool((read["estimate.errors"] > 0).all()) and 0 < longest <= np.sqrt(S) * (1 + 1e-6)
        if curved:
            noise, alarm, watched, largest_error = read["curvature.watch"]
            yield "watch", 0 <= noise <= 1e151 and 0 <= alarm <= 12
            yield "watch", 0 <= watched <= rounds and 0 <= largest_error <= 1e151
            yield "P", bool((np.abs(read["curvature.P"]) <= 1e151).all())

    # ------------------------------------------------------------------ what it tells

    @property
    def multipliers(self) -> Array:
        """2^k of the descents that are there."""
        _, k0, K = self._parts[0].members.sizes
        return 2.0 ** np.arange(k0 - 4, K + 1) if self._parts[0].members.sizes[COUNT] else np.zeros(0)

    @property
    def weights(self) -> Array:
        """p_i: of C and D, or without values C and M (0 where there are none), then of the descents."""
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
    def changes(self) -> int:
        """How many changes were evident."""
        return int(self._parts[0].records.counts[CHANGES])

    @property
    def records(self) -> dict[int, float]:
        """The weight of every record: 0 since the start, 1 since the last evident change, k + 2 for slot k."""
        s = self._parts[0].records
        rows = OTHERS + slots_in_use(self.marker_count)
        alive = [0] + [j for j in range(1, rows) if s.born[j - 1] > 0]
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
