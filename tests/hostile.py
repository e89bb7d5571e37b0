"""Everything public, called with what nobody should pass.

`targets` walks over the public modules: every function, every constructor, and every method of an object that each
class makes from valid arguments. A new one is covered as soon as it is exported; if one of its arguments has a name
that `VALID` does not know, the walk says so. `attempt` replaces one or two arguments and tells how the call ended.
"""

import contextlib
import dataclasses
import importlib
import inspect
import math
import os
import pathlib
import resource
import signal
import tempfile
import types
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import thalweg as tw
from thalweg import control, errors, pca

PUBLIC = (
    *("thalweg", "thalweg.domains", "thalweg.losses", "thalweg.problems", "thalweg.experts", "thalweg.metas"),
    *("thalweg.control", "thalweg.pca", "thalweg.pca.sampling", "thalweg.regret", "thalweg.testing", "thalweg.cards"),
    *("thalweg.control.plots", "thalweg.regret.plots", "thalweg.theorems.bounds", "thalweg.lab"),
)
# What those who write a part of their own define, and the package calls with what it has checked; and what functions
# return, which nobody builds by hand.
HOOKS = {
    "assemble",
    "look",
    "check",
    "table",
    "trusted",
    "check_data",
    "check_parameter",
    "read_parameter",
    "curvature_from",
}
FILES = {"load", "save", "extended", "Fleet"}  # tests/test_files.py, tests/fleet/test_hostile.py
RECORDS = {
    *("Run", "Queries", "Simulation", "StrongStability", "Subspace", "SubspaceRegret", "Assumption", "Certificate"),
    *("CertifiedInterval", "Comparator", "Regret", "WorstInterval", "CoverRecord", "Card", "Variant", "Recipe"),
    *("Between", "CoverExpert", "IntervalRegret", "Source", "Stream", "Table", "Witness", "Witnesses"),
}

# ------------------------------------------------------------------------------------------------ what may be passed

BALL = tw.domains.Ball(2, radius=2.0)
SYSTEM = control.double_integrator()
FEATURES, LABELS = np.array([[1.0, 0.5], [0.0, 1.0], [-1.0, 0.25]]), np.array([1.0, -1.0, 1.0])
PROBLEM = tw.problems.LinearRegression(FEATURES, LABELS, comparators=0.1 * FEATURES)
COST = control.QuadraticCost([1.0, 1.0], [1.0])
WIND = control.sinusoid(6, [0.0, 1.0], bound=0.1)
POLICY = control.DAC(SYSTEM, memory=2)
DRIFT = np.array([[0.1, 0.0, 0.2, 0.0], [0.0, 0.3, 0.0, 0.1], [0.2, 0.1, 0.0, 0.0], [0.1, 0.1, 0.1, 0.3]])


def _run():
    return tw.play(tw.SOGD(BALL), PROBLEM, decisions=True)


def _played():
    learner = tw.OGD(BALL, horizon=20, gradient_bound=9.0)
    tw.play(learner, PROBLEM)
    return learner


def _simulation():
    return control.simulate(control.LQR(SYSTEM), SYSTEM, COST, WIND)


def _file():
    path = pathlib.Path(tempfile.gettempdir()) / f"thalweg-hostile-{os.getuid()}.csv"
    path.write_text("a,b\n1.0,0.0\n2.0,1.0\n4.0,0.5\n")
    return path


