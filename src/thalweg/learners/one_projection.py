"""One projection a round, around any learner (Cutkosky, ICML 2020; Zhao, Xie, Zhang, Zhou, JMLR 2025, Section 2.2).

The inner learner runs on a cheap set Y that contains X. With y_t its decision and g_t the gradient of f_t at x_t:

    x_t = Pi_X(y_t)                                       the only projection onto X       (1)
    v_t = (y_t - x_t) / ||y_t - x_t||                     (0 where y_t lies in X)          (2)
    h_t = g_t - min(0, <g_t, v_t>) v_t                    the inner learner's gradient     (3)

Theorem 1: ||h_t|| <= ||g_t||, and f_t(x_t) - f_t(u) <= <g_t, x_t - u> <= <h_t, y_t - u> for every u in X. So the
regret on Y against points of X bounds the regret on X for every inner learner.

Where X lies in a flat, the components of g_t and y_t - x_t orthogonal to it have no effect and are removed first. Then
h_t is parallel to the flat, so Theorem 1 also holds for y_t outside the flat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.guests import Restorable
from thalweg._core.memory import Memory, Saved
from thalweg._core.rules import counter_field, feasible
from thalweg._core.saving import inside
from thalweg._core.state import Past, Plan, field, part, scratch
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import ask, check_array, check_nonnegative, short_repr, wrong
from thalweg._kernels.clock import FRESH, GRADIENTS, PROJECTIONS, ROUNDS, VALUES
from thalweg._kernels.hulls import flatten
from thalweg._kernels.jit import implement
from thalweg._kernels.pointers import Pointer, call
from thalweg._kernels.projections import PYTHON
from thalweg._kernels.reduction import surrogate_gradient as correct
from thalweg.domains._base import Domain
from thalweg.errors import InputError
from thalweg.learners import loop
from thalweg.learners.base import Foreign, Learner, bounded, check_made, read_decision
from thalweg.learners.contract import core, count, decision, learn, propose, reduce
from thalweg.learners.limits import limits_of
from thalweg.learners.machine import AnyMachine, Clocked, Machine

T = TypeVar("T", bound=type)


class Decided(Clocked, Protocol):
    """A state with a decision that was projected."""

    @property
    def x(self) -> Floats:
        """The decision, where clock[FRESH] is 1."""


S = TypeVar("S", bound=Decided)
C = TypeVar("C")


class ReducedState(NamedTuple):
    """State of a machine on the surrogate, and its decision projected onto the set."""

    inner: Any = part()
    x: Floats = field("d")  # the decision, where clock[FRESH] is 1
    clock: Ints = counter_field()


class ReducedSettings(NamedTuple):
    """Constants and scratch space."""

    onto: Pointer  # the set: `thalweg._kernels.projections`
    domain: Floats
    flat: int  # its affine hull: `thalweg._kernels.hulls`
    normals: Floats
    tol: float  # a shorter y - x counts as 0
    uses_loss: bool
    inner: Any = part()
    h: Floats = scratch("d")


# --------------------------------------------------------------------------------------------------------------- rounds


def _decision(s: ReducedState, c: ReducedSettings) -> Floats:
    if s.clock[FRESH] == 0:
        call(c.onto, c.domain, decision(s.inner, c.inner), s.x, c.h)  # (1)
        s.clock[FRESH] = 1
    return s.x


def _core(s: ReducedState) -> Any:
    return core(s.inner)


@implement(core, ReducedSettings)
def _core_settings(c: ReducedSettings) -> Any:
    return core(c.inner)


def _reduce(s: ReducedState, c: ReducedSettings, g: Floats) -> Floats:
    y = decision(s.inner, c.inner)
    for j in range(g.shape[0]):
        c.h[j] = y[j] - s.x[j]
    flatten(c.flat, c.normals, c.h)  # g has no component orthogonal to the flat, so neither may y - x
    correct(g, c.h, c.tol, c.h)  # (2), (3)
    flatten(c.flat, c.normals, c.h)  # rounding errors: members with curvature would amplify them
    return reduce(s.inner, c.inner, c.h)


def _count(s: ReducedState, c: ReducedSettings, loss: float) -> None:
    s.clock[ROUNDS] += 1
    s.clock[PROJECTIONS] += 1  # for the round's decision, whenever it was computed
    s.clock[GRADIENTS] += 1
    s.clock[VALUES] += 1 if c.uses_loss and loss < np.inf else 0  # inf: unknown
    s.clock[FRESH] = 0
    count(s.inner, c.inner, loss)


def as_reduced(state: T) -> T:
    """Class decorator: register the reduction's kernels for a state that has the fields of `ReducedState`."""
    implement(decision, state)(_decision)
    implement(core, state)(_core)
    implement(reduce, state)(_reduce)
    implement(count, state)(_count)
    return state


