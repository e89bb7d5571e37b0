"""The studies: a package each, with the help of its command in the docstring and a `Study` in the module `study`.

A new one is a package here and a line in `STUDIES`.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

from thalweg.lab.studies import control, paper, pca, thresholds

if TYPE_CHECKING:
    from thalweg.lab.study import Study

__all__ = ["STUDIES", "Entry"]


@dataclass(frozen=True)
class Entry:
    """Where a study is, and what its size "full" is, if it has one. What it needs is imported when it is loaded."""

    package: ModuleType
    full: str = ""

    @property
    def folder(self) -> str:
        """Where its results go by default."""
        return f"results/{self.package.__name__.rpartition('.')[2]}"

    def load(self) -> Study:
        """The study."""
        found: Study = importlib.import_module(f"{self.package.__name__}.study").STUDY
        return found


STUDIES = {  # by command
    "reproduce": Entry(paper, full="The slow projection at full size too: half an hour or more."),
    "control": Entry(control),
    "pca": Entry(pca),
    "thresholds": Entry(thresholds),
}
