"""The contract of PCA learners: instances in, projections out, compression loss paid.

In round t the learner has a matrix P_t of the Fantope {0 <= P <= I, trace P = k}, its `decision`, and plays a
projection onto k dimensions that is drawn with mean P_t. It receives X_t = x_t x_t' (or any positive semidefinite X_t)
and pays

    f_t(P) = trace((I - P) X_t)                     for a projection, ||x_t - P x_t||^2

which is linear: the expected loss of the drawn projection is f_t(P_t), and `update` returns it.
"""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.memory import Layout, Memory
from thalweg._core.recorded import Recorded, build
from thalweg._core.rules import CLOSE
from thalweg._core.saving import Kept
from thalweg._core.state import Past, Seen, field
from thalweg._core.types import Floats
from thalweg._core.validate import check_count, check_entries, check_positive, check_rng, real_array, short_repr
from thalweg._kernels import pca as kernels
from thalweg._kernels.clock import FRESH, GRADIENTS, PROJECTIONS, ROUNDS, VALUES
from thalweg._kernels.vectors import square_norm
from thalweg.domains.fantope import Fantope
from thalweg.errors import InputError, ProjectionError
from thalweg.learners.base import Extendable, Queries, outside, watch_horizon
from thalweg.learners.feedback import BOUND_SLACK
from thalweg.pca import sampling

__all__ = [
    "PCALearner",
    "RankWarning",
    "assemble",
    "close",
    "gram",
    "loss_at",
    "orthonormal",
    "seed_field",
    "symmetric",
]

SYMMETRIC = 1e-9  # how far X may be from its transpose, relative to its largest entry
SEMIDEFINITE = 1e-9  # how far below zero an eigenvalue of X may lie, relative to d times its largest entry
DRAWS = 256  # uniform numbers drawn at a time
SMALL = 64  # dimensions in which the overhead of NumPy's eigendecomposition shows
LATER = 1000  # rounds in such a dimension before SciPy is imported


class RankWarning(UserWarning):
    """A rank above half of the dimension: the learner works, and the message states its bound."""


def _not_negative(seen: Seen) -> bool:
    return bool((seen.value >= 0).all())


def seed_field() -> Any:
    """Declare the seed of the draws."""
    return field("1", _not_negative, called="seed")