# by name, or by the last two names of whose it is: "Simplex.dim", "bounds.hedge.Q"
VALID: dict[str, Any] = {
    # learners
    "domain": lambda: BALL,
    "horizon": lambda: 20,
    "gradient_bound": lambda: 4.0,
    "smoothness": lambda: 2.0,
    "loss_bound": lambda: 8.0,
    "step_size": lambda: 0.1,
    "step_sizes": lambda: [0.1, 1.0],
    "switching_cost": lambda: 1.0,
    "meta_rate": lambda: 0.5,
    "meta_radius": lambda: 2.0,
    "delta": lambda: 0.5,
    "scale": lambda: 0.5,
    "epsilon": lambda: 1.0,
    "prior": lambda: [0.5, 0.5],
    "threshold": lambda: 3.0,
    "feedback_range": lambda: 5.0,
    "loss_floor": lambda: 0.0,
    "start": lambda: [0.1, 0.2],
    "EfficientBandit.loss_bound": lambda: 20.0,
    "EfficientBandit.points": lambda: 1,
    "exploration": lambda: 0.5,
    "interior": lambda: ([0.1, 0.2], 0.5),
    "values": lambda: 0.5,
    "surrogate": lambda: tw.domains.Ball(2, radius=3.0),
    "expert": lambda: tw.experts.Descent(BALL, 0.1),
    "meta": lambda: tw.metas.AdaptMLProd("observed"),
    "make_inner": lambda: tw.SOGD,
    "make_learner": lambda: tw.SOGD,
    "delay": lambda: 2,
    "max_delay": lambda: 2,
    "play.delay": lambda: None,
    "play.learner": lambda: tw.Delayed(BALL, tw.SOGD, max_delay=2),
    "round": lambda: 0,
    "members": lambda: [tw.experts.Descent(BALL, 0.1), tw.experts.Descent(BALL, 0.2)],
    "price": lambda: 0.5,
    "rate": lambda: 0.5,
    "radius": lambda: 2.0,
    "AdaGradDescent.regret_bound.squares": lambda: [1.0, 2.0],
    "check.members": lambda: 2,
    "weights.members": lambda: 2,
    "Hedge.rate": lambda: 0.5,
    "gradient": lambda: [0.5, -0.25],
    "loss": lambda: 0.5,
    "f": lambda: tw.losses.Squared([1.0, 0.0], 1.0),
    "saved": lambda of: of.state(),
    "level.k": lambda: 2,
    "path_length": lambda: 1.5,
    "rounds": lambda: 3,
    # domains
    "shape": lambda: 2,
    "center": lambda: [0.5, -0.5],
    "lower": lambda: [-1.0, -2.0],
    "upper": lambda: [1.0, 2.0],
    "project": lambda: lambda y: np.clip(y, -0.5, 0.5),
    "contains": lambda: None,
    "diameter": lambda: 2.0,
    "tolerance": lambda: 1e-6,
    "normals": lambda: None,
    "weights": lambda: [1.0, 2.0],
    "bound": lambda: 1.0,
    "dim": lambda: 4,
    "rank": lambda: 2,
    "normal": lambda: [1.0, 1.0],
    "offset": lambda: 0.5,
    "domains": lambda: [BALL, tw.domains.Box(-1.0, 1.0, shape=2)],
    "tol": lambda: 1e-6,
    "max_iterations": lambda: 100,
    "A": lambda: [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]],
    "b": lambda: [1.0, 1.0, 1.0],
    "A_eq": lambda: None,
    "b_eq": lambda: None,
    "radii": lambda: [1.0, 2.0],
    "sizes": lambda: [1, 1],
    "total": lambda: 1.0,
    "SpectralBalls.shape": lambda: (2, 2),
    "SpectralBalls.caps": lambda: 1.0,
    "point": lambda of: np.array(of.center) + 0.1,
    "v": lambda of: np.ones(of.shape),
    # losses and problems
    "features": lambda: [1.0, 2.0],
    "label": lambda: 1.0,
    "cost": lambda: [1.0, 2.0],
    "tau": lambda: 0.5,
    "x": lambda: np.array([0.1, 0.2]),
    "labels": lambda: LABELS,
    "comparators": lambda: 0.1 * FEATURES,
    "costs": lambda: FEATURES,
    "offsets": lambda: LABELS,
    "returns": lambda: np.abs(FEATURES) + 0.5,
    "decisions": lambda: 0.1 * FEATURES,
    "losses": lambda: [tw.losses.Squared([1.0, 0.0], 1.0)] * 2,
    "FromFunctions.value": lambda: lambda t, x: float(x @ x),
    "FromFunctions.gradient": lambda: lambda t, x: 2 * x,
    "losses_of.decisions": lambda: np.array([0.1, 0.2]),
    "stages": lambda: 2,
    "step": lambda: 0.1,
    "rng": lambda: 0,
    "feature_radius": lambda: 1.0,
    "noise": lambda: 0.1,
    "condition": lambda: 3.0,
    # regret, testing, cards
    "problem": lambda: PROBLEM,
    "learner": lambda: tw.SOGD(BALL),
    "certify.learner": _played,
    "certify.run": lambda: tw.play(tw.OGD(BALL, horizon=20, gradient_bound=9.0), PROBLEM),
    "record_cover.learner": lambda: tw.CBCE(BALL, gradient_bound=9.0),
    "run": _run,
    "lengths": lambda: [1, 2],
    "stride": lambda: 1,
    "best_fixed.start": lambda: 0,
    "stop": lambda: 2,
    "budget": lambda: 0.5,
    "steps": lambda: 10,
    "intervals": lambda: [(0, 2)],
    "Tracker.intervals": lambda: True,
    "every": lambda: 1,
    "runs": lambda: {"a": _run()},
    "measured": lambda: [tw.regret.interval_dynamic(_run(), PROBLEM, 0.1 * FEATURES, lengths=[1, 2])],
    "cover.record": lambda: tw.regret.plots.record_cover(tw.CBCE(BALL, gradient_bound=9.0), PROBLEM),
    "make": lambda: lambda: tw.SOGD(BALL),
    "points": lambda: 5,
    "check_loss.loss": lambda: tw.losses.Squared([1.0, 2.0], 1.0),
    "setting": lambda: tw.testing.STANDARD,
    # theorems
    **{name: (lambda: 4) for name in ("n", "t", "m", "N")},
    **{name: (lambda: 1.5) for name in ("R", "G", "P", "first", "Q", "size", "wealth", "F", "a", "c")},
    "bounds.small_loss.b": lambda: 1.5,
    "bounds.descent.steps": lambda: np.array([0.1, 0.2]),
    "bounds.optimistic.steps": lambda: np.array([0.1, 0.2]),
    "bounds.optimistic.distances": lambda: np.array([20.0, 10.0]),
    "bounds.optimistic.C": lambda: 3.0,
    "bounds.optimistic.E": lambda: 0.5,
    # control
    "system": lambda: SYSTEM,
    "plant": lambda: types.SimpleNamespace(A=SYSTEM.A, B=SYSTEM.B, dt=0.1),
    "gain": lambda: control.lqr_gain(SYSTEM),
    "memory": lambda: 2,
    "constants": lambda: control.Constants([1.0, 0.5], 3.0, 2.0),
    "disturbance_bound": lambda: 1.0,
    **{f"{name}.Q": (lambda: [1.0, 1.0]) for name in ("control", "LQR", "BangBang", "QuadraticCost")},
    **{f"{name}.Q": (lambda: [1.0, 1.0]) for name in ("closed_loop_norm", "h_infinity_gain", "lqr_gain")},
    **{f"{name}.R": (lambda: [1.0]) for name in ("LQR", "BangBang", "QuadraticCost")},
    **{f"{name}.R": (lambda: [1.0]) for name in ("closed_loop_norm", "h_infinity_gain", "lqr_gain")},
    "q": lambda: [1.0, 2.0],
    "r": lambda: [0.5],
    "u": lambda: np.array([1.0]),
    "width": lambda: 1.0,
    "direction": lambda: [0.0, 1.0],
    "caps": lambda: [1.0, 0.5],
    "margin": lambda: 8.0,
    "strength": lambda: 1.0,
    "growth": lambda: 2.0,
    "slack": lambda: 0.01,
    "period": lambda: 0.2,
    "phase": lambda: 0.5,
    "length": lambda: 2,
    "series": lambda: WIND,
    "LinearSystem.A": lambda: SYSTEM.A,
    "LinearSystem.B": lambda: SYSTEM.B,
    "sampled.A": lambda: SYSTEM.A,
    "sampled.B": lambda: SYSTEM.B,
    "state": lambda: [0.1, 0.2],
    "action": lambda: [0.1],
    "disturbance": lambda: [0.0, 0.1],
    "inputs": lambda: np.zeros((6, 1)),
    "disturbances": lambda: WIND,
    "next_state": lambda of: of.system.A @ of.state()["x"] + of.system.B @ of.state()["u"] + 0.01,
    "observe.cost": lambda: COST,
    "TruncatedLoss.cost": lambda: COST,
    "loss.cost": lambda: COST,
    "simulate.costs": lambda: COST,
    "stages.costs": lambda: [COST],
    "best_policies.costs": lambda: [COST] * 6,
    "best_policies.domain": lambda: tw.domains.SpectralBalls(POLICY.shape, 1.0),
    "controller": lambda: control.LQR(SYSTEM),
    "simulate.policies": lambda: True,
    "policies": lambda: np.zeros(POLICY.shape),
    "policy": lambda: POLICY,
    "past": lambda: np.full((5, 2), 0.1),
    "M": lambda: np.full(POLICY.shape, 0.1),
    "starts": lambda: [0, 3],
    "past_of.t": lambda: 3,
    "trajectories.runs": lambda: {"a": _simulation()},
    "states": lambda: [0],
    "trajectories.inputs": lambda: [0],
    "trajectories.first": lambda: 1,
    "last": lambda: 3,
    # pca
    "X": lambda: DRIFT,
    "dyadic_regret.losses": lambda: [0.1, 0.2, 0.3, 0.4],
    "shortest": lambda: 1,
    "sigma": lambda: [0.8, 0.6, 0.4, 0.2],
    "systematic.u": lambda: 0.5,
    "EfficientPCA.surrogate": lambda: "ball",
    "update.x": lambda of: np.full(of.dim, 0.2),
    "transform.x": lambda of: np.full(of.dim, 0.2),
    "regret_bound.start": lambda: 0,
    # long frames
    "frame": lambda: pl.DataFrame({"unique_id": ["a"] * 12, "ds": range(12), "y": [k % 4 + 0.5 for k in range(12)]}),
    **{f"{name}.horizon": (lambda: 2) for name in ("forecast", "backtest")},
    **{f"{name}.columns": (lambda: ()) for name in ("forecast", "backtest")},
    **{f"{name}.loss": (lambda: "squared") for name in ("forecast", "backtest")},
    "backtest.step_size": lambda: 2,
    "n_windows": lambda: 2,
    "levels": lambda: (0.8,),
    "id_col": lambda: "unique_id",
    "time_col": lambda: "ds",
    "target_col": lambda: "y",
    "future": lambda: None,
    "freq": lambda: 1,
    "season": lambda: 4,
    "lags": lambda: 2,
    # lab
    "lab.build.name": lambda: "OGD",
    "draw.name": lambda: "piecewise",
    "stream": lambda: importlib.import_module("thalweg.lab").draw("piecewise", horizon=20),
    "text": lambda: "ball:radius=2",
    "seed": lambda: 0,
    "source": _file,
    "target": lambda: "b",
}  # fmt: skip
for owner in ("LinearModel", "LinearRegression", "LogisticRegression", "AbsoluteRegression", "HingeClassification"):
    VALID[f"{owner}.features"] = lambda: FEATURES
