"""Specimens: small runs that together ask for every kernel of the package, with arguments of every type it is given.

The build plays them in plain Python, records which kernel was called with arguments of which types, and compiles these
kernels. So a specimen need not do anything sensible, but it has to ask: for both sides of a choice that is made
while compiling (an array or None, the class of a part), for arrays that are read-only where there are such, for `play`
as well as `step` and `update`. Sizes and values do not matter. Nothing here needs an extra: estimators that follow the
rules of another library are there as the engines behind them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from functools import partial
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
from thalweg.fleet.kernels import Where
from thalweg.fleet.keys import shard_of
from thalweg.fleet.seats import BoundBatch, StreamSeat
from thalweg.learners.cover import Cover
from thalweg.learners.delayed_feedback import DelayedFeedback
from thalweg.losses import KINDS
from thalweg.metas import AdaNormalHedge, AdaptMLProd, CoinBetting, Hedge, LeadingHistory, Meta, Prod
from thalweg.parts.linear import LinearLayout
from thalweg.pca.sampling import systematic
from thalweg.problems import LinearModel
from thalweg.scaling import Standardiser

__all__ = ["specimens"]

Specimen = tuple[str, Callable[[], object]]
Make = Callable[[Domain], Any]

ROUNDS, HORIZON = 4, 20  # rounds of a problem, and those that a learner is tuned for
LARGE = 100.0  # a bound that holds for all gradients and losses here

METAS: dict[str, Callable[[], Meta]] = {
    "Hedge": lambda: Hedge(rate=0.1),
    "AdaptMLProd": lambda: AdaptMLProd(LARGE),
    "AdaNormalHedge": lambda: AdaNormalHedge(LARGE),
    "CoinBetting": lambda: CoinBetting(LARGE),
    "LeadingHistory": lambda: LeadingHistory(0.1, LARGE),
    "Prod": lambda: Prod(LARGE),
}
IN_COVERS = ("Hedge",)  # meta-learners of pools on intervals: each one more is another 54 machines


def specimens() -> Iterator[Specimen]:
    """Yield every specimen: its name and the function that plays it."""
    for part in (
        _domains,
        _losses,
        _learners,
        _alone,
        _covers,
        _reductions,
        _delayed,
        _regret,
        _controllers,
        _subspaces,
        _forecasts,
        _fleets,
    ):
        yield from part()


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


def _setting(domain: Domain) -> Setting:
    """The constants of `_problem` that a learner is given."""
    return Setting(domain, HORIZON, LARGE, LARGE, smoothness=1.0, nonnegative=True)


def _clip(y: Floats) -> Floats:
    """The projection onto the unit box, in Python."""
    return np.clip(y, -1.0, 1.0)


def _by_hand() -> Custom:
    """A set that only Python can project onto."""
    return Custom(_clip, 2, 0.0, math.sqrt(2))


def _grounds() -> dict[str, Domain]:
    """A set of each kind that machines distinguish: a ball, a compiled projection, one in Python."""
    return {"Ball": Ball(2), "Box": Box(-1.0, 1.0, shape=2), "Custom": _by_hand()}


def _sets() -> dict[str, Domain]:
    """A domain of every class, and with every kind of affine hull."""
    square = np.vstack([np.eye(2), -np.eye(2)]), np.ones(4)
    return {
        **_grounds(),
        "Ball of matrices": Ball((2, 2), radius=2.0, center=np.full((2, 2), 0.5)),
        "Box with a fixed entry": Box([0.0, 1.0], [1.0, 1.0]),
        "Custom in a flat": Custom(Simplex(2).project, 2, 0.5, 1.0, normals=[[1.0, 1.0]]),
        "Ellipsoid": Ellipsoid([1.0, 4.0], bound=1.0),
        "Ellipsoid, rotated": Ellipsoid([[2.0, 1.0], [1.0, 2.0]], bound=1.0),
        "Fantope": Fantope(3, 1),
        "Intersection": Intersection(Ball(2), HalfSpace([1.0, 1.0], 0.5)),
        "Intersection in a flat": Intersection(Simplex(2), Ball(2)),
        "L1Ball": L1Ball(2),
        "Polytope": Polytope(*square),
        "Polytope in a flat": Polytope(*square, A_eq=[[1.0, 1.0]], b_eq=[0.0]),
        "ProductOfBalls": ProductOfBalls((2, 2), 1.0),
        "Simplex": Simplex(2),
        "SpectralBalls": SpectralBalls((2, 2, 2), [1.0, 0.5]),
    }


def _domains() -> Iterator[Specimen]:
    """Projections of points inside, outside and far away, and the other methods of sets."""
    for name, domain in {**_sets(), "HalfSpace": HalfSpace([1.0, 1.0], 0.5)}.items():
        yield f"domain {name}", partial(_project, domain)
    for name in ("Ball", "Box"):
        yield f"walk on {name}", partial(tw.problems.gradual, _grounds()[name], 3, rng=0)
        yield f"jumps on {name}", partial(tw.problems.piecewise_stationary, _grounds()[name], 4, 2, rng=0)


def _project(domain: Domain) -> None:
    for size in (0.0, 3.0, 1e200):
        point = domain.center + size * _numbers(*domain.shape)
        with np.errstate(over="ignore"):
            domain.contains(domain.project(point))
            domain._project_flat(_frozen(point).ravel())  # as the centre, which is read-only
    domain.directions(_numbers(*domain.shape))
    if not isinstance(domain, Custom | HalfSpace):
        _ = domain.interior


# ----------------------------------------------------------------------------------------------------- losses, learners


def _losses() -> Iterator[Specimen]:
    """Every loss in Python and in the loop, of vectors and of matrices."""
    for name in KINDS:
        yield f"loss {name}", partial(_play_loss, name)


def _play_loss(name: str) -> None:
    for domain in (Simplex(2), Ball((2, 2))):
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


def _learners() -> Iterator[Specimen]:
    """Every learner that has a card, and its variants, on a set of each kind."""
    for name, recipe in recipes().items():
        for ground, domain in {**_grounds(), "Simplex": Simplex(2), "ProductOfBalls": ProductOfBalls(2, 1.0)}.items():
            if not (recipe.kind.values_only and ground == "Custom"):
                yield f"{name} on {ground}", partial(_play_new, partial(recipe.build, _setting(domain)))
    for name, make in _options().items():
        for ground, domain in {**_grounds(), "Simplex": Simplex(2)}.items():
            yield f"{name} on {ground}", partial(_play_new, partial(make, domain))


def _options() -> dict[str, Make]:
    """Options with arrays that no card has."""
    return {
        "EfficientDynamic, start": lambda X: tw.EfficientDynamic(X, HORIZON, LARGE, start=X.project(X.center)),
        "EfficientOptimistic, hints": _hinted,
    }


def _hinted(X: Domain) -> Any:
    learner = tw.EfficientOptimistic(X, HORIZON, LARGE, start=X.project(X.center))
    learner.hint(_numbers(*X.shape))
    return learner


# --------------------------------------------------------------------------------------------- machines of one's own


def _experts(domain: Domain, metas: tuple[str, ...], judge: str = "linear") -> dict[str, Expert]:
    """Every expert that lives on a domain, with pools under these meta-learners."""
    singles: dict[str, Callable[[float], Expert]] = {"Descent": partial(_descent, domain)}
    if isinstance(domain, Ball):
        singles["AdaGradDescent"] = lambda scale: AdaGradDescent(domain, scale=scale)
    found = {name: single(0.1) for name, single in singles.items()}
    for name, single in singles.items():
        for meta in metas:
            found[f"{name}s under {meta}"] = Pool([single(0.1), single(1.0)], meta=METAS[meta](), judge=judge)
    return found


def _descent(domain: Domain, step: float) -> Descent:
    return Descent(domain, step, step_rule="scale_free")


def _alone() -> Iterator[Specimen]:
    """Every expert by itself, with one gradient for all members and with one for each."""
    for ground, domain in _grounds().items():
        for name, expert in _experts(domain, tuple(METAS)).items():
            for gradients in ("shared", "own"):
                learner = partial(tw.Alone, expert, gradients=gradients)
                yield f"{name}, {gradients}, on {ground}", partial(_play_new, learner)


def _covers() -> Iterator[Specimen]:
    """Every expert on intervals under every meta-learner."""
    for ground, domain in _grounds().items():
        for gradients, judge in (("shared", "linear"), ("own", "value")):
            for name, expert in _experts(domain, IN_COVERS, judge).items():
                for meta, make in METAS.items():
                    cover = partial(Cover, domain, expert, meta=make(), gradients=gradients)
                    yield f"{meta} over {name}, {gradients}, on {ground}", partial(_play_new, cover)


def _play_new(make: Callable[[], Any]) -> None:
    _play(make())


def _reductions() -> Iterator[Specimen]:
    """One projection a round around every machine that takes one gradient, on a ball and on another set."""
    X = Box(-0.5, 0.5, shape=2)
    for ground, Y in _grounds().items():
        for name, make in _one_gradient(isinstance(Y, Ball)).items():
            yield f"OneProjection, {name} on {ground}", partial(_reduce, X, make, Y)
    twice: dict[str, Make] = {
        "SOGD": lambda Y: tw.OneProjection(Y, tw.SOGD),
        "EfficientDynamic": lambda Y: tw.EfficientDynamic(Y, HORIZON, LARGE),
        "EfficientCBCE": lambda Y: tw.EfficientCBCE(Y, gradient_bound=LARGE),
    }
    for name, make in twice.items():
        yield f"OneProjection of the reduced {name}", partial(_reduce, X, make, Ball(2))


def _reduce(X: Domain, make: Make, surrogate: Domain | None) -> None:
    problem = _problem(X)
    learner = tw.OneProjection(X, make, surrogate=surrogate)
    tw.play(learner, problem)
    learner.step(problem[0])
    _update(learner, problem[0])


def _one_gradient(ball: bool) -> dict[str, Make]:
    """Every machine that takes one gradient a round, as a function of its set."""
    found: dict[str, Make] = {
        "levels": lambda Y: tw.CutkoskyAdaptive(Y, HORIZON, LARGE),
        "SwordPP": lambda Y: tw.SwordPP(Y, HORIZON, LARGE, 1.0),
    }
    example = Ball(2) if ball else Box(-1.0, 1.0, shape=2)
    for name in _experts(example, tuple(METAS)):
        found[name] = lambda Y, name=name: tw.Alone(_experts(Y, tuple(METAS))[name])  # type: ignore[misc]
    for name in _experts(example, IN_COVERS):
        for meta in METAS:
            found[f"{meta} over {name}"] = partial(_cover_of, name, meta)
    return found


def _cover_of(name: str, meta: str, domain: Domain) -> Cover:
    return Cover(domain, _experts(domain, IN_COVERS)[name], meta=METAS[meta]())


def _delayed() -> Iterator[Specimen]:
    """Delayed feedback: copies that take turns, in order and in any order."""
    for ground, domain in _grounds().items():
        yield f"Delayed on {ground}", partial(_delay, domain)


def _delay(domain: Domain) -> None:
    problem = _problem(domain)
    tw.play(tw.Delayed(domain, tw.SOGD, delay=1), problem, decisions=True)
    tw.play(tw.Delayed(domain, tw.SOGD, max_delay=2), problem, delay=[1, 0, -1, 2])
    _update(tw.Delayed(domain, tw.SOGD, delay=0), problem[0])


# ---------------------------------------------------------------------------------------------------------- comparators


def _regret() -> Iterator[Specimen]:
    """Comparators of every loss on sets of each kind, measures, witnesses."""
    for loss in KINDS:
        for where in (Ball(2, center=[2.0, 2.0]), Simplex(2)):
            yield f"comparators, {loss} on {where}", partial(_compare, loss, where)
    for name, domain in _sets().items():
        if domain.onto is not PYTHON:
            yield f"comparators on {name}", partial(_compare, "squared", domain)
            yield f"comparators on {name}, copied", partial(_compare, "squared", copy.deepcopy(domain))


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


def _controllers() -> Iterator[Specimen]:
    """Controllers with measured and with given scales, and a policy by hand."""
    for kind in (control.GPC, control.ScreamControl, control.EfficientControl):
        for constants in (None, control.Constants(np.ones(1), LARGE, 1.0)):
            yield (
                f"{kind.__name__}, {'measured' if constants is None else 'given'}",
                partial(_run_controller, kind, constants),
            )
    yield "committee", _committee


def _run_controller(kind: Any, constants: control.Constants | None) -> None:
    system = control.double_integrator()
    controller = kind(system, HORIZON, memory=1, constants=constants)
    cost = control.QuadraticCost([1.0, 1.0], [1.0])
    for _ in range(2):
        control.simulate(controller, system, cost, 0.1 * _numbers(2, 2))
        controller.restore(controller.state())
        controller = copy.deepcopy(controller)  # arrays that were read-only are writable in a copy
        control.simulate(controller, system, cost, 0.1 * _numbers(2, 2))


def _committee() -> None:
    system, cost = control.double_integrator(), control.QuadraticCost([1.0, 1.0], [1.0])
    controller = control.TrackingControl(system)
    control.simulate(controller, system, cost, 0.1 * _numbers(3, 2))
    control.simulate(copy.deepcopy(controller), system, cost, 0.1 * _numbers(3, 2))


def _subspaces() -> Iterator[Specimen]:
    """Online PCA, of vectors and of matrices."""
    options: dict[Any, dict[str, Any]] = {
        pca.AdaptivePCA: {},
        pca.DescentPCA: {"horizon": HORIZON},
        pca.EfficientPCA: {},
        pca.OjaPCA: {"step_size": 0.5},
        pca.YuanLamperskiPCA: {"horizon": HORIZON},
    }
    for kind, given in options.items():
        yield kind.__name__, partial(_reduce_rank, partial(kind, dim=3, rank=1, rng=0, **given))
    yield "sampling", partial(systematic, [0.8, 0.6, 0.4, 0.2], 0.7)


def _reduce_rank(make: Callable[[], Any]) -> None:
    learner, row = make(), _numbers(3) / 2
    for instance in (row, _frozen(row), row, np.outer(row, row)):
        learner.update(instance)
    learner.partial_fit(_numbers(3, 3) / 2)
    _ = learner.components, learner.projection, learner.leading, learner.decision
    learner.transform(row)
    learner.restore(learner.state())
    learner.reset()


# ----------------------------------------------------------------------------------------------------------- estimators


def _forecasts() -> Iterator[Specimen]:
    """Forecasts combined, intervals, linear models of streams, subspaces, scaling."""
    for loss in ("square", "absolute", "percentage", "log", "pinball"):
        for gradient in (True, False):
            yield f"Aggregator, {loss}, {gradient}", partial(_combine, loss, gradient)
    yield "Aggregator of many", _combine_many
    yield "oracles", _look_back
    for asymmetric in (False, True):
        for horizon in (1, 2):
            yield f"ConformalTracker, {asymmetric}, {horizon}", partial(_cover, asymmetric, horizon)
    for columns in ((), ("a", "b")):
        for loss in ("squared", "absolute"):
            yield f"Forecaster of {len(columns)} columns, {loss}", partial(_forecast, columns, loss)
    for loss in ("squared_error", "huber", "absolute_error", "quantile", "log_loss", "hinge"):
        yield f"linear model, {loss}", partial(_fit, loss)
    for loss in PROBLEMS:
        for ground, domain in {**_grounds(), "Simplex": Simplex(2)}.items():
            yield f"linear model, {loss} on {ground}", partial(_fit_within, loss, domain)
    for center in (True, False):
        yield f"StreamingPCA, {center}", partial(_follow, center)
        yield f"Standardiser, {center}", partial(_scale, center)


def _combine(loss: str, gradient: bool) -> None:
    X, y = np.abs(_numbers(ROUNDS, 3)) / 2 + 0.1, np.ones(ROUNDS)
    awake = np.ones(X.shape)
    awake[1, 0] = 0.0
    for horizon in (1, 2):
        aggregator = estimators.Aggregator(loss, gradient=gradient, horizon=horizon)
        aggregator.run(X, y, awake).loss()
        for row in X:
            aggregator.predict(row)
            aggregator.update(1.0)
        aggregator.predict(list(X[0]), awake=list(awake[1]))
        aggregator.update(1.0)
        _ = aggregator.weights_
        aggregator.restore(aggregator.state())


class _Guest:
    """A rule of the user's own: equal weights."""

    def weights(self, x: Floats, awake: Floats) -> Floats:
        return awake

    def update(self, x: Floats, awake: Floats, y: float) -> None:
        pass


