"""Late feedback: `Delayed`, the calls it shares with `EfficientDelayed`, and `play(..., delay=...)`."""

from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

import thalweg as tw
from tests import samples
from tests.samples import refused, same
from tests.twins.delayed import interleaved
from tests.worlds import CountedLoss, CountedSet, ball, ellipsoid, flat_polytope, slow_box
from thalweg.errors import HorizonWarning, InputError
from thalweg.extend import Floats, InPython, Ints, counter_field, field
from thalweg.learners.delayed_feedback import DelayedFeedback

G = 6.0
LEARNERS = {
    "Tracker": tw.Tracker,
    "OGD": partial(tw.OGD, step_size=0.1),
    "SOGD": tw.SOGD,
    "EfficientDynamic": partial(tw.EfficientDynamic, horizon=60, gradient_bound=G),
    "Ader": partial(tw.Ader, horizon=60, gradient_bound=G),
    "EfficientAdaptive": partial(tw.EfficientAdaptive, horizon=60, gradient_bound=G, smoothness=2.0),
    "clipped": partial(tw.EfficientDynamic, horizon=60, gradient_bound=0.3, on_violation="clip"),
}
SETS = {
    "ball": ball,
    "ellipsoid": ellipsoid,
    "simplex": lambda: tw.domains.Simplex(4),
    "flat": flat_polytope,
    "matrix": lambda: tw.domains.Ball((2, 2)),
    "Python": slow_box,
}
BOTH = {
    "Delayed": lambda **d: tw.Delayed(ellipsoid(), tw.Tracker, **d),
    "EfficientDelayed": lambda **d: tw.EfficientDelayed(ellipsoid(), 60, G, **d),
}
both = pytest.mark.parametrize("make", BOTH.values(), ids=BOTH.keys())


def losses(X, count=60, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((count, *X.shape))
    A /= np.linalg.norm(A.reshape(count, -1), axis=1).reshape(count, *(1,) * len(X.shape))
    return [tw.losses.Squared(a, b) for a, b in zip(A, rng.uniform(-1, 1, count), strict=True)]


def step_all(learner, fs, delays):
    X = []
    for f, d in zip(fs, delays, strict=True):
        X.append(np.array(learner.decision))
        learner.step(f, delay=d)
    return np.array(X)


# ------------------------------------------------------------------------------------------------------- what it equals


# two sets are enough for what is slow to compile
PAIRS = [(n, w) for n in LEARNERS for w in SETS if n not in ("Ader", "EfficientAdaptive") or w in ("ball", "Python")]


@pytest.mark.parametrize(("name", "where"), PAIRS)
def test_delay_0_is_the_learner_itself(name, where):
    X = SETS[where]()
    one, two = LEARNERS[name](X), tw.Delayed(X, LEARNERS[name], delay=0)
    assert two.queries == one.queries
    for f in losses(X, 30):
        x = one.decision
        assert np.array_equal(x, two.decision)
        one.update(f.gradient(x), f.value(x))
        two.update(f.gradient(x), f.value(x))
        two.advance()
        assert (two.rounds, two.queries, two.clipped) == (one.rounds, one.queries, one.clipped)
    fs = losses(X, 30, seed=1)
    a, b = tw.play(one, fs, decisions=True), tw.play(two, fs, decisions=True)
    assert np.array_equal(a.decisions, b.decisions)
    assert np.array_equal(a.losses, b.losses)
    inside = {k.removeprefix("copy0."): v for k, v in two.state().items() if k.startswith("copy0.")}
    if name == "clipped":  # which is counted outside
        inside["clock"] = inside["clock"] + [0, 0, 0, 0, two.clipped, 0]
    assert same(one.state(), inside)


@pytest.mark.parametrize("d", [1, 4, 70])
@pytest.mark.parametrize(
    ("name", "where"), [("Tracker", "ellipsoid"), ("EfficientDynamic", "simplex"), ("OGD", "Python")]
)
def test_a_fixed_delay_is_as_many_interleaved_learners(name, where, d):
    X = SETS[where]()
    fs = losses(X)
    learner, copies = tw.Delayed(X, LEARNERS[name], delay=d), [LEARNERS[name](X) for _ in range(d + 1)]
    for t, f in enumerate(fs):
        x = np.array(copies[t % (d + 1)].decision)
        assert np.array_equal(learner.decision, x)
        assert learner.step(f) == f.value(x)
        copies[t % (d + 1)].update(f.gradient(x), f.value(x))
    assert learner.copies == min(d + 1, len(fs) + 1)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["Tracker", "OGD"])
