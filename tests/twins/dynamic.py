"""Slow twins: plain transcriptions of the dynamic-regret algorithms, and streams to run them on.

One function per algorithm, in the order and with the letters of the papers. A function takes a list of losses
(anything with `value(x)` and `gradient(x)`), a projection and the constants, plays all rounds and returns a `Trace`.
Nothing of the package is used: the caller passes `domain.project`. No speed, no cleverness, one member at a time.

    [Z18]  Zhang, Lu, Zhou. Adaptive online learning in dynamic environments. NeurIPS 2018.                  (Ader)
    [Z20]  Zhao, Zhang, Zhang, Zhou. Dynamic regret of convex and smooth functions. NeurIPS 2020.            (Sword)
    [Z25]  Zhao, Xie, Zhang, Zhou. Efficient methods for non-stationary online learning. JMLR 26, 2025.      (Alg. 1)

Points are flat vectors. c is the centre of the set, where everything starts; a ball is c + {z : ||z|| <= R}.

On a set that lies in a flat, the part of a gradient across it cannot matter: `flattened` takes it off every gradient,
and `tau`, the projection along the normals of the flat, off the way from x to y in the reduction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

# ------------------------------------------------------------------------------------------------------------- losses


@dataclass(frozen=True)
class Linear:
    """f(x) = <g, x> + b."""

    slope: np.ndarray
    offset: float = 0.0

    def value(self, x):
        return float(self.slope @ x + self.offset)

    def gradient(self, x):
        return self.slope.copy()


@dataclass(frozen=True)
class Absolute:
    """f(x) = |<a, x> - b|, with subgradient 0 at the kink."""

    features: np.ndarray
    label: float

    def value(self, x):
        return abs(float(self.features @ x - self.label))

    def gradient(self, x):
        return np.sign(self.features @ x - self.label) * self.features


@dataclass(frozen=True)
class Squared:
    """f(x) = (<a, x> - b)^2 / 2."""

    features: np.ndarray
    label: float

    def value(self, x):
        return float(self.features @ x - self.label) ** 2 / 2

    def gradient(self, x):
        return (self.features @ x - self.label) * self.features


# -------------------------------------------------------------------------------------------------------------- flats


def along(normals) -> Callable:
    """tau: v -> its part orthogonal to the rows of `normals`."""
    rows = np.asarray(normals, dtype=float)
    return lambda v: v - rows.T @ np.linalg.lstsq(rows @ rows.T, rows @ v, rcond=None)[0]


def everything(v):
    """tau of a set with inner points."""
    return v


@dataclass(frozen=True)
class Flat:
    """f, with tau of its gradient."""

    loss: object
    tau: Callable

    def value(self, x):
        return self.loss.value(x)

    def gradient(self, x):
        return self.tau(self.loss.gradient(x))


def flattened(losses, tau):
    return [Flat(f, tau) for f in losses]


# ------------------------------------------------------------------------------------------------------------- traces


@dataclass
class Trace:
    """What happened in every round, and what it cost."""

    decisions: list = field(default_factory=list)  # x_t
    losses: list = field(default_factory=list)  # f_t(x_t); reading it is not a query of the algorithm
    gradients: list = field(default_factory=list)  # g_t = grad f_t(x_t), where the algorithm asks for it
    fed: list = field(default_factory=list)  # h_t, what the ensemble on Y was fed
    inner: list = field(default_factory=list)  # y_t, its decision
    points: list = field(default_factory=list)  # (N, d): the decisions of the members
    weights: list = field(default_factory=list)  # (N,): p_t
    rates: list = field(default_factory=list)  # the meta rate behind p_t
    projections: int = 0
    gradient_queries: int = 0
    value_queries: int = 0

    def add(self, **seen) -> None:
        """Append what was seen in a round."""
        for name, value in seen.items():
            getattr(self, name).append(value)

    def arrays(self) -> Trace:
        for name in ("decisions", "losses", "gradients", "fed", "inner", "points", "weights", "rates"):
            setattr(self, name, np.array(getattr(self, name)))
        return self


# ---------------------------------------------------------------------------------------------------------- constants


def ader_pool(horizon, diameter, gradient_bound):
    """N = ceil(log2(1 + 4T/7) / 2) + 1 steps eta_i = 2^(i-1) (D/G) sqrt(7/(2T))."""
    count = math.ceil(0.5 * math.log2(1 + 4 * horizon / 7)) + 1
    return np.array(
        [2 ** (i - 1) * diameter / gradient_bound * math.sqrt(7 / (2 * horizon)) for i in range(1, count + 1)]
    )


def ader_prior(count):
    """p_{1,i} = (1 + 1/N) / (i (i + 1)): sums to one because sum 1/(i(i+1)) = 1 - 1/(N+1)."""
    return np.array([(1 + 1 / count) / (i * (i + 1)) for i in range(1, count + 1)])


def ader_rate(horizon, loss_bound):
    """alpha = sqrt(8 / (T c^2)) for losses in an interval of length c."""
    return math.sqrt(8 / (horizon * loss_bound**2))


def sword_pool(horizon, diameter, gradient_bound, smoothness):
    """eta_i = min(2^(i-1) sqrt(D/(16 L G T)), 1/(4L)), N = ceil(log2(G T/(D L)) / 2) + 1, at least one."""
    ratio = gradient_bound * horizon / (diameter * smoothness)
    count = max(1, math.ceil(0.5 * math.log2(ratio)) + 1)
    first = math.sqrt(diameter / (16 * smoothness * gradient_bound * horizon))
    return np.array([min(2 ** (i - 1) * first, 1 / (4 * smoothness)) for i in range(1, count + 1)])


def minimax_pool(horizon, radius, diameter, gradient_bound):
    """[Z25, Theorem 2] with Y of radius R: the grid covers eta* = sqrt((5R^2 + 2R P)/(2 T G^2)) for 0 <= P <= D_X T."""
    count = math.ceil(0.5 * math.log2(1 + 2 * diameter * horizon / (5 * radius))) + 1
    first = radius / gradient_bound * math.sqrt(5 / (2 * horizon))
    return np.array([2 ** (i - 1) * first for i in range(1, count + 1)])


def minimax_rate(count, horizon, radius, gradient_bound):
    """[Z25, Theorem 2] epsilon = sqrt(ln N / (1 + G^2 R^2 T))."""
    return math.sqrt(math.log(count) / (1 + gradient_bound**2 * radius**2 * horizon))


def small_loss_pool(horizon, radius, diameter, smoothness, loss_bound):
    """[Z25, Theorem 3]: the grid covers eta* = sqrt((5R^2 + 2R P)/(1 + 8 L F)) for 0 <= P <= D_X T, 0 <= F <= B T."""
    worst = 1 + 8 * smoothness * loss_bound * horizon
    widest = 5 * radius**2 + 2 * radius * diameter * horizon
    count = math.ceil(0.5 * math.log2(widest * worst / (5 * radius**2))) + 1
    first = math.sqrt(5 * radius**2 / worst)
    return np.array([2 ** (i - 1) * first for i in range(1, count + 1)])


def small_loss_rate(count, radius, square_sum):
    """[Z25, Theorem 3] eps_t = sqrt(ln N / (1 + R^2 sum_{s<t} ||h_s||^2))."""
    return math.sqrt(math.log(count) / (1 + radius**2 * square_sum))


# -------------------------------------------------------------------------------------------------------------- parts


def ball(center, radius) -> Callable:
    """The projection onto {y : ||y - c|| <= R}: rescale y - c. (On the sphere [Z25, Alg. 1] prints both.)"""

    def project(y):
        z = y - center
        n = np.sqrt(z @ z)
        return y.copy() if n <= radius else center + z * (radius / n)

    return project


def softmax(logits):
    """exp(a_i) / sum_j exp(a_j)."""
    e = np.exp(logits - np.max(logits))
    return e / np.sum(e)


def surrogate_gradient(g, y, x, tol=1e-7, tau=everything):
    """[Z25, Lemma 1]: h = g if <g, v> >= 0, else g - <g, v> v, with v = (y - x)/||y - x|| and x = Pi_X[y].

    With y - x in the flat, as g is: its part across is no direction in which X ends.
    """
    gap = tau(y - x)
    n = np.linalg.norm(gap)
    if n <= tol * max(1.0, np.linalg.norm(y)):  # y is in X: there is no direction, v = 0
        return g.copy()
    v = gap / n
    a = g @ v
    return g.copy() if a >= 0 else g - a * v


# -------------------------------------------------------------------------------------------------------- one learner


def descent(losses, project, center, eta):
    """Gradient descent; eta(t, q) is the step of round t, q the sum of squared gradients up to it."""
    trace = Trace()
    x, q = project(center), 0.0
    for t, f in enumerate(losses, start=1):
        g = f.gradient(x)
        trace.gradient_queries += 1
        trace.add(decisions=x, losses=f.value(x), gradients=g)
        q = q + g @ g
        x = project(x - eta(t, q) * g)
        trace.projections += 1
    return trace.arrays()


def ogd(losses, project, center, *, step_size=None, diameter=None, gradient_bound=None, horizon=None):
    """Zinkevich 2003: x_{t+1} = Pi_X[x_t - eta_t g_t], eta_t fixed, D/(G sqrt T) or D/(G sqrt t)."""
    if step_size is not None:
        return descent(losses, project, center, lambda t, q: step_size)
    return descent(losses, project, center, lambda t, q: diameter / (gradient_bound * math.sqrt(horizon or t)))


def sogd(losses, project, center, *, scale, delta=1.0):
    """Scale-free OGD: eta_t = alpha / sqrt(delta + sum_{s<=t} ||g_s||^2). The sum has the current gradient in it."""
    return descent(losses, project, center, lambda t, q: scale / math.sqrt(delta + q))


# ---------------------------------------------------------------------------------------------- ensembles on X itself


def ader(losses, project, center, *, horizon, diameter, gradient_bound, gradients="shared", loss_bound=None):
    """[Z18]: Algorithms 1-2 (basic, gradients="own") and 3-4 (improved, gradients="shared"). Hedge in product form."""
    etas = ader_pool(horizon, diameter, gradient_bound)
    n_members = len(etas)
    trace = Trace()
    p = ader_prior(n_members)
    if gradients == "own":
        alpha = ader_rate(horizon, gradient_bound * diameter if loss_bound is None else loss_bound)
    else:
        alpha = ader_rate(horizon, 2 * gradient_bound * diameter)  # <g, x_i - x> lies in [-GD, GD]
    points = np.array([project(center)] * n_members)
    for f in losses:
        x = center + sum(p[i] * (points[i] - center) for i in range(n_members))
        trace.add(decisions=x, losses=f.value(x), points=points, weights=p, rates=alpha)

        if gradients == "own":
            loss = np.array([f.value(points[i]) for i in range(n_members)])
            steps = [f.gradient(points[i]) for i in range(n_members)]
            trace.value_queries += n_members
            trace.gradient_queries += n_members
        else:
            g = f.gradient(x)
            loss = np.array([g @ (points[i] - x) for i in range(n_members)])
            steps = [g] * n_members
            trace.gradients.append(g)
            trace.gradient_queries += 1

        p = p * np.exp(-alpha * (loss - np.min(loss)))
        p = p / np.sum(p)
        points = np.array([project(points[i] - etas[i] * steps[i]) for i in range(n_members)])
        trace.projections += n_members
    return trace.arrays()


def sword(losses, project, center, *, horizon, diameter, gradient_bound, smoothness, gradients="own", loss_bound=None):
    """[Z20], small-loss variant: own gradients for the members (N + 1 a round), or one shared gradient.

    Meta, both: p_{t+1,i} ∝ exp(-eps_{t+1} sum_{s<=t} <g_s, x_{s,i}>), g_s = grad f_s(x_s). A rate that varies must
    multiply the whole sum.
    """
    if gradients == "own":
        etas = sword_pool(horizon, diameter, gradient_bound, smoothness)
    else:
        bound = gradient_bound * diameter if loss_bound is None else loss_bound
        etas = small_loss_pool(horizon, diameter, diameter, smoothness, bound)
    n_members = len(etas)
    trace = Trace()
    cumulative = np.zeros(n_members)  # sum_{s<t} <g_s, x_{s,i} - c>: the shift by c is the same for every i
    q = 0.0
    points = np.array([project(center)] * n_members)
    for f in losses:
        eps = small_loss_rate(n_members, diameter, q)
        p = softmax(-eps * cumulative)
        x = center + sum(p[i] * (points[i] - center) for i in range(n_members))
        g = f.gradient(x)
        trace.add(decisions=x, losses=f.value(x), gradients=g, points=points, weights=p, rates=eps)
        trace.gradient_queries += 1

        if gradients == "own":
            steps = [f.gradient(points[i]) for i in range(n_members)]
            trace.gradient_queries += n_members
        else:
            steps = [g] * n_members

        cumulative = cumulative + np.array([g @ (points[i] - center) for i in range(n_members)])
        q = q + g @ g
        points = np.array([project(points[i] - etas[i] * steps[i]) for i in range(n_members)])
        trace.projections += n_members
    return trace.arrays()


# ----------------------------------------------------------------------------------------------------- one projection


def one_projection_ogd(losses, project, project_y, center, *, step_size, tau=everything):
    """The reduction around the plainest inner algorithm: y_{t+1} = Pi_Y[y_t - eta h_t], x_t = Pi_X[y_t]."""
    trace = Trace()
    y = project_y(center)
    for f in losses:
        x = project(y)
        trace.projections += 1
        g = f.gradient(x)
        trace.gradient_queries += 1
        h = surrogate_gradient(g, y, x, tau=tau)
        trace.add(decisions=x, losses=f.value(x), gradients=g, fed=h, inner=y)
        y = project_y(y - step_size * h)
    return trace.arrays()


def efficient_dynamic(
    losses,
    project,
    center,
    radius,
    *,
    horizon,
    diameter,
    gradient_bound,
    smoothness=None,
    loss_bound=None,
    project_y=None,
    tau=everything,
):
    """[Z25], Algorithm 1 on Y = {y : ||y - c|| <= R}. Theorem 2 without `smoothness`, Theorem 3 with it.

    `project` and `diameter` belong to X, `center` and `radius` to Y. Another cheap set inside that ball may stand in
    for Y: then `project_y` is its projection.
    """
    project_y = project_y or ball(center, radius)
    if smoothness is None:
        etas = minimax_pool(horizon, radius, diameter, gradient_bound)
    else:
        bound = gradient_bound * diameter if loss_bound is None else loss_bound
        etas = small_loss_pool(horizon, radius, diameter, smoothness, bound)
    n_members = len(etas)
    trace = Trace()
    cumulative = np.zeros(n_members)
    q = 0.0
    z = np.zeros((n_members, len(center)))  # y_{t,i} - c
    for f in losses:
        # lines 7-9: weights, combination, the only projection onto X
        if smoothness is None:
            eps = minimax_rate(n_members, horizon, radius, gradient_bound)
        else:
            eps = small_loss_rate(n_members, radius, q)
        p = softmax(-eps * cumulative)
        y = center + sum(p[i] * z[i] for i in range(n_members))
        x = project(y)
        trace.projections += 1
        # lines 3-5: the gradient of the surrogate loss
        g = f.gradient(x)
        trace.gradient_queries += 1
        h = surrogate_gradient(g, y, x, tau=tau)
        trace.add(decisions=x, losses=f.value(x), gradients=g, fed=h, inner=y, points=center + z, weights=p, rates=eps)
        # line 6: every member steps and is pulled back into Y; its loss is that of the point it had
        cumulative = cumulative + np.array([h @ z[i] for i in range(n_members)])
        q = q + h @ h
        z = np.array([project_y(center + (z[i] - etas[i] * h)) - center for i in range(n_members)])
    return trace.arrays()


# ------------------------------------------------------------------------------------------------------------ streams


@dataclass
class Stream:
    """A sequence of losses, a comparator that was planted in it, and the constants that hold for it over the domain."""

    losses: list
    planted: np.ndarray  # (T, d): u_t in X
    gradient_bound: float  # G >= ||grad f_t|| over X
    loss_bound: float  # B >= f_t over X
    smoothness: float | None  # L, when f_t is smooth and non-negative everywhere


def walk(domain, horizon, rng, style):
    """(T, d): points of X that jump now and then, drift a little every round, or stay."""
    dim = domain.center.size

    def anywhere():
        return domain.project(domain.center + domain.radius * rng.normal(size=dim))

    here = anywhere()
    out = np.empty((horizon, dim))
    for t in range(horizon):
        if style == "abrupt" and rng.random() < 6 / horizon:
            here = anywhere()
        elif style == "gradual":
            here = domain.project(here + domain.radius * rng.normal(size=dim) / math.sqrt(horizon))
        out[t] = here
    return out


def unit(vectors):
    """Each vector scaled to length one."""
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def far_point(domain, direction):
    """A point of X that (almost) minimises <direction, u>: the projection of a point far away down the slope."""
    n = np.linalg.norm(direction)
    if n == 0:
        return domain.project(domain.center)
    return domain.project(domain.center - 1e4 * domain.radius * direction / n)


STREAMS = ("linear", "flipping", "absolute", "squared", "noiseless")


def make_stream(kind, domain, horizon, rng, style="abrupt", scale=1.0):
    """Losses around a planted walk.

    linear     random slopes; the planted point is the block-wise minimiser of a hidden trend
    flipping   full-length slopes near one axis whose sign flips in random blocks; u_t is the far end of the set
    absolute   |<a_t, x> - b_t|, b_t = <a_t, u_t> + noise
    squared    (<a_t, x> - b_t)^2 / 2, the same labels
    noiseless  the same with b_t = <a_t, u_t>: the comparator pays nothing
    """
    dim, c, reach = domain.center.size, domain.center, domain.radius
    if kind in ("linear", "flipping"):
        trend = walk(domain, horizon, rng, style) - c
        slopes = rng.normal(size=(horizon, dim)) + 2 * trend / reach
        if kind == "flipping":
            # A little off the axis: on a sphere around a round X, a slope that points straight out leaves h_t = 0 up to
            # rounding, the largest steps of Theorem 3 blow that rounding up, and no two programs agree on the rest.
            axis = unit(rng.normal(size=dim))
            signs = np.cumprod(np.where(rng.random(horizon) < 1 / math.sqrt(horizon), -1.0, 1.0))
            slopes = signs[:, None] * (axis + 0.3 * unit(rng.normal(size=(horizon, dim))))
            slopes = scale * unit(slopes)
            planted = np.array([far_point(domain, sign * axis) for sign in signs])
        else:
            slopes = scale * slopes / np.maximum(1.0, np.linalg.norm(slopes, axis=1, keepdims=True))
            planted = np.array([far_point(domain, v) for v in trend])
        top = float(np.max(np.linalg.norm(slopes, axis=1))) * (1 + 1e-9)
        losses = [Linear(g, offset=float(top * reach - g @ c)) for g in slopes]  # in [0, 2 G reach] on X
        return Stream(losses, planted, top, 2 * top * reach, None)

    planted = walk(domain, horizon, rng, style)
    features = rng.normal(size=(horizon, dim))
    features = scale * rng.uniform(0.2, 1.0, size=(horizon, 1)) * unit(features)
    noise = 0.0 if kind == "noiseless" else 0.1 * scale * reach
    labels = np.einsum("td,td->t", features, planted) + noise * rng.normal(size=horizon)
    lengths = np.linalg.norm(features, axis=1)
    residual = np.abs(features @ c - labels) + lengths * reach  # >= |<a_t, x> - b_t| on X
    if kind == "absolute":
        losses = [Absolute(a, b) for a, b in zip(features, labels, strict=True)]
        return Stream(losses, planted, float(lengths.max()) * (1 + 1e-9), float(residual.max()), None)
    losses = [Squared(a, b) for a, b in zip(features, labels, strict=True)]
    return Stream(
        losses,
        planted,
        float(np.max(residual * lengths)) * (1 + 1e-9),
        float(np.max(residual) ** 2 / 2),
        float(np.max(lengths) ** 2) * (1 + 1e-12),
    )


def path_length(u):
    """P_T = sum_{t>=2} ||u_t - u_{t-1}||."""
    return float(np.sum(np.linalg.norm(np.diff(u, axis=0), axis=1)))
