"""The contract of every learner, as checks to run on one of your own.

`check_learner(make)` takes a function that builds a fresh learner, or a class with a card, and raises AssertionError,
saying which promise was broken, or returns None.
"""

import contextlib
import copy
import functools
import gc
import pickle
import tracemalloc
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.recorded import parameters
from thalweg._core.types import Floats
from thalweg._core.validate import check_callable
from thalweg.cards import Setting, recipes
from thalweg.domains._base import Domain
from thalweg.domains.ellipsoid import Ellipsoid
from thalweg.errors import HorizonWarning, InputError, StateError
from thalweg.learners.base import Learner, check_takes_losses
from thalweg.learners.machine import Machine
from thalweg.losses._base import Loss
from thalweg.losses.linear import Linear
from thalweg.losses.squared import Squared
from thalweg.testing._in_python import check_against_python

__all__ = ["LEARNER_CHECKS", "STANDARD", "check_learner"]

Make = Callable[[], Learner]

# Where a class with a card is checked.
STANDARD = Setting(
    domain=Ellipsoid([1.0, 4.0, 9.0], bound=4.0),
    horizon=50,
    gradient_bound=6.0,
    loss_bound=60.0,
    smoothness=2.0,
    nonnegative=True,
)


def _stream(make: Make, rounds: int, seed: int = 0) -> list[Loss]:
    """Reproducible losses that respect the learner's gradient bound and, where asked for, are >= 0."""
    learner = make()
    check_takes_losses("check_learner", learner)
    X, rng = learner.domain, np.random.default_rng(seed)
    G = getattr(learner, "gradient_bound", None) or 1.0
    R = max(X.radius, float(np.abs(X.center).max()), 1e-300)
    losses: list[Loss] = []
    for _ in range(rounds):
        direction = rng.standard_normal(X.dim).reshape(X.shape)
        direction /= max(float(np.linalg.norm(direction)), 1e-300)
        if getattr(learner, "nonnegative", False):
            # (<a, x> - b)^2 / 2 with ||a||^2 (2 R + ...) <= G: |<a, x - c>| <= ||a|| R, |b'| <= ||a|| R
            a = direction * np.sqrt(0.4 * G / R)
            b = float(np.sum(a * X.center)) + float(np.linalg.norm(a)) * R * rng.uniform(-1, 1)
            losses.append(Squared(a, b))
        else:
            losses.append(Linear(direction * G * rng.uniform(0.1, 0.9)))
    return losses


def _pressing(make: Make, rounds: int) -> list[Loss]:
    """Losses that all press in one direction, with gradients as large as the learner takes."""
    one = _stream(make, 1, seed=3)[0]
    if isinstance(one, Squared):
        return [one] * rounds
    learner = make()
    G = getattr(learner, "gradient_bound", None) or 1.0
    g = np.asarray(one.gradient(learner.decision), dtype=np.float64)
    return [Linear(0.99 * G * g / np.linalg.norm(g))] * rounds


def _play(learner: Learner, losses: Iterable[Loss]) -> Floats:
    """Decisions over a stream, and the one after it."""
    decisions = []
    for f in losses:
        decisions.append(np.array(learner.decision))
        learner.step(f)
    decisions.append(np.array(learner.decision))
    return np.array(decisions)


def _update(learner: Any, gradient: ArrayLike, loss: float) -> None:
    """A round from one gradient; where feedback may come late, that does not end it."""
    if hasattr(learner, "advance"):
        learner.update(gradient, loss, round=learner.rounds)
        learner.advance()
    else:
        learner.update(gradient, loss)


def _same(a: object, b: object) -> bool:
    if isinstance(a, Mapping):
        return isinstance(b, Mapping) and a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    return bool(np.array_equal(np.asarray(a), np.asarray(b)))


def _quietly(check: Callable[[Make], None]) -> Callable[[Make], None]:
    """The check without the warnings of learners that play past a short horizon."""

    @functools.wraps(check)
    def quiet(make: Make) -> None:
        with warnings.catch_warnings(action="ignore", category=HorizonWarning):
            check(make)

    return quiet


def check_feasible(make: Make) -> None:
    """Every decision is a finite point of the domain, in its shape."""
    learner = make()
    for x in (*_play(learner, _stream(make, 40)), *_play(make(), _pressing(make, 200))):
        assert x.shape == learner.domain.shape, f"decision has shape {x.shape}, the domain {learner.domain.shape}"
        assert np.isfinite(x).all(), "decision is not finite"
        assert learner.domain.contains(x, tol=1e-7), f"decision {x} lies {learner.domain.distance(x):g} outside the set"


