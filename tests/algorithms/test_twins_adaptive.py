"""Every learner of the adaptive-regret family plays what its slow twin plays, and asks for what its paper says."""

import functools
import itertools
import math

import numpy as np
import pytest

import thalweg as tw
from tests.samples import refused
from tests.twins import adaptive as ref
from tests.twins import dynamic as streams
from tests.worlds import (
    SETS,
    CountedLoss,
    CountedSet,
    around,
    assert_plays,
    builtin,
    inner,
    on_flat,
    slow_where,
    smoothness,
    tau_of,
)
from thalweg.errors import InputError

DOMAINS = SETS | {
    "custom box": lambda: tw.domains.Custom(
        lambda x: np.clip(x, -1.0, 2.0), 3, center=np.full(3, 0.5), radius=1.5 * math.sqrt(3), tolerance=1e-12
    ),
}
HORIZON = 60


def in_y(domain, losses, surrogate=None):
    """What the twins of the efficient methods need to know. A surrogate of one's own leaves gradients as they are."""
    y = surrogate or domain.surrogate
    tau = tau_of(domain) if surrogate is None else streams.everything
    return {
        "losses": streams.flattened(losses, tau),
        "tau": tau,
        "project": domain.project,
        "center": y.center,
        "radius": y.radius,
        "project_y": None if isinstance(y, tw.domains.Ball) else y.project,
    }


def on_x(domain, losses):
    return {
        "losses": streams.flattened(losses, tau_of(domain)),
        "project": domain.project,
        "center": domain.center,
        "diameter": domain.diameter,
    }


THRESHOLDS = {
    "every round": lambda s: lambda m: 1e-300,
    "often": lambda s: lambda m: 0.03 * s.loss_bound,
    "seldom": lambda s: lambda m: 0.3 * s.loss_bound,
    "growing": lambda s: lambda m: 0.02 * s.loss_bound * math.log(1 + 2 * m),
}


def adaptive(threshold="often", surrogate=None, **more):
    """EfficientAdaptive and its twin."""

    def learner(d, s):
        C = THRESHOLDS[threshold](s)
        y = surrogate and surrogate(d)
        return tw.EfficientAdaptive(d, HORIZON, s.gradient_bound, smoothness(s), threshold=C, surrogate=y, **more)

    def twin(d, s):
        C = THRESHOLDS[threshold](s)
        y = surrogate and surrogate(d)
        return ref.efficient_adaptive(gradient_bound=s.gradient_bound, threshold=C, **in_y(d, s.losses, y), **more)

    return learner, twin


def paired(kind, twin, both=lambda d, s: {}, mine=lambda d, s: {}, theirs=lambda d, s: {}):
    """Cases of a learner on X and its twin: both with `more`, where functions take the stream."""

    def case(**more):
        def given(d, s, usual):
            settings = {"gradient_bound": s.gradient_bound} | both(d, s) | usual(d, s)
            return settings | {k: v(s) if callable(v) else v for k, v in more.items()}

        return lambda d, s: kind(d, **given(d, s, mine)), lambda d, s: twin(**on_x(d, s.losses), **given(d, s, theirs))

    return case


def efficient_cbce(surrogate):
    return (
        lambda d, s: tw.EfficientCBCE(d, gradient_bound=s.gradient_bound, surrogate=surrogate(d)),
        lambda d, s: ref.efficient_cbce(gradient_bound=s.gradient_bound, **in_y(d, s.losses, surrogate(d))),
    )


def range_of(s):
    return s.loss_bound


def often(s):
    return 0.03 * s.loss_bound


def own(d, s):
    return {"gradients": "own"}


cbce = paired(tw.CBCE, ref.cbce, mine=own, theirs=lambda d, s: {"radius": d.radius})
sacs = paired(tw.SACS, ref.sacs, lambda d, s: {"loss_bound": s.loss_bound, "smoothness": smoothness(s)}, mine=own)
saol = paired(tw.SAOL, ref.saol, mine=own)
aflh = paired(tw.AFLH, ref.aflh, lambda d, s: {"horizon": len(s.losses)}, mine=own)


