"""Make the library of kernels while the package is built: for wheels, `pip install .` and editable installs."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelHook(BuildHookInterface):
    """Put the library beside the package's sources, or into the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before a wheel is packed."""
        if self.target_name != "wheel":
            return
        sys.path.insert(0, str(Path(self.root) / "src"))
        from thalweg._build import make
        from thalweg._kernels import library

        editable = version == "editable"
        folder = library.FOLDER if editable else Path(self.directory) / "kernels"
        if make.compiler() is None:
            self.app.display_warning(
                "thalweg: no C compiler was found (cc, gcc or clang), so the package is installed without its library "
                "of compiled kernels. It works with numba, which compiles them at first use: "
                "pip install 'thalweg[jit]'. Or install a compiler, then thalweg again."
            )
            return
        make.build(folder, installed=not editable, report=self.app.display_info)
        if not editable:
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
            for file in folder.iterdir():
                build_data["force_include"][str(file)] = f"thalweg/_library/{file.name}"
