"""Previews, the integrator and the committee of controllers: twins, identities, guarantees, bad input."""

import warnings

import numpy as np
import pytest

import thalweg as tw
from tests.control.test_systems import PLANTS, every_plant, random_system
from tests.samples import refused
from tests.twins import preview as twin
from thalweg.control import (
    LQR,
    BangBang,
    Constants,
    EfficientControl,
    HuberCost,
    IntegralLQR,
    LinearFeedback,
    LinearSystem,
    Preview,
    QuadraticCost,
    TrackingControl,
    double_integrator,
    estimated_constants,
    inverted_pendulum,
    lqr_gain,
    random_walk,
    recorded,
    simulate,
    sinusoid,
)
from thalweg.errors import InputError, MemoryWarning, StateError


def scene(T=60, seed=0, inputs=2):
    rng = np.random.default_rng(seed)
    s = random_system(rng, 3, inputs, radius=1.05)
    return s, random_walk(T, rng.standard_normal(3), 0.5, step=0.2, rng=rng) + 0.05 * rng.standard_normal((T, 3))


# -------------------------------------------------------------------------------------------------------------- preview


@pytest.mark.parametrize(("order", "halflife"), [(4, None), (2, 7.0), (0, 5.0), (1, None)])
def test_the_preview_is_its_twin(order, halflife):
    s, w = scene()
    w[:3] = 0
    w[7] *= 40  # forecasts are clipped for a while
    Q, R, start = np.diag([1.0, 2.0, 0.5]), np.diag([0.5, 2.0]), np.array([1.0, -1.0, 0.0])
    run = simulate(Preview(s, Q=Q, R=R, order=order, halflife=halflife), s, QuadraticCost(Q, R), w, start=start)
    keep = 1.0 if halflife is None else 0.5 ** (1 / halflife)
    states, inputs = twin.preview(s.A, s.B, Q, R, w, order, keep, start)
    assert np.abs(run.states[:-1] - states).max() < 1e-7 * np.abs(states).max()
    assert np.abs(run.inputs - inputs).max() < 1e-7 * np.abs(inputs).max()


@every_plant
def test_known_disturbances_are_answered_best(plant):
    """Where all disturbances are known, no change of a single input pays less."""
    s, rng = PLANTS[plant](), np.random.default_rng(0)
    T, d, m = 30, s.state_dim, s.input_dim
    made = Preview(s)
    w = np.zeros((T + 2 * len(made.preview), d))
    w[:T] = rng.standard_normal((T, d))
    ahead = [-sum(L @ w[t + j] for j, L in enumerate(made.preview) if t + j < len(w)) for t in range(len(w))]

    def cost(v):
        x, paid = np.zeros(d), 0.0
        for t in range(len(w)):
            u = v[t] - made.gain @ x
            paid += x @ x + u @ u
            x = s.A @ x + s.B @ u + w[t]
        return paid

    ahead = np.array(ahead)
    best = cost(ahead)
    for t in range(0, T, 7):
        for k in range(m):
            bump = np.zeros_like(ahead)
            bump[t, k] = 0.1
            more, less = cost(ahead + bump), cost(ahead - bump)
            slope, curve = (more - less) / 0.2, (more + less - 2 * best) / 0.1**2
            assert slope**2 / (2 * curve) < 1e-4 * best  # what the best change would gain


def test_an_autoregression_is_foreseen():
    """With enough rounds it pays about what acting on the true conditional means does."""
    s, T, rng = double_integrator(), 3000, np.random.default_rng(1)
    cost, w = QuadraticCost([1, 1], [1]), np.zeros((T, 2))
    for t in range(2, T):
        w[t, 1] = 1.6 * w[t - 1, 1] - 0.7 * w[t - 2, 1] + 0.01 * rng.standard_normal()
    made = Preview(s)
    x, paid = np.zeros(2), 0.0
    for t in range(T):
        seen, u = [w[t - 2, 1] if t > 1 else 0.0, w[t - 1, 1] if t else 0.0], -made.gain @ x
        for L in made.preview:
            seen.append(1.6 * seen[-1] - 0.7 * seen[-2])
            u = u - L[:, 1] * seen[-1]
        paid += cost.value(x, u)
        x = s.A @ x + s.B @ u + w[t]
    assert simulate(made, s, cost, w).total_cost == pytest.approx(paid, rel=0.03)


def test_previews_do_not_depend_on_units():
    s, w = scene(40)
    cost = QuadraticCost([1, 1, 1], [1, 1])
    a, b = (simulate(Preview(s), s, cost, scale * w) for scale in (1.0, 2.0**-60))
    # the mean is shrunk towards 0 in rounds, not in units
    assert np.abs(a.inputs - 2.0**60 * b.inputs).max() < 1e-9 * np.abs(a.inputs).max()


