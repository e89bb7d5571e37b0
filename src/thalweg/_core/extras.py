"""Optional libraries: imported where they are needed, named with their extra where they are missing."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from thalweg.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def need(module: str, extra: str, who: str, package: str = "") -> ModuleType:
    """An optional module, or an error that says who needs it and how to get it.

    Examples
    --------
    >>> need("json", "lab", "The report").dumps([1])
    '[1]'
    >>> need("no_such_thing", "lab", "The report")
    Traceback (most recent call last):
    thalweg.errors.MissingExtraError: The report needs no_such_thing. Install it with: pip install 'thalweg[lab]'
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise missing(package or module.partition(".")[0], extra, who) from None


def missing(package: str, extra: str, who: str) -> MissingExtraError:
    """The error of a library that is not there."""
    return MissingExtraError(f"{who} needs {package}. Install it with: pip install 'thalweg[{extra}]'")


def new_figure(who: str, width: float, height: float) -> Figure:
    """Return an empty matplotlib Figure, sizes in inches. It is not pyplot's: nothing global changes."""
    need("matplotlib", "lab", who)
    figure: Figure = need("matplotlib.figure", "lab", who).Figure(figsize=(width, height), layout="constrained")
    need("matplotlib.backends.backend_agg", "lab", who).FigureCanvasAgg(figure)
    return figure