as_reduced(ReducedState)


# -------------------------------------------------------------------------------------------------------------- machine


class Projected(Machine[S, C]):
    """A machine with one projection a round, (1), onto the domain or a part of it, the `target`."""

    lazy = True

    def __init__(self, domain: Domain, target: Domain, flattens: bool) -> None:
        self.domain, self.target, self.flattens = domain, target, flattens
        self.tol = domain.tolerance * domain._scale(domain.center)  # an inexact projection's direction is noise

    def holds(self, s: S, c: C, past: Past) -> Iterator[tuple[str, bool]]:
        """See `Machine.holds`: one projection a round."""
        yield from super().holds(s, c, past)
        yield "counters", bool(s.clock[PROJECTIONS] == s.clock[ROUNDS])
        yield "decision", not s.clock[FRESH] or feasible(self.target, s.x)

    def view(self, s: S) -> Floats:
        """See `Machine.view`."""
        return s.x


class Reduced(Projected[ReducedState, ReducedSettings]):
    """`inner` on a set that contains X, with one projection onto X per round.

    Parameters
    ----------
    domain : Domain
        X.
    inner : Machine
        The machine to run, on a set that contains X.
    flattens : bool
        Whether gradients are projected onto the affine hull of X first.
    target : Domain, optional
        A subset of X to project onto instead.
    ahead : bool
        Whether the next decision is computed at the end of a round. False if something changes it between rounds.
    """

    def __init__(
        self,
        domain: Domain,
        inner: AnyMachine,
        *,
        flattens: bool = True,
        target: Domain | None = None,
        ahead: bool = True,
    ) -> None:
        super().__init__(domain, domain if target is None else target, flattens)
        self.inner, self.limits = inner, inner.limits
        self.ahead = ahead and self.looped and self.target.onto.built_in  # a user's projection may fail

    @property
    def core(self) -> AnyMachine:
        """See `Machine.core`."""
        return self.inner.core

    @property
    def whole(self) -> bool:
        """See `Machine.whole`: a projection in Python is fine, as it comes before the round."""
        return self.inner.whole

    @property
    def looped(self) -> bool:
        """See `Machine.looped`."""
        return self.inner.looped and self.target.onto is not PYTHON

    # ------------------------------------------------------------------ the state

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the inner machine."""
        return self.inner.sizes()

    def larger(self, s: ReducedState, c: ReducedSettings) -> dict[str, int]:
        """Return the sizes of the inner machine."""
        return self.inner.larger(s.inner, c.inner)

    def sizes_of(self, saved: Saved) -> dict[str, int]:
        """Return the sizes of the inner machine."""
        return self.inner.sizes_of(inside(saved, "inner."))

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """See `Machine.plan`."""
        Y, inner = self.target, self.inner.plan(sizes)
        return Plan(
            ReducedState,
            ReducedSettings(Y.onto, Y.par, *self.hull, self.tol, self.limits.uses_loss),
            sizes={"d": Y.dim},
            parts={"inner": inner},
            holds=self.holds,
            pasts=lambda s, c, past: {"inner": Past.whole(int(s.inner.clock[ROUNDS]), past.square)},
            begin=lambda s, c: inner.begin(s.inner, c.inner),
        )

    def holds(self, s: ReducedState, c: ReducedSettings, past: Past) -> Iterator[tuple[str, bool]]:
        """See `Machine.holds`: as many rounds inside as outside."""
        yield from super().holds(s, c, past)
        yield "counters", bool(s.clock[ROUNDS] == s.inner.clock[ROUNDS])

    # ------------------------------------------------------------------ rounds

    def decide(self, memory: Memory) -> None:
        """Make the one projection of a round, (1)."""
        if self.looped:
            ready = memory.call(loop.ready)
            ready.entry.read(ready.run())
            return
        self._project(memory.state, memory.settings)

    def _project(self, s: ReducedState, c: ReducedSettings) -> None:
        if isinstance(self.inner, Reduced) and not s.inner.clock[FRESH]:
            self.inner._project(s.inner, c.inner)
        self.target._project_into(self.inner.view(s.inner), s.x, c.h)
        s.clock[FRESH] = 1

    def refusal(self, s: ReducedState, c: ReducedSettings) -> str:
        """See `Machine.refusal`."""
        return self.inner.refusal(s.inner, c.inner)


# --------------------------------------------------------------------------------------- around a foreign learner


class GuestState(NamedTuple):
    """The guest's decision projected onto the set."""

    x: Floats = field("d")
    clock: Ints = counter_field()


