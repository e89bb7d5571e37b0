"""Disturbance-action policies: truncated state, action, loss and gradient against slow twins; the set of policies."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from tests.control.test_systems import COSTS, PLANTS, every_plant, random_system
from thalweg.control import (
    DAC,
    AbsoluteCost,
    LinearFeedback,
    Planted,
    QuadraticCost,
    TruncatedLoss,
    best_policies,
    double_integrator,
    lqr_gain,
    random_walk,
    simulate,
    sinusoid,
    stages,
)
from thalweg.domains import SpectralBalls
from thalweg.errors import InputError
from thalweg.testing import check_loss


def some(seed, states=3, inputs=2, memory=4):
    """A policy class, matrices and a past."""
    rng = np.random.default_rng(seed)
    policy = DAC(random_system(rng, states, inputs), memory=memory)
    return rng, policy, rng.standard_normal(policy.shape), rng.standard_normal((2 * memory + 1, states))


sizes = {"states": st.integers(1, 5), "inputs": st.integers(1, 3), "memory": st.integers(1, 6)}


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), **sizes)
def test_truncated_is_a_simulation_of_the_last_rounds(seed, states, inputs, memory):
    """From rest, H + 1 rounds of the plant under u = -K x + sum M w."""
    _, policy, M, past = some(seed, states, inputs, memory)
    s, x = policy.system, np.zeros(states)
    for k in range(memory, -1, -1):  # the round of w_{t-1-k}
        u = -policy.gain @ x + sum(M[i] @ past[k + 1 + i] for i in range(memory))
        x = s.A @ x + s.B @ u + past[k]
    v = -policy.gain @ x + sum(M[i] @ past[i] for i in range(memory))
    ours = policy.truncated(M, past)
    scale = max(1.0, np.abs(x).max(), np.abs(v).max())
    assert np.abs(ours[0] - x).max() < 1e-10 * scale
    assert np.abs(ours[1] - v).max() < 1e-10 * scale
    assert np.allclose(policy.action(M, x, past), v, atol=1e-10 * scale)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), **sizes)
def test_truncated_is_the_transfer_matrix_form(seed, states, inputs, memory):
    """Psi_i = F^i 1{i <= H} + sum_j F^j B M_{i-j} 1{1 <= i-j <= H},  y = sum_{i=0..2H} Psi_i w_{t-1-i}."""
    _, policy, M, past = some(seed, states, inputs, memory)
    F = policy.system.A - policy.system.B @ policy.gain
    y = np.zeros(states)
    for i in range(2 * memory + 1):
        psi = np.linalg.matrix_power(F, i) if i <= memory else np.zeros((states, states))
        for j in range(memory + 1):
            if 1 <= i - j <= memory:
                psi = psi + np.linalg.matrix_power(F, j) @ policy.system.B @ M[i - j - 1]
        y += psi @ past[i]
    assert np.abs(policy.truncated(M, past)[0] - y).max() < 1e-10 * max(1.0, np.abs(y).max())


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(sorted(COSTS)), memory=st.integers(1, 6))
def test_gradient_against_finite_differences(seed, kind, memory):
    rng, policy, M, past = some(seed, 3, 2, memory)
    loss = TruncatedLoss(policy, COSTS[kind](rng), past)
    direction = rng.standard_normal(policy.shape)
    h = 1e-6
    slope = (loss.value(M + h * direction) - loss.value(M - h * direction)) / (2 * h)
    assert np.vdot(loss.gradient(M), direction) == pytest.approx(slope, rel=1e-5, abs=1e-5)
    entry = tuple(rng.integers(0, n) for n in policy.shape)  # a single entry, so that no block can hide in a sum
    e = np.zeros(policy.shape)
    e[entry] = h
    slope = (loss.value(M + e) - loss.value(M - e)) / (2 * h)
    assert loss.gradient(M)[entry] == pytest.approx(slope, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("kind", sorted(COSTS))
def test_the_truncated_loss_is_a_loss(kind):
    rng, policy, M, past = some(3)
    check_loss(TruncatedLoss(policy, COSTS[kind](rng), past), M)


@every_plant
def test_no_matrices_is_linear_feedback(plant):
    s, T = PLANTS[plant](), 200
    w = 0.1 * np.random.default_rng(0).standard_normal((T, s.state_dim))
    cost = QuadraticCost(np.ones(s.state_dim), np.ones(s.input_dim))
    K = lqr_gain(s)
    dac, linear = Planted(s, policies=np.zeros((5, s.input_dim, s.state_dim))), LinearFeedback(s, gain=K)
    a, b = (simulate(c, s, cost, w) for c in (dac, linear))
    assert np.abs(a.states - b.states).max() < 1e-12 * max(1, np.abs(b.states).max())
    assert np.abs(a.inputs - b.inputs).max() < 1e-12 * max(1, np.abs(b.inputs).max())
    assert a.total_cost == pytest.approx(b.total_cost, rel=1e-12)


@every_plant
def test_a_dac_can_play_another_linear_controller(plant):
    """u = -K'x is the DAC with M_i = (K - K')(A - B K')^{i-1}: long memory, same trajectory."""
    s, T, H = PLANTS[plant](), 60, 60
    K, other = lqr_gain(s), lqr_gain(s, R=4.0)
    F = s.A - s.B @ other
    M = np.array([(K - other) @ np.linalg.matrix_power(F, i) for i in range(H)])
    w = sinusoid(T, np.ones(s.state_dim), 0.1, period=15)
    cost = QuadraticCost(np.ones(s.state_dim), np.ones(s.input_dim))
    a, b = simulate(Planted(s, policies=M, gain=K), s, cost, w), simulate(LinearFeedback(s, gain=other), s, cost, w)
    assert np.abs(a.states - b.states).max() < 1e-8 * np.abs(b.states).max()


@every_plant
def test_the_truncated_loss_tends_to_the_real_cost_as_memory_grows(plant):
    """With the same three matrices in force, what is missing in y_t is F^{H+1} x_{t-1-H}, and it fades."""
    s, T = PLANTS[plant](), 160
    rng = np.random.default_rng(0)
    w = random_walk(T, rng.standard_normal(s.state_dim), 1.0, rng=0)
    cost = QuadraticCost(np.ones(s.state_dim), np.ones(s.input_dim))
    few = 0.1 * rng.standard_normal((3, s.input_dim, s.state_dim))
    real = simulate(Planted(s, policies=few), s, cost, w)
    errors = []
    for H in (5, 20, 80):
        M = np.zeros((H, s.input_dim, s.state_dim))
        M[:3] = few
        policy = DAC(s, memory=H)
        pasts = [policy.past_of(w, t) for t in range(T)]
        y = np.array([policy.truncated(M, past)[0] for past in pasts])
        missing = np.zeros_like(y)
        missing[H + 1 :] = real.states[: T - H - 1] @ np.linalg.matrix_power(s.A - s.B @ policy.gain, H + 1).T
        assert np.abs(real.states[:T] - y - missing).max() < 1e-9 * np.abs(real.states).max()
        truncated = np.array([policy.loss(cost, past).value(M) for past in pasts])
        errors.append(np.abs(truncated - real.costs).mean() / real.costs.mean())
    assert errors[2] < 0.1 * errors[0] + 1e-12
    assert errors[0] > errors[1] > errors[2] or errors[2] < 1e-9


# ----------------------------------------------------------------------------------------------------------- hindsight


def test_the_best_policies_are_optimal():
    """No policy of the set does better on its stretch by more than the gap; for kinks too."""
    s, T, rng = double_integrator(0.5), 60, np.random.default_rng(0)
    policy = DAC(s, memory=3)
    X = SpectralBalls(policy.shape, 0.4)
    w = random_walk(T, [0.3, 1.0], 1.0, step=0.4, rng=1)
    costs = stages([QuadraticCost([1, 1], [1]), QuadraticCost([1, 0], [9])], T, 30)
    best, gap = best_policies(policy, X, costs, w, [0, 30])
    assert gap < 1e-3
    assert np.ptp(best[:30], axis=0).max() == 0
    losses = [policy.loss(costs[t], policy.past_of(w, t)) for t in range(T)]
    for first, last in ((0, 30), (30, 60)):
        part = losses[first:last]
        least = sum(f.value(best[first]) for f in part)
        assert X.contains(best[first])
        for _ in range(50):
            other = X.project(best[first] + 0.2 * rng.standard_normal(policy.shape))
            assert sum(f.value(other) for f in part) >= least - gap
    kinks = [AbsoluteCost([1.0, 1.0], [0.5])] * 30
    bent, gap = best_policies(policy, X, kinks, w[:30])
    zero = sum(policy.loss(kinks[0], policy.past_of(w, t)).value(np.zeros(policy.shape)) for t in range(30))
    least = sum(policy.loss(kinks[0], policy.past_of(w, t)).value(bent[0]) for t in range(30))
    assert least < zero
    assert gap < 0.1 * zero


def test_best_policies_checks_its_starts():
    policy = DAC(double_integrator(), memory=2)
    X = SpectralBalls(policy.shape, 1.0)
    for starts in ([1], [0, 0], [0, 99]):
        with pytest.raises(InputError, match="starts"):
            best_policies(policy, X, [QuadraticCost([1, 1], [1])] * 5, np.zeros((5, 2)), starts)


def test_any_learner_can_learn_a_policy():
    """Control is online learning on matrices: SOGD on the truncated losses, with what `play` offers."""
    s = double_integrator()
    policy = DAC(s, memory=10)
    w = sinusoid(300, [0.0, 1.0], 0.5, period=30)
    problem = tw.problems.FromLosses(
        [policy.loss(QuadraticCost([1, 1], [1]), policy.past_of(w, t)) for t in range(300)], shape=policy.shape
    )
    X = SpectralBalls(policy.shape, 0.5)
    run = tw.play(tw.SOGD(X), problem)
    still = sum(problem[t].value(np.zeros(policy.shape)) for t in range(300))
    assert run.total_loss < 0.9 * still


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda p: p.action(np.zeros((2, 1, 2)), np.zeros(2), np.zeros((7, 2))), "shape"),
        (lambda p: p.truncated(p.zero, np.zeros((6, 2))), "past"),
        (lambda p: p.truncated(np.full(p.shape, np.nan), np.zeros((7, 2))), "finite"),
        (lambda p: TruncatedLoss(p, "cost", np.zeros((7, 2))), "gradients"),
        (lambda p: TruncatedLoss(p, _WrongCost(), np.zeros((7, 2))).gradient(p.zero), "two arrays"),
        (lambda p: DAC(p.system, memory=0), "memory"),
    ],
)
def test_bad_input_is_told(call, told):
    with pytest.raises(InputError, match=told):
        call(DAC(double_integrator(), memory=3))


class _WrongCost:
    def value(self, x, u):
        return 0.0

    def gradients(self, x, u):
        return 1.0
