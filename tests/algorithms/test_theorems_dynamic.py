"""The theorems of the dynamic-regret family as tests: every constant explicit, the bound is the oracle.

Notation. X has diameter D and lies in the ball of radius R_X about its centre c; Y is the ball of radius R about c;
all learners start at c, which is in X for every set used here. g_t = grad f_t(x_t), h_t the surrogate gradient, u_t in
X any comparators, P = sum_{t>=2} ||u_t - u_{t-1}||, F^x = sum f_t(x_t), F^u = sum f_t(u_t).

(A) One gradient step.  x' = Pi[x - eta g] gives <g, x - u> <= (||x - u||^2 - ||x' - u||^2)/(2 eta) + (eta/2) ||g||^2,
    because projecting brings x' closer to every u of the set.

(B) Dynamic regret of a fixed step, set inside a ball of radius R about c, start at c. Write z = x - c, w = u - c. Then
    sum (||z_t - w_t||^2 - ||z_{t+1} - w_t||^2)
      = ||z_1||^2 - ||z_{T+1}||^2 + 2 <z_{T+1}, w_T> - 2 <z_1, w_1> + 2 sum_{t>=2} <z_t, w_{t-1} - w_t>
      <= 0 + max_{0<=a<=R} (2 a R - a^2) - 0 + 2 R P = R^2 + 2 R P,
    so   sum <g_t, x_t - u_t> <= (R^2/2 + R P)/eta + (eta/2) sum ||g_t||^2.
    The papers print 5R^2/2 (or 7D^2/4) for R^2/2, as they start anywhere, and eta for eta/2.

(C) Hedge with decreasing rates eps_t on the cumulative loss and prior p_1. Let m_t = -(1/eps_t) ln sum_i p_{t,i}
    exp(-eps_t l_{t,i}), the mix loss. Hoeffding: <p_t, l_t> <= m_t + eps_t r_t^2/8 with r_t the range of l_t. And
    Phi_t(eps) = -(1/eps) ln sum_i p_{1,i} exp(-eps A_{t,i}) decreases in eps, so sum m_t <= Phi_T(eps_T) <= A_{T,i} +
    ln(1/p_{1,i})/eps_T. Hence   sum <p_t - e_i, l_t> <= ln(1/p_{1,i})/eps_T + sum eps_t r_t^2/8.
    On Y, l_{t,i} = <h_t, y_{t,i}> has range r_t <= 2 R ||h_t||: the last sum is at most sum (eps_t/2) R^2 ||h_t||^2.

(D) Theorem 1. <g_t, x_t - u> <= <h_t, y_t - u> for all u in X, and ||h_t|| <= ||g_t||.

(E) f >= 0 on R^d and L-smooth has ||grad f||^2 <= 2 L f. (The paper uses 4 L f, also true.)

Regret is measured in its strongest form, sum <g_t, x_t - u_t> >= F^x - F^u, wherever the proof bounds that.
"""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from tests.twins import dynamic as ref
from tests.worlds import THIN_SETS, CountedLoss, CountedSet, examples, tau_of
from thalweg.learners.one_projection import surrogate_gradient

DOMAINS = THIN_SETS | {
    "off-centre ellipsoid": lambda: tw.domains.Ellipsoid([2.0, 0.3], bound=1.0, center=[3.0, -1.0]),
}
STYLES = ("abrupt", "gradual", "still")
SMOOTH = ("squared", "noiseless")

seeds = st.integers(0, 2**32 - 1)
horizons = st.integers(1, 400)
domains = st.sampled_from(list(DOMAINS))
kinds = st.sampled_from([*ref.STREAMS, "against", "leader"])
styles = st.sampled_from(STYLES)


def setting(domain, kind, horizon, seed, style):
    """A domain and a stream on it, from `ref.make_stream` or one of two adversaries who watch the learner.

    against  a slope of length 1 along a random axis, with the sign that makes where the learner stands the wrong side
    leader   the slope from the plain average of the members to their weighted average: believing any of them costs
    """
    x, rng = DOMAINS[domain](), np.random.default_rng(seed)
    if kind not in ("against", "leader"):
        return x, ref.make_stream(kind, x, horizon, rng, style, scale=float(rng.choice([0.3, 1.0, 4.0])))
    offset = x.diameter + np.linalg.norm(x.center)  # makes the loss >= 0 on X

    def against(axis):
        def loss(decision, ensemble):
            return ref.Linear(math.copysign(1.0, axis @ (decision - x.center)) * axis, offset)

        return loss

    def leader(axis):
        def loss(decision, ensemble):
            weights = getattr(ensemble, "weights", np.ones(1))
            believed = (weights - 1 / len(weights)) @ ensemble.points
            return ref.Linear(ref.unit(believed) if np.linalg.norm(believed) > 1e-9 else axis, offset)

        return loss

    adversary = against if kind == "against" else leader
    losses = [adversary(axis) for axis in ref.unit(rng.normal(size=(horizon, x.dim)))]
    return x, ref.Stream(losses, np.tile(x.center, (horizon, 1)), 1.0 + 1e-9, 2 * offset, None)