class GuestSettings(NamedTuple):
    """The guest itself, which only Python can call."""

    machine: ReducedGuest
    h: Floats = scratch("d")


@implement(decision, GuestState)
def _guest_decision(s: GuestState, c: GuestSettings) -> Floats:
    return s.x


@implement(learn, GuestState)
def _guest_learn(s: GuestState, c: GuestSettings, g: Floats, loss: float) -> bool:
    machine = c.machine
    h = machine.read() - s.x
    flatten(*machine.hull, h)
    correct(g, h, machine.tol, h)  # (2), (3)
    machine.guest.update(h.reshape(machine.domain.shape), None if np.isnan(loss) else loss)
    s.clock[ROUNDS] += 1
    s.clock[PROJECTIONS] += 1
    s.clock[GRADIENTS] += 1
    s.clock[VALUES] += int(machine.limits.uses_loss)
    s.clock[FRESH] = 0
    return True


@implement(propose, GuestState)
def _guest_propose(s: GuestState, c: GuestSettings, loss: float) -> None:
    pass


class ReducedGuest(Projected[GuestState, GuestSettings]):
    """A learner that only Python can run, with its decision projected onto `domain` once a round.

    The guest is an object with `decision`, `update`, `state`, `restore` and `reset`. Its state is saved under `inner.`;
    if a round fails, the guest is restored from its earlier `state`.
    """

    in_python = True

    def __init__(
        self, owner: Callable[[], str], domain: Domain, around: Domain, guest: Foreign, *, flattens: bool
    ) -> None:
        super().__init__(domain, domain, flattens)
        self.owner, self.around, self.guest = owner, around, guest
        self.limits = replace(limits_of(guest), unknown=np.nan)  # no loss was given

    @property
    def guests(self) -> Mapping[str, Restorable]:
        """See `Machine.guests`."""
        return {"inner.": self.guest}

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """See `Machine.plan`."""
        return Plan(GuestState, GuestSettings(self), sizes={"d": self.domain.dim}, holds=self.holds)

    def read(self) -> Floats:
        """Return the guest's decision, checked."""
        return read_decision(self.owner(), self.guest, self.around)

    def decide(self, memory: Memory) -> None:
        """Make the one projection of a round, (1)."""
        s, c = memory.state, memory.settings
        self.domain._project_into(self.read(), s.x, c.h)
        s.clock[FRESH] = 1


# -------------------------------------------------------------------------------------------------------------- learner


