"""`play`: the compiled loop and the Python path are the same run; interruption, progress, refusals."""

import itertools
import os
import signal
import threading
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import thalweg as tw
from tests.worlds import one_by_one
from thalweg.errors import HorizonWarning, InputError

T, D = 300, 4


def domains():
    rng = np.random.default_rng(5)
    basis = rng.standard_normal((D, D))
    return {
        "ball": tw.domains.Ball(D, radius=2.0),
        "off-centre ball": tw.domains.Ball(D, radius=1.0, center=np.arange(D) / 2),
        "box": tw.domains.Box(-np.ones(D), np.arange(1, D + 1) / 2),
        "simplex": tw.domains.Simplex(D, total=2.0),
        "l1 ball": tw.domains.L1Ball(D, radius=1.5),
        "ellipsoid": tw.domains.Ellipsoid(np.arange(1.0, D + 1), bound=4.0),
        "full ellipsoid": tw.domains.Ellipsoid(basis @ basis.T + np.eye(D), bound=4.0, center=np.ones(D)),
        "product of balls": tw.domains.ProductOfBalls(D, [0.5, 1.0], sizes=[1, 3]),
    }


def problems():
    rng = np.random.default_rng(6)
    a = rng.standard_normal((T, D))
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    signs = np.where(rng.random(T) < 0.5, -1.0, 1.0)
    return {
        "squared": tw.problems.LinearRegression(a, rng.standard_normal(T)),
        "logistic": tw.problems.LogisticRegression(a, signs),
        "absolute": tw.problems.AbsoluteRegression(a, rng.standard_normal(T)),
        "linear": tw.problems.LinearLosses(a),
    }


G, L = 12.0, 1.0

LEARNERS = {
    "OGD": lambda X: tw.OGD(X, gradient_bound=G),
    "SOGD": lambda X: tw.SOGD(X),
    "Ader": lambda X: tw.Ader(X, T, G),
    "Ader own": lambda X: tw.Ader(X, T, G, gradients="own"),
    "Sword": lambda X: tw.Sword(X, T, G, L, gradients="own"),
    "Sword shared": lambda X: tw.Sword(X, T, G, L, gradients="shared"),
    "EfficientDynamic 2": lambda X: tw.EfficientDynamic(X, T, G),
    "EfficientDynamic 3": lambda X: tw.EfficientDynamic(X, T, G, L),
    "SACS": lambda X: tw.SACS(X, loss_bound=60.0, smoothness=L, threshold=5.0, gradients="own"),
    "CBCE": lambda X: tw.CBCE(X, gradient_bound=G, gradients="own"),
    "EfficientCBCE": lambda X: tw.EfficientCBCE(X, gradient_bound=G),
    "EfficientAdaptive": lambda X: tw.EfficientAdaptive(X, T, G, L, threshold=lambda m: 3.0),
    "AOA": lambda X: tw.AOA(X, gradient_bound=G, loss_bound=60.0, gradients="own"),
    "EfficientIntervalDynamic": lambda X: tw.EfficientIntervalDynamic(X, T, G, L, threshold=lambda m: 3.0),
    "EfficientCutkosky": lambda X: tw.EfficientCutkosky(X, T, G),
    "Scream": lambda X: tw.Scream(X, T, G, switching_cost=3.0),
    "EfficientScream": lambda X: tw.EfficientScream(X, T, G, switching_cost=3.0),
    "OneProjection": lambda X: tw.OneProjection(X, lambda Y: tw.SOGD(Y)),
}


# What only few play is code of its own, and takes long to compile.
SELDOM = dict.fromkeys(("Ader own", "Sword", "SACS", "CBCE", "AOA"), ("ball", "off-centre ball")) | dict.fromkeys(
    ("EfficientCBCE", "EfficientAdaptive", "EfficientIntervalDynamic", "OneProjection"), ("product of balls",)
)


@pytest.mark.parametrize("rounds", [100, pytest.param(T, marks=pytest.mark.slow)])
@pytest.mark.parametrize("loss", problems())
@pytest.mark.parametrize("name", LEARNERS)
def test_compiled_loop_equals_one_by_one(name, loss, rounds):
    problem = problems()[loss][:rounds]
    make = LEARNERS[name]
    for label, X in domains().items():
        if (loss == "linear" and make(X).nonnegative) or (rounds < T and label in SELDOM.get(name, ())):
            continue
        fast = tw.play(make(X), problem, decisions=True)
        slow = tw.play(make(X), one_by_one(problem), decisions=True)
        assert np.array_equal(fast.decisions, slow.decisions), label
        assert np.array_equal(fast.losses, slow.losses), label
        assert fast.queries == slow.queries, label


