import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg import losses, problems
from thalweg.domains import Ball, Box, Custom, Ellipsoid, HalfSpace, Simplex
from thalweg.errors import InputError
from thalweg.problems import FromFunctions, FromLosses, LinearLosses, LinearModel, LinearRegression, LogisticRegression

SEEDS = st.integers(0, 2**32 - 1)
KINDS = {
    "squared": (problems.LinearRegression, losses.Squared),
    "logistic": (problems.LogisticRegression, losses.Logistic),
    "absolute": (problems.AbsoluteRegression, losses.Absolute),
    "linear": (problems.LinearLosses, losses.Linear),
    "huber": (problems.HuberRegression, losses.Huber),
    "pinball": (problems.QuantileRegression, losses.Pinball),
    "hinge": (problems.HingeClassification, losses.Hinge),
}


def in_python(domain):
    """The same set without its compiled projection."""
    return Custom(domain.project, domain.shape, domain.center, domain.radius)


UNBOUNDED = HalfSpace([1.0, 0.0], 0.0)


def data(kind, rng, rounds=30, shape=(4,)):
    labels = rng.choice([-1.0, 1.0], size=rounds) if kind in ("logistic", "hinge") else rng.normal(size=rounds)
    return rng.normal(size=(rounds, *shape)), labels


