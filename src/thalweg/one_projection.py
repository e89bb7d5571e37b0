"""One projection a round, around any learner (Cutkosky, ICML 2020; Zhao, Xie, Zhang, Zhou, JMLR 2025, Section 2.2).

The inner learner runs on a cheap set Y that contains X. With y_t its decision and g_t the gradient of f_t at x_t:

    x_t = Pi_X(y_t)                                       the only projection onto X       (1)
    v_t = (y_t - x_t) / ||y_t - x_t||                     (0 where y_t lies in X)          (2)
    h_t = g_t - min(0, <g_t, v_t>) v_t                    what the inner learner sees      (3)

Theorem 1: ||h_t|| <= ||g_t||, and f_t(x_t) - f_t(u) <= <g_t, x_t - u> <= <h_t, y_t - u> for every u in X. So regret
on Y against points of X bounds regret on X, whatever the inner learner is.

Where X lies in a flat, what g_t and y_t - x_t have across it cannot matter and is taken off first; h_t has none of it
then, so Theorem 1 holds for y_t outside the flat, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg._kernels import reduction
from thalweg._kernels.clock import FRESH, PROJECTIONS, ROUNDS
from thalweg._kernels.hulls import FULL, flatten
from thalweg._kernels.projections import PYTHON
from thalweg._machines import loop
from thalweg._machines.reduced import ReducedSettings, ReducedState
from thalweg._sound import feasible
from thalweg._stateful import Stateful, inside
from thalweg._validate import ask, check_array, check_nonnegative, told, wrong
from thalweg.domains import Domain
from thalweg.errors import InputError
from thalweg.late import Late
from thalweg.learner import Learner, check_takes_losses, read_decision
from thalweg.machine import Machine

if TYPE_CHECKING:
    from thalweg.problems import LinearModel

__all__ = ["OneProjection", "surrogate_gradient"]

Array = NDArray[np.float64]


def surrogate_gradient(gradient: ArrayLike, y: ArrayLike, x: ArrayLike, tol: float = 0.0) -> Array:
    """h of (3), from the gradient at x = Pi_X(y).

    Where ||y - x|| <= tol the two count as the same point: an inexact projection leaves a small difference even for y
    in X, and its direction is noise. Choose `tol` well above the error of the projection, in the unit of y.

    Examples
    --------
    >>> surrogate_gradient([-1.0, 1.0], y=[2.0, 0.0], x=[1.0, 0.0])
    array([0., 1.])
    """
    who = "surrogate_gradient"
    g, y_, x_ = (check_array(who, name, v) for name, v in (("gradient", gradient), ("y", y), ("x", x)))
    if not g.shape == y_.shape == x_.shape:
        raise InputError(f"surrogate_gradient needs three arrays of one shape. Got {g.shape}, {y_.shape}, {x_.shape}.")
    h = np.empty(g.size)
    reduction.surrogate_gradient(g.ravel(), (y_ - x_).ravel(), check_nonnegative(who, "tol", tol), h)
    return h.reshape(g.shape)


class OneProjection(Machine):
    """Run any one-gradient learner on a cheap set and project once a round.

    Parameters
    ----------
    domain : Domain
        X.
    make_inner : callable
        `make_inner(surrogate)` returns a learner on that set: one of ours, or any object with `decision`,
        `update(gradient, loss)`, `state`, `restore` and `reset`.
    surrogate : Domain, optional
        Y, a set that contains X. `domain.surrogate` when left out. Given, gradients are used as they are, also where X
        lies in a flat: a bound must then hold for their full length.
    horizon, gradient_bound, on_violation
        As for every `Learner`; taken from the inner learner where left out.

    Notes
    -----
    T rounds cost exactly T projections. Where the projection is compiled, a round ends with that of the next decision;
    elsewhere it is made when the decision is asked for. It is counted with the round that it is for.

    Examples
    --------
    >>> import thalweg as tw
    >>> simplex = tw.domains.Simplex(3)
    >>> learner = tw.OneProjection(simplex, lambda Y: tw.SOGD(Y))
    >>> learner.update([1.0, 0.0, -1.0])
    >>> simplex.contains(learner.decision)
    True

    References
    ----------
    A. Cutkosky, Parameter-free, dynamic, and strongly-adaptive online learning, ICML 2020, Theorem 2.
    """

    _settled = True  # nothing but a round changes the decision: the next one can be projected ahead

    def __init__(
        self,
        domain: Domain,
        make_inner: Callable[[Domain], Any],
        *,
        surrogate: Domain | None = None,
        horizon: int | None = None,
        gradient_bound: float | None = None,
        on_violation: str = "raise",
    ) -> None:
        name = type(self).__name__
        super().__init__(domain)  # checks the domain before anything is built on it
        self.surrogate = self._around(domain) if surrogate is None else check_surrogate(name, domain, surrogate)
        if not callable(make_inner):
            raise wrong(name, "make_inner", "a function Y -> learner", make_inner)
        inner = ask(name, "make_inner", make_inner, self.surrogate)
        missing = [n for n in ("decision", "update", "state", "restore", "reset") if not hasattr(inner, n)]
        if missing:
            raise InputError(
                f"{name} cannot use {told(inner)}: make_inner must return a learner, and it lacks {', '.join(missing)}."
            )
        check_takes_losses(name, inner)
        if isinstance(inner, Late):
            raise InputError(
                f"{name} cannot use {type(inner).__name__}, which takes late feedback: the reduction gives it at once. "
                f"Put Delayed outside, Delayed(domain, lambda X: {name}(X, make_inner), delay=...), or use "
                "EfficientDelayed."
            )
        if not getattr(inner, "one_gradient", True):
            raise InputError(
                f"{name} cannot use {type(inner).__name__}, which takes something else than one gradient a round: that "
                "is what the reduction gives. Use gradients='shared' where it has that argument."
            )
        if isinstance(inner, Learner) and inner.domain is not self.surrogate:
            self.surrogate = check_surrogate(name, domain, inner.domain, "The set of the inner learner")
        super().__init__(
            domain,
            horizon=getattr(inner, "horizon", None) if horizon is None else horizon,
            gradient_bound=getattr(inner, "gradient_bound", None) if gradient_bound is None else gradient_bound,
            on_violation=on_violation,
        )
        if surrogate is not None:
            self._hull = FULL, np.zeros(0)  # a set of one's own need not lie in the flat: gradients stay as they are
        self.inner = inner
        self._inside = inner if isinstance(inner, Learner) else None
        self._target: Domain = self.domain  # what (1) projects onto
        self.needs_loss = getattr(inner, "needs_loss", False)
        self.uses_loss = getattr(inner, "uses_loss", self.needs_loss)
        self.nonnegative = getattr(inner, "nonnegative", False)
        self.unknown = getattr(inner, "unknown", 0.0)
        self.anytime = getattr(inner, "anytime", False)
        self._tol = domain.tolerance * domain._scale(domain.center)  # an inexact projection's direction is noise
        if self.gradient_bound is None and isinstance(inner, Learner):
            self._square_bound = inner._square_bound
        # compiled code may skip the inner learner's checks only where the outer ones are as strict
        self._trusted = isinstance(inner, Machine) and inner._compiled and inner._square_bound >= self._square_bound
        self._h = np.empty(domain.dim)
        self._x = np.zeros(domain.dim)
        self._arrays["x"] = self._x

    @staticmethod
    def _around(domain: Domain) -> Domain:
        """Y, where none is given."""
        return domain.surrogate

    # ------------------------------------------------------------------ the machine

    @property
    def _machine(self) -> tuple[Any, Any]:
        state, settings = self.inner._machine
        X = self._target
        return (
            ReducedState(state, self._x, self._clock),
            ReducedSettings(settings, X.onto, X.par, *self._hull, self._tol, self.uses_loss, self._h),
        )

    @property
    def _compiled(self) -> bool:
        return self._trusted and self._target.onto is not PYTHON

    @property
    def _ahead(self) -> bool:
        """Whether a round ends with the projection of the next decision, which must be one that cannot fail."""
        return self._settled and self._compiled and self._target.onto.built_in

    def _make_room(self) -> None:
        self._bound = None  # first: the arrays it holds will be replaced
        self.inner._make_room()

    def _beyond_range(self) -> InputError:
        return self.inner._beyond_range()  # type: ignore[no-any-return]

    def _restart(self) -> None:
        self.inner.reset()
        self._bound = None  # it may have given room back
        self._x[:] = 0.0

    # ------------------------------------------------------------------ a round

    def _peek(self) -> Array:
        if not self._clock[FRESH]:
            if self._compiled:
                ready = self._prepared().ready
                ready.entry.read(ready.run())
            else:
                y = self.inner._peek() if self._trusted else self._read_inner()
                self._target._project_into(y, self._x, self._h)  # (1)
                self._clock[FRESH] = 1
        return self._x

    @property
    def decision(self) -> Array:
        """As `Learner.decision`."""
        shown, calls = self._shown, self._calls
        if shown is None:
            if calls is None or not (calls.usual and calls.clock[FRESH]):
                return super().decision
            shown = self._x.copy()  # the round before has projected
            shown.setflags(False)  # type: ignore[call-arg]  # by position, as there
            self._shown = shown
        return shown

    def _read_inner(self) -> Array:
        return read_decision(self._who(), self.inner, self.surrogate)

    def _round(self, loss: float | None, clipped: int) -> None:
        if not self._trusted:
            Learner._round(self, loss, clipped)
            return
        self.inner._shown = None
        self._play_one(self.unknown if loss is None else loss, clipped, True)  # (2), (3): x is there

    def _move(self, gradient: Array, loss: float | None) -> None:
        h = self._read_inner() - self._x
        flatten(*self._hull, h)
        reduction.surrogate_gradient(gradient, h, self._tol, h)  # (2), (3)
        self.inner.update(h.reshape(self.domain.shape), loss)
        self._count(gradients=1, projections=1, values=int(self.uses_loss))
        self._clock[FRESH] = 0

    def _play(self, problem: LinearModel, rounds: loop.Rounds, first: int, last: int) -> int:
        self.inner._shown = None
        played = super()._play(problem, rounds, first, last)
        if self._ahead:
            self._peek()  # so a run ends as rounds by hand do
        return played

    def _remember(self) -> Any:
        inner = self.inner
        return super()._remember(), inner._remember() if isinstance(inner, Stateful) else inner.state()

    def _return_to(self, before: Any) -> None:
        arrays, inner = before
        if isinstance(self.inner, Stateful):
            self.inner._return_to(inner)
        else:
            self.inner.restore(inner)
        self._bound = None
        super()._return_to(arrays)

    # ------------------------------------------------------------------ stop and resume

    def state(self) -> dict[str, Any]:
        """As `Learner.state`, with the inner learner's state under `inner.`."""
        inner = {key: value for key, value in self.inner.state().items() if key not in self._implied()}
        return super().state() | {f"inner.{key}": value for key, value in inner.items()}

    def _implied(self) -> dict[str, Any]:
        """Arguments of the inner learner that follow from those of this one: all, unless it is an argument itself."""
        if "make_inner" in self._given or not isinstance(self.inner, Learner):
            return {}
        return {f"settings.{k}": value for k, value in self.inner._settings().items() if isinstance(value, str)}

    def _start_anew(self, rounds: int) -> dict[str, Any]:
        if "make_inner" in self._given:
            raise InputError(f"{type(self).__name__}: make_inner sets the horizon. Build one with another make_inner.")
        return super()._start_anew(rounds)

    def _take_over(self, saved: dict[str, Any]) -> dict[str, Any]:
        if isinstance(self.inner, Learner):
            inner = {k.removeprefix("inner."): v for k, v in saved.items() if k.startswith("inner.")}
            saved = saved | {f"inner.{key}": value for key, value in self.inner._take_over(inner).items()}
        return super()._take_over(saved)

    def _read_state(self, saved: Any) -> dict[str, NDArray[Any]]:
        read = super()._read_state(saved)
        if read["clock"][FRESH] and not feasible(self._target, read["x"]):
            raise self._unfit("its decision is not a point of the domain")
        return read

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        yield from super()._look(read)
        clock = read["clock"]
        yield "counters", clock[PROJECTIONS] == clock[ROUNDS]

    def restore(self, saved: Any) -> None:
        """As `Learner.restore`."""
        saved = self._migrated(saved)
        read, within = self._read_state(saved), self._implied() | inside(saved, "inner.")
        if isinstance(self.inner, Learner):
            mine, theirs = (a[ROUNDS] for a in (read["clock"], self._read_array(within, "clock", self.inner._clock)))
            if mine != theirs:
                raise self._unfit(f"it played {mine} rounds, and the learner inside {theirs}")
        with self._all_or_nothing():
            self._bound = None  # first: the arrays it holds may be replaced
            self.inner.restore(within)
            self._write(read)


def check_surrogate(owner: str, domain: Domain, surrogate: Any, what: str = "The 'surrogate' parameter") -> Domain:
    """A surrogate must have the domain's shape and contain it, which is tried at extreme points of compiled sets."""
    if not isinstance(surrogate, Domain):
        raise InputError(f"{what} of {owner} must be a thalweg Domain. Got {told(surrogate)}.")
    if surrogate.shape != domain.shape:
        raise InputError(
            f"{what} of {owner} must hold points of shape {domain.shape}, as the domain does. "
            f"Got {surrogate!r}, of shape {surrogate.shape}."
        )
    if domain.onto is not PYTHON:
        for direction in np.vstack([np.eye(domain.dim), -np.eye(domain.dim)]):
            extreme = domain.project(domain.center + 10 * domain.radius * direction.reshape(domain.shape))
            if not surrogate.contains(extreme, tol=1e-6):
                raise InputError(
                    f"{what} of {owner} must contain the domain {domain!r}. "
                    f"Got {surrogate!r}, which does not. Leave it out for the domain's own."
                )
    return surrogate
