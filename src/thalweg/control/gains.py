"""Linear state feedback u = -K x: the LQR gain, and how strongly a gain stabilises.

K is (kappa, gamma)-strongly stable for (A, B) if

    A - B K = Q L Q^{-1}   with   ||L|| <= 1 - gamma,   ||K||, ||Q||, ||Q^{-1}|| <= kappa                     (1)

(operator norms). Every stabilising K is, for some numbers; there are many such pairs, and a smaller kappa costs a
smaller gamma. Policies and constants of the theory grow with kappa^3/gamma, so that ratio is made small here.
"""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import check_array, short_repr, wrong
from thalweg.control.equations import optimal, real_eigenvectors, schur_basis, solve_lyapunov, solve_riccati
from thalweg.control.system import LinearSystem
from thalweg.errors import InputError

__all__ = [
    "Design", "StrongStability", "check_gain", "check_system", "closed_loop", "lqr_gain", "riccati", "solving",
    "strong_stability", "weight",
]  # fmt: skip

RESIDUAL = 1e-8  # how exact (1) must be, relative to ||A - B K||
DECAY_TRIALS = 40  # trials between the least and the largest decay, for the two methods that trade it


@dataclass(frozen=True)
class StrongStability:
    """A certificate of (1).

    Attributes
    ----------
    kappa, gamma : float
        kappa >= 1 and 0 < gamma <= 1.
    transform, contraction : array
        Q and L, with ||Q|| = ||Q^{-1}||.
    method : str
        How Q was found: "eigenvectors", "schur" or "lyapunov".
    """

    kappa: float
    gamma: float
    transform: Floats
    contraction: Floats
    method: str

    def __repr__(self) -> str:
        return f"StrongStability(kappa={self.kappa:.4g}, gamma={self.gamma:.4g}, by {self.method})"


def weight(owner: str, name: str, value: ArrayLike | None, dim: int | None = None, *, definite: bool) -> Floats:
    """A symmetric matrix >= 0 (> 0 with `definite`), the identity when left out; a number or a vector is a diagonal.

    Without `dim` it says itself how large it is.
    """
    array = np.eye(dim or 0) if value is None else check_array(owner, name, value)
    if dim is None:
        if array.ndim == 0 or not len(array):
            raise wrong(owner, name, "a vector or a matrix", value)
        dim = len(array)
    if array.ndim < 2:
        array = np.diag(np.broadcast_to(array, (dim,)) if array.ndim == 0 else array)
    array = check_array(owner, name, array, shape=(dim, dim))
    least = float(np.linalg.eigvalsh(array).min())
    size = float(np.abs(array).max())
    if not np.allclose(array, array.T, atol=1e-9 * size) or least < -1e-9 * size or (definite and least <= 0):
        raise InputError(
            f"The '{name}' parameter of {owner} must be a symmetric matrix with eigenvalues "
            f"{'> 0' if definite else '>= 0'}. Got least eigenvalue {least:g}."
        )
    return (array + array.T) / 2


def lqr_gain(system: LinearSystem, Q: ArrayLike | None = None, R: ArrayLike | None = None) -> Floats:
    """K that minimises sum x'Q x + u'R u for u = -K x, from the discrete Riccati equation.

    Parameters
    ----------
    system : LinearSystem
        The plant; it must be stabilisable.
    Q, R : array, vector or number, optional
        Weights of the state and of the input, identities when left out. Vectors and numbers are diagonals.

    Examples
    --------
    >>> from thalweg.control import double_integrator, lqr_gain
    >>> lqr_gain(double_integrator(period=1.0)).round(3)
    array([[0.434, 1.028]])
    """
    return riccati("lqr_gain", system, Q, R).K


class Design(NamedTuple):
    """The best linear feedback u = -K x for sum x'Q x + u'R u; x'P x is its cost from state x without disturbances."""

    Q: Floats
    R: Floats
    P: Floats
    K: Floats


def riccati(owner: str, system: LinearSystem, Q: ArrayLike | None, R: ArrayLike | None) -> Design:
    """Read the weights Q and R, identities when left out, and solve the discrete Riccati equation for them."""
    check_system(owner, system)
    q = weight(owner, "Q", Q, system.state_dim, definite=False)
    r = weight(owner, "R", R, system.input_dim, definite=True)
    try:
        with solving():
            P = solve_riccati(system.A, system.B, q, r)
            K, _ = optimal(system.A, system.B, r, P)
    except (np.linalg.LinAlgError, ValueError) as error:
        raise InputError(
            f"{owner}: the Riccati equation of {system!r} has no stabilising solution ({error}). The system must be "
            "stabilisable, and Q must see every mode on the unit circle."
        ) from error
    return Design(q, r, P, K)


