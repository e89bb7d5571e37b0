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


_source = pathlib.Path(__file__).resolve().parents[3]
_folder = _source.parent / "studies"
OUTSIDE = _folder if _source.name == "src" and _folder.is_dir() else None  # of a checkout; None in an installed package
STUDIES: dict[str, ModuleType] = {REPRODUCE: paper}  # by command
if OUTSIDE is not None:
    __path__.append(str(OUTSIDE))
    for _package in sorted(OUTSIDE.glob("*/__init__.py")):
        STUDIES[_package.parent.name] = importlib.import_module(f"{__name__}.{_package.parent.name}")