# name: (learner, twin), each from (domain, stream)
CASES = {
    "EfficientAdaptive": adaptive(),
    "EfficientAdaptive, every round": adaptive("every round"),
    "EfficientAdaptive, seldom, wide ball": adaptive("seldom", around),
    "EfficientAdaptive, growing, delta": adaptive("growing", delta=0.01),
    "EfficientAdaptive, current": adaptive(restart="current"),
    "EfficientAdaptive, current, every round, wide ball": adaptive("every round", around, restart="current"),
    "EfficientAdaptive, observed": adaptive(feedback_range="observed"),
    "EfficientAdaptive, observed, seldom": adaptive("seldom", feedback_range="observed"),
    "EfficientAdaptive, observed, current, seldom": adaptive("seldom", restart="current", feedback_range="observed"),
    "EfficientAdaptive, observed, growing, wide ball": adaptive("growing", around, feedback_range="observed"),
    "EfficientAdaptive, observed, current, every round": adaptive(
        "every round", restart="current", feedback_range="observed"
    ),
    "EfficientCBCE": efficient_cbce(lambda d: None),
    "EfficientCBCE, wide ball": efficient_cbce(around),
    "CBCE": cbce(),
    "CBCE, stated range": cbce(loss_bound=range_of),
    "CBCE, compact": cbce(cover="compact"),
    "CBCE, shared": cbce(gradients="shared"),
    "CBCE, shared, compact": cbce(gradients="shared", cover="compact"),
    "SACS": sacs(),
    "SACS, often": sacs(threshold=often),
    "SACS, seldom, delta": sacs(threshold=lambda s: 0.3 * s.loss_bound, delta=0.01),
    "SACS, compact": sacs(cover="compact"),
    "SACS, shared, often": sacs(threshold=often, gradients="shared"),
    "SACS, shared, compact": sacs(cover="compact", gradients="shared"),
    "SAOL": saol(),
    "SAOL, stated range": saol(loss_bound=range_of),
    "SAOL, shared": saol(gradients="shared"),
    "AFLH": aflh(),
    "AFLH, stated range": aflh(loss_bound=range_of),
    "AFLH, strongly convex": aflh(strong_convexity=0.3),
    "AFLH, shared": aflh(gradients="shared"),
}
ON_X = ("SACS", "CBCE", "SAOL", "AFLH")
OWN = {name for name in CASES if name.startswith(ON_X) and "shared" not in name}
EFFICIENT = [name for name in CASES if name.startswith("Efficient")]


def on_domains(cases):
    """All cases on all domains. Compiled, covers on a ball are code of their own: CBCE with one gradient is one."""
    alike = {name for name in CASES if name.startswith(ON_X) and not name.startswith("CBCE, shared")}
    rows = itertools.product(cases, DOMAINS)
    return pytest.mark.parametrize(
        ("case", "domain"), slow_where(lambda case, domain: case in alike and "ball" in domain, rows)
    )


@functools.cache
def setting(domain, kind, horizon=HORIZON, style="abrupt"):
    x = DOMAINS[domain]()
    rng = np.random.default_rng([*map(ord, domain + kind + style)])
    return x, streams.make_stream(kind, x, horizon, rng, style)


@functools.cache
def twin_of(case, domain, kind, horizon=HORIZON, style="abrupt"):
    return CASES[case][1](*setting(domain, kind, horizon, style))


def assert_close(actual, expected, domain):
    scale = max(1.0, domain.radius, np.abs(domain.center).max())
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-10 * scale)


def queries_of(twin, case, start=True):
    """(projections, gradients, values). A learner on X has projected its starting point before the first round."""
    before = 0 if case in EFFICIENT or not start else 1
    return twin.projections + before, twin.gradient_queries, twin.value_queries


def as_tuple(queries):
    return queries.projections, queries.gradients, queries.values


# ------------------------------------------------------------------------------------------------------ round by round


@pytest.mark.parametrize("kind", ["flipping", "squared", pytest.param("noiseless", marks=pytest.mark.slow)])
@on_domains(CASES)
def test_step_equals_the_twin(case, domain, kind):
    x, stream = setting(domain, kind)
    learner, twin = CASES[case][0](x, stream), twin_of(case, domain, kind)
    decisions, points, weights, paid = [], [], [], []
    for t, f in enumerate(stream.losses):
        decisions.append(learner.decision)
        points.append(inner(learner).points)
        weights.append(inner(learner).weights)
        assert inner(learner).born.tolist() == twin.born[t]
        paid.append(learner.step(f))
    assert_close(decisions, twin.decisions, x)
    assert_close(np.concatenate(points), np.concatenate(twin.points), x)
    if kind == "squared" and "observed" not in case:  # there, weights of experts in one place are mostly rounding
        np.testing.assert_allclose(np.concatenate(weights), np.concatenate(twin.weights), rtol=0, atol=1e-9)
    np.testing.assert_allclose(paid, twin.losses, rtol=1e-9, atol=1e-9)
    assert learner.markers == twin.markers
    assert as_tuple(learner.queries) == queries_of(twin, case)


