"""Specimens: small runs that together ask for every kernel of the package, with arguments of every type it is given.

The build plays them in plain Python, records which kernel was called with arguments of which types, and compiles these
kernels. So a specimen need not do anything sensible, but it has to ask: for both sides of a choice that is made
while compiling (an array or None, the class of a part), for arrays that are read-only where there are such, for `play`
as well as `step` and `update`. Sizes and values do not matter. Nothing here needs an extra: estimators that follow the
rules of another library are there as the engines behind them.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import thalweg as tw
from thalweg import control, estimators, pca, regret
from thalweg._core.types import Floats
from thalweg._kernels.projections import PYTHON
from thalweg.cards import Setting, recipes
from thalweg.domains import (
    Ball,
    Box,
    Custom,
    Domain,
    Ellipsoid,
    Fantope,
    HalfSpace,
    Intersection,
    L1Ball,
    Polytope,
    ProductOfBalls,
    Simplex,
    SpectralBalls,
)
from thalweg.estimators._constrained import PROBLEMS, ConstrainedLayout, ConstrainedModel
from thalweg.estimators._linear import FreeModel
from thalweg.estimators._subspace import SubspaceModel, read_layout
from thalweg.experts import AdaGradDescent, Descent, Expert, Pool
from thalweg.fleet.chains import Chains
from thalweg.fleet.families.regressors import ExampleRows, learn_rows, model_tree
from thalweg.fleet.keys import shard_of
from thalweg.fleet.seats import BoundBatch, ClassTurn, StreamSeat, play
from thalweg.fleet.shelves import Shelf
from thalweg.learners.cover import Cover
from thalweg.learners.delayed_feedback import DelayedFeedback
from thalweg.losses import KINDS
from thalweg.metas import AdaNormalHedge, AdaptMLProd, CoinBetting, Hedge, LeadingHistory, Meta, Prod
from thalweg.parts.linear import LinearLayout
from thalweg.pca.sampling import systematic
from thalweg.problems import LinearModel
from thalweg.scaling import Standardiser

ROUNDS, HORIZON = 4, 20  # rounds of a problem, and those that a learner is tuned for
LARGE = 100.0  # a bound that holds for all gradients and losses here
KEYS = ["a", "b", "a"]  # of streams of a fleet

METAS: dict[str, Callable[[], Meta]] = {
    "Hedge": lambda: Hedge(rate=0.1),
    "AdaptMLProd": lambda: AdaptMLProd(LARGE),
    "AdaNormalHedge": lambda: AdaNormalHedge(LARGE),
    "CoinBetting": lambda: CoinBetting(LARGE),
    "LeadingHistory": lambda: LeadingHistory(0.1, LARGE),
    "Prod": lambda: Prod(LARGE),
}
IN_COVERS = ("Hedge",)  # meta-learners of pools on intervals: each one more is another 54 machines


def play_all() -> None:
    """Play every specimen."""
    _domains()
    _losses()
    _learners()
    _machines()
    _delayed()
    _regret()
    _controllers()
    _subspaces()
    _forecasts()
    _fleets()


# ----------------------------------------------------------------------------------------------------- data and domains


def _numbers(*shape: int) -> Floats:
    """Numbers between -1 and 1, always the same."""
    numbers: Floats = np.cos(1.0 + np.arange(math.prod(shape))).reshape(shape)
    return numbers


def _frozen(array: Floats) -> Floats:
    """A copy that cannot be written, as arrays of users may be: those of pandas are."""
    frozen = array.copy()
    frozen.flags.writeable = False
    return frozen


def _problem(domain: Domain, loss: str = "squared") -> LinearModel:
    """A few rounds on a domain, with data that every loss accepts."""
    features, labels = np.abs(_numbers(ROUNDS, *domain.shape)) + 0.1, np.where(np.arange(ROUNDS) % 2, 1.0, -1.0)
    return LinearModel(features, np.abs(labels) if loss == "log" else labels, loss)


def _grounds() -> list[Domain]:
    """A set of each kind that machines distinguish: a ball, a compiled projection, one in Python."""
    return [Ball(2), Box(-1.0, 1.0, shape=2), Custom(lambda y: np.clip(y, -1.0, 1.0), 2, 0.0, math.sqrt(2))]


def _sets() -> list[Domain]:
    """A domain of every class, and with every kind of affine hull."""
    square = np.vstack([np.eye(2), -np.eye(2)]), np.ones(4)
    return [
        *_grounds(),
        Ball((2, 2), radius=2.0, center=np.full((2, 2), 0.5)),
        Box([0.0, 1.0], [1.0, 1.0]),  # a fixed entry
        Custom(Simplex(2).project, 2, 0.5, 1.0, normals=[[1.0, 1.0]]),
        Ellipsoid([1.0, 4.0], bound=1.0),
        Ellipsoid([[2.0, 1.0], [1.0, 2.0]], bound=1.0),
        Fantope(3, 1),
        Intersection(Ball(2), HalfSpace([1.0, 1.0], 0.5)),
        Intersection(Simplex(2), Ball(2)),
        L1Ball(2),
        Polytope(*square),
        Polytope(*square, A_eq=[[1.0, 1.0]], b_eq=[0.0]),
        ProductOfBalls((2, 2), 1.0),
        Simplex(2),
        SpectralBalls((2, 2, 2), [1.0, 0.5]),
    ]


def _domains() -> None:
    """Projections of points inside, outside and far away, and the other methods of sets."""
    for domain in (*_sets(), HalfSpace([1.0, 1.0], 0.5)):
        for size in (0.0, 3.0, 1e200):
            point = domain.center + size * _numbers(*domain.shape)
            with np.errstate(over="ignore"):
                domain.contains(domain.project(point))
                domain._project_flat(_frozen(point).ravel())  # as the centre, which is read-only
        domain.directions(_numbers(*domain.shape))
        if not isinstance(domain, Custom | HalfSpace):
            _ = domain.interior
    for domain in (Ball(2), Box(-1.0, 1.0, shape=2)):
        tw.problems.gradual(domain, 3, rng=0)
        tw.problems.piecewise_stationary(domain, 4, 2, rng=0)


# ----------------------------------------------------------------------------------------------------- losses, learners


def _losses() -> None:
    """Every loss in Python and in the loop, of vectors and of matrices."""
    for name, domain in itertools.product(KINDS, (Simplex(2), Ball((2, 2)))):
        problem = _problem(domain, name)
        f: Any = problem[0]
        x = domain.project(domain.center + 0.1)
        f.value(x), f.gradient(x), f.gradient_bound(domain), f.loss_bound(domain)
        problem.losses_of(x), problem.gradient_bound(domain), problem.loss_bound(domain)
        tw.play(tw.SOGD(domain), problem)


def _play(learner: Any) -> None:
    """All ways to play a round, and to stop and go on."""
    problem = _problem(learner.domain)
    tw.play(learner, problem, decisions=True)
    learner.step(problem[0])
    if learner.one_gradient:
        _update(learner, problem[0])
    learner.restore(learner.state())
    tw.play(learner.clone(), problem, rounds=2)
    learner.reset()


def _update(learner: Any, f: Any) -> None:
    """Rounds by gradients: one that is given at once, one after the decision was read."""
    for _ in range(2):
        learner.update(f.gradient(np.zeros(learner.domain.shape)), 1.0)
        if isinstance(learner, DelayedFeedback):
            learner.advance()
        _ = learner.decision


def _learners() -> None:
    """Every learner that has a card, and its variants, on a set of each kind; and hints, which no card has."""
    for recipe, domain in itertools.product(recipes().values(), (*_grounds(), ProductOfBalls(2, 1.0))):
        if not (recipe.kind.values_only and isinstance(domain, Custom)):
            _play(recipe.build(Setting(domain, HORIZON, LARGE, LARGE, smoothness=1.0, nonnegative=True)))
    for domain in _grounds():
        learner = tw.EfficientOptimistic(domain, HORIZON, LARGE, start=domain.project(domain.center))
        learner.hint(_numbers(*domain.shape))
        _play(learner)


def _machines() -> None:
    """Every expert by itself and on intervals under every meta-learner; with one projection a round around each."""
    for domain in _grounds():
        for gradients, judge in (("shared", "linear"), ("own", "value")):
            for expert in _experts(domain, tuple(METAS)):
                _play(tw.Alone(expert, gradients=gradients))
            for expert, meta in itertools.product(_experts(domain, IN_COVERS, judge), METAS.values()):
                _play(Cover(domain, expert, meta=meta(), gradients=gradients))
        for expert in _experts(domain, tuple(METAS)):
            _reduce(tw.Alone(expert))
        for expert, meta in itertools.product(_experts(domain, IN_COVERS), METAS.values()):
            _reduce(Cover(domain, expert, meta=meta()))
    _reduce(tw.SwordPP(Box(-1.0, 1.0, shape=2), HORIZON, LARGE, 1.0))
    _reduce(tw.OneProjection(Ball(2), tw.SOGD))
    _reduce(tw.EfficientDynamic(Ball(2), HORIZON, LARGE))
    _reduce(tw.EfficientCBCE(Ball(2), gradient_bound=LARGE))


def _experts(domain: Domain, metas: tuple[str, ...], judge: str = "linear") -> Iterator[Expert]:
    """Every expert that lives on a domain, with pools under these meta-learners."""
    singles: list[Callable[[float], Expert]] = [lambda step: Descent(domain, step, step_rule="scale_free")]
    if isinstance(domain, Ball):
        singles.append(lambda scale: AdaGradDescent(domain, scale=scale))
    for single in singles:
        yield single(0.1)
        for meta in metas:
            yield Pool([single(0.1), single(1.0)], meta=METAS[meta](), judge=judge)


def _reduce(machine: Any) -> None:
    X = Box(-0.5, 0.5, shape=2)
    problem = _problem(X)
    learner = tw.OneProjection(X, lambda _: machine, surrogate=machine.domain)
    tw.play(learner, problem)
    learner.step(problem[0])
    _update(learner, problem[0])


def _delayed() -> None:
    """Delayed feedback: copies that take turns, in order and in any order."""
    for domain in _grounds():
        problem = _problem(domain)
        tw.play(tw.Delayed(domain, tw.SOGD, delay=1), problem, decisions=True)
        tw.play(tw.Delayed(domain, tw.SOGD, max_delay=2), problem, delay=[1, 0, -1, 2])
        _update(tw.Delayed(domain, tw.SOGD, delay=0), problem[0])


# ---------------------------------------------------------------------------------------------------------- comparators


def _regret() -> None:
    """Comparators of every loss, and on sets of each kind, measures, witnesses."""
    for loss, domain in itertools.product(KINDS, (Ball(2, center=[2.0, 2.0]), Simplex(2))):
        _compare(loss, domain)
    for domain in _sets():
        if domain.onto is not PYTHON:
            _compare("squared", copy.deepcopy(domain))  # arrays that were read-only are writable in a copy


def _compare(loss: str, domain: Domain) -> None:
    problem = _problem(domain, loss)
    regret.best_fixed(problem, domain, tol=1e-2)
    regret.best_per_round(problem, domain, tol=1e-2)
    regret.best_path(problem, domain, price=0.1, tol=0.5)
    run = tw.play(tw.SOGD(domain), problem, decisions=True)
    regret.static(run, problem, domain, tol=1e-2)
    regret.adaptive(run, problem, domain, tol=1e-2)
    if problem.smoothness is not None:
        regret.gradient_variation(problem, domain)
    regret.witnesses(run, problem, domain)


# ----------------------------------------------------------------------------------------------- control, subspaces


def _controllers() -> None:
    """Controllers with measured and with given scales, and a policy by hand."""
    system, cost = control.double_integrator(), control.QuadraticCost([1.0, 1.0], [1.0])
    noise = 0.1 * _numbers(3, 2)
    made: list[Any] = [control.TrackingControl(system)]
    for kind in (control.GPC, control.ScreamControl, control.EfficientControl):
        for constants in (None, control.Constants(np.ones(1), LARGE, 1.0)):
            made.append(kind(system, HORIZON, memory=1, constants=constants))
    for controller in made:
        for _ in range(2):
            control.simulate(controller, system, cost, noise)
            controller.restore(controller.state())
            controller = copy.deepcopy(controller)  # arrays that were read-only are writable in a copy


def _subspaces() -> None:
    """Online PCA, of vectors and of matrices."""
    options: dict[Any, dict[str, Any]] = {
        pca.AdaptivePCA: {},
        pca.DescentPCA: {"horizon": HORIZON},
        pca.EfficientPCA: {},
        pca.OjaPCA: {"step_size": 0.5},
        pca.YuanLamperskiPCA: {"horizon": HORIZON},
    }
    for kind, given in options.items():
        learner, row = kind(dim=3, rank=1, rng=0, **given), _numbers(3) / 2
        for instance in (row, _frozen(row), row, np.outer(row, row)):
            learner.update(instance)
        learner.partial_fit(_numbers(3, 3) / 2)
        _ = learner.components, learner.projection, learner.leading, learner.decision
        learner.transform(row)
        learner.restore(learner.state())
        learner.reset()
    systematic([0.8, 0.6, 0.4, 0.2], 0.7)


# ----------------------------------------------------------------------------------------------------------- estimators


def _forecasts() -> None:
    """Forecasts combined, intervals, linear models of streams, subspaces, scaling."""
    _combine()
    said = np.abs(_numbers(ROUNDS, 3)) + 0.1
    for kind, loss in itertools.product(("expert", "convex", "linear", "shifting"), ("square", "absolute")):
        estimators.oracle(said, np.full(ROUNDS, 0.5), kind, loss=loss)
    for asymmetric, horizon in itertools.product((False, True), (1, 2)):
        _cover(asymmetric, horizon)
    for columns, loss in itertools.product(((), ("a", "b")), ("squared", "absolute")):
        _forecast(columns, loss)
    for loss in ("squared_error", "huber", "absolute_error", "quantile", "log_loss", "hinge"):
        _fit(loss)
    for loss, domain in itertools.product(PROBLEMS, _grounds()):
        model = ConstrainedModel(ConstrainedLayout(domain, loss))
        for weights in (np.ones(ROUNDS), np.full(ROUNDS, 0.5)):
            model.learn(_numbers(ROUNDS, 2), np.where(_numbers(ROUNDS) > 0, 1.0, -1.0), weights)
        model.predict(_numbers(ROUNDS, 2))
    for center in (True, False):
        subspace = SubspaceModel(read_layout(3, 2, (1.0, 4.0, np.inf), center))
        subspace.learn(_numbers(6, 3))
        subspace.learn(_numbers(1, 3))
        subspace.put_in_order()
        scale = Standardiser(2, center=center)
        scale.run(_numbers(3, 2))
        scale.update(_numbers(2))
        scale.transform(_numbers(3, 2))


def _combine() -> None:
    X, y = np.abs(_numbers(ROUNDS, 3)) / 2 + 0.1, np.ones(ROUNDS)
    awake = np.ones(X.shape)
    awake[1, 0] = 0.0
    options: list[dict[str, Any]] = [{"rule": "BOA"}, {"rule": "Tracker"}, {"rule": "covariance"}]
    for loss in ("square", "absolute", "percentage", "log", "pinball"):
        options += [{"loss": loss}, {"loss": loss, "gradient": False, "horizon": 2}]
    for given in options:
        aggregator = estimators.Aggregator(**given)
        aggregator.run(X, y, awake).loss()
        for row in X:
            aggregator.predict(row)
            aggregator.update(1.0)
        aggregator.predict(list(X[0]), awake=list(awake[1]))
        aggregator.update(1.0)
        _ = aggregator.weights_
        aggregator.restore(aggregator.state())
    estimators.Aggregator().run(_numbers(2, 60), np.zeros(2))  # of many
    estimators.Mixture(y, X).predict(X)


def _cover(asymmetric: bool, horizon: int) -> None:
    said, y = _numbers(ROUNDS), _numbers(ROUNDS) + 0.1
    tracker = estimators.ConformalTracker(windows=(2, 3), halflives=(1, 2), asymmetric=asymmetric, horizon=horizon)
    tracker.run(said, y)
    if not asymmetric:
        tracker.run_scores(np.abs(y))
        tracker.threshold()
        tracker.update(0.5)
    for value in y:
        tracker.predict_interval(0.0)
        tracker.update(value)
    _ = tracker.weights
    tracker.restore(tracker.state())
    model = estimators.ConformalForecaster(lambda x: 0.0, tracker)
    model.predict_interval([1.0])
    model.update(0.0)


def _forecast(columns: tuple[str, ...], loss: str) -> None:
    y, rows = _numbers(ROUNDS), _numbers(ROUNDS, len(columns)) if columns else None
    y[1] = np.nan
    for season, levels in itertools.product((None, 2, "auto"), ((), (0.8,))):
        forecaster = estimators.Forecaster(columns, lags=2, season=season, horizon=2, levels=levels, loss=loss)
        forecaster.run(y, rows)
        forecaster.forecast(None if rows is None else rows[:2])
        forecaster.predict(None if rows is None else rows[0])
        forecaster.update(0.5)
        _ = forecaster.weights
        forecaster.restore(forecaster.state())


def _fit(loss: str) -> None:
    X, y = _numbers(ROUNDS, 2), np.where(_numbers(ROUNDS) > 0, 1.0, -1.0)
    for guests, intercept in itertools.product((True, False), repeat=2):
        model = FreeModel(LinearLayout(2, loss, guests=guests, intercept=intercept, open=not intercept))
        for rows, labels in itertools.product((X, _frozen(X)), (y, _frozen(y))):
            model.learn(rows, labels, np.ones(ROUNDS), np.array([2, 1]), used=2)
            model.predict(rows)
        model.learn(X[:1], y[:1], np.ones(1))
        model.coefficients()
        model.move(4, guests=guests)
        model.predict(X, np.array([1, 2]))


def _fleets() -> None:
    """Fleets: the loop over streams, and the steps of every family."""
    for columns in ((), ("a", "b")):
        fleet = tw.Fleet(estimators.Forecaster(columns, lags=2, season=None, levels=(0.8,)))
        _play_fleet(fleet, _numbers(3, 2) if columns else None)
        fleet.forecast(KEYS[:2], _numbers(2, 1, 2) if columns else None)
        del fleet["a"]
        tw.Fleet.from_bytes(fleet.template, fleet.to_bytes())
    for asymmetric in (False, True):
        tracker = estimators.ConformalTracker(windows=(2, 3), halflives=(1, 2), asymmetric=asymmetric)
        _play_fleet(tw.Fleet(tracker), _numbers(3, 1))
    for loss in ("square", "log"):
        _play_fleet(tw.Fleet(estimators.Aggregator(loss), columns=["a", "b", "c"]), np.abs(_numbers(3, 3)) / 2 + 0.1)
    fleet, many = tw.Fleet(tw.OGD(Ball(2), horizon=HORIZON, gradient_bound=LARGE)), np.arange(600)
    fleet.update(many, _numbers(600, 2))  # the table of keys has to grow
    fleet.decide(many)
    shard_of(many, 2)
    _fleet_models()


def _play_fleet(fleet: tw.Fleet, X: Floats | None) -> None:
    fleet.run(KEYS, np.ones(3), X)
    fleet.predict(KEYS[:2], None if X is None else X[:2])
    fleet.update(KEYS[:2], np.ones(2))


def _fleet_models() -> None:
    """The step of linear models, as `thalweg.fleet.families.regressors` has it: that needs scikit-learn."""
    memory = FreeModel(LinearLayout(2)).memory
    seat = StreamSeat(model_tree(memory, 2), memory.block)
    batch = ExampleRows(np.full(1, -1), _numbers(1, 2), np.ones(1), np.ones(1), True, np.zeros((1, 1)))
    shelf, zero = Shelf(seat.width), np.zeros(1, dtype=np.int64)
    shelf.write(shelf.take(1), memory.block.memory)
    chains = Chains(1, batch.following, zero, zero)
    play([ClassTurn(seat, shelf, 0, 1)], BoundBatch(learn_rows, batch, chains), chains, zero)
