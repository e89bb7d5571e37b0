"""Thalweg: online convex optimisation when the best decision keeps moving.

A learner decides, the world reveals a loss, the learner moves. `domains` are the feasible sets, `losses` and `problems`
describe the world, `play` runs one against the other. The rest is loaded when first used: `regret` measures a run,
`testing` checks parts of your own, `theorems` holds the guarantees, `control`, `pca` and `estimators` are applications,
and `scaling` standardises rows. `forecast` and `backtest` take long data frames; `Fleet` has a learner for every key,
and `spark` takes fleets to an engine.
"""

import importlib
from typing import TYPE_CHECKING, Any

from thalweg import cards, domains, errors, experts, files, losses, metas, problems
from thalweg._version import __version__
from thalweg.algorithms import (
    AFLH,
    AOA,
    CBCE,
    OGD,
    SACS,
    SAOL,
    SOGD,
    Ader,
    CutkoskyAdaptive,
    CutkoskyPrintedVariant,
    EfficientAdaptive,
    EfficientAOA,
    EfficientBandit,
    EfficientCBCE,
    EfficientCutkosky,
    EfficientDelayed,
    EfficientDynamic,
    EfficientIntervalDynamic,
    EfficientOptimistic,
    EfficientScream,
    Scream,
    Sword,
    SwordPP,
    Tracker,
)
from thalweg.files import load
from thalweg.learners.alone import Alone
from thalweg.learners.base import Learner, Queries
from thalweg.learners.cover import Cover
from thalweg.learners.delayed import Delayed
from thalweg.learners.ensemble import Ensemble
from thalweg.learners.one_projection import OneProjection
from thalweg.play import Run, play

if TYPE_CHECKING:
    from thalweg import control, estimators, extend, pca, regret, scaling, spark, testing, theorems
    from thalweg.control import EfficientControl
    from thalweg.estimators.long_frames import backtest, forecast
    from thalweg.fleet import Fleet
    from thalweg.pca import EfficientPCA

__all__ = [
    "AFLH",
    "AOA",
    "CBCE",
    "OGD",
    "SACS",
    "SAOL",
    "SOGD",
    "Ader",
    "Alone",
    "Cover",
    "CutkoskyAdaptive",
    "CutkoskyPrintedVariant",
    "Delayed",
    "EfficientAOA",
    "EfficientAdaptive",
    "EfficientBandit",
    "EfficientCBCE",
    "EfficientControl",
    "EfficientCutkosky",
    "EfficientDelayed",
    "EfficientDynamic",
    "EfficientIntervalDynamic",
    "EfficientOptimistic",
    "EfficientPCA",
    "EfficientScream",
    "Ensemble",
    "Fleet",
    "Learner",
    "OneProjection",
    "Queries",
    "Run",
    "Scream",
    "Sword",
    "SwordPP",
    "Tracker",
    "__version__",
    "backtest",
    "cards",
    "control",
    "domains",
    "errors",
    "estimators",
    "experts",
    "extend",
    "files",
    "forecast",
    "load",
    "losses",
    "metas",
    "pca",
    "play",
    "problems",
    "regret",
    "scaling",
    "spark",
    "testing",
    "theorems",
]

_LATER = {
    "backtest": "estimators",
    "forecast": "estimators",
    "control": "control",
    "EfficientControl": "control",
    "estimators": "estimators",
    "extend": "extend",
    "pca": "pca",
    "EfficientPCA": "pca",
    "Fleet": "fleet",
    "regret": "regret",
    "scaling": "scaling",
    "spark": "spark",
    "testing": "testing",
    "theorems": "theorems",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'thalweg' has no attribute {name!r}")
    module = importlib.import_module(f"thalweg.{_LATER[name]}")
    return module if name == _LATER[name] else getattr(module, name)


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
