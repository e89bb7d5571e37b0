"""One expert, alone, as a learner."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg._kernels.clock import PROJECTIONS, ROUNDS
from thalweg._kernels.parts import place, spots, start
from thalweg._machines.alone import AloneSettings, AloneState
from thalweg._sound import Past
from thalweg._stateful import refill
from thalweg._types import Array
from thalweg._validate import check_choice, check_flag, wrong
from thalweg.errors import InputError
from thalweg.experts import Expert, Pool
from thalweg.learner import bounded, read_start
from thalweg.machine import ExpertMachine

__all__ = ["Alone"]


class Alone(ExpertMachine):
    """An expert that plays by itself: a descent, a pool of them, or an expert of your own.

    Parameters
    ----------
    expert : Expert
        What plays, on its own domain.
    gradients : {"shared", "own"}
        One gradient at the decision, or one at the point of each member (then call `step`).
    nonnegative : bool
        Refuse negative losses.
    start : array, optional
        A point of the domain where all members begin, such as last week's weights; the point nearest to its centre
        when left out.
    horizon, gradient_bound, on_violation
        As for every `Learner`.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.Alone(tw.experts.AdaGradDescent(tw.domains.Ball(2)))
    >>> learner.update([3.0, 0.1])
    >>> learner.decision.round(2)
    array([-0.99, -0.1 ])
    """

    def __init__(
        self,
        expert: Expert,
        *,
        gradients: str = "shared",
        nonnegative: bool = False,
        start: ArrayLike | None = None,
        horizon: int | None = None,
        gradient_bound: float | None = None,
        on_violation: str = "raise",
    ) -> None:
        name = type(self).__name__
        if not isinstance(expert, Expert):
            raise wrong(name, "expert", "an Expert", expert)
        super().__init__(
            bounded(name, expert.domain), horizon=horizon, gradient_bound=gradient_bound, on_violation=on_violation
        )
        self.expert = expert
        self.gradients = check_choice(name, "gradients", gradients, ("shared", "own"))
        self.nonnegative = check_flag(name, "nonnegative", nonnegative)
        by_value = isinstance(expert, Pool) and expert.judge == "value"
        if by_value and self.gradients == "shared":
            raise InputError(f"{name} judges members by value only where each has its own gradient: gradients='own'.")
        state, settings = type(expert).assemble([[expert]])
        self.one_gradient = gradients == "shared"
        own = None if self.one_gradient else self._ask_own(state, 1, by_value, wanted=False)
        self._adopt(AloneState(state, self._clock), AloneSettings(settings, np.zeros((1, 1))), own)
        self._origin = expert.origin
        if start is not None:
            self._origin = np.ascontiguousarray(expert.domain.project(read_start(name, expert.domain, start)).ravel())
        self._restart()

    def _restart(self) -> None:
        state, settings = self._parts
        start(state.experts, settings.experts, 0, 0, self._origin)
        self._clock[PROJECTIONS] = 1  # of the starting point

    @property
    def _lasts(self) -> bool:
        return super()._lasts or type(self) is Alone  # its expert is given, and knows no horizon

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        yield from super()._look(read)
        state, settings = self._parts
        one, rounds = np.ones((1, 1), dtype=np.int64), int(read["clock"][ROUNDS])
        past = Past(one > 0, one, rounds * one, rounds, self._square_bound)
        yield from type(self.expert).look([[self.expert]], refill(state, read).experts, settings.experts, past)

    def _peek(self) -> Array:
        if self._view is None:
            self._view = place(self._parts[0].experts, 0, 0)
        return self._view

    @property
    def points(self) -> Array:
        """y_{t,i}, the members' points, (N, *shape)."""
        return spots(self._parts[0].experts).reshape(-1, *self.domain.shape).copy()