@contextmanager
def solving() -> Iterator[None]:
    """Linear algebra whose outcome is checked afterwards: numbers that are too large for it need no warning."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # SciPy's of ill-conditioned matrices is one
        yield


def check_system(owner: str, system: object) -> None:
    """A LinearSystem, or an error."""
    if not isinstance(system, LinearSystem):
        known = hasattr(system, "A") and hasattr(system, "dt")
        hint = " Write LinearSystem.from_control(plant)." if known else ""
        raise InputError(f"The 'system' parameter of {owner} must be a LinearSystem. Got {short_repr(system)}.{hint}")


def closed_loop(system: LinearSystem, gain: Floats) -> Floats:
    """A - B K."""
    return system.A - system.B @ gain


def check_gain(owner: str, system: LinearSystem, gain: ArrayLike | None) -> Floats:
    """A stabilising gain as a new array; the LQR gain with identity weights when left out."""
    check_system(owner, system)
    K = lqr_gain(system) if gain is None else check_array(owner, "gain", gain)
    check_array(owner, "gain", K, shape=(system.input_dim, system.state_dim))
    radius = float(np.abs(np.linalg.eigvals(closed_loop(system, K))).max())
    if not radius < 1:
        raise InputError(
            f"The 'gain' parameter of {owner} must stabilise the system: all eigenvalues of A - B K inside the unit "
            f"circle. Got one of size {radius:.6g}. Leave it out for the LQR gain; note the sign, u = -K x."
        )
    return K


def strong_stability(system: LinearSystem, gain: ArrayLike | None = None) -> StrongStability:
    """The certificate with the least kappa^3/gamma that three constructions give, each one checked.

    * eigenvectors: Q diagonalises A - B K (2 by 2 rotations for complex pairs), so 1 - gamma is the spectral radius.
      Bad when eigenvectors are nearly parallel.
    * schur: Q = U D with the real Schur form of A - B K and D = diag(1, s, s^2, ..), which shrinks the part above
      the diagonal. Works for defective matrices.
    * lyapunov: F'P F - r^2 P = -r^2 I for a decay r above the spectral radius, and Q = P^{-1/2}.

    Raises
    ------
    InputError
        The gain does not stabilise the system.

    Examples
    --------
    >>> from thalweg.control import double_integrator, strong_stability
    >>> strong_stability(double_integrator(period=1.0))
    StrongStability(kappa=1.304, gamma=0.3089, by schur)
    """
    K = check_gain("strong_stability", system, gain)
    loop = closed_loop(system, K)
    size = float(np.linalg.norm(K, 2))
    tried = (_certify(loop, size, Q, method) for method, Q in _transforms(loop))
    found = [certificate for certificate in tried if certificate is not None]
    if not found:
        raise InputError(
            "strong_stability: A - B K is too ill-conditioned for a certificate in floating point. Scale the states."
        )
    return min(found, key=lambda c: c.kappa**3 / c.gamma)


def _certify(loop: Floats, gain_size: float, Q: Floats, method: str) -> StrongStability | None:
    """(1) for this Q, or None where it does not hold: everything is computed from Q again."""
    with np.errstate(all="ignore"):
        sizes = np.linalg.svd(Q, compute_uv=False) if np.isfinite(Q).all() else np.zeros(1)
        if not sizes[-1] > 0 or sizes[0] / sizes[-1] > 1e12:
            return None
        Q = Q / math.sqrt(sizes[0] * sizes[-1])  # now ||Q|| = ||Q^{-1}||
        L = np.asarray(np.linalg.solve(Q, loop @ Q), dtype=np.float64)
        inverse = np.linalg.inv(Q)
        error = float(np.linalg.norm(Q @ L @ inverse - loop, 2))
    shrink = float(np.linalg.norm(L, 2))
    if not (error <= RESIDUAL * max(1.0, float(np.linalg.norm(loop, 2))) and shrink < 1):
        return None
    kappa = max(1.0, gain_size, float(np.linalg.norm(Q, 2)), float(np.linalg.norm(inverse, 2)))
    return StrongStability(kappa, 1.0 - shrink, Q, L, method)


def _transforms(loop: Floats) -> Iterator[tuple[str, Floats]]:
    """Candidates for Q."""
    d = len(loop)
    values, vectors = np.linalg.eig(loop)
    yield "eigenvectors", real_eigenvectors(values, vectors)
    U = schur_basis(loop, values, vectors)
    for s in np.geomspace(1e-3, 1.0, DECAY_TRIALS):
        yield "schur", U * s ** np.arange(d)
    radius = float(np.abs(values).max())
    decays = radius + (1 - radius) * np.linspace(0.02, 1.0, DECAY_TRIALS)
    with np.errstate(all="ignore"):
        found = solve_lyapunov(loop / decays[:, None, None], np.eye(d))
    for P in found[np.isfinite(found).all(axis=(1, 2))]:
        sizes, basis = np.linalg.eigh(P)
        if sizes.min() > 0:
            yield "lyapunov", (basis / np.sqrt(sizes)) @ basis.T