def test_varying_delays_are_copies_that_wait_for_nothing(name, seed):
    X, rng = ellipsoid(), np.random.default_rng(seed)
    fs, m = losses(X), [0, 1, 5, 5, 9, 80][seed]
    delays = rng.integers(-1, m + 1, len(fs))
    expected, who = interleaved(partial(LEARNERS[name], X), fs, delays, m)
    learner = tw.Delayed(X, LEARNERS[name], max_delay=m)
    assert np.array_equal(step_all(learner, fs, delays), expected)
    assert max(who) + 1 <= learner.copies <= m + 1
    again = tw.Delayed(X, LEARNERS[name], max_delay=m)
    run = tw.play(again, fs, delay=delays, decisions=True)
    assert np.array_equal(run.decisions, expected)
    assert same(again.state(), learner.state())


def test_as_many_copies_as_rounds_wait_at_once_and_one():
    learner = tw.Delayed(ball(), tw.SOGD, max_delay=1000)
    for t in range(200):
        learner.step(tw.losses.Linear([1.0, 0.0, 0.0]), delay=0 if t % 10 else 3)
    assert learner.copies == 2


# ----------------------------------------------------------------------------------------------------------- the calls


@both
def test_the_order_within_a_round_does_not_matter(make):
    fs, rng = losses(ellipsoid(), 25), np.random.default_rng(1)
    delays = rng.integers(-1, 8, len(fs))
    learners = [make(max_delay=7) for _ in range(3)]
    stepped = make(max_delay=7)
    for t, f in enumerate(fs):
        for learner in learners:
            due = [s for s in range(max(0, t - 7), t + 1) if delays[s] >= 0 and s + delays[s] == t]
            shown = np.array(learner.decision)
            for s in rng.permutation(due) if learner is not learners[0] else due:
                x = learner.decision_at(s)
                learner.update(fs[s].gradient(x), fs[s].value(x), round=s)
            assert np.array_equal(learner.decision, shown)  # feedback counts from the next round on
            learner.advance()
        stepped.step(f, delay=delays[t])
        assert all(np.array_equal(learner.decision, stepped.decision) for learner in learners)
    assert all(same(learner.state(), learners[0].state()) for learner in learners)


@both
def test_the_oldest_round_that_waits(make):
    one, two = make(delay=3), make(delay=3)
    for t, f in enumerate(losses(ellipsoid(), 30)):
        x = one.decision
        assert np.array_equal(x, two.decision)
        assert np.array_equal(one.decision_at(t), x)
        assert one.outstanding == tuple(range(max(0, t - 3), t + 1))
        if t >= 3:
            s = one.outstanding[0]
            g = f.gradient(one.decision_at(s))
            one.update(g, 1.0)
            two.update(g, 1.0, round=s)
        one.advance()
        two.advance()
    assert same(one.state(), two.state())
    assert one.queries.gradients == 27


@both
def test_what_never_comes_is_forgotten(make):
    learner = make(max_delay=2)
    before = np.array(learner.decision)
    for _ in range(10):
        learner.advance()
    assert np.array_equal(learner.decision, before)
    assert learner.rounds == 10
    assert learner.outstanding == (8, 9, 10)
    assert learner.queries.gradients == 0
    assert learner.queries.projections <= 11
    assert getattr(learner, "copies", 3) == 3
    assert getattr(learner, "forgotten", 8) == 8


