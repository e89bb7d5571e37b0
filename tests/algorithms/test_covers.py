"""Who is alive: covers against naive lists of intervals, the schedule through the learners, and thresholds that err."""

import itertools
import math
import warnings
from contextlib import nullcontext

import numpy as np
import pytest

import thalweg as tw
from tests.samples import refused, same
from tests.twins import adaptive as ref
from tests.twins import dynamic as streams
from tests.worlds import builtin, inner, stepped
from thalweg._kernels import covers
from thalweg.errors import HorizonWarning, InputError

LAST = 3000
KINDS = {"compact": covers.COMPACT, "geometric": covers.GEOMETRIC}


def living(cover, last):
    """For every m <= last the intervals that contain it, shortest first."""
    found = [[] for _ in range(last + 1)]
    for J in sorted(cover, key=lambda J: J[1] - J[0]):
        for m in range(J[0], min(J[1], last) + 1):
            found[m].append(J)
    return found


def slots(kind, last):
    """For every m <= last what the kernel has in its slots."""
    born = np.zeros(last.bit_length(), dtype=np.int64)
    for m in range(1, last + 1):
        top = covers.place_marker(KINDS[kind], m, born)
        yield m, top, born.copy()


def lowbit(m):
    return max(2**k for k in range(m.bit_length()) if m % 2**k == 0)


# ----------------------------------------------------------------------------------------------------- worked examples


@pytest.mark.parametrize(("t", "starts"), [(5, {4, 5}), (6, {4, 6}), (7, {4, 6, 7}), (8, {8}), (13, {8, 12, 13})])
def test_compact_cover_examples(t, starts):
    assert {J[0] for J in ref.alive(ref.compact_cover(20), t)} == starts
    assert {int(b) for m, _, born in slots("compact", 20) if m == t for b in born if b} == starts


def test_geometric_cover_example():
    assert ref.alive(ref.geometric_cover(20), 6) == [(6, 6), (6, 7), (4, 7)]
    (born,) = (born for m, _, born in slots("geometric", 20) if m == 6)
    assert born.tolist() == [6, 6, 4, 0, 0]


# ------------------------------------------------------------------------------------------ against lists of intervals


@pytest.mark.parametrize("kind", KINDS)
def test_slots_hold_the_intervals_that_contain_the_marker(kind):
    """Slot k has the interval of length 2^k, or nobody."""
    naive = living(ref.COVERS[kind](LAST), LAST)
    for m, _, born in slots(kind, LAST):
        expected = np.zeros_like(born)
        for start, end in naive[m]:
            expected[(end - start + 1).bit_length() - 1] = start
        np.testing.assert_array_equal(born, expected)


def test_compact_cover_has_one_interval_per_one_bit():
    naive = living(ref.compact_cover(LAST), LAST)
    for m, _, born in slots("compact", LAST):
        ones = [b for b in range(m.bit_length()) if m >> b & 1]
        assert np.count_nonzero(born) == len(naive[m]) == len(ones) == m.bit_count() <= math.floor(math.log2(m)) + 1
        assert {J[0] for J in naive[m]} == {m >> b << b for b in ones}


def test_compact_cover_births_and_deaths():
    """Marker m + 1 ends every j with j + lowbit(j) = m + 1, and starts one interval, of length lowbit(m + 1)."""
    naive = living(ref.compact_cover(LAST), LAST)
    for m in range(1, LAST):
        before, after = set(naive[m]), set(naive[m + 1])
        assert {J[0] for J in before - after} == {J[0] for J in before if J[0] + lowbit(J[0]) == m + 1}
        assert after - before == {(m + 1, m + lowbit(m + 1))}


def test_compact_cover_ends_before_the_marker_doubles():
    """So at most 2m experts share the life of the m-th: gamma_m = ln(1 + 2m)."""
    assert all(end < 2 * start for start, end in ref.compact_cover(LAST))


def test_geometric_cover_births_and_deaths():
    naive = living(ref.geometric_cover(LAST), LAST)
    previous = None
    for m, top, born in slots("geometric", LAST):
        assert len(naive[m]) == np.count_nonzero(born) == math.floor(math.log2(m)) + 1
        starting = [k for k in range(m.bit_length()) if m % 2**k == 0]
        assert [k for k in range(born.size) if born[k] == m] == starting == list(range(top + 1))
        if previous is not None:
            np.testing.assert_array_equal(born[top + 1 :], previous[top + 1 :])
        previous = born


def test_compact_intervals_are_geometric_intervals():
    assert set(ref.compact_cover(LAST)) < set(ref.geometric_cover(LAST))


