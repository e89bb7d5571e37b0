"""Tuning constants of a learning controller: the size of its policies, and two scales of its loss.

The theory (Zhao, Yan, Wang, Zhou, JMLR 24, 2023, Section 5) has, for a (kappa, gamma)-strongly stable gain, kappa_B =
max(1, ||B||), tau = kappa_B kappa^3, disturbances up to W and costs with ||grad c|| <= G_c D where ||x||, ||u|| <= D:

    H      = ceil(ln(kappa^2 T)/gamma)                                                     (1)
    c_i    = tau (1 - gamma)^i,   ||M_i|| <= c_i                                           (2)
    D      = W kappa^3 (1 + H kappa_B tau)/(gamma (1 - kappa^2 (1 - gamma)^{H+1})) + W tau/gamma        (3)
    L_f    = 3 sqrt(H) G_c D W kappa_B kappa^3,   lambda = (H + 2)^2 L_f                   (4)
    G_f    = sqrt(H) G_c D W (1 + kappa_B kappa^2 (1 + kappa)/gamma)                       (5)

They hold for every disturbance and every cost, and they are astronomical: learners tuned with them hardly move. So
`theory_constants` is for inspection, and controllers use `estimated_constants`.
"""

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.recorded import Recorded
from thalweg._core.types import Floats
from thalweg._core.validate import (
    check_array,
    check_count,
    check_entries,
    check_nonnegative,
    check_positive,
    check_positives,
    wrong,
)
from thalweg.control.gains import check_gain, closed_loop, strong_stability
from thalweg.control.system import LinearSystem
from thalweg.errors import InputError, MemoryWarning

__all__ = ["Constants", "estimated_constants", "theory_constants"]

FORGOTTEN = 0.1  # a memory is long enough when less than this much of a push is left after it
LONGEST_MEMORY = 50  # the longest memory that is chosen by itself


@dataclass(frozen=True)
class Constants(Recorded):
    """The tuning constants of a learning controller.

    Attributes
    ----------
    caps : array (H,)
        c_i: the learned matrices obey ||M_i|| <= c_i, and H is the memory.
    gradient_bound : float or None
        G_f, at least the length of a gradient of the truncated loss. None: measured in the first rounds.
    switching_cost : float or None
        lambda, the largest cost of a unit of movement of M. None: measured in the first rounds.
    margin : float
        Factor of all measured constants, since gradients grow when M, the costs or the disturbances do.
    """

    caps: Floats
    gradient_bound: float | None = None
    switching_cost: float | None = None
    margin: float = 8.0

    def __post_init__(self) -> None:
        caps = check_array("Constants", "caps", self.caps, ndim=1)
        caps = check_positives("Constants", "caps", caps, max(1, caps.size))
        object.__setattr__(self, "caps", caps)
        if (self.gradient_bound is None) != (self.switching_cost is None):
            raise InputError(
                "Constants: give both gradient_bound and switching_cost, or neither to have them measured."
            )
        checks = {"gradient_bound": check_positive, "margin": check_positive, "switching_cost": check_nonnegative}
        for key, check in checks.items():
            if (value := getattr(self, key)) is not None:
                object.__setattr__(self, key, check("Constants", key, value))

    @property
    def memory(self) -> int:
        """H."""
        return int(self.caps.size)


