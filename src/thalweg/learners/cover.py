"""Experts that live on the intervals of a cover, under a meta-learner for members that come and go.

An expert starts at a marker and lives for 2^k unit intervals. A new expert never sees the round that started it, and
is removed at the end of its interval. On the compact cover the living experts are the one-bits of m, the number of
markers so far, so the state has a slot for every level. A round, with h the gradient and val the loss, in the order
that the proofs need:

    r_k = <h, y - y_k> (or f(y) - f(y_k)); feed the meta-learner                                    (1)
    y_k <- expert's own round with h                                                                (2)
    loss since the last marker += val; above the threshold C_m: marker m + 1 starts next round      (3)
    p <- weights of those alive next round; y <- sum_k p_k y_k                                      (4)

Slot k holds the expert of level k (`thalweg._kernels.covers`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from thalweg._core.memory import Memory, Saved, whole_numbers
from thalweg._core.recorded import describe
from thalweg._core.rules import born, counter_field, counters, inside, shares
from thalweg._core.state import Past, Plan, field, part, scratch
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import (
    ask,
    check_callable,
    check_choice,
    check_count,
    check_flag,
    check_text,
    real_number,
    short_repr,
    wrong,
)
from thalweg._kernels import covers
from thalweg._kernels.clock import GRADIENTS, PROJECTIONS, ROUNDS, VALUES
from thalweg._kernels.covers import level, place_marker, slots_in_use
from thalweg._kernels.jit import implement
from thalweg._kernels.parts import (
    admit,
    after_projection,
    clear,
    feed,
    fits,
    member_decision,
    move,
    move_own,
    point_count,
    start,
    weigh,
)
from thalweg._kernels.vectors import square_norm
from thalweg.domains._base import Domain
from thalweg.errors import InputError
from thalweg.experts._base import Expert, planned
from thalweg.experts.pool import Pool
from thalweg.learners.alone import project_members, within_range
from thalweg.learners.base import Learner, Shown, bounded
from thalweg.learners.contract import Own, asks, charged, decision, has_capacity, learn, learn_own, propose
from thalweg.learners.limits import Limits
from thalweg.learners.machine import Machine
from thalweg.metas._base import Meta
from thalweg.metas._base import planned as planned_metas

Build = Callable[[int], Expert]

COVERS = {"compact": covers.COMPACT, "geometric": covers.GEOMETRIC}
LEVELS = 62  # counters have 64 bits
SLOTS = 4  # at first, enough for 15 markers; grown by 4 at a time, so that the state is rarely moved
FIRST_MARKS = 16  # initial capacity
MARKS_KEPT = 65_536  # at most, so that memory stays bounded on an endless stream
LOOK_AHEAD = 64  # thresholds are tabulated this many markers ahead, so that compiled runs need not stop for each


class CoverState(NamedTuple):
    """State of K slots; the latest M markers are kept."""

    experts: object = part()  # K experts
    meta: object = part()  # one group of K members
    born: Ints = field("K", called="births")  # the marker at which the expert of a slot started; 0: the slot is empty
    weights: Floats = field("K")  # p
    y: Floats = field("d", inside("domain"), called="decision")  # the combination
    paid: Floats = field("1", called="loss since the last marker")
    markers: Ints = field("1", counters)  # m, markers so far
    marks: Ints = field("M")  # marks[i % M]: the round at which marker i + 1 starts; none without thresholds
    clock: Ints = counter_field()  # `thalweg._kernels.clock`


class CoverSettings(NamedTuple):
    """Constants and scratch space."""

    thresholds: Floats  # C_m at index m; empty where every round is a marker
    origin: Floats  # (d,) starting point of a new expert,
    current: bool  # unless it starts at the current combination
    kind: int  # of the cover
    experts: object = part()
    meta: object = part()
    losses: Floats = scratch("K")
    scores: Floats = scratch("K 1")


# --------------------------------------------------------------------------------------------------------------- rounds


@implement(decision, CoverState)
def _decision(s: CoverState, c: CoverSettings) -> Floats:
    return s.y


@implement(has_capacity, CoverState)
def _has_capacity(s: CoverState, c: CoverSettings) -> bool:
    m, kept = s.markers[0], s.marks.shape[0]
    tabled = c.thresholds.shape[0] == 0 or (m < c.thresholds.shape[0] and (m < kept or kept >= MARKS_KEPT))
    return (m + 1) >> s.born.shape[0] == 0 and tabled


@implement(learn, CoverState)
def _learn(s: CoverState, c: CoverSettings, h: Floats, loss: float) -> bool:
    K = slots_in_use(s.markers[0])
    for k in range(K):
        c.losses[k] = 0.0  # relative to the combination's, which avoids cancellation where they are nearly equal
        if s.born[k] > 0:
            gain, point = 0.0, member_decision(s.experts, k, 0)
            for j in range(h.shape[0]):
                gain += h[j] * (s.y[j] - point[j])
            c.losses[k] = -gain
    if not fits(s.meta, c.meta, 0, K, s.born, c.losses):
        return False
    s.clock[ROUNDS] += 1
    s.clock[GRADIENTS] += 1
    s.clock[VALUES] += 1 if c.thresholds.shape[0] > 0 else 0
    feed(s.meta, c.meta, 0, K, s.born, 0.0, c.losses, square_norm(h))  # (1)
    for k in range(K):
        if s.born[k] > 0:
            s.clock[PROJECTIONS] += point_count(s.experts, c.experts, k)
            move(s.experts, c.experts, k, 1, h, c.scores)  # (2)
    return True


@implement(learn_own, CoverState)
def _learn_own(s: CoverState, c: CoverSettings, own: Own, g: Floats, loss: float) -> bool:
    K = slots_in_use(s.markers[0])
    for k in range(K):
        c.losses[k] = own.judged[k] - loss if s.born[k] > 0 else 0.0
    if not fits(s.meta, c.meta, 0, K, s.born, c.losses):
        return False
    s.clock[ROUNDS] += 1
    s.clock[VALUES] += 1
    feed(s.meta, c.meta, 0, K, s.born, 0.0, c.losses, 0.0)  # (1)
    for k in range(K):
        if s.born[k] > 0:
            n = point_count(s.experts, c.experts, k)
            s.clock[PROJECTIONS] += n
            s.clock[GRADIENTS] += n
            s.clock[VALUES] += n + 1 if n > 1 else 1  # a single member's value is that of its expert
            move_own(s.experts, c.experts, k, 1, own.H, own.values, g)  # (2)
    return True


@implement(asks, CoverState)
def _asks(s: CoverState, k: int) -> bool:
    return s.born[k] > 0


@implement(charged, CoverState)
def _charged(s: CoverState, own: Own, loss: float) -> float:
    return own.judged[level(s.markers[0])]  # markers depend on the loss of the newest expert


@implement(propose, CoverState)
def _propose(s: CoverState, c: CoverSettings, loss: float) -> None:
    for k in range(slots_in_use(s.markers[0])):
        if s.born[k] > 0:
            after_projection(s.experts, c.experts, k, 1)
    s.paid[0] += loss
    if c.thresholds.shape[0] == 0 or s.paid[0] > c.thresholds[s.markers[0]]:  # (3)
        if s.marks.shape[0] > 0:
            s.marks[s.markers[0] % s.marks.shape[0]] = s.clock[ROUNDS] + 1
        s.markers[0] += 1
        s.paid[0] = 0.0
        top = place_marker(c.kind, s.markers[0], s.born)
        for k in range(top + 1):
            if s.born[k] > 0:
                start(s.experts, c.experts, k, 0, s.y if c.current else c.origin)
                admit(s.meta, c.meta, 0, k, s.markers[0])
    K = slots_in_use(s.markers[0])
    weigh(s.meta, c.meta, 0, K, s.born, s.weights)
    # Relative to the heaviest expert: if all agree, y equals them to the bit. Coin betting tests whether r > 0.
    top = 0
    for k in range(K):
        top = k if s.weights[k] > s.weights[top] else top
    heaviest = member_decision(s.experts, top, 0)
    for j in range(s.y.shape[0]):
        s.y[j] = heaviest[j]
    for k in range(K):
        if s.born[k] > 0 and k != top:
            point = member_decision(s.experts, k, 0)
            for j in range(s.y.shape[0]):
                s.y[j] += s.weights[k] * (point[j] - heaviest[j])  # (4)


# -------------------------------------------------------------------------------------------------------------- machine


def _slots(markers: int) -> int:
    """Return the number of slots to allocate for a number of markers."""
    return min(max(-(-markers.bit_length() // SLOTS), 1) * SLOTS, LEVELS)


class Covered(Machine[CoverState, CoverSettings]):
    """Experts on a cover under a meta-learner; arguments as for `Cover`. K slots and M kept markers, both growing."""

    by_value = judges = True  # members with gradients of their own are judged by values

    def __init__(
        self,
        owner: str,
        domain: Domain,
        expert: Expert | Build,
        meta: Meta,
        *,
        cover: str,
        threshold: Callable[[int], float] | None,
        restart: str,
        own: bool,
        nonnegative: bool,
        slots: int,
    ) -> None:
        self.owner, self.domain, self.expert, self.meta, self.threshold = owner, domain, expert, meta, threshold
        self._weigher = meta.for_members(slots)
        self.cover, self.current = cover, restart == "current"
        self.one_gradient, self.nonnegative = not own, nonnegative
        needs_loss = threshold is not None and not own
        self.limits = Limits(needs_loss, uses_loss=needs_loss)
        self._levels: list[Expert] = []
        self._table = np.zeros(0 if threshold is None else 1)  # C_m at index m
        ask(owner, "threshold", self._look_up, 1)
        self.origin = self.level(0).origin

    def level(self, k: int) -> Expert:
        """Return the expert of level k, whose intervals have 2^k unit intervals."""
        k = check_count(f"{self.owner}.level", "k", k, least=0)
        if k > LEVELS:
            raise wrong(f"{self.owner}.level", "k", f"at most {LEVELS}", k)
        return self._first_levels(k + 1)[k]

    def _first_levels(self, count: int) -> list[Expert]:
        """Return the experts of the first levels."""
        while len(self._levels) < count:
            made = self.expert
            if not isinstance(made, Expert):
                check_callable(self.owner, "expert", made)
                made = ask(self.owner, "expert", made, 2 ** len(self._levels))
            if not isinstance(made, Expert) or made.domain is not self.domain:
                raise InputError(
                    f"{self.owner} needs experts of thalweg.experts on its own domain. Got {short_repr(made)}."
                )
            gradients, judge = ("shared", "linear") if self.one_gradient else ("own", "value")
            if isinstance(made, Pool) and made.judge != judge:
                raise InputError(
                    f"{self.owner} with gradients={gradients!r} needs a Pool with judge={judge!r}. "
                    f"Got one with judge={made.judge!r}."
                )
            self._levels.append(made)
        return self._levels[:count]

    @property
    def thresholds(self) -> Floats:
        """The first C_m, by which a threshold function is identified."""
        return self._table[1 : 1 + LOOK_AHEAD]

    def _look_up(self, m: int) -> None:
        """Tabulate C_m and further thresholds as far as the callable gives them; only C_m itself must be valid."""
        if self.threshold is None:
            return
        found = []
        for i in range(self._table.size, m + LOOK_AHEAD):
            try:
                found.append(self._read_threshold(i))
            except Exception:
                if i <= m:
                    raise
                break
        self._table = np.concatenate([self._table, found])

    def _read_threshold(self, m: int) -> float:
        assert self.threshold is not None
        C = self.threshold(m)
        number = real_number(C)
        if not 0 < number < np.inf:
            raise InputError(
                f"The 'threshold' parameter of {self.owner} must return a finite number > 0 for every m. "
                f"Got {short_repr(C)} for m = {m}."
            )
        return number

    # ------------------------------------------------------------------ the state

    def sizes(self) -> dict[str, int]:
        """Return the initial capacity."""
        return {"K": SLOTS, "M": 0 if self.threshold is None else FIRST_MARKS}

    def larger(self, s: CoverState, c: CoverSettings) -> dict[str, int]:
        """Return larger sizes. Each slot doubles the number of markers; the ring of marks grows before it wraps."""
        m, K, M = int(s.markers[0]), s.born.size, s.marks.size
        if self.threshold is not None and m >= self._table.size:
            self._look_up(m)
        full = (m + 1) >> K > 0
        if m + full >= M:  # one marker early if slots grow as well: one move for both
            M = min(2 * M, MARKS_KEPT)
        return {"K": _slots(m + 1) if full else K, "M": M}

    def sizes_of(self, saved: Saved) -> dict[str, int]:
        """Return the lengths of the two fields that grow, bounded by the markers so far."""
        K, M = saved["born"].size, saved["marks"].size
        (m,), (t, *_) = whole_numbers(saved, "markers", 1), whole_numbers(saved, "clock", 6)
        if not (m == t + 1 if self.threshold is None else 1 <= m <= t + 1):
            raise ValueError(f"it has {m} markers after {t} rounds")
        if not m.bit_length() <= K <= _slots(m + 1):
            raise ValueError(f"it has {K} slots and {m} markers")
        if self.threshold is None:
            return {"K": K, "M": 0}
        least, most = max(m, FIRST_MARKS), max(2 * (m + 1), FIRST_MARKS)
        if not min(least, MARKS_KEPT) <= M <= min(most, MARKS_KEPT) or M.bit_count() != 1:
            raise ValueError(f"it keeps {M} of {m} markers")
        return {"K": K, "M": M}

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """See `Machine.plan`."""
        K = sizes["K"]
        return Plan(
            CoverState,
            CoverSettings(self._table, self.origin, self.current, COVERS[self.cover]),
            sizes={**sizes, "d": self.domain.dim},
            parts={
                "experts": planned([[expert] for expert in self._first_levels(K)]),
                "meta": planned_metas([self._weigher], [K]),
            },
            facts={"domain": self.domain},
            holds=self.holds,
            pasts=self._pasts,
            begin=self._begin,
        )

    def _begin(self, s: CoverState, c: CoverSettings) -> None:
        clear(s.meta, c.meta, 0)
        s.markers[0] = s.born[0] = 1  # the first marker, at level 0
        s.marks[:1] = 1
        start(s.experts, c.experts, 0, 0, self.origin)
        admit(s.meta, c.meta, 0, 0, 1)
        s.weights[0] = 1.0
        s.y[:] = self.origin
        s.clock[PROJECTIONS] = 1  # for the starting point

    def _pasts(self, s: CoverState, c: CoverSettings, past: Past) -> Mapping[str, Past]:
        """Return the pasts of experts and members: marker i starts in round i or later."""

        def shaped(*shape: int) -> Past:
            births = s.born.reshape(shape)
            return Past(births > 0, births, past.rounds + 1 - births, past.rounds, past.square)

        return {"experts": shaped(-1, 1), "meta": shaped(1, -1)}

    def holds(self, s: CoverState, c: CoverSettings, past: Past) -> Iterator[tuple[str, bool]]:
        """See `Machine.holds`."""
        yield from super().holds(s, c, past)
        m, t, n = int(s.markers[0]), past.rounds, s.marks.size
        yield "births", s.born.tolist() == born(m, s.born.size, geometric=self.cover == "geometric")
        yield "weights", shares(s.weights, s.born > 0)
        known, paid = self._table[m] if m < self._table.size else np.inf, s.paid[0]
        possible = paid <= known and (paid >= 0 or not self.nonnegative)
        yield "loss since the last marker", bool(possible if self.threshold is not None else paid == 0)
        if n > 0:
            kept = s.marks[np.arange(max(0, m - n), m) % n]
            yield "marks", bool(kept[0] >= 1 and kept[-1] <= t + 1 and (np.diff(kept) > 0).all())
            yield "marks", m > n or (bool(kept[0] == 1) and not s.marks[m:].any())

    # ------------------------------------------------------------------ rounds

    def finish(self, memory: Memory, loss: float) -> None:
        """See `Machine.finish`."""
        project_members(self.domain, memory, loss)

    def refusal(self, s: CoverState, c: CoverSettings) -> str:
        """See `Machine.refusal`."""
        difference = float(np.abs(c.losses[s.born > 0]).max())
        return (
            f"the losses of the decision and of an expert differ by {difference:g}, more than the range "
            f"{getattr(self.meta, 'feedback_range', None)} they were said to have. Give a larger range or bound."
        )


# -------------------------------------------------------------------------------------------------------------- learner


def _active(learner: Learner, s: CoverState, c: CoverSettings) -> int:
    """Number of experts alive in the current round."""
    return int(np.count_nonzero(s.born))


def _marker_count(learner: Learner, s: CoverState, c: CoverSettings) -> int:
    """m, the number of unit intervals started so far."""
    return int(s.markers[0])


def _markers(learner: Learner, s: CoverState, c: CoverSettings) -> list[int]:
    """The rounds, counted from 1, at which unit intervals start; only the latest ones on a very long run."""
    m, n = int(s.markers[0]), s.marks.size
    if n == 0:
        return list(range(max(1, m + 1 - MARKS_KEPT), m + 1))
    kept = s.marks[np.arange(max(0, m - n), m) % n]
    found: list[int] = kept.tolist()
    return found


def _born(learner: Learner, s: CoverState, c: CoverSettings) -> Ints:
    """The markers at which the living experts started."""
    return s.born[s.born > 0]


def _weights(learner: Learner, s: CoverState, c: CoverSettings) -> Floats:
    """p_t, the weights of the living experts in the current decision."""
    return s.weights[s.born > 0]


def _points(learner: Learner, s: CoverState, c: CoverSettings) -> Floats:
    """The living experts' decisions, (active, *shape)."""
    found = [member_decision(s.experts, k, 0) for k in np.flatnonzero(s.born).tolist()]
    return np.array(found).reshape(-1, *learner.domain.shape)


