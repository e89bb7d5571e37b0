"""The family of a template."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from thalweg.errors import InputError
from thalweg.fleet.families.base import Family

ESTIMATORS, FAMILIES = "thalweg.estimators", "thalweg.fleet.families"
# Modules are imported when a template needs them: a fleet of learners loads no estimator.
CHOICES = {  # family by the class that templates have, or derive from
    f"{ESTIMATORS}.regressor.TrackingRegressor": f"{FAMILIES}.regressors.Regressors",
    f"{ESTIMATORS}.classifier.TrackingClassifier": f"{FAMILIES}.regressors.Classifiers",
    f"{ESTIMATORS}.aggregator.aggregator.Aggregator": f"{FAMILIES}.combiners.Combiners",
    f"{ESTIMATORS}.forecaster.Forecaster": f"{FAMILIES}.forecasters.Forecasters",
    f"{ESTIMATORS}.conformal.ConformalTracker": f"{FAMILIES}.intervals.Trackers",
    "thalweg.learners.base.Learner": f"{FAMILIES}.learners.Deciders",
}


def family_of(template: Any, columns: Sequence[str]) -> Family:
    """Return the family of a fresh learner or estimator; refuse those that a fleet cannot play, with the reason."""
    if isinstance(template, type):
        raise InputError(f"Fleet needs a fresh learner, such as {template.__name__}(...). Got the class.")
    name = type(template).__name__
    bases = [f"{base.__module__}.{base.__qualname__}" for base in type(template).__mro__]
    found = next((CHOICES[base] for base in bases if base in CHOICES), None)
    if found is None:
        raise InputError(
            f"Fleet cannot play {name}. It takes Forecaster, ConformalTracker, TrackingRegressor, TrackingClassifier, "
            "Aggregator, and learners such as Tracker."
        )
    module, _, kind = found.rpartition(".")
    family: type[Family] = getattr(importlib.import_module(module), kind)
    if columns and not family.takes_columns:
        raise InputError(
            f"Fleet takes columns for TrackingRegressor, TrackingClassifier and Aggregator. {name} has its own."
        )
    why = family.refusal(template)
    if why:
        raise InputError(f"Fleet cannot play {name}: {why}.")
    _check_fresh(template)
    return family(template, tuple(columns))


def _check_fresh(template: Any) -> None:
    if template.rounds:
        name = type(template).__name__
        raise InputError(f"Fleet needs a fresh {name}. Got one that has played {template.rounds} rounds.")
