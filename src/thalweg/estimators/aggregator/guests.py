"""Objects beside the block of an `Aggregator`: rules of the user's own, and the names of the experts."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import short_repr
from thalweg.errors import InputError, StateError


class Guest(Protocol):
    """A rule of the user's own; to be saved, it has `state` and `restore` too."""

    def weights(self, experts: Floats, awake: Floats) -> ArrayLike:
        """Return the weights of the experts."""

    def update(self, experts: Floats, awake: Floats, y: float) -> object:
        """Take the answer."""


class Hosted:
    """A rule of the user's own, copied: an object with `weights` and `update`; to be saved, `state` and `restore`."""

    def __init__(self, guest: Guest) -> None:
        self._original, self.guest = guest, copy.deepcopy(guest)

    def weights(self, x: Floats, a: Floats) -> Floats:
        """Return its weights for those awake, checked."""
        w = np.asarray(self.guest.weights(x.copy(), a.copy()), dtype=np.float64)
        if w.shape != x.shape or not (np.isfinite(w).all() and (w >= 0).all()):
            raise InputError(
                f"Aggregator: the guest {type(self.guest).__name__} must give {x.size} weights >= 0. Got "
                f"{short_repr(w)}."
            )
        w = w * a
        return np.asarray(w / w.sum() if w.sum() > 0 else a / a.sum())

    def update(self, x: Floats, a: Floats, y: float) -> None:
        """Tell it the answer."""
        self.guest.update(x.copy(), a.copy(), float(y))

    def state(self) -> dict[str, Any]:
        """Return the result of its own `state()`."""
        return dict(self._saved().state())

    def restore(self, saved: Mapping[str, object]) -> None:
        """Let it continue from a saved state."""
        self._saved().restore(dict(saved))

    def _saved(self) -> Any:
        if hasattr(self.guest, "state") and hasattr(self.guest, "restore"):
            return self.guest
        name = type(self.guest).__name__
        raise InputError(f"Aggregator: the guest {name} cannot be saved. Give it state() and restore().")

    def reset(self) -> None:
        """Start over with a copy of the original."""
        self.guest = copy.deepcopy(self._original)

    def snapshot(self) -> Guest:
        """Return a copy of all of it, whatever its `state()` gives."""
        return copy.deepcopy(self.guest)

    def roll_back(self, kept: Guest) -> None:
        """Return to a snapshot."""
        self.guest = kept


class Names:
    """Names of the experts, once they came in a data frame."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] | None = None

    def state(self) -> dict[str, list[str]]:
        """Return them as a list, if there are any."""
        return {} if self.names is None else {"expert_names_": list(self.names)}

    def restore(self, saved: Mapping[str, object]) -> None:
        """Take those of a saved state."""
        names = saved.get("expert_names_")
        if saved.keys() - {"expert_names_"} or not (
            names is None or (isinstance(names, list) and all(isinstance(one, str | int | float) for one in names))
        ):
            raise StateError("Aggregator cannot restore this state: its only fact is 'facts.expert_names_', a list.")
        self.names = None if names is None else tuple(names)

    def reset(self) -> None:
        """Forget them."""
        self.names = None
