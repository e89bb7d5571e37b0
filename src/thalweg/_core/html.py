"""Tables for notebooks: the HTML that `_repr_html_` returns."""

from collections.abc import Iterable, Sequence
from html import escape

MOST_ROWS = 30


def fact_table(title: str, facts: Iterable[tuple[str, object]]) -> str:
    """Return a title and a table of names and values."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(str(value))}</td></tr>'
        for name, value in facts
    )
    return f"<div><strong>{escape(title)}</strong><table>{rows}</table></div>"


def row_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a title and a table with a line of heads; of long tables the first rows."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_short(cell))}</td>" for cell in row) + "</tr>" for row in rows[:MOST_ROWS]
    )
    more = f"<p>{len(rows) - MOST_ROWS} more rows</p>" if len(rows) > MOST_ROWS else ""
    return f"<div><strong>{escape(title)}</strong><table><tr>{head}</tr>{body}</table>{more}</div>"


def _short(cell: object) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)