def surrogate_gradient(gradient: ArrayLike, y: ArrayLike, x: ArrayLike, tol: float = 0.0) -> Floats:
    """Return h of (3), from the gradient at x = Pi_X(y).

    Where ||y - x|| <= tol the two count as the same point: an inexact projection leaves a small difference even for y
    in X, and its direction is noise. Choose `tol` well above the error of the projection, in the units of y.

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
    correct(g.ravel(), (y_ - x_).ravel(), check_nonnegative(who, "tol", tol), h)
    return h.reshape(g.shape)


class OneProjection(Learner):
    """Run any one-gradient learner on a cheap set and project once a round.

    Parameters
    ----------
    domain : Domain
        X.
    make_inner : callable
        `make_inner(surrogate)` returns a learner on that set: one of this library's, or any object with `decision`,
        `update(gradient, loss)`, `state`, `restore` and `reset`; or a `Machine`.
    surrogate : Domain, optional
        Y, a set that contains X; `domain.surrogate` by default. If Y is given, gradients are used as they are, even
        where X lies in a flat, so a bound must hold for their full length.
    horizon, gradient_bound, on_violation
        As for every `Learner`; taken from the inner learner by default.

    Notes
    -----
    A decision is projected once, so T rounds cost exactly T projections.

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

    tight_surrogate: ClassVar[bool] = True  # Y is the tightest ball known, else the ball around the domain's centre
    makes_ahead: ClassVar[bool] = True  # the next decision is computed at the end of a round

    def __init__(
        self,
        domain: Domain,
        make_inner: Callable[[Domain], object],
        *,
        surrogate: Domain | None = None,
        horizon: int | None = None,
        gradient_bound: float | None = None,
        on_violation: str = "raise",
    ) -> None:
        name = type(self).__name__
        domain = bounded(name, domain)
        around = domain.surrogate if self.tight_surrogate else domain._enclosing_ball()
        Y = around if surrogate is None else check_surrogate(name, domain, surrogate)
        if not callable(make_inner):
            raise wrong(name, "make_inner", "a function Y -> learner", make_inner)
        inner = ask(name, "make_inner", make_inner, Y)
        if not isinstance(inner, Machine):
            _check_inner(name, inner)
        if isinstance(inner, Learner | Machine) and inner.domain is not Y:
            Y = check_surrogate(name, domain, inner.domain, "The set of the inner learner")
        self.surrogate, self.inner = Y, inner
        bound = getattr(inner, "gradient_bound", None) if gradient_bound is None else gradient_bound
        flattens = surrogate is None  # a user's set need not lie in the flat: gradients stay as they are
        ours: AnyMachine | None = inner if isinstance(inner, Machine) else None
        if isinstance(inner, Learner) and _trusted(inner, bound):
            ours = inner.machine  # becomes a part of this learner's machine; `inner` remains a view of that part
        machine: AnyMachine
        if ours is None:
            machine = ReducedGuest(self._who, domain, Y, inner, flattens=flattens)
        else:
            machine = Reduced(domain, ours, flattens=flattens, ahead=self.makes_ahead)
        self.anytime = getattr(inner, "anytime", False)
        super().__init__(
            machine,
            horizon=getattr(inner, "horizon", None) if horizon is None else horizon,
            gradient_bound=bound,
            on_violation=on_violation,
            nonnegative=getattr(inner, "nonnegative", False),
            inside=(inner,) if isinstance(inner, Learner) and ours is not None else (),
        )

    def _settings(self) -> dict[str, object]:
        """Include the settings of the inner learner that do not follow from the arguments of this one."""
        found, own = super()._settings(), "make_inner" in self._given
        for inner in self._inside:
            theirs = inner._settings() | ({"class": type(inner).__name__} if own else {})
            found |= {f"inner.{key}": value for key, value in theirs.items() if own or not isinstance(value, str)}
        return found

    def _restarted(self, rounds: int) -> dict[str, object]:
        if "make_inner" in self._given:
            raise InputError(f"{type(self).__name__}: make_inner sets the horizon. Build one with another make_inner.")
        return super()._restarted(rounds)


def _check_inner(name: str, inner: object) -> None:
    """Refuse a learner that cannot run inside the reduction."""
    if not isinstance(inner, Learner):
        check_made(name, "make_inner", inner)
    if getattr(inner, "takes_late", False):
        raise InputError(
            f"{name} cannot use {type(inner).__name__}, which takes delayed feedback: the reduction gives it at once. "
            f"Put Delayed outside, Delayed(domain, lambda X: {name}(X, make_inner), delay=...), or use "
            "EfficientDelayed."
        )
    if not getattr(inner, "one_gradient", True):
        raise InputError(
            f"{name} cannot use {type(inner).__name__}: the reduction gives one gradient a round, and this learner "
            "takes something else. Use gradients='shared' where it has that argument."
        )


def _trusted(inner: Learner, bound: float | None) -> bool:
    """Whether compiled code may skip the inner learner's checks: only where the outer ones are as strict."""
    machine = inner.machine
    if machine.in_python or not machine.whole:
        return False
    return inner.gradient_bound is None or (bound is not None and inner.gradient_bound >= bound)


def check_surrogate(owner: str, domain: Domain, surrogate: object, what: str = "The 'surrogate' parameter") -> Domain:
    """Check that a surrogate has the domain's shape and contains it; tested at extreme points of compiled sets."""
    if not isinstance(surrogate, Domain):
        raise InputError(f"{what} of {owner} must be a thalweg Domain. Got {short_repr(surrogate)}.")
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