# ----------------------------------------------------------------------------------------------------------- integrator


def test_a_constant_push_leaves_no_error():
    s, C = scene(1)[0], np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    made = IntegralLQR(s, outputs=C)
    run = simulate(made, s, QuadraticCost([1, 1, 1], [1, 1]), np.tile([0.1, -0.2, 0.3], (4000, 1)))
    assert np.abs(C @ run.states[-1]).max() < 1e-6
    usual = simulate(LQR(s), s, QuadraticCost([1, 1, 1], [1, 1]), run.disturbances)
    assert np.abs(C @ usual.states[-1]).max() > 1e-2
    z = C @ run.states[:-1].sum(axis=0)
    assert np.allclose(made.state()["z"], z, rtol=1e-9, atol=1e-9)


def test_the_integrator_is_the_gain_of_the_larger_system():
    s = double_integrator()
    made = IntegralLQR(s, Q=[1, 0], R=[2.0], outputs=[[1.0, 0.0]], weight=0.3)
    A = np.block([[s.A, np.zeros((2, 1))], [np.array([[1.0, 0.0, 1.0]])]])
    K = twin.riccati(A, np.vstack([s.B, [[0.0]]]), np.diag([1.0, 0.0, 0.6]), np.array([[2.0]]))[1]
    assert np.allclose(np.hstack([made.gain, made.integral_gain]), K, rtol=1e-6)


# ------------------------------------------------------------------------------------------------------------ committee


def watch(controller, s, cost, w, start=None):
    """A run, with the weights of every round."""
    x, weights, states, inputs = np.zeros(s.state_dim) if start is None else start, [], [], []
    for t in range(len(w)):
        weights.append(controller.weights)
        u = controller.act(x)
        states.append(x)
        inputs.append(u)
        x = s.A @ x + s.B @ u + w[t]
        controller.observe(cost, x)
    return np.array(weights), np.array(states), np.array(inputs)


def test_the_committee_is_its_twin():
    """Members run on plants of their own; the input is their mixture; the gains are differences of costs."""
    s, w = scene(80)
    cost, start = QuadraticCost([1, 1, 1], [1, 1]), np.array([0.5, 0.0, -0.5])
    made = TrackingControl(s)
    weights, states, inputs = watch(made, s, cost, w, start)
    runs = [simulate(one.clone(), s, cost, w, start=start) for one in made.members]
    members = [(run.states[:-1], run.inputs) for run in runs]
    theirs = twin.committee(s.A, s.B, lqr_gain(s), members, weights, w, start)
    assert np.abs(states - theirs[0]).max() < 1e-9
    assert np.abs(inputs - theirs[1]).max() < 1e-9
    assert np.ptp(weights, axis=0).max() > 0.1
    # (5): the state differs from the mixture of states by what the weights moved
    F, e = s.A - s.B @ lqr_gain(s), np.zeros(3)
    for t in range(len(w)):
        mixed = weights[t] @ np.array([xs[t] for xs, _ in members])
        assert np.abs(states[t] - mixed - e).max() < 1e-9
        if t + 1 < len(w):
            e = F @ e + (weights[t] - weights[t + 1]) @ np.array([xs[t + 1] for xs, _ in members])


def test_it_pays_hardly_more_than_its_best_member():
    """Each of four members is the best one in one of four worlds."""
    s, T = double_integrator(), 1500
    cost, rng = QuadraticCost([1, 1], [1]), np.random.default_rng(3)
    worlds = {
        "noise": recorded(rng.uniform(-1, 1, T), 0.2, direction=[0, 1]),
        "wave": sinusoid(T, [0, 1], 0.2),
        "constant": np.tile([0.0, 0.2], (T, 1)),
        "adversary": BangBang(s, 0.2, direction=[0, 1]),
    }
    for name, w in worlds.items():
        made = TrackingControl(s)
        paid = simulate(made, s, cost, w, rounds=T)
        members = [simulate(one.clone(), s, cost, paid.disturbances).total_cost for one in made.members]
        assert paid.total_cost < 1.06 * min(members), name
        assert made.weights.sum() == pytest.approx(1)