# Linear models


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(4,), (2, 3)])
def test_rounds_are_the_losses(kind, shape):
    features, labels = data(kind, np.random.default_rng(0), shape=shape)
    problem = LinearModel(features, labels, loss=kind)
    assert (problem.shape, problem.dim, problem.horizon, len(problem)) == (shape, math.prod(shape), 30, 30)
    assert problem.features.shape == (30, problem.dim)
    assert problem.features.flags.c_contiguous
    assert problem.phi is KINDS[kind][1].phi
    assert problem.nonnegative == KINDS[kind][1].nonnegative
    assert problem.comparators is None
    rng = np.random.default_rng(1)
    x, moving = rng.normal(size=shape), rng.normal(size=(30, *shape))
    for t, loss in enumerate(problem):
        expected = KINDS[kind][1](features[t], labels[t])
        assert type(loss) is type(expected)
        assert loss.value(x) == expected.value(x)
        np.testing.assert_array_equal(loss.gradient(x), expected.gradient(x))
        assert np.shares_memory(loss.features, problem.features)
    np.testing.assert_allclose(problem.losses_of(x), [f.value(x) for f in problem], rtol=1e-12, atol=1e-14)
    expected = [f.value(w) for f, w in zip(problem, moving, strict=True)]
    np.testing.assert_allclose(problem.losses_of(moving), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(problem.losses_of(moving.reshape(30, -1)), problem.losses_of(moving))


@pytest.mark.parametrize("kind", KINDS)
def test_subclasses_are_linear_models(kind):
    features, labels = data(kind, np.random.default_rng(0))
    named, general = KINDS[kind][0](features, labels), LinearModel(features, labels, kind)
    assert (named.loss, named.phi) == (general.loss, general.phi)
    np.testing.assert_array_equal(named.losses_of(np.ones(4)), general.losses_of(np.ones(4)))
    parameter = {"huber": ", delta=1", "pinball": ", tau=0.5"}.get(kind, "")
    assert repr(named) == f"{type(named).__name__}(<30 rounds of shape (4,), {kind} loss{parameter}>)"


@pytest.mark.parametrize(("make", "name", "value"), [(problems.HuberRegression, "delta", 0.3),
                                                     (problems.QuantileRegression, "tau", 0.9)])  # fmt: skip
def test_parameters_reach_every_round(make, name, value):
    features, labels = data("squared", np.random.default_rng(0))
    problem = make(features, labels, value)
    assert problem.parameter == problem[3:][2].parameter == value
    same = LinearModel(features, labels, problem.loss, **{name: value})
    np.testing.assert_array_equal(problem.losses_of(np.ones(4)), same.losses_of(np.ones(4)))
    np.testing.assert_allclose(problem.losses_of(np.ones(4)), [f.value(np.ones(4)) for f in problem], rtol=1e-12)
    assert not np.allclose(problem.losses_of(np.ones(4)), make(features, labels).losses_of(np.ones(4)))
    assert f"{name}={value}" in repr(problem)


def test_portfolio():
    rng = np.random.default_rng(1)
    returns = rng.uniform(0.5, 1.5, size=(20, 3))
    problem = problems.Portfolio(returns)
    np.testing.assert_allclose(problem.losses_of([0.2, 0.3, 0.5]), -np.log(returns @ [0.2, 0.3, 0.5]), rtol=1e-12)
    np.testing.assert_array_equal(problem.returns, returns)
    bounds = [np.linalg.norm(r - r.mean()) / r.min() for r in returns]  # at the worst asset, in the simplex
    assert problem.gradient_bound(Simplex(3)) == pytest.approx(max(bounds))
    assert problem.loss_bound(Simplex(3)) == pytest.approx(-np.log(returns.min()))
    assert problems.Portfolio([[1.0, 0.0]]).gradient_bound(Simplex(2)) == math.inf
    assert not problem.nonnegative
    assert problem.smoothness is None


@pytest.mark.parametrize("kind", KINDS)
@given(seed=SEEDS)
def test_bounds_are_the_largest_of_all_rounds(kind, seed):
    rng = np.random.default_rng(seed)
    problem = LinearModel(*data(kind, rng, rounds=8), loss=kind)
    for domain in (Ball(4, radius=rng.uniform(0.1, 3), center=rng.normal(size=4)), Box(-1.0, np.full(4, 2.0))):
        bounds = [f.gradient_bound(domain) for f in problem]
        assert problem.gradient_bound(domain) == pytest.approx(max(bounds), rel=1e-12)
        assert problem.loss_bound(domain) == pytest.approx(max(f.loss_bound(domain) for f in problem), rel=1e-12)
    if kind in ("absolute", "pinball", "hinge"):
        assert problem.smoothness is None
    else:
        assert problem.smoothness == pytest.approx(max(f.smoothness for f in problem), rel=1e-12)


def test_bounds_on_an_unbounded_domain():
    problem = LinearRegression([[0.0, 0.0], [1.0, 0.0]], [1.0, 1.0])
    assert problem.gradient_bound(UNBOUNDED) == math.inf
    assert problem.loss_bound(UNBOUNDED) == math.inf
    assert problem[:1].loss_bound(UNBOUNDED) == 0.5
    assert LogisticRegression([[0.0, 0.0], [3.0, 4.0]], [1, 1]).gradient_bound(UNBOUNDED) == 5.0


def test_offsets_default_to_zero():
    problem = LinearLosses([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(problem.offsets, [0.0, 0.0])
    np.testing.assert_array_equal(problem.costs, problem.features)
    np.testing.assert_array_equal(LinearLosses(problem.costs, [5.0, 6.0]).losses_of([0.0, 0.0]), [5.0, 6.0])


def test_data_is_copied():
    features = np.ones((3, 2))
    problem = LinearRegression(features, [0, 0, 0])
    features[:] = 9.0
    assert problem[0].value([1.0, 0.0]) == 0.5


def test_other_types_and_layouts_of_data():
    features = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(3, 2))
    problem = LinearRegression(features, np.array([1, 0, 1], dtype=np.int8))
    assert problem.features.dtype == problem.labels.dtype == np.float64
    assert problem.features.flags.c_contiguous
    np.testing.assert_array_equal(problem.losses_of([1, 0]), [0.5, 2.0, 4.5])


def test_comparators():
    w = np.arange(12.0).reshape(3, 2, 2)
    problem = LinearRegression(np.ones((3, 2, 2)), w.sum(axis=(1, 2)), comparators=w)
    np.testing.assert_array_equal(problem.comparators, w.reshape(3, 4))
    np.testing.assert_array_equal(problem.losses_of(problem.comparators), np.zeros(3))


@pytest.mark.parametrize("rounds", [slice(2, 5), slice(None, None, 7), slice(-3, None), slice(25, 99)])
@pytest.mark.parametrize("kind", KINDS)
def test_slices(kind, rounds):
    rng = np.random.default_rng(4)
    features, labels = data(kind, rng)
    problem = KINDS[kind][0](features, labels, comparators=features)
    part = problem[rounds]
    assert type(part) is type(problem)
    assert len(part) == part.horizon == len(labels[rounds])
    np.testing.assert_array_equal(part.features, features[rounds])
    np.testing.assert_array_equal(part.labels, labels[rounds])
    np.testing.assert_array_equal(part.comparators, features[rounds])
    assert part.features.flags.c_contiguous
    np.testing.assert_array_equal(part.losses_of(np.ones(4)), problem.losses_of(np.ones(4))[rounds])


def test_pickle():
    problem = pickle.loads(pickle.dumps(LinearRegression([[1.0, 2.0]], [3.0])))
    assert problem[0].value([0.0, 0.0]) == 4.5


@pytest.mark.parametrize("t", [3, -4, 10**9])
def test_no_such_round(t):
    with pytest.raises(IndexError, match=rf"LinearRegression has rounds 0 to 2. Got {t}\."):
        LinearRegression(np.ones((3, 2)), np.zeros(3))[t]


def test_index_from_the_end_and_of_the_wrong_type():
    problem = LinearRegression(np.ones((3, 2)), [0.0, 1.0, 2.0])
    assert problem[-1].label == problem[np.int64(2)].label == 2.0
    with pytest.raises(TypeError):
        problem[1.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinearRegression([1.0, 2.0], [1.0, 2.0]), r"'features' .* one non-empty row.*Got shape \(2,\)"),
        (lambda: LinearRegression(np.ones((0, 2)), []), r"'features' .* T >= 1. Got shape \(0, 2\)"),
        (lambda: LinearRegression(np.ones((3, 0)), [1, 2, 3]), r"'features' .* Got shape \(3, 0\)"),
        (lambda: LinearRegression(np.ones((3, 2)), [1.0]), r"'labels' parameter .* must have shape \(3,\). Got"),
        (lambda: LinearRegression([[np.nan]], [1.0]), "'features' parameter of LinearRegression must be finite"),
        (lambda: LinearRegression([[1.0]], [np.inf]), "'labels' parameter of LinearRegression must be finite"),
        (lambda: LinearRegression([[1.0], [1.0, 2.0]], [1.0, 2.0]), "'features' .* must be an array of real numbers"),
        (lambda: LinearModel([[1.0]], [1.0], loss="cubic"), "parameter of LinearModel must be one of 'absolute'"),
        (lambda: LinearModel([[1.0]], [1.0], "huber", delta=-1.0), "'delta' parameter of LinearModel must be a finite"),
        (lambda: LinearModel([[1.0]], [1.0], "huber", tau=0.5), "huber loss has one parameter, 'delta'. Got 'tau'"),
        (lambda: LinearModel([[1.0]], [1.0], delta=0.5), "squared loss has no parameter. Got 'delta'"),
        (lambda: problems.QuantileRegression([[1.0]], [1.0], 2.0), "'tau' .* of QuantileRegression must lie between"),
        (lambda: problems.HingeClassification([[1.0]], [0]), r"HingeClassification must be -1 or \+1. Got 0"),
        (lambda: problems.Portfolio([[1.0, -0.1]]), r"'returns' parameter of Portfolio.*Got -0.1. Pass 1 \+ r"),
        (lambda: problems.Portfolio([[1.0], [0.0]]), "features of Portfolio must not all be zero.* number 1"),
        (lambda: problems.Portfolio([1.0, 2.0]), "'returns' parameter of Portfolio must have one non-empty row"),
        (lambda: LogisticRegression([[1.0], [1.0]], [1, 0]), r"LogisticRegression must be -1 or \+1. Got 0.*0 or 1 by"),
        (lambda: LinearModel([[1.0]], [2], "logistic"), r"LinearModel must be -1 or \+1. Got 2"),
        (lambda: LinearLosses([[1.0]], [1.0, 2.0]), r"'offsets' parameter of LinearLosses must have shape \(1,\)"),
        (lambda: LinearLosses(1.0), r"'costs' parameter of LinearLosses must have one non-empty row"),
        (lambda: LinearLosses([[1.0], [1.0, 2.0]]), "'costs' parameter of LinearLosses must be an array of real"),
        (lambda: LinearRegression([[1.0]], [1.0], comparators=[1.0]), r"'comparators' .* shape \(1, 1\)"),
        (lambda: LinearRegression([[1.0]], [1.0]).losses_of(np.ones((2, 1))), r"1 rounds .* of shape \(1,\)"),
        (lambda: LinearRegression([[1.0]], [1.0]).losses_of([np.nan]), "'decisions' parameter .* must be finite"),
        (lambda: LinearRegression([[1.0]], [1.0]).gradient_bound(Ball(2)), r"Got the domain Ball\(2, radius=1\)"),
        (lambda: LinearRegression([[1.0]], [1.0]).loss_bound(Ball(2)), r"points have shape \(2,\)"),
        (lambda: LinearRegression([[1.0]], [1.0])[1:], "LinearRegression has 1 rounds, and .* selects none of them"),
    ],
)
def test_bad_linear_models(make, message):
    with pytest.raises(InputError, match=message):
        make()