for owner in ("HuberRegression", "QuantileRegression"):
    VALID[f"{owner}.features"] = lambda: FEATURES
for name in ("AdaptivePCA", "DescentPCA", "EfficientPCA", "OjaPCA", "YuanLamperskiPCA", "best_subspace"):
    VALID[f"{name}.rank"] = lambda: 1
VALID["dyadic_regret.rank"] = VALID["best_subspace.rank"]

# arguments that have a default and must be given all the same
ALSO = {
    "problems.FromFunctions": ("horizon",),
    "testing.check_loss": ("x",),
    "OGD": ("step_size",),
    "AFLH": ("horizon",),
    "Delayed": ("delay",),
    **{f"{name}.update": ("round",) for name in ("Delayed", "EfficientDelayed")},
    "EfficientDelayed": ("delay",),
    "EfficientBandit": ("loss_bound",),
    "metas.Hedge": ("rate",),
    "regret.best_path": ("price",),
    "control.DAC": ("memory",),
    **{f"{name}.update": ("loss",) for name in ("SACS", "EfficientAdaptive", "EfficientIntervalDynamic")},
}

UNUSED = {"thalweg.control.BangBang.__call__.t"}  # an adversary may look at the round; this one does not

# words, truth values and objects: mutants of numbers are not wrong here by themselves
NOT_NUMBERS = {
    *("gradients", "on_violation", "cover", "restart", "judge", "step_rule", "nonnegative", "anytime", "owner"),
    *("curvature", "progress", "decisions", "policies", "y", "label", "name", "method", "intervals", "loss"),
}

