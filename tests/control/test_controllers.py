"""Controllers: a plain twin of the whole loop, counted projections, bounds, stop and resume, bad input."""

import inspect
import math

import numpy as np
import pytest

import thalweg as tw
from tests.control.test_systems import PLANTS, every_plant, random_system
from tests.samples import refused
from thalweg.control import (
    DAC,
    GPC,
    LQR,
    BangBang,
    Constants,
    EfficientControl,
    HuberCost,
    LinearFeedback,
    LinearSystem,
    Planted,
    QuadraticCost,
    ScreamControl,
    best_policies,
    boeing_747,
    double_integrator,
    lqr_gain,
    random_walk,
    simulate,
    sinusoid,
    stages,
    theory_constants,
)
from thalweg.domains import SpectralBalls
from thalweg.errors import HorizonWarning, InputError, StateError

CLIPS = pytest.mark.filterwarnings("ignore::thalweg.errors.ClippingWarning")

LEARNED = {"GPC": GPC, "ScreamControl": ScreamControl, "EfficientControl": EfficientControl}
every_learned = pytest.mark.parametrize("name", LEARNED)


def scene(T=120, seed=0, inputs=2):
    """A small MIMO plant, costs that change, a disturbance that walks."""
    rng = np.random.default_rng(seed)
    s = random_system(rng, 3, inputs, radius=1.05)
    costs = stages([QuadraticCost([1, 1, 1], np.ones(inputs)), HuberCost([1, 0, 5], 2 * np.ones(inputs), 0.5)], T, 25)
    return s, costs, random_walk(T, rng.standard_normal(3), 0.5, step=0.2, rng=rng)


def tight(memory=3):
    """Constants that make the projection work."""
    return Constants(0.1 * 0.6 ** np.arange(memory), 0.5, 3.0)


# ---------------------------------------------------------------------------------------------------------------- twin


def clip(M, caps):
    out = np.empty_like(M)
    for i, (block, cap) in enumerate(zip(M, caps, strict=True)):
        u, s, vt = np.linalg.svd(block, full_matrices=False)
        out[i] = (u * np.minimum(s, cap)) @ vt
    return out


def shrink(M, radii):
    return np.array([m * min(1.0, r / max(np.linalg.norm(m), 1e-300)) for m, r in zip(M, radii, strict=True)])


def twin(kind, s, K, costs, w, T, constants, H):
    """The controllers in plain NumPy, with lists, loops and explicit sums."""
    G, lam, caps = constants.gradient_bound, constants.switching_cost, constants.caps
    d = min(s.input_dim, s.state_dim)
    D = 2 * math.sqrt(d * (caps**2).sum())
    N = 1 if kind == "GPC" else math.ceil(math.log2(1 + T) / 2) + 1
    eta = [2**i * D / math.sqrt((lam * G + G**2) * T) for i in range(N)]
    eps = math.sqrt(2 / ((2 * lam + G) * (lam + G) * D**2 * T))
    p = np.array([(N + 1) / N / ((i + 1) * (i + 2)) for i in range(N)])
    home = (lambda M: shrink(M, caps * math.sqrt(d))) if kind == "EfficientControl" else (lambda M: clip(M, caps))
    members = [np.zeros((H, s.input_dim, s.state_dim)) for _ in range(N)]
    before = [m.copy() for m in members]
    F = s.A - s.B @ K
    x, seen, inputs, decisions, surrogate = np.zeros(s.state_dim), [], [], [], []
    for t in range(T):

        def past(k, seen=seen):
            return seen[-1 - k] if k < len(seen) else np.zeros(s.state_dim)  # w_{t-1-k}

        inner = sum(q * m for q, m in zip(p, members, strict=True))
        M = clip(inner, caps) if kind == "EfficientControl" else inner
        u = -K @ x + sum(M[i] @ past(i) for i in range(H))
        y = np.zeros(s.state_dim)
        for j in range(H + 1):
            push = sum(M[i] @ past(j + 1 + i) for i in range(H))
            y = y + np.linalg.matrix_power(F, j) @ (past(j) + s.B @ push)
        v = -K @ y + sum(M[i] @ past(i) for i in range(H))
        c_x, c_u = costs[t].gradients(y, v)
        q = c_x - K.T @ c_u
        g = np.zeros_like(M)
        for i in range(H):
            for j in range(H + 1):
                g[i] += np.outer(s.B.T @ np.linalg.matrix_power(F, j).T @ q, past(j + 1 + i))
            g[i] += np.outer(c_u, past(i))
        size = np.linalg.norm(g)
        if size > G:
            g *= G / size
        gap = np.linalg.norm(inner - M)
        if gap > 1e-11:
            V = (inner - M) / gap
            g = g - min(0.0, np.vdot(g, V)) * V
        losses = np.array([np.vdot(g, m) + lam * np.linalg.norm(m - b) for m, b in zip(members, before, strict=True)])
        p = p * np.exp(-eps * (losses - losses.min()))
        p /= p.sum()
        before, members = members, [home(m - e * g) for m, e in zip(members, eta, strict=True)]
        inputs.append(u)
        decisions.append(M)
        surrogate.append(inner)
        x = s.A @ x + s.B @ u + w[t]
        seen.append(w[t])
    return np.array(inputs), np.array(decisions), np.array(surrogate)


