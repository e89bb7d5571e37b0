"""Every learner of the dynamic-regret family plays what its slow twin plays, round by round and in compiled loops."""

import functools
import itertools
import math

import numpy as np
import pytest

import thalweg as tw
from tests.twins import dynamic as ref
from tests.twins.optimistic import efficient_optimistic, sword_pp
from tests.worlds import SETS, around, assert_plays, builtin, inner, on_flat, slow_where, smoothness, tau_of

DOMAINS = SETS | {
    "off-centre ellipsoid": lambda: tw.domains.Ellipsoid([0.5, 3.0], bound=1.0, center=[-1.0, 2.0]),
    "one dimension": lambda: tw.domains.Box([-2.0], [1.0]),
}


def on_x(domain, stream, horizon):
    return {"horizon": horizon, "diameter": domain.diameter, "gradient_bound": stream.gradient_bound}


def in_y(domain, stream, horizon, surrogate=None, **more):
    """The twin of Algorithm 1. The set around X is a ball unless X is cheap itself.

    With a surrogate of one's own gradients are used as they are.
    """
    y = surrogate or domain.surrogate
    tau = tau_of(domain) if surrogate is None else ref.everything
    inside = None if isinstance(y, tw.domains.Ball) else y.project
    constants = on_x(domain, stream, horizon)
    losses = ref.flattened(stream.losses, tau)
    return ref.efficient_dynamic(
        losses, domain.project, y.center, y.radius, project_y=inside, tau=tau, **constants, **more
    )


def guessing(domain, stream, horizon, smoothness=None, **more):
    """The twin of `EfficientOptimistic`."""
    tau, G = tau_of(domain), stream.gradient_bound
    return efficient_optimistic(
        ref.flattened(stream.losses, tau),
        domain.project,
        domain.center,
        domain.radius,
        horizon=horizon,
        gradient_bound=G,
        smoothness=smoothness,
        tau=tau,
        **more,
    )


def given(more, domain, stream):
    return {key: v(domain, stream) if callable(v) else v for key, v in more.items()}


def simple(kind, twin, mine=None, **more):
    """A learner on X and its twin, with the same options; those that are functions take (domain, stream)."""
    return (
        lambda d, s, n: kind(d, **given(more if mine is None else mine, d, s)),
        lambda d, s, n: twin(ref.flattened(s.losses, tau_of(d)), d.project, d.center, **given(more, d, s)),
    )


def tuned(kind, twin, **more):
    """The same for one that is tuned for the horizon and the bound on gradients."""
    return (
        lambda d, s, n: kind(d, n, s.gradient_bound, **given(more, d, s)),
        lambda d, s, n: simple(kind, twin, **more, **on_x(d, s, n))[1](d, s, n),
    )


def dynamic(surrogate=lambda d: None, **more):
    return (
        lambda d, s, n: tw.EfficientDynamic(d, n, s.gradient_bound, surrogate=surrogate(d), **given(more, d, s)),
        lambda d, s, n: in_y(d, s, n, surrogate(d), **given(more, d, s)),
    )


def optimistic(**more):
    return (
        lambda d, s, n: tw.EfficientOptimistic(d, n, s.gradient_bound, **given(more, d, s)),
        lambda d, s, n: guessing(d, s, n, **given(more, d, s)),
    )


