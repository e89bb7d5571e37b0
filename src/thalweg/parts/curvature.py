"""Members that follow curvature: recursive least squares on the cut loss, one that restarts, and Kalman filters.

With r = <h, y - y_C>, u = P h and w = <h, u>, in rounds with 0 < f < inf:

    y_C <- the ball's point nearest to y_C - u (2f - r)/(2f + w);   P <- P - u u'/(2f + w)               (1)

P starts at 2f/(0.03 ||h||^2) I. For a squared loss f = e^2/2, h = e a this is least squares with a weak prior.
Where losses are not given, f is that of `thalweg.parts.estimate`, and its mixture M takes the second one's place.
The second one, D, watches its own error, e_D = (2f - r)^2/(4f), which for squared losses is its loss:

    nu = e_D 2f/(2f + w);   a = max(0, a + nu/s - 2)                   s: the mean of nu over ~100 rounds,    (2)
                                                                       at least 1e-14 of the largest so far
    a > 12: a = 0, y_D = home, P = (e_D/s)(2f/||h||^2) I               e_D the larger of before and at home   (3)

(2) is a one-sided CUSUM: a drifts down while errors stay below twice their mean. Below 1e-14 errors are rounding.
The change is evident where it took one round: nu > 1000 s.
With values there are two more, the walkers. They suppose that the best decision walks, slowly or fast; after (1)

    P <- P + q d (mean of 2f)/(mean of ||h||^2) I                      q = 0.001, 0.1; means over ~100 rounds     (4)

For squared losses each is the Kalman filter of a walk: in a round a coefficient moves by sqrt(q) noise widths over the
width of a feature.
"""

from typing import NamedTuple

import numpy as np

from thalweg._core.rules import magnitude, within
from thalweg._core.state import Plan, field
from thalweg._core.types import Floats
from thalweg._kernels.hulls import flatten
from thalweg._kernels.jit import inner
from thalweg._kernels.vectors import copy
from thalweg.parts.cut_descent import Around, CutDescentState, bring_back, gain_of

MEMBERS = 4  # C, D and the walkers
WALKING = 2  # the walkers have the first rows of members, C and D the next two
BLIND_ROW, RESTARTING = WALKING, WALKING + 1  # the first row in use without values, and that of D
WEAK = 0.03  # the prior of P
WALKS = np.array([0.0, 0.0, 1e-3, 1e-1])  # q of C, D and the walkers
SHARE = 0.5  # of the descents' prior, for each of them
BLIND_SHARE = 1.0  # the same without values, where descents are worth less
ALARM, DRIFT, WINDOW = 12.0, 2.0, 100.0  # of (2), (3)
NU_ROUNDING = 1e-14  # of the largest nu
EVIDENT = 1e3  # times the noise level
JUMP = 10.0  # the error that restarted D counts as at most this many noise levels
LARGEST_CURVATURE = 1e150  # of an entry of P, of an error and of a step
LARGEST_MEAN = 1e300
NOISE, SUM, ROUNDS, MOST = 0, 1, 2, 3  # of `watch`: the mean of nu, a, the rounds D has seen, the largest nu


class CurvatureState(NamedTuple):
    """C is 0, D is 1, the walkers are 2 and 3; Q of them, none where no member follows curvature.

    P is symmetric. Entries to the right of the 4 x 4 blocks on its diagonal are neither read nor updated.
    """

    P: Floats = field("Q d d", magnitude(5 * LARGEST_CURVATURE))
    watch: Floats = field("4", within(0.0, 5 * LARGEST_CURVATURE))  # the errors of D
    means: Floats = field("2", within(0.0, LARGEST_MEAN))  # of 2f and of ||h||^2


def curvature_plan(members: int, dim: int) -> Plan:
    """Return the plan of all members, of C alone, or of none."""
    return Plan(CurvatureState, (), {"Q": members, "d": dim})


@inner
def _reset(P: Floats, size: float) -> None:
    if not size < LARGEST_CURVATURE:  # or nan
        size = LARGEST_CURVATURE
    for i in range(P.shape[0]):
        for j in range(P.shape[0]):
            P[i, j] = size if i == j else 0.0


@inner
def begin_curvature(s: CurvatureState, members: CutDescentState, around: Around, prior: float, first: int) -> None:
    """The first round: rows from `first` on at home, and with this prior each."""
    for i in range(first, MEMBERS):
        copy(around.home, members.points[i])
        members.logs[i] = np.log(prior)
    for i in range(4):
        s.watch[i] = 0.0
    s.means[0] = s.means[1] = 0.0


@inner
def fresh(P: Floats, f: float, n: float) -> None:
    """P as at the start."""
    _reset(P, 2.0 * f / (WEAK * n))