def play(learner, losses):
    """Everything that happened: x, g, f, and for ensembles y, h, points, weights."""
    inner = getattr(learner, "inner", learner)
    tau = tau_of(learner.domain) if learner.flattens else ref.everything  # what it makes of a gradient on a flat
    rounds = []
    for f in losses:
        x = np.array(learner.decision)
        loss = f(x, inner) if callable(f) else f
        g = tau(loss.gradient(x))
        seen = {"x": x, "g": g, "f": loss.value(x), "h": g, "y": x}
        if hasattr(inner, "weights"):
            seen |= {"points": np.array(inner.points), "weights": np.array(inner.weights)}
        if inner is not learner:
            seen["y"] = seen["weights"] @ seen["points"]
            seen["h"] = ref.surrogate_gradient(g, seen["y"], x, tau=tau)
        rounds.append(seen)
        learner.step(loss)
    run = SimpleNamespace(**{key: np.array([r[key] for r in rounds]) for key in rounds[0]})
    run.squares = float(np.sum(run.h**2))
    run.total = float(np.sum(run.f))
    return run


def rivals(domain, stream, run):
    """Comparators: the planted one, and for block lengths 1, 4, 16, ... the minimiser of each block's linear loss."""
    yield stream.planted
    horizon, length = len(run.g), 1
    while True:
        u = np.empty_like(run.x)
        for start in range(0, horizon, length):
            u[start : start + length] = ref.far_point(domain, run.g[start : start + length].sum(axis=0))
        yield u
        if length >= horizon:
            return
        length *= 4


def linear_regret(run, u):
    return float(np.sum(run.g * (run.x - u)))


def regret(stream, run, u):
    return run.total - sum(f.value(v) for f, v in zip(stream.losses, u, strict=True))


def assert_at_most(value, bound):
    assert value <= bound + 1e-9 * (1 + abs(bound)), f"{value} > {bound}"


# ---------------------------------------------------------------------------------------------------- explicit bounds


def base_bound(radius, path, eta, squares):
    """(B)."""
    return (radius**2 / 2 + radius * path) / eta + eta / 2 * squares


def printed_base_bound(radius, path, eta, squares):
    """As in the proof of Theorem 3: 5R^2/(2 eta) + (R/eta) P + eta sum ||h||^2."""
    return (5 * radius**2 / 2 + radius * path) / eta + eta * squares


def theorem_2_bound(horizon, count, radius, gradient_bound, path):
    """Meta: ln N/eps + (eps/2) T G^2R^2 with eps = sqrt(ln N/(1 + G^2R^2T)) is at most (3/2) sqrt(ln N (1 + G^2R^2T)).

    Base: let A = 5R^2 + 2RP and eta* = sqrt(A/(2TG^2)). As 0 <= P <= D_X T the pool has eta_i <= eta* <= 2 eta_i, so
    A/(2 eta_i) + (eta_i/2) T G^2 <= A/eta* + (eta*/2) T G^2 = (1 + 1/4) G sqrt(2TA).
    """
    meta = 1.5 * math.sqrt(math.log(count) * (1 + gradient_bound**2 * radius**2 * horizon))
    return meta + 1.25 * gradient_bound * math.sqrt(2 * horizon * (5 * radius**2 + 2 * radius * path))


def theorem_3_meta_bound(count, radius, gradient_bound, squares):
    """The lemma on self-confident Hedge: (C) with sum a_t/sqrt(1 + sum_{s<t} a_s) <= 4 sqrt(1 + sum a) + max a."""
    lead = 3 * math.sqrt(math.log(count) * (1 + radius**2 * squares))
    return lead + gradient_bound**2 * radius**2 * math.sqrt(math.log(count)) / 2


def theorem_3_bound(count, radius, gradient_bound, smoothness, path, total):
    """In terms of F^x = total. Meta: sum ||h||^2 <= 2 L F^x.

    Base: let A = 5R^2 + 2RP and eta* = sqrt(A/(1 + 8 L F^x)). As F^x <= BT and P <= D_X T the pool has eta_i <= eta* <=
    2 eta_i, so A/(2 eta_i) + eta_i L F^x <= A/eta* + eta* L F^x <= (1 + 1/8) sqrt(A (1 + 8 L F^x)).
    """
    spread = 5 * radius**2 + 2 * radius * path
    meta = theorem_3_meta_bound(count, radius, gradient_bound, 2 * smoothness * total)
    return meta + 1.125 * math.sqrt(spread * (1 + 8 * smoothness * total))


def printed_theorem_3_bound(count, radius, gradient_bound, smoothness, path, total):
    """The same with the paper's 4 L F^x and eta for eta/2: the base is then (3/2) sqrt(A (1 + 8 L F^x))."""
    spread = 5 * radius**2 + 2 * radius * path
    meta = theorem_3_meta_bound(count, radius, gradient_bound, 4 * smoothness * total)
    return meta + 1.5 * math.sqrt(spread * (1 + 8 * smoothness * total))


def small_loss_regret_bound(count, radius, gradient_bound, smoothness, path, comparator_loss):
    """In terms of F^u: the largest F^x - F^u allowed by F^x - F^u <= theorem_3_bound(F^x).

    The right side is concave and increasing in F^x, so iterating z <- F^u + bound(z) from above comes down to it.
    """
    z = 1e12
    for _ in range(300):
        z = comparator_loss + theorem_3_bound(count, radius, gradient_bound, smoothness, path, z)
    return z - comparator_loss


