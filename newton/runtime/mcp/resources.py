"""The MCP resources: stored data of the calling agent under `newton://` URIs, each read by the tool that shows it."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from mcp.shared.uri_template import UriTemplate
from mcp.types import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from newton.dialogue.branches import SessionInfo
from newton.errors import NotFoundError
from newton.memory.inventory.memory_list import ListedMemory
from newton.operations.caller import OperationCaller
from newton.operations.cursors import decode_cursor, encode_cursor, invalid_cursor_error
from newton.operations.memories.lists import list_memories
from newton.runtime.api.middleware import request_limits
from newton.runtime.mcp.request_errors import check_result
from newton.runtime.tools.tool_registry import ORIGIN, TOOLS, run_tool
from newton.runtime.wiring import AgentServices

JSON_TYPE = "application/json"
PAGE_SIZE = 50  # resources of a page, besides the fixed ones
SESSIONS, MEMORIES = "sessions", "memories"  # the parts of the list, in this order
SEPARATOR = ":"  # between the part of the list and the position in it, in a cursor


class ResourceKind(NamedTuple):
    """A resource, or a family of resources if `uri` is a URI template (RFC 6570), with the tool that reads it.

    The variables of the template are the arguments of the tool.
    """

    uri: str
    title: str
    tool: str

    @property
    def name(self) -> str:
        return self.uri.removeprefix("newton://").partition("/")[0]

    @property
    def description(self) -> str:
        return TOOLS[self.tool].description


RESOURCES = (
    ResourceKind("newton://identity", "Identity", "identity"),
    ResourceKind("newton://censors", "Censors", "censors"),
    ResourceKind("newton://guardrails", "Guardrails", "guardrails"),
)
MEMORY_TEMPLATE = ResourceKind("newton://memories/{memory_id}{?offset,limit}", "Memory", "expand")
SESSION_TEMPLATE = ResourceKind("newton://sessions/{session}{?first,limit}", "Messages of a session", "messages")
DECISION_TEMPLATE = ResourceKind("newton://decisions/{decision_id}", "Decision", "decision")
TEMPLATES = (MEMORY_TEMPLATE, SESSION_TEMPLATE, DECISION_TEMPLATE)


def list_templates() -> ListResourceTemplatesResult:
    """Return the templates of the URIs."""
    templates = [
        ResourceTemplate(
            name=one.name, title=one.title, uri_template=one.uri, description=one.description, mime_type=JSON_TYPE
        )
        for one in TEMPLATES
    ]
    return ListResourceTemplatesResult(resource_templates=templates)


async def list_resources(newton: AgentServices, cursor: str | None) -> ListResourcesResult:
    """Return a page of the list: the fixed resources, the sessions, then the memories that `list_memories` lists.

    Sessions and memories are listed newest first. Raises InputError for an invalid cursor.
    """
    part, position = _decode(cursor)
    if part == SESSIONS:
        branches = await newton.sessions(ORIGIN).list_sessions()
        found, following = _select_page(branches, after=position)
        fixed = [] if cursor else [_describe_fixed(one) for one in RESOURCES]
        after = _encode(SESSIONS, following) if following else _encode(MEMORIES, "")
        return ListResourcesResult(resources=[*fixed, *map(_describe_session, found)], next_cursor=after)
    caller = OperationCaller(newton=newton, origin=ORIGIN)
    page = await list_memories(caller, limit=PAGE_SIZE, cursor=position or None)
    after = _encode(MEMORIES, page.next) if page.next else None
    return ListResourcesResult(resources=[_describe_memory(one) for one in page.items], next_cursor=after)


async def read_resource(newton: AgentServices, uri: str) -> ReadResourceResult:
    """Return the content of a resource as JSON. Raises NotFoundError if there is no such resource."""
    tool, arguments = _match_uri(uri)
    request_limits.check_body(json.dumps(arguments).encode())  # a decoded URI may contain what cannot be stored
    result = check_result(await run_tool(newton, tool, arguments))
    text = json.dumps(result.fields, ensure_ascii=False, default=str)
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=JSON_TYPE, text=text)])


def _match_uri(uri: str) -> tuple[str, Mapping[str, str]]:
    """Return the tool that reads a URI, and its arguments. Raises NotFoundError if no template matches.

    >>> _match_uri("newton://sessions/a%20plan?first=20")
    ('messages', {'session': 'a plan', 'first': '20'})
    """
    for kind in (*RESOURCES, *TEMPLATES):
        arguments = UriTemplate.parse(kind.uri).match(uri)
        if arguments is not None:
            return kind.tool, cast("Mapping[str, str]", arguments)
    known = ", ".join(one.uri for one in (*RESOURCES, *TEMPLATES))
    raise NotFoundError(f"There is no resource {uri!r}.", hint=f"The resources are: {known}.")


def _select_page(branches: Sequence[SessionInfo], *, after: str) -> tuple[Sequence[SessionInfo], str | None]:
    """Return the sessions that follow the one with the id `after`, and the id of the last one if more follow.

    The order is the time of creation, which no use of a session changes. Raises InputError for an unknown id.
    """
    newest_first = sorted(branches, key=lambda one: (one.created_at, one.session_id), reverse=True)
    ids = [str(one.session_id) for one in newest_first]
    if after and after not in ids:
        raise invalid_cursor_error()
    start = ids.index(after) + 1 if after else 0
    page = newest_first[start : start + PAGE_SIZE]
    return page, ids[start + PAGE_SIZE - 1] if start + PAGE_SIZE < len(ids) else None


def _encode(part: str, position: str) -> str:
    return encode_cursor(f"{part}{SEPARATOR}{position}")


def _decode(cursor: str | None) -> tuple[str, str]:
    if cursor is None:
        return SESSIONS, ""
    part, _, position = decode_cursor(cursor).partition(SEPARATOR)
    if part not in (SESSIONS, MEMORIES):
        raise invalid_cursor_error()
    return part, position


def _describe_fixed(kind: ResourceKind) -> Resource:
    return _describe(kind.uri, kind.name, title=kind.title, description=kind.description)


def _describe_session(branch: SessionInfo) -> Resource:
    uri = UriTemplate.parse(SESSION_TEMPLATE.uri).expand({"session": branch.session})
    return _describe(uri, branch.session, title=f"Session {branch.session}", description=branch.first_input)


def _describe_memory(memory: ListedMemory) -> Resource:
    """Return a memory as a resource. A decision is read as a decision, with its reasons and outcome."""
    is_decision, identifier = memory.kind == "decision", str(memory.memory_id)
    kind, variable = (DECISION_TEMPLATE, "decision_id") if is_decision else (MEMORY_TEMPLATE, "memory_id")
    uri = UriTemplate.parse(kind.uri).expand({variable: identifier})
    return _describe(uri, f"{memory.kind} {identifier[-8:]}", title=memory.micro, description=memory.text)


def _describe(uri: str, name: str, *, title: str | None, description: str | None) -> Resource:
    return Resource(uri=uri, name=name, title=title, description=description, mime_type=JSON_TYPE)
