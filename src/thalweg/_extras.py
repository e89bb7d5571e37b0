"""Optional libraries: imported where they are needed, named with their extra where they are missing."""

import importlib
from typing import Any

from thalweg.errors import MissingExtraError

__all__ = ["need", "new_figure"]


def need(module: str, extra: str, who: str) -> Any:
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
        package = module.partition(".")[0]
        raise MissingExtraError(f"{who} needs {package}. Install it with: pip install 'thalweg[{extra}]'") from None


def new_figure(who: str, width: float, height: float) -> Any:
    """Return an empty matplotlib Figure, sizes in inches. It is not pyplot's: nothing global changes."""
    need("matplotlib", "lab", who)
    figure = need("matplotlib.figure", "lab", who).Figure(figsize=(width, height), layout="constrained")
    need("matplotlib.backends.backend_agg", "lab", who).FigureCanvasAgg(figure)
    return figure
