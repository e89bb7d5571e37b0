"""A card is all that a new learner needs: list, certify, the laboratory, the checks and the docs read it."""

import pathlib
from typing import NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

import thalweg as tw
from thalweg.cards import Card, Setting, Variant, markdown, recipes
from thalweg.errors import InputError
from thalweg.extend import Floats, InPython, Ints, counter_field, field, inside
from thalweg.lab import build, draw
from thalweg.lab.commands import app
from thalweg.lab.runs import experts, steps
from thalweg.regret import certify
from thalweg.testing import STANDARD, check_learner
from thalweg.theorems import Theorem

TABLE = pathlib.Path(__file__).parents[1] / "docs" / "algorithms.md"


class Reach(Theorem):
    """A point that stands still loses at most G ||c - u|| a round."""

    name = "Lipschitz losses"
    share = 1.0

    def bound(self, start, stop, u, losses):
        return self.share * self.G * float(np.linalg.norm(self.center - u, axis=1).sum())


class StillState(NamedTuple):
    x: Floats = field("d", inside("domain"))
    clock: Ints = counter_field()


def still(theorem=Reach):
    """A learner that stays at the centre, with a card."""

    class Still(tw.Learner):
        card = Card(
            about="stays where it is",
            regret="static",
            bound="T",
            queries=("0", "1", "0"),
            source="nobody",
            theorem=theorem,
            variants={"clipped": Variant("the same for any gradients", options={"on_violation": "clip"})},
        )

        def __init__(self, domain, *, gradient_bound, on_violation="raise"):
            machine = InPython(domain, StillState, self.stay, begin=self.place, projections=0)
            super().__init__(machine, gradient_bound=gradient_bound, on_violation=on_violation)

        def place(self, s):
            s.x[:] = self.machine.domain.center.ravel()

        def stay(self, s, gradient, loss):
            pass

    return Still


def test_a_new_learner_is_known_everywhere():
    assert "Still" not in recipes()
    kind = still()
    check_learner(kind)
    listed = CliRunner().invoke(app, ["list", "algorithms"]).output.splitlines()
    assert [line.split()[-4:] for line in listed if line.startswith("Still ")] == [["stays", "where", "it", "is"]]
    assert any(line.startswith("Still-clipped ") and "any gradients" in line for line in listed)
    assert "| `Still` | 0 | 1 | 0 | static | T | nobody |" in markdown().splitlines()
    assert "clipped" not in markdown()

    stream = draw("piecewise", horizon=100)
    assert build("still-clipped", stream).on_violation == "clip"
    learner = build("Still", stream)
    run = tw.play(learner, stream.problem, decisions=True)
    certificate = certify(learner, stream.problem, run)
    assert certificate.holds
    assert certificate.name == "Still, Lipschitz losses"
    with pytest.raises(InputError, match=r"theorems of .*Still"):
        certify(build("Ader", stream), stream.problem, run)


def test_the_theorem_of_a_new_learner_can_fail():
    class TooGood(Reach):
        share = 1e-3

    kind, X = still(TooGood), tw.domains.Ball(2)
    problem = tw.problems.LinearLosses(np.ones((20, 2)))
    learner = kind(X, gradient_bound=2.0)
    assert not certify(learner, problem, tw.play(learner, problem)).holds


def test_a_subclass_has_the_theorem_but_no_name():
    class Special(tw.EfficientDynamic):
        pass

    assert "Special" not in recipes()
    X, problem = tw.domains.Ball(2), tw.problems.LinearLosses(np.ones((20, 2)))
    learner = Special(X, 20, 2.0)
    assert certify(learner, problem, tw.play(learner, problem)).name == "Special, Theorem 2"


def test_a_broken_learner_with_a_card_is_caught():
    class Outside(still()):
        card = still().card

        def place(self, s):
            s.x[:] = self.machine.domain.center.ravel() + 10.0

    with pytest.raises(AssertionError, match="check_feasible"):
        check_learner(Outside)


def test_every_regret_has_a_known_kind():
    with pytest.raises(InputError, match=r"one of static, dynamic.*Got 'small'"):
        Card("a", "small", "T", ("1", "1", "0"), "nobody", lambda s: {})


def test_a_setting_bounds_how_much_losses_differ():
    X = tw.domains.Ball(2, radius=2.0)
    assert Setting(X, 10, gradient_bound=3.0, loss_bound=5.0, nonnegative=True).spread == 5.0
    assert Setting(X, 10, gradient_bound=3.0, loss_bound=5.0).spread == 12.0  # values may lie in [-7, 5]
    assert Setting(X, 10, gradient_bound=1.0, loss_bound=5.0, nonnegative=True).spread == 4.0
    assert not Setting(X, 10, 3.0, 5.0, smoothness=1.0).small_loss
    assert not Setting(X, 10, 3.0, 5.0, nonnegative=True).small_loss
    assert STANDARD.small_loss


@pytest.mark.parametrize("name", recipes())
def test_a_round_costs_what_the_card_says(name):
    """N is the size of a pool, n the mean number of experts alive; the starting point was projected before."""
    recipe, stream = recipes()[name], draw("piecewise", horizon=120)
    learner = recipe.build(stream.setting)
    queries = tw.play(learner, stream.problem).queries
    counts = (queries.projections, queries.gradients, queries.values)
    found = steps(learner)
    known = {"N": len(found) if found is not None else None, "n": experts(learner, 120)[1]}
    for count, said in zip(counts, recipe.card.queries, strict=True):
        if said not in ("O(n N)", "several n"):
            factor = eval(said, {"__builtins__": {}}, known)
            assert count == pytest.approx(120 * factor, abs=0.01)


def test_the_readme_has_the_table():
    """`thalweg list --markdown` prints what belongs there."""
    assert CliRunner().invoke(app, ["list", "--markdown"]).output == markdown() + "\n"
    assert f"\n\n{markdown()}\n\n" in TABLE.read_text(encoding="utf-8")
