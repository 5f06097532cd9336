"""A hook of MkDocs: in the search, design decisions come after the pages that say how something is used."""  # noqa: INP001 (MkDocs loads it by its path)

from typing import Any

DECISION_BOOST = 0.2


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    """Lower the rank of a decision record in the search."""
    if page.file.src_uri.startswith("decisions/0"):
        page.meta.setdefault("search", {})["boost"] = DECISION_BOOST
    return markdown