@inner
def _ahead(P: Floats, around: Around, h: Floats, u: Floats) -> tuple[float, float]:
    """u <- P h; returns w and ||u||^2. Four rows of P at a time, each entry for its row and for its column.

    P never learns about directions across a flat, and would make rounding large there.
    """
    d = h.shape[0]
    for block in range(d // 4):
        i = 4 * block
        a, b, c, e = P[i], P[i + 1], P[i + 2], P[i + 3]
        of_a = of_b = of_c = of_e = 0.0
        for j in range(i + 4):  # the last four entries of u are replaced below
            of_a += a[j] * h[j]
            of_b += b[j] * h[j]
            of_c += c[j] * h[j]
            of_e += e[j] * h[j]
            u[j] += a[j] * h[i] + b[j] * h[i + 1] + c[j] * h[i + 2] + e[j] * h[i + 3]
        u[i], u[i + 1], u[i + 2], u[i + 3] = of_a, of_b, of_c, of_e
    for i in range(d - d % 4, d):
        total = P[i, i] * h[i]
        for j in range(i):
            total += P[i, j] * h[j]
            u[j] += P[i, j] * h[i]
        u[i] = total
    flatten(around.flat, around.normals, u)
    w, square = 0.0, 0.0
    for j in range(d):
        w += u[j] * h[j]
        square += u[j] * u[j]
    return w if w < np.inf else np.inf, square  # inf also where w is nan


@inner
def _less(P: Floats, u: Floats, rate: float) -> None:
    """P <- P - rate u u', four rows at a time."""
    d = u.shape[0]
    for block in range(d // 4):
        i = 4 * block
        a, b, c, e = P[i], P[i + 1], P[i + 2], P[i + 3]
        of_a, of_b, of_c, of_e = rate * u[i], rate * u[i + 1], rate * u[i + 2], rate * u[i + 3]
        for j in range(i + 4):
            a[j] -= of_a * u[j]
            b[j] -= of_b * u[j]
            c[j] -= of_c * u[j]
            e[j] -= of_e * u[j]
    for i in range(d - d % 4, d):
        scaled = rate * u[i]
        for j in range(i + 1):
            P[i, j] -= scaled * u[j]


@inner
def _fits(w: float, square: float, f: float) -> bool:
    """Whether P is as it should be: w >= 0, and the step of (1) takes away no more than there can be."""
    return 0.0 <= w < np.inf and square <= 2.0 * LARGEST_CURVATURE * (2.0 * f + w)


@inner
def _error(f: float, gain: float) -> float:
    return min((2.0 * f - gain) * ((2.0 * f - gain) / (4.0 * f)), LARGEST_CURVATURE)


@inner
def move_curved(
    s: CurvatureState, members: CutDescentState, around: Around, h: Floats, n: float, f: float, y: Floats,
    gains: Floats, u: Floats, count: int,
) -> bool:  # fmt: skip
    """(1)-(4) for the first `count`, given their gains. u is scratch space.

    Returns whether a change was evident.
    """
    d, evident, unit = h.shape[0], False, 0.0
    if not 0.0 < f < np.inf:
        return False
    if count > WALKING:
        share = 1.0 / min(s.watch[ROUNDS] + 1.0, WINDOW)
        s.means[0] += (2.0 * f - s.means[0]) * share
        s.means[1] += (n - s.means[1]) * share
        unit = min(d * (s.means[0] / s.means[1]), LARGEST_CURVATURE)
    for k in range(count):
        row = (k + WALKING) % MEMBERS
        point, P = members.points[row], s.P[k]
        gain = gains[row]
        w, square = _ahead(P, around, h, u)
        if not _fits(w, square, f):  # rounding has spoilt P
            fresh(P, f, n)
            w, square = _ahead(P, around, h, u)
        if k == 1:
            error = _error(f, gain)
            nu = error * (2.0 * f / (2.0 * f + w))  # (2)
            s.watch[MOST] = max(s.watch[MOST], nu)
            noise = max(s.watch[NOISE], NU_ROUNDING * s.watch[MOST])
            if noise > 0.0 and s.watch[ROUNDS] > 1.0:
                s.watch[SUM] = max(0.0, s.watch[SUM] + nu / noise - DRIFT)
            if s.watch[SUM] > ALARM:  # (3)
                s.watch[SUM] = 0.0
                copy(around.home, point)
                gain = gain_of(h, y, point)
                error = max(error, _error(f, gain))
                _reset(P, error / noise * (2.0 * f / n))
                w, square = _ahead(P, around, h, u)
                evident = nu > EVIDENT * noise
                nu = min(nu, JUMP * noise)
            s.watch[ROUNDS] += 1.0
            s.watch[NOISE] += (nu - s.watch[NOISE]) / min(s.watch[ROUNDS], WINDOW)
        rate = 1.0 / (2.0 * f + w)
        step = (2.0 * f - gain) * rate
        if not (_fits(w, square, f) and step * square * step < LARGEST_CURVATURE * LARGEST_CURVATURE):
            continue  # f and h are too far apart for floating point
        far = 0.0
        for j in range(d):
            point[j] -= step * u[j]
            far += (point[j] - around.center[j]) * (point[j] - around.center[j])
        bring_back(around, point, far)
        _less(P, u, rate)  # (1); no root: scaling losses by any power of two must change no bit
        if k >= WALKING:
            for i in range(d):
                P[i, i] = min(P[i, i] + WALKS[k] * unit, LARGEST_CURVATURE)  # (4)
    return evident