def test_gains_are_differences_of_quadratic_costs(monkeypatch):
    s, w = scene(20)
    made, told = TrackingControl(s), []
    from thalweg.control import _kernels

    real = _kernels.believe
    monkeypatch.setattr(_kernels, "believe", lambda handle, gained: (told.append(gained.copy()), real(handle, gained)))
    cost = QuadraticCost([1, 0, 3], [1, 2])
    weights, _, _ = watch(made, s, cost, w)
    runs = [simulate(one.clone(), s, cost, w) for one in made.members]
    for t in range(20):
        xs, us = np.array([run.states[t] for run in runs]), np.array([run.inputs[t] for run in runs])
        played = cost.value(weights[t] @ xs, weights[t] @ us)
        assert np.allclose(told[t], [played - run.costs[t] for run in runs], atol=1e-12)
        assert weights[t] @ told[t] <= 1e-12  # convex


def test_members_of_your_own():
    """A learned controller beside LQR: with costs that are not those of the design it gains."""
    s, T = inverted_pendulum(), 800
    Q, R = np.diag([10.0, 1.0, 10.0, 1.0]), [0.1]
    w, cost = sinusoid(T, s.B[:, 0], 0.05, period=40), QuadraticCost(Q / 10, [1.0])
    learned = EfficientControl(s, T, Q=Q, R=R)
    made = TrackingControl(s, Q=Q, R=R, members=[LQR(s, Q=Q, R=R), learned])
    paid = simulate(made, s, cost, w).total_cost
    assert learned.rounds == 0  # a copy of it played
    assert made.members[1].rounds == T
    alone = [simulate(one, s, cost, w).total_cost for one in (LQR(s, Q=Q, R=R), learned)]
    assert alone[1] < 0.5 * alone[0]
    assert paid < 1.3 * alone[1]
    assert made.queries.projections == made.members[1].queries.projections > 0


def test_costs_that_are_not_quadratic():
    s, w = scene(300, inputs=1)
    cost = HuberCost([1, 1, 1], [1], 0.3)
    made = TrackingControl(s)
    paid = simulate(made, s, cost, w).total_cost
    assert paid < 1.1 * min(simulate(one.clone(), s, cost, w).total_cost for one in made.members)


def test_a_wrong_round_changes_nothing_in_any_member():
    s, w = scene(12)
    made, cost = TrackingControl(s), QuadraticCost([1, 1, 1], [1, 1])
    simulate(made, s, cost, w)
    made.act(np.ones(3))

    class Bad(QuadraticCost):
        calls = 0

        def gradients(self, x, u):
            Bad.calls += 1
            return super().gradients(x, u) if Bad.calls < 4 else (np.full(3, np.nan), np.zeros(2))

    with refused(made, "finite"):
        made.observe(Bad([1, 1, 1], [1, 1]), np.zeros(3))


def test_a_state_whose_parts_disagree_is_refused():
    s, w = scene(12)
    made, other = TrackingControl(s), TrackingControl(s)
    cost = QuadraticCost([1, 1, 1], [1, 1])
    simulate(made, s, cost, w)
    simulate(other, s, cost, w[:5])
    late = {key: value for key, value in other.state().items() if key.startswith("member2.")}
    with pytest.raises(StateError, match="another number of rounds"):
        made.restore(made.state() | late)
    made.act(np.ones(3))
    with pytest.raises(StateError, match="not what its members answer"):
        other.restore(made.state() | {"u": made.state()["u"] + 1})
    other.restore(made.state())
    assert np.array_equal(other.act(np.ones(3)), made.act(np.ones(3)))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda s: Preview(s, order=-1), "order"),
        (lambda s: Preview(s, halflife=0.0), "halflife"),
        (lambda s: IntegralLQR(s, outputs=np.eye(2)), "1 to 1 rows"),
        (lambda s: IntegralLQR(s, weight=0), "weight"),
        (lambda s: TrackingControl(s, members=[LQR(s)]), "two controllers"),
        (lambda s: TrackingControl(s, members=[LQR(s), "LQR"]), "must be controllers"),
        (lambda s: TrackingControl(s, members=[LQR(s), LQR(inverted_pendulum())]), "another system"),
        (lambda s: TrackingControl("plant"), "LinearSystem"),
    ],
)
def test_bad_arguments_are_told(call, told):
    with pytest.raises(InputError, match=told):
        call(double_integrator())


# ---------------------------------------------------------------------------------------- guards of learned controllers


def short_period():
    """An aircraft's short period with its altitude: angle of attack, pitch rate, pitch, altitude; elevator."""
    A = [[-1.3, 1.0, 0, 0], [-5.0, -1.5, 0, 0], [0, 1.0, 0, 0], [-120.0, 0, 120.0, 0]]
    return LinearSystem.sampled(A, [[-0.1], [-10.0], [0], [0]], 0.05)


