"""Debug lines that describe a context as SSE comments, which clients ignore. Pure."""

import json
from collections.abc import Sequence

from newton.cognition.assembly.scored_candidate import ScoredCandidate
from newton.cognition.bundles.bundle import Bundle
from newton.memory.representations import one_line

MAX_TEXT_CHARS = 60  # characters shown of each item


def format_debug_lines(bundle: Bundle) -> list[str]:
    """Return one SSE comment each for the frame, tasks, document passages, web results and other memories.

    An empty group has none.
    """
    web = [c for c in bundle.items if c.kind == "artifact" and c.scored.found.trust == "web"]
    passages = [c for c in bundle.items if c.kind == "passage"]
    rest = [c for c in bundle.items if c not in web and c not in passages]
    groups = [("RAG_DEBUG", passages), ("SEARCH_DEBUG", web), ("MEMORY_DEBUG", rest)]
    items = [_format_line(name, bundle, items) for name, items in groups if items]
    return [_format_frame(bundle), *_format_tasks(bundle), *items]


def _format_frame(bundle: Bundle) -> str:
    choice = bundle.frame_choice
    fields = {"frame": choice.frame, "confidence": round(choice.confidence, 4), "reason": choice.reason}
    return f": FRAME_DEBUG {json.dumps(fields, ensure_ascii=False)}"


def _format_tasks(bundle: Bundle) -> list[str]:
    tasks = bundle.assembly_input.tasks
    lines = [_shorten_text(block.text) for block in (*tasks.root, *tasks.path, *tasks.siblings)]
    fields = {"tasks": lines, "omitted": tasks.omitted_count}
    return [f": TASK_DEBUG {json.dumps(fields, ensure_ascii=False)}"] if lines else []


def _shorten_text(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= MAX_TEXT_CHARS else f"{line[: MAX_TEXT_CHARS - 2]} …"


def _format_line(name: str, bundle: Bundle, items: Sequence[ScoredCandidate]) -> str:
    fields = {
        "bundle_id": str(bundle.bundle_id),
        "tokens": sum(c.tokens for c in items),
        "items": [
            {
                "memory_id": str(c.memory_id),
                "kind": c.kind,
                "layer": c.layer,
                "detail": c.detail,
                "tokens": c.tokens,
                "score": round(c.score, 4),
                "text": _shorten_text(c.text),
            }
            for c in items
        ],
    }
    return f": {name} {json.dumps(fields, ensure_ascii=False)}"