@both
def test_what_is_refused_changes_nothing(make):
    learner, f = make(max_delay=2), losses(ellipsoid(), 1)[0]
    for _ in range(5):
        learner.step(f, delay=1)
    learner.advance()
    x, g = np.array(learner.decision), np.array([0.1, 0.2, 0.3])
    for call, words in [
        (lambda: learner.update(g, 1.0), "say which round the feedback is of"),
        (lambda: learner.update(g, 1.0, round=7), "round 7 is not there yet. The present one is 6"),
        (
            lambda: learner.update(g, 1.0, round=4),
            r"round 6 \(counted from 0\): round 4 has had its feedback.*`outstanding`",
        ),
        (lambda: learner.update(g, 1.0, round=3), "round 3 is forgotten"),
        (lambda: learner.update(g, 1.0, round=-1), "whole number >= 0"),
        (lambda: learner.update(g, 1.0, round=5.5), "whole number >= 0"),
        (lambda: learner.update(g, 1.0, round=True), "whole number >= 0"),
        (
            lambda: learner.update([np.nan, 0, 0], 1.0, round=5),
            r"round 5 \(counted from 0\): gradient .* nan or infinite",
        ),
        (lambda: learner.update([1.0, 0.0], 1.0, round=5), "gradient has shape"),
        (lambda: learner.update(g, np.inf, round=5), "loss must be"),
        (lambda: learner.decision_at(3), "round 3 is forgotten"),
        (lambda: learner.decision_at(7), "not there yet"),
        (lambda: learner.step(f, delay=3), "whole number of at most 2"),
        (lambda: learner.step(f, delay=0.5), "whole number of at most 2"),
        (lambda: learner.step(None), "step needs a loss"),
    ]:
        with refused(learner, words):
            call()
        assert np.array_equal(learner.decision, x)
    learner.update(g, 1.0, round=6)
    with pytest.raises(InputError, match="has had its feedback"):
        learner.step(f)
    one = make(delay=0)
    one.update(g, 1.0)
    with pytest.raises(InputError, match="no round waits"):
        one.update(g, 1.0)


class FussyState(NamedTuple):
    x: Floats = field("d")
    clock: Ints = counter_field()


class Fussy(tw.Learner):
    """A copy may know better than the wrapper what it can take."""

    def __init__(self, domain):
        super().__init__(InPython(domain, FussyState, self.learn))

    def learn(self, s, gradient, loss):
        s.x[:] = self.domain.project(s.x - 0.1 * gradient)
        if np.abs(gradient).max() > 3:
            raise InputError("too large for me")


def test_a_learner_that_refuses_at_the_last_moment():
    learner = tw.Delayed(ellipsoid(), Fussy, delay=1)
    for _ in range(4):
        learner.step(tw.losses.Linear([0.1, 0.0, 0.0]))
    _ = learner.decision
    for call in (lambda: learner.step(tw.losses.Linear([5.0, 0.0, 0.0])), lambda: learner.update([5.0, 0.0, 0.0])):
        with refused(learner, "too large for me"):
            call()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda X: tw.Delayed(X, tw.SOGD), "needs one of 'delay'"),
        (lambda X: tw.Delayed(X, tw.SOGD, delay=1, max_delay=2), "needs one of 'delay'"),
        (lambda X: tw.Delayed(X, tw.SOGD, delay=-1), "'delay' parameter of Delayed must be a whole number >= 0"),
        (lambda X: tw.Delayed(X, tw.SOGD, max_delay=2**40), "asks for an array"),
        (lambda X: tw.Delayed(X, tw.SOGD(X), delay=1), "must be a function"),
        (lambda X: tw.Delayed(X, lambda X: None, delay=1), "must return a learner, and it lacks decision"),
        (lambda X: tw.Delayed(X, lambda X: tw.SOGD(ball()), delay=1), "the set that it is given"),
        (lambda X: tw.Delayed(X, lambda X: tw.Delayed(X, tw.SOGD, delay=1), delay=1), "takes delayed feedback itself"),
        (lambda X: tw.Delayed(X, lambda X: tw.Ader(X, 9, 1.0, gradients="own"), delay=1), "Use gradients='shared'"),
        (
            lambda X: tw.Delayed(X, lambda X: tw.EfficientBandit(X, 9, 1.0, points=2), delay=1),
            "EfficientBandit, which takes values: delayed feedback is one gradient a round",
        ),
        (lambda X: tw.OneProjection(X, lambda Y: tw.Delayed(Y, tw.SOGD, delay=1)), "Put Delayed outside"),
        (lambda X: tw.OneProjection(X, lambda Y: tw.EfficientDelayed(Y, 9, 1.0, delay=1)), "Put Delayed outside"),
        (lambda X: tw.Delayed(X, lambda X: 1 / 0, delay=1), "failed with ZeroDivisionError"),
        (lambda X: tw.EfficientDelayed(X, 9, 1.0), "needs one of 'delay'"),
        (lambda X: tw.EfficientDelayed(X, 9, 1.0, max_delay=2**40), "asks for an array"),
    ],
)
def test_bad_arguments(make, words):
    with pytest.raises(InputError, match=words):
        make(ball())


