"""The family of a template."""

from __future__ import annotations

from typing import Any

from thalweg.errors import InputError
from thalweg.estimators.forecaster import Forecaster
from thalweg.fleet.families.base import Family
from thalweg.fleet.families.forecasters import Forecasters
from thalweg.fleet.families.learners import Deciders
from thalweg.learners.base import Learner

__all__ = ["family_of"]


def family_of(template: Any) -> Family:
    """Return the family of a fresh learner or estimator; refuse those that a fleet cannot play, with the reason."""
    name = type(template).__name__
    if isinstance(template, type):
        raise InputError(f"Fleet needs a fresh learner, such as {template.__name__}(...). Got the class.")
    why = ""
    if isinstance(template, Forecaster):
        family: Family = Forecasters(template)
    elif isinstance(template, Learner):
        why = Deciders.refusal(template)
        family = Deciders(template)
    else:
        raise InputError(f"Fleet cannot play {name}. It takes Forecaster, and learners such as Tracker.")
    if why:
        raise InputError(f"Fleet cannot play {name}: {why}.")
    if template.rounds:
        raise InputError(f"Fleet needs a fresh {name}. Got one that has played {template.rounds} rounds: clone() it.")
    return family