@every_learned
def test_the_whole_loop_is_its_twin(name):
    T, constants = 120, tight()
    s, costs, w = scene(T)
    K = lqr_gain(s)
    controller = LEARNED[name](s, T, gain=K, constants=constants)
    run = simulate(controller, s, costs, w, policies=True)
    inputs, decisions, inner = twin(name, s, K, costs, w, T, constants, 3)
    assert np.abs(run.policies - decisions).max() < 1e-9
    assert np.abs(run.inputs - inputs).max() < 1e-9 * np.abs(inputs).max()
    assert run.clipped > 0
    assert (np.linalg.norm(run.policies, 2, axis=(2, 3)) > 0.99 * constants.caps).any()  # at the edge of the set
    if name == "EfficientControl":
        assert np.abs(inner - decisions).max() > 1e-3  # and outside it before projecting
        moved, paid = (np.linalg.norm(np.diff(m, axis=0).reshape(T - 1, -1), axis=1) for m in (decisions, inner))
        assert (moved <= paid + 1e-12).all()  # moving costs no more on the set
    assert np.abs(run.states - s.rollout(run.inputs, w)).max() < 1e-12 * np.abs(run.states).max()


# -------------------------------------------------------------------------------------------------------------- counts


def count(monkeypatch):
    """Count calls of the projection, and blocks, where it happens."""
    calls, real = [], SpectralBalls._project_flat

    def counted(self, y):
        calls.append(self._blocks[0])
        return real(self, y)

    monkeypatch.setattr(SpectralBalls, "_project_flat", counted)
    return calls


@CLIPS
def test_one_projection_a_round_against_n(monkeypatch):
    T, H = 200, 3
    s, costs, w = scene(T)
    calls = count(monkeypatch)
    N = math.ceil(math.log2(1 + T) / 2) + 1
    for name, each in (("EfficientControl", 1), ("ScreamControl", N), ("GPC", 1)):
        controller = LEARNED[name](s, T, constants=tight(H))
        calls.clear()
        run = simulate(controller, s, costs, w)
        assert len(calls) == each * T, name
        assert sum(calls) == each * T * H  # singular value decompositions at most
        assert run.queries == tw.Queries(projections=each * T, gradients=T, values=0)


def test_no_projection_while_scales_are_measured(monkeypatch):
    T, H = 100, 4
    s, costs, w = scene(T)
    w[:10] = 0
    calls = count(monkeypatch)
    controller = EfficientControl(s, T, memory=H)
    run = simulate(controller, s, costs, w, policies=True)
    learning = T - 11 - (2 * H + 1)  # the disturbance of round 10 is known in round 11
    assert len(calls) == run.queries.projections == run.queries.gradients == learning
    assert not run.policies[: T - learning].any()
    assert run.policies[T - learning + 1].any()


