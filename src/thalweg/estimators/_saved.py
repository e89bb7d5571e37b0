"""Estimators that follow the rules of another library, and can still be saved as every learner.

scikit-learn and river want constructors that keep their arguments untouched and do nothing else, and have `clone` and
`repr` of their own. What is learned lies in an engine (`thalweg._stateful.Stateful`), built at the first fit.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from thalweg._recorded import parameters
from thalweg._stateful import Savable, Stateful, inside
from thalweg.errors import StateError
from thalweg.files import SCHEMA

__all__ = ["Saved"]


class Saved(Savable):
    """A mixin: `state`, `restore`, `save`, and `thalweg.load`.

    Notes
    -----
    A new one names its `_facts`, the fitted attributes that an engine is built for, and defines `_new_engine`, which
    builds one for them; `fit` keeps it as `self._engine`. Facts are whole numbers or arrays.
    """

    _noun = "estimator"
    _facts: ClassVar[tuple[str, ...]] = ("n_features_in_", "feature_names_in_")
    _engine: Stateful

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Nothing is recorded: the arguments are attributes, and may be changed by `set_params`."""
        return object.__new__(cls)

    def _arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in parameters(type(self))}

    @abstractmethod
    def _new_engine(self, facts: Mapping[str, Any]) -> Stateful:
        """An engine before its first round. Raises InputError where arguments or facts cannot be used."""

    @property
    def rounds(self) -> int:
        """Rows learned so far."""
        return self._engine.rounds if "_engine" in vars(self) else 0

    def state(self) -> dict[str, Any]:
        """Everything that was learned, as a plain mapping of new arrays, numbers and lists."""
        saved: dict[str, Any] = {"class": type(self).__name__, "schema": SCHEMA}
        saved.update({f"settings.{key}": value for key, value in self._settings().items()})
        if "_engine" in vars(self):
            for name in self._facts:
                if hasattr(self, name):
                    saved.update(_plain(f"facts.{name}", getattr(self, name)))
            saved.update({f"engine.{key}": value for key, value in self._engine.state().items()})
        return saved

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue from a saved state, bit for bit. A state of another class is refused and nothing changes."""
        saved = self._migrated(saved)
        self._check_kind(saved)
        facts: dict[str, Any] = {}
        engine = None
        if any(str(key).startswith("engine.") for key in saved):
            facts = {name: _array(self, saved, f"facts.{name}") for name in self._facts if f"facts.{name}" in saved}
            try:
                engine = self._new_engine(facts)
            except StateError:
                raise
            except Exception as error:
                raise self._unfit(f"its facts cannot be used: {error}") from error
            engine.restore(inside(saved, "engine."))
        for name in (*self._facts, "_engine"):
            vars(self).pop(name, None)
        vars(self).update(facts if engine is None else facts | {"_engine": engine})


def _plain(key: str, value: Any) -> dict[str, Any]:
    """A fact as a state holds it: words as a list, with the type of their array."""
    if isinstance(value, np.ndarray) and value.dtype.kind not in "fiub":
        return {key: value.tolist(), f"{key}.dtype": str(value.dtype)}
    return {key: value.copy() if isinstance(value, np.ndarray) else value}


def _array(owner: Savable, saved: Mapping[str, Any], key: str) -> Any:
    value = saved[key]
    if f"{key}.dtype" not in saved:
        return value.copy() if isinstance(value, np.ndarray) else value
    kind = str(saved[f"{key}.dtype"])
    if not isinstance(value, list) or not (kind == "object" or (kind[:2] == "<U" and kind[2:].isdecimal())):
        raise owner._unfit(f"'{key}' must be a list of words")
    words = np.empty(len(value), dtype=object)
    words[:] = value
    return words if kind == "object" else words.astype(str)
