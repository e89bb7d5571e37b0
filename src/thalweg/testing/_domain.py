"""Checks that a set has every property the library expects of a set."""

import contextlib
import math
import pickle
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import FunctionType
from typing import Any

import numpy as np

from thalweg._core.types import Floats
from thalweg._core.validate import check_count, check_entries, check_positive, check_rng
from thalweg._kernels import projections
from thalweg._kernels.jit import INNER, Kernel
from thalweg.domains._base import Domain, read_domain

__all__ = ["check_domain"]

# Rounding error of a projected point, relative to the distance of the projection.
PROJECTION_ROUNDING = 1e-13
PLAIN_ENTRIES = 20_000  # that are projected by the kernel as plain Python
LOOSER = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4)  # accuracies of solvers


def check_domain(domain: Domain, *, rng: int | np.random.Generator = 0, points: int = 20, tol: float = 1e-9) -> None:
    """Check that a set projects correctly and that the facts it states are true.

    Raises `AssertionError` with the property that failed and the point at which it did. Run it on your own `Custom` set
    or subclass of `Domain` before you trust a learner on it.

    Parameters
    ----------
    domain : Domain
        The set.
    rng : int or Generator
        Where the random points come from.
    points : int
        How many random points to try. Points along the axes are tried as well.
    tol : float
        Accuracy, relative to the scale of the set: the larger of its radius and the largest entry of its centre (of 1
        and that entry, if unbounded). Raise it for a set whose projection comes from a solver of low accuracy: where a
        projection in Python fails, the error says with which `tol` it would pass.

    Examples
    --------
    >>> from thalweg.domains import Simplex
    >>> from thalweg.testing import check_domain
    >>> check_domain(Simplex(5))
    """
    random, tol = check_rng("check_domain", rng), check_positive("check_domain", "tol", tol)
    points = check_count("check_domain", "points", points)
    check_entries("check_domain", "points", points, points * read_domain("check_domain", domain).dim)
    try:
        _check(domain, random, points, tol)
    except AssertionError as error:
        enough = _passes(domain, points, tol) if domain.onto is projections.PYTHON else None
        if enough is None:
            raise
        raise AssertionError(
            f"{error} It passes with tol={enough:g}: the projection is only so exact. Ask its solver for more (cvxpy "
            "with CLARABEL: tol_gap_abs, tol_gap_rel, tol_feas), or call check_domain(..., "
            f"tol={enough:g}) and say so to learners: Custom(..., tolerance={enough:g})."
        ) from error


def _passes(domain: Domain, points: int, tol: float) -> float | None:
    """Return a larger tolerance that the set passes with; None where the fault is not the accuracy."""
    for looser in LOOSER:
        with contextlib.suppress(AssertionError):
            if looser > tol:
                _check(domain, np.random.default_rng(0), points, looser)
                return looser
    return None


def _check(domain: Domain, random: np.random.Generator, points: int, tol: float) -> None:
    _check_facts(domain)
    scale = max(domain.radius if math.isfinite(domain.radius) else 1.0, float(np.abs(domain.center).max()))
    tries = list(_points(domain, scale, random, points))
    if domain.onto is not projections.PYTHON:
        _check_kernel(domain, tries)
    nearest = [_check_project(domain, y) for y in tries]
    inside = [*nearest, *(0.5 * (p + q) for p, q in pairwise(nearest))]
    inside = [inside[i] for i in random.permutation(len(inside))[: 3 * points]]

    for y, p in zip(tries, nearest, strict=True):
        slack = tol * scale + PROJECTION_ROUNDING * float(np.linalg.norm(y - domain.center))
        _at(np.linalg.norm(domain.project(y) - p) <= slack, "projecting twice gives two answers", y)
        _at(np.linalg.norm(domain.project(p) - p) <= tol * scale, "a projected point moves when projected again", y)
        _at(domain.contains(p, max(tol, 1e-9)), "`contains` refuses a projected point", y)
        gap = float(np.linalg.norm(y - p))
        _at(abs(domain.distance(y) - gap) <= slack, "`distance` is not the distance of the projected point", y)
        _at(gap <= 1e-3 * scale + slack or not domain.contains(y), "`contains` accepts a point far outside", y)
        for z in inside:
            angle = float(np.vdot(y - p, z - p))
            better = f"the projected point is not the nearest: moving towards {z} comes closer"
            _at(angle <= slack * max(scale, gap), better, y)
        _at(np.linalg.norm(_in_place(domain, y) - p) <= slack, "the compiled projection gives another answer", y)
    for z in inside:
        _at(np.linalg.norm(domain.project(z) - z) <= tol * scale, "a point inside moves", z)
    for x, y, p, q in zip(tries, tries[1:], nearest, nearest[1:], strict=False):
        far = float(np.linalg.norm(x - y))
        close = np.linalg.norm(p - q) <= far + tol * scale + PROJECTION_ROUNDING * far
        _at(close, f"projecting drives this point and {y} apart", x)

    if math.isfinite(domain.radius):
        _check_enclosure(domain, inside, tol * scale)
    _check_directions(domain, inside, random, tol * scale)
    _check_input(domain, tries[0], tol * scale + PROJECTION_ROUNDING * float(np.linalg.norm(tries[0] - domain.center)))