def ader_bound(horizon, diameter, gradient_bound, path):
    """Improved Ader. With A = 7D^2 + 4DP and eta* = sqrt(A/(2TG^2)), k the index with eta_k <= eta* <= 2 eta_k.

    Base: A/(4 eta_k) + (eta_k/2) T G^2 <= A/(2 eta*) + (eta*/2) T G^2 = (3/4) G sqrt(2TA).
    Meta: p_{1,k} >= 1/(k(k+1)) >= (k+1)^-2 and, with the range 2GD, alpha = sqrt(2/T)/(GD):
          ln(1/p_{1,k})/alpha + alpha T (2GD)^2/8 <= GD sqrt(T/2) (2 ln(k+1) + 1).
    """
    k = math.floor(0.5 * math.log2(1 + 4 * path / (7 * diameter))) + 1
    base = 0.75 * gradient_bound * math.sqrt(2 * horizon * (7 * diameter**2 + 4 * diameter * path))
    return base + gradient_bound * diameter * math.sqrt(horizon / 2) * (1 + 2 * math.log(k + 1))


def check_pool(x_set, stream, run, steps, radius, meta):
    """Regret to every member, of every member and of all together; yields comparators with the members' bounds."""
    meta = np.broadcast_to(meta, len(steps))
    for i in range(len(steps)):
        assert_at_most(np.sum(run.h * (run.y - run.points[:, i])), meta[i])
    for u in rivals(x_set, stream, run):
        base = np.array([base_bound(radius, ref.path_length(u), eta, run.squares) for eta in steps])
        for i in range(len(steps)):
            assert_at_most(np.sum(run.h * (run.points[:, i] - u)), base[i])
        assert_at_most(linear_regret(run, u), np.sum(run.h * (run.y - u)))  # (D)
        assert_at_most(linear_regret(run, u), np.min(meta + base))
        yield u, base


# ---------------------------------------------------------------------------------- Theorem 1: the surrogate gradient


def somewhere(domain, rng, spread=3.0):
    """A point near or well outside the set."""
    return domain.center + domain.radius * rng.uniform(0, spread) * rng.normal(size=domain.dim)


@given(seed=seeds, domain=domains)
@settings(max_examples=300)
def test_theorem_1(seed, domain):
    x_set, rng = DOMAINS[domain](), np.random.default_rng(seed)
    y, g = somewhere(x_set, rng), rng.normal(size=x_set.dim) * 10.0 ** rng.uniform(-3, 3)
    x = x_set.project(y)
    h = surrogate_gradient(g, y, x)
    size = np.linalg.norm(g)
    assert np.linalg.norm(h) <= size * (1 + 1e-12)
    np.testing.assert_allclose(h, ref.surrogate_gradient(g, y, x), rtol=0, atol=1e-12 * size)
    others = [x_set.project(somewhere(x_set, rng)) for _ in range(20)] + [ref.far_point(x_set, g), x_set.center]
    slack = 1e-9 * size * (x_set.radius + np.abs(x_set.center).max())
    for u in others:
        assert h @ (y - u) >= g @ (x - u) - slack


@given(seed=seeds, domain=domains)
@settings(max_examples=100)
def test_inside_the_set_the_surrogate_gradient_is_the_gradient(seed, domain):
    x_set, rng = DOMAINS[domain](), np.random.default_rng(seed)
    g = rng.normal(size=x_set.dim)
    y = x_set.project(somewhere(x_set, rng))
    y = x_set.center + rng.uniform(0, 1) * (y - x_set.center)
    np.testing.assert_array_equal(surrogate_gradient(g, y, y), g)
    np.testing.assert_array_equal(
        surrogate_gradient(g, y, x_set.project(y), tol=1e-12 * max(1.0, np.linalg.norm(y))), g
    )


@given(seed=seeds, domain=domains)
@settings(max_examples=100)
def test_the_rounding_of_a_solver_is_no_direction(seed, domain):
    """A projector that is off by 1e-8 must not turn its error into a unit vector."""
    x_set, rng = DOMAINS[domain](), np.random.default_rng(seed)
    y = x_set.project(somewhere(x_set, rng))
    noise = rng.normal(size=x_set.dim)
    noise *= 1e-8 * max(1.0, np.linalg.norm(y)) / np.linalg.norm(noise)
    g = rng.normal(size=x_set.dim)
    for x in (y + noise, y - noise):
        np.testing.assert_array_equal(surrogate_gradient(g, y, x, tol=1e-6 * max(1.0, np.linalg.norm(y))), g)


def test_a_true_distance_is_a_direction():
    """The tolerance is far below any distance that matters."""
    g, y = np.array([-1.0, -2.0]), np.array([1.0 + 1e-4, 0.0])
    np.testing.assert_allclose(surrogate_gradient(g, y, np.array([1.0, 0.0]), tol=1e-6), [0.0, -2.0], rtol=0, atol=1e-9)