def check_read_only(make: Make) -> None:
    """The decision cannot be written to, and does not change under the caller's hands."""
    learner = make()
    x = learner.decision
    assert not x.flags.writeable, "decision can be written to: return a read-only array"
    before = x.copy()
    _play(learner, _stream(make, 3))
    assert np.array_equal(x, before), "an array returned as decision changed in later rounds"


def check_deterministic(make: Make) -> None:
    """Same losses, same decisions, bit for bit."""
    stream = _stream(make, 30)
    assert np.array_equal(_play(make(), stream), _play(make(), stream)), "two runs on one stream differ"


def check_prefix(make: Make) -> None:
    """No look-ahead: the decisions on a prefix of a stream do not depend on later rounds."""
    stream = _stream(make, 30)
    whole = _play(make(), stream)
    part = _play(make(), stream[:13])
    assert np.array_equal(part, whole[:14]), "decisions on a prefix differ from those on the longer stream"


def check_independent(make: Make) -> None:
    """Two learners share nothing."""
    stream, other = _stream(make, 20), _stream(make, 20, seed=1)
    alone = _play(make(), stream)
    a, b = make(), make()
    decisions = []
    for f, g in zip(stream, other, strict=True):
        decisions.append(np.array(a.decision))
        b.step(g)
        a.step(f)
    assert np.array_equal(np.array(decisions), alone[:-1]), "a second learner changed the first one's decisions"


def check_reset(make: Make) -> None:
    """After `reset` a learner is as new, each time."""
    stream = _stream(make, 20)
    learner = make()
    first = _play(learner, stream)
    for _ in range(2):
        learner.reset()
        again = _play(learner, stream)
        assert np.array_equal(again, first), "a learner that was reset plays differently from a new one"


def check_resume(make: Make) -> None:
    """Interrupted at any round and restored into a new learner, a run continues bit for bit; so does the first one."""
    stream, past = _stream(make, 12), _stream(make, 5, seed=2)
    whole = _play(make(), stream)
    for split in range(13):
        first = make()
        _play(first, stream[:split])
        saved = first.state()
        kept = {key: np.array(value) for key, value in saved.items()}
        second = make()
        _play(second, past)  # a learner with a past of its own
        second.restore(saved)
        rest = _play(second, stream[split:])
        assert np.array_equal(rest, whole[split:]), (
            f"a run restored at round {split} differs from the uninterrupted one"
        )
        assert all(_same(kept[key], saved[key]) for key in saved), "playing on changed a state saved earlier"
        assert np.array_equal(_play(first, stream[split:]), whole[split:]), "state() disturbed the learner"
        assert second.queries == first.queries, "queries of the restored run differ"


def check_in_python(make: Make) -> None:
    """Compiled parts of one's own decide as their functions do in plain Python, where indices are checked."""
    if isinstance(getattr(make(), "machine", None), Machine):
        for stream in (_stream(make, 20), _pressing(make, 40)):
            check_against_python(make(), make(), stream)


def check_lasting(make: Make) -> None:
    """A state that a run has left is accepted, whatever the run was like; one with a decision elsewhere is not."""
    for stream in (_stream(make, 40), _pressing(make, 200)):
        learner = make()
        _play(learner, stream)
        saved = learner.state()
        try:
            make().restore(saved)
        except StateError as error:
            raise AssertionError(
                f"the state after a run is refused, so that a file could not be loaded: {error}"
            ) from None
    X, x = learner.domain, np.array(learner.decision).ravel()
    for key, value in saved.items():
        if isinstance(value, np.ndarray) and value.size == x.size and np.array_equal(value.ravel(), x):
            away = saved | {key: value + 1e3 * (X.radius + np.abs(X.center).max())}
            with contextlib.suppress(StateError):
                make().restore(away)
                raise AssertionError(f"a state whose {key!r} lies outside of the set is accepted: it needs a rule")


def check_state_is_plain(make: Make) -> None:
    """A state is a flat mapping of names to arrays, numbers and text, pickles, and shares no memory."""
    learner = make()
    state = learner.state()
    for key, value in state.items():
        assert isinstance(key, str), f"state has a key that is no text: {key!r}"
        assert isinstance(value, np.ndarray | int | float | str | np.generic), (
            f"state[{key!r}] is a {type(value).__name__}"
        )
    assert _same(pickle.loads(pickle.dumps(state)), state), "state changes on the way through pickle"
    kept = pickle.loads(pickle.dumps(state))
    for value in state.values():
        if isinstance(value, np.ndarray):
            value[...] = 7
    assert _same(learner.state(), kept), "writing into a state changed the learner"


