"""The Tracker on a ball: scale-free descents on cut losses and members with curvature, under records on a cover.

`thalweg.algorithms.tracker` has the equations in one place, `thalweg.learners.tracker.kernels` the round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg._core.memory import Saved, whole_numbers
from thalweg._core.rules import CLOSE, SLACK, born, shares
from thalweg._core.state import Past, Plan
from thalweg._core.types import Floats
from thalweg._core.validate import check_choice, check_nonnegative, check_number, short_repr, wrong
from thalweg._kernels.clock import ROUNDS
from thalweg._kernels.hulls import FULL
from thalweg._kernels.projections import BALL
from thalweg.domains._base import Domain
from thalweg.errors import InputError
from thalweg.learners.base import read_start
from thalweg.learners.limits import Limits
from thalweg.learners.machine import Machine
from thalweg.learners.tracker.kernels import (
    ENOUGH,
    LARGEST_LOSS,
    SPARE,
    TrackerSettings,
    TrackerState,
    curved_in_use,
    first_row,
    helpers_in_use,
)
from thalweg.parts.curvature import MEMBERS, curvature_plan
from thalweg.parts.cut_descent import (
    BELOW,
    COUNT,
    CURVED,
    FIRST_ROWS,
    LENGTHS,
    LONGEST_FIRST,
    MOST_ROWS,
    SHORTEST_FIRST,
    SQUARES,
    Around,
    members_plan,
    rows_needed,
)
from thalweg.parts.estimate import HELPERS, estimate_plan
from thalweg.parts.records import BEHIND, GAINED, MARKERS, MOST_SLOTS, OTHERS, records_plan

SMALL = 64  # entries of a decision up to which members with curvature are worth their d^2
SLOTS = 2  # of the cover at first, capacity for 3 markers, and more at a time
MARKS_KEPT = 64  # the number of markers whose rounds are remembered
LARGEST_PRODUCT = 1e145  # of a gradient times the diameter: its square can then be added up
TOO_LARGE = "loss is too large for floating point. Pass losses below 1e150."


class Tracking(Machine[TrackerState, TrackerSettings]):
    """The machine of `Tracker` on the ball around its domain.

    Member rows (N) and cover slots (S) grow. The first round decides how many rows, helpers (H) and members with
    curvature (Q) there are; capacity for the others is given back before the second.

    Parameters
    ----------
    domain : Ball
        Y.
    intervals, curvature, loss_floor
        As for `Tracker`.
    start : array, optional
        Where members begin; the centre when left out.
    directions : (int, array), optional
        Those of all gradients, where they lie in a flat: `thalweg._kernels.hulls`.
    embedded : bool
        Whether it is a part of another state, which grows it: capacity may then be larger than needed, and the
        rounds of markers are not kept.
    owner : str, optional
        The name in error messages.
    """

    anytime = True

    def __init__(
        self,
        domain: Domain,
        *,
        intervals: bool = True,
        curvature: bool | str = "auto",
        loss_floor: float | None = 0.0,
        start: ArrayLike | None = None,
        directions: tuple[int, Floats] | None = None,
        embedded: bool = False,
        owner: str = "Tracking",
    ) -> None:
        self.owner, self.domain, self.embedded = owner, domain, embedded
        if domain.onto is not BALL:
            raise InputError(
                f"{owner} moves its members on a ball around the domain. Got {short_repr(domain)} as surrogate."
            )
        self.intervals = check_choice(owner, "intervals", intervals, (True, False))
        choices: tuple[str | bool, ...] = "auto", True, False
        self.curvature = check_choice(owner, "curvature", curvature, choices)
        self.curved = domain.dim <= SMALL if curvature == "auto" else bool(curvature)
        self.loss_floor = None if loss_floor is None else check_number(owner, "loss_floor", loss_floor)
        if abs(self.loss_floor or 0.0) > LARGEST_LOSS:
            raise wrong(owner, "loss_floor", f"at most {LARGEST_LOSS:g} in size, or None", loss_floor)
        floor = -math.inf if self.loss_floor is None else self.loss_floor
        self.nonnegative = floor >= 0.0
        self.limits = Limits(
            uses_loss=loss_floor is not None,
            floor=floor,
            why_floor=(
                f"{owner} assumes that no loss is below loss_floor = {floor:g}. Give the lower bound that holds for "
                "your losses, or loss_floor=None to do without their values."
            ),
            largest_loss=math.inf if loss_floor is None else LARGEST_LOSS,
            too_large=TOO_LARGE,
            square=(LARGEST_PRODUCT / max(1.0, domain.diameter)) ** 2,
            unknown=math.inf,
        )
        self.directions = directions or (FULL, np.zeros(0))
        self.home = (domain.center if start is None else read_start(owner, domain, start)).ravel().copy()

    # ------------------------------------------------------------------ the state

    def sizes(self) -> dict[str, int]:
        """Return capacity for whatever the first round may begin with."""
        helpers, curved = (HELPERS, MEMBERS) if self.curved else (0, 0)
        return {"N": FIRST_ROWS, "S": SLOTS if self.intervals else 0, "H": helpers, "Q": curved}

    def larger(self, s: TrackerState, c: TrackerSettings) -> dict[str, int]:
        """Return the sizes that the next rounds need; after the first round they can be smaller.

        Rows and slots get two more at a time, so that the state moves half as often.
        """
        count, m = int(s.members.sizes[COUNT]), int(s.records.counts[MARKERS])
        if count == 0:
            return self.sizes()
        rows, S = _sizes(s)[:2]
        if rows > count + SPARE:
            rows = count + 1
        elif rows < rows_needed(s.members):
            rows = min(count + SPARE, MOST_ROWS)
        return {
            "N": rows,
            "S": self._slots(m + 1) if (m + 1) >> S else S,
            "H": int(helpers_in_use(s)),
            "Q": int(curved_in_use(s)),
        }

    def _slots(self, markers: int) -> int:
        """Return the slots of a state with capacity for a number of markers."""
        return min(-(-markers.bit_length() // SLOTS) * SLOTS, MOST_SLOTS) if self.intervals else 0

    def sizes_of(self, saved: Saved) -> dict[str, int]:
        """Return the lengths of the fields that grow, bounded by the rounds played."""
        found = (
            saved["p"].size,
            saved["records.V"].size - OTHERS,
            saved["estimate.errors"].size,
            len(saved["curvature.P"]),
        )
        sizes, counts, clock = (
            whole_numbers(saved, key, n) for key, n in (("members.sizes", 3), ("records.counts", 4), ("clock", 6))
        )
        why = self._misfit(found, sizes, counts, clock[ROUNDS])
        if why:
            raise ValueError(why)
        return dict(zip("NSHQ", found, strict=True))

    def _misfit(self, found: tuple[int, int, int, int], sizes: list[int], counts: list[int], t: int) -> str:
        """Return the reason why no run of t rounds can have arrays of these sizes, or nothing."""
        (N, S, H, Q), (count, k0, K), m = found, sizes, counts[MARKERS]
        first = self.sizes()
        if count == 0:
            fits = found == tuple(first.values())
            if self.embedded:
                fits = (
                    FIRST_ROWS <= N <= MOST_ROWS
                    and first["S"] <= S <= MOST_SLOTS
                    and (first["H"], first["Q"]) == (H, Q)
                )
            return "" if fits else "it has no members, but not the sizes of a first round"
        steps = SHORTEST_FIRST <= k0 <= LONGEST_FIRST and K >= 1 and count == CURVED + K - k0 + BELOW + 1
        if not (steps and count <= MOST_ROWS and t > 0):
            return f"it has {count} members from step {k0} to {K} after {t} rounds"
        rows = MOST_ROWS if self.embedded else min(count + SPARE, MOST_ROWS)
        if not (count <= N <= rows or N == FIRST_ROWS >= count):
            return f"it has {N} rows for {count} members"
        most = min(2**MOST_SLOTS - 2, t // 16) if self.intervals else 0
        if not 0 <= m <= most:
            return f"its records do not fit its {m} markers"
        if not m.bit_length() <= S <= (MOST_SLOTS if self.embedded else self._slots(m + 1)):
            return f"it has {S} slots for {m} markers"
        if H not in (0, first["H"]) or not 0 <= Q <= first["Q"]:
            return f"it has {H} helpers and {Q} members with curvature"
        return ""

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """See `Machine.plan`. As many markers are kept as there can be, up to `MARKS_KEPT`."""
        N, S, H, Q, d = *(sizes[name] for name in "NSHQ"), self.domain.dim
        marks = min(2**S, MARKS_KEPT) if self.intervals and not self.embedded else 0
        around = Around(self.domain.center.ravel().copy(), float(self.domain.radius), self.home, *self.directions)
        return Plan(
            TrackerState,
            TrackerSettings(around, self.curved, self.intervals, self.limits.floor, self.embedded),
            sizes={"N": N, "J": OTHERS + S, "H": H, "d": d},
            parts={
                "members": members_plan(N, d),
                "curvature": curvature_plan(Q, d),
                "estimate": estimate_plan(H, d),
                "records": records_plan(N, S, marks),
            },
            holds=self.holds,
            begin=self._begin,
        )

    def _begin(self, s: TrackerState, c: TrackerSettings) -> None:
        s.y[:] = self.home

    def holds(self, s: TrackerState, c: TrackerSettings, past: Past) -> Iterator[tuple[str, bool]]:
        """See `Machine.holds`: whatever the next round relies on, as damaged numbers could lead out of the arrays."""
        yield from super().holds(s, c, past)
        t, members, records = int(s.clock[ROUNDS]), s.members, s.records
        why = self._misfit(_sizes(s), members.sizes.tolist(), records.counts.tolist(), t)
        yield why or "members", not why
        if why:
            return
        if members.sizes[COUNT] == 0:
            rest = s._replace(y=s.y - self.home, clock=s.clock[:0])
            yield "members", not any(array.any() for array in _leaves(rest))
            return
        yield from self._members_hold(s)
        yield from self._records_hold(s)

    def _members_hold(self, s: TrackerState) -> Iterator[tuple[str, bool]]:
        curved, center, (count, k0, K) = bool(s.curved[0]), self.domain.center.ravel(), s.members.sizes.tolist()
        rows = slice(int(first_row(s)), count)
        squares, lengths, shortest, following = s.members.sums.tolist()
        rounds, root = int(s.clock[ROUNDS]) * SLACK, math.sqrt(max(squares, 0.0))
        yield "members with curvature", s.curvature.P.shape[0] >= int(curved_in_use(s))
        yield "sums", shortest == 2.0 ** (k0 - BELOW) and following == 2.0 ** (K + 1)
        yield "sums", 0 < squares <= rounds * self.limits.square
        yield "sums", root * (2 - SLACK) <= lengths <= math.sqrt(rounds) * root * SLACK
        yield "sums", count == MOST_ROWS or 2 * lengths <= following * root * SLACK
        within = self.domain.radius + CLOSE * self.domain._scale(self.domain.center)
        points = np.vstack([s.members.points[rows], s.y]) - center
        yield "points", bool((np.linalg.norm(points, axis=1) <= within).all())
        longest, age = s.estimate.seen.tolist()
        yield "estimate", 0 <= age <= rounds and age % 1 == 0 and (age >= ENOUGH or not curved or age == 0)
        yield "estimate", s.estimate.errors.size >= int(helpers_in_use(s))
        if age > 0:
            helped = s.estimate.points - center
            yield "estimate", bool((np.linalg.norm(helped, axis=1) <= within).all())
            yield "estimate", bool((s.estimate.errors > 0).all()) and 0 < longest <= root * SLACK
        if curved:
            _, alarm, watched, _ = s.curvature.watch.tolist()
            yield "watch", alarm <= 12 and watched <= rounds

    def _records_hold(self, s: TrackerState) -> Iterator[tuple[str, bool]]:
        r, t = s.records, int(s.clock[ROUNDS])
        rows = slice(int(first_row(s)), int(s.members.sizes[COUNT]))
        R, rounds, (squares, lengths) = self.domain.radius, t * SLACK, s.members.sums[:2].tolist()
        m, least, anchored, changes = r.counts.tolist()
        fits = 0 <= changes <= t * self.intervals and r.born.tolist() == [changes, *born(m, r.born.size - 1)]
        yield f"records for {m} markers", fits
        alive = np.append(True, r.born > 0)
        beliefs = np.vstack([r.p[alive, rows], s.p[rows]])
        yield "beliefs", shares(beliefs, np.ones(beliefs.shape, dtype=np.bool_))
        yield "weights", shares(r.weights[None], alive[None])
        priors = np.log(3.0 / np.where(np.arange(r.born.size) == 0, 1, r.born)[alive[1:]])
        yield "priors", bool((np.abs(r.prior[alive] - np.append(0.0, priors)) < CLOSE).all())
        A, V, B = r.A[alive, rows], r.V[alive], r.B[alive]
        most = 4 * R * math.sqrt(max(squares, 0.0))
        yield "spreads", bool((np.minimum(V, B) >= 0).all() and V.max() <= most * most and B.max() <= most)
        root = np.maximum(np.sqrt(B * B + V), 1e-150)
        best = A.max(axis=1)
        yield "gains", bool((np.abs(A) <= 4 * R * lengths).all() and (best <= 40 * root + rounds * 1e-149).all())
        yield "gains", bool((best >= -1e290 * root).all())
        since, largest, first, seen, _ = r.totals.tolist()
        yield "totals", 0 <= since <= 16 * largest and 0 <= first <= seen <= most and (first > 1e-150 or seen == 0)
        gained, spread = r.R[alive], r.W[alive]
        yield "gains of records", bool((np.abs(gained) <= rounds * seen).all())
        yield "gains of records", bool(((spread >= 0) & (spread <= rounds * seen * seen)).all())
        wanted = 0.5 * np.log2(seen / first) if first > 0 else 0.0
        yield "counts", bool(anchored <= 60 * rounds and -0.001 <= least - wanted < 1.001)
        behind = least - r.anchors[alive]
        yield "anchors", bool(((behind >= 0) & (behind <= BEHIND) & (behind <= least)).all())
        yield "marks", bool(((r.marks >= 0) & (r.marks <= rounds)).all())

    # ------------------------------------------------------------------ rounds

    def refusal(self, s: TrackerState, c: TrackerSettings) -> str:
        """See `Machine.refusal`."""
        return TOO_LARGE

    def regret_bound(self, s: TrackerState, path_length: float = 0.0) -> float:
        """Return the most regret so far against comparators in the domain whose path has at most this length: (T1').

        Computed from the run: nothing is assumed but convexity, and values >= the floor where they were given.
        """
        P = check_nonnegative(self.owner, "path_length", path_length)
        members, records, R = s.members, s.records, self.domain.radius
        gained = float(records.totals[GAINED])
        simple = 2 * R * float(members.sums[LENGTHS]) + gained
        if not members.sizes[COUNT]:
            return simple
        c = multipliers(s)
        pool = (2 + 2 * P / R) / c + c + np.where(c <= 2, 0.0, c + 2)
        A = records.A[0, CURVED : members.sizes[COUNT]]
        return min(simple, float((R * math.sqrt(members.sums[SQUARES]) * pool + A).min()) + gained)


def multipliers(s: TrackerState) -> Floats:
    """Return 2^k of the descents that are there."""
    count, k0, K = s.members.sizes.tolist()
    return 2.0 ** np.arange(k0 - BELOW, K + 1) if count else np.zeros(0)


def _sizes(s: TrackerState) -> tuple[int, int, int, int]:
    """Return N, S, H and Q of a state."""
    return s.p.size, s.records.V.size - OTHERS, s.estimate.errors.size, s.curvature.P.shape[0]


def _leaves(part: Any) -> Iterator[NDArray[Any]]:
    """Yield all arrays of a state."""
    for one in part:
        if isinstance(one, tuple):
            yield from _leaves(one)
        else:
            yield one