class OnCover:
    """Attributes of learners whose experts live on a cover."""

    active, marker_count, markers = Shown(_active), Shown(_marker_count), Shown(_markers)


class Cover(OnCover, Learner):
    """Experts on the intervals of a cover, combined by a meta-learner.

    `CBCE`, `SACS`, `SAOL`, `AFLH` and `AOA` are this class with the parts of their papers; `EfficientAdaptive`,
    `EfficientCBCE`, `EfficientAOA` and `EfficientIntervalDynamic` are this class inside `OneProjection`.

    Parameters
    ----------
    domain : Domain
        The domain of the experts.
    expert : Expert or callable
        The expert for all intervals, on `domain`; or `expert(length)`, which builds the expert for intervals of that
        many unit intervals.
    meta : Meta
        The meta-learner that weighs the experts.
    cover : {"compact", "geometric"}
        The intervals on which experts live.
    threshold : callable, optional
        m -> C_m > 0, the loss that ends the m-th unit interval: a problem-dependent cover. If left out, every round
        is a unit interval.
    restart : {"center", "current"}
        Starting point of a new expert: the domain's centre, or the last combined decision.
    gradients : {"shared", "own"}
        One gradient for all experts and no values, or a gradient and a value for each expert (then call `step`). A
        `Pool` needs judge="linear" with the first and judge="value" with the second.
    nonnegative : bool
        Refuse negative losses.
    anytime : bool
        Whether the guarantee needs no horizon. If so, there is no warning beyond it.
    owner : str, optional
        The name in error messages: the method that this cover is a part of.
    horizon, gradient_bound, on_violation
        As for every `Learner`. The horizon tells a meta-learner how many experts to expect.

    Examples
    --------
    >>> import thalweg as tw
    >>> ball = tw.domains.Ball(2)
    >>> learner = tw.Cover(ball, tw.experts.AdaGradDescent(ball), meta=tw.metas.AdaptMLProd("observed"))
    >>> for _ in range(6):
    ...     learner.update([1.0, 0.0])
    >>> learner.born.tolist()      # round 7: binary 111
    [7, 6, 4]
    """

    machine: Covered
    born, weights, points = Shown(_born), Shown(_weights), Shown(_points)
    lasts = True  # its parts do not depend on the horizon

    def __init__(
        self,
        domain: Domain,
        expert: Expert | Build,
        *,
        meta: Meta,
        cover: str = "compact",
        threshold: Callable[[int], float] | None = None,
        restart: str = "center",
        gradients: str = "shared",
        nonnegative: bool = False,
        anytime: bool = False,
        owner: str | None = None,
        horizon: int | None = None,
        gradient_bound: float | None = None,
        on_violation: str = "raise",
    ) -> None:
        name = type(self).__name__ if owner is None else check_text("Cover", "owner", owner)
        domain = bounded(name, domain)
        self.anytime = check_flag(name, "anytime", anytime) or self.anytime
        if not isinstance(meta, Meta):
            raise wrong(name, "meta", "a meta-learner of thalweg.metas", meta)
        self.expert, self.meta = expert, meta
        self.cover = check_choice(name, "cover", cover, tuple(COVERS))
        self.restart = check_choice(name, "restart", restart, ("center", "current"))
        self.gradients = check_choice(name, "gradients", gradients, ("shared", "own"))
        self.threshold = None if threshold is None else check_callable(name, "threshold", threshold)
        positive = check_flag(name, "nonnegative", nonnegative)
        machine = Covered(
            name,
            domain,
            expert,
            meta,
            cover=cover,
            threshold=threshold,
            restart=restart,
            own=gradients == "own",
            nonnegative=positive,
            slots=(1024 if horizon is None else check_count(name, "horizon", horizon) + 1).bit_length(),
        )
        super().__init__(
            machine,
            horizon=horizon,
            gradient_bound=within_range(name, machine.level(0), gradient_bound),
            on_violation=on_violation,
            nonnegative=positive,
        )

    def level(self, k: int) -> Expert:
        """Return the expert of level k, whose intervals have 2^k unit intervals."""
        return self.machine.level(k)

    def _settings(self) -> dict[str, object]:
        found = super()._settings() | {"thresholds": self.machine.thresholds}
        if not isinstance(self.expert, Expert) and "expert" in self._given:
            found["experts"] = ", ".join(describe(self.level(k)) for k in range(4))
        return found