@given(seed=seeds, d=st.integers(1, 40))
@settings(max_examples=300)
def test_straight_against_the_way_out_nothing_is_left(seed, d):
    """g = -a v: h = 0 to the bit, at any size. A part across v that is small, but no rounding, stays."""
    rng = np.random.default_rng(seed)
    v = rng.normal(size=d) * 10.0 ** rng.uniform(-6, 6)
    a = 10.0 ** rng.uniform(-6, 6)
    h = surrogate_gradient(-a * v, v, np.zeros(d))
    np.testing.assert_array_equal(h, 0.0)
    np.testing.assert_array_equal(surrogate_gradient(a * v, v, np.zeros(d)), a * v)
    if d > 1:
        across = rng.normal(size=d)
        across -= across @ v / (v @ v) * v
        across *= 1e-9 * np.linalg.norm(a * v) / np.linalg.norm(across)
        h = surrogate_gradient(-a * v + across, v, np.zeros(d))
        np.testing.assert_allclose(h, across, rtol=0, atol=1e-5 * np.linalg.norm(across))


def test_the_smallest_gradients_are_not_taken_for_rounding():
    """Where squares underflow to 0."""
    g = np.array([-1e-200, 3e-200])
    np.testing.assert_array_equal(surrogate_gradient(g, np.array([1.0, 0.0]), np.zeros(2)), [0.0, 3e-200])
    np.testing.assert_array_equal(surrogate_gradient(-g, np.array([1.0, 0.0]), np.zeros(2)), -g)


def test_theorem_1_can_fail():
    """Feeding g itself breaks the transfer of regret, and so does the correction with the opposite direction."""
    box = tw.domains.Box([-1.0, -1.0], [1.0, 1.0])
    y, g, u = np.array([3.0, 0.0]), np.array([-1.0, 0.5]), np.array([0.5, -1.0])
    x = box.project(y)
    assert surrogate_gradient(g, y, x) @ (y - u) >= g @ (x - u)
    assert g @ (y - u) < g @ (x - u) - 1
    flipped = surrogate_gradient(-g, y, x)  # where <g, v> > 0 the gradient must be left alone ...
    np.testing.assert_array_equal(flipped, -g)
    doubled = -g + (-g @ np.array([1.0, 0.0])) * np.array([1.0, 0.0])  # ... the printed PCA sign would lengthen it
    assert np.linalg.norm(doubled) > np.linalg.norm(g)


# --------------------------------------------------------------------------------------------------- a single learner


@given(seed=seeds, horizon=horizons, domain=domains, kind=kinds, style=styles)
@settings(max_examples=examples(40, slow=120))
def test_ogd(seed, horizon, domain, kind, style):
    x_set, stream = setting(domain, kind, horizon, seed, style)
    diameter, bound = x_set.diameter, stream.gradient_bound
    tuned = play(tw.OGD(x_set, horizon=horizon, gradient_bound=bound), stream.losses)
    anytime = play(tw.OGD(x_set, gradient_bound=bound), stream.losses)
    eta = float(np.random.default_rng(seed).choice([0.01, 0.3, 5.0])) * diameter / bound
    fixed = play(tw.OGD(x_set, step_size=eta), stream.losses)
    # (A) telescopes to D^2/(2 eta) + (eta/2) G^2 T for a fixed step and, by ||x_t - u|| <= D, to D^2/(2 eta_T) +
    # sum (eta_t/2) G^2 for a decreasing one; sum 1/sqrt(t) <= 2 sqrt(T) - 1.
    for run, limit in (
        (tuned, diameter * bound * math.sqrt(horizon)),
        (anytime, diameter * bound * (1.5 * math.sqrt(horizon) - 0.5)),
        (fixed, diameter**2 / (2 * eta) + eta / 2 * run_squares(fixed)),
    ):
        assert_at_most(linear_regret(run, ref.far_point(x_set, run.g.sum(axis=0))), limit)
        assert_at_most(linear_regret(run, np.tile(stream.planted[-1], (horizon, 1))), limit)
    for u in rivals(x_set, stream, fixed):
        assert_at_most(linear_regret(fixed, u), base_bound(x_set.radius, ref.path_length(u), eta, fixed.squares))


def run_squares(run):
    return float(np.sum(run.g**2))


@given(seed=seeds, horizon=horizons, domain=domains, kind=kinds, style=styles)
@settings(max_examples=examples(40, slow=120))
def test_sogd(seed, horizon, domain, kind, style):
    """(A) with eta_t = alpha/sqrt(delta + Q_t): D^2/(2 eta_T) + sum (eta_t/2) ||g_t||^2, Q_t = sum_{s<=t} ||g_s||^2.

    As sum ||g_t||^2/sqrt(delta + Q_t) <= 2 sqrt(delta + Q_T) - 2 sqrt(delta), the regret is at most
    (D^2/(2 alpha) + alpha) sqrt(delta + Q_T) - alpha sqrt(delta): sqrt(2) D sqrt(delta + Q_T) for alpha = D/sqrt(2),
    and (3/2) D sqrt(delta + Q_T) for alpha = D/2, where the paper says 2 D.
    """
    x_set, stream = setting(domain, kind, horizon, seed, style)
    diameter, rng = x_set.diameter, np.random.default_rng(seed)
    delta = float(rng.choice([1e-6, 1.0, 10.0]))
    for scale in (None, diameter / 2, diameter * float(rng.uniform(0.1, 3))):
        run = play(tw.SOGD(x_set, scale=scale, delta=delta), stream.losses)
        alpha = diameter / math.sqrt(2) if scale is None else scale
        limit = (diameter**2 / (2 * alpha) + alpha) * math.sqrt(delta + run.squares) - alpha * math.sqrt(delta)
        best = linear_regret(run, ref.far_point(x_set, run.g.sum(axis=0)))
        assert_at_most(best, limit)
        if scale is None:
            assert_at_most(limit, math.sqrt(2) * diameter * math.sqrt(delta + run.squares))
            if stream.smoothness is not None:
                # r = F^x - F^u <= sqrt(2) D sqrt(delta + 2 L (F^u + r)); solve the quadratic in r.
                for u in (stream.planted[0], ref.far_point(x_set, run.g.sum(axis=0))):
                    paid = sum(f.value(u) for f in stream.losses)
                    smooth = stream.smoothness
                    limit = 4 * smooth * diameter**2 + diameter * math.sqrt(2 * delta + 4 * smooth * paid)
                    assert_at_most(run.total - paid, limit)