def test_a_memory_that_is_too_short_is_refused_or_told():
    s = short_period()
    gain = lqr_gain(s, np.diag([0, 0, 0, 0.01]), [10.0])
    F = s.A - s.B @ gain
    left = [np.linalg.norm(np.linalg.matrix_power(F, j), 2) for j in range(600)]
    assert max(left[51:]) > 5
    needed = next(H for H in range(1, 500) if max(left[H + 1 :]) <= 0.1)
    with pytest.raises(InputError, match=rf"memory={needed} .*{0.05 * needed:.4g} s.*TrackingControl"):
        EfficientControl(s, 500, gain=gain)
    assert EfficientControl(s, 500, gain=gain, memory=needed).memory == needed
    slow = LinearSystem([[0.985]], [[1.0]])
    gain = np.array([[0.005]])
    with pytest.warns(MemoryWarning, match=f"{0.98**51:.3g} times its size is left after 50 rounds, "):
        assert estimated_constants(slow, gain).memory == 50
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimated_constants(slow, np.array([[0.05]]))  # 0.935^j: 35 rounds are enough


def test_after_a_quiet_start_the_scales_are_measured_again():
    s, T = double_integrator(), 600
    cost, w = QuadraticCost([1, 1], [1]), np.random.default_rng(0).uniform(-0.2, 0.2, (T, 2)) * [0, 1]
    w[:200] *= 1e-3
    made, kept = (EfficientControl(s, T, on_violation=how) for how in ("rescale", "clip"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = [simulate(one, s, cost, w, policies=True) for one in (made, kept)]
    assert runs[1].clipped > 200
    assert runs[0].clipped == 0
    assert made.gradient_bound > 1e4 * kept.gradient_bound
    assert runs[0].queries.gradients == runs[0].queries.projections == runs[1].queries.gradients
    assert runs[0].total_cost < runs[1].total_cost
    restarts = [t for t in range(1, T) if runs[0].policies[t - 1].any() and not runs[0].policies[t].any()]
    assert 1 <= len(restarts) <= np.log(made.gradient_bound / kept.gradient_bound) / np.log(8) + 1
    again = made.clone()
    again.restore(made.state())
    assert np.array_equal(again.act([1.0, 0.0]), made.act([1.0, 0.0]))


def test_given_scales_are_kept():
    s, cost = double_integrator(), QuadraticCost([1, 1], [1])
    made = EfficientControl(s, 100, constants=Constants(np.ones(3), 1e-6, 1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = simulate(made, s, cost, sinusoid(100, [0, 1], 0.2))
    assert made.gradient_bound == 1e-6
    assert run.clipped > 50


# ---------------------------------------------------------------------------------------------------------- time, units


def test_a_state_space_of_python_control():
    control = pytest.importorskip("control")
    A, B = [[0.0, 1.0], [-1.0, -0.2]], [[0.0], [1.0]]
    plant = control.ss(A, B, [[1, 0]], [[0]])
    with pytest.raises(InputError, match=r"continuous time.*Sample it first"):
        LinearSystem.from_control(plant)
    with pytest.raises(InputError, match="from_control"):
        LQR(plant)
    ours, theirs = LinearSystem.sampled(A, B, 0.1), LinearSystem.from_control(control.sample_system(plant, 0.1))
    assert np.allclose(ours.A, theirs.A, atol=1e-12)
    assert np.allclose(ours.B, theirs.B, atol=1e-12)
    assert ours.period == theirs.period == 0.1
    assert "0.1 s" in repr(theirs)
    assert LinearSystem.from_control(control.ss(ours.A, ours.B, [[1, 0]], [[0]], True)).period is None
    with pytest.raises(InputError, match="no sampling time"):
        LinearSystem.from_control(control.ss(ours.A, ours.B, [[1, 0]], [[0]], None))
    with pytest.raises(InputError, match="needs a StateSpace"):
        LinearSystem.from_control(np.eye(2))


def test_messages_speak_of_seconds():
    s = double_integrator(period=0.5)
    w = np.zeros((10, 2))
    w[6] = 5.0
    with pytest.raises(InputError) as told:
        simulate(LinearFeedback(s, disturbance_bound=1.0), s, QuadraticCost([1, 1], [1]), w)
    assert "In round 6 of the simulation, counted from 0, 3 s after its start." in told.value.__notes__


def test_the_whole_committee_is_saved(tmp_path):
    s, w = scene(30)
    cost = QuadraticCost([1] * 3, [1] * 2)
    made = TrackingControl(s, members=[LQR(s), Preview(s, order=2), IntegralLQR(s)])
    simulate(made, s, cost, w[:15])
    made.save(tmp_path / "committee.npz")
    again = tw.load(tmp_path / "committee.npz")
    a, b = (simulate(one, s, cost, w[15:], start=np.ones(3)) for one in (made, again))
    assert np.array_equal(a.inputs, b.inputs)