# ------------------------------------------------------------------------------------------- what should not be passed


class Rude:
    """An object that answers nothing."""

    def __repr__(self):
        raise RuntimeError("no repr")

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array")

    def __len__(self):
        raise RuntimeError("no length")

    def __float__(self):
        raise RuntimeError("no number")

    def __iter__(self):
        raise RuntimeError("no items")

    def __eq__(self, other):
        raise RuntimeError("not to be compared")

    __hash__ = None


class Liar:
    """An array by its own account, of text."""

    def __array__(self, dtype=None, copy=None):
        return np.array(["a", "b"])


def pool():
    """Values that are invalid everywhere, as name -> value; made for each call."""
    numbers = {
        str(x): x
        for x in (math.nan, math.inf, -math.inf, -1, 0, -0.0, 1.5, 1e200, -1e200, 1e-200, 1e50, 1e-50, 1e160, 5e-324)
    }
    counts = {f"{a}**{b}": a**b for a, b in ((2, 31), (2, 62), (2, 63), (2, 64), (10, 309))} | {"-10**309": -(10**309)}
    return (
        numbers
        | counts
        | {
            "10**5000": 10**5000,
            "None": None,
            "True": True,
            "empty text": "",
            "text": "text",
            "bytes": b"1.0",
            "empty list": [],
            "empty dict": {},
            "dict": {"a": 1},
            "ragged": [[1.0], [1.0, 2.0]],
            "nested": [[[[1.0]]]],
            "list of None": [None, None],
            "list of text": ["a", "b"],
            "generator": (x for x in (1.0, 2.0)),
            "set": {1.0, 2.0},
            "range": range(3),
            "class": dict,
            "type": tw.domains.Ball,
            "function": math.sqrt,
            "module": math,
            "object": object(),
            "rude": Rude(),
            "list of rude": [Rude(), Rude()],
            "liar": Liar(),
            "complex": 1 + 1j,
            "Ellipsis": ...,
            "slice": slice(1, 2),
            "datetime64": np.datetime64("2020-01-01"),
            "timedelta64": np.timedelta64(3, "D"),
            "np.bool": np.True_,
            "np.str": np.str_("a"),
            "np.void": np.void(b"abc"),
            "float16 nan": np.float16("nan"),
            "longdouble": np.longdouble("1e400"),
            "0-d": np.array(1.5),
            "0-d nan": np.array(np.nan),
            "empty array": np.zeros(0),
            "no rows": np.zeros((0, 2)),
            "no columns": np.zeros((2, 0)),
            "6-d": np.zeros((1,) * 6),
            "object array": np.array([1.0, None], dtype=object),
            "structured": np.zeros(2, dtype=[("a", float), ("b", int)]),
            "masked": np.ma.array([1.0, 2.0], mask=[False, True]),
            "masked constant": np.ma.masked,
            "nan array": np.array([1.0, np.nan]),
            "huge array": np.full(2, 1e200),
            "tiny array": np.full(2, 1e-200),
            "bool array": np.array([True, False]),
            "complex array": np.array([1.0, 1j]),
            "text array": np.array(["1.0", "2.0"]),
            "timedelta array": np.array([1, 2], dtype="m8[s]"),
            "datetime array": np.array([1, 2], dtype="M8[s]"),
            "matrix": np.eye(2),
            "huge ball": tw.domains.Ball(2, radius=1e90),
            "half-space": tw.domains.HalfSpace([1.0, 0.0], 0.0),
            "other shape": tw.domains.Ball((2, 3)),
            "loss": tw.losses.Squared([1.0], 1.0),
            "learner": tw.SOGD(tw.domains.Ball(3)),
            "problem": tw.problems.LinearLosses(np.ones((2, 3))),
        }
    )