def test_a_custom_domain_plays_the_same_numbers():
    X = tw.domains.Ellipsoid([1.0, 2.0, 3.0, 4.0], bound=4.0)
    twin = tw.domains.Custom(X.project, X.shape, X.center, X.radius)
    problem = problems()["squared"]
    for name in ("Ader", "Sword", "Sword shared", "Scream", "EfficientDynamic 3"):
        fast = tw.play(LEARNERS[name](X), problem, decisions=True)
        slow = tw.play(LEARNERS[name](twin), problem, decisions=True)
        assert_allclose(fast.decisions, slow.decisions, rtol=0, atol=1e-9, err_msg=name)


LEVELS = {
    "CutkoskyAdaptive": lambda X: tw.CutkoskyAdaptive(X, T, G),
    "CutkoskyPrintedVariant": lambda X: tw.CutkoskyPrintedVariant(X, T, G),
}  # whose last bits are not those of the Python path


@pytest.mark.parametrize("name", LEARNERS | LEVELS)
def test_a_run_in_parts_is_the_whole_run_bit_for_bit(name):
    problem, X, make = problems()["squared"], domains()["ellipsoid"], (LEARNERS | LEVELS)[name]
    whole = tw.play(make(X), problem, decisions=True)
    for split in (1, 7, 256, T - 1):
        first, second = make(X), make(X)
        head = tw.play(first, problem, rounds=split, decisions=True)
        second.restore(first.state())
        tail = tw.play(second, problem[split:], decisions=True)
        assert np.array_equal(np.concatenate([head.decisions, tail.decisions]), whole.decisions)
        assert np.array_equal(np.concatenate([head.losses, tail.losses]), whole.losses)


def test_reading_the_decision_between_blocks_costs_no_second_projection():
    problem, X = problems()["squared"], domains()["ellipsoid"]
    learner = LEARNERS["EfficientDynamic 3"](X)
    tw.play(learner, problem, rounds=10)
    _ = learner.decision
    tw.play(learner, problem[10:])
    assert learner.queries.projections == T


def test_repr_tells_the_cost_of_a_round():
    run = tw.play(LEARNERS["EfficientDynamic 3"](domains()["ellipsoid"]), problems()["squared"])
    assert "300 rounds" in repr(run)
    assert "1 projections, 1 gradients, 0 values" in repr(run)


def test_iterables_of_losses_and_matrix_decisions():
    X = tw.domains.Ball((2, 3))
    losses = [tw.losses.Squared(np.eye(2, 3), 0.5 * k) for k in range(5)]
    run = tw.play(tw.SOGD(X), losses, decisions=True)
    assert run.decisions.shape == (5, 2, 3)
    assert run.losses.tolist() == [f.value(x) for f, x in zip(losses, run.decisions, strict=True)]
    features = np.broadcast_to(np.eye(2, 3), (5, 2, 3))
    fast = tw.play(tw.SOGD(X), tw.problems.LinearRegression(features, 0.5 * np.arange(5)), decisions=True)
    assert np.array_equal(fast.decisions, run.decisions)


def test_an_endless_problem_needs_rounds():
    endless = tw.problems.FromFunctions(lambda t, x: float(x @ x), lambda t, x: 2 * x, shape=2)
    with pytest.raises(InputError, match="no end"):
        tw.play(tw.SOGD(tw.domains.Ball(2)), endless)
    assert tw.play(tw.SOGD(tw.domains.Ball(2)), endless, rounds=7).rounds == 7


@pytest.mark.parametrize("path", [lambda p: p, one_by_one], ids=["compiled", "python"])
def test_a_refused_round_is_named_and_the_learner_stands_before_it(path):
    features = np.full((20, 2), 0.5)
    features[16] = 100.0
    problem = path(tw.problems.LinearRegression(features, np.ones(20)))
    learner = tw.EfficientDynamic(tw.domains.Ball(2), 20, 2.0, 1.0)
    with pytest.raises(InputError, match="EfficientDynamic, round 17: gradient has norm"):
        tw.play(learner, problem)
    assert learner.rounds == 16
    twin = tw.EfficientDynamic(tw.domains.Ball(2), 20, 2.0, 1.0)
    tw.play(twin, problem[:16])
    assert np.array_equal(learner.decision, twin.decision)


@pytest.mark.parametrize("path", [lambda p: p, one_by_one], ids=["compiled", "python"])
def test_clipped_rounds_are_counted(path):
    features = np.full((20, 2), 0.5)
    features[[3, 16]] = 100.0
    problem = tw.problems.LinearRegression(features, np.ones(20))
    learner = tw.EfficientDynamic(tw.domains.Ball(2), 20, 2.0, 1.0, on_violation="clip")
    run = tw.play(learner, path(problem))
    assert run.clipped == learner.clipped == 2
    assert run.queries == tw.Queries(20, 20, 0)


def test_past_the_horizon_one_warning():
    learner = tw.EfficientDynamic(tw.domains.Ball(4, radius=2.0), 100, G)
    with pytest.warns(HorizonWarning, match="tuned for 100 rounds") as caught:
        tw.play(learner, problems()["squared"])
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tw.play(learner, problems()["squared"], rounds=5)


