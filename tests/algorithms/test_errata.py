"""Computations behind docs/errata.md: a printed line of the paper cannot be meant, and ours can."""

import math
import pathlib
import re

import numpy as np
import pytest

import thalweg as tw
from thalweg._kernels.covers import COMPACT, place_marker
from thalweg.algorithms import thresholds
from thalweg.theorems import bounds

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")


def test_every_row_names_evidence_that_exists():
    """Tests by file and name; rows without one say that they are about the text."""
    errata, _, evidence = PAGE.partition("\n## Evidence\n")
    numbers = [int(number) for number in re.findall(r"^\| (\d+) \|", errata, re.M)]
    rows = re.findall(r"^\d+\. .*", evidence, re.M)
    assert len(rows) > 25
    assert numbers == [int(row.partition(".")[0]) for row in rows] == list(range(1, len(rows) + 1))
    for row in rows:
        named = re.findall(r"`(test_\w+)\.py::(test_\w+)`", row)
        assert named or "text only" in row or "by hand" in row, row
        for file, test in named:
            sources = list((ROOT / "tests").rglob(f"{file}.py"))
            assert len(sources) == 1, file
            assert f"def {test}(" in sources[0].read_text(encoding="utf-8"), row


def test_a_span_has_as_many_unit_intervals_as_the_largest_power_of_two():
    """Marker m = n 2^k, n odd: its expert is replaced at marker (n + 1) 2^k, after 2^k unit intervals."""
    born, died = np.zeros(12, dtype=np.int64), {}
    for m in range(1, 1000):
        alive = set(born[born > 0].tolist())
        place_marker(COMPACT, m, born)
        died |= dict.fromkeys(alive - set(born[born > 0].tolist()), m)
    assert all(died[m] - m == (m & -m) for m in died)
    assert len(died) > 900


def test_two_indicators_double_the_vector_on_the_border():
    y, D = np.array([3.0, 4.0]), 5.0
    norm = np.linalg.norm(y)
    assert np.array_equal(y * ((norm <= D) + D / norm * (norm >= D)), 2 * y)
    assert np.array_equal(tw.domains.Ball(2, radius=D).project(y), y)


def test_the_first_decision_must_be_the_projection_of_the_first_point():
    """X = [-1, 1], y_1 = 0, x_1 = 1 and g = 1: the surrogate gradient is 0, and the regret of 2 is not covered."""
    x, y, g, u = 1.0, 0.0, 1.0, -1.0
    v = (y - x) / abs(y - x)
    h = g - min(g * v, 0.0) * v
    assert h == 0.0
    assert g * (x - u) > h * (y - u)
    learner = tw.EfficientDynamic(tw.domains.Box([1.0], [2.0]), 10, 1.0)
    assert learner.decision == learner.domain.project(learner.inner.decision)


def test_hedge_with_the_sign_of_the_lemma_follows_the_worst_expert():
    N, T = 2, 400
    for sign, holds in ((1.0, False), (-1.0, True)):
        L, paid, squares = np.zeros(N), 0.0, 0.0
        for _ in range(T):
            p = np.exp(sign * math.sqrt(math.log(N) / (1 + squares)) * (L - L.max()))
            lost = np.array([1.0, 0.0])
            paid, L, squares = paid + p @ lost / p.sum(), L + lost, squares + 1.0
        allowed = 3 * math.sqrt(math.log(N) * (1 + squares)) + math.sqrt(math.log(N)) / 2
        assert (paid - L.min() <= allowed) == holds


def test_the_self_confident_lemma_needs_the_present_gradient():
    """sum l_t / sqrt(delta + sum_{s<t} l_s) can exceed 2 (sqrt(delta + sum l) - sqrt(delta)); with s <= t it cannot."""
    delta, numbers = 0.01, np.array([1.0, 4.0, 16.0])
    allowed = 2 * (math.sqrt(delta + numbers.sum()) - math.sqrt(delta))
    sums = np.cumsum(numbers)
    assert (numbers / np.sqrt(delta + sums - numbers)).sum() > allowed
    assert (numbers / np.sqrt(delta + sums)).sum() <= allowed


def test_the_smallest_ball_is_smaller_than_the_printed_one():
    X = tw.domains.Ellipsoid([1.0, 4.0], bound=9.0)  # diameter 6
    assert X.diameter == pytest.approx(6.0)
    assert X.surrogate.radius == pytest.approx(3.0)


def test_losses_are_not_bounded_by_g_times_d():
    """(x - 3)^2/2 on [0, 1] is smooth, >= 0 and has gradients of at most 3 = G; it is 4.5 > G D at 0."""
    X, f = tw.domains.Box([0.0], [1.0]), tw.losses.Squared([1.0], 3.0)
    G = max(abs(f.gradient(np.array([x]))[0]) for x in np.linspace(0, 1, 11))
    assert G == 3.0
    assert f.value(np.array([0.0])) == 4.5 > G * X.diameter