def _combine_many() -> None:
    X, y = _numbers(2, 60), np.zeros(2)
    estimators.Aggregator().run(X, y)
    few = X[:, :3].copy()
    for options in ({"rule": "BOA"}, {"rule": "Tracker"}, {"rule": "covariance"}, {"guests": [_Guest()]}):
        aggregator = estimators.Aggregator(**options)
        aggregator.run(few, y)
        aggregator.predict(few[0])
        _ = aggregator.weights_
        aggregator.update(0.0)
    estimators.Mixture(y, few).predict(few)


def _look_back() -> None:
    X, y = np.abs(_numbers(ROUNDS, 3)) + 0.1, np.full(ROUNDS, 0.5)
    for model in ("expert", "convex", "linear", "shifting"):
        for loss in ("square", "absolute"):
            estimators.oracle(X, y, model, loss=loss)


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
    for season in (None, 2, "auto"):
        for levels in ((), (0.8,)):
            forecaster = estimators.Forecaster(columns, lags=2, season=season, horizon=2, levels=levels, loss=loss)
            y, rows = _numbers(ROUNDS), _numbers(ROUNDS, len(columns)) if columns else None
            y[1] = np.nan
            forecaster.run(y, rows)
            forecaster.forecast(None if rows is None else rows[:2])
            forecaster.predict(None if rows is None else rows[0])
            forecaster.update(0.5)
            _ = forecaster.weights
            forecaster.restore(forecaster.state())


