"""The losses and gradients that a machine takes."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The losses and gradients that a machine takes.

    Attributes
    ----------
    needs_loss, uses_loss : bool
        Rounds need the loss; a round counts a value.
    floor : float
        The smallest loss that is accepted.
    why_floor : str
        The rest of the message about a loss below the floor; the usual one when empty.
    largest_loss, too_large : float, str
        The largest loss above the floor that is accepted, and the message about a larger one.
    square : float
        The largest square norm of a gradient that is accepted where the learner has no bound.
    unknown : float
        The value used for a loss that was not given.
    """

    needs_loss: bool = False
    uses_loss: bool = False
    floor: float = -math.inf
    why_floor: str = ""
    largest_loss: float = math.inf
    too_large: str = ""
    square: float = math.inf
    unknown: float = 0.0


def limits_of(guest: object) -> Limits:
    """Return what a learner, possibly from another package, says of the losses it takes."""
    needs_loss = bool(getattr(guest, "needs_loss", False))
    return Limits(needs_loss, uses_loss=bool(getattr(guest, "uses_loss", needs_loss)))