def test_levels():
    assert [covers.level(m) for m in range(1, LAST)] == [lowbit(m).bit_length() - 1 for m in range(1, LAST)]
    assert covers.level(2**40) == 40


@pytest.mark.parametrize("kind", KINDS)
def test_every_range_of_markers_is_a_few_intervals(kind):
    """[p, q] takes at most ceil(log2(q - p + 2)) consecutive intervals, whose lengths at least double."""
    cover = ref.COVERS[kind](300)
    known, ends = set(cover), ref.longest(cover)
    worst = 0
    for p in range(1, 130):
        for q in range(p, 300):
            parts = ref.decompose(ends, p, q)
            assert set(parts) <= known
            assert parts[0][0] == p
            assert parts[-1][0] <= q <= parts[-1][1]
            assert all(one[1] + 1 == two[0] for one, two in itertools.pairwise(parts))
            assert all(two[0] <= 2 * one[0] for one, two in itertools.pairwise(parts))
            lengths = [end - start + 1 for start, end in parts]
            assert all(b >= 2 * a for a, b in itertools.pairwise(lengths))
            assert len(parts) <= math.ceil(math.log2(q - p + 2))
            worst = max(worst, len(parts))
    assert worst >= 7


# ------------------------------------------------------------------------------------------------- through the learners

T = 90


def setting(kind="squared", horizon=T, seed=0):
    domain = tw.domains.Ellipsoid([1.0, 2.0, 4.0], bound=2.0, center=[0.5, 0.0, -1.0])
    return domain, streams.make_stream(kind, domain, horizon, np.random.default_rng(seed))


def adaptive(domain, stream, horizon=T, **more):
    return tw.EfficientAdaptive(domain, horizon, stream.gradient_bound, stream.smoothness or 1.0, **more)


MAKERS = {
    "EfficientAdaptive": lambda d, s, n: adaptive(d, s, n, threshold=lambda m: 0.02 * s.loss_bound),
    "EfficientAdaptive, current": lambda d, s, n: adaptive(
        d, s, n, threshold=lambda m: 0.01 * s.loss_bound * math.log(1 + m), restart="current", feedback_range="observed"
    ),
    "EfficientAdaptive, every round": lambda d, s, n: adaptive(d, s, n, threshold=lambda m: 1e-300),
    "EfficientCBCE": lambda d, s, n: tw.EfficientCBCE(d, gradient_bound=s.gradient_bound, horizon=n),
    "CBCE": lambda d, s, n: tw.CBCE(d, gradient_bound=s.gradient_bound, horizon=n, gradients="own"),
    "CBCE, shared, compact": lambda d, s, n: tw.CBCE(
        d, gradient_bound=s.gradient_bound, gradients="shared", cover="compact", horizon=n
    ),
    "SACS": lambda d, s, n: tw.SACS(
        d, loss_bound=s.loss_bound, smoothness=1.0, threshold=0.02 * s.loss_bound, horizon=n, gradients="own"
    ),
    "SACS, compact": lambda d, s, n: tw.SACS(
        d, loss_bound=s.loss_bound, smoothness=1.0, cover="compact", horizon=n, gradients="own"
    ),
}
EVERY_ROUND = {"EfficientAdaptive, every round", "EfficientCBCE", "CBCE", "CBCE, shared, compact", "SACS, compact"}
GEOMETRIC = {"EfficientCBCE", "CBCE"}


@pytest.mark.parametrize("name", MAKERS)
def test_markers_born_and_active_agree(name):
    domain, stream = setting()
    learner = MAKERS[name](domain, stream, T)
    naive = living(ref.COVERS["geometric" if name in GEOMETRIC else "compact"](T + 1), T + 1)
    for t, f in enumerate(stream.losses, start=1):
        m = len(learner.markers)
        assert learner.markers[0] == 1
        assert learner.markers[-1] <= t
        assert learner.markers == sorted(set(learner.markers))
        assert inner(learner).born.tolist() == [J[0] for J in naive[m]]
        assert learner.active == len(naive[m]) == len(inner(learner).weights) == len(inner(learner).points)
        if name in EVERY_ROUND:
            assert m == t
        learner.step(f)
        assert len(learner.markers) - m in (0, 1)
        if len(learner.markers) > m:
            assert learner.markers[-1] == t + 1
    assert len(learner.markers) >= 10
    if name in EVERY_ROUND:
        assert learner.markers == list(range(1, T + 2))