def _fit(loss: str) -> None:
    X, y = _numbers(ROUNDS, 2), np.where(_numbers(ROUNDS) > 0, 1.0, -1.0)
    for guests in (True, False):
        for intercept in (True, False):
            model = FreeModel(LinearLayout(2, loss, guests=guests, intercept=intercept, open=not intercept))
            for rows, labels in ((X, y), (_frozen(X), y), (X, _frozen(y)), (_frozen(X), _frozen(y))):
                model.learn(rows, labels, np.ones(ROUNDS), np.array([2, 1]), used=2)
                model.predict(rows)
            model.learn(X[:1], y[:1], np.ones(1))
            model.coefficients()
            model.move(4, guests=guests)
            model.predict(X, np.array([1, 2]))


def _fit_within(loss: str, domain: Domain) -> None:
    X, y = _numbers(ROUNDS, 2), np.where(_numbers(ROUNDS) > 0, 1.0, -1.0)
    model = ConstrainedModel(ConstrainedLayout(domain, loss))
    model.learn(X, y, np.ones(ROUNDS))
    model.learn(X, y, np.full(ROUNDS, 0.5))
    model.predict(X)


def _follow(center: bool) -> None:
    model = SubspaceModel(read_layout(3, 2, (1.0, 4.0, np.inf), center))
    model.learn(_numbers(6, 3))
    model.learn(_numbers(1, 3))
    model.put_in_order()