def mutants(valid):
    """Values close to a valid number or array of numbers, as (name, value, whether it must be refused)."""
    if isinstance(valid, bool | str) or valid is None:
        return []
    try:
        array = np.asarray(valid)
    except Exception:
        return []
    if array.dtype.kind not in "fiu" or array.size == 0:
        return []
    whole = array.dtype.kind in "iu"
    made = [
        ("as complex", array.astype(complex), True),
        ("as bool", array.astype(bool), True),
        ("as text", array.astype(str), True),
        ("as bytes", array.astype("S"), True),
        ("as timedelta", array.astype("m8[s]"), True),
        ("as datetime", array.astype("M8[s]"), True),
        ("as objects", np.where(np.zeros(array.shape, bool), 0, None), True),
        ("all masked", np.ma.array(array, mask=np.ones(array.shape, bool)), True),
        ("nothing masked", np.ma.array(array, mask=np.zeros(array.shape, bool)), False),
        ("all nan", np.full(array.shape, np.nan), True),
        ("ragged", [array.tolist(), [array.tolist()]], True),
        ("one axis more", array[None], False),
        ("0-d", np.array(array.flat[0]), False),
        ("negative", -array, False),
        ("zero", 0 * array, False),
        ("float16", array.astype(np.float16), False),
        ("float32", array.astype(np.float32), False),
        ("longdouble", array.astype(np.longdouble), False),
        ("int8", array.astype(np.int8), False),
        ("uint64", np.abs(array).astype(np.uint64), False),
        ("big-endian", array.astype(">f8"), False),
        ("times 1e200", array * 1e200, False),
        ("times 1e-200", array * 1e-200, False),
        ("times 1e99", array * 1e99, False),
        ("times 1e-99", array * 1e-99, False),
        ("times 1e45", array * 1e45, False),
        ("times 1e-45", array * 1e-45, False),
        ("times 1e12", array * 1e12, False),
        ("twice as many", np.concatenate([array, array]) if array.ndim else [valid, valid], False),
    ]  # fmt: skip
    if array.ndim:
        spoiled = array.astype(float)
        frozen, spoiled.flat[-1] = array.copy(), np.inf
        frozen.flags.writeable = False
        made += [
            ("one infinite", spoiled, False),
            ("read-only", frozen, False),
            ("Fortran order", np.asfortranarray(array), False),
            ("backwards", array[::-1], False),
            ("a list", array.tolist(), False),
            ("one row", array[:1], False),
            ("none of it", array[:0], False),
        ]
    else:
        x = array.item()
        made += [
            ("text", str(x), True),
            ("True", True, True),
            ("complex", complex(x), True),
            ("timedelta", np.timedelta64(int(x), "s"), True),
            ("in a list", [x], False),
            ("Fraction", Fraction(x), False),
            ("Decimal", Decimal(x), False),
            ("next", x + 1, False),
            ("half", x / 2, False),
        ]
        if whole:
            made += [("2**31", 2**31, False), ("2**64", 2**64, False), ("a float", float(x), False)]
    return made