@on_domains([name for name in CASES if name not in OWN])
def test_update_equals_the_twin(case, domain):
    x, stream = setting(domain, "absolute")
    learner, twin = CASES[case][0](x, stream), twin_of(case, domain, "absolute")
    decisions = []
    for f in stream.losses:
        decision = learner.decision
        decisions.append(decision)
        learner.update(f.gradient(decision), f.value(decision))
    assert_close(decisions, twin.decisions, x)
    assert learner.markers == twin.markers
    assert as_tuple(learner.queries) == queries_of(twin, case)


@pytest.mark.parametrize("kind", ["linear", "absolute", "squared"])
@on_domains(CASES)
def test_play_equals_the_twin(case, domain, kind):
    """In compiled loops where the set is built in, and round by round in Python."""
    x, stream = setting(domain, kind)
    twin = twin_of(case, domain, kind)
    problems = [builtin(stream)]
    if kind == "absolute":
        problems.append(tw.problems.FromLosses(stream.losses, x.shape))
    for problem in problems:
        learner = CASES[case][0](x, stream)
        run = tw.play(learner, problem, decisions=True)
        assert_close(run.decisions, twin.decisions, x)
        np.testing.assert_allclose(run.losses, twin.losses, rtol=1e-9, atol=1e-9)
        assert learner.markers == twin.markers
        assert as_tuple(run.queries) == queries_of(twin, case, start=False)


@pytest.mark.parametrize("domain", ["simplex", "polytope"])
@pytest.mark.parametrize("case", CASES)
def test_on_flats_the_part_of_a_gradient_across_is_taken_off(case, domain):
    x, stream = on_flat(domain, HORIZON)
    make, twin = CASES[case][0], CASES[case][1](x, stream)
    assert_plays(lambda: make(x, stream), stream.losses, twin.decisions)


@pytest.mark.parametrize("case", [case for case in CASES if not case.startswith("EfficientAdaptive")])
def test_a_longer_gradual_run(case):
    x, stream = setting("ellipsoid", "squared", 300, "gradual")
    run = tw.play(CASES[case][0](x, stream), builtin(stream), decisions=True)
    assert_close(run.decisions, twin_of(case, "ellipsoid", "squared", 300, "gradual").decisions, x)


@pytest.mark.parametrize("case", CASES)
def test_shifting_the_world_shifts_the_decisions(case):
    """Experts that stand in one place, as all newborns do, must not be told apart by rounding."""
    shift = np.array([5.1, -3.3, 2.7])
    here, there = (tw.domains.Ellipsoid([1.0, 2.0, 4.0], bound=1.5, center=c) for c in (np.zeros(3), shift))
    stream = streams.make_stream("squared", here, HORIZON, np.random.default_rng(9))
    moved = streams.Stream(
        [streams.Squared(f.features, f.label + f.features @ shift) for f in stream.losses],
        stream.planted + shift,
        stream.gradient_bound * (1 + 1e-9),
        stream.loss_bound * (1 + 1e-9),
        stream.smoothness,
    )
    make = CASES[case][0]
    one = tw.play(make(here, stream), builtin(stream), decisions=True)
    two = tw.play(make(there, moved), builtin(moved), decisions=True)
    np.testing.assert_allclose(two.decisions - shift, one.decisions, rtol=0, atol=1e-7)