SMOOTH = {"smoothness": lambda d, s: smoothness(s)}
RANGE = {"loss_bound": lambda d, s: s.loss_bound}
BOUND = {"gradient_bound": lambda d, s: s.gradient_bound}
# name: (learner, twin), each from (domain, stream, horizon)
CASES = {
    "OGD, fixed step": simple(tw.OGD, ref.ogd, step_size=0.3),
    "OGD, horizon": tuned(tw.OGD, ref.ogd),
    "OGD, anytime": simple(tw.OGD, ref.ogd, BOUND, diameter=lambda d, s: d.diameter, **BOUND),
    "SOGD": simple(tw.SOGD, ref.sogd, {}, scale=lambda d, s: d.diameter / math.sqrt(2)),
    "SOGD, scale and delta": simple(tw.SOGD, ref.sogd, scale=0.7, delta=0.01),
    "Ader, improved": tuned(tw.Ader, ref.ader),
    "Ader, basic": tuned(tw.Ader, ref.ader, gradients="own"),
    "Ader, basic, stated range": tuned(tw.Ader, ref.ader, gradients="own", loss_bound=0.9),
    "Sword, own": tuned(tw.Sword, ref.sword, gradients="own", **SMOOTH),
    "Sword, shared": tuned(tw.Sword, ref.sword, gradients="shared", **SMOOTH),
    "Sword, shared, stated bound": tuned(tw.Sword, ref.sword, gradients="shared", **SMOOTH, **RANGE),
    "Sword++": tuned(tw.SwordPP, sword_pp, **SMOOTH),
    "Sword++, nearly linear losses": tuned(
        tw.SwordPP, sword_pp, smoothness=lambda d, s: 0.01 * s.gradient_bound / d.diameter
    ),
    "EfficientDynamic, Theorem 2": dynamic(),
    "EfficientDynamic, Theorem 2, wide ball": dynamic(around),
    "EfficientDynamic, Theorem 3": dynamic(**SMOOTH),
    "EfficientDynamic, Theorem 3, stated bound, wide ball": dynamic(around, **SMOOTH, **RANGE),
    "EfficientOptimistic": optimistic(),
    "EfficientOptimistic, smooth": optimistic(**SMOOTH),
}
OWN = {"Ader, basic", "Ader, basic, stated range", "Sword, own"}
ENSEMBLES = [name for name in CASES if "OGD" not in name]
# With gradients of its own an ensemble on a ball is code of its own: compiled, other sets speak for it.
on_domains = pytest.mark.parametrize(
    ("case", "domain"),
    slow_where(lambda case, domain: case in OWN and "ball" in domain, itertools.product(CASES, DOMAINS)),
)


HORIZON = 50
# To a learner, losses without noise are squared losses like others.
KINDS = [pytest.param(kind, marks=pytest.mark.slow) if kind == "noiseless" else kind for kind in ref.STREAMS]


@functools.cache
def setting(domain, kind, horizon=HORIZON, style="abrupt"):
    x = DOMAINS[domain]()
    rng = np.random.default_rng([*map(ord, domain + kind + style)])
    return x, ref.make_stream(kind, x, horizon, rng, style)


@functools.cache
def twin_of(case, domain, kind, horizon=HORIZON, style="abrupt"):
    return CASES[case][1](*setting(domain, kind, horizon, style), horizon)


def assert_close(actual, expected, domain):
    """Equal up to rounding: the same few hundred operations in another order."""
    scale = max(1.0, domain.radius, np.abs(domain.center).max())
    np.testing.assert_allclose(actual, expected, rtol=0, atol=2e-11 * scale)


def assert_same_queries(queries, twin, born=None):
    """What the rounds cost. A learner on X may have projected its starting point before the first of them."""
    before = 0 if born is None else born.projections
    assert before <= 1
    assert queries.projections - before == twin.projections
    assert queries.gradients == twin.gradient_queries
    assert queries.values == twin.value_queries


# ------------------------------------------------------------------------------------------------------ round by round


@pytest.mark.parametrize("kind", KINDS)
@on_domains
def test_step_equals_the_twin(case, domain, kind):
    x, stream = setting(domain, kind)
    learner, twin = CASES[case][0](x, stream, HORIZON), twin_of(case, domain, kind)
    members, born = inner(learner), learner.queries
    decisions, weights, points, rates, paid = [], [], [], [], []
    for f in stream.losses:
        decisions.append(learner.decision)
        if case in ENSEMBLES:
            weights.append(members.weights)
            points.append(members.points)
            rates += [members.meta_rate] if len(twin.rates) else []
        paid.append(learner.step(f))
    assert_close(decisions, twin.decisions, x)
    np.testing.assert_allclose(paid, twin.losses, rtol=1e-9, atol=1e-9)
    if case in ENSEMBLES:
        assert_close(weights, twin.weights, x)
        assert_close(points, twin.points, x)
        np.testing.assert_allclose(rates, twin.rates, rtol=1e-10)
    assert_same_queries(learner.queries, twin, born)


