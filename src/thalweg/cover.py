"""Experts that live on the intervals of a cover, under a meta-learner for experts that come and go.

An expert starts at a marker and lives for 2^k unit intervals. What a round does stands in `thalweg._machines.cover`.
The newborn never sees the round that started it, and those whose interval is over are gone. The living experts are the
one-bits of m, the markers so far (compact cover), so the state has a slot per level and nothing else.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg._kernels import covers
from thalweg._kernels.clock import PROJECTIONS, ROUNDS
from thalweg._kernels.parts import admit, clear, place, start
from thalweg._machines.cover import CoverSettings, CoverState
from thalweg._recorded import describe
from thalweg._sound import Past, born, feasible, shares
from thalweg._stateful import named_arrays, refill
from thalweg._types import Array
from thalweg._validate import (
    ask,
    check_callable,
    check_choice,
    check_count,
    check_flag,
    check_text,
    real_number,
    told,
    wrong,
)
from thalweg.domains import Domain
from thalweg.errors import InputError
from thalweg.experts import Expert
from thalweg.machine import ExpertMachine
from thalweg.metas import Meta

__all__ = ["Cover"]

Build = Callable[[int], Expert]

COVERS = {"compact": covers.COMPACT, "geometric": covers.GEOMETRIC}
LEVELS = 62  # counters have 64 bits
MARKERS_KEPT = 65_536  # at most, so that memory stays bounded on an endless stream
LOOK_AHEAD = 64  # thresholds are tabled this many markers ahead, so that compiled runs need not stop for each


class Cover(ExpertMachine):
    """Experts on the intervals of a cover, combined by a meta-learner.

    `CBCE`, `SACS`, `SAOL`, `AFLH` and `AOA` are this class with the parts of their papers; `EfficientAdaptive`,
    `EfficientCBCE`, `EfficientAOA` and `EfficientIntervalDynamic` are this class inside `OneProjection`.

    Parameters
    ----------
    domain : Domain
        Where the experts live.
    expert : Expert or callable
        What lives on an interval, on `domain`; or `expert(length)`, which builds the one for intervals of that many
        unit intervals.
    meta : Meta
        Who is believed.
    cover : {"compact", "geometric"}
        Who is alive.
    threshold : callable, optional
        m -> C_m > 0, the loss that ends the m-th unit interval: a problem-dependent cover. Left out, every round is a
        unit interval.
    restart : {"center", "current"}
        Where a newborn starts: the domain's centre, or the last combined decision.
    gradients : {"shared", "own"}
        One gradient for all and no values, or a gradient and a value for each expert (then call `step`).
    nonnegative : bool
        Refuse negative losses.
    anytime : bool
        The guarantee needs no horizon, so none is missed past it.
    owner : str, optional
        Who speaks in error messages: the method that this cover is a part of.
    horizon, gradient_bound, on_violation
        As for every `Learner`. The horizon sizes the state; a longer run grows it.

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

    _parts: tuple[CoverState, CoverSettings]

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
        super().__init__(domain, horizon=horizon, gradient_bound=gradient_bound, on_violation=on_violation)
        self._owner = name = type(self).__name__ if owner is None else check_text("Cover", "owner", owner)
        self.anytime = check_flag(name, "anytime", anytime) or self.anytime
        if not isinstance(meta, Meta):
            raise wrong(name, "meta", "a meta-learner of thalweg.metas", meta)
        self.meta = meta
        self.cover = check_choice(name, "cover", cover, tuple(COVERS))
        self.restart = check_choice(name, "restart", restart, ("center", "current"))
        self.gradients = check_choice(name, "gradients", gradients, ("shared", "own"))
        self.one_gradient = gradients == "shared"
        self.threshold = None if threshold is None else check_callable(name, "threshold", threshold)
        self.needs_loss = self.uses_loss = threshold is not None and gradients == "shared"
        self.nonnegative = check_flag(name, "nonnegative", nonnegative)

        self.expert = expert
        self._experts: list[Expert] = []  # of each level
        self._table = np.zeros(0 if threshold is None else 1)  # C_m at index m
        self._marker_room = min(MARKERS_KEPT, max(1024, (self.horizon or 0) + 1))
        ask(name, "threshold", self._look_up, 1)
        self._origin = self.level(0).origin
        self._first_slots = (1024 if self.horizon is None else self.horizon + 1).bit_length()
        self._shape(self._first_slots)
        self._restart()

    # ------------------------------------------------------------------ state: a slot per level

    def level(self, k: int) -> Expert:
        """The expert of level k, whose intervals have 2^k unit intervals."""
        k = check_count(f"{self._owner}.level", "k", k, least=0)
        if k > LEVELS:
            raise wrong(f"{self._owner}.level", "k", f"at most {LEVELS}", k)
        while len(self._experts) <= k:
            made = self.expert
            if not isinstance(made, Expert):
                check_callable(self._owner, "expert", made)
                made = ask(self._owner, "expert", made, 2 ** len(self._experts))
            if not isinstance(made, Expert) or made.domain is not self.domain:
                raise InputError(f"{self._owner} needs experts of thalweg.experts on its own domain. Got {told(made)}.")
            self._experts.append(made)
        return self._experts[k]

    def _build(self, K: int) -> tuple[CoverState, CoverSettings]:
        """A machine with K slots, all zeros."""
        experts, d = [self.level(k) for k in range(K)], self.domain.dim
        expert_parts = type(experts[0]).assemble([[expert] for expert in experts])
        meta_parts = type(self.meta).assemble([self.meta], [K])
        state = CoverState(
            expert_parts[0],
            meta_parts[0],
            np.zeros(K, dtype=np.int64),
            np.zeros(K),
            np.zeros(d),
            np.zeros(1),
            np.zeros(1, dtype=np.int64),
            np.zeros(0 if self.threshold is None else self._marker_room, dtype=np.int64),
            self._clock,
        )
        settings = CoverSettings(
            expert_parts[1],
            meta_parts[1],
            self._table,
            self._origin,
            self.restart == "current",
            COVERS[self.cover],
            np.zeros(K),
            np.zeros((K, 1)),
        )
        return state, settings

    def _shape(self, K: int, *, keep: bool = True) -> None:
        """Take over a machine with K slots; what a smaller one held is kept, unless it is to be written over."""
        state, settings = self._build(K)
        for key, fresh in named_arrays(state).items():
            old = self._arrays.get(key)
            if keep and old is not None and old.size and key != "clock":
                fresh[tuple(slice(0, n) for n in old.shape)] = old
        own = None if self.one_gradient else self._ask_own(state.experts, K, by_value=True, wanted=True)
        self._adopt(state, settings, own)

    @property
    def _slot_count(self) -> int:
        return int(self._parts[0].born.size)

    def _restart(self) -> None:
        if self._slot_count != self._first_slots:
            self._shape(self._first_slots, keep=False)
        state, settings = self._parts
        for key, array in self._arrays.items():
            if key != "clock":
                array[...] = 0
        clear(state.meta, settings.meta, 0)
        state.markers[0] = state.born[0] = 1  # the first marker, at level 0
        state.marks[:1] = 1
        start(state.experts, settings.experts, 0, 0, self._origin)
        admit(state.meta, settings.meta, 0, 0, 1)
        state.weights[0] = 1.0
        state.y[:] = self._origin
        self._clock[PROJECTIONS] = 1  # of the starting point

    @property
    def _full(self) -> bool:
        m, known = self.marker_count, self._parts[1].thresholds.size
        return bool((m + 1) >> self._slot_count) or (self.threshold is not None and m >= known)

    def _make_room(self) -> None:
        """Room for one more marker: a threshold and a slot."""
        m, (state, settings) = self.marker_count, self._parts
        if self.threshold is not None and m >= settings.thresholds.size:
            self._look_up(m)
            self._adopt(state, settings._replace(thresholds=self._table), self._own)
        if (m + 1) >> self._slot_count:
            self._shape(self._slot_count + 1)

    def _look_up(self, m: int) -> None:
        """Table C_m, and as many further ones as the callable gives; only C_m itself must be right."""
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
                f"The 'threshold' parameter of {self._owner} must return a finite number > 0 for every m. "
                f"Got {told(C)} for m = {m}."
            )
        return number

    def _settings(self) -> dict[str, Any]:
        found = super()._settings() | {
            "thresholds": self._table[1 : 1 + LOOK_AHEAD]
        }  # a function shows only its values
        if not isinstance(self.expert, Expert) and "expert" in self._given:
            found["experts"] = ", ".join(describe(self.level(k)) for k in range(4))
        return found

    @property
    def _lasts(self) -> bool:
        return super()._lasts or type(self) is Cover  # its parts are given

    def _take_over(self, saved: dict[str, Any]) -> dict[str, Any]:
        old, new, m = np.asarray(saved["marks"]), np.zeros_like(self._parts[0].marks), int(saved["markers"][0])
        for i in range(max(0, m - old.size), m) if new.size else ():
            new[i % new.size] = old[i % old.size]
        return super()._take_over(saved | {"marks": new})

    def _read_state(self, saved: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """A run that went past its horizon may have more slots than this learner, or fewer: the state's count holds."""
        self._check_kind(saved)
        own, slots = self._parts[0], self._length(saved, "born")
        t, m = (int(self._read_array(saved, key, getattr(own, key))[0]) for key in ("clock", "markers"))
        if not (m == t + 1 if self.threshold is None else 1 <= m <= t + 1):
            raise self._unfit(f"it has {m} markers after {t} rounds")
        if not m.bit_length() <= slots <= max((m + 1).bit_length(), self._first_slots):
            raise self._unfit(f"it has {slots} slots and {m} markers")
        read = self._read_arrays(saved, named_arrays(self._sized(slots)[0]))
        if read["born"].tolist() != born(m, slots, geometric=self.cover == "geometric"):
            raise self._unfit("its experts were born at other markers than it has")
        return self._sound(read)

    def _sized(self, K: int) -> tuple[CoverState, CoverSettings]:
        """The machine if it has K slots, else one that has."""
        return self._parts if self._slot_count == K else self._build(K)

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        yield from super()._look(read)
        K = read["born"].size
        state, settings = self._sized(K)
        s = refill(state, read)
        m, t, alive = int(s.markers[0]), int(s.clock[ROUNDS]), s.born > 0

        def past(*shape: int) -> Past:
            births = s.born.reshape(shape)  # marker i starts in round i or later
            return Past(births > 0, births, t + 1 - births, t, self._square_bound)

        levels = [[self.level(k)] for k in range(K)]
        yield from type(levels[0][0]).look(levels, s.experts, settings.experts, past(K, 1))
        yield from type(self.meta).look(s.meta, settings.meta, past(1, K))
        yield "weights", shares(s.weights, alive)
        yield "decision", feasible(self.domain, s.y)
        known = self._table[m] if m < self._table.size else np.inf
        yield "loss since the last marker", s.paid[0] <= known and (s.paid[0] >= 0 or not self.nonnegative)
        n = s.marks.size
        if n > 0:
            kept = s.marks[np.arange(max(0, m - n), m) % n]
            kept = kept[np.argmax(kept > 0) :]  # a longer ring than the run began with has not seen the first
            yield "marks", kept[0] >= 1 and kept[-1] <= t + 1 and bool((np.diff(kept) > 0).all())
            yield "marks", m > n or (bool(kept[0] == 1) == (kept.size == m) and not s.marks[m:].any())

    def _write(self, read: dict[str, NDArray[Any]]) -> None:
        if read["born"].size != self._slot_count:
            self._shape(read["born"].size, keep=False)
        super()._write(read)

    # ------------------------------------------------------------------ what it tells

    @property
    def active(self) -> int:
        """How many experts are alive in the present round."""
        return int(np.count_nonzero(self._parts[0].born))

    @property
    def marker_count(self) -> int:
        """m, how many unit intervals have started."""
        return int(self._parts[0].markers[0])

    @property
    def markers(self) -> list[int]:
        """The rounds, counted from 1, at which unit intervals start; only the latest ones on a very long run."""
        m = self.marker_count
        if self.threshold is None:
            return list(range(max(1, m + 1 - self._marker_room), m + 1))
        marks = self._parts[0].marks
        kept = marks[np.arange(max(0, m - marks.size), m) % marks.size]
        return kept[kept > 0].tolist()  # type: ignore[no-any-return]

    @property
    def born(self) -> NDArray[np.int64]:
        """The markers at which the living experts started."""
        born: NDArray[np.int64] = self._parts[0].born
        return born[born > 0]

    @property
    def weights(self) -> Array:
        """p_t, how much each living expert counts in the present decision."""
        return self._parts[0].weights[self._slots()]

    @property
    def points(self) -> Array:
        """The living experts' decisions, (active, *shape)."""
        experts = self._parts[0].experts
        return np.array([place(experts, k, 0) for k in self._slots()]).reshape(-1, *self.domain.shape)

    # ------------------------------------------------------------------ a round

    def _peek(self) -> Array:
        return self._parts[0].y

    def _slots(self) -> list[int]:
        return np.flatnonzero(self._parts[0].born).tolist()

    def _beyond_range(self) -> InputError:
        difference = float(np.abs(self._parts[1].losses[self._slots()]).max())
        return InputError(
            f"{self._who()}: the losses of the decision and of an expert differ by {difference:g}, more than the range "
            f"{getattr(self.meta, 'feedback_range', None)} they were said to have. Give a larger range or bound."
        )