@pytest.mark.parametrize("restart", ["center", "current"])
@pytest.mark.parametrize("feedback_range", ["bound", "observed"])
def test_rates_that_fall(feedback_range, restart):
    """Two experts, old and young, that disagree for hundreds of rounds: eta leaves 1/2, weights go to powers."""
    horizon = 700
    x, rng = tw.domains.Box([-1.0, -1.0], [1.0, 1.0]), np.random.default_rng(0)
    axes = streams.unit(np.array([1.0, 0.0]) + 0.2 * rng.normal(size=(horizon, 2)))
    slopes = np.where(np.arange(horizon) // 20 % 2 == 0, 1.0, -1.0)[:, None] * axes
    losses = [streams.Linear(slope, 1.5) for slope in slopes]
    how = {"threshold": lambda m: {1: 1.0, 2: 150.0}.get(m, 1e9), "restart": restart, "feedback_range": feedback_range}
    learner = tw.EfficientAdaptive(x, horizon, 1.0, 1.0, surrogate=tw.domains.Ball(2, math.sqrt(2)), **how)
    twin = ref.efficient_adaptive(gradient_bound=1.0, **in_y(x, losses, tw.domains.Ball(2, math.sqrt(2))), **how)
    assert twin.born[-1] == [3, 2]
    assert min(min(rates) for rates in twin.rates[5:]) < 0.49
    run = tw.play(learner, tw.problems.LinearLosses(slopes, np.full(horizon, 1.5)), decisions=True)
    assert_close(run.decisions, twin.decisions, x)
    assert learner.markers == twin.markers


@pytest.mark.parametrize("threshold", ["paper", "proof"])
def test_the_thresholds_by_name(threshold):
    """They are too high for a short run: scaled losses make them fire."""
    x = tw.domains.Ball(2)
    stream = streams.make_stream("squared", x, 3000, np.random.default_rng(2), scale=1.0)
    T, G, L = 3000, stream.gradient_bound, 0.002  # a smoothness that is not the true one, so that C_m is small
    formula = ref.printed_threshold if threshold == "paper" else ref.derived_threshold
    losses = [streams.Squared(f.features, f.label + 1.0) for f in stream.losses]
    G = G + 1.5
    learner = tw.EfficientAdaptive(x, T, G, L, threshold=threshold)
    twin = ref.efficient_adaptive(
        gradient_bound=G, threshold=lambda m: formula(m, T, G, L, 1.0, 1.0), **in_y(x, losses)
    )
    problem = tw.problems.LinearRegression(np.array([f.features for f in losses]), [f.label for f in losses])
    run = tw.play(learner, problem, decisions=True)
    assert learner.markers == twin.markers
    assert len(twin.markers) >= 3
    assert_close(run.decisions, twin.decisions, x)


def test_the_cases_have_work_to_do():
    """Markers fire in the first rounds and in later ones, experts die, y_t leaves X, and the range keeps growing."""
    counts = {case: len(twin_of(case, "ellipsoid", "squared").markers) for case in CASES}
    assert counts["SACS"] == 1
    for case, count in counts.items():
        always = any(name in case for name in ("every round", "CBCE", "SAOL", "AFLH"))
        if always or (case.startswith("SACS") and "compact" in case):
            assert count == HORIZON + 1
        elif case != "SACS":
            assert 4 <= count <= HORIZON // 2, case
    for case in CASES:
        if "wide ball" in case:
            twin = twin_of(case, "box", "flipping")
            outside = np.linalg.norm(twin.inner - twin.decisions, axis=1) > 1e-3
            corrected = np.linalg.norm(twin.fed - twin.gradients, axis=1) > 1e-3
            assert outside.sum() >= HORIZON // 3, case
            assert corrected.sum() >= HORIZON // 6, case


# ---------------------------------------------------------------------------------------------------------- identities


@pytest.mark.parametrize("domain", DOMAINS)
def test_one_expert_for_ever_is_scale_free_descent_under_the_reduction(domain):
    """No second marker: the weights have nobody else to choose."""
    x, stream = setting(domain, "squared")
    learner = tw.EfficientAdaptive(x, HORIZON, stream.gradient_bound, 1.0, threshold=lambda m: 1e12)
    plain = tw.OneProjection(x, lambda y: tw.SOGD(y, scale=y.radius))
    problem = tw.problems.FromLosses(stream.losses, x.shape)
    one, two = tw.play(learner, problem, decisions=True), tw.play(plain, problem, decisions=True)
    assert_close(one.decisions, two.decisions, x)
    assert learner.markers == [1]


def test_cbce_on_linear_losses_needs_no_own_gradients():
    """Own and shared gradients coincide, and so do the ranges when they are stated to."""
    for domain in ("ellipsoid", "simplex"):
        x, stream = setting(domain, "linear")
        bound = stream.gradient_bound
        own = tw.CBCE(x, gradient_bound=bound, loss_bound=2 * bound * x.radius, cover="compact", gradients="own")
        shared = tw.CBCE(x, gradient_bound=bound, gradients="shared", cover="compact")
        problem = builtin(stream)
        one, two = tw.play(own, problem, decisions=True), tw.play(shared, problem, decisions=True)
        assert_close(one.decisions, two.decisions, x)


@pytest.mark.parametrize("domain", ["ball", "off-centre ball"])
def test_a_ball_is_its_own_surrogate(domain):
    """Y = X: the reduction has nothing to do, and EfficientCBCE is CBCE with one gradient."""
    x, stream = setting(domain, "squared")
    problem = builtin(stream)
    one = tw.play(tw.EfficientCBCE(x, gradient_bound=stream.gradient_bound), problem, decisions=True)
    two = tw.play(tw.CBCE(x, gradient_bound=stream.gradient_bound, gradients="shared"), problem, decisions=True)
    assert_close(one.decisions, two.decisions, x)


@pytest.mark.parametrize("restart", ["center", "current"])
def test_an_observed_range_does_not_care_about_the_unit_of_the_loss(restart):
    """Losses and thresholds in other units, delta too: nothing else in the learner has a unit."""
    x, stream = setting("box", "squared")
    runs = []
    for unit in (1.0, 1e4, 1e-4):
        losses = [streams.Squared(math.sqrt(unit) * f.features, math.sqrt(unit) * f.label) for f in stream.losses]
        learner = tw.EfficientAdaptive(
            x,
            HORIZON,
            stream.gradient_bound * unit * 100,  # a bound that is far too high is no harm here
            1.0,
            threshold=lambda m, unit=unit: 0.03 * stream.loss_bound * unit,
            delta=unit**2,
            restart=restart,
            feedback_range="observed",
        )
        run = tw.play(learner, tw.problems.FromLosses(losses, x.shape), decisions=True)
        runs.append((run.decisions, learner.markers))
    for decisions, markers in runs[1:]:
        assert markers == runs[0][1]
        np.testing.assert_allclose(decisions, runs[0][0], rtol=0, atol=1e-8)


def test_zero_gradients_move_nothing():
    for case in CASES:
        x = DOMAINS["simplex"]()
        still = streams.Stream([streams.Linear(np.zeros(4), 1.0)] * 20, None, 1.0, 1.0, 1.0)
        run = tw.play(CASES[case][0](x, still), builtin(still), decisions=True)
        np.testing.assert_allclose(run.decisions, np.tile(x.center, (20, 1)), rtol=0, atol=1e-15)


# ------------------------------------------------------------------------------------------------------------ counting


def ones(t, m):
    """n experts of the compact cover at marker m."""
    return m.bit_count()


def levels(t, m):
    """n experts of the geometric cover in round t."""
    return math.floor(math.log2(t)) + 1


# name: (case, n(t, m), what a round costs as a function of n)
COUNTS = {
    "EfficientAdaptive": ("EfficientAdaptive", ones, lambda n: (1, 1, 1)),
    "EfficientAdaptive, every round": ("EfficientAdaptive, every round", ones, lambda n: (1, 1, 1)),
    "EfficientCBCE": ("EfficientCBCE", levels, lambda n: (1, 1, 0)),
    "CBCE": ("CBCE", levels, lambda n: (n, n, n + 1)),
    "CBCE, compact": ("CBCE, compact", ones, lambda n: (n, n, n + 1)),
    "CBCE, shared": ("CBCE, shared", levels, lambda n: (n, 1, 0)),
    "SACS": ("SACS, often", ones, lambda n: (n, n, n + 1)),
    "SACS, compact": ("SACS, compact", ones, lambda n: (n, n, n + 1)),
    "SACS, shared": ("SACS, shared, often", ones, lambda n: (n, 1, 1)),
    "SACS, shared, compact": ("SACS, shared, compact", ones, lambda n: (n, 1, 0)),
}


def counted(name):
    exact = tw.domains.Box([-1.0, -1.0, 0.0], [1.0, 0.5, 0.2])
    stream = streams.make_stream("squared", exact, HORIZON, np.random.default_rng(3))
    room = CountedSet(exact)
    learner = CASES[COUNTS[name][0]][0](room.domain, stream)
    return learner, room, [CountedLoss(f) for f in stream.losses]


@pytest.mark.parametrize("name", COUNTS)
def test_every_round_costs_what_the_paper_says(name):
    """Counted by the set and by the loss themselves, round by round."""
    _, alive, cost = COUNTS[name]
    learner, room, losses = counted(name)
    born = 0 if "Efficient" in name else 1  # the starting point on X is projected once, and counted
    assert room.calls == learner.queries.projections == born
    spent = np.array([born, 0, 0])
    for t, f in enumerate(losses, start=1):
        n = alive(t, len(learner.markers))
        assert learner.active == n
        learner.step(f)
        learner.decision  # noqa: B018
        spent += cost(n)
        ahead = 1 if "Efficient" in name else 0  # the look at the next decision projects it, and counts with its round
        assert as_tuple(learner.queries) == tuple(spent)
        assert room.calls == learner.queries.projections + ahead
        assert f.gradients == cost(n)[1]
        assert f.values == max(1, cost(n)[2])  # the value that `step` returns is the world's bill


@pytest.mark.parametrize("name", COUNTS)
def test_the_compiled_loop_counts_the_same(name):
    case, alive, cost = COUNTS[name]
    x, stream = setting("ellipsoid", "squared")
    learner = CASES[case][0](x, stream)
    queries = tw.play(learner, builtin(stream)).queries
    m = np.searchsorted(learner.markers, np.arange(1, HORIZON + 1), side="right")
    total = np.sum([cost(alive(t, int(m[t - 1]))) for t in range(1, HORIZON + 1)], axis=0)
    assert as_tuple(queries) == tuple(total)


def test_efficient_adaptive_needs_the_loss_and_efficient_cbce_does_not():
    x, stream = setting("ellipsoid", "squared")
    with pytest.raises(InputError, match="loss"):
        CASES["EfficientAdaptive"][0](x, stream).update(np.zeros(3))
    tw.EfficientCBCE(x, gradient_bound=stream.gradient_bound).update(np.zeros(3))


def test_experts_made_for_their_length_are_counted_too():
    """Each of them may project a starting point of its own."""
    room = CountedSet(tw.domains.Box([-1.0, -1.0, 0.0], [1.0, 0.5, 0.2]))
    learner = tw.Cover(
        room.domain,
        lambda length: tw.experts.Descent(room.domain, 0.1 / length),
        meta=tw.metas.AdaptMLProd(10.0),
        horizon=5,
    )
    assert learner.queries.projections == room.calls
    for _ in range(5):
        learner.update(np.array([0.1, 0.2, 0.3]))
    assert learner.queries.projections == room.calls


# ------------------------------------------------------------------------------------------------------------ refusals


def test_step_and_play_refuse_the_loss_of_an_expert_alike():
    """Small-loss theory needs f >= 0 wherever it is asked: in round 3 it is not at one expert's point."""
    domain = tw.domains.Box([-1.0], [1.0])
    probe = tw.SACS(domain, loss_bound=2.0, smoothness=1.0, cover="compact", gradients="own")
    slopes, offsets = [], []
    for slope in (1.0, -1.0, -1.0):
        slopes.append([slope])
        offsets.append(1e-6 - slope * float(probe.decision[0]))  # the decision itself always pays 1e-6
        last = streams.Linear(np.array([slope]), offsets[-1])
        if min(last.value(point) for point in probe.points) < 0:
            break
        probe.step(last)
    assert len(slopes) == 3
    with pytest.raises(InputError, match="round 3"):
        probe.step(last)
    problem = tw.problems.LinearLosses(np.array(slopes), np.array(offsets))
    learner = tw.SACS(domain, loss_bound=2.0, smoothness=1.0, cover="compact", gradients="own")
    with pytest.raises(InputError, match="round 3"):
        tw.play(learner, problem)
    assert learner.rounds == 2


@pytest.mark.parametrize("meta", [tw.metas.AdaptMLProd, tw.metas.AdaNormalHedge, tw.metas.CoinBetting])
@pytest.mark.parametrize("custom", [False, True], ids=["built-in set", "custom set"])
def test_feedback_beyond_its_range_is_refused(meta, custom):
    """1 + eta r turns negative beyond it: a weight that is nan would be played for ever after."""
    domain = tw.domains.Ellipsoid([1.0, 1.0], bound=1.0)  # the unit ball
    if custom:
        domain = tw.domains.Custom(domain.project, 2, domain.center, domain.radius)
    expert = tw.experts.Descent(domain, math.sqrt(2), step_rule="scale_free")
    learner = tw.Cover(domain, expert, meta=meta(0.5), threshold=lambda m: 0.5)
    for t in range(4):
        learner.update(np.array([0.1 * (-1) ** t, 0.1]), 0.4)
    assert learner.active == 2
    x = np.array(learner.decision)
    away = learner.points[0] - x
    with refused(learner, "range"):
        learner.update(5 * away / (away @ away), 0.4)  # <h, y - y_0> = -5
    np.testing.assert_array_equal(learner.decision, x)