class PCALearner(Extendable, Kept, Recorded, ABC):
    """A learner that follows a k-dimensional subspace of R^d.

    Parameters
    ----------
    dim, rank, gradient_bound
        As for `EfficientPCA`.
    rng : Generator or int, optional
        Randomness of the drawn projections: one number, the seed, is taken from it, and with the round's index it gives
        the draw. `reset` and `clone` keep the seed, so they draw the same; a Generator is not asked again.
    horizon : int, optional
        Rounds the learner is tuned for, where it needs them.

    Notes
    -----
    A new one declares its state, with the fields `seed` (`seed_field`) and `clock`, and ends its constructor with
    `self._allocate(layout)`; the first state has the seed `self._seed`. It defines `_spectrum` (eigenvalues and
    eigenvectors of the present decision) and `_learn` (one round from a checked instance; returns the loss).
    """

    takes_instances = True  # and no losses

    def __init__(
        self,
        dim: int,
        rank: int,
        *,
        gradient_bound: float,
        rng: np.random.Generator | int | None,
        horizon: int | None = None,
    ) -> None:
        name = type(self).__name__
        d, k = check_count(name, "dim", dim), check_count(name, "rank", rank)
        if k >= d:
            raise InputError(
                f"The 'rank' parameter of {name} must be less than its 'dim' of {d}. Got {k}. "
                "A projection onto the whole space loses nothing, so there is nothing to learn."
            )
        check_entries(name, "dim", dim, d * d)
        G = check_positive(name, "gradient_bound", gradient_bound)
        seed = check_rng(name, rng).integers(2**63)
        if 2 * k > d:
            warnings.warn(
                f"{name}: rank k = {k} is more than half of dim d = {d}, which the paper's theorem excludes. The "
                f"method is the same; its bounds have k (d - k)/d = {k * (d - k) / d:g} in the place of k.",
                RankWarning,
                stacklevel=outside(),
            )
        self.domain = Fantope(d, k)
        self.horizon = None if horizon is None else check_count(name, "horizon", horizon)
        self.dim, self.rank, self.gradient_bound = d, k, G
        self.rng = self._given.get("rng", rng)  # as it was given, also in a copy
        self._seed = int(seed)
        self._draws: tuple[tuple[int, int], list[float]] = ((-1, -1), [])

    def _allocate(self, layout: Layout) -> None:
        """Begin the first round in memory of this layout."""
        self._memory = Memory(layout, moved=self._forget)

    def _forget(self, memory: Memory) -> None:
        """Drop the shown decision, which was made from other arrays; the seed is that of the state."""
        self._shown: Floats | None = None
        self._seed = int(memory.state.seed[0])

    def _begin(self, s: Any, c: Any) -> None:
        """Write the first state; `Plan.begin`."""
        s.seed[0] = self._seed

    def _holds(self, s: Any, c: Any, past: Past) -> Iterator[tuple[str, bool]]:
        """Yield (name, holds) for relations of the state; `Plan.holds`."""
        yield "counters", bool(s.clock[FRESH] in (0, 1) and s.clock[GRADIENTS] == s.clock[ROUNDS])
        if hasattr(s, "spectrum") and s.clock[FRESH]:
            spectrum = s.spectrum
            yield "eigenvalues", bool(np.abs(spectrum.sum() - self.rank) <= CLOSE and (np.diff(spectrum) >= 0).all())
            yield "eigenvalues", bool(spectrum[0] >= -CLOSE and spectrum[-1] <= 1 + CLOSE)

    # ------------------------------------------------------------------ to be defined by subclasses

    @abstractmethod
    def _spectrum(self) -> tuple[Floats, Floats]:
        """(s, V): the decision is the sum of s_i v_i v_i', with s ascending and v_i the rows of V.

        Raises with nothing changed.
        """

    @abstractmethod
    def _learn(self, instance: Floats) -> float:
        """Play one round from a checked instance, a vector or a matrix, and return the loss of the decision.

        All or nothing: inside `with self._round():`, or in one kernel.
        """

    def _mean(self) -> Floats:
        """Return the decision as a new array (d, d)."""
        return assemble(*self._spectrum())

    def _diagonalise(self, A: Floats) -> tuple[Floats, Floats]:
        """Return the eigenvalues of a symmetric matrix A, ascending, and A <- its eigenvectors in rows.

        LAPACK's divide and conquer, the fastest at these sizes. It reads the lower triangle of A. NumPy adds 2
        microseconds to each call, which shows in small matrices only; importing SciPy takes as long as many rounds.
        So SciPy comes later, in a round that depends on the state alone: a restored learner repeats every bit.
        """
        if self.dim < SMALL and self.rounds >= LATER:
            lapack, lwork, liwork = _lapack(self.dim)
            columns = A.T
            s, V, failed = lapack.dsyevd(columns, lower=0, lwork=lwork, liwork=liwork, overwrite_a=1)
            if failed:
                raise self._did_not_converge()
            if V is not columns:  # it may work on a copy
                columns[...] = V
            return s, A
        try:
            s, V = np.linalg.eigh(A)
        except np.linalg.LinAlgError as error:
            raise self._did_not_converge() from error
        A[...] = V.T
        return s, A

    def _did_not_converge(self) -> ProjectionError:
        return ProjectionError(f"{self._who()}: the eigendecomposition did not converge.")

    def _arguments(self) -> dict[str, Any]:
        given = super()._arguments()
        return given if isinstance(given.get("rng"), int) else given | {"rng": None}  # the seed is in the state

    # ------------------------------------------------------------------ a round

    @property
    def decision(self) -> Floats:
        """P_t, the mean of the projection that is played in this round: a read-only array (d, d) of the Fantope."""
        shown = self._shown
        if shown is None:
            shown = self._mean()
            shown.setflags(False)  # type: ignore[call-arg]  # by position: a keyword takes a third longer
            self._shown = shown
        return shown

    @property
    def projection(self) -> Floats:
        """The projection of rank k that is played in this round, drawn with mean `decision`; a new array (d, d)."""
        V = self.components
        return V.T @ V

    @property
    def components(self) -> Floats:
        """k orthonormal directions, the rows of a new (k, d) array, onto whose span `projection` projects."""
        s, V = self._spectrum()
        chosen = np.empty(self.rank, dtype=np.int64)
        kernels.systematic(s, self._uniform(), chosen)
        return V[chosen]

    @property
    def leading(self) -> Floats:
        """The k directions in which `decision` is largest, orthonormal rows (k, d): nothing is drawn.

        In practice they lose less than a drawn subspace. The theory does not cover them.
        """
        rows: Floats = self._spectrum()[1][-self.rank :]
        return rows.copy()

    def mixture(self) -> list[tuple[float, Floats]]:
        """`decision` as a mixture of at most d projections: pairs of a probability and k orthonormal rows (k, d)."""
        s, V = self._spectrum()
        return [(probability, V[chosen]) for probability, chosen in sampling.mixture(s)]

    def transform(self, x: ArrayLike) -> Floats:
        """Coordinates of a vector (d,), or of the rows of an array (n, d), along `leading`: (k,) or (n, k).

        These directions stay put between rounds; those of `components` are drawn again in each round.
        """
        array = self._read_numbers("x", x)
        if array.ndim not in (1, 2) or array.shape[-1] != self.dim:
            raise InputError(
                f"{type(self).__name__}.transform needs a vector of {self.dim} numbers or rows of them. "
                f"Got shape {array.shape}."
            )
        if not np.isfinite(array).all():
            raise InputError(f"{type(self).__name__}.transform: x has entries that are nan or infinite.")
        return array @ self.leading.T

    def update(self, x: ArrayLike) -> float:
        """One round: an instance, as a vector (d,) or as a positive semidefinite matrix (d, d).

        Returns the loss of `decision`, trace((I - P) X), which is the expected loss of `projection`. A call that is
        refused changes nothing.
        """
        loss = self._learn(self._read_instance(x))
        if self.horizon is not None:
            watch_horizon(self)
        return max(loss, 0.0)  # below only by rounding

    @contextmanager
    def _round(self) -> Iterator[None]:
        """Count the round that the body plays. All or nothing, whenever Ctrl-C comes."""
        with self._memory.all_or_nothing():
            yield
            self._shown, clock = None, self._memory.state.clock
            clock[ROUNDS] += 1
            clock[GRADIENTS] += 1
            clock[FRESH] = 0

    def _refreshed(self, spectrum: Callable[[Any], None]) -> Any:
        """Return the state, its spectrum that of the present round: `spectrum` takes an eigendecomposition of it."""
        s = self._memory.state
        if not s.clock[FRESH]:
            with self._memory.all_or_nothing():
                spectrum(s)
                s.clock[PROJECTIONS] += 1
                s.clock[FRESH] = 1
        return s

    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
        """Play one round for each row of X (n, d), in order; all of them or, if one is refused or interrupted, none."""
        del y  # as in scikit-learn
        rows = self._read_numbers("X", X)
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise InputError(
                f"{type(self).__name__}.partial_fit needs rows of {self.dim} numbers. Got shape {rows.shape}. "
                "Pass a single instance to update."
            )
        for i, row in enumerate(rows):
            self._check_size(square_norm(row), row, f"row {i} of X", "||x||^2")
        with self._memory.all_or_nothing():
            for row in rows:
                self.update(row)
        return self

    # ------------------------------------------------------------------ inspection

    @property
    def eigendecompositions(self) -> int:
        """How many eigendecompositions were computed so far."""
        return int(self._memory.state.clock[PROJECTIONS])

    @property
    def queries(self) -> Queries:
        """Projections onto the Fantope, gradients and values used so far."""
        clock = self._memory.state.clock
        return Queries(int(clock[PROJECTIONS]), int(clock[GRADIENTS]), int(clock[VALUES]))

    # ------------------------------------------------------------------ randomness, stop and resume

    def clone(self) -> Self:
        """Return a fresh one with the same arguments and the same seed, before its first round: it draws the same.

        A Generator that was given as `rng` is not asked for another number.
        """
        fresh: Self = build(type(self), self._given | {"rng": 0})
        fresh._given, fresh.rng, fresh._seed = self._given, self.rng, self._seed
        fresh.reset()
        return fresh

    def reset(self) -> None:
        """Return to the first round. The seed stays."""
        super().reset()
        self._warned_of_horizon = False

    def _restarted(self, rounds: int) -> dict[str, object]:
        seed = np.random.default_rng([self._seed, self.rounds]).integers(2**63)
        return super()._restarted(rounds) | {"rng": int(seed)}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankWarning)  # warned already when the first one was built
            super().__setstate__(kept)

    def _uniform(self) -> float:
        """The round's number in [0, 1): a function of the seed and the round, so that a saved state is complete."""
        block, place = divmod(self.rounds, DRAWS)
        key = (self._seed, block)
        if self._draws[0] != key:
            generator = np.random.Generator(np.random.Philox(key=np.array(key, dtype=np.uint64)))
            self._draws = key, generator.random(DRAWS).tolist()
        return self._draws[1][place]

    # ------------------------------------------------------------------ checks, before anything changes

    def _read_numbers(self, what: str, x: ArrayLike) -> Floats:
        array = real_array(x)
        if array is None:
            raise InputError(f"{self._who()}: {what} must be an array of real numbers. Got {short_repr(x)}.")
        return np.asarray(array, order="C")

    def _read_instance(self, x: ArrayLike) -> Floats:
        """A checked vector (d,) or symmetric matrix (d, d)."""
        d = self.dim
        instance = self._read_numbers("instance", x)
        if instance.shape == (d,):
            self._check_size(square_norm(instance), instance, "instance", "||x||^2")
            return instance
        if instance.shape == (d, d):
            return self._read_matrix(instance)
        raise InputError(
            f"{self._who()}: instance has shape {instance.shape}. Pass a vector ({d},) or a positive semidefinite "
            f"matrix ({d}, {d}); many rows go to partial_fit."
        )

    def _read_matrix(self, X: Floats) -> Floats:
        self._check_size(math.sqrt(square_norm(X.ravel())), X, "instance", "||X||_F")
        size = float(np.abs(X).max())
        skew = float(np.abs(X - X.T).max())
        if skew > SYMMETRIC * size:
            raise InputError(
                f"{self._who()}: instance is not symmetric: it differs from its transpose by {skew:g}. "
                "Pass (X + X.T)/2 if you mean that."
            )
        X = 0.5 * (X + X.T)
        if size > 0:
            try:  # Cholesky's factor exists: no eigendecomposition is spent on the check
                np.linalg.cholesky(X / size + SEMIDEFINITE * self.dim * np.eye(self.dim))
            except np.linalg.LinAlgError:
                least = float(np.linalg.eigvalsh(X)[0])
                raise InputError(
                    f"{self._who()}: instance is not positive semidefinite: its smallest eigenvalue is {least:g}. "
                    "Pass x x' or a sum of such."
                ) from None
        return X

    def _check_size(self, size: float, instance: Floats, what: str, norm: str) -> None:
        G = self.gradient_bound
        if size <= G * (1 + BOUND_SLACK):  # False for nan
            return
        if not np.isfinite(instance).all():
            raise InputError(f"{self._who()}: {what} has entries that are nan or infinite.")
        raise InputError(
            f"{self._who()}: {what} has {norm} = {size:g}, above gradient_bound = {G:g}. "
            "Give a larger gradient_bound, or scale the data down."
        )


