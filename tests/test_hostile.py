"""What nobody should pass is refused by name before anything changes; no nan, no hang, no error that is not ours."""

import collections
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import thalweg as tw
from tests import hostile
from tests.hostile import BALL, SYSTEM, Rude
from thalweg import control
from thalweg._core.validate import check_array, check_count, check_positive, check_rng, short_repr
from thalweg.errors import InputError
from thalweg.lab import build_domain

GOOD = {"refused", "answered"}


def campaign(count, seed):
    """So many hostile calls, every public thing in turn; what ended badly, and how many ended how."""
    everything = hostile.targets()
    rng, bad, endings = np.random.default_rng(seed), [], collections.Counter()
    for i in range(count):
        target = everything[i % len(everything)]
        replaced, call, must = hostile.draw(rng, target)
        ending = hostile.attempt(target, replaced, must)
        endings[ending.kind] += 1
        if ending.kind not in GOOD:
            bad.append(f"{call}: {ending.kind}. {ending.told}")
    return bad, endings


def test_everything_public_takes_valid_arguments():
    """The table of valid arguments is complete, and refuses nothing: else hostile calls would show nothing."""
    for target in hostile.targets():
        function, of = target.make()
        hostile.call(target, function, hostile.arguments(target, of))


@pytest.mark.parametrize("count", [600, pytest.param(20_000, marks=pytest.mark.slow)])
def test_hostile_calls_are_refused_or_answered(count):
    bad, endings = campaign(count, seed=count)
    print(dict(endings))
    assert not bad, f"{len(bad)} of {count}:\n" + "\n".join(bad[:20])
    assert min(endings["refused"], endings["answered"]) > count / 10


# ------------------------------------------------------------------------------------------------- what a number is

ARRAY = np.array([1.0, 2.0])
NO_NUMBERS = {
    "complex": 1 + 0j,
    "truth value": True,
    "truth value of NumPy": np.True_,
    "text": "1.0",
    "bytes": b"1",
    "duration": np.timedelta64(1, "s"),
    "date": np.datetime64("2020-01-01"),
    "masked": np.ma.masked,
    "one in a list": [1.0],
    "one in an array": np.array([1.0]),
    "nothing": None,
    "rude": Rude(),
    "too large an int": 10**309,
    "nan": math.nan,
}


@pytest.mark.parametrize("what", NO_NUMBERS)
def test_what_is_no_number(what):
    for check in (check_positive, check_count):
        with pytest.raises(InputError, match="The 'x' parameter of me must be"):
            check("me", "x", NO_NUMBERS[what])


@pytest.mark.parametrize(
    "x", [2, 2.0, np.int8(2), np.float16(2), np.longdouble(2), np.array(2), Fraction(2), Decimal(2)]
)
def test_what_is_a_number(x):
    assert check_positive("me", "x", x) == check_count("me", "x", x) == 2
    assert type(check_positive("me", "x", x)) is float
    assert type(check_count("me", "x", x)) is int


@pytest.mark.parametrize(
    "array",
    [
        *(ARRAY.astype(kind) for kind in (complex, bool, str, bytes, "m8[s]", "M8[s]", object)),
        np.ma.array(ARRAY, mask=[False, True]),
        np.zeros(2, dtype=[("a", float)]),
        [[1.0], [1.0, 2.0]],
        [Rude(), Rude()],
        Rude(),
        (x for x in ARRAY),
    ],
)
def test_what_is_no_array_of_numbers(array):
    with pytest.raises(InputError, match="must be an array of real numbers"):
        check_array("me", "x", array)
    for call in (BALL.project, tw.SOGD(BALL).update, tw.losses.Squared(ARRAY, 1.0).value):
        with pytest.raises(InputError, match="real numbers"):
            call(array)


def test_an_array_with_nothing_masked_is_an_array():
    assert check_array("me", "x", np.ma.array(ARRAY, mask=False)).tolist() == [1.0, 2.0]
    assert type(check_array("me", "x", np.ma.array(ARRAY))) is np.ndarray


@pytest.mark.parametrize("rng", [True, "12", -1, 1.5, math.nan, np.timedelta64(3, "s"), Rude(), np.array([1.0])])
def test_what_is_no_source_of_randomness(rng):
    with pytest.raises(InputError, match="'rng' parameter of me must be a numpy Generator"):
        check_rng("me", rng)


def test_a_message_needs_no_repr():
    assert short_repr(Rude()) == "an object of type Rude"
    assert short_repr(10**5000) == "an object of type int"  # Python writes out no int that long
    assert len(short_repr("x" * 10_000)) < 600