def _scale(center: bool) -> None:
    scale = Standardiser(2, center=center)
    scale.run(_numbers(3, 2))
    scale.update(_numbers(2))
    scale.transform(_numbers(3, 2))


def _fleets() -> Iterator[Specimen]:
    """Fleets: the loop over streams, and the steps of every family."""
    for columns in ((), ("a", "b")):
        yield f"Fleet of Forecaster, {len(columns)} columns", partial(_fleet_forecasts, columns)
    yield "Fleet of learners", _fleet_decisions
    for asymmetric in (False, True):
        yield f"Fleet of ConformalTracker, {asymmetric}", partial(_fleet_intervals, asymmetric)
    for loss in ("square", "log"):
        yield f"Fleet of Aggregator, {loss}", partial(_fleet_mixtures, loss)
    yield "Fleet of linear models", _fleet_models


def _fleet_forecasts(columns: tuple[str, ...]) -> None:
    fleet = tw.Fleet(estimators.Forecaster(columns, lags=2, season=None, levels=(0.8,)))
    keys, X = ["a", "b", "a", "b"], _numbers(4, 2) if columns else None
    fleet.run(keys, _numbers(4), X)
    fleet.predict(keys, X)
    fleet.update(keys[:2], _numbers(2))
    fleet.forecast(keys[:2], _numbers(2, 1, 2) if columns else None)
    del fleet["a"]
    tw.Fleet.from_bytes(fleet.template, fleet.to_bytes())