# Functions and losses of the user


def following(horizon=None):
    """f_t(x) = ||x - t||^2 / 2."""
    return FromFunctions(lambda t, x: 0.5 * np.sum((x - t) ** 2), lambda t, x: x - t, shape=2, horizon=horizon)


def test_from_functions():
    problem = following(horizon=3)
    assert (problem.shape, problem.horizon, len(problem)) == ((2,), 3, 3)
    assert [f.value([0.0, 0.0]) for f in problem] == [0.0, 1.0, 4.0]
    assert problem[-1].value([0.0, 0.0]) == 4.0
    assert isinstance(problem[0].value(np.zeros(2)), float)
    assert isinstance(problem[0], losses.Loss)
    np.testing.assert_array_equal(problem[2].gradient([0, 0]), [-2.0, -2.0])
    with pytest.raises(IndexError, match=r"FromFunctions has rounds 0 to 2. Got 3"):
        problem[3]


def test_endless_functions():
    problem = following()
    assert problem.horizon is None
    assert problem[10**6].value([1e6, 1e6]) == 0.0
    assert [f.value([0.0, 0.0]) for f in itertools.islice(problem, 3)] == [0.0, 1.0, 4.0]
    with pytest.raises(TypeError, match="never ends, so it has no length"):
        len(problem)
    with pytest.raises(IndexError, match="never ends, so it has no round -1"):
        problem[-1]


