"""The operation that stores a fact or an episode."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

from pydantic import Field

from newton.agent.field_types import CleanText, Importance, Name, Timestamp
from newton.agent.services.identity import IdentityService
from newton.agent.services.memories import FactDraft
from newton.errors import NotFoundError
from newton.heart.identity.standing_wishes import detect_instructions
from newton.memory.lookup import MemoryMention, short_id
from newton.memory.memory import PERSON_TIERS
from newton.memory.representations import one_line
from newton.operations.declaration import operation
from newton.operations.fields import CommandOption, ConversationSession
from newton.operations.text_format import format_redactions

if TYPE_CHECKING:
    from newton.agent.loop.tools import AgentToolset
    from newton.operations.caller import OperationCaller

REMEMBERED = {
    "new": "Remembered. ({id})",
    "confirmed": "The memory is already stored; it is now confirmed. ({id})",
    "unchanged": "The memory is already stored; nothing changed. ({id})",
}
PROPOSED_HINT = (
    "This is an instruction, not a fact. It applies after a person accepts it (`newton identity proposals`)."
)
QUARANTINE_HINT = "it is not used before a person or other sources confirm it."


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedMemory:
    """A stored fact or episode, and what a fact changed.

    `status` is `proposed` for a standing instruction of a model, which is proposed for the identity and not stored.
    `started_at` is the time at which the call began; `process` takes it as `since`. `replaced` are the facts that the
    new fact superseded, `contested` the current facts that it may contradict. `redacted` counts the secrets that were
    removed from the text by kind. `warning` is that of a censor which text of a person matches; the text is stored
    nevertheless. `embedder_error` is why the memory is not embedded yet. `hint` says why it is not used.
    """

    memory_id: UUID | None
    kind: Literal["fact", "episode"]
    status: Literal["new", "confirmed", "unchanged", "proposed"]
    started_at: datetime
    redacted: Mapping[str, int]
    replaced: Sequence[MemoryMention] = ()
    contested: Sequence[MemoryMention] = ()
    warning: str | None = None
    embedder_error: str | None = None
    hint: str | None = None


def format_remembered(stored: RememberedMemory) -> str:
    """Format a stored memory: its id, the facts that it replaced, and known facts that it may contradict."""
    if stored.memory_id is None:
        return stored.hint or ""
    memory_id = short_id(stored.memory_id)
    lines = [REMEMBERED[stored.status].format(id=memory_id)]
    lines += [f"  {format_redactions(stored.redacted)}"] if stored.redacted else []
    lines += [f"  Replaced: {short_id(one.memory_id)} {one_line(one.text)}" for one in stored.replaced]
    lines += [f"  May contradict: {short_id(one.memory_id)} {one_line(one.text)}" for one in stored.contested]
    if stored.contested:
        settle = f"`newton conflicts settle {memory_id} newer|older|both|same`"
        lines.append(f"  All these facts are kept. To say which is right: {settle}")
    return "\n".join(lines)


def _list_notices(stored: RememberedMemory) -> Iterator[str]:
    if stored.warning:
        yield f"(A censor forbids the text, which is stored nevertheless. The censor: {stored.warning})"
    if stored.embedder_error:
        yield f"(The memory is not embedded yet: {stored.embedder_error}. Search finds it by its words only.)"


async def _report(
    caller: "OperationCaller",
    stored: RememberedMemory,
    embedder_error: str | None,
    *,
    content: str,
    title: str | None = None,
    **_: object,
) -> RememberedMemory:
    """Return the result with its effects on other facts, which a comparison after the write finds."""
    if caller.is_person:  # its result has the warning; that of a model's tool is a field beside the result
        check = await caller.gate.check("\n".join([*([title] if title else []), content]), "action", dry_run=True)
        stored = replace(stored, warning=check.message if check.matches else None)
    stored = replace(stored, embedder_error=embedder_error)
    if stored.kind == "episode" or stored.memory_id is None:
        return stored
    try:
        effects = await caller.curation.find_effects(stored.memory_id)
    except NotFoundError:  # a repeated request, whose fact has been deleted meanwhile
        return stored
    kept = "is" if stored.status == "new" else "is still"
    hint = f"The memory {kept} in quarantine: {QUARANTINE_HINT}" if effects.quarantined else None
    return replace(stored, replaced=effects.replaced, contested=effects.contested, hint=hint)


@operation(
    "POST /v1/memories",
    "adds",
    act="state",
    name="remember",
    command="remember",
    text=format_remembered,
    names_commands=True,
    notices=_list_notices,
    report=_report,
    is_idempotent=True,
    proposes_rules=True,
    core=("content", "subject", "attribute", "confidence", "source", "session"),
)
async def remember(
    caller: "OperationCaller",
    content: Annotated[CleanText, Field(description="One statement, e.g. 'Ana reviews every migration.'")],
    *,
    title: Annotated[
        Name | None,
        CommandOption("episode"),
        Field(description="Store the text as an episode (an experience) with this title, not as a fact."),
    ] = None,
    subject: Annotated[
        Name | None,
        Field(description="The person or thing that the fact is about, e.g. 'Ana'; `lessons` for a lesson."),
    ] = None,
    attribute: Annotated[
        Name | None, Field(description="The property of the subject that the fact states, e.g. 'home'.")
    ] = None,
    confidence: Annotated[
        float | None, Field(ge=0, le=1, description="Probability that the fact is true, from 0 to 1.")
    ] = None,
    importance: Annotated[Importance | None, Field(description="The importance, from 0 to 10.")] = None,
    source: Annotated[
        Literal["own", "tool", "web"] | None,
        Field(
            description="Where the fact is from: own (the user said it, or you concluded it from the user's words),"
            " tool (a tool, a file or anything else that you read) or web (a page). Default: own, for a model tool."
        ),
    ] = None,
    at: Annotated[
        Timestamp | None, Field(description="When the fact became true, or the episode began. Default: now.")
    ] = None,
    until: Annotated[Timestamp | None, Field(description="When the fact stops being true, if known.")] = None,
    session: ConversationSession = None,
) -> RememberedMemory:
    """Store a fact permanently, as one sentence that is clear without context. Storing a known fact confirms it.

    Set `source` to where it is from: a fact that is not `own` is used only after a person or other sources confirm it.
    Do not store facts that the context already has, and never store secrets.

    Example: newton remember "The mill has three floors." --subject mill --session s
    """
    started_at, is_person = caller.scope.now(), caller.trust in PERSON_TIERS
    source = source or ("own" if is_person else "tool")
    toolset = (await caller.toolset_in(session, creates=True)).with_trust([] if source == "own" else [source])
    if title is not None:
        stored = await toolset.memories.remember_episode(content, title=title, occurred_at=at)
    elif not is_person and await _propose_instructions(toolset, content):
        return RememberedMemory(
            memory_id=None, kind="fact", status="proposed", started_at=started_at, redacted={}, hint=PROPOSED_HINT
        )
    else:
        fact = FactDraft(
            content=content,
            subject=subject,
            attribute=attribute,
            confidence=confidence,
            importance=importance,
            at=at,
            until=until,
            is_by_model=not is_person,
        )
        stored = await toolset.memories.remember(fact)
    await toolset.session_use.record([stored.memory_id])
    return RememberedMemory(
        memory_id=stored.memory_id,
        kind="fact" if title is None else "episode",
        status=stored.status,
        started_at=started_at,
        redacted=stored.redacted,
    )


async def _propose_instructions(toolset: "AgentToolset", content: str) -> bool:
    """Propose the standing instructions in a text of a model for the identity; return whether it has some."""
    instructions = detect_instructions(content)
    identity = IdentityService(scope=toolset.memories.scope)
    for one in instructions:
        await identity.propose(one.part, one.text, trust=toolset.max_trust)
    return bool(instructions)