def check_copies(make: Make) -> None:
    """A learner that was copied or (where it can be) pickled in mid-run goes on as the first one does."""
    stream = _stream(make, 12)
    learner = make()
    _play(learner, stream[:5])
    copies = {"copied": copy.copy(learner), "deep-copied": copy.deepcopy(learner)}
    with contextlib.suppress(pickle.PicklingError, AttributeError, TypeError):  # its parts may be closures
        copies["pickled"] = pickle.loads(pickle.dumps(learner))
    whole = _play(learner, stream[5:])
    for how, twin in copies.items():
        assert np.array_equal(_play(twin, stream[5:]), whole), f"a {how} learner plays differently"
        assert twin.queries == learner.queries, f"a {how} learner counts differently"


def check_input_kept(make: Make) -> None:
    """A gradient is neither changed nor kept: the caller may reuse its array."""
    if not getattr(make(), "one_gradient", True):
        return
    losses = _stream(make, 15)
    straight, reused = make(), make()
    buffer = np.empty(straight.domain.shape)
    for f in losses:
        g = np.array(f.gradient(straight.decision))
        loss = f.value(straight.decision)
        buffer[...] = g
        given = g.copy()
        _update(straight, g, loss)
        assert np.array_equal(g, given), "update changed the caller's gradient"
        _update(reused, buffer, loss)
        buffer[...] = 1e9  # must not reach the learner
        assert np.array_equal(straight.decision, reused.decision), "the learner keeps the caller's gradient array"


def check_kinds_of_input(make: Make) -> None:
    """Lists, read-only, non-contiguous and float32 gradients mean the same numbers."""
    if not getattr(make(), "one_gradient", True):
        return
    f = _stream(make, 1)[0]
    plain = make()
    g = np.asarray(f.gradient(plain.decision), dtype=np.float32).astype(np.float64)
    loss = f.value(plain.decision)
    _update(plain, g, loss)
    frozen = g.copy()
    frozen.flags.writeable = False
    for kind, given in {
        "a list": g.tolist(),
        "read-only": frozen,
        "non-contiguous": np.repeat(g.ravel(), 3)[::3].reshape(g.shape),
        "Fortran-ordered": np.asfortranarray(g),
        "float32": g.astype(np.float32),
    }.items():
        learner = make()
        _update(learner, given, loss)
        assert np.array_equal(learner.decision, plain.decision), f"a gradient that is {kind} gives another decision"


def check_refusals(make: Make) -> None:
    """Bad input raises and leaves the state as it was."""
    learner = make()
    losses = _stream(make, 5)
    _play(learner, losses[:3])
    shape = learner.domain.shape
    f = losses[4]
    loss = f.value(learner.decision)
    good = np.asarray(f.gradient(learner.decision), dtype=np.float64)
    nan = good.copy()
    nan.flat[0] = np.nan
    infinite = good.copy()
    infinite.flat[-1] = -np.inf
    calls: dict[str, Callable[[], object]] = {
        "a gradient with nan": lambda: learner.update(nan, loss),
        "a gradient with inf": lambda: learner.update(infinite, loss),
        "a gradient of another shape": lambda: learner.update(np.zeros((*shape, 2)), loss),
        "a gradient of text": lambda: learner.update(np.full(shape, "a"), loss),
        "a loss that is nan": lambda: learner.update(good, float("nan")),
        "a state of another learner": lambda: learner.restore(learner.state() | {"class": "somebody else"}),
        "a loss function that fails": lambda: learner.step(_Broken(value=getattr(learner, "values_only", False))),
    }
    G = getattr(learner, "gradient_bound", None)
    # the part across a flat has no bound
    along = learner.domain.directions(np.random.default_rng(1).standard_normal(shape))
    if G is not None and along.any() and getattr(learner, "on_violation", "raise") == "raise":
        calls["a gradient above the bound"] = lambda: learner.update(2.0 * G / np.linalg.norm(along) * along, loss)
    if getattr(learner, "nonnegative", False):
        calls["a negative loss"] = lambda: learner.update(good, -1.0)
    for what, call in calls.items():
        before, x = learner.state(), np.array(learner.decision)
        refusal = None
        try:
            call()
        except Exception as error:
            refusal = str(error)
        assert refusal is not None, f"{what} was accepted"
        assert refusal, f"{what} is refused without a message"
        assert _same(learner.state(), before), f"{what} was refused, but the state changed"
        assert np.array_equal(learner.decision, x), f"{what} was refused, but the decision changed"


