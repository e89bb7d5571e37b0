"""Families of learners that fleets can play, one file for each."""

from thalweg.fleet.families.base import Family, Growth, SizeClass
from thalweg.fleet.families.choose import family_of

__all__ = ["Family", "Growth", "SizeClass", "family_of"]
