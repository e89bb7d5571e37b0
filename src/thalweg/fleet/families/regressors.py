"""Linear models of rows: `TrackingRegressor` and `TrackingClassifier`."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg._core.memory import Memory
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import short_repr
from thalweg._kernels.handle import Closed, parts
from thalweg._kernels.jit import Kernel, kernel
from thalweg._kernels.pointers import Pointer, call
from thalweg.errors import InputError
from thalweg.estimators._linear import FreeModel
from thalweg.fleet.chains import Chains, after
from thalweg.fleet.families.base import Family, Growth, ordered
from thalweg.fleet.kernels import FULL, stopped
from thalweg.fleet.reading import BatchRows, check_numbers
from thalweg.parts.linear.plan import LinearLayout
from thalweg.parts.linear.rows import play_row

CLASSES = np.arange(2)
TURN = "i8", "f8", "f8", "b1", "i8", "i8[1]", "f8[1]"  # arguments of `play_row` after the handle


class ModelSeat(NamedTuple):
    """A linear model as steps see it."""

    play: Pointer
    handle: Closed
    clock: Ints
    at: Ints  # (C,) positions of the features
    x: Floats  # (C,) scratch space
    rounds: int  # how many rows there is capacity for


class ExampleRows(NamedTuple):
    """The rows of a batch."""

    following: Ints  # (n,), or empty: see `Chains`
    columns: Floats  # (n, C)
    values: Floats  # (n,)
    weights: Floats  # (n,)
    learn: bool
    said: Floats  # (n, 1)


@kernel
def learn_rows(seat: Any, batch: Any, first: int) -> int:
    """Predict the rows of a chain, each before it is learned."""
    model, rows = parts(seat), parts(batch)
    t, n = first, model.x.shape[0]
    while t >= 0:
        y, weight = (rows.values[t], rows.weights[t]) if rows.learn else (0.0, 0.0)
        if weight > 0.0 and model.clock[0] >= model.rounds:
            return stopped(t, FULL)
        for j in range(n):
            model.x[j] = rows.columns[t, j]
        rows.said[t, 0] = call(model.play, model.handle, n, y, weight, rows.learn, 0, model.at, model.x)
        t = after(rows.following, t)
    return t  # DONE


def model_tree(memory: Memory, features: int) -> ModelSeat:
    """Return a linear model as steps see it."""
    handle, layout = memory.handle, memory.layout
    assert isinstance(layout, LinearLayout)
    return ModelSeat(
        Pointer(play_row, f"f8(any,{','.join(TURN)})", (handle.kind, *TURN)),
        Closed(handle),
        memory.state.clock,
        np.arange(1, features + 1),
        np.zeros(features),
        layout.rounds(memory.sizes),
    )


class Regressors(Family):
    """`TrackingRegressor` without a constraint."""

    calls = ("run", "predict")
    takes_columns = True

    def __init__(self, template: Any, columns: tuple[str, ...] = ()) -> None:
        name = type(template).__name__
        if not columns:
            raise InputError(f"Fleet of {name} needs columns=[...]: the names of its features.")
        if template.constraint is not None:
            raise InputError(f"Fleet cannot play {name} with a constraint.")
        fitted = copy.deepcopy(template)
        layout = template._layout(len(columns))
        assert isinstance(layout, LinearLayout)
        facts = {"n_features_in_": len(columns), "feature_names_in_": np.array(columns, dtype=object), **self.facts()}
        fitted._learned(fitted, _models=(FreeModel(layout),), **facts)
        super().__init__(fitted)
        self.columns = columns

    def facts(self) -> dict[str, object]:
        """Return attributes of a template that has seen no row yet."""
        return {}

    def rows(self, targets: Floats) -> tuple[Floats, Floats]:
        """Return targets as models learn them, and the weights of rows."""
        return targets, np.ones(targets.size)

    def memory(self, learner: Any) -> Memory:
        """See `Family`."""
        (model,) = learner._models
        return model.memory  # type: ignore[no-any-return]

    def blank(self) -> Any:
        """See `Family`."""
        return copy.deepcopy(self.template)

    def tree(self, learner: Any) -> ModelSeat:
        """See `Family`."""
        return model_tree(self.memory(learner), len(self.columns))

    def grow(self, learner: Any) -> Growth:
        """See `Family`."""
        memory = self.memory(learner)
        assert isinstance(memory.layout, LinearLayout)
        return Growth(ordered({**memory.sizes, "slots": memory.layout.slots(learner.rounds + 1)}), {})

    def same(self, learner: Any) -> str:
        """See `Family`: fitted to the same columns, and classes."""
        why = super().same(learner)
        if why:
            return why
        if not learner._is_fitted():
            return "it has learned no row"
        if learner._fitted_with != learner._settings():
            return "its arguments were changed after it was fitted"
        for name in (*self.facts(), "n_features_in_", "feature_names_in_"):
            if not hasattr(learner, name):  # names of features: it was fitted to an array
                continue
            mine, theirs = getattr(self.template, name), getattr(learner, name)
            if not np.array_equal(mine, theirs):
                return f"it has {name} = {short_repr(theirs)}, the fleet's learners have {short_repr(mine)}"
        return ""

    # ------------------------------------------------------------------ rows

    def check(self, rows: BatchRows, target: str, learns: bool) -> None:
        """See `Family`: nothing may be missing."""
        for j, name in enumerate(self.columns):
            check_numbers(rows.bad, name, rows.columns[:, j], missing=False)
        if learns:
            check_numbers(rows.bad, target, rows.target, missing=False)

    def batch(self, call: str, chains: Chains, data: Mapping[str, NDArray[Any]]) -> tuple[Kernel[..., Any], Any]:
        """See `Family`."""
        learns = call == "run"
        values, weights = self.rows(data["values"] if learns else np.zeros(0))
        said = np.full((chains.rows, 1), np.nan)
        return learn_rows, ExampleRows(chains.following, data["columns"], values, weights, learns, said)

    def said(self, call: str, batch: ExampleRows) -> Floats:
        """See `Family`."""
        return batch.said

    def names(self, call: str) -> tuple[str, ...]:
        """See `Family`."""
        return ("thalweg",)


class Classifiers(Regressors):
    """`TrackingClassifier` of the classes 0 and 1, without a constraint: the probability, or the score, of class 1."""

    def __init__(self, template: Any, columns: tuple[str, ...] = ()) -> None:
        if isinstance(template.class_weight, str):
            raise InputError(
                f"Fleet cannot play TrackingClassifier with class_weight={template.class_weight!r}, which needs all "
                "rows at once. Give it a dict."
            )
        super().__init__(template, columns)
        from thalweg.estimators.classifier import weights_of_classes  # of scikit-learn: the template is one, too

        self._weights = weights_of_classes(template, CLASSES, CLASSES)

    def facts(self) -> dict[str, object]:
        """See `Regressors`."""
        return {"classes_": CLASSES}

    def check(self, rows: BatchRows, target: str, learns: bool) -> None:
        """See `Family`: targets are 0 or 1."""
        super().check(rows, target, learns)
        if learns:
            for row in np.flatnonzero(~np.isin(rows.target, CLASSES)).tolist():
                rows.bad.setdefault(row, f"{target} is {rows.target[row]:g}; classes are 0 and 1")

    def rows(self, targets: Floats) -> tuple[Floats, Floats]:
        """See `Regressors`: models learn -1 and 1."""
        second = targets == 1.0
        return np.where(second, 1.0, -1.0), self._weights[second.astype(np.int64)]