# ---------------------------------------------------------------------------------------------- ensembles on X itself


@given(seed=seeds, horizon=horizons, domain=domains, kind=kinds, style=styles)
@settings(max_examples=examples(33, slow=100))
def test_improved_ader(seed, horizon, domain, kind, style):
    x_set, stream = setting(domain, kind, horizon, seed, style)
    diameter, bound = x_set.diameter, stream.gradient_bound
    learner = tw.Ader(x_set, horizon, bound)
    run = play(learner, stream.losses)
    # (C), the members lie in X: the range of <g_t, x_{t,i}> is at most D ||g_t||.
    alpha, steps = ref.ader_rate(horizon, 2 * bound * diameter), ref.ader_pool(horizon, diameter, bound)
    meta = np.log(1 / ref.ader_prior(len(steps))) / alpha + alpha / 8 * diameter**2 * run.squares
    for u, _ in check_pool(x_set, stream, run, steps, x_set.radius, meta):
        assert_at_most(linear_regret(run, u), ader_bound(horizon, diameter, bound, ref.path_length(u)))


@given(seed=seeds, horizon=st.integers(1, 120), domain=domains, kind=st.sampled_from(ref.STREAMS), style=styles)
@settings(max_examples=examples(26, slow=80))
def test_basic_ader(seed, horizon, domain, kind, style):
    """Hedge on true losses in an interval of length c = GD (G-Lipschitz, diameter D), members on their own."""
    x_set, stream = setting(domain, kind, horizon, seed, style)
    learner = tw.Ader(x_set, horizon, stream.gradient_bound, gradients="own")
    run = play(learner, stream.losses)
    width, steps = stream.gradient_bound * x_set.diameter, ref.ader_pool(horizon, x_set.diameter, stream.gradient_bound)
    alpha = ref.ader_rate(horizon, width)
    meta = np.log(1 / ref.ader_prior(len(steps))) / alpha + alpha / 8 * horizon * width**2
    of_members = np.array([[f.value(p) for p in points] for f, points in zip(stream.losses, run.points, strict=True)])
    for i in range(len(meta)):
        assert_at_most(run.total - np.sum(of_members[:, i]), meta[i])
    squares = np.array(
        [[np.sum(f.gradient(p) ** 2) for p in points] for f, points in zip(stream.losses, run.points, strict=True)]
    ).sum(axis=0)
    for u in rivals(x_set, stream, run):
        path = ref.path_length(u)
        base = [base_bound(x_set.radius, path, *pair) for pair in zip(steps, squares, strict=True)]
        assert_at_most(regret(stream, run, u), np.min(meta + base))
        assert_at_most(regret(stream, run, u), ader_bound(horizon, x_set.diameter, stream.gradient_bound, path))


@given(seed=seeds, horizon=st.integers(1, 120), domain=domains, kind=st.sampled_from(SMOOTH), style=styles)
@settings(max_examples=examples(26, slow=80))
def test_sword_with_own_gradients(seed, horizon, domain, kind, style):
    """Base: (B) and (E) give F_i - F^u <= A/eta + eta L F_i, A = R_X^2/2 + R_X P, and eta <= 1/(4L) turns that into
    F_i - F^u <= (4/3)(A/eta + eta L F^u). Meta: the lemma, with D for R.
    """
    x_set, stream = setting(domain, kind, horizon, seed, style)
    smooth, diameter = stream.smoothness, x_set.diameter
    learner = tw.Sword(x_set, horizon, stream.gradient_bound, smooth, gradients="own")
    run = play(learner, stream.losses)
    meta = theorem_3_meta_bound(len(learner.step_sizes), diameter, stream.gradient_bound, run.squares)
    for i in range(len(learner.step_sizes)):
        assert_at_most(np.sum(run.g * (run.x - run.points[:, i])), meta)
    for u in rivals(x_set, stream, run):
        spread = x_set.radius**2 / 2 + x_set.radius * ref.path_length(u)
        paid = sum(f.value(v) for f, v in zip(stream.losses, u, strict=True))
        base = 4 / 3 * np.min(spread / learner.step_sizes + learner.step_sizes * smooth * paid)
        assert_at_most(run.total - paid, meta + base)