@pytest.mark.parametrize("restart", ["center", "current"])
@pytest.mark.parametrize("feedback_range", ["bound", "observed"])
@pytest.mark.parametrize("custom", [False, True], ids=["built-in set", "custom set"])
def test_a_newborn_never_sees_the_round_that_called_for_it(custom, feedback_range, restart):
    domain, stream = setting()
    if custom:
        domain = tw.domains.Custom(domain.project, 3, domain.center, domain.radius)
    learner = adaptive(
        domain, stream, restart=restart, feedback_range=feedback_range, threshold=lambda m: 0.02 * stream.loss_bound
    )
    births = 0
    for f in stream.losses:
        y, m = np.array(learner.inner.decision), len(learner.markers)
        learner.step(f)
        if len(learner.markers) > m:
            births += 1
            (newest,) = np.flatnonzero(learner.inner.born == m + 1)
            start = learner.surrogate.center if restart == "center" else y
            np.testing.assert_array_equal(learner.inner.points[newest], start)
            if learner.active == 1:  # all the others are gone: it alone decides round t + 1
                np.testing.assert_array_equal(learner.inner.decision, start)
    assert births >= 10


def test_the_newborn_weighs_one_half_times_one():
    """p ~ eta w, eta = 1/2 and w = 1 at birth; an old one that has seen nothing but zeros has the same."""
    domain = tw.domains.Ball(2)
    learner = tw.EfficientAdaptive(domain, 10, 1.0, 1.0, threshold=lambda m: 0.5)
    for _ in range(2):
        learner.update(np.zeros(2), 1.0)
    assert learner.inner.born.tolist() == [3, 2]
    np.testing.assert_allclose(learner.inner.weights, [0.5, 0.5], rtol=1e-15)


@pytest.mark.parametrize("name", ["SACS", "SACS, compact", "CBCE", "CBCE, shared, compact"])
def test_a_newborn_on_the_set_itself_starts_at_its_centre(name):
    domain, stream = setting()
    learner = MAKERS[name](domain, stream, T)
    births = 0
    for f in stream.losses:
        m = len(learner.markers)
        learner.step(f)
        if len(learner.markers) > m:
            births += 1
            for k in np.flatnonzero(learner.born == m + 1):
                np.testing.assert_allclose(learner.points[k], domain.center, rtol=0, atol=1e-15)
    assert births >= 10


def test_a_tiny_threshold_fires_every_round_and_zero_loss_never():
    domain = tw.domains.Ball(2)
    for loss, markers in ((1e-12, list(range(1, 22))), (0.0, [1])):
        learner = tw.EfficientAdaptive(domain, 20, 1.0, 1.0, threshold=lambda m: 1e-13)
        for _ in range(20):
            learner.update(np.array([0.1, 0.0]), loss)
        assert learner.markers == markers


def test_the_threshold_must_be_exceeded_not_met_and_the_sum_starts_anew():
    learner = tw.EfficientAdaptive(tw.domains.Ball(2), 20, 1.0, 1.0, threshold=lambda m: 2.0 if m < 3 else 5.0)
    for _ in range(13):
        learner.update(np.zeros(2), 1.0)
    # 1 + 1 = 2 does not exceed 2: rounds 1-3 and 4-6; then rounds 7-12 exceed 5.
    assert learner.markers == [1, 4, 7, 13]


def test_the_threshold_of_efficient_adaptive_counts_the_loss_paid():
    """Not the surrogate's, not an expert's."""
    domain, stream = setting()
    C = 0.03 * stream.loss_bound
    learner = adaptive(domain, stream, threshold=lambda m: C)
    total, markers = 0.0, [1]
    for t, f in enumerate(stream.losses, start=1):
        total += learner.step(f)
        if total > C:
            total = 0.0
            markers.append(t + 1)
    assert learner.markers == markers


def test_the_threshold_of_sacs_counts_the_loss_of_the_newest_expert():
    domain, stream = setting()
    C = 0.02 * stream.loss_bound
    learner = tw.SACS(domain, loss_bound=stream.loss_bound, smoothness=1.0, threshold=C, gradients="own")
    total, markers, other = 0.0, [1], 0.0
    for t, f in enumerate(stream.losses, start=1):
        total += f.value(learner.points[list(learner.born).index(len(markers))])
        other += learner.step(f)
        if total > C:
            total = 0.0
            markers.append(t + 1)
    assert learner.markers == markers
    assert other < sum(f.value(domain.center) for f in stream.losses)


