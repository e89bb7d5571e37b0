"""ConformalTracker: its twin, what it promises of coverage, and what must not change it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from tests.estimators.common import in_turn
from tests.twins import conformal as twin
from tests.worlds import examples
from thalweg.estimators import ConformalTracker

SMALL = {"windows": (8, 30), "halflives": (1, 5, 20)}


def streams(T=1500, seed=0):
    """Scores of many kinds."""
    rng = np.random.default_rng(seed)
    t, z = np.arange(T), np.abs(rng.standard_normal(T))
    return {
        "stationary": z,
        "heavy tails": np.abs(rng.standard_t(1, T)),
        "jumps": z * 10.0 ** rng.integers(-2, 3, 10).repeat(-(-T // 10))[:T],
        "up a million": z * np.where(t < T // 2, 1.0, 1e6),
        "down a million": z * np.where(t < T // 2, 1e6, 1.0),
        "growing": z * np.exp(t / 200),
        "seasonal": z * (1.2 + np.sin(t / 20)),
        "ties": rng.integers(0, 4, T).astype(float),
        "many zeros": z * (rng.random(T) < 0.3),
        "one score": np.full(T, 2.5),
        "a giant": np.where(t == T // 2, 1e9, z),
    }


def played(tracker, scores):
    """Thresholds one by one."""
    return np.array(in_turn(lambda t: tracker.threshold(), lambda t: tracker.update(scores[t]), len(scores)))


# ------------------------------------------------------------------------------------------------------------- the twin


@pytest.mark.parametrize("horizon", [1, 2, 7])
def test_thresholds_are_those_of_the_twin(horizon):
    """For as many rounds as rounding lets the weights agree: members with curvature amplify it."""
    scores = streams(100)["seasonal"]
    found = ConformalTracker(0.8, horizon=horizon, **SMALL).run_scores(scores)
    np.testing.assert_allclose(found, twin.thresholds(scores, 1 - 0.8, horizon, **SMALL), rtol=1e-6, atol=0)


class Lent:
    """The weights of a tracker, for the twin."""

    def __init__(self, tracker):
        self.tracker = tracker

    @property
    def x(self):
        return self.tracker.weights

    def update(self, *_):
        """They learn elsewhere."""


@pytest.mark.parametrize("name", [*streams(10), "zeros"])
def test_with_the_same_weights_thresholds_are_those_of_the_twin(name):
    scores = streams(1300 if name == "jumps" else 500)["stationary" if name == "zeros" else name]
    if name == "zeros":
        scores = np.insert(scores, [100] * 200 + [300] * 1100, 0.0)
    tracker = ConformalTracker(0.9)
    other = twin.Side(1 - 0.9, weights=Lent(tracker))
    for score in scores:
        wanted = other.ask()
        assert tracker.threshold() == pytest.approx(wanted, rel=1e-10, abs=0)
        other.answer(score)
        tracker.update(score)
    assert tracker.theta == pytest.approx(other.theta, abs=1e-10)
    if name == "zeros":
        assert len(other.scores) == 200


# --------------------------------------------------------------------------------------------------- what it promises


def watched(tracker, adversary, T):
    """Play T rounds against an adversary (t, threshold) -> score; all thresholds, scores, and bases in their order."""
    s = []

    def ask(t):
        theta, q = tracker.theta, tracker.threshold()
        s.append(adversary(t, q))
        return q, q / math.exp(theta)

    q, base = np.transpose(in_turn(ask, lambda t: tracker.update(s[t]), T, tracker.horizon - 1))
    return q, np.array(s), base


def constants(tracker):
    """G, f, f' and the ends of D in docs/intervals-proofs.md."""
    h, alpha = tracker.horizon, 1 - tracker.coverage
    fading = 0.6 / h * tracker.correction / h**0.75
    slope = tracker.correction / h**0.75 - fading

    def balance_at(level):
        return brentq(lambda D: slope * D * (1 + (D / (5 * h)) ** 2) - level, 0.0, level / slope) if level > 0 else 0.0

    f, more = (fading * share / (1 - math.exp(-1 / 60)) for share in (alpha, 1 - alpha))
    return balance_at, f, more, balance_at(2 + more), balance_at(44)