# -------------------------------------------------------------------------------------------------- what it measures


def price_of(policy, q, past):
    """What the cost of a round can change, to first order, when M moved by one in every round before."""
    H, F = policy.memory, policy.system.A - policy.system.B @ policy.gain
    pulls = [np.linalg.norm(policy.system.B.T @ np.linalg.matrix_power(F, j).T @ q) for j in range(H + 1)]
    return sum((j + 1) * pulls[j] * np.linalg.norm(past[j + 1 : j + 1 + H]) for j in range(H + 1))


def test_the_measured_scales_are_what_the_docstring_says():
    T, H = 60, 3
    s, costs, w = scene(T)
    controller = GPC(s, T, memory=H)
    simulate(controller, s, costs, w)
    policy = controller.policy
    lengths, prices = [], []
    for t in range(1, 2 * H + 2):
        past = policy.past_of(w, t)
        y, v = policy.truncated(policy.zero, past)
        c_x, c_u = costs[t].gradients(y, v)
        q = c_x - policy.gain.T @ c_u
        lengths.append(np.linalg.norm(policy.loss(costs[t], past).gradient(policy.zero)))
        prices.append(price_of(policy, q, past))
    assert controller.gradient_bound == pytest.approx(8 * max(lengths), rel=1e-12)
    assert controller.switching_cost == pytest.approx(8 * max(prices), rel=1e-12)


def test_a_cost_of_inputs_alone_has_no_price_of_moving():
    """Then q is the gain's part only; with K = 0 nothing remembers, and lambda is 0."""
    s = LinearSystem(0.5 * np.eye(2), np.eye(2))
    constants = Constants(np.ones(2))
    w = np.random.default_rng(0).standard_normal((40, 2))
    controller = EfficientControl(s, 40, gain=np.zeros((2, 2)), constants=constants)
    assert controller.switching_cost is None
    simulate(controller, s, QuadraticCost([0, 0], [1, 1]), w)
    assert controller.learner is None  # the gradient is 0 at M = 0: LQR is already right
    controller = EfficientControl(s, 40, gain=np.zeros((2, 2)), constants=Constants(np.ones(2), 1.0, 0.0))
    run = simulate(controller, s, QuadraticCost([0, 0], [1, 1]), w)
    assert controller.switching_cost == 0
    assert run.queries.projections == 40


def test_the_price_bounds_what_changing_policies_cost():
    """|f(M_{t-1-H}..M_t) - f_t(M_t)| <= lambda max ||M_s - M_{s-1}|| to first order, by simulation of both."""
    rng = np.random.default_rng(0)
    s = random_system(rng, 3, 2, radius=0.9)
    H = 4
    policy = DAC(s, memory=H)
    cost = QuadraticCost([1, 1, 1], [1, 1])
    for _ in range(30):
        past = rng.standard_normal((2 * H + 1, 3))
        still = rng.standard_normal(policy.shape)
        step = 1e-6 * rng.standard_normal((H + 2, *policy.shape))
        sizes = np.linalg.norm(step.reshape(H + 2, -1), axis=1)
        moving = still - np.cumsum(step, axis=0) + step[0]  # [k]: the policy k rounds ago; [0] is the present one
        x = np.zeros(3)
        for k in range(H, -1, -1):
            u = -policy.gain @ x + sum(moving[k + 1][i] @ past[k + 1 + i] for i in range(H))
            x = s.A @ x + s.B @ u + past[k]
        v = -policy.gain @ x + sum(still[i] @ past[i] for i in range(H))
        gap = abs(cost.value(x, v) - policy.loss(cost, past).value(still))
        y, a = policy.truncated(still, past)
        c_x, c_u = cost.gradients(y, a)
        q = c_x - policy.gain.T @ c_u
        assert gap <= price_of(policy, q, past) * sizes[1:].max() * (1 + 1e-3)


# ------------------------------------------------------------------------------------- scream and efficient compared