@given(seed=seeds, horizon=horizons, domain=domains, kind=kinds, style=styles)
@settings(max_examples=examples(33, slow=100))
def test_sword_with_one_gradient(seed, horizon, domain, kind, style):
    x_set, stream = setting(domain, kind, horizon, seed, style)
    smooth, diameter, bound = stream.smoothness or 1.0, x_set.diameter, stream.gradient_bound
    learner = tw.Sword(x_set, horizon, bound, smooth, gradients="shared", loss_bound=stream.loss_bound)
    check_self_confident(x_set, stream, play(learner, stream.losses), learner, diameter, x_set.radius)


# --------------------------------------------------------------------------------------------- one projection a round


@given(seed=seeds, horizon=horizons, domain=domains, kind=kinds, style=styles, literal=st.booleans())
@settings(max_examples=examples(40, slow=120))
def test_theorem_2(seed, horizon, domain, kind, style, literal):
    x_set, stream = setting(domain, kind, horizon, seed, style)
    bound = stream.gradient_bound
    surrogate = tw.domains.Ball(x_set.dim, x_set.diameter, x_set.center) if literal else None  # R = D, as printed
    learner = tw.EfficientDynamic(x_set, horizon, bound, surrogate=surrogate)
    radius = x_set.diameter if literal else x_set.surrogate.radius
    run = play(learner, stream.losses)
    steps = ref.minimax_pool(horizon, radius, x_set.diameter, bound)
    eps = ref.minimax_rate(len(steps), horizon, radius, bound)
    assert_at_most(np.max(np.linalg.norm(run.h, axis=1)), bound)
    meta = math.log(len(steps)) / eps + eps / 2 * radius**2 * run.squares  # (C)
    assert_at_most(meta, math.log(len(steps)) / eps + eps * horizon * (2 * bound * radius) ** 2 / 8)
    for u, _ in check_pool(x_set, stream, run, steps, radius, meta):
        assert_at_most(linear_regret(run, u), theorem_2_bound(horizon, len(steps), radius, bound, ref.path_length(u)))


@given(seed=seeds, horizon=horizons, domain=domains, kind=kinds, style=styles, literal=st.booleans())
@settings(max_examples=examples(40, slow=120))
def test_theorem_3(seed, horizon, domain, kind, style, literal):
    x_set, stream = setting(domain, kind, horizon, seed, style)
    surrogate = tw.domains.Ball(x_set.dim, x_set.diameter, x_set.center) if literal else None
    learner = tw.EfficientDynamic(
        x_set,
        horizon,
        stream.gradient_bound,
        stream.smoothness or 1.0,
        loss_bound=stream.loss_bound,
        surrogate=surrogate,
    )
    radius = x_set.diameter if literal else x_set.surrogate.radius
    check_self_confident(x_set, stream, play(learner, stream.losses), learner.inner, radius, radius)


def check_self_confident(x_set, stream, run, ensemble, radius, reach):
    """Theorem 3, part by part. `radius` stands in the formulas; the members move in a ball of radius `reach` <= radius.

    The bound in terms of ||h_t|| needs no smoothness, so it holds on every stream; the small-loss forms on smooth ones.
    """
    steps, bound = ensemble.step_sizes, stream.gradient_bound
    count = len(steps)
    # (C): ln N/eps_T + sum (eps_t/2) R^2 ||h_t||^2
    squares = np.sum(run.h**2, axis=1)
    rates = [ref.small_loss_rate(count, radius, before) for before in np.cumsum(squares) - squares]
    meta = math.log(count) / rates[-1] + reach**2 / 2 * (rates @ squares)
    assert_at_most(meta, theorem_3_meta_bound(count, radius, bound, run.squares))
    for u, base in check_pool(x_set, stream, run, steps, reach, meta):
        path = ref.path_length(u)
        assert_at_most(min(base), min(printed_base_bound(radius, path, eta, run.squares) for eta in steps))
        if stream.smoothness is not None:
            args = (count, radius, bound, stream.smoothness, path)
            assert_at_most(run.total, stream.loss_bound * len(run.f))
            assert_at_most(run.squares, 2 * stream.smoothness * run.total)  # (E) and ||h|| <= ||g||
            assert_at_most(linear_regret(run, u), theorem_3_bound(*args, run.total))
            assert_at_most(theorem_3_bound(*args, run.total), printed_theorem_3_bound(*args, run.total))
            paid = sum(f.value(v) for f, v in zip(stream.losses, u, strict=True))
            assert_at_most(run.total - paid, small_loss_regret_bound(*args, paid))


# ------------------------------------------------------------------------------------------- the bounds can be broken