def check_theorem(tracker, adversary, T):
    """(3) of docs/intervals-proofs.md, and (4) where the scores allow it; returns whether they did."""
    q, s, base = watched(tracker, adversary, T)
    h, alpha = tracker.horizon, 1 - tracker.coverage
    G, f, more, low, high = constants(tracker)
    misses = int((s > q).sum())
    assert misses == tracker.misses
    known, close = base > 0, 1e-9 * T
    blank = int((~known & (s > 0))[h:].sum())
    far = np.log(s[known & (s > 0)] / base[known & (s > 0)])
    U = max(far.max(initial=0.0), 0.0)
    if G(U + f) + h * (1 - alpha) <= high:
        assert misses <= alpha * T + G(U + f) + (1 - alpha) * (h + blank) + close
    L = max(-far.min(initial=0.0), 0.0) if (s > 0).all() else math.inf
    if math.isfinite(L) and G(L + more) + h * alpha <= low:
        assert misses >= alpha * T - G(L + more) - h * alpha - close
        return True
    return False


def near(q, factor):
    """A score so many times the threshold, from 0.001 to 1000."""
    return min(max(factor * q, 1e-3), 1e3)


ADVERSARIES = {
    "above and below": lambda rng: lambda t, q: near(q, 1.01 if rng.random() < 0.3 else 0.9),
    "always above": lambda rng: lambda t, q: near(q, 1.05),
    "always below": lambda rng: lambda t, q: near(q, 0.95),
    "bursts of misses": lambda rng: lambda t, q: near(q, 1.5 if t % 50 < 5 else 0.8),
    "above when it may be": lambda rng: lambda t, q: 3.0 if q < 3.0 else 1.0,
    "below when it may be": lambda rng: lambda t, q: 3.0 if q >= 3.0 else 1.0 + 2 * (t % 2),
    "out of reach, then near": lambda rng: lambda t, q: 5.0 if t < 30 else 1.0 + rng.random(),
    "random spread": lambda rng: lambda t, q: float(np.exp(rng.normal() * (1 + t % 3))),
    "random": lambda rng: lambda t, q: 1.0 + rng.random(),
    "blank": lambda rng: lambda t, q: 5.0 * (t % 9 == 0),
    "blank, then above": lambda rng: lambda t, q: 5.0 * (t % 9 == 0) if t < 900 else near(q, 1.5),
    "now and then": lambda rng: lambda t, q: rng.exponential() * (rng.random() < 0.2),
}


@pytest.mark.parametrize("horizon", [1, 4])
@pytest.mark.parametrize("name", ADVERSARIES)
def test_coverage_holds_against_adversaries(name, horizon):
    adversary = ADVERSARIES[name](np.random.default_rng(1))
    tracker = ConformalTracker(0.8, correction=0.1, horizon=horizon, **SMALL)
    two_sided = check_theorem(tracker, adversary, 1200)
    assert two_sided or name not in ("random", "above when it may be")  # the other half is tried, too


def test_a_round_can_be_blank_without_a_long_run_of_zeros():
    tracker = ConformalTracker(0.9)
    assert played(tracker, [5.0, 0.0, 5.0])[2] == 0.0


def test_blank_rounds_may_lift_the_balance_to_its_end():
    """U need only leave room for one miss: what the upper end cuts off was added by blank rounds."""
    tracker = ConformalTracker(0.95, correction=0.5, **SMALL)
    scores = np.tile([5.0, *[0.0] * 8], 400)
    alpha, (G, f, _, _, high) = 1 - 0.95, constants(tracker)
    q, s, base = watched(tracker, lambda t, q: scores[t], scores.size)
    blank = int(((base == 0) & (s > 0))[1:].sum())
    assert blank == 399
    assert high - 9 * alpha - 1e-9 <= tracker.state()["above.balance"][0] <= high
    assert ((s > q) - alpha).sum() > high + 30 * (1 - alpha)  # as much was cut
    assert tracker.misses <= alpha * s.size + G(f) + (1 - alpha) * (1 + blank)  # U = 0
    assert tracker.misses > alpha * s.size + (1 - alpha) * (1 + blank / 2)  # and blank rounds must be counted