# ---------------------------------------------------------------------------------------------------- what is called


class Target(NamedTuple):
    """Something public that can be called."""

    name: str
    make: Any  # () -> (callable, object whose state must not change or None)
    parameters: dict[str, inspect.Parameter]
    is_class: bool = False


def valid(target, name, of=None):
    """A valid value for an argument, or KeyError."""
    path = [*target.name.split(".")[1:], name]
    for start in range(len(path)):
        factory = VALID.get(".".join(path[start:]))
        if factory is not None:
            return factory(of) if inspect.signature(factory).parameters else factory()
    raise KeyError(f"{target.name} has an argument {name!r}. Add a valid value for it to tests/hostile.py.")


def arguments(target, of=None):
    """Valid values of all arguments that must be given."""
    kinds = (inspect.Parameter.VAR_KEYWORD,)
    needed = {k: p for k, p in target.parameters.items() if p.default is p.empty and p.kind not in kinds}
    more = ALSO.get(target.name.removeprefix("thalweg."), ())
    return {name: valid(target, name, of) for name in [*needed, *more]}


def call(target, function, given):
    """Call by name; what stands for *args by position."""
    star = [k for k, p in target.parameters.items() if p.kind is p.VAR_POSITIONAL]
    given = dict(given)
    rest = given.pop(star[0]) if star and star[0] in given else []
    rest = rest if type(rest) in (list, tuple) else [rest]
    before = [k for k, p in target.parameters.items() if p.kind is p.POSITIONAL_ONLY]
    return function(*[given.pop(k) for k in before if k in given], *rest, **given)


