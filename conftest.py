"""Examples in docstrings: a module without one is not imported by each process of the tests just to look for them."""

from pathlib import Path

ROOT = Path(__file__).parent
CODE = (ROOT / "newton", ROOT / "bench")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    is_module = collection_path.suffix == ".py" and any(map(collection_path.is_relative_to, CODE))
    return True if is_module and ">>>" not in collection_path.read_text(encoding="utf-8") else None