@given(
    seed=st.integers(0, 2**32 - 1), coverage=st.floats(0.05, 0.98), correction=st.floats(0.01, 0.5),
    spread=st.floats(0.01, 3.0), horizon=st.integers(1, 5),
)  # fmt: skip
@settings(max_examples=examples(40, 1000))
def test_coverage_holds_on_random_scores(seed, coverage, correction, spread, horizon):
    rng = np.random.default_rng(seed)
    scores = np.exp(spread * np.cumsum(rng.standard_normal(200)) / 10 + spread * rng.standard_normal(200))
    check_theorem(
        ConformalTracker(coverage, correction=correction, horizon=horizon, **SMALL), lambda t, q: scores[t], 200
    )


@pytest.mark.parametrize("name", [name for name in streams(10) if name not in ("one score",)])
def test_coverage_is_what_was_asked_for(name):
    scores = streams(4000)[name]
    found = ConformalTracker(0.9).run_scores(scores)
    assert abs(np.mean(scores <= found) - 0.9) < 0.005


def test_intervals_are_short():
    """On normal errors an interval score within 3 % of that of the right threshold, which is 1.645."""
    scores = np.abs(np.random.default_rng(4).standard_normal(6000))
    found = ConformalTracker(0.9).run_scores(scores)

    def score(q):
        return np.mean((q + np.maximum(scores - q, 0.0) / 0.1)[500:])

    assert score(found) < 1.03 * score(np.full(6000, 1.645))