def estimated_constants(
    system: LinearSystem,
    gain: ArrayLike | None = None,
    *,
    memory: int | None = None,
    strength: float = 1.0,
    margin: float = 8.0,
) -> Constants:
    """Return caps from the response of the linear controller; the two scales are measured later.

    To a push w, i rounds ago, u = -K x responds with -K F^{i-1} w, F = A - B K. The learned part may be `strength`
    times as strong as the strongest such response from then on:

        c_i = strength * max_{j >= i} ||K F^{j-1}||

    and the memory, where it is left out, is the least H with ||F^j|| <= 0.1 for all j > H, but at most 50. Where that
    cuts it short, a `MemoryWarning` says how much of a push is left after it, and if this is more than the push itself,
    ||F^j|| >= 1 for some j > 50, an error: the truncated loss would then have little to do with the cost.

    Parameters
    ----------
    system, gain
        As for every `Controller`.
    memory : int, optional
        H.
    strength : float
        See above.
    margin : float
        As in `Constants`.
    """
    who = "estimated_constants"
    K = check_gain(who, system, gain)
    s = check_positive(who, "strength", strength)
    loop = closed_loop(system, K)
    radius = float(np.abs(np.linalg.eigvals(loop)).max())
    memory = None if memory is None else check_count(who, "memory", memory)
    far = LONGEST_MEMORY + 2 + (memory or 0)
    far += math.ceil(math.log(1e-3) / math.log(radius)) if radius > 1e-3 else 3  # beyond, all has decayed
    power = np.eye(system.state_dim)
    left, response = [], []
    for _ in range(min(far, 10_000)):
        response.append(float(np.linalg.norm(K @ power, 2)))
        power = loop @ power
        left.append(float(np.linalg.norm(power, 2)))
    if memory is None:
        later = np.maximum.accumulate(left[::-1])[::-1]  # of ||F^j||, j >= 1 .. : the largest from there on
        short = np.flatnonzero(later <= FORGOTTEN)
        needed = int(max(1, short[0])) if short.size else None
        memory = min(LONGEST_MEMORY, needed or LONGEST_MEMORY)
        if needed != memory:
            _refuse_or_warn(who, system, float(later[memory]), needed)
    if memory > len(response):
        raise wrong(who, "memory", f"at most {len(response)}", memory)
    caps = s * np.maximum.accumulate(response[::-1])[::-1][:memory]
    if not caps[0] > 0:
        raise InputError(
            f"{who}: the gain is zero, so it says nothing about the size of policies. Give Constants(caps=...)."
        )
    return Constants(np.maximum(caps, 1e-6 * caps[0]), margin=margin)


def _refuse_or_warn(who: str, system: LinearSystem, left: float, needed: int | None) -> None:
    """Say that the closed loop is too slow for the longest memory that is chosen by itself."""
    enough = "" if needed is None else f"memory={needed} ({system.lasts(needed)}), "
    said = (
        f"{who}: the closed loop is slow. Of a push {left:.3g} times its size is left after "
        f"{system.lasts(LONGEST_MEMORY)}, the longest memory that is chosen by itself. Give {enough}a faster gain or a "
        "longer sampling period, or use TrackingControl, which needs no memory."
    )
    if left >= 1:
        raise InputError(said)
    warnings.warn(said, MemoryWarning, stacklevel=4)


def theory_constants(
    system: LinearSystem,
    gain: ArrayLike | None = None,
    *,
    horizon: int,
    disturbance_bound: float,
    growth: float,
    memory: int | None = None,
) -> Constants:
    """(1)-(5): constants that hold in the worst case.

    Parameters
    ----------
    system, gain
        As for every `Controller`.
    horizon : int
        T.
    disturbance_bound : float
        W.
    growth : float
        G_c: ||grad_x c||, ||grad_u c|| <= G_c D wherever ||x||, ||u|| <= D. The costs of this package state theirs.
    memory : int, optional
        H; (1) when left out. It must be long enough for (3).

    Notes
    -----
    The published G_f is 3 H d^2 G_c W kappa_B kappa^3/gamma. Its proof loses a factor D, without which it is no bound.
    (5) follows from the gradient: sqrt(H) blocks, each at most W (sum_j ||F^j B|| ||q|| + ||c_u||) long.
    """
    who = "theory_constants"
    T, W = check_count(who, "horizon", horizon), check_positive(who, "disturbance_bound", disturbance_bound)
    G_c = check_positive(who, "growth", growth)
    certificate = strong_stability(system, gain)
    kappa, gamma = certificate.kappa, certificate.gamma
    kappa_B = max(1.0, float(np.linalg.norm(system.B, 2)))
    tau = kappa_B * kappa**3
    H = math.ceil(math.log(kappa**2 * T) / gamma) if memory is None else check_count(who, "memory", memory)
    check_entries(who, "memory", memory, H)
    left = kappa**2 * (1 - gamma) ** (H + 1)
    if not left < 1:
        least = math.floor(2 * math.log(kappa) / -math.log1p(-gamma))
        raise InputError(
            f"The 'memory' parameter of {who} must be at least {least} here: the theory needs "
            f"kappa^2 (1 - gamma)^(H+1) < 1, with {certificate!r}. Got {H}."
        )
    D = W * kappa**3 * (1 + H * kappa_B * tau) / (gamma * (1 - left)) + W * tau / gamma  # (3)
    L_f = 3 * math.sqrt(H) * G_c * D * W * kappa_B * kappa**3  # (4)
    G_f = math.sqrt(H) * G_c * D * W * (1 + kappa_B * kappa**2 * (1 + kappa) / gamma)  # (5)
    caps: Floats = tau * (1 - gamma) ** np.arange(1.0, H + 1.0)  # (2)
    return Constants(caps, G_f, (H + 2) ** 2 * L_f)