def test_on_a_long_run_the_latest_markers_are_kept():
    """A thousand at least, so that memory stays bounded on an endless stream; the experts do not depend on it."""
    learner = tw.EfficientAdaptive(tw.domains.Ball(1), 3, 1.0, 1.0, threshold=lambda m: 1e-300)
    problem = tw.problems.LinearRegression(np.full((2500, 1), 0.5), np.full(2500, 0.9))
    with pytest.warns(HorizonWarning):
        tw.play(learner, problem)
    assert len(learner.markers) >= 1000
    assert learner.markers == list(range(1, 2502))[-len(learner.markers) :]
    assert learner.active == (2501).bit_count()


# -------------------------------------------------------------------------------------------------- growth of the state


def decisions_of(learner, losses):
    """By step, past the horizon without a word about it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HorizonWarning)
        return stepped(learner, losses)


@pytest.mark.parametrize("name", MAKERS)
def test_a_run_beyond_the_horizon_grows_the_state_and_nothing_else(name):
    domain, stream = setting(horizon=100)
    short, long = MAKERS[name](domain, stream, 3), MAKERS[name](domain, stream, 1000)
    assert np.array_equal(decisions_of(short, stream.losses), decisions_of(long, stream.losses))
    assert short.markers == long.markers
    assert inner(short).born.tolist() == inner(long).born.tolist()
    assert short.queries == long.queries

    short, long = MAKERS[name](domain, stream, 3), MAKERS[name](domain, stream, 1000)
    with nullcontext() if short.anytime else pytest.warns(HorizonWarning):
        one = tw.play(short, builtin(stream), decisions=True)
    two = tw.play(long, builtin(stream), decisions=True)
    assert np.array_equal(one.decisions, two.decisions)
    assert np.array_equal(one.losses, two.losses)
    assert short.markers == long.markers
    assert one.queries == two.queries


@pytest.mark.parametrize("horizon", [None, 1])
@pytest.mark.parametrize("gradients", ["own", "shared"])
def test_a_learner_without_a_horizon_grows_past_its_first_guess(gradients, horizon):
    """2100 markers: past the 2047 that eleven slots can count."""
    domain = tw.domains.Box([-1.0], [1.0])
    problem = tw.problems.LinearLosses(np.random.default_rng(0).choice([-1.0, 1.0], size=(2100, 1)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HorizonWarning)
        run, roomy = (
            tw.play(tw.CBCE(domain, gradient_bound=1.0, gradients=gradients, horizon=T), problem, decisions=True)
            for T in (horizon, 5000)
        )
    assert np.array_equal(run.decisions, roomy.decisions)


def pools(judge, gradients):
    ball = tw.domains.Ball(3)
    pool = tw.experts.Pool([tw.experts.Descent(ball, step) for step in (0.1, 1.0)], judge=judge)
    return tw.Cover(ball, pool, meta=tw.metas.AdaptMLProd("observed"), gradients=gradients)


@pytest.mark.parametrize(("judge", "gradients"), [("linear", "shared"), ("value", "own")])
def test_pools_on_a_cover_play_as_they_step(judge, gradients):
    rng = np.random.default_rng(0)
    problem = tw.problems.LinearRegression(rng.standard_normal((60, 3)) / 2, rng.standard_normal(60))
    whole, single = pools(judge, gradients), pools(judge, gradients)
    run = tw.play(whole, problem, decisions=True)
    assert np.array_equal(run.decisions, decisions_of(single, problem))
    assert same(whole.state(), single.state())


@pytest.mark.parametrize(("judge", "gradients"), [("linear", "own"), ("value", "shared")])
def test_pools_that_a_cover_cannot_judge_are_refused(judge, gradients):
    needed = "value" if gradients == "own" else "linear"
    message = f"Cover with gradients='{gradients}' needs a Pool with judge='{needed}'. Got one with judge='{judge}'"
    with pytest.raises(InputError, match=message):
        pools(judge, gradients)


def test_a_prior_of_Hedge_holds_whatever_the_capacity():
    """Three slots for three rounds, where the state has four; later slots count as much as an average one."""
    ball, prior = tw.domains.Ball(2), np.array([0.7, 0.2, 0.1])
    learner = tw.Cover(
        ball, tw.experts.Descent(ball, 0.1), meta=tw.metas.Hedge(rate=0.1, prior=prior), horizon=3, anytime=True
    )
    for t in range(1, 40):
        slots = [k for k in range(6) if t >> k & 1]  # experts alive are the one-bits of t
        expected = np.append(prior, [1 / 3] * 3)[slots]
        np.testing.assert_allclose(learner.weights, expected / expected.sum(), rtol=1e-12)
        learner.update([0.0, 0.0])


# ------------------------------------------------------------------------------------------------ thresholds that err


BAD = [0.0, -1.0, math.nan, math.inf, -math.inf, "a lot", None]


def spoiled(bad, at, good=1e-300):
    return lambda m: bad if m == at else good


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_a_bad_first_threshold_is_refused_at_once(bad):
    domain, stream = setting()
    with pytest.raises(InputError, match=r"\bm = 1\b") as info:
        adaptive(domain, stream, threshold=spoiled(bad, 1))
    assert "threshold" in str(info.value)
    assert repr(bad) in str(info.value)


@pytest.mark.parametrize("how", ["step", "update", "play", "play in Python", "custom set"])
@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_a_bad_threshold_is_refused_when_it_is_reached_and_not_before(bad, how):
    domain, stream = setting()
    if how == "custom set":
        domain = tw.domains.Custom(domain.project, 3, domain.center, domain.radius)
    learner = adaptive(domain, stream, threshold=spoiled(bad, 5))
    # Every round fires: round 5 is the first in which C_5 is asked for.
    if how in ("play", "play in Python"):
        problem = builtin(stream) if how == "play" else tw.problems.FromLosses(stream.losses, (3,))
        with pytest.raises(InputError, match=r"\bm = 5\b"):
            tw.play(learner, problem)
        assert learner.rounds == 4
        twin = adaptive(domain, stream, threshold=lambda m: 1e-300)
        decisions_of(twin, stream.losses[:4])
        assert np.array_equal(learner.decision, twin.decision)
    else:
        decisions_of(learner, stream.losses[:4])
    assert learner.markers == [1, 2, 3, 4, 5]
    x = np.array(learner.decision)
    f = stream.losses[4]
    for _ in range(2):
        with refused(learner, r"\bm = 5\b"):
            _ = learner.update(f.gradient(x), f.value(x)) if how == "update" else learner.step(f)
        np.testing.assert_array_equal(learner.decision, x)


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_a_bad_threshold_that_is_never_reached_does_no_harm(bad):
    domain, stream = setting()
    losses = stream.losses
    C = sum(f.value(domain.center) for f in losses) + stream.loss_bound * T / 2  # more than half of all there can be
    learner = adaptive(domain, stream, threshold=spoiled(bad, 5, C))
    plain = adaptive(domain, stream, threshold=lambda m: C)
    np.testing.assert_array_equal(decisions_of(learner, losses), decisions_of(plain, losses))
    assert len(learner.markers) < 5
    tw.play(adaptive(domain, stream, threshold=spoiled(bad, 5, C)), builtin(stream))


def test_an_error_of_the_threshold_itself_comes_through_when_it_is_reached():
    domain, stream = setting()
    table = [math.nan, 1e-300, 1e-300, 1e-300]
    learner = adaptive(domain, stream, threshold=lambda m: table[m])
    decisions_of(learner, stream.losses[:3])
    x = np.array(learner.decision)
    with refused(learner, error=IndexError):
        learner.step(stream.losses[3])
    np.testing.assert_array_equal(learner.decision, x)
    table.append(1e-300)  # repaired, the run goes on
    learner.step(stream.losses[3])
    assert learner.markers == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("bad", ["theory", -3.0, None])
def test_a_threshold_is_a_word_a_number_or_a_function(bad):
    domain, stream = setting()
    with pytest.raises(InputError, match="threshold"):
        adaptive(domain, stream, threshold=bad)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "a lot"])
def test_the_threshold_of_sacs_is_a_positive_number(bad):
    with pytest.raises(InputError, match="threshold"):
        tw.SACS(tw.domains.Ball(2), loss_bound=1.0, smoothness=1.0, threshold=bad, gradients="own")


@pytest.mark.parametrize(
    "make",
    [
        lambda X: tw.CBCE(X, gradient_bound=3.0, horizon=2, gradients="own"),
        lambda X: tw.SACS(X, loss_bound=9.0, smoothness=1.0, horizon=2, gradients="own"),
        lambda X: tw.EfficientCBCE(X, gradient_bound=3.0, horizon=2),
        lambda X: tw.EfficientAOA(X, gradient_bound=3.0, horizon=2),
    ],
)
def test_methods_that_need_no_horizon_do_not_warn_past_it(make):
    learner = make(tw.domains.Ellipsoid([1.0, 4.0], bound=1.0))
    for _ in range(5):
        learner.step(tw.losses.Squared([1.0, 0.0], 1.0))  # a warning would be an error here


def test_a_bad_threshold_is_blamed_on_the_method_the_user_built():
    with pytest.raises(InputError, match=r"'threshold' parameter of EfficientAdaptive.*Got -1 for m = 1"):
        tw.EfficientAdaptive(tw.domains.Ball(2), 10, 3.0, 1.0, threshold=lambda m: -1)
