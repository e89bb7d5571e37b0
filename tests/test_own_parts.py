"""Mistakes in parts of one's own get a message that says what to write."""

from typing import NamedTuple

import numpy as np
import pytest

import thalweg as tw
from thalweg._kernels.jit import PLAIN
from thalweg.errors import InputError, StateError
from thalweg.extend import (
    Floats,
    InPython,
    Ints,
    Memory,
    Plan,
    Pointer,
    call,
    copy,
    counter_field,
    dot,
    field,
    implement,
    inside,
    kernel,
    magnitude,
    move,
    of_kernels,
    onto_ball,
    pointer,
    scratch,
    start,
)
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
        _ = tw.Alone(Still(BALL)).decision


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
    def __init__(self, domain, declared=Whole):
        super().__init__(InPython(domain, declared, self._learn))

    def _learn(self, s, gradient, loss):
        s.x[:] = np.nan


def test_a_state_without_a_clock_or_a_size_is_refused():
    with pytest.raises(TypeError, match="NoClock must declare clock"):
        Mine(BALL, NoClock)
    with pytest.raises(TypeError, match=r"'m', which the plan does not give\. Its sizes: d"):
        _ = Mine(BALL, Sized).decision


def test_an_option_may_have_the_name_of_a_property():
    class Open(Mine):
        def __init__(self, domain, **options):
            super().__init__(domain)

    assert Open(BALL, rounds=3).rounds == 0


def test_a_round_that_writes_nan_is_undone():
    learner = Mine(BALL)
    with pytest.raises(FloatingPointError, match="decision x of Whole"):
        learner.update([1.0, 0.0])
    assert learner.rounds == 0
    assert np.array_equal(learner.decision, [0.0, 0.0])


def test_memory_needs_a_layout():
    with pytest.raises(TypeError, match=r"Memory\(Fixed\(plan\)\)\. Got a plan"):
        Memory(Plan(Whole, Nothing(), {"d": 2}))


class Planless(Still):
    @classmethod
    def plan(cls, experts):
        super().plan(experts)


def test_a_plan_is_returned():
    with pytest.raises(TypeError, match=r"Planless\.plan must return a Plan\. Got None"):
        _ = tw.Alone(Planless(BALL)).decision


def test_an_argument_is_no_method():
    class Hidden(Mine):
        def __init__(self, domain, save=True):
            super().__init__(domain)

    with pytest.raises(TypeError, match="Hidden: rename the argument 'save', which is a method of it"):
        Hidden(BALL)


def test_what_a_state_lacks_is_named():
    learner = Mine(BALL, Ruled)
    saved = learner.state()
    del saved["x"]
    with pytest.raises(StateError, match=r"it lacks 'x', float64 of shape \(2,\)"):
        learner.restore(saved)


class Uncalled(NamedTuple):
    x: Floats = field("d", magnitude)
    clock: Ints = counter_field()


class Unknown(NamedTuple):
    x: Floats = field("d", inside("set"))
    clock: Ints = counter_field()


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (Uncalled, r"the rule of 'x' in Uncalled must return True or False\. Got <function .* not inside"),
        (
            Unknown,
            r"the rule of 'x' in Unknown needs 'set', which is no field and no fact\. The plan's facts: domain\.",
        ),
    ],
)
def test_a_rule_that_cannot_say_is_named(declared, message, tmp_path):
    learner = Begins(BALL, declared=declared)
    with pytest.raises(TypeError, match=message):
        learner.restore(learner.state())
    with pytest.raises(TypeError, match=message):
        learner.save(tmp_path / "it.npz")


def test_a_shape_is_a_tuple():
    class Wrong(tw.domains.Domain):
        def __init__(self):
            self._state_facts(2, np.zeros(2), 1.0, 2.0)

    with pytest.raises(TypeError, match=r"Wrong: its shape must be a tuple, such as \(3,\)\. Got 2"):
        Wrong()


@kernel
def fails(values):
    if values[0] > 0.0:
        raise ValueError
    values[0] = 1.0