def test_slices_of_functions_keep_the_round_numbers():
    x = [0.0, 0.0]
    assert [f.value(x) for f in following(5)[1:3]] == [1.0, 4.0]
    assert [f.value(x) for f in following(5)[1:][2:]] == [9.0, 16.0]
    assert [f.value(x) for f in following(5)[3:99]] == [9.0, 16.0]
    assert len(following()[:4]) == 4
    assert following()[4:].horizon is None
    assert following()[4:][0].value(x) == 16.0


def test_from_functions_calls_only_what_is_asked():
    problem = FromFunctions(lambda t, x: pytest.fail("value was called"), lambda t, x: x, shape=1)
    assert problem[0].gradient([2.0]) == 2.0


def test_returned_gradient_is_a_copy():
    kept = np.ones(2)
    problem = FromFunctions(lambda t, x: 0.0, lambda t, x: kept, shape=2)
    problem[0].gradient(np.zeros(2))[:] = 5.0
    np.testing.assert_array_equal(kept, [1.0, 1.0])


def test_a_function_that_raises_names_the_round():
    def broken(t, x):
        if t == 7:
            raise KeyError("no data")
        return x

    problem = FromFunctions(broken, broken, shape=2)
    problem[6].gradient(np.zeros(2))
    with pytest.raises(RuntimeError, match=r"Round 7 \(counted from 0\): the 'gradient' function .* KeyError") as info:
        problem[7].gradient(np.zeros(2))
    assert isinstance(info.value.__cause__, KeyError)
    with pytest.raises(RuntimeError, match=r"Round 7 .* the 'value' function .* raised KeyError: 'no data'"):
        problem[5:][2].value(np.zeros(2))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FromFunctions(1.0, len, 2), "'value' parameter of FromFunctions must be callable. Got 1.0"),
        (lambda: FromFunctions(len, None, 2), "'gradient' parameter of FromFunctions must be callable"),
        (lambda: FromFunctions(len, len, 0), "'shape' parameter of FromFunctions must be"),
        (lambda: FromFunctions(len, len, 2, 0), "'horizon' parameter of FromFunctions must be a whole number >= 1"),
        (lambda: following(3)[::2], "only into consecutive rounds"),
        (lambda: following(3)[-2:], "only into consecutive rounds"),
        (lambda: following(3)[3:], "selects no round"),
        (lambda: following()[2:2], "selects no round"),
        (lambda: following()[0].value([1.0]), r"decisions of shape \(2,\). Got shape \(1,\)"),
    ],
)
def test_bad_functions(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("name", "returned", "message"),
    [
        ("value", lambda x: x, "must return a number"),
        ("gradient", lambda x: x[:1], r"shape \(2,\).* Got shape \(1,\)"),
        ("gradient", lambda x: "up", "array of real numbers. Got 'up'"),
    ],
)
def test_functions_that_return_something_else(name, returned, message):
    problem = FromFunctions(lambda t, x: returned(x), lambda t, x: returned(x), 2)
    with pytest.raises(InputError, match=f"Round 4 .* '{name}' function .* {message}"):
        getattr(problem[4], name)([1.0, 2.0])