@cache
def _lapack(d: int) -> tuple[ModuleType, int, int]:
    """SciPy's LAPACK, and the sizes of its work space for eigendecompositions of d by d matrices."""
    from scipy.linalg import lapack  # here, so that the first round stays quick

    lwork, liwork, _ = lapack.dsyevd_lwork(d)
    return lapack, int(lwork), int(liwork)


def orthonormal(V: Floats) -> bool:
    """Whether the rows of a saved matrix are orthonormal."""
    return close(V @ V.T, np.eye(len(V)))


def symmetric(A: Floats, size: float) -> bool:
    """Whether a saved matrix is symmetric, and no longer than `size` in the Frobenius norm."""
    return close(A, A.T, size) and bool(np.linalg.norm(A) <= size * (1 + CLOSE))


def close(A: Floats, B: Floats, size: float = 1.0) -> bool:
    """Whether two saved matrices with entries of this size are the same but for rounding."""
    return bool((np.abs(A - B) <= CLOSE * size).all())


def assemble(s: Floats, V: Floats) -> Floats:
    """The sum of s_i v_i v_i', with s >= 0 ascending and v_i the rows of V."""
    first = s.size - np.count_nonzero(s)
    B = V[first:] * np.sqrt(s[first:])[:, None]
    return B.T @ B  # symmetric to the bit: NumPy computes one triangle


def gram(instance: Floats) -> Floats:
    """X of a checked instance: x x' of a vector, a matrix as it is."""
    return np.multiply.outer(instance, instance) if instance.ndim == 1 else instance


def loss_at(P: Floats, instance: Floats) -> float:
    """trace((I - P) X) of a checked instance."""
    if instance.ndim == 1:
        return float(instance @ instance - instance @ P @ instance)
    return float(np.trace(instance) - np.vdot(P, instance))
