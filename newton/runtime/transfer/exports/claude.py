"""Reader of the data export of Claude: conversations with the text of their files, projects, and Claude's memories.

Format: `conversations.json`, a list of conversations with `chat_messages`; `projects.json` or a file for each project,
with `docs`; `memories.json`, with the texts that Claude wrote about the user and the projects.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pydantic import JsonValue

from newton.errors import InputError
from newton.runtime.transfer.exports.export_files import read_entries
from newton.runtime.transfer.exports.export_lines import (
    ExportLine,
    JsonObject,
    build_document_line,
    build_fact_line,
    build_message_line,
    derive_ref,
    extract_text,
    find_time,
    is_object,
    list_objects,
    read_change_time,
)

FILES = ("conversations*.json", "memories.json", "memories/*.json", "projects.json", "projects/*.json")
_ROLES = {"human": "user", "assistant": "assistant"}
_MEMORY_FIELDS = ("conversations_memory", "project_memories")
_LIST_MARK = re.compile(r"^(?:[-*+]|\d+[.)])\s+")
_HEADING = re.compile(r"\*\*[^*]+\*\*:?")


def matches(entry: JsonObject) -> bool:
    """Return whether an entry is a conversation, a project or a memory of Claude."""
    return "chat_messages" in entry or _is_project(entry) or any(name in entry for name in _MEMORY_FIELDS)


def read_lines(path: Path, passed_over: Counter[str]) -> Iterator[ExportLine]:
    """Yield messages, documents and facts to import from a Claude export (a file, folder or archive).

    They are those of conversations, projects and memories. Count in `passed_over` what is left out, by reason.
    """
    changed = read_change_time(path)
    for place, entry in read_entries(path, *FILES):
        if isinstance(entry, InputError):
            yield place, entry
        elif isinstance(entry.get("chat_messages"), list):
            yield from _read_conversation(place, entry, changed, passed_over)
        elif _is_project(entry):
            yield from _read_project(place, entry, passed_over)
        elif any(name in entry for name in _MEMORY_FIELDS):
            yield from _read_memories(place, entry, changed)
        else:
            yield place, InputError("it has no messages under 'chat_messages'.", hint="Export the conversation again.")


def _is_project(entry: JsonObject) -> bool:
    return isinstance(entry.get("docs"), list) and "name" in entry


def _read_conversation(
    place: str, conversation: JsonObject, changed: str | None, passed_over: Counter[str]
) -> Iterator[ExportLine]:
    name, messages = conversation.get("name"), list_objects(conversation.get("chat_messages"))
    place = f"{place} ({name})" if name else place
    first = messages[0].get("uuid") if messages else ""
    session = f"claude:{conversation.get('uuid') or first}"
    at = find_time(conversation.get("created_at"))
    for number, message in enumerate(messages, start=1):
        at = find_time(message.get("created_at")) or at
        ref, role = str(message.get("uuid") or f"{session}:{number}"), _ROLES.get(str(message.get("sender")))
        attachments = list_objects(message.get("attachments"))
        content = _read_content(message, [*attachments, *list_objects(message.get("files"))])
        if role is None or not content:
            passed_over["empty messages" if role else "messages of others"] += 1
            continue
        line = build_message_line(session=session, ref=ref, role=role, content=content, at=at or changed)
        yield f"{place}, message {number}", line
        for file, attachment in enumerate(attachments, start=1):
            text, title = attachment.get("extracted_content"), str(attachment.get("file_name") or "attachment")
            if isinstance(text, str) and text.strip():
                yield (
                    f"{place}, message {number}, {title}",
                    build_document_line(ref=f"{session}:{ref}:{file}", title=title, content=text),
                )


def _read_content(message: JsonObject, files: list[JsonObject]) -> str:
    """Return the text of a message with the names of its files, without reasoning and calls of tools."""
    blocks = [one for one in list_objects(message.get("content")) if one.get("type") == "text"]
    text = extract_text(list(map(dict, blocks))) or extract_text(message.get("text"))
    names = [f"[file: {one['file_name']}]" for one in files if one.get("file_name")]
    return "\n".join(filter(None, (text, *names)))


def _read_project(place: str, project: JsonObject, passed_over: Counter[str]) -> Iterator[ExportLine]:
    """Yield the documents of a project, and its description as one. Its instructions are left out."""
    name, ref = str(project.get("name")), f"claude-project:{project.get('uuid')}"
    if extract_text(project.get("prompt_template")):
        passed_over["instructions of projects"] += 1
    if project.get("is_starter_project"):
        passed_over["sample projects"] += 1
        return
    if description := extract_text(project.get("description")):
        yield f"{place} ({name})", build_document_line(ref=ref, title=name, content=description)
    for number, one in enumerate(list_objects(project.get("docs")), start=1):
        title, text = str(one.get("filename") or f"{name} {number}"), extract_text(one.get("content"))
        if text:
            line = build_document_line(ref=f"{ref}:{one.get('uuid') or title}", title=title, content=text)
            yield f"{place} ({name}), {title}", line
        else:
            passed_over["documents without text"] += 1


def _read_memories(place: str, entry: JsonObject, changed: str | None) -> Iterator[ExportLine]:
    """Yield a fact for each paragraph and list item of the texts that Claude keeps about the user and the projects."""
    by_project = entry.get("project_memories")
    texts: list[tuple[str, str | None, JsonValue]] = [("account", "user", entry.get("conversations_memory"))]
    if is_object(by_project):
        texts += [(project, None, text) for project, text in by_project.items()]
    for name, subject, text in texts:
        for statement in _split_statements(extract_text(text)):
            ref = derive_ref("claude-memory", name, statement)
            yield place, build_fact_line(ref=ref, content=statement, at=changed, subject=subject)


def _split_statements(text: str) -> Iterator[str]:
    """Yield the paragraphs and list items of a Markdown text, each on one line, without headings."""
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)", text):
        line = _LIST_MARK.sub("", " ".join(paragraph.split()))
        if line and not line.startswith("#") and not _HEADING.fullmatch(line):
            yield line
