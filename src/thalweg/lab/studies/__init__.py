"""The studies: a package each, with the help of its command in the docstring and a `Study` in the module `study`.

The reproduction of the paper is installed with the package. The others are in the folder `studies` of a checkout and
are found here as well, as `thalweg.lab.studies.NAME`. A new one is a package there: its command is
`thalweg study NAME`.
"""

import importlib
import pathlib
from types import ModuleType

from thalweg.lab.studies import paper

__all__ = ["OUTSIDE", "REPRODUCE", "STUDIES"]

REPRODUCE = "reproduce"  # the command of the paper's reproduction


def _outside() -> pathlib.Path | None:
    """Return the folder `studies` of a checkout; None in an installed package."""
    source = pathlib.Path(__file__).resolve().parents[3]
    folder = source.parent / "studies"
    return folder if source.name == "src" and folder.is_dir() else None


OUTSIDE = _outside()
STUDIES: dict[str, ModuleType] = {REPRODUCE: paper}  # by command
if OUTSIDE is not None:
    __path__.append(str(OUTSIDE))
    for _package in sorted(OUTSIDE.glob("*/__init__.py")):
        STUDIES[_package.parent.name] = importlib.import_module(f"{__name__}.{_package.parent.name}")