def test_with_room_enough_both_controllers_are_the_same():
    """Where no matrix reaches its cap, nothing is projected; diameters and steps agree, so all is the same."""
    T = 150
    s, costs, w = scene(T)
    constants = Constants(100.0 * np.ones(3), 1e5, 1e5)
    a, b = (
        simulate(c(s, T, constants=constants), s, costs, w, policies=True) for c in (ScreamControl, EfficientControl)
    )
    assert np.abs(a.policies).max() > 0.01
    assert np.abs(a.policies - b.policies).max() < 1e-11


def test_with_one_input_both_controllers_are_the_same():
    """A matrix of one row has one singular value: operator and Frobenius norm agree, and so do the two sets."""
    T = 150
    s, costs, w = scene(T, inputs=1)
    a, b = (simulate(c(s, T, constants=tight()), s, costs, w, policies=True) for c in (ScreamControl, EfficientControl))
    assert (np.linalg.norm(a.policies, 2, axis=(2, 3)) > 0.99 * tight().caps).any()
    assert np.abs(a.policies - b.policies).max() < 1e-9


@CLIPS
def test_at_the_edge_they_differ_and_cost_about_the_same():
    T = 400
    s, costs, w = scene(T)
    a, b = (simulate(c(s, T, constants=tight()), s, costs, w, policies=True) for c in (ScreamControl, EfficientControl))
    assert np.abs(a.policies - b.policies).max() > 1e-4
    assert b.total_cost == pytest.approx(a.total_cost, rel=0.05)


# -------------------------------------------------------------------------------------------------------------- regret


@pytest.mark.parametrize("name", ["ScreamControl", "EfficientControl"])
def test_regret_on_truncated_losses_is_within_the_bound(name):
    """sum f_t(M_t) - f_t(M*_t) + lambda sum ||M_t - M_{t-1}|| <= the bound of Scream, for the best changing policy."""
    T, length = 400, 100
    s, _, w = scene(T)
    costs = stages([QuadraticCost([1, 1, 1], [1, 1]), QuadraticCost([9, 1, 0], [3, 1])], T, length)
    constants = Constants(0.3 * 0.7 ** np.arange(4), 60.0, 40.0)
    controller = LEARNED[name](s, T, constants=constants, on_violation="raise")
    run = simulate(controller, s, costs, w, policies=True)
    best, _ = best_policies(controller.policy, controller.domain, costs, w, range(0, T, length))
    losses = [controller.policy.loss(costs[t], controller.policy.past_of(w, t)) for t in range(T)]
    regret = sum(f.value(M) - f.value(B) for f, M, B in zip(losses, run.policies, best, strict=True))
    moved = tw.regret.path_length(run.policies)
    P = tw.regret.path_length(best)
    assert P > 0
    assert regret + constants.switching_cost * moved <= controller.learner.regret_bound(P)


def test_it_follows_the_best_changing_policy():
    """Wind that comes in waves, costs that change: far below LQR, and close to the best planted policies."""
    T, length = 1200, 300
    s = boeing_747()
    climb = np.array([0.0, -1.0, 0.0, 7.74])
    Q = np.diag([1.0, 0.0, 0.01, 0.01]) + np.outer(climb, climb)
    K = lqr_gain(s, Q)
    costs = stages([QuadraticCost(Q, [1, 1]), QuadraticCost(Q / 10, [10, 10])], T, length)
    wind = sinusoid(T, (np.eye(4) - s.A)[:, 1], 1.0, period=40)
    controller = EfficientControl(s, T, gain=K)
    ours, lqr = (simulate(c, s, costs, wind).total_cost for c in (controller, LinearFeedback(s, gain=K)))
    best, _ = best_policies(controller.policy, controller.domain, costs, wind, range(0, T, length))
    planted = simulate(Planted(s, policies=best, gain=K), s, costs, wind).total_cost
    assert planted < ours < 0.3 * lqr
    assert ours - planted < 0.15 * (lqr - planted)