def test_the_warning_of_a_copy_names_the_line_of_the_caller():
    X = ball()
    learner = tw.Delayed(X, partial(tw.EfficientDynamic, horizon=1, gradient_bound=G), delay=0)
    learner.step(losses(X, 1)[0])
    with pytest.warns(HorizonWarning) as caught:
        learner.step(losses(X, 1)[0])
    assert caught[0].filename == __file__


def test_a_maker_that_changes_its_mind():
    made = []

    def make(X):
        made.append(tw.OGD(X, step_size=0.1 * (1 + len(made))))
        return made[-1]

    learner = tw.Delayed(ball(), make, delay=1)
    _ = learner.decision
    with refused(learner, "always return the same kind"):
        learner.advance()
    one = tw.SOGD(X := ball())
    with pytest.raises(InputError, match="a fresh learner every time"):
        tw.Delayed(X, lambda X: one, delay=1).advance()


def test_play_says_what_it_needs():
    X = ball()
    fs = losses(X, 5)
    for call, words in [
        (lambda: tw.play(tw.SOGD(X), fs, delay=1), "SOGD takes no delayed feedback. Wrap it"),
        (lambda: tw.play(tw.Delayed(X, tw.SOGD, delay=1), fs, delay=2), "at most 1"),
        (lambda: tw.play(tw.Delayed(X, tw.SOGD, delay=1), fs, delay=[0, 1, -1, 2, 3]), "round 3 in play must .* Got 2"),
        (lambda: tw.play(tw.Delayed(X, tw.SOGD, delay=1), fs, delay=[0, 1]), "one entry for each of 5 rounds"),
        (lambda: tw.play(tw.Delayed(X, tw.SOGD, delay=1), fs, delay="late"), "a whole number, or one for each round"),
        (lambda: tw.play(tw.Delayed(X, tw.SOGD, delay=1), fs, delay=np.nan), "whole number of at most 1"),
    ]:
        with pytest.raises(InputError, match=words):
            call()
    assert tw.play(tw.Delayed(X, tw.SOGD, delay=1), fs, delay=-1).queries.gradients == 0


# ------------------------------------------------------------------------------------------------------------- counting


@both
def test_one_projection_and_at_most_one_gradient_a_round(make):
    counted, rng = CountedSet(ellipsoid()), np.random.default_rng(0)
    kind = type(make(delay=1))
    more = (tw.Tracker,) if kind is tw.Delayed else (60, G)
    learner = kind(counted.domain, *more, max_delay=5)
    fs = [CountedLoss(f) for f in losses(ellipsoid())]
    delays = rng.integers(-1, 6, len(fs))
    run = tw.play(learner, fs, delay=delays)
    assert sum(f.gradients for f in fs) == run.queries.gradients == np.count_nonzero(delays >= 0)
    assert counted.calls == run.queries.projections
    assert counted.calls == len(fs) if kind is tw.EfficientDelayed else counted.calls <= len(fs)


# -------------------------------------------------------------------------------------------------------- in mid-flight


@both
def test_goes_on_bit_for_bit_with_feedback_outstanding(make):
    """In the middle of a round whose feedback has come; all ways to copy a state are tried in tests/test_memory.py."""
    fs, rng = losses(ellipsoid()), np.random.default_rng(3)
    delays = rng.integers(-1, 7, len(fs))
    learner = make(max_delay=6)
    step_all(learner, fs[:20], delays[:20])
    learner.update([0.1, 0.0, 0.2], 1.0, round=20)
    twin = make(max_delay=6)
    step_all(twin, fs[:5], delays[:5])
    twin.restore(learner.state())
    for one in (learner, twin):
        one.advance()
    assert np.array_equal(step_all(learner, fs[21:], delays[21:]), step_all(twin, fs[21:], delays[21:]))
    assert same(learner.state(), twin.state())
    assert learner.queries == twin.queries
    learner.reset()
    assert same(learner.state(), make(max_delay=6).state())


class Plain:
    """A learner of somebody else's."""

    def __init__(self, domain):
        self.domain, self.x = domain, np.zeros(3)

    @property
    def decision(self):
        return self.domain.project(self.x)

    def update(self, gradient, loss):
        if np.abs(gradient).max() > 3:
            self.x[:] = 99.0
            raise RuntimeError("too large")
        self.x = self.x - 0.1 * gradient

    def state(self):
        return {"x": self.x.copy()}

    def restore(self, saved):
        self.x = np.array(saved["x"])

    def reset(self):
        self.x = np.zeros(3)