@pytest.mark.parametrize("m", [1, 10, 10**6])
def test_the_printed_threshold_does_not_follow_from_the_lemma_before_it(m):
    """X - F <= 4D sqrt(L) S sqrt(X) + b, solved for F = 0, allows more than the printed bound; ours is what follows."""
    T, D, L, G, delta = 10**6, 1.0, 1.0, 1e-3, 1e-6
    log, mu = math.log(1 + 2 * m), thresholds.mu(T)
    S, b = 3 * math.sqrt(log) + mu + 2, 18 * G * D * log + 6 * G * D * mu + 4 * D * math.sqrt(delta)
    allowed = bounds.small_loss(0.0, b, 4 * D * math.sqrt(L) * S)
    printed = (27 * G * D + 72 * D**2 * L) * log + 72 * D**2 * L * mu**2 + 9 * G * D * mu
    printed += 6 * D * math.sqrt(delta) + 288 * D**2 * L
    assert printed < allowed <= 24 * D**2 * L * S**2 + 1.5 * b
    settings = {"T": T, "G": G, "L": L, "R": D, "delta": delta}
    F = np.linspace(0, 1e5, 1001)
    largest = np.array([f + bounds.small_loss(f, b, 4 * D * math.sqrt(L) * S) for f in F])
    assert (largest <= 2 * F + thresholds.adaptive_proof(m, **settings) / 2).all()
    assert (largest > 2 * F + thresholds.adaptive_paper(m, **settings) / 2).any()
    expanded = (54 * G * D + 1512 * D**2 * L) * log + 168 * D**2 * L * mu**2 + 18 * G * D * mu
    expanded += 12 * D * math.sqrt(delta) + 672 * D**2 * L
    assert thresholds.adaptive_proof(m, **settings) <= expanded


def test_the_path_in_the_lower_bound_needs_the_factor_d():
    """Lengths times c and gradients over c change no loss: every term but the printed one of the path stays."""
    D, L, P, c = 2.0, 3.0, 0.7, 10.0
    assert 126 * (L / c**2) * (c * D) * (c * P) == pytest.approx(126 * L * D * P)
    assert 126 * (L / c**2) * (c * P) == pytest.approx(126 * L * P / c)


def test_the_trace_of_a_product_needs_square_matrices():
    """A policy has matrices with as many rows as inputs and as many columns as states."""
    g, M = np.ones((2, 3)), np.ones((2, 3))
    with pytest.raises(ValueError, match="mismatch"):
        np.trace(g @ M)
    assert np.trace(g.T @ M) == np.sum(g * M) == 6.0


def test_a_pca_step_without_its_root_has_linear_regret():
    """d = 2, k = 1, the same vector in all n rounds: with k(d - k)/(d n) the decision is on its way until the end."""
    e = np.diag([1.0, 0.0])
    lost = {}
    for n in (100, 400, 1600):
        for name, step in (("printed", 0.5 / n), ("root", math.sqrt(0.5 / n))):
            P, paid = np.eye(2) / 2, 0.0
            for _ in range(n):
                paid += 1.0 - P[0, 0]
                P = tw.domains.Fantope(2, 1).project(P + step * e)
            lost[name, n] = paid
    assert [lost["printed", n] / n for n in (100, 400, 1600)] == pytest.approx([3 / 8] * 3, rel=0.01)
    assert all(lost["root", n] <= math.sqrt(0.5 * n) for n in (100, 400, 1600))


def test_an_expert_is_rescaled_by_its_own_norm():
    Q, other, k = 3 * np.eye(2), np.eye(2), 1
    assert np.linalg.norm(Q * math.sqrt(k) / np.linalg.norm(other)) > math.sqrt(k)
    assert np.linalg.norm(Q * math.sqrt(k) / np.linalg.norm(Q)) == pytest.approx(math.sqrt(k))


def test_pca_feedback_is_divided_by_the_root():
    """Feedback is at most 2 sqrt(k): /(2 sqrt(k)) makes it 1 at most, /2 times sqrt(k) makes weights negative."""
    k = 4
    P = np.eye(4)
    g = -P / np.linalg.norm(P)
    r = np.sum(g * (P - -P))
    assert abs(r) / (2 * math.sqrt(k)) == 1.0
    assert 1 + r / 2 * math.sqrt(k) / 2 < 0  # with the rate 1/2 of a newborn


def test_one_value_is_not_needed_by_the_linearised_methods():
    X = tw.domains.Ball(2)
    problem = tw.problems.piecewise_stationary(X, 50, 2, rng=0)
    G, L = problem.gradient_bound(X), problem.smoothness
    for learner in (tw.EfficientDynamic(X, 50, G), tw.EfficientDynamic(X, 50, G, L)):
        assert tw.play(learner, problem).queries == tw.Queries(50, 50, 0)
