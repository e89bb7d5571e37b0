"""Plants, gains, disturbances and costs: against identities, finite differences and python-control."""

import re
import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.signal
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.control import (
    DAC,
    LQR,
    AbsoluteCost,
    BangBang,
    EfficientControl,
    HuberCost,
    LinearFeedback,
    LinearSystem,
    QuadraticCost,
    TruncatedLoss,
    batch_reactor,
    best_policies,
    boeing_747,
    closed_loop_norm,
    double_integrator,
    equations,
    estimated_constants,
    h_infinity_gain,
    inverted_pendulum,
    lqr_gain,
    piecewise,
    random_walk,
    recorded,
    simulate,
    sinusoid,
    stages,
    strong_stability,
    theory_constants,
)
from thalweg.control.gains import solving
from thalweg.domains import SpectralBalls
from thalweg.errors import InputError, MemoryWarning

PLANTS = {make.__name__: make for make in (double_integrator, inverted_pendulum, boeing_747, batch_reactor)}
every_plant = pytest.mark.parametrize("plant", PLANTS)


def random_system(rng, states=4, inputs=2, radius=1.1):
    A = rng.standard_normal((states, states))
    poles = np.linalg.eigvals(A)
    sign = -1.0 if poles.real.max() < 0 else 1.0  # not as in continuous time
    return LinearSystem(sign * A * radius / np.abs(poles).max(), rng.standard_normal((states, inputs)))


# ------------------------------------------------------------------------------------------------------------- system


def test_a_step_and_a_rollout_are_the_recursion():
    rng = np.random.default_rng(0)
    s = random_system(rng)
    u, w, x = rng.standard_normal((6, 2)), rng.standard_normal((6, 4)), rng.standard_normal(4)
    states = s.rollout(u, w, x)
    for t in range(6):
        assert np.array_equal(states[t], x)
        x = s.step(x, u[t], w[t])
    assert np.allclose(states[6], x, rtol=1e-13)
    assert np.array_equal(s.step(np.ones(4), np.zeros(2)), s.A @ np.ones(4))


@pytest.mark.parametrize("period", [0.05, 0.5])
def test_sampling_is_zero_order_hold(period):
    rng = np.random.default_rng(1)
    A, B = rng.standard_normal((4, 4)), rng.standard_normal((4, 2))
    s = LinearSystem.sampled(A, B, period)
    ours = scipy.signal.cont2discrete((A, B, np.eye(4), np.zeros((4, 2))), period)
    assert np.abs(s.A - ours[0]).max() < 1e-12
    assert np.abs(s.B - ours[1]).max() < 1e-12


def test_the_plants_are_those_of_the_literature():
    """Eigenvalues in continuous time, as published: the pendulum's unstable mode, the reactor's two."""
    assert double_integrator(1.0).A.tolist() == [[1, 1], [0, 1]]
    poles = np.sort(np.log(np.linalg.eigvals(inverted_pendulum(0.05).A).astype(complex)).real / 0.05)
    assert np.abs(poles - [-5.6041, -0.1428, 0.0, 5.5651]).max() < 1e-3
    poles = np.sort(np.log(np.linalg.eigvals(batch_reactor(0.1).A).astype(complex)).real / 0.1)
    assert np.abs(poles - [-8.6659, -5.0566, 0.0635, 1.9910]).max() < 1e-3
    poles = np.log(np.linalg.eigvals(boeing_747(0.5).A).astype(complex)) / 0.5
    slow, fast = sorted(poles[poles.imag > 0], key=abs)  # phugoid and short period
    assert abs(slow) == pytest.approx(0.0674, abs=1e-3)
    assert abs(fast) == pytest.approx(0.9642, abs=1e-2)