@pytest.mark.parametrize("kind", ["absolute", "squared"])
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("case", [name for name in CASES if name not in OWN])
def test_update_equals_the_twin(case, domain, kind):
    x, stream = setting(domain, kind)
    learner, twin = CASES[case][0](x, stream, HORIZON), twin_of(case, domain, kind)
    born, decisions = learner.queries, []
    for t, f in enumerate(stream.losses):
        decision = learner.decision
        decisions.append(decision)
        if t % 2:
            learner.update(f.gradient(decision))
        else:
            learner.update(f.gradient(decision), f.value(decision))
    assert_close(decisions, twin.decisions, x)
    assert_same_queries(learner.queries, twin, born)


@pytest.mark.parametrize("kind", KINDS)
@on_domains
def test_play_equals_the_twin(case, domain, kind):
    """In compiled loops where the set is built in, and round by round in Python."""
    x, stream = setting(domain, kind)
    twin, problems = twin_of(case, domain, kind), [builtin(stream)]
    if kind == "squared":
        problems.append(tw.problems.FromLosses(stream.losses, x.shape))
    for problem in problems:
        run = tw.play(CASES[case][0](x, stream, HORIZON), problem, decisions=True)
        assert_close(run.decisions, twin.decisions, x)
        np.testing.assert_allclose(run.losses, twin.losses, rtol=1e-9, atol=1e-9)
        assert_same_queries(run.queries, twin)


@pytest.mark.parametrize("domain", ["simplex", "polytope"])
@pytest.mark.parametrize("case", CASES)
def test_on_flats_the_part_of_a_gradient_across_is_taken_off(case, domain):
    x, stream = on_flat(domain, HORIZON)
    make, twin = CASES[case][0], CASES[case][1](x, stream, HORIZON)
    assert_plays(lambda: make(x, stream, HORIZON), stream.losses, twin.decisions)


@pytest.mark.parametrize("domain", ["simplex", "polytope"])
def test_on_flats_the_twins_differ_without_it(domain):
    """The part across has work to do: with it inside a ball, the ensemble plays something else."""
    x, stream = on_flat(domain, HORIZON)
    constants, y = on_x(x, stream, HORIZON), x.surrogate
    raw = ref.efficient_dynamic(stream.losses, x.project, y.center, y.radius, **constants)
    assert np.abs(raw.decisions - in_y(x, stream, HORIZON).decisions).max() > 1e-3


@pytest.mark.parametrize("horizon", [1, 2, 3])
@pytest.mark.parametrize("case", CASES)
def test_short_horizons(case, horizon):
    x, stream = setting("box", "squared", horizon)
    run = tw.play(CASES[case][0](x, stream, horizon), builtin(stream), decisions=True)
    assert_close(run.decisions, twin_of(case, "box", "squared", horizon).decisions, x)


@pytest.mark.parametrize("case", CASES)
def test_a_longer_gradual_run(case):
    x, stream = setting("ellipsoid", "squared", 400, "gradual")
    run = tw.play(CASES[case][0](x, stream, 400), builtin(stream), decisions=True)
    assert_close(run.decisions, twin_of(case, "ellipsoid", "squared", 400, "gradual").decisions, x)


