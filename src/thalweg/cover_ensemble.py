"""Experts that live on the intervals of a cover, under a meta-learner for experts that come and go.

An expert is an `Ensemble` (with one member: plain gradient descent) that starts at a marker and lives for 2^k unit
intervals. In round t, with A_t those alive, h_t the gradient and B the range of the feedback:

    r_{t,i} = <h_t, y_t - y_{t,i}> / B,  i in A_t         feed the meta-learner              (1)
    y_{t+1,i} = expert i's own round with h_t                                                (2)
    loss since the last marker += f_t(x_t);  above C_m: marker m + 1, its expert starts at t + 1   (3)
    y_{t+1} = sum_i p_{t+1,i} y_{t+1,i},  i in A_{t+1}                                       (4)

The newborn never sees round t, and those whose interval is over are gone. The living experts are the one-bits of m
(compact cover), so the state has a slot per level and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thalweg._kernels import cover_ensemble, covers, sleeping
from thalweg._kernels import ensemble as ensemble_kernels
from thalweg._kernels.clock import CLIPPED, ENTRIES, GRADIENTS, PROJECTIONS, ROUNDS, VALUES
from thalweg._kernels.projections import PYTHON
from thalweg._validate import check_choice, check_positive
from thalweg.domains import Domain
from thalweg.ensemble import Ensemble, refuse_update
from thalweg.errors import InputError, StateError
from thalweg.learner import Learner, Stage
from thalweg.losses import Loss

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["CoverEnsemble"]

Array = NDArray[np.float64]

kernels: Any = cover_ensemble  # called with the state unpacked, which type checkers cannot follow

METAS = {
    "adapt_ml_prod": sleeping.ADAPT_ML_PROD,
    "ada_normal_hedge": sleeping.ADA_NORMAL_HEDGE,
    "coin_betting": sleeping.COIN_BETTING,
}
COVERS = {"compact": covers.COMPACT, "geometric": covers.GEOMETRIC}
MARKERS_KEPT = 65_536  # at most, so that memory stays bounded on an endless stream
LOOK_AHEAD = 64  # thresholds are tabled this many markers ahead, so that compiled runs need not stop for each


class CoverEnsemble(Learner):
    """Experts on the intervals of a cover, combined by a sleeping meta-learner.

    `CBCE` and `SACS` are this class with the parts of their papers; `EfficientAdaptive` and `EfficientCBCE` are this
    class inside `OneProjection`.

    Parameters
    ----------
    domain : Domain
        Where the experts live.
    expert : Ensemble or callable
        A fresh ensemble on `domain`, the same on every interval; or `expert(length)`, which builds the one for
        intervals of that many unit intervals.
    meta : {"adapt_ml_prod", "ada_normal_hedge", "coin_betting"}
        Who is believed.
    cover : {"compact", "geometric"}
        Who is alive.
    threshold : callable, optional
        m -> C_m > 0, the loss that ends the m-th unit interval: a problem-dependent cover. Left out, every round is a
        unit interval.
    feedback_range : float or "observed"
        B, a bound on |<h, y - y_i>| (shared gradients) or |f(y) - f(y_i)| (own); or the largest one seen so far, for
        Adapt-ML-Prod.
    restart : {"center", "current"}
        Where a newborn starts: the domain's centre, or the last combined decision.
    gradients : {"shared", "own"}
        One gradient for all and no values, or a gradient and a value for each expert (then call `step`).
    nonnegative : bool
        Refuse negative losses.
    anytime : bool
        The guarantee needs no horizon, so none is missed past it.
    owner : str, optional
        Who speaks in error messages: the method that this ensemble is a part of.
    horizon, gradient_bound, on_violation
        As for every `Learner`. The horizon sizes the state; a longer run grows it.
    """

    def __init__(
        self,
        domain: Domain,
        expert: Ensemble | Callable[[int], Ensemble],
        *,
        meta: str,
        cover: str = "compact",
        threshold: Callable[[int], float] | None = None,
        feedback_range: float | str,
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
        self._owner = name = owner or type(self).__name__
        self.anytime = anytime or self.anytime
        self.meta = check_choice(name, "meta", meta, tuple(METAS))
        self.cover = check_choice(name, "cover", cover, tuple(COVERS))
        self.restart = check_choice(name, "restart", restart, ("center", "current"))
        self.gradients = check_choice(name, "gradients", gradients, ("shared", "own"))
        self.one_gradient = self.gradients == "shared"
        self.threshold = threshold
        self.needs_loss = threshold is not None and self.one_gradient
        self.nonnegative = bool(nonnegative)
        self._observed = isinstance(feedback_range, str)
        if isinstance(feedback_range, str):
            check_choice(name, "feedback_range", feedback_range, ("observed",))
            if meta != "adapt_ml_prod":
                raise InputError(f"{name} can observe the range of its feedback only with meta='adapt_ml_prod'.")
            self._span = 1.0
        else:
            self._span = check_positive(name, "feedback_range", feedback_range)
        self._codes = (METAS[self.meta], COVERS[self.cover])

        self._expert = expert
        self._templates: list[Ensemble] = []
        self._table = np.zeros(0 if threshold is None else 1)  # C_m at index m
        self._marker_room = min(MARKERS_KEPT, max(1024, (self.horizon or 0) + 1))
        self._shape_state(K=(1024 if self.horizon is None else self.horizon + 1).bit_length())
        self._rules = self._templates[0]._rules
        self._start = self._templates[0]._start
        self._look_up(1)
        self._restart()

    # ------------------------------------------------------------------ state: a slot per level

    def _template(self, level: int) -> Ensemble:
        """The expert of a level; its settings, not its state, are used."""
        made = self._expert if isinstance(self._expert, Ensemble) else self._expert(2**level)
        if not isinstance(made, Ensemble) or made.domain is not self.domain:
            raise InputError(f"{type(self).__name__} needs experts that are Ensembles on its own domain. Got {made!r}.")
        return made

    def _shape_state(self, K: int) -> None:
        """Arrays for K slots; what a smaller state held is kept."""
        built = len(self._templates)
        self._templates += [self._template(k) for k in range(built, K)]
        templates = self._templates[:K]
        if callable(self._expert):  # each has projected its own starting point
            self._clock[PROJECTIONS] += sum(template.queries.projections for template in self._templates[built:])
        N = max(template.step_sizes.size for template in templates)
        d = self.domain.dim
        self._sizes = np.array([template.step_sizes.size for template in templates])
        self._steps = np.array([_pad(template.step_sizes, N) for template in templates])
        self._log_prior = np.array([_pad(template._log_prior, N) for template in templates])
        self._par = np.array([template._par for template in templates])
        fresh: dict[str, NDArray[Any]] = {
            "clock": self._clock,
            "points": np.zeros((K, N, d)),
            "scores": np.zeros((K, N)),
            "shares": np.zeros((K, N)),
            "bases": np.zeros((K, d)),
            "sums": np.zeros((K, 1)),
            "ages": np.zeros(K, dtype=np.int64),
            "meta": np.zeros((K, 4)),
            "born": np.zeros(K, dtype=np.int64),
            "weights": np.zeros(K),
            "y": np.zeros(d),
            "tally": np.zeros(2),
            "cover": np.zeros(1, dtype=np.int64),
            "marks": np.zeros(0 if self.threshold is None else self._marker_room, dtype=np.int64),
        }
        for key, old in self._arrays.items():
            fresh[key] = _grown(old, fresh[key]) if key != "clock" else old
        self._arrays = fresh
        self._r = np.zeros(K)

    def _restart(self) -> None:
        arrays = self._arrays
        for key, array in arrays.items():
            if key != "clock":
                array[...] = 0
        arrays["tally"][1] = 0.0 if self._observed else 1.0
        self._begin(self._start, 1)
        first = int(np.flatnonzero(arrays["born"])[0])
        arrays["weights"][first] = 1.0
        arrays["y"][:] = self._start
        kept = self._templates if callable(self._expert) else self._templates[:1]
        self._clock[PROJECTIONS] = sum(template.queries.projections for template in kept)  # of the starting point

    def _begin(self, start: Array, t: int) -> None:
        a = self._arrays
        kernels.begin(
            a["points"], a["scores"], a["shares"], a["bases"], a["sums"], a["ages"], a["meta"], a["born"],
            a["tally"], a["cover"], a["marks"], self._log_prior, start, *self._codes, t,
        )  # fmt: skip

    def _make_room(self) -> None:
        """Room for one more marker, before the round begins: a threshold and a slot."""
        m = int(self._arrays["cover"][0])
        if self.threshold is not None and m >= self._table.size:
            self._look_up(m)
        if (m + 1) >> self._arrays["born"].size:
            self._shape_state(self._arrays["born"].size + 1)

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
        try:
            number = float(C)
        except (TypeError, ValueError):
            number = np.nan
        if not (np.isfinite(number) and number > 0):
            raise InputError(
                f"The 'threshold' parameter of {self._owner} must return a finite number > 0 for every m. "
                f"Got {C!r} for m = {m}."
            )
        return number

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {
            "meta": self.meta,
            "cover": self.cover,
            "restart": self.restart,
            "gradients": self.gradients,
            "feedback_range": "observed" if self._observed else self._span,
            "step_sizes": self._steps[0],
            "constants": self._par[0],
            "first_threshold": self._table[1] if self._table.size > 1 else 0.0,
        }

    def _read_state(self, saved: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """A run that went past its horizon may have more slots than this learner, or fewer: the state's count holds."""
        before = dict(vars(self))
        try:
            if isinstance(saved, Mapping) and {"born", "cover"} <= saved.keys():
                slots, m = np.asarray(saved["born"]).size, np.asarray(saved["cover"]).max(initial=0)
                if slots != self._arrays["born"].size and 0 < slots < 64 and int(m) >> slots == 0:
                    self._arrays = {"clock": self._clock}
                    self._shape_state(slots)
            read = super()._read_state(saved)
            if int(read["cover"][0]) >> read["born"].size:
                raise StateError(f"{type(self).__name__} cannot restore this state: it has fewer slots than it needs.")
            return read
        except StateError:
            vars(self).update(before)
            raise

    # ------------------------------------------------------------------ what it tells

    @property
    def active(self) -> int:
        """How many experts are alive in the present round."""
        return int(np.count_nonzero(self._arrays["born"]))

    @property
    def marker_count(self) -> int:
        """m, how many unit intervals have started."""
        return int(self._arrays["cover"][0])

    @property
    def markers(self) -> list[int]:
        """The rounds, counted from 1, at which unit intervals start; only the latest ones on a very long run."""
        m = self.marker_count
        if self.threshold is None:
            return list(range(max(1, m + 1 - self._marker_room), m + 1))
        marks = self._arrays["marks"]
        return [int(marks[i % marks.size]) for i in range(max(0, m - marks.size), m)]

    @property
    def born(self) -> NDArray[np.int64]:
        """The markers at which the living experts started."""
        born = self._arrays["born"]
        return born[born > 0]

    @property
    def weights(self) -> Array:
        """p_t, how much each living expert counts in the present decision."""
        return self._arrays["weights"][self._arrays["born"] > 0]

    @property
    def points(self) -> Array:
        """The living experts' decisions, (active, *shape)."""
        return self._arrays["bases"][self._arrays["born"] > 0].reshape(-1, *self.domain.shape)

    # ------------------------------------------------------------------ a round

    def _propose(self) -> Array:
        return self._arrays["y"].copy()

    def _peek(self) -> Array:
        return self._arrays["y"]

    def _state_arrays(self) -> Any:
        """The state in the order in which every kernel takes it."""
        a = self._arrays
        return (
            a["points"], a["scores"], a["shares"], a["bases"], a["sums"], a["ages"], a["meta"], a["born"],
            a["weights"], a["y"], a["tally"], a["cover"], a["marks"], self._clock,
        )  # fmt: skip

    def _constants(self) -> Any:
        """The settings in the order in which every kernel takes them."""
        return (
            self._steps, self._log_prior, self._par, self._rules, self._sizes, self._table, self._start,
            self.restart == "current", *self._codes, self._span, self._observed, self.domain.code, self.domain.par,
        )  # fmt: skip

    def _move(self, gradient: Array, loss: float | None) -> None:
        self._make_room()
        a = self._arrays
        value = 0.0 if loss is None else loss
        if self.domain.code == PYTHON:
            slots = self._alive()
            r = (a["y"] - a["bases"]) @ gradient / self._span
            largest = float(np.abs(r[slots]).max())
            if not self._observed and largest > cover_ensemble.LARGEST:
                raise self._beyond_range(largest * self._span)
            H = {k: np.broadcast_to(gradient, (self._sizes[k], gradient.size)) for k in slots}
            scores = {k: (a["points"][k, : self._sizes[k]] - a["bases"][k]) @ gradient for k in slots}
            self._python_round(H, scores, r, {k: float(gradient @ gradient) for k in slots}, value)
            self._clock[GRADIENTS] += 1
        else:
            work = np.empty(self.domain.dim)
            constants = (*self._constants(), self._r)
            if not kernels.round_shared_slots(*self._state_arrays(), gradient, value, *constants, work):
                raise self._beyond_range(float(np.abs((a["y"] - a["bases"])[self._alive()] @ gradient).max()))
        self._clock[VALUES] += self.needs_loss

    def _beyond_range(self, difference: float) -> InputError:
        return InputError(
            f"{self._who()}: the losses of the decision and of an expert differ by {difference:g}, more than the range "
            f"{self._span:g} they were said to have. Give a larger range or bound."
        )

    def _alive(self) -> list[int]:
        return [int(k) for k in np.flatnonzero(self._arrays["born"])]

    def _python_round(
        self, H: dict[int, Array], scores: dict[int, Array], r: Array, squares: dict[int, float], value: float
    ) -> None:
        """(1)-(4) where only Python can project. All projections come first: if one fails, nothing has changed."""
        a = self._arrays
        moved = {}
        for k, gradients in H.items():
            n = self._sizes[k]
            q = a["sums"][k, 0] + squares[k]
            factor = ensemble_kernels.step_factor(self._rules[0], a["ages"][k] + 1, q, self._par[k, 0])
            points = a["points"][k, :n] - (self._steps[k, :n] * factor)[:, None] * gradients
            moved[k] = np.array([self.domain._project_flat(point) for point in points])
        self._clock[ROUNDS] += 1
        kernels.feed(self._codes[0], a["meta"], a["born"], r, a["tally"], self._observed)  # (1)
        for k, points in moved.items():  # (2)
            n = self._sizes[k]
            a["points"][k, :n] = points
            a["scores"][k, :n] += scores[k]
            a["sums"][k, 0] += squares[k]
            a["ages"][k] += 1
            self._clock[PROJECTIONS] += n
            ensemble_kernels.settle(
                a["points"], a["scores"], a["shares"], a["bases"], a["sums"], k, n,
                self._log_prior, self._par, self._rules,
            )  # fmt: skip
        if kernels.due(a["tally"], a["cover"], self._table, value):  # (3)
            self._begin(a["y"] if self.restart == "current" else self._start, self._clock[ROUNDS] + 1)
        kernels.combine(a["bases"], a["meta"], a["born"], a["weights"], a["y"], self._codes[0])  # (4)

    # ------------------------------------------------------------------ experts with their own gradients

    def update(self, gradient: ArrayLike, loss: float | None = None) -> None:
        """One round from one gradient; see `Learner.update`. Experts with their own gradients refuse it."""
        if not self.one_gradient:
            raise refuse_update(self, f"all its {self.active} living experts")
        super().update(gradient, loss)

    def step(self, f: Loss) -> float:
        """One round from the loss itself; returns the loss paid at the decision."""
        if self.one_gradient:
            return super().step(f)
        self._check_loss_object(f)
        self._make_room()
        a, shape = self._arrays, self.domain.shape
        paid = self._read_paid(f.value(self.decision))
        queried = np.zeros(ENTRIES, dtype=np.int64)
        queried[VALUES] += 1
        H = np.zeros_like(a["points"])
        values = np.zeros_like(a["scores"])
        r = np.zeros_like(self._r)
        for k in self._alive():
            n = self._sizes[k]
            for i in range(n):
                point = a["points"][k, i].reshape(shape).copy()
                values[k, i] = self._read_paid(f.value(point))
                queried[CLIPPED] += self._read_gradient(f.gradient(point))
                H[k, i] = self._gradient
            queried[VALUES] += n
            queried[GRADIENTS] += n
            expert = values[k, 0]
            if n > 1:
                expert = self._read_paid(f.value(a["bases"][k].reshape(shape).copy()))
                queried[VALUES] += 1
            r[k] = (paid - expert) / self._span
            if abs(r[k]) > cover_ensemble.LARGEST:
                raise self._beyond_range(abs(paid - expert))
            if k == covers.level(int(a["cover"][0])):
                newest = float(expert)
        if self.domain.code == PYTHON:
            slots = self._alive()
            squares = {k: float(H[k, 0] @ H[k, 0]) if self._sizes[k] == 1 else 0.0 for k in slots}
            self._python_round(
                {k: H[k, : self._sizes[k]] for k in slots},
                {k: values[k, : self._sizes[k]] for k in slots},
                r,
                squares,
                newest,
            )
        else:
            work = np.empty(self.domain.dim)
            kernels.round_own_slots(*self._state_arrays(), H, values, r, newest, *self._constants(), work)
        self._clock += queried
        self._shown = None
        self._watch_horizon()
        return paid

    # ------------------------------------------------------------------ whole runs

    _has_loop = True

    def _loop(self, stage: Stage, first: int, last: int) -> int:
        state, settings = self._state_arrays(), (*self._constants(), self._r)
        work = np.empty((3, self.domain.dim))
        if self.one_gradient:
            return int(kernels.play_shared(state, settings, *stage, first, last, self.needs_loss, work))
        H, values = np.empty_like(self._arrays["points"]), np.empty_like(self._arrays["scores"])
        return int(kernels.play_own(state, settings, stage[0], first, last, H, values, work[0]))


def _pad(values: Array, size: int) -> Array:
    """`values` followed by zeros."""
    return np.concatenate([values, np.zeros(size - values.size)])


def _grown(old: NDArray[Any], fresh: NDArray[Any]) -> NDArray[Any]:
    """`fresh`, which is at least as large in every axis, with `old` in its corner."""
    fresh[tuple(slice(0, n) for n in old.shape)] = old
    return fresh