@pytest.mark.parametrize("x", [np.zeros(2), 0.5, "here", np.array([np.nan, 0.0, 0.0])], ids=str)
@pytest.mark.parametrize(
    "make", [lambda X, inner: tw.Delayed(X, inner, delay=1), lambda X, inner: tw.OneProjection(X, inner)]
)
def test_decisions_of_others_are_looked_at(make, x):
    class Wrong(Plain):
        decision = x

    learner = make(ellipsoid(), Wrong)
    with pytest.raises(InputError, match=r"the decision of Wrong must be finite numbers of shape \(3,\)"):
        _ = learner.decision
    assert learner.queries.projections == 0


def test_decisions_of_others_that_lie_outside():
    class Outside(Plain):
        decision = np.array([5.0, 0.0, 0.0])

    with pytest.raises(InputError, match=r"the decision of Outside must be a point of Ellipsoid.* Got array\(\[5"):
        _ = tw.Delayed(ellipsoid(), Outside, delay=1).decision


def test_the_floor_of_losses_is_that_of_the_learner():
    g = np.array([0.1, 0.2, 0.3])
    with pytest.raises(InputError, match="loss is -1, but Tracker assumes that no loss is below loss_floor = 0"):
        tw.Delayed(ellipsoid(), tw.Tracker, delay=1).update(g, -1.0)
    tw.Delayed(ellipsoid(), partial(tw.Tracker, loss_floor=-2.0), delay=1).update(g, -1.0)
    with pytest.raises(InputError, match="the guarantee of SACS needs losses >= 0"):
        tw.Delayed(ellipsoid(), partial(tw.SACS, loss_bound=9.0, smoothness=1.0), delay=1).update(g, -1.0)


def test_learners_of_others():
    X = ellipsoid()
    fs, one, two = losses(X), tw.Delayed(X, Plain, delay=2), tw.Delayed(X, partial(tw.OGD, step_size=0.1), delay=2)
    np.testing.assert_allclose(step_all(one, fs, [2] * 60), step_all(two, fs, [2] * 60), atol=1e-12)
    _ = one.decision
    with refused(one, "too large", RuntimeError):
        one.step(tw.losses.Linear([9.0, 0.0, 0.0]))
    other = one.clone()
    other.restore(one.state())
    assert np.array_equal(other.decision, one.decision)


# ------------------------------------------------------------------------------------------- whole runs, copy by copy


def by_hand(learner, problem):
    """Losses and decisions of rounds that are played by `step`."""
    played = [(learner.decision, learner.step(problem[t])) for t in range(len(problem))]
    return [np.array(part) for part in zip(*played, strict=True)]


@pytest.mark.parametrize("d", [0, 3, 7])
@pytest.mark.parametrize("kind", ["Tracker", "OGD", "EfficientDynamic, clips"])
def test_copies_play_their_rounds_in_compiled_code(kind, d):
    """`play` lets one copy after the other play all its rounds; no bit differs from rounds that are played in order."""
    domain, rng = tw.domains.Ball(3), np.random.default_rng(d)
    problem = tw.problems.LinearRegression(
        rng.normal(size=(600, 3)) * rng.lognormal(size=(600, 1)), rng.normal(size=600)
    )
    makers = {
        "Tracker": tw.Tracker,
        "OGD": partial(tw.OGD, step_size=0.1),
        "EfficientDynamic, clips": lambda Y: tw.EfficientDynamic(Y, 600, 40.0, 40.0, on_violation="clip"),
    }
    one, other = (tw.Delayed(domain, makers[kind], delay=d) for _ in range(2))
    first = 0
    for n in (1, 2, 350, 5, 242):  # also where a run begins before all copies are there
        part = problem[first : first + n]
        run, (decisions, losses) = tw.play(one, part, decisions=True), by_hand(other, part)
        assert np.array_equal(run.losses, losses)
        assert np.array_equal(run.decisions, decisions)
        assert one.queries == other.queries
        assert one.clipped == other.clipped
        assert same(one.state(), other.state())
        first += n
    assert (one.clipped > 3) == ("clips" in kind)
    assert [one.decision_at(s).tolist() for s in range(600 - d, 601)] == [
        other.decision_at(s).tolist() for s in range(600 - d, 601)
    ]


