"""The package newton_client, laid out as its wheel lays it out."""

import asyncio
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


async def run(*words: str, env: dict[str, str] | None = None) -> str:
    """The output of a process that ends well."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*words, stdout=pipe, stderr=pipe, env=env)
    out, err = await process.communicate()
    assert process.returncode == 0, (out + err).decode()
    return out.decode()