class _Broken:
    """A loss that fails: in its value, or only in its gradient."""

    def __init__(self, value: bool) -> None:
        self.fails = value

    def value(self, x: Floats) -> float:
        if self.fails:
            raise RuntimeError("this loss has no value")
        return 0.0

    def gradient(self, x: Floats) -> Floats:
        raise RuntimeError("this loss has no gradient")


def check_zero_gradients(make: Make) -> None:
    """A flat world moves nothing and breaks nothing."""
    learner = make()
    flat = Linear(np.zeros(learner.domain.shape))
    decisions = _play(learner, [flat] * 10)
    assert np.isfinite(decisions).all(), "zero gradients lead to decisions that are not finite"
    assert learner.domain.contains(decisions[-1], tol=1e-7), "zero gradients lead out of the set"


def check_bounded_memory(make: Make) -> None:
    """Memory does not grow with the number of rounds."""
    stream = _stream(make, 60)
    learner = make()
    _play(learner, stream)
    size = _size(learner.state())
    tracemalloc.start()
    _play(learner, stream[:30])
    gc.collect()
    warm, _ = tracemalloc.get_traced_memory()
    for _ in range(5):
        _play(learner, stream)
    gc.collect()
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown - warm < 64_000, f"300 rounds grew memory by {grown - warm} bytes"
    assert _size(learner.state()) <= 2 * size + 4096, "the state grows with the rounds"


def _size(state: Mapping[str, object]) -> int:
    return sum(np.asarray(value).nbytes for value in state.values())


def check_queries(make: Make) -> None:
    """Queries only grow, a one-gradient learner asks for one gradient a round, and no projection is left out."""
    learner = make()
    stream = _stream(make, 10)
    before = learner.queries
    with _counting(learner.domain) as projected:
        for f in stream:  # and no decision after it: that belongs to the next round
            learner.step(f)
    asked = learner.queries - before
    assert min(asked.projections, asked.gradients, asked.values) >= 0, f"queries went down: {asked}"
    assert learner.rounds == 10, f"10 rounds were counted as {learner.rounds}"
    if getattr(learner, "one_gradient", True):
        assert asked.gradients == 10, f"10 rounds with one gradient each were counted as {asked.gradients}"
    assert len(projected) <= asked.projections, (
        f"10 rounds projected {len(projected)} times onto the domain, which were counted as {asked.projections}: see "
        "`InPython(projections=)`"
    )


@contextlib.contextmanager
def _counting(domain: Domain) -> Iterator[list[Floats]]:
    """Yield the points that Python projects onto this very domain, also for `contains` and `distance`."""
    project, projected = domain._project_flat, []

    def counted(y: Floats) -> Floats:
        projected.append(y)
        return project(y)

    vars(domain)["_project_flat"] = counted
    try:
        yield projected
    finally:
        del vars(domain)["_project_flat"]


LEARNER_CHECKS = tuple(
    _quietly(check)
    for check in (
        check_feasible,
        check_read_only,
        check_deterministic,
        check_prefix,
        check_independent,
        check_reset,
        check_in_python,
        check_lasting,
        check_resume,
        check_state_is_plain,
        check_copies,
        check_input_kept,
        check_kinds_of_input,
        check_refusals,
        check_zero_gradients,
        check_bounded_memory,
        check_queries,
    )
)


def check_learner(make: Callable[[], Learner] | type[Learner]) -> None:
    """Run every check on the learner that `make()` builds, or on a class with a card and its variants.

    The learner must be deterministic given its arguments. Raises AssertionError naming the check and the fault.

    Parameters
    ----------
    make : callable or Learner class
        Builds a fresh learner each time it is called. Any shape and horizon will do; small ones keep it quick. A class
        with a card of its own is built in the setting `thalweg.testing.STANDARD`.

    Examples
    --------
    >>> import thalweg as tw
    >>> from thalweg.testing import check_learner
    >>> check_learner(lambda: tw.SOGD(tw.domains.Simplex(3)))
    >>> check_learner(tw.SOGD)
    """
    check_callable("check_learner", "make", make)
    if isinstance(make, type) and vars(make).get("card") is not None:
        for recipe in [recipe for recipe in recipes().values() if recipe.kind is make]:
            check_learner(functools.partial(recipe.build, STANDARD))
        return
    if isinstance(make, type) and any(p.default is p.empty and p.kind in (0, 1, 3) for p in parameters(make).values()):
        raise InputError(
            f"check_learner needs a class with a card, or a function that builds one. {make.__name__} has no card: "
            f"write check_learner(lambda: {make.__name__}(...))."
        )
    for check in LEARNER_CHECKS:
        try:
            check(make)
        except Exception as error:
            message = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
            raise AssertionError(f"{check.__name__}: {message}") from error
