"""How much losses and gradients can differ, from the arguments of methods with shared or own gradients."""

from typing import NamedTuple

from thalweg._core.validate import check_choice, check_positive
from thalweg.domains._base import Domain
from thalweg.learners.base import bounded

__all__ = ["Ranges", "read_ranges"]


class Ranges(NamedTuple):
    """What is known of losses before the first round."""

    G: float  # at least the length of any gradient
    D: float  # the diameter of the domain
    own: bool  # whether members have gradients of their own
    c: float  # at least the difference of two values of a loss; G D where no bound was given


def read_ranges(owner: str, domain: Domain, gradient_bound: float, gradients: str, loss_bound: float | None) -> Ranges:
    """Return what the arguments of a method say, checked."""
    G = check_positive(owner, "gradient_bound", gradient_bound)
    D = bounded(owner, domain).diameter
    own = check_choice(owner, "gradients", gradients, ("shared", "own")) == "own"
    return Ranges(G, D, own, G * D if loss_bound is None else check_positive(owner, "loss_bound", loss_bound))