class Handmade:
    def value(self, x):
        return 1.0

    def gradient(self, x):
        return np.zeros_like(x)


def test_from_losses():
    rounds = [losses.Squared([1.0, 2.0], 0.0), losses.Linear([1.0, 0.0]), Handmade()]
    problem = FromLosses(rounds)
    assert (problem.shape, problem.horizon, len(problem)) == ((2,), 3, 3)
    assert list(problem) == rounds
    assert problem[-1] is rounds[2]
    assert list(problem[1:]) == rounds[1:]
    assert problem[2:].shape == (2,)
    assert FromLosses([Handmade()], shape=(2, 2)).shape == (2, 2)
    assert len(FromLosses(f for f in rounds)) == 3
    with pytest.raises(IndexError, match=r"FromLosses has rounds 0 to 2. Got 3"):
        problem[3]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FromLosses([]), "at least one loss"),
        (lambda: FromLosses([Handmade(), 3.0], 2), r"Round 1 \(counted from 0\): FromLosses needs objects with"),
        (lambda: FromLosses([Handmade()]), "first loss has no 'shape'"),
        (lambda: FromLosses([Handmade()], shape=-1), "'shape' parameter of FromLosses"),
        (
            lambda: FromLosses([losses.Linear([1.0]), losses.Linear([1.0, 2.0])]),
            r"Round 1 .*: FromLosses has decisions of shape \(1,\). Got Linear\(\[1.0, 2.0\], 0\), which is for",
        ),
        (lambda: FromLosses([losses.Linear([1.0])])[1:], "selects none of them"),
    ],
)
def test_bad_losses(make, message):
    with pytest.raises(InputError, match=message):
        make()


# Generators

GENERATORS = {
    "piecewise": lambda domain, **options: problems.piecewise_stationary(domain, **{"stages": 5, **options}),
    "gradual": problems.gradual,
}
DOMAINS = [
    Ball(3, radius=2.0),
    Ball(2, center=[5.0, -5.0]),
    Ball((2, 2)),
    Box(-1.0, np.full(3, 2.0)),
    Ellipsoid([[2.0, 1.0], [1.0, 2.0]], bound=3.0),
    Simplex(4),
    in_python(Ball((2, 2))),
]


@pytest.mark.parametrize("make", GENERATORS.values(), ids=GENERATORS)
@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_planted_models_and_data(make, domain):
    problem = make(domain, horizon=200, rng=0)
    assert isinstance(problem, LinearRegression)
    assert (len(problem), problem.shape) == (200, domain.shape)
    assert all(domain.contains(w.reshape(domain.shape)) for w in problem.comparators)
    lengths = np.linalg.norm(problem.features, axis=1)
    assert lengths.max() <= domain.radius * (1 + 1e-12)
    assert lengths.max() >= 0.8 * domain.radius
    noise = problem.labels - np.sum(problem.features * problem.comparators, axis=1)
    assert noise.min() >= -1e-12
    assert 0.09 < noise.max() <= 0.1 + 1e-12
    assert noise.mean() == pytest.approx(0.05, abs=0.01)
    np.testing.assert_allclose(problem.losses_of(problem.comparators), noise**2 / 2, atol=1e-12)