@pytest.mark.slow
def test_regret_a_round_falls_with_time():
    """Against the best fixed policy on a steady wave, T = 500 and 8000: from T to 16 T, sqrt T would give 1/4."""
    each = []
    for T in (500, 8000):
        s = double_integrator()
        cost, w = QuadraticCost([1, 1], [1]), sinusoid(T, [0, 1], 0.2, period=40)
        controller = EfficientControl(s, T, memory=10)
        run = simulate(controller, s, cost, w)
        best, _ = best_policies(controller.policy, controller.domain, [cost] * T, w)
        each.append((run.total_cost - simulate(Planted(s, policies=best), s, cost, w).total_cost) / T)
    assert 0 < each[1] < 0.5 * each[0]


def test_the_gain_is_all_there_is_without_learning():
    """With the theory's constants the policy hardly moves: that is why they are not the default."""
    T = 100
    s = double_integrator()
    cost, w = QuadraticCost([1, 1], [1]), sinusoid(T, [0, 1], 0.2, period=40)
    c = theory_constants(s, horizon=T, disturbance_bound=0.2, growth=cost.growth)
    run = simulate(EfficientControl(s, T, constants=c, on_violation="raise"), s, cost, w)
    assert run.clipped == 0
    assert run.total_cost == pytest.approx(simulate(LQR(s), s, cost, w).total_cost, rel=1e-2)


# ------------------------------------------------------------------------------------------- arguments, stop and resume

MAKERS = {
    "LQR": lambda s: LQR(s, Q=2.0, R=[1.0, 3.0]),
    "LinearFeedback": lambda s: LinearFeedback(s, gain=lqr_gain(s, R=2.0), disturbance_bound=9.0),
    "Planted": lambda s: Planted(s, policies=np.random.default_rng(0).standard_normal((40, 2, 2, 3))),
    **{name: (lambda s, make=make: make(s, 40, memory=2)) for name, make in LEARNED.items()},
}


def rest(controller, s, costs, w, x, first, last):
    states = []
    for t in range(first, last):
        u = controller.act(x)
        x = s.step(x, u, w[t])
        controller.observe(costs[t], x)
        states.append(x)
    return np.array(states).reshape(-1, s.state_dim), x


@pytest.mark.parametrize("name", MAKERS)
def test_arguments_are_attributes_and_shown(name):
    s, costs, w = scene(24)
    controller = MAKERS[name](s)
    assert all(hasattr(controller, argument) for argument in arguments(type(controller)))
    positional = [n for n, one in arguments(type(controller)).items() if one.kind is one.POSITIONAL_OR_KEYWORD]
    assert positional == (["system", "horizon"] if name in LEARNED else ["system"])
    rest(controller, s, costs, w, np.zeros(3), 0, 24)
    assert repr(controller).startswith(f"{name}(LinearSystem(3 states")
    assert repr(controller.clone()) == repr(controller).replace("24 rounds", "0 rounds")


def arguments(kind):
    """The arguments of a constructor, and those it passes on."""
    found = {}
    for one in kind.__mro__:
        own = inspect.signature(one.__init__).parameters if "__init__" in vars(one) else {}
        found = dict(own) | found
        if own and not any(p.kind is p.VAR_KEYWORD for p in own.values()):
            break
    return {name: p for name, p in found.items() if p.kind is not p.VAR_KEYWORD and name != "self"}


def test_scales_of_a_state_must_be_those_of_the_constants():
    s, costs, w = scene(20)
    measured, given_ = EfficientControl(s, 20, memory=3), EfficientControl(s, 20, constants=tight())
    for controller in (measured, given_):
        simulate(controller, s, costs, w, rounds=15)
        before = controller.state()
        wrong = [before["scales"] * -1.0]
        if controller is given_:
            wrong += [before["scales"] * 0.0, before["scales"] * 2.0]
        for scales in wrong:
            with pytest.raises(StateError, match="scales cannot come from a run"):
                controller.restore(before | {"scales": scales})
        assert controller.rounds == 15
        controller.restore(before)
    other = EfficientControl(s, 20, memory=3, gain=lqr_gain(s, R=2.0))  # other arguments, other classes: test_damage.py
    with pytest.raises(StateError):
        measured.restore(other.state())