@pytest.mark.parametrize("kind", ["plain", "stiff", "decayed", "large B", "turning"])
def test_exponential_against_scipy(kind):
    rng = np.random.default_rng(0)
    for _ in range(30):
        d = int(rng.integers(1, 7))
        A = rng.standard_normal((d, d))
        if kind == "stiff":
            A -= np.diag(10.0 ** rng.uniform(0, 4, d))
        elif kind == "decayed":
            A -= 20 * np.eye(d)
        elif kind == "large B":
            A = np.vstack([np.hstack([A, 1e6 * rng.standard_normal((d, 1))]), np.zeros(d + 1)])
        elif kind == "turning":
            A = 30 * (A - A.T)
        judge = scipy.linalg.expm(A)
        assert np.abs(equations.exponential(A) - judge).max() <= 1e-11 * np.abs(judge).max()


@pytest.mark.parametrize(("strange", "known"), [(0.0, 1.0), (-1e12, 0.0), (-1e200, 0.0), (1e-200, 1.0), (1e-300, 1.0)])
def test_exponential_of_extreme_numbers(strange, known):
    A = np.diag([strange, 0.0, 1.0])
    assert np.abs(equations.exponential(A) - np.diag([known, 1.0, np.e])).max() < 1e-14
    A = np.array([[0.0, strange], [0.0, 0.0]])  # of which nothing but I + A is left
    assert np.array_equal(equations.exponential(A), np.eye(2) + A)


def test_exponential_of_a_matrix_far_from_normal():
    """e^(V J V^-1) is known; many halvings would cost all digits."""
    for large in (1e3, 1e6, 1e9):
        A = np.array([[-1.0, large], [0.0, -2.0]])
        known = np.array([[np.exp(-1), large * (np.exp(-1) - np.exp(-2))], [0.0, np.exp(-2)]])
        assert np.allclose(equations.exponential(A), known, rtol=1e-13)


# -------------------------------------------------------------------------------------------------------------- gains


def riccati_residual(A, B, Q, R, P):
    """Relative to the terms of the equation; and the spectral radius under the gain from P."""
    K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    size = np.linalg.norm(P) + np.linalg.norm(A.T @ P @ A)
    return np.linalg.norm(Q + A.T @ P @ (A - B @ K) - P) / size, np.abs(np.linalg.eigvals(A - B @ K)).max()


def check_riccati(A, B, Q, R, P):
    """P solves the equation, and the gain from it stabilises."""
    residual, radius = riccati_residual(A, B, Q, R, P)
    assert residual <= 1e-13
    assert radius < 1
    assert np.array_equal(P, P.T)


@every_plant
def test_riccati_against_scipy_on_the_plants(plant, monkeypatch):
    s, rng = PLANTS[plant](), np.random.default_rng(0)
    A, B = s.A, s.B
    judges = []
    for _ in range(10):
        Q = np.diag(10.0 ** rng.uniform(-1, 1, s.state_dim))
        R = np.diag(10.0 ** rng.uniform(-1, 1, s.input_dim))
        judges.append((Q, R, scipy.linalg.solve_discrete_are(A, B, Q, R)))
    monkeypatch.setattr(scipy.linalg, "solve_discrete_are", None)  # doubling does it
    for Q, R, judge in judges:
        P = equations.solve_riccati(A, B, Q, R)
        check_riccati(A, B, Q, R, P)
        assert np.abs(P - judge).max() <= 1e-10 * np.abs(judge).max()


@settings(max_examples=100)
@given(
    seed=st.integers(0, 2**32 - 1),
    states=st.integers(1, 8),
    inputs=st.integers(1, 3),
    radius=st.floats(0.1, 2.0),
    spread=st.floats(0.0, 1.5),
)
def test_riccati_is_never_worse_than_scipy(seed, states, inputs, radius, spread):
    """Also where states differ by orders of magnitude, and where there is no solution."""
    rng = np.random.default_rng(seed)
    s = random_system(rng, states, inputs, radius)
    units = np.diag(10.0 ** rng.uniform(-spread, spread, states))
    A, B = units @ s.A @ np.linalg.inv(units), units @ s.B
    Q = np.diag(10.0 ** rng.uniform(-2, 2, states))
    R = np.diag(10.0 ** rng.uniform(-2, 2, inputs))
    with solving():
        try:
            judge = scipy.linalg.solve_discrete_are(A, B, Q, R)
        except (np.linalg.LinAlgError, ValueError) as error:
            with pytest.raises(type(error), match=re.escape(str(error))):
                equations.solve_riccati(A, B, Q, R)
            return
        P = equations.solve_riccati(A, B, Q, R)
    if not np.array_equal(P, judge):
        check_riccati(A, B, Q, R, P)
        inexact, _ = riccati_residual(A, B, Q, R, judge)
        assert np.abs(P - judge).max() <= (1e-10 + 1e5 * inexact) * np.abs(judge).max()


