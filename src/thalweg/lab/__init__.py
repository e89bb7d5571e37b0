"""The laboratory: named streams and algorithms, tables from files, jobs that survive interruption, the paper's figures.

Needs the extra `lab`. The command line `thalweg` is a thin layer over it.
"""

from thalweg.cards import Recipe
from thalweg.lab.catalog import ALGORITHMS, DOMAINS, build, build_domain
from thalweg.lab.streams import STREAMS, Source, Stream, draw
from thalweg.lab.tables import Table, read_table

__all__ = [
    "ALGORITHMS", "DOMAINS", "STREAMS", "Recipe", "Source", "Stream", "Table", "build", "build_domain", "draw",
    "read_table",
]  # fmt: skip