@every_learned
def test_the_learner_and_its_controller_are_undone_together(name, monkeypatch):
    """Also in the round in which the learner begins."""
    s, costs, w = scene(40)
    controller = LEARNED[name](s, 40, memory=2)
    _, x = rest(controller, s, costs, w, np.zeros(3), 0, 3)
    began = False
    for t in range(3, 12):
        u = controller.act(x)
        x = s.step(x, u, w[t])
        measured = controller.learner is None
        with monkeypatch.context() as patch:
            patch.setattr(type(controller), "_learn", interrupted(type(controller)._learn))
            with refused(controller, error=KeyboardInterrupt):
                controller.observe(costs[t], x)
        controller.observe(costs[t], x)
        began |= measured and controller.learner is not None
    assert began


def interrupted(learn):
    def fails(self, cost, w):
        learn(self, cost, w)
        raise KeyboardInterrupt

    return fails


@every_learned
def test_an_extended_one_can_be_saved_at_once(name, tmp_path):
    """It knows the disturbances of the rounds before its first."""
    s, costs, w = scene(40)
    controller = LEARNED[name](s, 40, memory=2)
    _, x = rest(controller, s, costs, w, np.zeros(3), 0, 20)
    for longer in (controller.extended(100), controller.extended(100).extended(200)):
        longer.save(tmp_path / "longer.npz")
        again = tw.load(tmp_path / "longer.npz")
        assert np.array_equal(rest(again, s, costs, w, x, 0, 20)[0], rest(longer, s, costs, w, x, 0, 20)[0])


# ----------------------------------------------------------------------------------------------------------- bad input


class _NaNCost(QuadraticCost):
    def gradients(self, x, u):
        return np.full(3, np.nan), np.zeros(2)


@pytest.mark.parametrize("name", [*LEARNED, "LQR"])
def test_bad_input_changes_nothing(name):
    s, costs, w = scene(40)
    options = {"disturbance_bound": 1.0}
    controller = LQR(s, **options) if name == "LQR" else LEARNED[name](s, 40, constants=tight(), **options)
    x = simulate(controller, s, costs, w, rounds=20).states[-1]
    with pytest.raises(InputError, match="call act"):
        controller.observe(costs[0], x)
    u = controller.act(x)
    after = s.step(x, u, w[20])
    far = after + np.array([3.0, 0.0, 0.0])
    calls = {
        "nan": lambda: controller.act([np.nan, 0, 0]),
        "2 states|3 states": lambda: controller.act([0.0, 0.0]),
        "real numbers": lambda: controller.act("state"),
        "infinite": lambda: controller.observe(costs[20], [np.inf, 0, 0]),
        "has shape": lambda: controller.observe(costs[20], np.zeros((3, 1))),
        "above disturbance_bound": lambda: controller.observe(costs[20], far),
        "gradients": lambda: controller.observe(3.0, after),
    }
    if name != "LQR":
        calls["finite"] = lambda: controller.observe(_NaNCost([1, 1, 1], [1, 1]), after)
    for told, call in calls.items():
        with refused(controller, told):
            call()
    controller.observe(costs[20], after)  # the round can still be finished
    assert controller.rounds == 21