@pytest.mark.skipif(PLAIN, reason="nothing is compiled")
def test_a_kernel_that_raises_says_how_to_find_the_place():
    with pytest.raises(ValueError, match=r"fails failed: .* or it raised\. With NUMBA_DISABLE_JIT=1"):
        fails(np.ones(1))


class Returns(Mine):
    def _learn(self, s, gradient, loss):
        return s.x - gradient


def test_a_round_that_returns_the_decision_is_refused():
    learner = Returns(BALL)
    with pytest.raises(TypeError, match=r"returned array.*Write into s\.x\[:\] instead"):
        learner.update([0.5, 0.5])
    assert learner.rounds == 0


class Begins(tw.Learner):
    def __init__(self, domain, first=None, declared=Whole):
        self.first = first
        super().__init__(InPython(domain, declared, lambda s, g, loss: None, begin=self._begin if first else None))

    def _begin(self, s):
        s.x[:] = self.first


def test_the_first_decision_lies_in_the_set():
    for X in (tw.domains.Simplex(3), tw.domains.Box([1.0, 2.0], [3.0, 4.0])):
        assert X.contains(Begins(X).decision)
        for outside in (9.0, np.nan):
            with pytest.raises(ValueError, match=r"begin wrote .* into x, which is no point of"):
                _ = Begins(X, outside).decision


class Runaway(Mine):
    def _learn(self, s, gradient, loss):
        s.x[:] -= 3 * gradient


def test_a_run_outside_of_the_set_is_not_certified(monkeypatch):
    problem = tw.problems.LinearModel(np.eye(2), [1.0, 1.0])
    monkeypatch.setattr(Runaway, "card", tw.OGD.card, raising=False)
    learner = Runaway(BALL)
    run = tw.play(learner, problem, decisions=True)
    with pytest.raises(InputError, match="the decision of round 1 is no point of Ball"):
        tw.regret.certify(learner, problem, run)


class Ruled(NamedTuple):
    x: Floats = field("d", inside("domain"))
    clock: Ints = counter_field()


def test_a_state_that_could_not_be_loaded_is_not_saved(tmp_path):
    learner = Mine(BALL, Ruled)
    learner._memory.state.x[:] = 3.0
    with pytest.raises(StateError, match=r"Mine\.save: x are nan, infinite or against the rules.*Nothing was written"):
        learner.save(tmp_path / "it.npz")
    outer = tw.OneProjection(BALL, lambda Y: Mine(Y, Ruled))
    outer.machine.guest._memory.state.x[:] = np.nan
    with pytest.raises(StateError, match="nan"):
        outer._check_lasting()
    assert not list(tmp_path.iterdir())


@kernel
def bounded_at_one(par, y, out, work):
    for j in range(y.shape[0]):
        out[j] = min(max(y[j], 0.0), par[0])


class Bounded(tw.domains.Domain):
    onto = pointer(bounded_at_one)

    def __init__(self, par):
        self._state_facts((2,), np.full(2, 0.5), 0.75, 1.5)
        if par is not None:
            self.par = par


@pytest.mark.parametrize("par", [None, np.array([1]), np.array([[1.0]]), [1.0], np.ones(4)[::2]])
def test_parameters_of_a_compiled_projection_are_a_flat_float64_array(par):
    with pytest.raises(InputError, match=r"OGD cannot use Bounded: .*it must set `par`, a flat float64 array"):
        tw.OGD(Bounded(par), horizon=10, gradient_bound=1.0)
    with pytest.raises(InputError, match="check_domain cannot use Bounded"):
        check_domain(Bounded(par))


def test_a_projection_that_is_no_pointer_is_refused(monkeypatch):
    monkeypatch.setattr(Bounded, "onto", bounded_at_one)
    with pytest.raises(InputError, match=r"`onto` is not a pointer; write onto = pointer\(kernel\)"):
        tw.OGD(Bounded(np.ones(1)), horizon=10, gradient_bound=1.0)
    with pytest.raises(TypeError, match=r"Pointer needs a kernel\. Write @kernel above _start"):
        pointer(_start)


@kernel
def yes_or_no(z, b, par):
    return z > b