@pytest.mark.parametrize("make", GENERATORS.values(), ids=GENERATORS)
def test_seeds(make):
    def arrays(rng):
        problem = make(Ball(3), horizon=50, rng=rng)
        return np.column_stack([problem.features, problem.labels, problem.comparators])

    np.testing.assert_array_equal(arrays(7), arrays(7))
    np.testing.assert_array_equal(arrays(7), arrays(np.random.default_rng(7)))
    assert not np.isin(arrays(7), arrays(8)).any()
    assert not np.array_equal(arrays(None), arrays(None))
    shared = np.random.default_rng(7)
    assert not np.array_equal(arrays(shared), arrays(shared))


def test_features_do_not_depend_on_the_path():
    one = problems.piecewise_stationary(Ball(3), 60, 2, rng=1)
    two = problems.piecewise_stationary(Ball(3), 60, 20, rng=1)
    walk = problems.gradual(Ball(3), 60, step=0.5, rng=1)
    np.testing.assert_array_equal(one.features, two.features)
    np.testing.assert_array_equal(one.features, walk.features)


@pytest.mark.parametrize("make", GENERATORS.values(), ids=GENERATORS)
def test_features_are_uniform_and_independent(make):
    rounds, dim = 20_000, 4
    problem = make(Ball(dim, radius=3.0), horizon=rounds, rng=5)
    x = problem.features / 3.0
    ranks = np.sort(np.linalg.norm(x, axis=1) ** dim)  # uniform on [0, 1] for a uniform point of the ball
    assert np.abs(ranks - np.arange(rounds) / rounds).max() < 2 / math.sqrt(rounds)
    assert np.abs(x.mean(axis=0)).max() < 4 / math.sqrt(rounds)
    covariance = x.T @ x / rounds  # identity / (d + 2)
    np.testing.assert_allclose(covariance, np.eye(dim) / (dim + 2), atol=4 / math.sqrt(rounds))
    assert abs(np.sum(x[1:] * x[:-1], axis=1).mean()) < 4 / math.sqrt(rounds)
    noise = problem.labels - np.sum(problem.features * problem.comparators, axis=1)
    assert np.abs((noise - 0.05) @ x / rounds).max() < 0.4 / math.sqrt(rounds)


def test_planted_models_are_uniform_on_a_ball():
    problem = problems.piecewise_stationary(Ball(2, radius=2.0, center=[1.0, 0.0]), 4000, 4000, rng=0)
    offsets = (problem.comparators - [1.0, 0.0]) / 2.0
    ranks = np.sort(np.linalg.norm(offsets, axis=1) ** 2)
    assert np.abs(ranks - np.arange(4000) / 4000).max() < 2 / math.sqrt(4000)
    assert np.abs(offsets.mean(axis=0)).max() < 4 / math.sqrt(4000)


@pytest.mark.parametrize(("horizon", "stages"), [(100, 25), (103, 25), (5, 5), (7, 1)])
def test_stages(horizon, stages):
    problem = problems.piecewise_stationary(Ball(3), horizon, stages, rng=0)
    jumps = 1 + np.flatnonzero(np.any(np.diff(problem.comparators, axis=0) != 0, axis=1))
    lengths = np.diff([0, *jumps, horizon])
    expected = [len(part) for part in np.array_split(np.arange(horizon), stages)]
    np.testing.assert_array_equal(lengths, expected)


@pytest.mark.parametrize("step", [None, 0.0, 0.3, 10.0])
@pytest.mark.parametrize("domain", [Ball(3, radius=2.0), Box(-1.0, np.full(3, 2.0))], ids=["ball", "cube"])
def test_path_length_of_the_walk(step, domain):
    problem = problems.gradual(domain, 300, step=step, rng=2)
    moves = np.linalg.norm(np.diff(problem.comparators, axis=0), axis=1)
    longest = domain.diameter / 300 if step is None else step
    assert moves.max() <= longest * (1 + 1e-9)
    assert moves.sum() <= longest * 300
    if step is None:
        assert moves.mean() > 0.5 * longest


