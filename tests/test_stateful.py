"""What all learners are: built from arguments that they keep, and called in one way."""

import inspect

import numpy as np
import pytest

import thalweg as tw
from tests.worlds import LEARNERS, ball
from thalweg._core.recorded import Recorded
from thalweg._core.saving import Kept
from thalweg.testing._learner import _update

every = pytest.mark.parametrize("name", LEARNERS)
PLAIN = int | float | str | bool | None


@every
def test_every_argument_is_an_attribute(name):
    learner = LEARNERS[name]()
    for argument, parameter in inspect.signature(type(learner)).parameters.items():
        assert hasattr(learner, argument), argument
        if argument in learner._given and argument != "threshold":  # a number or a word there becomes a function
            given = learner._given[argument]
            if isinstance(given, PLAIN | tw.domains.Domain):
                assert getattr(learner, argument) == given
        elif isinstance(parameter.default, str) and argument not in ("threshold", "cover"):
            assert getattr(learner, argument) == parameter.default


@every
def test_repr_shows_what_is_not_the_default(name):
    learner = LEARNERS[name]()
    text = repr(learner)
    assert text.startswith(f"{type(learner).__name__}(")
    assert text.endswith("; 0 rounds played)")
    for shown in filter(callable, learner._given.values()):  # which may show arguments of another
        text = text.replace(repr(shown), "...")
    for argument, parameter in list(inspect.signature(type(learner)).parameters.items())[1:]:
        given = learner._given.get(argument, parameter.default)
        changed = given is not parameter.default and given != parameter.default
        assert (f" {argument}=" in text) == changed, argument


@every
def test_as_it_is_built_one_gradient_a_round_is_enough(name):
    """With no word on gradients `update` works, for every method that takes gradients at all."""
    learner = LEARNERS[name]()
    if learner.values_only:
        return
    given = {key: value for key, value in learner._given.items() if key != "gradients"}
    plain = type(learner)(**given)
    assert plain.one_gradient
    _update(plain, np.linspace(0.1, 0.5, plain.domain.dim).reshape(plain.domain.shape), 0.5)
    assert plain.rounds == 1


# ------------------------------------------------------------------------------------------------ calls that do not fit


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: tw.SOGD(X, 1.0), r"SOGD takes domain by position.*Got 2 arguments.*Write SOGD\(domain, scale=...\)"),
        (lambda X: tw.CBCE(X, 5.0), r"Write CBCE\(domain, gradient_bound=...\)"),
        (lambda X: tw.AOA(X, 5.0), r"Write AOA\(domain, gradient_bound=...\)"),
        (
            lambda X: tw.Scream(X, 10, 1.0, 2.0),
            r"Scream takes domain, horizon, gradient_bound by position.*"
            r"Write Scream\(domain, horizon, gradient_bound, switching_cost=...\)",
        ),
        (lambda X: tw.SACS(X, 60.0, 2.0), r"Got 3 arguments.*Write SACS\(domain, loss_bound=..., smoothness=...\)"),
        (lambda X: tw.SOGD(X, colour="red"), "unexpected keyword argument 'colour'"),
        (lambda X: tw.SOGD(), "missing 1 required positional argument: 'domain'"),
    ],
)
def test_a_call_that_does_not_fit_is_told_how_to_write_it(call, message):
    with pytest.raises(TypeError, match=message):
        call(ball())


def test_a_number_where_ogd_had_its_step_is_told_where_it_goes():
    with pytest.raises(tw.errors.InputError, match=r"give step_size=.*Got horizon=0.1 only"):
        tw.OGD(ball(), 0.1)


def test_arguments_of_ones_own_class_are_recorded_too():
    class Mine(Kept, Recorded):
        speed = 3.0  # of the class, where nothing is given

        def __init__(self, place, *, speed=1.0, mood="good", **more):
            self.more = more

        rounds = 0

    assert (Mine(1).speed, Mine(1).mood, Mine(1, speed=2.0).speed) == (3.0, "good", 2.0)
    assert repr(Mine(1, mood="bad", colour="red")) == "Mine(1, mood='bad', colour='red'; 0 rounds played)"
    assert Mine(1, colour="red").clone().more == {"colour": "red"}