def _fleet_decisions() -> None:
    fleet = tw.Fleet(tw.OGD(Ball(2), horizon=HORIZON, gradient_bound=LARGE))
    many = np.arange(600)  # the table of keys has to grow
    fleet.update(many, _numbers(600, 2))
    fleet.decide(many)
    shard_of(many, 2)


def _fleet_intervals(asymmetric: bool) -> None:
    fleet = tw.Fleet(estimators.ConformalTracker(windows=(2, 3), halflives=(1, 2), asymmetric=asymmetric))
    fleet.run([1, 2, 1], _numbers(3), _numbers(3, 1))
    fleet.predict([1, 2], _numbers(2, 1))
    fleet.update([1, 2], _numbers(2))


def _fleet_mixtures(loss: str) -> None:
    fleet = tw.Fleet(estimators.Aggregator(loss), columns=["a", "b", "c"])
    X = np.abs(_numbers(3, 3)) / 2 + 0.1
    fleet.run([1, 2, 1], np.ones(3), X)
    fleet.predict([1, 2], X[:2])
    fleet.update([1, 2], np.ones(2))


def _fleet_models() -> None:
    """The step of linear models, as `thalweg.fleet.families.regressors` has it: that needs scikit-learn."""
    memory = FreeModel(LinearLayout(2)).memory
    seat = StreamSeat(model_tree(memory, 2), memory.block)
    batch = ExampleRows(np.full(1, -1), _numbers(1, 2), np.ones(1), np.ones(1), True, np.zeros((1, 1)))
    zero, words = np.zeros(1, dtype=np.int64), memory.block.memory[None].copy()
    where = Where(zero, np.array([words.ctypes.data], dtype=np.int64), 0)
    chains = Chains(1, batch.following, zero, zero)
    seat.play(BoundBatch(learn_rows, batch, chains), chains, where, words)