@pytest.mark.parametrize("theorem", [2, 3])
def test_a_surrogate_around_another_centre(theorem):
    """The paper's literal ball about 0, with X off to one side: even y_1 is outside X."""
    x = tw.domains.Ball(3, radius=0.5, center=[1.0, 0.2, 0.0])
    y = tw.domains.Ball(3, radius=2.0)
    stream = ref.make_stream("squared", x, 100, np.random.default_rng(5))
    smooth = {} if theorem == 2 else {"smoothness": stream.smoothness}
    learner = tw.EfficientDynamic(x, 100, stream.gradient_bound, **smooth, surrogate=y)
    twin = ref.efficient_dynamic(stream.losses, x.project, y.center, 2.0, **on_x(x, stream, 100), **smooth)
    assert learner.decision == pytest.approx(x.project(np.zeros(3)))
    run = tw.play(learner, builtin(stream), decisions=True)
    assert_close(run.decisions, twin.decisions, x)
    assert np.any(np.linalg.norm(twin.fed - twin.gradients, axis=1) > 0.01 * stream.gradient_bound)


@pytest.mark.parametrize("kind", ["flipping", "squared"])
@pytest.mark.parametrize("domain", DOMAINS)
def test_one_projection_around_ogd(domain, kind):
    x, stream = setting(domain, kind)
    y = x.surrogate
    learner = tw.OneProjection(x, lambda surrogate: tw.OGD(surrogate, step_size=0.4))
    tau = tau_of(x)
    losses = ref.flattened(stream.losses, tau)
    twin = ref.one_projection_ogd(losses, x.project, y.project, y.center, step_size=0.4, tau=tau)
    run = tw.play(learner, builtin(stream), decisions=True)
    assert_close(run.decisions, twin.decisions, x)
    assert run.queries.projections == run.queries.gradients == len(stream.losses)


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("case", [name for name in CASES if "wide ball" in name])
def test_the_streams_leave_the_set_so_that_the_reduction_has_work_to_do(case, domain):
    """Otherwise h = g throughout and the twins would agree on less than they seem to."""
    twin = twin_of(case, domain, "flipping")
    outside = np.linalg.norm(twin.inner - twin.decisions, axis=1) > 1e-3
    corrected = np.linalg.norm(twin.fed - twin.gradients, axis=1) > 1e-3
    assert outside.sum() >= HORIZON // 2
    assert corrected.sum() >= HORIZON // 3
    assert corrected.sum() < outside.sum()  # and where <g, v> >= 0 it has none


def test_matrix_points_are_flat_points_in_another_shape():
    flat = tw.domains.Ball(6, radius=1.5)
    matrix = tw.domains.Ball((2, 3), radius=1.5)
    stream = ref.make_stream("squared", flat, 40, np.random.default_rng(8))
    for make in (
        lambda d: tw.OGD(d, step_size=0.3),
        lambda d: tw.Ader(d, 40, stream.gradient_bound),
        lambda d: tw.EfficientDynamic(d, 40, stream.gradient_bound, stream.smoothness),
    ):
        one, two = make(flat), make(matrix)
        for f in stream.losses:
            x = two.decision
            assert x.shape == (2, 3)
            np.testing.assert_allclose(x.ravel(), one.decision, rtol=0, atol=1e-12)
            one.update(f.gradient(one.decision))
            two.update(f.gradient(x.ravel()).reshape(2, 3))


# ---------------------------------------------------------------------------------------------------------- identities


@pytest.mark.parametrize("domain", slow_where(lambda domain: "ball" in domain, [(name,) for name in DOMAINS]))
def test_one_step_size_is_plain_ogd(domain):
    """GT <= DL leaves Sword one member, whose step is the cap 1/(4L)."""
    x, stream = setting(domain, "squared", horizon=40)
    smooth = 50 * stream.gradient_bound / x.diameter
    sword = tw.Sword(x, 40, stream.gradient_bound, smooth, gradients="own")
    assert len(sword.step_sizes) == 1
    assert sword.step_sizes[0] == pytest.approx(1 / (4 * smooth))
    plain = tw.OGD(x, step_size=float(sword.step_sizes[0]))
    problem = builtin(stream)
    one, two = tw.play(sword, problem, decisions=True), tw.play(plain, problem, decisions=True)
    np.testing.assert_allclose(one.decisions, two.decisions, rtol=0, atol=1e-12 * max(1.0, np.abs(x.center).max()))
    assert sword.weights == pytest.approx([1.0])