def build(target):
    """A fresh object of a class from valid arguments, ready for its methods."""
    made = call(target, target.make()[0], arguments(target))
    if isinstance(made, control.Controller):
        made.act([0.1, 0.2])
    return made


def _signature(function):
    found = dict(inspect.signature(function).parameters)
    for name in [k for k, p in found.items() if p.kind is p.VAR_KEYWORD]:
        del found[name]
    return found


def targets():
    """Everything public that takes an argument."""
    found, seen = [], set()
    for place in PUBLIC:
        module = importlib.import_module(place)
        for name in module.__all__:
            thing = getattr(module, name)
            if isinstance(thing, types.ModuleType) or not callable(thing) or id(thing) in seen or name in FILES:
                continue
            seen.add(id(thing))
            path = f"{place}.{name}"
            if not inspect.isclass(thing):
                found.append(Target(path, lambda thing=thing: (thing, None), _signature(thing)))
                continue
            if (
                name in RECORDS
                or thing is tw.Learner
                or issubclass(thing, Exception)
                or inspect.isabstract(thing)
                or _bare(thing)
            ):
                continue
            kind = Target(path, lambda thing=thing: (thing, None), _signature(thing), True)
            found.append(kind)
            found += [
                Target(f"{path}.{key}", lambda kind=kind, key=key: _bound(kind, key), _signature(method))
                for key, method in _methods(thing)
            ]
    return [target for target in found if target.parameters]


def _bare(kind):
    """Protocols, and bases that nobody builds."""
    return getattr(kind, "_is_protocol", False) or kind in (tw.domains.Domain, tw.losses.PredictionLoss)


def _methods(kind):
    for key in dir(kind):
        if key == "plan":  # for those who write parts
            continue
        held = inspect.getattr_static(kind, key)
        if (key.startswith("_") and key != "__call__") or key in HOOKS | FILES or isinstance(held, property):
            continue
        method = getattr(kind, key)
        if inspect.isfunction(method) and method.__module__.startswith("thalweg"):
            parameters = list(inspect.signature(method).parameters.values())[1:]
            yield key, _Signed(parameters)
        elif isinstance(held, classmethod):
            yield key, method


class _Signed:
    """A method's signature without self."""

    def __init__(self, parameters):
        self.__signature__ = inspect.Signature(parameters)

    def __call__(self):
        raise NotImplementedError


def _bound(kind, key):
    made = build(kind)
    return getattr(made, key), made


# --------------------------------------------------------------------------------------------------- how a call ends

OURS = (errors.InputError, errors.StateError, errors.ProjectionError, errors.MissingExtraError)
WARNINGS = (errors.HorizonWarning, pca.RankWarning)
SECONDS = 10.0  # of the processor, for one call
MEMORY = 3 * 2**30  # more than before, for one call


class Hang(BaseException):
    """A call took too long."""


