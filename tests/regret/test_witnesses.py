"""Witnesses: broken learners are accused, sound ones are not, and each witness is what it says."""

import numpy as np
import pytest

import thalweg as tw
from thalweg.cards import recipes
from thalweg.errors import InputError
from thalweg.lab import build, draw
from thalweg.regret import Witness, Witnesses, best_fixed, witnesses


def fed(learner, problem, factor):
    """A run of a learner that gets its gradients times a factor: 0 never moves, -1 is a sign error."""
    losses, decisions = [], []
    for f in problem:
        decisions.append(learner.decision.copy())
        losses.append(float(f.value(decisions[-1])))
        learner.update(factor * np.asarray(f.gradient(decisions[-1])), losses[-1])
    return tw.Run(np.array(losses), learner.queries, 0.0, decisions=np.array(decisions))


def jumps(T=400, stages=4):
    X = tw.domains.Ball(2)
    return X, tw.problems.piecewise_stationary(X, T, stages, rng=3)


# ------------------------------------------------------------------------------------------------------------ verdicts


@pytest.mark.parametrize("name", ["OGD", "EfficientDynamic", "EfficientAdaptive", "EfficientCutkosky", "Tracker"])
@pytest.mark.parametrize("stream", ["piecewise", "ball-piecewise", "classification"])
def test_broken_learners_are_accused_and_sound_ones_are_not(stream, name):
    game = draw(stream, horizon=400)
    for factor, accused in ((1.0, False), (0.0, True), (-1.0, True)):
        run = fed(build(name, game), game.problem, factor)
        for paid in (run, run.losses):  # with decisions and without
            assert witnesses(paid, game.problem, game.domain).accused is accused, (factor, paid)


@pytest.mark.parametrize("T", [300, pytest.param(3000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("stream", ["piecewise", "gradual", "fast-walk", "ball-piecewise"])
def test_no_learner_of_the_library_is_accused(stream, T):
    game = draw(stream, horizon=T)
    first = witnesses(tw.play(build("Tracker", game), game.problem), game.problem, game.domain)
    for name in recipes():
        if name == "EfficientBandit":  # with one value a round, so few rounds do not pay for what is tried
            continue
        run = tw.play(build(name, game), game.problem, decisions=True)
        moved = bool(np.ptp(run.decisions, axis=0).any())
        seen = Witnesses(run.total_loss, first.rows, first.scale, moved, T)
        assert not seen.accused, f"{name}: {seen}"


def test_who_stands_still_anywhere_is_told():
    X, problem = jumps()
    corner = np.array([0.6, -0.8])
    losses = problem.losses_of(corner)
    run = tw.Run(losses, tw.Queries(), 0.0, decisions=np.tile(corner, (len(problem), 1)))
    seen = witnesses(run, problem, X)
    assert seen.accused
    assert "never moves" in seen.verdict


def test_standing_at_the_optimum_is_no_fault():
    X, problem = jumps(stages=1)
    best = best_fixed(problem, X)
    run = tw.Run(best.losses, tw.Queries(), 0.0, decisions=np.array(best.decisions))
    assert not witnesses(run, problem, X).accused


def test_nothing_to_learn_no_verdict():
    """Signs of a coin: no fixed decision helps, and who loses to the centre is not to blame."""
    rng = np.random.default_rng(0)
    X = tw.domains.Ball(2)
    problem = tw.problems.LinearRegression(rng.standard_normal((500, 2)), rng.choice([-1.0, 1.0], 500))
    run = tw.play(tw.OGD(X, step_size=0.5), problem)
    seen = witnesses(run, problem, X)
    assert run.total_loss > seen.rows[0].loss
    assert not seen.learnable
    assert not seen.accused
    assert "no verdict" in seen.verdict


def test_words_and_numbers():
    rows = (Witness("the centre of the set", 10.0), Witness("the best fixed decision", 8.0), Witness("descent", 5.0))

    def seen(loss, moved=None):
        return Witnesses(loss, rows, 10.0, moved, 100)

    assert seen(7.5).verdict == "better than the centre: it saves 0.5 times as much as descent"
    assert seen(10.0).verdict == "BROKEN: it pays as much as the centre, a fixed point"
    assert seen(12.0).verdict == "BROKEN: it pays 2 more than the centre, a fixed point"
    assert seen(7.0, moved=False).verdict == "BROKEN: it never moves, and pays 2 more than descent"
    assert not seen(5.4, moved=False).accused
    assert seen(5.0).table()[0] == {"name": "the centre of the set", "loss": 10.0, "more": -5.0, "ratio": 0.5}
    assert seen(-1.0).table()[0]["ratio"] is None
    assert [line.split()[-1] for line in repr(seen(5.0)).splitlines()[-3:]] == ["0.5", "0.625", "1"]


# ----------------------------------------------------------------------------------------------------------- witnesses


@pytest.mark.parametrize("kind", ["squared", "absolute", "own"])
def test_each_witness_is_what_it_says(kind):
    X, problem = jumps(T=60)
    if kind == "absolute":
        problem = tw.problems.AbsoluteRegression(problem.features, problem.labels)
    if kind == "own":
        problem = tw.problems.FromLosses(list(problem), shape=(2,))
    rounds = list(problem)
    rows = {row.name: row.loss for row in witnesses(np.ones(60), problem, X).rows}
    assert rows["the centre of the set"] == pytest.approx(sum(f.value(np.zeros(2)) for f in rounds))
    fixed = best_fixed(problem, X, tol=1e-6)
    assert rows["the best fixed decision"] == pytest.approx(fixed.loss, abs=fixed.gap + 1e-9)
    (step,) = [float(name.split()[-1]) for name in rows if name.startswith("descent")]
    x, paid = np.zeros(2), 0.0
    for f in rounds:
        paid += f.value(x)
        x = X.project(x - step * f.gradient(x))
    assert rows[f"descent with step {step:.3g}"] == pytest.approx(paid, rel=0.02)  # the step has three digits
    for name, n in (("minimiser of the last round", 1), ("minimiser of the last 16 rounds", 16)):
        if name in rows:
            paid = [f.value(X.center if t == 0 else x) for t, f in enumerate(rounds) for x in [last(rounds, t, n, X)]]
            if n > 1:  # the minimiser of one round is not unique
                assert rows[name] == pytest.approx(sum(paid), rel=1e-3)
    assert len(rows) == {"squared": 5, "absolute": 4, "own": 3}[kind]


def last(rounds, t, n, X):
    return best_fixed(rounds[max(t - n, 0) : t], X).decisions[0] if t else None


def test_the_minimiser_of_the_last_round_is_one():
    """Where it is unique: one label a round on a line."""
    y = np.array([0.3, -0.5, 2.0, 0.1])
    problem, X = tw.problems.LinearRegression(np.ones((4, 1)), y), tw.domains.Ball(1)
    rows = {row.name: row.loss for row in witnesses(np.ones(4), problem, X).rows}
    before = np.clip([0.0, *y[:-1]], -1, 1)
    assert rows["minimiser of the last round"] == pytest.approx(((before - y) ** 2 / 2).sum(), rel=1e-6)


def test_one_round_and_bad_input():
    X, problem = jumps()
    assert len(witnesses([1.0], problem, X).rows) == 3
    assert len(witnesses([0.0], tw.problems.LinearLosses(np.zeros((1, 2))), X).rows) == 3
    with pytest.raises(InputError, match="witnesses got 401 losses"):
        witnesses(np.ones(401), problem, X)
    with pytest.raises(InputError, match="witnesses"):
        witnesses(np.ones(3), problem, tw.domains.Ball(3))
