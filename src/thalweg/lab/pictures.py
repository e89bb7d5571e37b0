"""Common parts of the pictures of studies: one look for each learner, axes, legends and files."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from thalweg._core.extras import need, new_figure
from thalweg._core.types import Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which all kinds of colour vision tell apart.
BLACK, GREY, BLUE, VERMILION = "#000000", "#555555", "#0072B2", "#D55E00"
GREEN, PINK, SKY, ORANGE = "#009E73", "#CC79A7", "#56B4E9", "#E69F00"
COLOURS = (BLUE, VERMILION, GREEN, PINK, BLACK)

Look = tuple[str, str, str | tuple[int, tuple[int, int]]]
# Colour, mark and line of whoever is drawn by name: marks and lines say it again, for print.
LOOKS: dict[str, Look] = {
    "LQR": (GREY, "|", "-"),
    "IntegralLQR": (PINK, "^", "-"),
    "Preview": (SKY, "P", "-"),
    "H-infinity": (GREEN, "v", "-"),
    "GPC": (ORANGE, "s", "-"),
    "ScreamControl": (VERMILION, "D", "--"),
    "EfficientControl": (BLUE, "o", "-"),
    "TrackingControl": (BLACK, "*", "-"),
    "EfficientPCA": (BLUE, "o", "-"),
    "AdaptivePCA": (SKY, "s", "-"),
    "DescentPCA": (VERMILION, "v", "-"),
    "YuanLamperskiPCA": (GREEN, "D", "-"),
    "OjaPCA": (PINK, "^", "-"),
    "IncrementalPCA": (GREY, "X", "-"),
    "StreamingPCA": (BLACK, "*", "-"),
    "bound, center": (BLUE, "o", "-"),
    "bound, current": (SKY, "s", "--"),
    "observed, center": (VERMILION, "^", "-"),
    "observed, current": (ORANGE, "v", "--"),
    "printed": (BLACK, "", "-"),
    "scale 1e-03": (BLUE, "", "-"),
    "scale 1e-05": (VERMILION, "", "--"),
    "SACS, default": (PINK, "", "-."),
    "EfficientDynamic": (GREEN, "", (0, (1, 1))),
    "planted": (GREY, "", ":"),
}


STYLE = {  # no box, a pale grid behind the lines, small letters
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.grid.axis": "y", "grid.alpha": 0.3,
    "axes.axisbelow": True, "axes.titlesize": 10, "axes.labelsize": 10, "xtick.labelsize": 9, "ytick.labelsize": 9,
    "legend.frameon": False, "legend.fontsize": 9,
}  # fmt: skip


def style() -> AbstractContextManager[None]:
    """A context in which pictures of studies are drawn. Nothing is changed for others."""
    context: AbstractContextManager[None] = need("matplotlib", "lab", "A picture").rc_context(STYLE)
    return context


def side(name: str) -> Look:
    """Colour, mark and line by two sides: methods with one projection, and all others."""
    return (BLUE, "o", "-") if name.startswith("Efficient") else (VERMILION, "s", "--")


def panels(width: float, height: float, rows: int = 1, columns: int = 1, **shared: Any) -> tuple[Figure, Any]:
    """Return a Figure, sizes in inches, and its axes in rows and columns."""
    figure = new_figure("A picture", width, height)
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def log_log(axis: Axes, ticks: Sequence[float]) -> None:
    """Both axes logarithmic: these numbers along one, few plain ones along the other."""
    axis.set(xscale="log", yscale="log")
    plain_ticks(axis, "y")
    axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axis.minorticks_off()
    axis.grid(visible=True)


def name_rows(axis: Axes, names: Sequence[str]) -> Ints:
    """A row for each name, from top to bottom; where they are."""
    places = np.arange(len(names))[::-1]
    axis.set_yticks(places, names)
    axis.set_ylim(-0.6, len(names) - 0.4)
    axis.grid(visible=False, axis="y")
    axis.grid(visible=True, axis="x")
    return places


def label_axes(axes: Any, x: str = "", y: str = "") -> None:
    """Labels along the last row and the first column of axes."""
    for axis in axes[-1]:
        axis.set_xlabel(x)
    for axis in axes[:, 0]:
        axis.set_ylabel(y or axis.get_ylabel())


def note(axis: Axes, text: str, at: tuple[float, float], away: tuple[float, float], **options: Any) -> None:
    """Write a text beside a point of the axes, at an offset in points."""
    axis.annotate(text, at, away, textcoords="offset points", fontsize=9, **options)


def legend(figure: Any, axis: Axes, place: str = "upper center", columns: int = 1) -> None:
    """The legend of an axis, outside all of them."""
    figure.legend(*axis.get_legend_handles_labels(), loc=f"outside {place}", ncols=columns)


def plain_ticks(axis: Axes, which: str) -> None:
    """Plain numbers on a logarithmic axis: 1, 2, 5 in every decade, fewer on a long one, even steps on a short one."""
    (low, high), along = getattr(axis, f"get_{which}lim")(), getattr(axis, f"{which}axis")
    ticker = need("matplotlib.ticker", "lab", "A picture")
    in_a_decade = (1, 2, 5) if high < 100 * low else (1, 3) if high < 1000 * low else (1,)
    along.set_major_locator(ticker.AutoLocator() if high < 3 * low else ticker.LogLocator(subs=in_a_decade))
    along.set_major_formatter("{x:,g}")
    axis.minorticks_off()


def save(figure: Figure, kind: str) -> bytes:
    """A picture as the content of a PNG or PDF file, the same for the same picture."""
    buffer = io.BytesIO()
    made = {"png": {"Software": None}, "pdf": {"CreationDate": None, "Producer": None, "Creator": None}}[kind]
    figure.savefig(buffer, format=kind, dpi=130, metadata=made)
    figure.set_layout_engine("none")  # it has done its work, which takes long
    return buffer.getvalue()
