"""What the pictures of studies share: one look for each learner, axes, legends and files."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg._extras import new_figure

__all__ = [
    "COLOURS", "GREY", "blank", "legend", "log_log", "look", "name_rows", "plain_ticks", "save", "side", "tidy",
]  # fmt: skip

# Okabe and Ito's colours, which all kinds of colour vision tell apart.
BLACK, GREY, BLUE, VERMILION = "#000000", "#555555", "#0072B2", "#D55E00"
GREEN, PINK, SKY, ORANGE = "#009E73", "#CC79A7", "#56B4E9", "#E69F00"
COLOURS = (BLUE, VERMILION, GREEN, PINK, BLACK)

Look = tuple[str, str, Any]
# Colour, mark and line of whoever is drawn by name: marks and lines say it again, for print.
LOOKS: dict[str, Look] = {
    "LQR": (GREY, "|", "-"),
    "H-infinity": (GREEN, "v", "-"),
    "GPC": (ORANGE, "s", "-"),
    "ScreamControl": (VERMILION, "D", "--"),
    "EfficientControl": (BLUE, "o", "-"),
    "EfficientPCA": (BLUE, "o", "-"),
    "AdaptivePCA": (SKY, "s", "-"),
    "DescentPCA": (VERMILION, "v", "-"),
    "YuanLamperskiPCA": (GREEN, "D", "-"),
    "OjaPCA": (PINK, "^", "-"),
    "IncrementalPCA": (GREY, "X", "-"),
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


def look(name: str) -> Look:
    """Colour, mark and line of a learner."""
    return LOOKS[name]


def side(name: str) -> Look:
    """Colour, mark and line where only two sides are told apart: methods with one projection, and all others."""
    return (BLUE, "o", "-") if name.startswith("Efficient") else (VERMILION, "s", "--")


def blank(width: float, height: float) -> Any:
    """An empty Figure of so many inches."""
    return new_figure("A picture", width, height)


def tidy(axis: Any, grid: str = "y") -> None:
    """No box, and a pale grid behind the lines."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis=grid, alpha=0.3)
    axis.set_axisbelow(True)
    axis.tick_params(labelsize=9)


def log_log(axis: Any, ticks: Sequence[float]) -> None:
    """Both axes logarithmic: these numbers along one, few plain ones along the other."""
    axis.set(xscale="log", yscale="log")
    plain_ticks(axis, "y")
    axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axis.minorticks_off()
    tidy(axis, "both")


def name_rows(axis: Any, names: Sequence[str]) -> NDArray[np.int64]:
    """A row for each name, from top to bottom; where they are."""
    places = np.arange(len(names))[::-1]
    axis.set_yticks(places, names, fontsize=9)
    axis.set_ylim(-0.6, len(names) - 0.4)
    tidy(axis, "x")
    return places


def legend(figure: Any, axis: Any, place: str = "upper center", columns: int = 1, size: int = 9) -> None:
    """The legend of an axis, outside all of them."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc=f"outside {place}", ncols=columns, frameon=False, fontsize=size)


def plain_ticks(axis: Any, which: str) -> None:
    """Plain numbers on a logarithmic axis: 1, 2, 5 in every decade, fewer on a long one, even steps on a short one."""
    low, high = axis.get_xlim() if which == "x" else axis.get_ylim()
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < 300 else (1,)
    ticks = [b * 10.0**e for e in decades for b in steps]
    if high < 3 * low:
        step = next(tick for tick in [*ticks, high] if high - low < 7 * tick)
        ticks = [step * k for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
    ticks = [tick for tick in ticks if low <= tick <= high]
    set_ticks = axis.set_xticks if which == "x" else axis.set_yticks
    set_ticks(ticks, [f"{tick:,.4g}" if tick < 1e4 else f"{tick:,g}" for tick in ticks], fontsize=9)
    axis.minorticks_off()


def save(figure: Any, kind: str) -> bytes:
    """A picture as the content of a PNG or PDF file, the same for the same picture."""
    buffer = io.BytesIO()
    made = {"png": {"Software": None}, "pdf": {"CreationDate": None, "Producer": None, "Creator": None}}[kind]
    figure.savefig(buffer, format=kind, dpi=130, metadata=made)
    figure.set_layout_engine("none")  # it has done its work, which takes long
    return buffer.getvalue()
