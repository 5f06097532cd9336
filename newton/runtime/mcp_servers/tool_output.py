"""The output of a tool of a server as one text of limited length. Pure."""

import json
from typing import Any

from newton.agent.actions.external_tools import ExternalResult
from newton.memory.hygiene import clean_model_text, remove_template_marks

MAX_OUTPUT_CHARS = 10_000  # of one result; of a longer one, the model gets the beginning and the end


def to_result(result: Any) -> ExternalResult:
    """Return a result of the MCP client as text. Images and other data are replaced by a description."""
    parts = [_describe_block(block) for block in result.content]
    if not any(parts) and result.structured_content is not None:
        parts = [json.dumps(result.structured_content, ensure_ascii=False)]
    text = "\n".join(part for part in parts if part)
    whole_text = text if len(text) > MAX_OUTPUT_CHARS else None
    return ExternalResult(cut_output(text), result.is_error is True, whole_text)


def cut_output(text: str, max_chars: int = MAX_OUTPUT_CHARS) -> str:
    """Return a text without secrets and marks of chat templates, its middle left out if it is longer than `max_chars`.

    >>> cut_output("a" * 30 + "b" * 30, 20)
    'aaaaaaaaaa\\n[… 40 characters are left out …]\\nbbbbbbbbbb'
    """
    head, tail = text[: max_chars // 2], text[-(max_chars // 2) :]
    if len(text) <= max_chars:
        return _clean(text) or "(no output)"
    note = f"[… {len(text) - len(head) - len(tail):,} characters are left out …]"
    return f"{_clean(head)}\n{note}\n{_clean(tail)}"


def _clean(text: str) -> str:
    return remove_template_marks(clean_model_text(text))


def _describe_block(block: Any) -> str:
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return f"[{block.type}, {block.mime_type}, {len(block.data) * 3 // 4:,} bytes]"
        case "resource_link":
            return f"[resource {block.name}: {block.uri}]"
        case "resource":
            text = getattr(block.resource, "text", None)
            return text if text is not None else f"[resource {block.resource.uri}]"
        case _:
            return f"[{block.type}]"
