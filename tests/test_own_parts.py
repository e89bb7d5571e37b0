"""Mistakes in parts of one's own get a message that says what to write."""

from typing import NamedTuple

import numpy as np
import pytest

import thalweg as tw
from thalweg.extend import Floats, InPython, Ints, Plan, counter_field, field, implement, start
from thalweg.losses import Huber
from thalweg.testing import check_domain, check_learner

BALL = tw.domains.Ball(2)


class Points(NamedTuple):
    points: Floats = field("K N d")


class Nothing(NamedTuple):
    pass


@implement(start, Points)
def _start(e, c, k, i, point):
    e.points[k, i, :] = point


class Still(tw.experts.Expert):
    def __init__(self, domain, step=1.0):
        self.domain, self.step = domain, step

    @classmethod
    def plan(cls, experts):
        return Plan(Points, Nothing(), {"K": len(experts), "N": 1, "d": 2})


def test_an_expert_without_a_function_is_refused_before_compiling():
    with pytest.raises(TypeError, match=r"Points lacks `move`: write one under @implement\(move, Points\)"):
        tw.Alone(Still(BALL))


def test_experts_and_metas_have_a_repr():
    assert repr(Still(BALL, step=0.5)) == "Still(Ball(2, radius=1), step=0.5)"
    assert repr(tw.metas.CoinBetting(4.0)) == "CoinBetting(4)"


class Whole(NamedTuple):
    x: Floats = field("d")
    clock: Ints = counter_field()


class NoClock(NamedTuple):
    x: Floats = field("d")


class Sized(NamedTuple):
    x: Floats = field("d")
    more: Floats = field("m")
    clock: Ints = counter_field()


class Mine(tw.Learner):
    def __init__(self, domain, state=Whole):
        super().__init__(InPython(domain, state, self._learn))

    def _learn(self, s, gradient, loss):
        s.x[:] = np.nan


def test_a_state_without_a_clock_or_a_size_is_refused():
    with pytest.raises(TypeError, match="NoClock must declare clock"):
        Mine(BALL, NoClock)
    with pytest.raises(TypeError, match=r"'m', which the plan does not give\. Its sizes: d"):
        Mine(BALL, Sized)


def test_a_round_that_writes_nan_is_undone():
    learner = Mine(BALL)
    with pytest.raises(FloatingPointError, match="decision x of Whole"):
        learner.update([1.0, 0.0])
    assert learner.rounds == 0
    assert np.array_equal(learner.decision, [0.0, 0.0])


def test_check_learner_says_how_to_check_a_class_without_a_card():
    with pytest.raises(tw.errors.InputError, match=r"check_learner\(lambda: Mine\(\.\.\.\)\)"):
        check_learner(Mine)


def test_check_learner_does_not_pass_over_a_class_whose_card_is_none():
    class Carded(Mine):
        card = None

    with pytest.raises(tw.errors.InputError, match=r"check_learner\(lambda: Carded\(\.\.\.\)\)"):
        check_learner(Carded)

    class Ready(Carded):
        card = None

        def __init__(self):
            super().__init__(BALL)

    with pytest.raises(AssertionError, match="check_feasible"):  # it writes nan
        check_learner(Ready)


class Busy(tw.Learner):
    """Projects four times a round."""

    def __init__(self, projections, how):
        self.how = how
        super().__init__(InPython(BALL, Whole, self._learn, projections=projections))

    def _learn(self, s, gradient, loss):
        y = s.x - 0.1 * gradient
        for _ in range(3):
            self.how(y)
        s.x[:] = BALL.project(y)


@pytest.mark.parametrize("how", [BALL.project, BALL.distance, BALL.contains])
def test_check_learner_counts_projections_itself(how):
    check_learner(lambda: Busy(4, how))
    with pytest.raises(AssertionError, match="10 rounds projected 40 times onto the domain, which were counted as 10"):
        check_learner(lambda: Busy(1, how))
    assert "_project_flat" not in vars(BALL)


def test_check_domain_tells_of_a_solver_that_is_not_exact():
    def near(y, off=1e-7):
        x = y / max(1.0, np.linalg.norm(y))
        return x + off * np.sign(np.sin(1e9 * y.sum()))

    rough = tw.domains.Custom(near, shape=2, center=0.0, radius=1.0)
    with pytest.raises(AssertionError, match=r"It passes with tol=1e-06: .*solver.*tol=1e-06.*tolerance=1e-06"):
        check_domain(rough)
    check_domain(rough, tol=1e-6)
    wrong = tw.domains.Custom(lambda y: 0.5 * np.clip(y, -1, 1), shape=2, center=0.0, radius=1.0)
    with pytest.raises(AssertionError) as caught:
        check_domain(wrong)
    assert "It passes" not in str(caught.value)


def test_load_takes_a_list_of_classes_and_refuses_others(tmp_path):
    path = tmp_path / "a.npz"
    Mine(BALL).save(path)
    assert isinstance(tw.load(path, cls=[Mine]), Mine)
    with pytest.raises(tw.errors.InputError, match="Got 'Mine'"):
        tw.load(path, cls="Mine")


def test_check_domain_misses_par():
    class NoPar(tw.domains.Domain):
        onto = tw.domains.Ball(2).onto

        def __init__(self):
            self._state_facts((2,), np.zeros(2), 1.0, 2.0)

    with pytest.raises(AssertionError, match="it must set `par`"):
        check_domain(NoPar())


def test_a_loss_needs_a_name_of_its_own():
    with pytest.raises(TypeError, match="'huber' is the loss Huber"):
        type("Other", (Huber,), {})
    with pytest.raises(TypeError, match="must state its name"):
        type("Nameless", (tw.losses.PredictionLoss,), {})
    assert tw.losses.KINDS["huber"] is Huber