def test_intervals_follow_a_spread_that_jumps():
    z = np.abs(np.random.default_rng(5).standard_normal(3000))
    scores = z * np.where(np.arange(3000) // 500 % 2, 100.0, 1.0)
    found = ConformalTracker(0.9).run_scores(scores)
    level = found / np.where(np.arange(3000) // 500 % 2, 100.0, 1.0)
    settled = np.arange(3000) % 500 >= 150
    assert np.median(level[settled]) == pytest.approx(1.645, abs=0.25)
    assert level[settled].max() < 6


# --------------------------------------------------------------------------------------------------- zeros and giants


def test_ten_thousand_zeros_do_no_harm():
    rng = np.random.default_rng(6)
    scores = np.abs(rng.standard_normal(12_000))
    scores[1000:11_000] = 0.0
    tracker = ConformalTracker(0.9)
    found = tracker.run_scores(scores)
    assert np.isfinite(found).all()
    assert (found[1200:11_001] == 0).all()
    again = scores[11_000:] > found[11_000:]
    assert again[:100].sum() <= 20
    assert 0.06 <= again[100:].mean() <= 0.14
    assert found[11_050:].max() < 6
    assert abs(tracker.theta) < 1


def test_zeros_in_between_do_not_wind_up():
    """Where a threshold of 0 covers more than was asked for, the correction must not run away."""
    rng = np.random.default_rng(7)
    rare = np.abs(rng.standard_normal(20_000)) * (rng.random(20_000) < 0.06)
    tracker = ConformalTracker(0.9)
    tracker.run_scores(rare)
    assert tracker.theta >= -2 - 0.05 * 0.6 * 60
    scores = np.abs(rng.standard_normal(400))
    found = tracker.run_scores(scores)
    assert (scores > found)[100:].mean() < 0.25


def test_a_giant_is_soon_forgotten():
    scores = np.abs(np.random.default_rng(8).standard_normal(3000))
    with_giant = scores.copy()
    with_giant[1000] = 1e12
    found = ConformalTracker(0.9).run_scores(with_giant)
    usual = ConformalTracker(0.9).run_scores(scores)
    later = slice(1150, None)
    assert np.mean(found[later]) < 1.05 * np.mean(usual[later])


# ------------------------------------------------------------------------------------------- what must not change it


@pytest.mark.parametrize("name", streams(10))
@pytest.mark.parametrize("power", [-301, -20, 1, 13, 250])
def test_scaling_by_a_power_of_two_is_exact(name, power):
    scores = streams(600)[name]
    scores[200:340] = 0.0  # a run of zeros, too
    found = ConformalTracker(0.9).run_scores(scores)
    assert (ConformalTracker(0.9).run_scores(scores * 2.0**power) == found * 2.0**power).all()


@pytest.mark.parametrize("asymmetric", [False, True])
def test_scores_and_intervals_are_the_same_thing(asymmetric):
    rng = np.random.default_rng(10)
    y, y_hat = np.round(rng.standard_normal((2, 200)), 3)
    options = {"asymmetric": asymmetric, **SMALL}
    errors = y - y_hat
    found = ConformalTracker(**options).run_scores(errors if asymmetric else np.abs(errors))
    below, above = (found[:, 0], found[:, 1]) if asymmetric else (found, found)
    assert (ConformalTracker(**options).run(y_hat, y) == np.stack([y_hat - below, y_hat + above], axis=1)).all()
    rows = played(ConformalTracker(**options), errors if asymmetric else np.abs(errors))
    assert (rows == found).all()


def test_answers_that_are_late_are_not_known():
    """With a horizon of h the quantiles of windows are those of h - 1 rounds ago."""
    scores = streams(300)["jumps"]

    def seen(tracker):
        found = []

        def answer(t):
            tracker.update(scores[t])
            found.append(tracker.candidates[:2])

        in_turn(lambda t: tracker.threshold(), answer, 300, tracker.horizon - 1)
        return np.array(found)

    assert np.array_equal(seen(ConformalTracker(horizon=5, **SMALL)), seen(ConformalTracker(**SMALL)))


def test_a_longer_horizon_changes_nothing_where_answers_come_at_once():
    """What a horizon allows need not be used; only the rates of the correction know it."""
    tracker = ConformalTracker(horizon=16)
    other = twin.Side(1 - 0.9, horizon=16, weights=Lent(tracker))
    for score in streams(300)["seasonal"]:
        assert tracker.threshold() == pytest.approx(other.ask(), rel=1e-10, abs=0)
        other.answer(score)
        tracker.update(score)


# --------------------------------------------------------------------------------------------------------- two sides


def test_two_sides_are_two_trackers():
    rng = np.random.default_rng(2)
    errors = rng.standard_normal(300)
    found = ConformalTracker(0.9, asymmetric=True, **SMALL).run_scores(errors)
    alpha = (1 - 0.9) / 2
    np.testing.assert_allclose(found[:, 1], twin.thresholds(np.maximum(errors, 0), alpha, **SMALL), rtol=1e-6)
    np.testing.assert_allclose(found[:, 0], twin.thresholds(np.maximum(-errors, 0), alpha, **SMALL), rtol=1e-6)


# ------------------------------------------------------------------------------------------------------ what it tells


def test_what_it_tells():
    tracker = ConformalTracker(0.9)
    assert tracker.rounds == tracker.misses == tracker.waiting == 0
    scores = streams(500)["stationary"]
    found = tracker.run_scores(scores)
    assert tracker.rounds == 500
    assert tracker.misses == (scores > found).sum()
    assert tracker.names == ["window 100", "window 400", *(f"half-life {h}" for h in (1, 5, 20, 80, 320))]
    assert tracker.weights.sum() == pytest.approx(1.0)
    q = tracker.threshold()
    assert q == pytest.approx(math.exp(tracker.theta) * tracker.weights @ tracker.candidates, rel=1e-12)
    assert tracker.waiting == 1
    two = ConformalTracker(asymmetric=True)
    two.run_scores(scores - 1)
    assert two.weights.shape == two.candidates.shape == (2, 7)
    below, above = two.threshold()
    assert (below, above) == pytest.approx(tuple(np.exp(two.theta) * (two.weights * two.candidates).sum(axis=1)))