def test_static_ogd_breaks_the_bound_of_theorem_2():
    """Slopes that flip every sqrt(T) rounds: D/(G sqrt T) needs just that long to cross the set, so it is late."""
    horizon = 2500
    x_set = tw.domains.Ball(1)
    signs = np.where(np.arange(horizon) // 50 % 2 == 0, 1.0, -1.0)[:, None]
    problem = tw.problems.LinearLosses(signs)
    u = -signs
    path = ref.path_length(u)
    efficient = tw.EfficientDynamic(x_set, horizon, 1.0)
    limit = theorem_2_bound(horizon, len(efficient.inner.step_sizes), 1.0, 1.0, path)
    static = tw.OGD(x_set, horizon=horizon, gradient_bound=1.0)
    paid = {}
    for learner in (efficient, tw.Ader(x_set, horizon, 1.0), static):
        paid[type(learner).__name__] = float(np.sum(tw.play(learner, problem).losses) + horizon)  # f_t(u_t) = -1
    assert paid["EfficientDynamic"] <= limit
    assert paid["Ader"] <= ader_bound(horizon, 2.0, 1.0, path)
    assert paid["OGD"] > 1.2 * limit
    assert paid["OGD"] > 3 * paid["EfficientDynamic"]


def alternating_regression(horizon, stages):
    """Noiseless regression on the unit disc, whose planted point jumps from one side to the other: F^u = 0."""
    angles = np.random.default_rng(1).uniform(0, 2 * np.pi, horizon)
    features = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    u = np.zeros((horizon, 2))
    u[:, 0] = np.where(np.arange(horizon) * stages // horizon % 2 == 0, 1.0, -1.0)
    return tw.problems.LinearRegression(features, np.einsum("td,td->t", features, u)), u


def test_static_ogd_breaks_the_bound_of_theorem_3():
    """F^u = 0, so the small-loss bound is O(1 + P) = O(stages), while the static step pays about sqrt(T) a stage."""
    horizon, stages = 20_000, 20
    problem, u = alternating_regression(horizon, stages)
    x_set = tw.domains.Ball(2)
    efficient = tw.EfficientDynamic(x_set, horizon, 2.0, 1.0, loss_bound=2.0)  # |residual| <= 2, |a| = 1
    limit = small_loss_regret_bound(len(efficient.inner.step_sizes), 1.0, 2.0, 1.0, ref.path_length(u), 0.0)
    mine = tw.play(efficient, problem).losses.sum()
    static = tw.play(tw.OGD(x_set, horizon=horizon, gradient_bound=2.0), problem).losses.sum()
    assert mine <= limit / 10
    assert static > 1.5 * limit
    assert static > 30 * mine


def test_the_right_step_in_hindsight_is_what_the_ensemble_finds():
    """On the same stream no single step of the pool beats the ensemble by more than the meta-regret allows."""
    problem, u = alternating_regression(4000, 20)
    x_set = tw.domains.Ball(2)
    efficient = tw.EfficientDynamic(x_set, 4000, 2.0, 1.0, loss_bound=2.0)
    run = tw.play(efficient, problem)
    steps = efficient.inner.step_sizes
    alone = [tw.play(tw.OGD(x_set, step_size=float(eta)), problem).losses.sum() for eta in steps]
    assert max(alone) > 20 * min(alone)
    assert run.losses.sum() <= 10 * min(alone)
    assert run.losses.sum() <= small_loss_regret_bound(len(steps), 1.0, 2.0, 1.0, ref.path_length(u), 0.0)


@pytest.mark.parametrize("domain", ["ball", "box"])
def test_a_rate_that_is_too_large_breaks_the_meta_regret_of_theorem_2(domain):
    """The adversary "leader" punishes belief; Hedge with the rate of the theorem does not fall for it."""
    horizon, beyond = 400, {}
    for factor in (1, 30):
        x_set, stream = setting(domain, "leader", horizon, 0, "still")
        radius, bound = x_set.surrogate.radius, stream.gradient_bound
        steps = ref.minimax_pool(horizon, radius, x_set.diameter, bound)
        eps = ref.minimax_rate(len(steps), horizon, radius, bound)
        run = play(tw.Ensemble(x_set.surrogate, steps, meta_rate=factor * eps), stream.losses)
        limit = math.log(len(steps)) / eps + eps / 2 * radius**2 * run.squares
        beyond[factor] = max(np.sum(run.h * (run.y - run.points[:, i])) for i in range(len(steps))) / limit
    assert beyond[1] < 0.5
    assert beyond[30] > 1.2


@pytest.mark.parametrize("theorem", [2, 3])
@pytest.mark.parametrize("unit", [1e-8, 1e-3, 1.0, 1e3, 1e8])
@pytest.mark.parametrize("known", [True, False], ids=["built-in set", "custom set"])
def test_the_bound_does_not_know_the_unit_of_length(known, unit, theorem):
    """A thin box and one slope, at 60 degrees to it, for ever. The far point of Y projects to the middle of X's half.

    Without the correction, x_t would stay there and pay cos(60)(1 - cos(60)) = 1/4 of the reach in every round. Lengths
    scale with the unit and slopes against it, so that the game is the same one in every unit.
    """
    horizon, reach = 3000, np.array([1.0, 1e-3])
    box = tw.domains.Box(-unit * reach, unit * reach)
    x_set = box if known else tw.domains.Custom(box.project, 2, box.center, box.radius)
    slope = np.array([0.5, math.sqrt(0.75)]) / unit
    offset = slope @ reach * unit
    learner = tw.EfficientDynamic(
        x_set,
        horizon,
        1.001 / unit,
        None if theorem == 2 else 1.0 / unit**2,
        loss_bound=2 * offset,
        surrogate=tw.domains.Ball(2, box.radius),
    )
    run = tw.play(learner, tw.problems.LinearLosses(np.tile(slope, (horizon, 1)), np.full(horizon, offset)))
    count, bound = len(learner.inner.step_sizes), 1.001 / unit
    if theorem == 2:
        limit = theorem_2_bound(horizon, count, box.radius, bound, 0.0)
    else:  # the linear loss is not smooth in the sense of (E): Theorem 3 in terms of ||h_t|| <= G
        meta = theorem_3_meta_bound(count, box.radius, bound, horizon * bound**2)
        limit = meta + min(base_bound(box.radius, 0.0, eta, horizon * bound**2) for eta in learner.inner.step_sizes)
    assert_at_most(run.losses.sum(), limit)  # the best corner pays 0


@pytest.mark.slow
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("kind", ref.STREAMS)
def test_long_runs_stay_under_the_bounds(domain, kind):
    x_set, stream = setting(domain, kind, 5000, 11, "abrupt")
    bound, smooth = stream.gradient_bound, stream.smoothness or 1.0
    learner = tw.EfficientDynamic(x_set, 5000, bound, smooth, loss_bound=stream.loss_bound)
    radius = x_set.surrogate.radius
    check_self_confident(x_set, stream, play(learner, stream.losses), learner.inner, radius, radius)
    learner = tw.EfficientDynamic(x_set, 5000, bound)
    run = play(learner, stream.losses)
    for u in rivals(x_set, stream, run):
        limit = theorem_2_bound(5000, len(learner.inner.step_sizes), radius, bound, ref.path_length(u))
        assert_at_most(linear_regret(run, u), limit)


# ----------------------------------------------------------------------------------------------------------- counting


# name: (make, projections, gradients, values), the counts a round as functions of N
COUNTS = {
    "OGD": (lambda d, n, g: tw.OGD(d, horizon=n, gradient_bound=g), lambda n: (1, 1, 0)),
    "SOGD": (lambda d, n, g: tw.SOGD(d), lambda n: (1, 1, 0)),
    "Ader, improved": (lambda d, n, g: tw.Ader(d, n, g), lambda n: (n, 1, 0)),
    "Ader, basic": (lambda d, n, g: tw.Ader(d, n, g, gradients="own"), lambda n: (n, n, n)),
    "Sword, shared": (lambda d, n, g: tw.Sword(d, n, g, 1.0, gradients="shared"), lambda n: (n, 1, 0)),
    "Sword, own": (lambda d, n, g: tw.Sword(d, n, g, 1.0, gradients="own"), lambda n: (n, n + 1, 0)),
    "EfficientDynamic, Theorem 2": (lambda d, n, g: tw.EfficientDynamic(d, n, g), lambda n: (1, 1, 0)),
    "EfficientDynamic, Theorem 3": (lambda d, n, g: tw.EfficientDynamic(d, n, g, 1.0), lambda n: (1, 1, 0)),
}


def members(learner):
    return len(getattr(getattr(learner, "inner", learner), "step_sizes", [0]))


@pytest.mark.parametrize("how", ["step", "play"])
@pytest.mark.parametrize("name", COUNTS)
def test_queries_are_what_the_theorems_promise(name, how):
    """Counted by the set and the losses themselves. The value of the loss that was paid is reported, not queried."""
    make, per_round = COUNTS[name]
    exact, horizon = tw.domains.Box([-1.0, -1.0, 0.0], [1.0, 0.5, 0.2]), 37
    stream = ref.make_stream("squared", exact, horizon, np.random.default_rng(3))
    counted = CountedSet(exact)
    learner = make(counted.domain, horizon, stream.gradient_bound)
    # A learner on X may project its starting point, and says so; the efficient ones do not touch X before round 1.
    start = learner.queries.projections
    assert counted.calls == start
    assert start <= (0 if "Efficient" in name else 1)
    losses = [CountedLoss(f) for f in stream.losses]
    if how == "play":
        run = tw.play(learner, tw.problems.FromLosses(losses, exact.shape)).queries
        assert (run.projections, run.gradients, run.values) == (
            learner.queries.projections - start,
            learner.queries.gradients,
            learner.queries.values,
        )
    else:
        for f in losses:
            learner.decision  # noqa: B018
            learner.step(f)
            learner.queries  # noqa: B018
    queries = learner.queries
    projections, gradients, values = (horizon * k for k in per_round(members(learner)))
    assert (queries.projections - start, queries.gradients, queries.values) == (projections, gradients, values)
    assert counted.calls == queries.projections
    assert sum(f.gradients for f in losses) == gradients
    assert sum(f.values for f in losses) == values + horizon


@pytest.mark.parametrize("theorem", [2, 3])
def test_planted_comparators_of_the_built_in_problem(theorem):
    x_set = tw.domains.Ball(4, radius=2.0)
    problem = tw.problems.piecewise_stationary(x_set, 400, 8, rng=np.random.default_rng(2))
    u = np.array(problem.comparators)
    bound, smooth, worst = problem.gradient_bound(x_set), problem.smoothness, problem.loss_bound(x_set)
    assert u.shape == (400, 4)
    assert all(x_set.contains(v) for v in u)
    learner = tw.EfficientDynamic(x_set, 400, bound, smooth if theorem == 3 else None, loss_bound=worst)
    run = tw.play(learner, problem, decisions=True)
    paid, best = run.losses.sum(), problem.losses_of(u).sum()
    count, path = len(learner.inner.step_sizes), ref.path_length(u)
    if theorem == 2:
        assert_at_most(paid - best, theorem_2_bound(400, count, 2.0, bound, path))
    else:
        assert_at_most(paid - best, small_loss_regret_bound(count, 2.0, bound, smooth, path, best))
