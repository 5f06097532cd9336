"""Examples in docstrings: a module without one is not imported by each process of the tests just to look for them."""

from pathlib import Path

PACKAGE = Path(__file__).parent / "newton"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    is_module = collection_path.suffix == ".py" and collection_path.is_relative_to(PACKAGE)
    return True if is_module and ">>>" not in collection_path.read_text(encoding="utf-8") else None
