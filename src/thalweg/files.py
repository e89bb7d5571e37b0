"""Saved learners and estimators in files: `load` one, or show a `summary` without building anything.

`thalweg._core.files` has the format.
"""

from thalweg._core.archive import SCHEMA
from thalweg._core.files import PLACES, load, summary

__all__ = ["PLACES", "SCHEMA", "load", "summary"]
