"""Errors and warnings. Every message names the caller, the expected and the given value, and a remedy."""

__all__ = [
    "ClippingWarning", "GapWarning", "HorizonWarning", "InputError", "MemoryWarning", "MissingExtraError",
    "PluginWarning", "ProjectionError", "StateError",
]  # fmt: skip


class InputError(ValueError):
    """An argument that cannot be used. Nothing changed."""


class ProjectionError(RuntimeError):
    """A projection failed, did not converge, or returned something that is no point of the set. Nothing changed."""


class StateError(ValueError):
    """A saved state that does not belong to this learner. Nothing changed."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""


class HorizonWarning(UserWarning):
    """A learner went past the horizon it was tuned for: it keeps working, its guarantee no longer covers the run."""


class ClippingWarning(UserWarning):
    """Many gradients were scaled down to a bound that is too small for the losses."""


class MemoryWarning(UserWarning):
    """The memory of a learning controller is short for its plant: the loss ignores part of a policy's effect."""


class GapWarning(UserWarning):
    """Rows are missing between the times of a series; they count as missing values."""


class PluginWarning(UserWarning):
    """An entry point of another package that cannot be used."""