def _at(holds: object, what: str, point: Floats) -> None:
    if not holds:
        raise AssertionError(f"{what}. Point: {point!r}")


def _check_facts(domain: Domain) -> None:
    """Shape, size, centre, radius, diameter and name."""
    for holds, what in (
        (repr(domain), "its repr is empty"),
        (isinstance(domain.shape, tuple) and domain.shape, f"`shape` is {domain.shape!r}, not a tuple of sizes"),
        (domain.dim == math.prod(domain.shape), f"`dim` is {domain.dim}, but its shape is {domain.shape}"),
        (domain.center.shape == domain.shape, f"`center` has shape {domain.center.shape} instead of {domain.shape}"),
        (np.isfinite(domain.center).all(), f"`center` is not finite: {domain.center!r}"),
        (domain.radius > 0, f"`radius` is {domain.radius}, not positive"),
        (domain.diameter > 0, f"`diameter` is {domain.diameter}, not positive"),
    ):
        if not holds:
            raise AssertionError(f"{type(domain).__name__}: {what}")


def _points(domain: Domain, scale: float, random: np.random.Generator, count: int) -> Iterator[Floats]:
    """Points in random directions and along the axes, from well inside to a hundred times outside."""
    size = domain.radius if math.isfinite(domain.radius) else scale
    for _ in range(count):
        direction = random.standard_normal(domain.shape)
        length = size * 10.0 ** random.uniform(-2, 2) / np.linalg.norm(direction)
        yield domain.center + length * direction
    for j in random.permutation(domain.dim)[:count]:
        axis = np.zeros(domain.dim)
        axis[j] = 3.0 * size * random.choice([-1.0, 1.0])
        yield domain.center + axis.reshape(domain.shape)
    yield domain.center.copy()


def _check_project(domain: Domain, y: Floats) -> Floats:
    """The projected point, after looking at it as an array."""
    given = y.copy()
    p = domain.project(given)
    _at(np.array_equal(given, y), "`project` changed its argument", y)
    _at(isinstance(p, np.ndarray) and p.dtype == np.float64, "`project` did not return a float64 array", y)
    _at(p.shape == domain.shape, f"`project` returned shape {p.shape} instead of {domain.shape}", y)
    _at(np.isfinite(p).all(), "`project` returned nan or infinite entries", y)
    _at(not np.shares_memory(p, given), "`project` returned memory of its argument instead of a new array", y)
    kept = p.copy()
    domain.project(given + 1.0)
    _at(np.array_equal(p, kept), "a later call of `project` changed the array that an earlier one returned", y)
    return p


def _in_place(domain: Domain, y: Floats) -> Floats:
    """Return the point projected by the compiled projection, as in loops, or by the method without one."""
    if domain.onto is projections.PYTHON:
        return domain.project(y)
    flat = y.ravel().copy()
    domain.onto(domain.par, flat, flat, np.empty_like(flat))
    return flat.reshape(domain.shape)


def _plain(kernel: Callable[..., Any], made: dict[object, FunctionType]) -> FunctionType:
    """The Python function of a kernel, with those of the kernels and helpers that it calls by global names."""
    function = getattr(kernel, "__wrapped__", kernel)
    if function not in made:
        names = dict(function.__globals__)
        made[function] = FunctionType(
            function.__code__, names, function.__name__, function.__defaults__, function.__closure__
        )
        for name in function.__code__.co_names:
            other = names.get(name)
            if isinstance(other, Kernel) or (isinstance(other, FunctionType) and other in INNER):
                names[name] = _plain(other, made)
    return made[function]