@every_learned
def test_a_gradient_above_the_bound_is_clipped_and_counted_or_refused(name):
    s, costs, w = scene(60)
    small = Constants(0.1 * np.ones(3), 0.01, 0.1)
    run = simulate(LEARNED[name](s, 60, constants=small), s, costs, w)
    assert run.clipped > 30
    assert "clipped" in repr(run)
    strict = LEARNED[name](s, 60, constants=small, on_violation="raise")
    with pytest.raises(InputError, match="above gradient_bound"):
        simulate(strict, s, costs, w)
    assert strict.rounds < 5


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda s: EfficientControl(s, 0), "horizon"),
        (lambda s: EfficientControl(s, 10, memory=0), "memory"),
        (lambda s: EfficientControl(s, 10, memory=2, constants=tight(3)), "3 caps"),
        (lambda s: EfficientControl(s, 10, constants="theory"), "must be Constants"),
        (lambda s: EfficientControl(s, 10, gain=-lqr_gain(s)), "must stabilise"),
        (lambda s: EfficientControl(s, 10, on_violation="ignore"), "on_violation"),
        (lambda s: EfficientControl(s, 10, disturbance_bound=-1.0), "disturbance_bound"),
        (lambda s: GPC(s, 10, step_size=0.0), "step_size"),
        (lambda s: Constants([1.0, -1.0]), "caps"),
        (lambda s: Constants([1.0], gradient_bound=1.0), "both"),
        (lambda s: Planted(s, policies=np.zeros((2, 3, 2))), "policies"),
        (lambda s: simulate(s, LQR(s), QuadraticCost([1, 1, 1], [1, 1]), np.zeros((3, 3))), "controller"),
        (lambda s: simulate(LQR(s), 3, QuadraticCost([1, 1, 1], [1, 1]), np.zeros((3, 3))), "LinearSystem"),
        (lambda s: simulate(LQR(s), s, 3, np.zeros((3, 3))), "a cost"),
        (
            lambda s: simulate(LQR(s), s, [QuadraticCost([1, 1, 1], [1, 1])] * 2, np.zeros((3, 3))),
            "2 costs for 3 rounds",
        ),
        (lambda s: simulate(LQR(s), s, QuadraticCost([1, 1, 1], [1, 1]), np.zeros((3, 2))), "shape"),
        (lambda s: simulate(LQR(s), s, QuadraticCost([1, 1, 1], [1, 1]), np.full((3, 3), np.nan)), "finite"),
        (lambda s: simulate(LQR(s), s, QuadraticCost([1, 1, 1], [1, 1]), BangBang(s)), "how many rounds"),
    ],
)
def test_bad_arguments_are_told(call, told):
    with pytest.raises(InputError, match=told):
        call(scene(5)[0])


@pytest.mark.parametrize("kind", [EfficientControl, GPC, ScreamControl])
def test_a_misspelt_argument_is_told_by_its_own_class(kind):
    with pytest.raises(
        TypeError, match=f"^{kind.__name__} got an unexpected keyword argument 'memry'. It takes .*memory"
    ):
        kind(scene(5)[0], 10, memry=3)


def test_a_disturbance_beyond_all_numbers_is_refused():
    s, costs, w = scene(10)
    controller = EfficientControl(s, 10, memory=2)
    controller.act(np.zeros(3))
    with pytest.raises(InputError, match="above 1e\\+60"):
        controller.observe(costs[0], np.full(3, 1e70))
    controller.observe(costs[0], w[0])


def test_the_round_of_an_error_is_told():
    s, costs, w = scene(10)
    with pytest.raises(InputError, match="above disturbance_bound") as told:
        simulate(LQR(s, disturbance_bound=0.3), s, costs, np.where(np.arange(10)[:, None] == 6, 1.0, 0.0 * w))
    assert "In round 6" in told.value.__notes__[0]


def test_planted_policies_end():
    s, costs, w = scene(10)
    with pytest.raises(InputError, match="5 rounds only"):
        simulate(Planted(s, policies=np.zeros((5, 2, 2, 3))), s, costs, w)


def test_past_its_horizon_it_goes_on_and_warns():
    s, costs, w = scene(40)
    with pytest.warns(HorizonWarning):
        run = simulate(EfficientControl(s, 10, constants=tight()), s, costs, w)
    assert run.rounds == 40


# ------------------------------------------------------------------------------------------------------------ simulate


@every_plant
def test_an_adversary_can_be_replayed(plant):
    s = PLANTS[plant]()
    cost = QuadraticCost(np.ones(s.state_dim), np.ones(s.input_dim))
    first = simulate(LQR(s), s, cost, BangBang(s, 0.1), rounds=50)
    again = simulate(LQR(s), s, cost, first.disturbances)
    assert np.array_equal(first.states, again.states)
    assert np.allclose(np.linalg.norm(first.disturbances, axis=1), 0.1)