@contextlib.contextmanager
def limits():
    """A limit of time and memory, and warnings as errors unless they are the package's own."""

    def stop(*_):
        raise Hang(f"no end after {SECONDS:g} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for ours in WARNINGS:
                warnings.simplefilter("ignore", ours)
            yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


class Ending(NamedTuple):
    """How a call ended: `kind` is "refused", "answered", or what is wrong."""

    kind: str
    told: str = ""


def numbers(thing, depth=0):
    """All arrays and numbers in an answer."""
    if isinstance(thing, float | np.floating):
        yield np.asarray(thing)
    elif isinstance(thing, np.ndarray):
        if thing.dtype.kind == "f":
            yield thing
    elif depth < 4:
        if isinstance(thing, dict):
            thing = list(thing.values())
        elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
            thing = [getattr(thing, f.name) for f in dataclasses.fields(thing)]
        if isinstance(thing, list | tuple):
            for part in thing[:20]:
                yield from numbers(part, depth + 1)


def same(a, b):
    """Whether two states are equal to the bit."""
    return a.keys() == b.keys() and all(np.array_equal(np.asarray(a[k]), np.asarray(b[k]), equal_nan=False) or (
        np.asarray(a[k]).dtype.kind == "f" and np.array_equal(a[k], b[k], equal_nan=True)) for k in a)  # fmt: skip


def probe(made):
    """Use what a constructor made: read all it tells, play some rounds."""
    repr(made)
    for key in dir(type(made)):
        if not key.startswith("_") and isinstance(inspect.getattr_static(type(made), key), property):
            with contextlib.suppress(errors.InputError):
                yield key, getattr(made, key)
    if isinstance(made, tw.Learner):
        shape = made.domain.shape
        g = np.ones(shape) * min(1.0, (made.gradient_bound or 1.0) / (2 * math.sqrt(made.domain.dim)))
        for _ in range(3):
            if made.one_gradient:
                made.update(g, min(1.0, getattr(made, "loss_bound", None) or 1.0) / 2)
            else:
                made.step(tw.losses.Linear(g, float(np.sum(np.abs(g)) * made.domain.radius * 2)))
            yield "decision", made.decision
    elif isinstance(made, pca.PCALearner):
        for _ in range(3):
            made.update(np.full(made.dim, math.sqrt(made.gradient_bound / made.dim) / 2))
            yield "decision", made.decision
    elif isinstance(made, control.Controller):
        x = np.zeros(made.system.state_dim)
        for _ in range(12):
            u = made.act(x)
            yield "input", u
            x = made.system.step(x, u, np.full(x.shape, min(0.1, (made.disturbance_bound or 1.0) / 10)))
            made.observe(control.QuadraticCost(np.ones(x.size), np.ones(u.size)), x)
    elif isinstance(made, tw.domains.Domain):
        yield "project", made.project(made.center)
        yield "project", made.project(made.center + min(1.0, made.radius))


def attempt(target, replaced, must=False):
    """Call with some arguments replaced by hostile ones, and tell how it ended. `must`: it has to be refused."""
    function, of = target.make()
    given = arguments(target, of)
    if isinstance(of, tw.Learner | pca.PCALearner):
        _ = of.decision  # who asks for it makes it, which counts
    before = of.state() if hasattr(of, "state") else None
    given |= replaced
    try:
        with limits():
            answer = call(target, function, given)
            if inspect.isgenerator(answer):
                answer = list(answer)
            told = [("answer", answer)]
            if target.is_class:
                told += list(probe(answer))
            elif isinstance(of, tw.Learner | pca.PCALearner):
                told.append(("decision", of.decision))
    except OURS:
        try:
            if before is not None and not same(before, of.state()):
                return Ending("changed", "refused, but the state changed")
        except Exception as error:
            return Ending("plain", f"state: {type(error).__name__}: {error}")
        return Ending("refused")
    except AssertionError as error:
        if target.name.startswith("thalweg.testing"):
            return Ending("refused")  # their verdict
        return Ending("plain", f"AssertionError: {error}")
    except Hang as error:
        return Ending("hang", str(error))
    except Warning as error:
        return Ending("warning", f"{type(error).__name__}: {error}")
    except Exception as error:
        return Ending("plain", f"{type(error).__name__}: {error}")
    if must:
        return Ending("accepted", "it should have been refused")
    for what, value in told:
        if any(np.isnan(array).any() for array in numbers(value)):
            return Ending("nan", f"nan in {what}")
    return Ending("answered")


def draw(rng, target):
    """One or two arguments and what they are replaced by: name -> (what, value), and whether it must be refused."""
    names = list(target.parameters)
    of = target.make()[1]
    chosen = rng.choice(len(names), size=min(len(names), 1 + int(rng.random() < 0.3)), replace=False)
    replaced, told, must = {}, [], False
    for name in (names[i] for i in chosen):
        near = []
        with contextlib.suppress(KeyError):
            near = mutants(valid(target, name, of))
        if near and rng.random() < 0.6:
            what, value, illegal = near[rng.integers(len(near))]
            must |= illegal and name not in NOT_NUMBERS and f"{target.name}.{name}" not in UNUSED
        else:
            values = pool()
            what = list(values)[rng.integers(len(values))]
            value = values[what]
        replaced[name] = value
        told.append(f"{name}={what}")
    return replaced, f"{target.name}({', '.join(told)})", must