class Press:
    """Presses Ctrl-C in a given round."""

    def __init__(self, round_):
        self.round = round_

    def __call__(self, t, x):
        if t == self.round:
            os.kill(os.getpid(), signal.SIGINT)
        return float(x @ x)


def test_ctrl_c_returns_what_was_played():
    usual = signal.getsignal(signal.SIGINT)
    learner = tw.SOGD(tw.domains.Ball(2))
    problem = tw.problems.FromFunctions(Press(20), lambda t, x: 2 * x, shape=2)
    run = tw.play(learner, problem, rounds=1000)
    assert run.interrupted
    assert run.rounds == learner.rounds == 21
    assert "interrupted" in repr(run)
    assert signal.getsignal(signal.SIGINT) is usual


def test_ctrl_c_in_the_last_round_is_not_lost():
    problem = tw.problems.FromFunctions(Press(4), lambda t, x: 2 * x, shape=2, horizon=5)
    run = tw.play(tw.SOGD(tw.domains.Ball(2)), problem)
    assert (run.rounds, run.interrupted) == (5, True)


def test_ctrl_c_stops_a_compiled_run():
    rng = np.random.default_rng(0)
    rounds = 3_000_000
    problem = tw.problems.LinearRegression(rng.standard_normal((rounds, 2)), rng.standard_normal(rounds))
    learner = tw.Ensemble(tw.domains.Ball(2), np.geomspace(1e-3, 1.0, 30))
    tw.play(learner, problem, rounds=2)  # compiled before the clock runs
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    run = tw.play(learner, problem)
    timer.join()
    assert run.interrupted
    assert 0 < run.rounds < rounds
    assert learner.rounds == run.rounds + 2


def test_play_works_in_a_thread():
    runs = []
    thread = threading.Thread(target=lambda: runs.append(tw.play(tw.SOGD(domains()["ball"]), problems()["squared"])))
    thread.start()
    thread.join()
    assert runs[0].rounds == T


class Bowl:
    """A loss of one's own, with nothing but the two methods."""

    def value(self, x):
        return float(x @ x)

    def gradient(self, x):
        return 2 * x


def test_own_losses_need_no_shape_and_may_go_on_for_ever():
    assert tw.play(tw.SOGD(tw.domains.Ball(2)), [Bowl()] * 4).rounds == 4
    assert tw.play(tw.SOGD(tw.domains.Ball(2)), itertools.repeat(Bowl()), rounds=5).rounds == 5


def test_an_error_in_the_middle_names_the_round_of_the_problem():
    class Bad(Bowl):
        def gradient(self, x):
            return np.full(2, np.nan)

    learner = tw.SOGD(tw.domains.Ball(2))
    tw.play(learner, [Bowl()] * 10)
    with pytest.raises(InputError, match="SOGD, round 14") as caught:
        tw.play(learner, [Bowl(), Bowl(), Bowl(), Bad()])
    assert caught.value.__notes__ == ["In round 3 of the problem, counted from 0."]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tw.play(tw.SOGD(tw.domains.Ball(2)), None), "play needs a problem or an iterable of losses. Got None"),
        (lambda: tw.play(problems()["squared"], tw.SOGD(tw.domains.Ball(4))), r"play\(learner, problem\)"),
        (lambda: tw.play(tw.SOGD, problems()["squared"]), r"play\(learner, problem\)"),
        (lambda: tw.play(tw.SOGD(tw.domains.Ball(2)), problems()["squared"]), r"\(4,\), the learner's domain \(2,\)"),
        (lambda: tw.SOGD(tw.domains.Ball(2)).step(3), "step needs a loss with"),
        (lambda: tw.SOGD(tw.domains.Ball(2)).update([[1.0, 2.0], [3.0]]), "gradient must be an array of real numbers"),
        (lambda: tw.SOGD(tw.domains.Ball(2)).update([1.0, 2.0], loss="0.1"), "loss must be a number. Got '0.1'"),
        (lambda: tw.OneProjection(tw.domains.Ball(2), tw.SOGD(tw.domains.Ball(2))), "must be a function Y -> learner"),
        (
            lambda: tw.OneProjection(tw.domains.Box(-1.0, 1.0, shape=3), lambda Y: tw.SOGD(tw.domains.Ball(3, 0.01))),
            "The set of the inner learner of OneProjection must contain the domain",
        ),
    ],
)
def test_mixed_up_arguments_are_explained(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_a_learner_says_what_it_is():
    learner = tw.EfficientDynamic(tw.domains.Ball(2), 100, 3.0)
    learner.update([1.0, 0.0])
    assert repr(learner) == "EfficientDynamic(Ball(2, radius=1), horizon=100, gradient_bound=3; 1 rounds played)"