def test_a_model_that_is_wrong_looks_like_a_disturbance():
    s = double_integrator()
    real = LinearSystem(s.A * 1.01, s.B)
    run = simulate(EfficientControl(s, 100, memory=3), real, QuadraticCost([1, 1], [1]), sinusoid(100, [0, 1], 0.1))
    assert np.isfinite(run.states).all()


def test_what_a_simulation_tells():
    s, costs, w = scene(50)
    run = simulate(EfficientControl(s, 50, constants=tight()), s, costs, w, start=[1.0, 0.0, 0.0], policies=True)
    assert run.states.shape == (51, 3)
    assert run.inputs.shape == (50, 2)
    assert run.policies.shape == (50, 3, 2, 3)
    assert run.states[0].tolist() == [1, 0, 0]
    assert [costs[t].value(run.states[t], run.inputs[t]) for t in range(50)] == run.costs.tolist()
    assert "50 rounds" in repr(run)
    assert "1 projections" in repr(run)
    assert "LinearSystem(3 states" in repr(EfficientControl(s, 50))


@pytest.mark.parametrize("kind", [GPC, EfficientControl])
def test_the_gain_can_be_that_of_the_costs_weights(kind, tmp_path):
    system, Q, R = boeing_747(), [10.0, 1.0, 1.0, 5.0], 0.1
    controller = kind(system, 100, Q=Q, R=R, memory=3)
    assert np.array_equal(controller.gain, lqr_gain(system, Q, R))
    assert not np.allclose(controller.gain, kind(system, 100, memory=3).gain)
    assert np.array_equal(controller.clone().gain, controller.gain)
    controller.save(tmp_path / "controller.npz")
    assert np.array_equal(tw.load(tmp_path / "controller.npz").gain, controller.gain)
    with pytest.raises(InputError, match="takes a gain, or the Q and R of the cost"):
        kind(system, 100, Q=Q, gain=controller.gain)
    with pytest.raises(InputError, match="'R' parameter of"):
        kind(system, 100, R=-1.0)


def test_the_matched_gain_pays_less_for_a_lopsided_cost():
    system = boeing_747()
    Q, R = np.diag([1.0, 1.0, 1.0, 100.0]), 0.001 * np.eye(2)
    wind = sinusoid(400, [1.0, 1.0, 0.0, 0.0], bound=2.0, period=40)
    paid = [
        simulate(EfficientControl(system, 400, memory=4, **weights), system, QuadraticCost(Q, R), wind).costs.sum()
        for weights in ({"Q": Q, "R": R}, {})
    ]
    assert paid[0] < 0.7 * paid[1]


def test_trajectories_draw_what_happened():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from thalweg.control.plots import trajectories

    system = double_integrator()
    cost, w = QuadraticCost([1, 1], [1]), sinusoid(40, [0, 1], bound=0.1, period=10)
    run, other = (simulate(LQR(system, R=r), system, cost, w) for r in (1.0, 9.0))
    state, force, paid = trajectories({"one": run, "other": other}, states=[1], first=10, last=30).axes
    assert np.array_equal(state.lines[0].get_xdata(), np.arange(10, 30))
    assert np.array_equal(state.lines[1].get_ydata(), other.states[10:30, 1])
    assert np.array_equal(force.lines[0].get_ydata(), run.inputs[10:30, 0])
    assert paid.lines[0].get_ydata()[-1] == pytest.approx(run.costs[10:30].sum())
    figure, ax = pyplot.subplots(4, 1)
    assert trajectories({"LQR": run}, ax=ax) is figure
    np.testing.assert_array_equal(ax[0].get_lines()[0].get_ydata(), run.states[:-1, 0])
    assert ax[3].get_ylabel() == "cost so far"
    pyplot.close(figure)
    for runs, options, told in (
        ({"LQR": run}, {"ax": ax[:2]}, "'ax' parameter of trajectories must be 4 Axes"),
        ({"LQR": run}, {"states": [2]}, "no state 2"),
        ({}, {}, "mapping"),
        ({"one": 3}, {}, "mapping"),
    ):
        with pytest.raises(InputError, match=told):
            trajectories(runs, **options)