def _check_kernel(domain: Domain, tries: list[Floats]) -> None:
    """The projection kernel as plain Python, which checks indices, and a nan in the point, which must stay."""
    function = _plain(domain.onto.kernel, {})
    kernel = f"{type(domain).__name__}: its projection kernel `{function.__name__}`"
    par = domain.par.copy()
    enough = max(5, PLAIN_ENTRIES // domain.dim)
    for y in [*tries[-enough:], domain.center + domain.dim]:
        flat = y.ravel().copy()
        try:
            with np.errstate(all="ignore"):
                function(par, flat, flat, np.empty_like(flat))
        except IndexError as error:
            raise AssertionError(
                f"{kernel} reads or writes outside of an array, which compiled code does not notice: {error}. "
                f"`par` has {par.size} entries, `y`, `out` and `work` have {domain.dim}. Point: {y!r}"
            ) from error
        except (ArithmeticError, ValueError):  # such as a division by 0, which compiled code takes as inf or nan
            continue
        _at(np.array_equal(par, domain.par, equal_nan=True), f"{kernel} changes `par`", y)
    for j in range(min(domain.dim, 20)):
        flat = tries[0].ravel().copy()
        flat[j] = np.nan
        given = flat.copy()
        domain.onto(domain.par, flat, flat, np.empty_like(flat))
        if not np.isnan(flat).any():
            raise AssertionError(
                f"{kernel} turns a nan into numbers, so a loop could not notice it: {given} becomes {flat}. Compare so "
                "that a nan stays: `0.0 if y[j] < 0.0 else y[j]`, not `max(0.0, y[j])`."
            )


def _check_enclosure(domain: Domain, inside: list[Floats], slack: float) -> None:
    """The stated ball, diameter and surrogate."""
    surrogate = domain.surrogate
    if surrogate.shape != domain.shape or not math.isfinite(surrogate.radius):
        raise AssertionError(f"the surrogate {surrogate!r} is unbounded or of another shape than {domain.shape}")
    for z in inside:
        off = float(np.linalg.norm(z - domain.center))
        _at(off <= domain.radius + slack, f"a point of the set is {off} from the centre, radius {domain.radius}", z)
        _at(surrogate.distance(z) <= slack, f"a point of the set lies outside its surrogate {surrogate!r}", z)
        far = max(float(np.linalg.norm(z - x)) for x in inside)
        _at(far <= domain.diameter + slack, f"two points are {far} apart, diameter {domain.diameter}", z)


def _check_directions(domain: Domain, inside: list[Floats], random: np.random.Generator, slack: float) -> None:
    """Differences of points, and of points and the centre, lie in the directions of the affine hull."""
    for z in inside:
        for other in (inside[0], domain.center):
            off = float(np.linalg.norm(domain.directions(z - other) - (z - other)))
            _at(off <= slack, "`directions` changes the difference of this point and another, or the centre", z)
    v, w = random.standard_normal((2, *domain.shape))
    part = domain.directions(v)
    _at(np.allclose(domain.directions(part), part, atol=1e-9), "`directions` moves its own result", v)
    _at(np.isclose(np.vdot(part, w), np.vdot(v, domain.directions(w)), atol=1e-9), "`directions` is not symmetric", v)


def _check_input(domain: Domain, y: Floats, slack: float) -> None:
    """Kinds of input that must work, kinds that must not, and copies."""
    p = domain.project(y)
    frozen = y.copy()
    frozen.flags.writeable = False
    spread = np.repeat(y[..., None], 2, axis=-1)[..., 0]
    single = y.astype(np.float32)
    whole = np.rint(y).astype(np.int64)
    for kind, given, expected in (
        ("a read-only array", frozen, p),
        ("a non-contiguous array", spread, p),
        ("a list", y.tolist(), p),
        ("a float32 array", single, domain.project(single.astype(np.float64))),
        ("an integer array", whole, domain.project(whole.astype(np.float64))),
    ):
        same = np.linalg.norm(domain.project(given) - expected) <= slack
        _at(same, f"`project` treats {kind} differently", y)
    hole = y.copy()
    hole.flat[0] = np.nan
    for kind, bad in (("a wrong shape", np.zeros((*domain.shape, 2))), ("nan", hole)):
        try:
            domain.project(bad)
        except Exception:
            continue
        raise AssertionError(f"`project` accepts a point with {kind}: {bad!r}")
    try:
        twin = pickle.loads(pickle.dumps(domain))
    except Exception:  # functions without a name cannot be pickled
        twin = domain
    _at(np.linalg.norm(twin.project(y) - p) <= slack, "an unpickled copy projects differently", y)