def test_a_run_that_must_be_refused_stands_before_that_round():
    features = np.random.default_rng(0).normal(size=(300, 2))
    features[211] *= 1e4
    problem = tw.problems.LinearRegression(features, np.ones(300))
    learner, other = (tw.Delayed(tw.domains.Ball(2), lambda Y: tw.OGD(Y, 300, 50.0), delay=4) for _ in range(2))
    with pytest.raises(InputError, match="gradient_bound") as error:
        tw.play(learner, problem)
    assert error.value.__notes__ == ["In round 211 of the problem, counted from 0."]
    by_hand(other, problem[:211])
    _ = other.decision  # as it was asked for in vain
    assert same(learner.state(), other.state())


def test_what_waits_by_hand_is_not_taken_for_turns():
    """A round without its feedback, or with one that came early: copies take turns no longer; `play` goes in order."""
    rng = np.random.default_rng(1)
    problem = tw.problems.LinearRegression(rng.normal(size=(60, 2)), rng.normal(size=60))
    one, other = (tw.Delayed(tw.domains.Ball(2), tw.SOGD, delay=3) for _ in range(2))
    for learner in (one, other):
        tw.play(learner, problem[:20])
        learner.update([0.5, 0.0])  # the present round's, at once
        learner.advance()
        learner.advance()  # and one that has none yet
        learner.update([0.1, 0.2])
    run, (_, losses) = tw.play(one, problem[20:]), by_hand(other, problem[20:])
    assert np.array_equal(run.losses, losses)
    assert same(one.state(), other.state())


# ---------------------------------------------------------------------------------------------------- feedback by hand


def counted(monkeypatch):
    """Whose feedback takes the longer way, as it comes."""
    found, usual = [], DelayedFeedback.update

    def update(self, *given, **named):
        found.append(self)
        usual(self, *given, **named)

    monkeypatch.setattr(DelayedFeedback, "update", update)
    return found


@pytest.mark.parametrize("where", SETS)
def test_usual_feedback_and_any_other_end_in_one_state(where, monkeypatch):
    """Arrays and floats go to the copy as they are; lists and NumPy's numbers take the longer way."""
    X, longer = SETS[where](), counted(monkeypatch)
    quick, slow = (tw.Delayed(X, tw.Tracker, max_delay=3) for _ in range(2))
    rng, came = np.random.default_rng(0), 0
    for _ in range(90):
        if rng.random() < 0.8:  # a decision that nobody reads is played all the same
            assert np.array_equal(quick.decision, slow.decision)
        for s in [s for s in quick.outstanding if rng.random() < 0.4]:
            g, value = rng.standard_normal(X.shape), None if rng.random() < 0.2 else rng.random()
            quick.update(g, value, round=s)
            slow.update(g.tolist(), None if value is None else np.float64(value), round=s)
            came += 1
        quick.advance()
        slow.advance()
    assert same(quick.state(), slow.state())
    assert quick.queries == slow.queries
    assert sum(one is slow for one in longer) == came > 50
    usual = len(X.shape) == 1 and tw.Tracker(X).machine.looped  # others have no usual round
    assert (sum(one is quick for one in longer) < came / 2) == usual


def test_long_gradients_by_hand(monkeypatch):
    """They are clipped and counted, or refused with nothing changed, whichever way feedback comes."""
    longer = counted(monkeypatch)
    clips, refuses = (
        tw.Delayed(ellipsoid(), partial(tw.EfficientDynamic, horizon=60, gradient_bound=1.0, on_violation=how), delay=1)
        for how in ("clip", "raise")
    )
    g = np.array([0.3, -0.5, 0.2])
    for t in range(20):
        for learner in (clips, refuses):
            _ = learner.decision
            if t > 3:
                if learner is refuses:
                    with refused(learner, "above gradient_bound"):
                        learner.update(9.0 * g)
                learner.update(9.0 * g if learner is clips and t % 2 else g)
            learner.advance()
    assert (clips.clipped, refuses.clipped) == (8, 0)
    assert clips.queries.gradients == refuses.queries.gradients == 16
    assert sum(one is clips for one in longer) < 16


def test_copies_with_learners_inside_come_back_after_a_reset_that_was_interrupted():
    """New copies take the place of those that the reset has dropped, each with the learner that it was built around."""
    name = "Delayed guest"
    learner, twin = samples.played(name), samples.played(name)
    before = learner._memory._remember()
    learner.reset()
    learner._memory._return_to(before)
    first = samples.ROUNDS
    assert np.array_equal(samples.play(name, learner, first, first + 30), samples.play(name, twin, first, first + 30))
