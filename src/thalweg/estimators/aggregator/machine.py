"""The state of an `Aggregator`: copies that take turns, and the rounds that wait for their answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from thalweg._core.memory import Saved
from thalweg._core.rules import counters, magnitude, shares
from thalweg._core.state import Block, Nothing, Past, Plan, field, part, several
from thalweg._core.types import Floats, Ints
from thalweg._kernels.clock import ROUNDS
from thalweg._kernels.handle import Handle, bind
from thalweg.estimators.aggregator.kernels import ANSWERED, PREDICTED, CopySettings, CopyState, Turn
from thalweg.learners.weighing import Weighing, pending
from thalweg.parts.covariance import MemoriesSettings, MemoriesState, begin_memories, memories_plan
from thalweg.parts.forecast_losses import CODES, PERCENTAGE
from thalweg.parts.forecast_rules import COVARIANCE, Rule, rules_plan
from thalweg.parts.jury import begin_jury, jury_plan
from thalweg.parts.records import MARKERS, MOST_SLOTS
from thalweg.parts.weigher import Weigher

FIRST_SLOTS = 1  # of the jury


LARGEST_TIME = 1e300


class AggregatorState(NamedTuple):
    """Round t is played by copy t mod h. Before the first call the experts are not known, and there are no copies."""

    copies: tuple[CopyState, ...] = several()
    memories: MemoriesState = part()
    time: Floats = field("2", magnitude(LARGEST_TIME))  # whether there was one, and the last
    clock: Ints = field("2", counters, called="counters")  # rounds that were answered, and predicted


class AggregatorSettings(NamedTuple):
    """Those of the parts."""

    copies: tuple[CopySettings, ...] = several()
    memories: MemoriesSettings = part()


class Candidates(NamedTuple):
    """The rules that are mixed."""

    tracked: bool  # whether the Tracker is one
    rows: Sequence[Rule]
    own: int  # how many are objects of the user's

    @property
    def rules(self) -> list[Rule]:
        """Those that learn from regrets."""
        return [row for row in self.rows if row.kind != COVARIANCE]

    @property
    def memories(self) -> list[Rule]:
        """The rules that weigh by the covariance of errors."""
        return [row for row in self.rows if row.kind == COVARIANCE]

    @property
    def priors(self) -> Floats:
        """Prior weights of all, in the order of the kernels."""
        rows = (*self.rules, *self.memories)
        return np.array([1.0] * self.tracked + [row.prior for row in rows] + [1.0] * self.own)


class AggregatorLayout:
    """Plans of the state: see `thalweg._core.memory.Layout`.

    Sizes that can grow: K experts (0 before the first call), slots of the juries (J), and those of all Trackers.

    Parameters
    ----------
    loss, tau, gradient, horizon
        As for `Aggregator`.
    candidates : callable
        K -> Candidates. Raises InputError where so many experts are too many.
    """

    def __init__(
        self, loss: str, tau: float, gradient: bool, horizon: int, candidates: Callable[[int], Candidates]
    ) -> None:
        self.loss, self.tau, self.gradient, self.horizon, self.candidates = loss, tau, gradient, horizon, candidates

    # ------------------------------------------------------------------ sizes

    def sizes(self) -> dict[str, int]:
        """Return those before the first call."""
        return dict.fromkeys(("K", "J", "N", "S", "H", "Q", "first"), 0)

    def sizes_for(self, experts: int) -> dict[str, int]:
        """Return those before the first round of so many experts."""
        tracked = self.candidates(experts).tracked
        own = _weighing(experts).sizes() if tracked else {}
        return self.sizes() | {"K": experts, "J": FIRST_SLOTS} | own

    def sizes_of(self, saved: Saved) -> dict[str, int]:
        """See `Layout.sizes_of`."""
        _, K = saved["memories.x"].shape
        if K == 0:
            return self.sizes()
        sizes, slots = self.sizes_for(K), saved["copies.0.jury.records.born"].size - 1
        if not FIRST_SLOTS <= slots <= MOST_SLOTS:
            raise ValueError(f"its juries have {slots} slots")
        if self.candidates(K).tracked:
            sizes |= _weighing(K).sizes_of(saved, [f"copies.{k}.tracker." for k in range(self.horizon)])
        return sizes | {"J": slots}

    def larger(self, s: AggregatorState, full: Sequence[int], sizes: Mapping[str, int]) -> dict[str, int]:
        """Return sizes with capacity for another round of the copies that are full."""
        found = {**sizes}
        for k in full:
            if s.copies[k].jury.weights.size > 1:
                found["J"] = max(found["J"], (int(s.copies[k].jury.records.counts[MARKERS]) + 1).bit_length())
        if self.candidates(sizes["K"]).tracked:
            trackers = [one.tracker for one in s.copies]
            found |= _weighing(sizes["K"]).larger(trackers, [trackers[k] for k in full], sizes)
        return found

    # ------------------------------------------------------------------ the state

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """See `Layout.plan`."""
        K, h, settings = sizes["K"], self.horizon if sizes["K"] else 0, AggregatorSettings()
        if K == 0:
            parts = {"memories": memories_plan(np.zeros(0), 0, 0, False)}
            return Plan(AggregatorState, settings, {}, parts, holds=_blank, several={"copies": ()})
        candidates = self.candidates(K)
        keep = np.array([row.keep for row in candidates.memories], dtype=np.float64)
        one = self._copy(candidates, sizes)

        def begin(s: AggregatorState, c: AggregatorSettings) -> None:
            begin_memories(s.memories, c.memories)
            for copy, its in zip(s.copies, c.copies, strict=True):
                one.begin(copy, its)

        return Plan(
            AggregatorState,
            settings,
            parts={"memories": memories_plan(keep, K, h, CODES[self.loss] == PERCENTAGE)},
            several={"copies": (one,) * h},
            holds=self._holds,
            begin=begin,
        )

    def _copy(self, candidates: Candidates, sizes: Mapping[str, int]) -> Plan:
        K, priors, tracked = sizes["K"], candidates.priors, candidates.tracked
        tracker = _weighing(K).plan(sizes) if tracked else Plan(Nothing, ())

        def begin(s: CopyState, c: CopySettings) -> None:
            begin_jury(s.jury, c.jury)
            tracker.begin(s.tracker, c.tracker)

        return Plan(
            CopyState,
            CopySettings(CODES[self.loss], self.tau, self.gradient, tracked),
            {"L": len(candidates.memories), "K": K, "N": priors.size},
            {"rules": rules_plan(candidates.rules, K), "jury": jury_plan(priors, sizes["J"]), "tracker": tracker},
            begin=begin,
        )

    def _holds(self, s: AggregatorState, c: AggregatorSettings, past: Past) -> Iterator[tuple[str, bool]]:
        """Relations that the next round relies on."""
        answered, predicted, h, a = int(s.clock[ANSWERED]), int(s.clock[PREDICTED]), self.horizon, s.memories.a
        fits = 0 <= answered <= predicted <= answered + h
        yield "counters", fits
        if not fits:
            return
        waiting = [t % h for t in range(answered, predicted)]
        yield "waiting forecasts", bool((a[waiting].sum(axis=1) > 0).all())
        known = np.isin(np.arange(h), [t % h for t in range(max(predicted - h, 0), answered)])
        yield "answers", bool((s.memories.answered == known).all())
        for k, one in enumerate(s.copies):
            held = one.held[:, a[k] > 0] if k in waiting else np.ones((0, 1))
            yield "waiting forecasts", shares(held, np.ones(held.shape, dtype=np.bool_))
            played = len(range(k, answered, h))
            yield "jury", bool(one.jury.heard[0] == (played if one.jury.weights.size > 1 else 0))
            if c.copies[k].tracked:
                yield f"rounds of copy {k}", bool(one.tracker.clock[ROUNDS] == played)


def _blank(s: AggregatorState, c: AggregatorSettings, past: Past) -> Iterator[tuple[str, bool]]:
    yield "counters", not (s.clock.any() or s.time.any())


class CopyHandles(dict[int, Handle]):
    """The copies of one block as kernels take them; each is handed over when it is needed.

    Attributes
    ----------
    pending : array (1,)
        How many of their Trackers have not begun.
    """

    def __init__(self, block: Block, sizes: Mapping[str, int]) -> None:
        super().__init__()
        self._block, self._sizes = block, sizes
        tracked = any(its.tracked for its in block.settings.copies)
        self.pending = pending(one.tracker for one in block.state.copies if tracked)

    def __missing__(self, k: int) -> Handle:
        s, c = self._block.state, self._block.settings
        one, its, weigher = s.copies[k], c.copies[k], _unused_weigher()
        if its.tracked:
            weigher = _weighing(self._sizes["K"]).weigher(one.tracker, its.tracker, self.pending, self._sizes)
        turn = Turn(one._replace(tracker=None), its._replace(tracker=None), weigher, s.memories, c.memories)
        self[k] = bind(turn)
        return self[k]


@lru_cache(8)
def _weighing(experts: int) -> Weighing:
    return Weighing(experts)


@cache
def _unused_weigher() -> Weigher:
    """Return a weigher for copies without a Tracker: kernels see the same types."""
    weighing = Weighing(2)
    sizes = weighing.sizes()
    block = Block.fresh(weighing.plan(sizes))
    return weighing.weigher(block.state, block.settings, np.zeros(1, dtype=np.int64), sizes)
