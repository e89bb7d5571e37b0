"""Forecasts combined: the numbers, by a twin and by what must hold whatever the data are."""

import numpy as np
import pytest

from tests.estimators.common import in_turn
from tests.twins import combination as twin
from thalweg.errors import InputError
from thalweg.estimators import Aggregator

SLOW = pytest.mark.slow
USUAL = ["Tracker", "BOA", "recent", "covariance"]


def stream(T=120, K=4, seed=0, asleep=0.0):
    """Forecasts, what came true, and who was awake."""
    rng = np.random.default_rng(seed)
    y = 5 + np.cumsum(rng.normal(size=T)) / 5
    X = y[:, None] + rng.normal(size=(T, K)) * rng.uniform(0.3, 2, K) + rng.uniform(-1, 1, K)
    X[T // 2 :, 0] += 1.5
    awake = (rng.random((T, K)) >= asleep).astype(float)
    awake[awake.sum(axis=1) == 0, 0] = 1.0
    return X, y, awake


def binary(T=120, K=3, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=T)
    X = 1 / (1 + np.exp(-z[:, None] - rng.normal(size=(T, K)) * [0.1, 1.0, 2.0][:K]))
    return X, (rng.random(T) < 1 / (1 + np.exp(-z))).astype(float)


# -------------------------------------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize("rule", ["BOA", "MLpol", "MLprod", "EWA", "FS", "recent", "covariance", "Tracker"])
@pytest.mark.parametrize("gradient", [True, False])
def test_every_rule_alone_is_its_twin(rule, gradient):
    X, y, awake = stream(asleep=0.2)
    P, W = twin.combine([rule], X, y, awake, gradient=gradient)
    run = Aggregator(rule=rule, gradient=gradient).run(X, y, awake)
    np.testing.assert_allclose(run.said, P, rtol=1e-8)
    np.testing.assert_allclose(run.played, W, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("loss", ["square", "absolute", "percentage", "pinball"])
@pytest.mark.parametrize("case", [(1, 120, 4), *(pytest.param((s, 250, 2 + s), marks=SLOW) for s in range(2, 8))])
def test_the_combination_is_its_twin(loss, case):
    seed, T, K = case
    X, y, awake = stream(T, K, seed, asleep=0.2)
    P, W = twin.combine(USUAL, X, y, awake, loss=loss, tau=0.8)
    run = Aggregator(loss, tau=0.8).run(X, y, awake)
    np.testing.assert_allclose(run.said, P, rtol=1e-7)
    np.testing.assert_allclose(run.played, W, rtol=1e-6, atol=1e-7)
    value = twin.LOSSES[loss][0]
    np.testing.assert_allclose(run.losses, value(P, y, 0.8), rtol=1e-5, atol=1e-6)


def test_log_loss_and_no_gradient_are_their_twins():
    X, y = binary()
    P, _ = twin.combine([*USUAL, "Bayes"], X, y, loss="log")
    np.testing.assert_allclose(Aggregator("log").run(X, y).said, P, rtol=1e-7)
    X, y, awake = stream(seed=2, asleep=0.2)
    P, _ = twin.combine([*USUAL, "FS"], X, y, awake, gradient=False)
    np.testing.assert_allclose(Aggregator(gradient=False).run(X, y, awake).said, P, rtol=1e-7)


def opera_python(X, y, rule):
    """BOA and ML-Poly of opera-python by its formulas, with its constants 2^-20 and 2^20."""
    T, K = X.shape
    (V, M, eta), (A, R), top = np.full((3, K), 2.0**-20), np.zeros((2, K)), 0.0
    P = np.zeros(T)
    for t in range(T):
        if rule == "BOA":
            logs = np.log(eta) + eta * A
            w = np.exp(logs - logs.max())
        else:
            w = eta * np.maximum(R, 0) if (R > 0).any() else np.ones(K)
        P[t] = w @ X[t] / w.sum()
        r = 2 * (P[t] - y[t]) * (P[t] - X[t])
        R += r
        if rule == "BOA":
            V, M = V + r**2, np.maximum(M, abs(r))
            B = 2.0 ** np.ceil(np.log2(M))
            eta = np.minimum(1 / B, np.sqrt(np.log(K) / V))
            A += 0.5 * (r - eta * r**2 + B * (eta * r > 0.5))
        else:
            more = max((r**2).max() - top, 0.0)
            eta, top = 1 / (1 / eta + r**2 + more), top + more
    return P


@pytest.mark.parametrize("rule", ["BOA", "MLpol"])
def test_rules_are_near_those_of_opera_python(rule):
    """It has other constants in its rates: what comes out must be of the same quality, and ours no worse."""
    for seed in range(4):
        X, y, _ = stream(T=1500, seed=seed)
        theirs = np.sqrt(np.mean((opera_python(1e4 * X, 1e4 * y, rule) - 1e4 * y) ** 2))
        ours = np.sqrt(Aggregator(rule=rule).run(1e4 * X, 1e4 * y).loss())
        assert 0.95 * theirs < ours < 1.01 * theirs


# --------------------------------------------------------------------------------------------- what must hold anywhere


@pytest.mark.parametrize(
    "options", [{}, {"horizon": 5}, {"rule": "FS"}, {"loss": "absolute", "gradient": False}, {"rule": "covariance"}]
)
def test_rows_one_by_one_are_a_run(options):
    """So no forecast of a run knows what comes."""
    X, y, awake = stream(T=60, asleep=0.3)
    X[awake == 0] = np.nan
    run, one = Aggregator(**options).run(X, y), Aggregator(**options)
    said = in_turn(lambda t: one.predict(X[t]), lambda t: one.update(y[t]), 60, one.horizon - 1)
    np.testing.assert_array_equal(said, run.said)
    split = Aggregator(**options)
    parts = [split.run(X[:17], y[:17]).said, split.run(X[17:], y[17:]).said]
    np.testing.assert_array_equal(np.concatenate(parts), run.said)


def test_late_answers_make_copies_that_take_turns():
    X, y, awake = stream(T=90, asleep=0.2)
    guests = {"guests": ["BOA", "recent"]}
    late = Aggregator(horizon=4, **guests).run(X, y, awake)
    for k in range(4):
        alone = Aggregator(**guests).run(X[k::4], y[k::4], awake[k::4])
        np.testing.assert_array_equal(late.said[k::4], alone.said)
        np.testing.assert_array_equal(late.played[k::4], alone.played)


@pytest.mark.parametrize("loss", ["square", "percentage"])
def test_copies_share_what_they_know_of_errors(loss):
    X, y, awake = stream(T=90, asleep=0.2)
    awake *= np.random.default_rng(3).uniform(0.1, 1.0, awake.shape)  # half awake
    P, W = twin.combine(USUAL, X, y, awake, loss, late=4)
    late = Aggregator(loss, horizon=4).run(X, y, awake)
    np.testing.assert_allclose(late.said, P, rtol=1e-7)
    np.testing.assert_allclose(late.played, W, rtol=1e-6, atol=1e-7)


def test_an_answer_that_comes_early_waits_for_its_turn():
    """What is known of errors is a function of the round, not of when answers came: so batches make no difference."""
    X, y, awake = stream(T=40, asleep=0.2)
    early = Aggregator(horizon=3)
    said = in_turn(lambda t: early.predict(X[t], awake[t]), lambda t: early.update(y[t]), 40)
    np.testing.assert_array_equal(said, Aggregator(horizon=3).run(X, y, awake).said)


@pytest.mark.parametrize("K", [2, 5, 20])
def test_weights_by_covariance_are_the_best_for_the_errors_so_far(K):
    X, y, awake = stream(T=300, K=K, seed=K, asleep=0.3)
    one = Aggregator(rule="covariance")
    one.run(X, y, awake)
    one.predict(X[0], awake[0])
    on = awake[0] > 0
    for w, keep in zip(one.state()["copies.0.held"], (1.0, 0.5 ** (1 / 64)), strict=True):
        M, v = twin.moments(X - y[:, None], awake, keep, on)
        slopes = M @ w[on] / v  # at the best they are the same where there is weight, and no less elsewhere
        assert w.sum() == pytest.approx(1.0, abs=1e-12)
        assert (w >= 0).all()
        assert not w[~on].any()
        assert slopes.min() >= w[on] @ slopes - 1e-9
        assert np.ptp(slopes[w[on] > 0]) < 1e-9
        assert np.ptp(M.sum(axis=1) / v) > 0.01  # of equal weights that is not true


@pytest.mark.parametrize(("K", "same"), [(50, False), (51, True)])
def test_covariance_is_for_up_to_fifty_experts(K, same):
    X, y, _ = stream(T=30, K=K)
    without = Aggregator(guests=["BOA", "recent"]).run(X, y).said
    assert np.array_equal(Aggregator().run(X, y).said, without) == same
    with pytest.raises(InputError, match="'rule' parameter of Aggregator asks for an array"):
        Aggregator(rule="covariance").predict(np.zeros(50_000))


@pytest.mark.parametrize("loss", ["square", "absolute", "pinball"])
def test_units_and_order_do_not_matter(loss):
    X, y, awake = stream(T=150, asleep=0.2)
    run = Aggregator(loss).run(X, y, awake)
    for scale in (2.0**40, 2.0**-40, 1e7):
        again = Aggregator(loss).run(scale * X, scale * y, awake)
        np.testing.assert_allclose(again.played, run.played, atol=1e-6)
    order = np.array([2, 0, 3, 1])
    again = Aggregator(loss).run(X[:, order], y, awake[:, order])
    np.testing.assert_allclose(again.played, run.played[:, order], atol=1e-6)
    again = Aggregator(loss).run(X + 100, y + 100, awake)
    np.testing.assert_allclose(again.played, run.played, atol=1e-5)


def test_a_newcomer_begins_with_an_equal_share_and_who_left_has_nothing():
    X, y, _ = stream(T=300, K=4)
    X[:, 3] = y + 0.01 * np.random.default_rng(1).normal(size=300)
    X[:150, 3] = np.nan
    X[200:, 0] = np.nan
    run = Aggregator(rule="BOA").run(X, y)
    assert run.played[150, 3] == pytest.approx(0.25)
    run = Aggregator().run(X, y)
    assert (run.played[:150, 3] == 0).all()
    assert (run.played[200:, 0] == 0).all()
    assert run.played[250:, 3].min() > 0.9


def test_one_expert_zero_losses_and_equal_experts():
    y = np.linspace(1, 2, 50)
    np.testing.assert_allclose(Aggregator().run(y[:, None] + 1, y).played, 1.0)
    run = Aggregator().run(np.tile(y[:, None], 3), y)
    np.testing.assert_allclose(run.played, 1 / 3)
    assert run.loss() < 1e-30
    X, y, _ = stream(T=100, K=1)
    run = Aggregator().run(np.repeat(X, 3, axis=1), y)
    np.testing.assert_allclose(run.said, X[:, 0], rtol=1e-12)


# --------------------------------------------------------------------------------------------------------------- regret


def adversarial(rule, T, K, seed, **options):
    """Forecasts 0 or 1 and answers chosen against what is played: 1 where the forecast is below 1/2."""
    rng = np.random.default_rng(seed)
    aggregator = Aggregator("absolute", rule=rule, **options)
    X, Y, P = (rng.random((T, K)) < 0.5).astype(float), np.zeros(T), np.zeros(T)
    for t in range(T):
        P[t] = aggregator.predict(X[t])
        Y[t] = float(P[t] < 0.5)
        aggregator.update(Y[t])
    return X, Y, P


@pytest.mark.parametrize("rule", ["BOA", "MLpol", "MLprod", None])
@pytest.mark.parametrize("kind", ["random", "adversarial"])
@pytest.mark.parametrize("case", [(3, 800, 5), *(pytest.param((s, 4000, s), marks=SLOW) for s in range(2, 12))])
def test_regret_is_of_the_order_of_the_root_of_squares(rule, kind, case):
    """Second-order bounds: for all i, sum_t r_ti <= C sqrt(V_i + max r^2) with V_i = sum_t r_ti^2.

    C = sqrt(K (1 + ln(1 + T))) for ML-Poly (Gaillard, Stoltz, van Erven 2014, Theorem 5); for BOA and ML-Prod of order
    ln K + ln ln T: 3 + ln K + ln(1 + ln T) holds with room.
    """
    seed, T, K = case
    if kind == "adversarial":
        X, y, P = adversarial(rule, T, K, seed)
    else:
        rng = np.random.default_rng(seed)
        X, y = rng.random((T, K)), rng.random(T)
        P = Aggregator("absolute", rule=rule).run(X, y).said
    r = np.sign(P - y)[:, None] * (P[:, None] - X)
    V, largest = (r**2).sum(axis=0), (r**2).max()
    C = np.sqrt(K * (1 + np.log(1 + T))) if rule == "MLpol" else 3 + np.log(K) + np.log(1 + np.log(T))
    assert (r.sum(axis=0) <= C * np.sqrt(V + largest)).all()
    assert np.abs(P - y).sum() <= np.abs(X - y[:, None]).sum(axis=0).min() + C * np.sqrt(V.max() + largest)


@pytest.mark.parametrize("count", [6, pytest.param(90, marks=SLOW)])
def test_the_combination_is_hardly_worse_than_the_best_rule(count):
    """On streams that are calm, jump, or drift; none of them was used to choose anything."""
    ratios = []
    for seed in range(count):
        rng = np.random.default_rng([seed, 77])
        T, K = 1500, int(rng.integers(2, 12))
        y = np.cumsum(rng.normal(size=T))
        spread = rng.uniform(0.2, 3, K) * np.ones((T, 1))
        if seed % 3 == 1:
            spread[T // 3 :] = rng.uniform(0.2, 3, K)
        if seed % 3 == 2:
            spread = spread * np.exp(np.cumsum(rng.normal(size=(T, K)), axis=0) * 0.05)
        X = y[:, None] + rng.normal(size=(T, K)) * spread + rng.normal(size=K) * 0.5
        best = min(Aggregator(rule=rule).run(X, y).loss() for rule in ("BOA", "MLpol", "MLprod", "EWA", "FS"))
        ratios.append(np.sqrt(Aggregator().run(X, y).loss() / best))
    assert np.mean(np.array(ratios) <= 1.005) >= 0.9
    assert max(ratios) < 1.05
    assert np.exp(np.mean(np.log(ratios))) < 1.0