@pytest.mark.parametrize("theorem", [2, 3])
@pytest.mark.parametrize("domain", ["ball", "off-centre ball"])
def test_a_ball_is_its_own_surrogate(domain, theorem):
    """Y = X: y_t is always in X, h_t = g_t, and the wrapper plays what the ensemble plays alone."""
    x, stream = setting(domain, "squared")
    smooth = None if theorem == 2 else stream.smoothness
    wrapped = tw.EfficientDynamic(x, len(stream.losses), stream.gradient_bound, smooth)
    alone = tw.EfficientDynamic(x, len(stream.losses), stream.gradient_bound, smooth).inner
    assert x.surrogate.radius == x.radius
    for f in stream.losses:
        np.testing.assert_allclose(wrapped.decision, alone.decision, rtol=0, atol=1e-12)
        np.testing.assert_allclose(wrapped.inner.decision, wrapped.decision, rtol=0, atol=1e-12)
        g = f.gradient(wrapped.decision)
        wrapped.update(g)
        alone.update(g)


@pytest.mark.parametrize("domain", ["ball", "off-centre ball"])
def test_one_projection_around_ogd_on_a_ball_is_ogd(domain):
    x, stream = setting(domain, "flipping")
    problem = builtin(stream)
    wrapped = tw.play(tw.OneProjection(x, lambda y: tw.OGD(y, step_size=0.4)), problem, decisions=True)
    plain = tw.play(tw.OGD(x, step_size=0.4), problem, decisions=True)
    np.testing.assert_allclose(wrapped.decisions, plain.decisions, rtol=0, atol=1e-12)


def test_a_domain_that_never_binds_gives_the_unconstrained_run():
    stream = ref.make_stream("linear", tw.domains.Ball(3), 60, np.random.default_rng(4))
    g = np.array([f.slope for f in stream.losses])
    before = np.vstack([np.zeros(3), np.cumsum(g, axis=0)[:-1]])  # sum_{s<t} g_s
    root = np.sqrt(1 + np.cumsum(np.sum(g * g, axis=1)))
    sogd = np.vstack([np.zeros(3), np.cumsum(-0.3 * g / root[:, None], axis=0)[:-1]])
    problem = builtin(stream)
    for huge in (tw.domains.Ball(3, radius=1e6), tw.domains.Box(np.full(3, -1e6), np.full(3, 1e6))):
        run = tw.play(tw.OGD(huge, step_size=0.05), problem, decisions=True)
        np.testing.assert_allclose(run.decisions, -0.05 * before, rtol=0, atol=1e-12)
        run = tw.play(tw.SOGD(huge, scale=0.3), problem, decisions=True)
        np.testing.assert_allclose(run.decisions, sogd, rtol=0, atol=1e-12)
        run = tw.play(tw.OneProjection(huge, lambda y: tw.OGD(y, step_size=0.05)), problem, decisions=True)
        np.testing.assert_allclose(run.decisions, -0.05 * before, rtol=0, atol=1e-12)


