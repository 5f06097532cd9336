"""The package newton_client, laid out as its wheel lays it out."""

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
DISTRIBUTION = ROOT / "clients" / "python"


def lay_out(folder: Path) -> Path:
    """Copy the package to `folder`, which then goes into the search path of Python."""
    package = folder / "newton_client"
    leave_out = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "newton" / "client", package, ignore=leave_out)
    shutil.copytree(DISTRIBUTION / "adapters", package / "adapters", ignore=leave_out)
    return folder