@kernel
def nothing(z, b, par):
    pass


@pytest.mark.skipif(PLAIN, reason="nothing is compiled")
@pytest.mark.parametrize(("value", "what"), [(yes_or_no, "a bool"), (nothing, "nothing")])
def test_a_kernel_that_returns_something_else_is_refused(value, what):
    usual = tw.losses.Squared.phi
    with pytest.raises(TypeError, match=rf"returns {what}\. It must return a float, on every path"):
        _ = of_kernels(value, *(one.kernel for one in usual[1:])).value.address


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
        super().__init__(InPython(BALL, Ruled, self._learn, projections=projections))

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


def test_a_loss_needs_a_name_of_its_own():
    with pytest.raises(TypeError, match="'huber' is the loss Huber"):
        type("Other", (Huber,), {})
    with pytest.raises(TypeError, match="must state its name"):
        type("Nameless", (tw.losses.PredictionLoss,), {})
    assert tw.losses.KINDS["huber"] is Huber


class StepState(NamedTuple):
    points: Floats = field("K N d", inside("domain"))


class StepSettings(NamedTuple):
    ball: Floats
    fault: int


@implement(start, StepState)
def _step_start(e, c, k, i, point):
    copy(point, e.points[k, i])


@implement(move, StepState)
def _step_move(e, c, k, n, h, scores):
    for i in range(n):
        y = e.points[k, i]
        if c.fault != 1:
            scores[k, i] = dot(h, y)
        last = h[h.shape[0]] if c.fault == 2 else 0.0
        for j in range(h.shape[0]):
            y[j] -= 0.1 * (i + 1) * h[j] + 0.0 * last
        onto_ball(c.ball, y, y, y)


class Step(tw.experts.Expert):
    def __init__(self, domain, fault=0):
        self.domain, self.fault = domain, fault

    @classmethod
    def plan(cls, experts):
        one, sizes = experts[0][0], {"K": len(experts), "N": max(map(len, experts)), "d": 2}
        return Plan(StepState, StepSettings(one.domain.par, one.fault), sizes, facts={"domain": one.domain})


@pytest.mark.skipif(PLAIN, reason="nothing is compiled")
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (0, None),
        (1, r"check_in_python: .* a kernel fails in decay, .*\(Scratch space is nan before a round"),
        (2, "check_in_python: .* a kernel fails in _step_move, line .*: index 2 is out of bounds"),
    ],
)
def test_kernels_of_ones_own_are_tried_in_plain_python(fault, message):
    def make():
        return tw.Alone(tw.experts.Pool([Step(BALL, fault), Step(BALL, fault)]))

    if message is None:
        return check_learner(make)
    with pytest.raises(AssertionError, match=message):
        check_learner(make)


class AnywhereState(NamedTuple):
    points: Floats = field("K N d", inside("domain"))


class AnywhereSettings(NamedTuple):
    onto: Pointer
    par: Floats
    work: Floats = scratch("d")


@implement(start, AnywhereState)
def _anywhere_start(e, c, k, i, point):
    copy(point, e.points[k, i])


@implement(move, AnywhereState)
def _anywhere_move(e, c, k, n, h, scores):
    for i in range(n):
        y = e.points[k, i]
        scores[k, i] = dot(h, y)
        for j in range(h.shape[0]):
            y[j] -= 0.5 * h[j]
        call(c.onto, c.par, y, y, c.work)


class Anywhere(tw.experts.Expert):
    def __init__(self, domain):
        self.domain = domain

    @classmethod
    def plan(cls, experts):
        X = experts[0][0].domain
        sizes = {"K": len(experts), "N": max(map(len, experts)), "d": X.dim}
        return Plan(AnywhereState, AnywhereSettings(X.onto, X.par), sizes, facts={"domain": X})


@pytest.mark.parametrize("domain", [BALL, tw.domains.Box([0.0, 1.0], [2.0, 3.0]), tw.domains.Simplex(2)])
def test_an_expert_of_ones_own_projects_onto_any_set(domain):
    check_learner(lambda: tw.Alone(Anywhere(domain)))