# ------------------------------------------------------------------------------------------------ sizes, and choices


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tw.Ader(BALL, 2**64, 4.0), "'horizon' parameter of Ader must be a whole number of at most"),
        (lambda: tw.Ader(BALL, 10**309, 4.0), "'horizon' parameter of Ader"),
        (lambda: tw.Ader(BALL, 20, 1e200), "'gradient_bound' parameter of Ader must be a number from 1e-50 to 1e\\+50"),
        (lambda: tw.Scream(BALL, 20, 1e-200, switching_cost=1.0), "'gradient_bound' parameter of Scream"),
        (lambda: tw.OGD(BALL, step_size=1e200), "'step_size' parameter of OGD"),
        (lambda: tw.Ensemble(BALL, [0.1, 1e200]), "'step_sizes' parameter of Ensemble"),
        (lambda: tw.EfficientAdaptive(BALL, 20, 4.0, 1e-200), "'smoothness' parameter of EfficientAdaptive"),
        (lambda: tw.CutkoskyAdaptive(BALL, 20, 4.0, epsilon=1e200), "'epsilon' parameter of CutkoskyAdaptive"),
        (lambda: tw.Ader(tw.domains.Ball(2, 1e90), 20, 4.0), "Ader needs a domain with a radius from"),
        (lambda: tw.Ader(BALL, 20, 4.0, gradients=ARRAY), "'gradients' parameter of Ader must be one of"),
        (lambda: tw.CBCE(BALL, gradient_bound=4.0, cover=ARRAY), "'cover' parameter of CBCE must be one of"),
        (lambda: tw.Cover(BALL, dict, meta=tw.metas.AdaptMLProd(1.0)), "'expert' function of Cover failed with"),
        (lambda: tw.domains.Ball(2, radius=1e160), "'radius' parameter of Ball must be a number from 1e-100 to"),
        (lambda: build_domain("ball:radius=1e160", 2), "'radius' parameter of Ball must be a number from 1e-100 to"),
        (lambda: tw.domains.Ball(2**31), "'shape' parameter of Ball asks for an array of 2.15e\\+09 entries"),
        (lambda: tw.domains.Simplex(2**64), "'dim' parameter of Simplex"),
        (lambda: tw.domains.ProductOfBalls(2, 1.0, sizes=3), "'sizes' parameter of ProductOfBalls must be a list"),
        (lambda: BALL.contains([0.0, 0.0], tol=math.nan), "'tol' parameter of Ball.contains"),
        (lambda: tw.losses.Squared(ARRAY, 1.0).gradient_bound("ball"), "'domain' parameter of Squared must be a"),
        (lambda: tw.problems.FromLosses(3), "'losses' parameter of FromLosses must be a list of losses"),
        (lambda: tw.experts.Pool(3), "'members' parameter of Pool must be one or more experts"),
        (lambda: tw.testing.check_learner(3), "'make' parameter of check_learner must be callable"),
        (lambda: tw.theorems.bounds.hedge(4, 0.0, 1.0, 1.0), "hedge cannot be computed"),
        (lambda: control.sinusoid(3, [1.0], phase=math.nan), "'phase' parameter of sinusoid must be a finite number"),
        (lambda: control.piecewise(2**40, 2), "'horizon' parameter of piecewise asks for an array"),
        (lambda: control.QuadraticCost(1.0, [1.0]), "'Q' parameter of QuadraticCost must be a vector or a matrix"),
        (lambda: control.QuadraticCost([1.0], [1.0]).value([math.nan], [1.0]), "'x' parameter of Quadratic.* finite"),
        (lambda: control.closed_loop_norm(SYSTEM, [[1.0]]), "'gain' parameter of closed_loop_norm must have shape"),
        (lambda: control.DAC(SYSTEM, memory=2).past_of(np.zeros((3, 2)), -1), "'t' parameter of DAC.past_of"),
        (lambda: control.estimated_constants(SYSTEM, memory=10**6), "'memory' parameter of estimated_constants"),
    ],
)  # fmt: skip
def test_refused_by_name(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("slack", [0.0, -1.0, 1e-30, 5e-324, math.nan, math.inf])
def test_a_slack_without_an_end_is_refused(slack):
    with pytest.raises(InputError, match="'slack' parameter of h_infinity_gain"):
        control.h_infinity_gain(SYSTEM, slack=slack)


@pytest.mark.parametrize("scale", [1e-9, 1e20])
def test_numbers_of_unusual_size_are_numbers_all_the_same(scale):
    """In other units of length the decisions are the same, in those units."""
    for make in (
        lambda s: tw.OGD(tw.domains.Ball(2, 2.0 * s), horizon=20, gradient_bound=4.0),
        lambda s: tw.EfficientDynamic(tw.domains.Ball(2, 2.0 * s), 20, 4.0 / s),
    ):
        usual, unusual = make(1.0), make(scale)
        for _ in range(3):
            usual.update([1.0, -0.5])
            unusual.update(np.array([1.0, -0.5]) * unusual.gradient_bound / usual.gradient_bound)
        assert np.allclose(unusual.decision / scale, usual.decision, rtol=1e-9)


def test_the_command_line_refuses_a_set_of_no_size(capsys):
    from thalweg.cli import main

    with pytest.raises(SystemExit):
        main(["run", "SOGD", "piecewise", "--horizon", "20", "--domain", "ball:radius=1e160"])
    assert "'radius' parameter of Ball must be a number from 1e-100 to 1e+100" in capsys.readouterr().err