@pytest.mark.parametrize("domain", DOMAINS[:-1], ids=repr)
def test_compiled_and_python_walks_agree(domain):
    fast = problems.gradual(domain, 500, step=0.2 * domain.radius, rng=3)
    slow = problems.gradual(in_python(domain), 500, step=0.2 * domain.radius, rng=3)
    np.testing.assert_allclose(fast.comparators, slow.comparators, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(fast.labels, slow.labels, rtol=1e-12, atol=1e-12)
    moves = np.linalg.norm(np.diff(fast.comparators, axis=0), axis=1)
    assert moves.min() < 0.19 * domain.radius  # the walk did meet the boundary


def test_options_of_the_data():
    problem = problems.gradual(Ball(3, radius=2.0), 100, rng=0, feature_radius=0.5, noise=0.0)
    assert 0.4 < np.linalg.norm(problem.features, axis=1).max() <= 0.5
    np.testing.assert_allclose(problem.losses_of(problem.comparators), 0.0, atol=1e-25)
    assert len(problems.gradual(Ball(3), 1, rng=0)) == 1
    assert len(problems.piecewise_stationary(Ball(1), 1, 1, rng=0)) == 1


@pytest.mark.parametrize("make", GENERATORS.values(), ids=GENERATORS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 0}, "'horizon' parameter of .* must be a whole number >= 1. Got 0"),
        ({"feature_radius": 0.0}, "'feature_radius' parameter of .* must be a finite number > 0"),
        ({"noise": -0.1}, "'noise' parameter of .* must be a finite number >= 0. Got -0.1"),
        ({"rng": "seed"}, "'rng' parameter of .* must be a numpy Generator, a whole number >= 0 or None. Got 'seed'"),
        ({"domain": 3}, "'domain' parameter of .* must be a thalweg Domain. Got 3"),
        ({"domain": UNBOUNDED}, "needs a bounded domain"),
    ],
)
def test_bad_options(make, options, message):
    with pytest.raises(InputError, match=message):
        make(**{"domain": Ball(2), "horizon": 20, **options})


def test_paper_ellipsoid():
    domain = problems.paper_ellipsoid()
    assert isinstance(domain, Ellipsoid)
    assert domain.shape == (8,)
    assert domain.diameter == pytest.approx(6.0)
    assert domain.radius == pytest.approx(3.0)
    ends = np.eye(8) * 3.0 / np.sqrt(np.linspace(1.0, 10.0, 8))  # the half axes
    assert all(domain.contains(end) and not domain.contains(1.001 * end) for end in ends)
    assert problems.paper_ellipsoid(2, 4.0, condition=1.0).contains([0.0, 2.0])
    for make in GENERATORS.values():
        problem = make(domain, horizon=100, rng=0)
        assert all(domain.contains(w) for w in problem.comparators)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (problems.piecewise_stationary, {"domain": Ball(2), "horizon": 10, "stages": 11}, "Got 11 stages in 10 rounds"),
        (problems.piecewise_stationary, {"domain": Ball(2), "stages": 0}, "'stages' parameter .* a whole number >= 1"),
        (problems.gradual, {"domain": Ball(2), "step": -1}, "'step' parameter of gradual must be .* >= 0. Got -1"),
        (problems.paper_ellipsoid, {"dim": 0}, "'dim' parameter of paper_ellipsoid"),
        (problems.paper_ellipsoid, {"diameter": -1.0}, "'diameter' parameter .* must be a finite number > 0"),
        (problems.paper_ellipsoid, {"condition": 0.5}, "'condition' parameter .* a finite number >= 1. Got 0.5"),
    ],
)
def test_bad_options_of_one_generator(make, options, message):
    with pytest.raises(InputError, match=message):
        make(**options)


def test_problems_of_functions_say_what_they_lack():
    problem = FromFunctions(lambda t, x: float(x @ x) * (t + 1), lambda t, x: 2.0 * x * (t + 1), shape=2, horizon=3)
    assert problem.losses_of([1.0, 1.0]).tolist() == [2.0, 4.0, 6.0]
    assert problem.losses_of([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]).tolist() == [1.0, 0.0, 6.0]
    with pytest.raises(InputError, match=r"Pass one decision, or one a round: shape \(3, 2\)"):
        problem.losses_of([1.0, 2.0, 3.0])
    for name in ("gradient_bound", "smoothness", "loss_bound", "features", "comparators", "nonnegative"):
        with pytest.raises(AttributeError, match=f"FromFunctions has no '{name}': it knows nothing of its losses"):
            getattr(problem, name)
        assert not hasattr(problem, name)
    with pytest.raises(AttributeError, match="'FromFunctions' object has no attribute 'banana'"):
        _ = problem.banana
    assert copy.deepcopy(problem).losses_of([1.0, 0.0]).tolist() == [1.0, 2.0, 3.0]