def test_riccati_where_doubling_finds_another_solution():
    """Q does not see an unstable mode, or one at the unit circle: the solution is that of SciPy's solver."""
    one = np.ones((1, 1))
    for A in (2.0, 1.0, 1 - 1e-7):
        judge = scipy.linalg.solve_discrete_are(A * one, one, 0 * one, one)
        assert np.array_equal(equations.solve_riccati(A * one, one, 0 * one, one), judge)
    assert equations.solve_riccati(2 * one, one, 0 * one, one) == pytest.approx(3)


@pytest.mark.parametrize(
    ("A", "B", "Q"),
    [
        (2 * np.eye(2), [[1.0], [0.0]], np.eye(2)),
        (np.eye(2), [[1.0], [0.0]], np.eye(2)),
        (np.diag([1.0, 0.5]), [[0.0], [1.0]], np.eye(2)),
    ],
)
def test_riccati_without_a_solution_is_the_error_of_scipy(A, B, Q):
    with solving():
        with pytest.raises(np.linalg.LinAlgError) as known:
            scipy.linalg.solve_discrete_are(A, np.array(B), Q, np.eye(1))
        with pytest.raises(np.linalg.LinAlgError, match=re.escape(str(known.value))):
            equations.solve_riccati(A, np.array(B), Q, np.eye(1))
    with pytest.raises(InputError, match="stabilisable"):
        lqr_gain(LinearSystem(A, B), Q)


@given(seed=st.integers(0, 2**32 - 1), states=st.integers(1, 7))
def test_lyapunov_against_scipy(seed, states):
    rng = np.random.default_rng(seed)
    F = np.stack([random_system(rng, states, 1, radius).A for radius in (0.01, 0.5, 0.99)])
    Q = rng.standard_normal((states, states))
    Q = Q @ Q.T
    for one, P in zip(F, equations.solve_lyapunov(F, Q), strict=True):
        judge = scipy.linalg.solve_discrete_lyapunov(one.T, Q)
        assert np.allclose(P, judge, rtol=0, atol=1e-9 * np.abs(judge).max())
        assert np.abs(one.T @ P @ one + Q - P).max() <= 1e-12 * np.abs(P).max() * max(1, np.linalg.norm(one, 2) ** 2)