@pytest.mark.parametrize("theorem", [2, 3])
def test_gradients_too_small_to_reach_any_boundary_give_the_closed_form(theorem):
    """y_{t,i} = -eta_i S_{t-1} and A_{t,i} = -eta_i sum_{s<t} <h_s, S_{s-1}>, whatever the set around 0."""
    rng = np.random.default_rng(6)
    horizon, bound = 50, 1.0
    boxy = tw.domains.Box([-1.0] * 3, [1.0] * 3)
    round_ = tw.domains.Ball(3, radius=boxy.diameter / 2)
    smooth = None if theorem == 2 else 1.0
    learners = [tw.EfficientDynamic(x, horizon, bound, smooth) for x in (boxy, round_)]
    eta = learners[0].inner.step_sizes
    slopes = rng.normal(size=(horizon, 3)) * 0.2 / (eta[-1] * horizon)
    past, products, squares = np.zeros(3), 0.0, 0.0
    for g in slopes:
        n, radius = len(eta), boxy.diameter / 2
        seen = horizon * bound**2 if theorem == 2 else squares
        rate = math.sqrt(math.log(n) / (1 + radius**2 * seen))
        p = np.exp(rate * eta * products)
        expected = -(p @ eta / p.sum()) * past
        for learner in learners:
            np.testing.assert_allclose(learner.decision, expected, rtol=0, atol=1e-13)
            learner.update(g)
        products += g @ past
        past = past + g
        squares += g @ g


def test_basic_ader_on_linear_losses_with_the_range_2gd_is_improved_ader():
    """Own and shared gradients coincide, and so do the two Hedge losses up to a constant."""
    for domain in ("ellipsoid", "simplex"):
        x, stream = setting(domain, "linear")
        bound = stream.gradient_bound
        basic = tw.Ader(x, HORIZON, bound, gradients="own", loss_bound=2 * bound * x.diameter)
        improved = tw.Ader(x, HORIZON, bound)
        problem = builtin(stream)
        one, two = tw.play(basic, problem, decisions=True), tw.play(improved, problem, decisions=True)
        assert_close(one.decisions, two.decisions, x)
        assert (one.queries.gradients, two.queries.gradients) == (HORIZON * len(basic.step_sizes), HORIZON)


@pytest.mark.parametrize("case", ENSEMBLES)
def test_shifting_the_world_shifts_the_decisions(case):
    shift = np.array([5.0, -3.0, 2.0])
    here, there = (tw.domains.Ellipsoid([1.0, 2.0, 4.0], bound=1.5, center=c) for c in (np.zeros(3), shift))
    stream = ref.make_stream("squared", here, 60, np.random.default_rng(9))
    moved = ref.Stream(
        [ref.Squared(f.features, f.label + f.features @ shift) for f in stream.losses],
        stream.planted + shift,
        stream.gradient_bound,
        stream.loss_bound,
        stream.smoothness,
    )
    make = CASES[case][0]
    one = tw.play(make(here, stream, 60), builtin(stream), decisions=True)
    two = tw.play(make(there, moved, 60), builtin(moved), decisions=True)
    np.testing.assert_allclose(two.decisions - shift, one.decisions, rtol=0, atol=1e-11)


def test_ader_does_not_care_about_the_unit_of_the_loss():
    """eta_i and alpha are inverse to G, so 1000 g with 1000 G is the same run."""
    x, stream = setting("box", "linear")
    big = ref.Stream(
        [ref.Linear(1000 * f.slope, 1000 * f.offset) for f in stream.losses],
        stream.planted,
        1000 * stream.gradient_bound,
        1000 * stream.loss_bound,
        None,
    )
    for case in ("Ader, improved", "Ader, basic"):
        make = CASES[case][0]
        one = tw.play(make(x, stream, HORIZON), builtin(stream), decisions=True)
        two = tw.play(make(x, big, HORIZON), builtin(big), decisions=True)
        assert_close(one.decisions, two.decisions, x)


def test_zero_gradients_move_nothing():
    for case in CASES:
        x, stream = setting("simplex", "squared", horizon=10)
        still = ref.Stream([ref.Linear(np.zeros(4), 1.0)] * 10, stream.planted, stream.gradient_bound, 1.0, 1.0)
        run = tw.play(CASES[case][0](x, still, 10), builtin(still), decisions=True)
        np.testing.assert_allclose(run.decisions, np.tile(x.center, (10, 1)), rtol=0, atol=1e-15)
