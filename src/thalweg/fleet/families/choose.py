"""The family of a template."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from thalweg.errors import InputError
from thalweg.estimators.aggregator import Aggregator
from thalweg.estimators.conformal import ConformalTracker
from thalweg.estimators.forecaster import Forecaster
from thalweg.fleet.families.base import Family
from thalweg.fleet.families.combiners import Combiners
from thalweg.fleet.families.forecasters import Forecasters
from thalweg.fleet.families.intervals import Trackers
from thalweg.fleet.families.learners import Deciders
from thalweg.learners.base import Learner

__all__ = ["family_of"]


def family_of(template: Any, columns: Sequence[str]) -> Family:
    """Return the family of a fresh learner or estimator; refuse those that a fleet cannot play, with the reason."""
    kind = type(template)
    name = kind.__name__
    if isinstance(template, type):
        raise InputError(f"Fleet needs a fresh learner, such as {template.__name__}(...). Got the class.")
    family: Family
    if kind.__module__ == "thalweg.estimators.regressor":  # scikit-learn is there
        _check_fresh(template)
        return importlib.import_module("thalweg.fleet.families.regressors").Regressors(template, tuple(columns))  # type: ignore[no-any-return]
    if isinstance(template, Aggregator):
        _check_fresh(template)
        return Combiners(template, tuple(columns))
    if columns:
        raise InputError(f"Fleet takes columns for TrackingRegressor and Aggregator. {name} has its own.")
    why = ""
    if isinstance(template, Forecaster):
        family = Forecasters(template)
    elif isinstance(template, ConformalTracker):
        family = Trackers(template)
    elif isinstance(template, Learner):
        why = Deciders.refusal(template)
        family = Deciders(template)
    else:
        raise InputError(
            f"Fleet cannot play {name}. It takes Forecaster, ConformalTracker, TrackingRegressor, Aggregator, and "
            "learners such as Tracker."
        )
    if why:
        raise InputError(f"Fleet cannot play {name}: {why}.")
    _check_fresh(template)
    return family


def _check_fresh(template: Any) -> None:
    if template.rounds:
        name = type(template).__name__
        raise InputError(f"Fleet needs a fresh {name}. Got one that has played {template.rounds} rounds.")