@pytest.mark.parametrize("kind", ["plain", "scaled", "defective", "symmetric"])
def test_schur_basis_against_scipy(kind):
    """T has nothing below its blocks, equal diagonal entries in each, and the eigenvalues of A."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        d = int(rng.integers(1, 7))
        A = rng.standard_normal((d, d))
        if kind == "scaled":
            A *= 10.0 ** rng.uniform(-2, 2, (d, 1))
        elif kind == "defective":
            A = 0.5 * np.eye(d) + np.diag(np.ones(d - 1), 1)
            A[-1, 0] = rng.choice([0.0, 1e-12])
        elif kind == "symmetric":
            A = A + A.T
        U = equations.schur_basis(A, *np.linalg.eig(A))
        assert np.abs(U.T @ U - np.eye(d)).max() < 1e-14
        T, size = U.T @ A @ U, np.linalg.norm(A)
        for i in np.flatnonzero(np.abs(np.diag(T, -1)) > 1e-12 * size):
            assert T[i, i] == pytest.approx(T[i + 1, i + 1], abs=1e-12 * size)
            assert T[i, i + 1] * T[i + 1, i] < 0
            T[i + 1, i] = 0
        assert np.abs(np.tril(T, -1)).max() <= 1e-13 * size


@every_plant
def test_lqr_gain_solves_the_riccati_equation(plant):
    s, rng = PLANTS[plant](), np.random.default_rng(0)
    Q = np.diag(rng.uniform(0.5, 2, s.state_dim))
    R = np.diag(rng.uniform(0.5, 2, s.input_dim))
    K = lqr_gain(s, Q, R)
    F = s.A - s.B @ K
    P = scipy.linalg.solve_discrete_lyapunov(F.T, Q + K.T @ R @ K)  # what K pays
    assert np.abs(R @ K - s.B.T @ P @ F).max() < 1e-7 * np.abs(P).max()  # and nothing nearby pays less
    control = pytest.importorskip("control")
    assert np.abs(K - control.dlqr(s.A, s.B, Q, R)[0]).max() < 1e-8 * np.abs(K).max()


def check_certificate(system, gain, c):
    Q, L = c.transform, c.contraction
    inverse = np.linalg.inv(Q)
    loop = system.A - system.B @ gain
    assert np.linalg.norm(Q @ L @ inverse - loop, 2) <= 1e-7 * max(1, np.linalg.norm(loop, 2))
    assert np.linalg.norm(L, 2) <= 1 - c.gamma + 1e-12
    for matrix in (gain, Q, inverse):
        assert np.linalg.norm(matrix, 2) <= c.kappa * (1 + 1e-12)
    power = np.eye(len(loop))
    for j in range(30):  # what the theory uses it for
        assert np.linalg.norm(power, 2) <= c.kappa**2 * (1 - c.gamma) ** j * (1 + 1e-9) + 1e-12
        power = loop @ power


@every_plant
def test_strong_stability_of_the_plants(plant):
    s = PLANTS[plant]()
    check_certificate(s, lqr_gain(s), strong_stability(s))


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), states=st.integers(1, 6), inputs=st.integers(1, 3))
def test_strong_stability_of_any_stabilising_gain(seed, states, inputs):
    rng = np.random.default_rng(seed)
    s = random_system(rng, states, inputs)
    K = lqr_gain(s, np.diag(10.0 ** rng.uniform(-2, 2, states)), np.diag(10.0 ** rng.uniform(-2, 2, inputs)))
    check_certificate(s, K, strong_stability(s, K))


def test_strong_stability_of_a_matrix_without_eigenvectors():
    """A Jordan block: eigenvectors are parallel, the other two constructions must serve."""
    s = LinearSystem(0.5 * np.eye(3) + np.diag([1.0, 1.0], 1), np.ones((3, 1)))
    K = np.zeros((1, 3))
    c = strong_stability(s, K)
    check_certificate(s, K, c)
    assert c.method in ("schur", "lyapunov")


@every_plant
def test_h_infinity_gain_keeps_its_level_and_nearly_no_lower_one_can_be_had(plant):
    s = PLANTS[plant]()
    K, level = h_infinity_gain(s)
    worst = closed_loop_norm(s, K)
    assert worst <= level
    assert worst >= 0.95 * level
    assert level < closed_loop_norm(s, lqr_gain(s))
    # no linear feedback nearby is better than the level by more than the slack
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = K * (1 + 0.2 * rng.standard_normal(K.shape))
        if np.abs(np.linalg.eigvals(s.A - s.B @ other)).max() < 1:
            assert closed_loop_norm(s, other) >= 0.98 * level


@every_plant
def test_closed_loop_norm_is_that_of_python_control(plant):
    control = pytest.importorskip("control")
    pytest.importorskip("slycot", reason="python-control computes this norm right only with slycot")
    s = PLANTS[plant]()
    K = lqr_gain(s)
    n, m = s.state_dim, s.input_dim
    loop = control.ss(s.A - s.B @ K, np.eye(n), np.vstack([np.eye(n), -K]), np.zeros((n + m, n)), True)
    assert closed_loop_norm(s, K) == pytest.approx(control.system_norm(loop, p="inf"), rel=1e-4)


def test_h_infinity_gain_of_a_scalar_plant_is_the_best_of_all():
    s = LinearSystem([[0.5]], [[1.0]])
    K, level = h_infinity_gain(s, slack=1e-6)
    best = min(closed_loop_norm(s, np.array([[k]])) for k in np.linspace(0.0, 1.0, 401))
    assert level == pytest.approx(best, rel=1e-3)
    assert closed_loop_norm(s, K) == pytest.approx(best, rel=1e-3)


# ------------------------------------------------------------------------------------------------------ disturbances


def test_disturbances_keep_their_bound():
    d, W, T = [1.0, 2.0, 0.0], 0.7, 500
    for w in (
        sinusoid(T, d, W, period=17, phase=0.3),
        random_walk(T, d, W, step=0.5, rng=0),
        piecewise(T, 3, W, length=30, rng=0),
        recorded(np.cumsum(np.random.default_rng(0).standard_normal((T, 3)), axis=0), W),
        recorded(np.random.default_rng(0).standard_normal(T), W, direction=d),
    ):
        sizes = np.linalg.norm(w, axis=1)
        assert w.shape == (T, 3)
        assert sizes.max() <= W * (1 + 1e-12)
        assert sizes.max() >= 0.9 * W
    pushes = piecewise(100, 3, W, length=30, rng=0)
    assert np.flatnonzero(np.abs(np.diff(pushes, axis=0)).sum(axis=1)).tolist() == [29, 59, 89]
    walk = random_walk(5000, [1.0], 1.0, step=0.1, rng=1)[:, 0]
    free = np.cumsum(0.1 * np.random.default_rng(1).standard_normal(5000))
    inside = np.cumsum(np.abs(free) > 1) == 0  # before the first reflection
    assert 0 < inside.sum() < 1000
    assert np.allclose(walk[inside], free[inside], atol=1e-12)
    assert np.abs(np.diff(walk)).max() <= 0.5  # a reflection jumps nowhere
    assert np.ptp(walk) > 1.99


@every_plant
def test_bang_bang_takes_the_dearer_side(plant):
    s, rng = PLANTS[plant](), np.random.default_rng(0)
    push = BangBang(s, 0.3)
    K = lqr_gain(s)
    cost = QuadraticCost(np.eye(s.state_dim), np.eye(s.input_dim))
    for _ in range(5):
        x, u = rng.standard_normal(s.state_dim), rng.standard_normal(s.input_dim)
        w = push(0, x, u)
        assert np.linalg.norm(w) == pytest.approx(0.3)

        def paid(w, x=x, u=u):
            """What LQR pays from the next state on."""
            x, total = s.step(x, u, w), 0.0
            for _ in range(500):
                total += cost.value(x, -K @ x)
                x = s.step(x, -K @ x)
            return total

        assert paid(w) > paid(-w)


# -------------------------------------------------------------------------------------------------------------- costs

COSTS = {
    "quadratic": lambda rng: QuadraticCost(
        (lambda m: m @ m.T)(rng.standard_normal((3, 3))), np.diag(rng.uniform(0, 2, 2))
    ),
    "huber": lambda rng: HuberCost(rng.uniform(0, 2, 3), rng.uniform(0, 2, 2), width=0.7),
    "absolute": lambda rng: AbsoluteCost(rng.uniform(0, 2, 3), rng.uniform(0, 2, 2)),
}


@pytest.mark.parametrize("name", COSTS)
def test_gradients_of_costs_are_finite_differences(name):
    rng = np.random.default_rng(0)
    for _ in range(20):
        cost, x, u = COSTS[name](rng), rng.standard_normal(3), rng.standard_normal(2)
        c_x, c_u = cost.gradients(x, u)
        h = 1e-6
        for k in range(3):
            e = h * np.eye(3)[k]
            assert c_x[k] == pytest.approx((cost.value(x + e, u) - cost.value(x - e, u)) / (2 * h), abs=1e-7)
        for k in range(2):
            e = h * np.eye(2)[k]
            assert c_u[k] == pytest.approx((cost.value(x, u + e) - cost.value(x, u - e)) / (2 * h), abs=1e-7)
        y, v = rng.standard_normal(3), rng.standard_normal(2)  # convex
        assert cost.value(y, v) >= cost.value(x, u) + c_x @ (y - x) + c_u @ (v - u) - 1e-12


@pytest.mark.parametrize("name", COSTS)
def test_costs_grow_as_they_state(name):
    rng = np.random.default_rng(1)
    for _ in range(50):
        cost, x, u = COSTS[name](rng), 3 * rng.standard_normal(3), 3 * rng.standard_normal(2)
        size = max(np.linalg.norm(x), np.linalg.norm(u), 1.0)
        assert max(np.linalg.norm(c) for c in cost.gradients(x, u)) <= cost.growth * size * (1 + 1e-12)


def test_stages_take_turns():
    a, b, c = (AbsoluteCost([1.0], [float(k)]) for k in range(3))
    assert stages([a, b, c], 8, 2) == [a, a, b, b, c, c, a, a]


# ---------------------------------------------------------------------------------------------------------- constants


def test_theory_constants_hold_for_every_policy_and_disturbance():
    """State, action and gradient of random policies at their caps, under disturbances aligned to be bad."""
    rng, W, T = np.random.default_rng(0), 0.5, 200
    s = LinearSystem([[0.9, 0.5], [0.0, 0.8]], [[0.0], [1.0]])
    cost = QuadraticCost([2.0, 1.0], [0.5])
    c = theory_constants(s, horizon=T, disturbance_bound=W, growth=cost.growth)
    policy = DAC(s, memory=c.memory)
    price = 0.0
    for _ in range(200):
        M = rng.standard_normal(policy.shape)
        M *= (c.caps / np.linalg.norm(M, 2, axis=(1, 2)))[:, None, None]
        past = rng.standard_normal((2 * c.memory + 1, 2))
        if rng.random() < 0.5:
            past[:] = past[0]
        past *= W / np.linalg.norm(past, axis=1, keepdims=True)
        gradient = policy.loss(cost, past).gradient(M)
        assert np.linalg.norm(gradient) <= c.gradient_bound
        price = max(price, np.linalg.norm(gradient))
    assert price <= c.switching_cost
    kappa, gamma = strong_stability(s).kappa, strong_stability(s).gamma
    assert c.caps[0] == pytest.approx(max(1, np.linalg.norm(s.B, 2)) * kappa**3 * (1 - gamma), rel=1e-12)
    assert c.memory == int(np.ceil(np.log(kappa**2 * T) / gamma))


def test_theory_needs_a_long_memory():
    with pytest.raises(InputError, match="must be at least") as told:
        theory_constants(inverted_pendulum(), horizon=100, disturbance_bound=1.0, growth=2.0, memory=3)
    least = int(str(told.value).split("at least ")[1].split(" ")[0])
    theory_constants(inverted_pendulum(), horizon=100, disturbance_bound=1.0, growth=2.0, memory=least)
    with pytest.raises(InputError, match="must be at least"):
        theory_constants(inverted_pendulum(), horizon=100, disturbance_bound=1.0, growth=2.0, memory=least - 1)


@every_plant
def test_estimated_caps_are_the_responses_of_the_linear_controller(plant):
    s = PLANTS[plant]()
    K = lqr_gain(s, R=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MemoryWarning)
        c = estimated_constants(s, K, strength=1.5)
    F = s.A - s.B @ K
    powers = [np.eye(s.state_dim)]
    while len(powers) < 600:
        powers.append(F @ powers[-1])
    response = np.array([np.linalg.norm(K @ P, 2) for P in powers])
    assert np.allclose(c.caps, [1.5 * response[i:].max() for i in range(c.memory)], rtol=1e-9)
    left = np.array([np.linalg.norm(P, 2) for P in powers])
    H = next(H for H in range(1, 500) if left[H + 1 :].max() <= 0.1)
    assert c.memory == min(50, H)


# ---------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: LinearSystem(np.ones((2, 3)), np.ones((2, 1))), "square"),
        (lambda: LinearSystem(np.eye(2), np.ones((3, 1))), "2 rows"),
        (lambda: LinearSystem([[np.nan]], [[1.0]]), "finite"),
        (lambda: LinearSystem(np.eye(2), np.ones(2)), "2 axes"),
        (lambda: double_integrator().step([1.0], [1.0]), "shape"),
        (lambda: LinearFeedback(double_integrator(), gain=[[-1.0, -1.0]]), "must stabilise"),
        (lambda: LinearFeedback(double_integrator(), gain=[[1.0]]), "shape"),
        (lambda: LinearFeedback("plant", gain=[[1.0]]), "LinearSystem"),
        (lambda: strong_stability(double_integrator(), np.zeros((1, 2))), "must stabilise"),
        (lambda: lqr_gain(LinearSystem(2 * np.eye(2), [[1.0], [0.0]])), "stabilisable"),
        (lambda: lqr_gain(double_integrator(), R=[[0.0]]), "> 0"),
        (lambda: lqr_gain(double_integrator(), Q=[[1.0, 2.0], [0.0, 1.0]]), "symmetric"),
        (lambda: LQR(double_integrator(), Q=np.eye(3)), "shape"),
        (lambda: LQR("plant"), "LinearSystem"),
        (lambda: QuadraticCost([[1.0, 0.0], [0.0, -1.0]], [1.0]), ">= 0"),
        (lambda: HuberCost([-1.0], [1.0]), ">= 0"),
        (lambda: HuberCost([1.0], [1.0], width=0.0), "width"),
        (lambda: stages([], 3, 1), "one or more"),
        (lambda: sinusoid(10, [0.0, 0.0]), "zero"),
        (lambda: recorded(np.arange(5.0)), "direction"),
        (lambda: recorded(np.ones((5, 2))), "changes"),
        (lambda: BangBang(double_integrator(), direction=[1.0]), "2 entries"),
        (lambda: estimated_constants(LinearSystem([[0.5]], [[1.0]]), [[0.0]]), "gain is zero"),
    ],
)
def test_bad_input_is_told(call, told):
    with pytest.raises(InputError, match=told):
        call()


def test_a_system_of_continuous_time_is_noticed():
    A, B = [[-3.0, 1.0], [0.0, -0.5]], [[0.0], [1.0]]
    with pytest.warns(UserWarning, match=r"eigenvalues from -3 to -0\.5.*LinearSystem\.sampled\(A, B, period\)"):
        LinearSystem(A, B)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinearSystem.sampled(A, B, 0.1)
        for quiet in ([[-0.9]], [[1.2]], [[-1.0]], [[-3.0, 0.0], [0.0, 0.1]]):
            LinearSystem(quiet, np.ones((len(quiet), 1)))


@pytest.mark.parametrize(
    "cost", [QuadraticCost([1.0], [1.0, 1.0]), QuadraticCost([1.0, 1.0], [1.0, 1.0]), AbsoluteCost([1.0], [1.0])]
)
def test_a_cost_of_other_sizes_is_refused_before_the_first_round(cost):
    s, w = double_integrator(), np.zeros((5, 2))
    policy, controller = DAC(s, memory=2), EfficientControl(s, 5)
    told = "state\\(s\\) and .* input\\(s\\). The system has 2 and 1"
    for costs in (cost, [QuadraticCost([1.0, 1.0], [1.0])] * 4 + [cost]):
        with pytest.raises(InputError, match=told):
            simulate(controller, s, costs, w)
    controller.act(np.zeros(2))  # no round had begun
    with pytest.raises(InputError, match=told):
        best_policies(policy, SpectralBalls(policy.shape, 1.0), [cost] * 5, w)
    with pytest.raises(InputError, match=told):
        TruncatedLoss(policy, cost, np.zeros((5, 2)))
