"""The system message of a prompt and the block before its input, which later prompts of the session send again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import NamedTuple
from uuid import UUID

from newton.agent.prompt_records.spans import PromptOrigin
from newton.agent.prompting.memory_delta import (
    INPUT_HEADER,
    NewContext,
    ReplacedFact,
    SentContext,
    build_block,
    list_rules,
)
from newton.agent.prompting.system_prompt import (
    SystemFacts,
    find_edition,
    find_local_zone,
    render_rules,
    render_system_prompt,
)
from newton.agent.scope import AgentScope
from newton.cognition.assembly.always_on import select_always_on
from newton.cognition.assembly.fact_labels import strip_start_prefix
from newton.cognition.assembly.render import count_header_tokens, render, split_by_input_dependence
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.session_context import staleness
from newton.cognition.session_context.service import SessionContext
from newton.cognition.session_context.staleness import ReplacedMemory
from newton.db.pool import Tx
from newton.dialogue import log
from newton.dialogue.log import PromptBlock
from newton.dialogue.view import MemoryBlock, ViewMessage
from newton.heart.censors import Censor
from newton.heart.identity import identity_store
from newton.heart.identity.tenets import render_tenet
from newton.heart.identity.user_names import MAX_NAMES
from newton.heart.persons import person_store
from newton.memory.memory import Trust, lowest_known_trust

RULES_SOURCE = "identity and constraints"  # among the missing sources of a context


class InputPlace(NamedTuple):
    """The session of a prompt and the position of its input; `is_stored` is False if nothing of the turn is stored.

    `is_inherited` means that a branch answers a message of the session that it continues.
    """

    session_id: UUID | None
    position: int
    is_stored: bool
    is_inherited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPrompt:
    """The parts that Newton adds to a prompt: the system message, and the text from memory before the input.

    `system_position` is the place of the system message among the stored parts (blocks). `new_blocks` are sent for the
    first time. `min_trust` is the lowest trust of the quarantined memories in all blocks of the prompt.
    """

    system: str = ""
    system_position: int = -1
    is_system_stored: bool = False
    memory: str = ""
    new_blocks: tuple[PromptBlock, ...] = ()
    min_trust: Trust | None = None

    def to_origin(
        self,
        place: InputPlace,
        view: Sequence[ViewMessage],
        dialogue: Sequence[ViewMessage],
        context: SessionContext | None,
    ) -> PromptOrigin | None:
        """Return what the record of the prompt is made from; None for a private turn, which is not recorded.

        `view` are the messages of the session, and `dialogue` those that this kind of turn sends.
        """
        if place.session_id is None or not place.is_stored:
            return None
        sent = {item.first for item in dialogue}
        dropped = [item for item in view if item.first not in sent]
        return PromptOrigin(
            session_id=place.session_id,
            input_position=place.position,
            loaded=view,
            filtered=frozenset(position for item in dropped for position in range(item.first, item.last + 1)),
            bundle_id=context.bundle.bundle_id if context else None,
            system_position=self.system_position,
            stored_system=self.system if self.is_system_stored else "",
            new_blocks=self.new_blocks,
        )


NO_SESSION_PROMPT = SessionPrompt()


@dataclass(frozen=True, slots=True, kw_only=True)
class _SessionState:
    """The stored system message of a session, the facts for a new one, and memories that were replaced.

    `introductions` are the memories from which the names of the user are.
    """

    facts: SystemFacts
    introductions: tuple[UUID, ...] = ()
    system: PromptBlock | None = None
    replaced: Sequence[ReplacedMemory] = ()


async def read_user_names(tx: Tx, scope: AgentScope) -> tuple[list[str], tuple[UUID, ...]]:
    """Return the names by which the user introduced themselves, and the memories from which they are.

    Of a project, those of the agent above it follow.
    """
    names, telling = dict[str, None](), list[UUID]()
    async for agent_id in scope.visit_levels(tx):
        found, memory_ids = await person_store.read_user_names(tx, agent_id=agent_id)
        names |= dict.fromkeys(found)
        telling += memory_ids
    return list(names)[:MAX_NAMES], tuple(telling)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPromptBuilder:
    """Builds what Newton adds to the prompts of one agent. `zone` is the time zone of the user."""

    scope: AgentScope
    zone: tzinfo

    @classmethod
    def create(cls, scope: AgentScope) -> "SessionPromptBuilder":
        """Return a builder for the agent of `scope` and the time zone of this machine."""
        return cls(scope=scope, zone=find_local_zone())

    async def build(
        self,
        place: InputPlace,
        context: SessionContext | None,
        *,
        view: Sequence[ViewMessage],
        conversation: Sequence[ViewMessage],
    ) -> SessionPrompt:
        """Return the system message and the text from memory (block) before the input.

        `view` are all messages of the session, and `conversation` those that are sent. The system message stays the
        same until messages are summarized. An input that was sent before keeps its block, to which only changed rules
        and another day are added.
        """
        sent = [item for item in conversation if item.memory]
        async with self.scope.transaction() as tx:
            state = await self._read_state(tx, place, [item.first for item in sent], find_edition(view))
        system = self._choose_system(place, context, state, view)
        earlier = next((item.memory for item in view if item.first == place.position and item.memory), None)
        memory = self._build_memory(context, state, system, conversation, earlier)
        external_trust = context.bundle.min_external_trust if context else None
        blocks = [system] if system.edition and system is not state.system else []
        if memory and context and earlier is None:
            blocks.append(self._to_memory_block(place, memory, context, state))
        # a block belongs to the session of its message: one for an inherited message is only sent
        is_new = place.is_stored and place.position >= 0 and not place.is_inherited
        return SessionPrompt(
            system=system.text,
            system_position=system.position,
            is_system_stored=system is state.system,
            memory=memory,
            new_blocks=tuple(blocks) if is_new else (),
            min_trust=lowest_known_trust([external_trust, *(item.memory.min_trust for item in sent if item.memory)]),
        )

    async def build_rules(self, censors: Sequence[Censor], *, max_tokens: int) -> SessionPrompt:
        """Return the system message of a prompt without memory: the identity and the constraints, if there are any.

        `censors` are those in force.
        """
        async with self.scope.transaction() as tx:
            identity = await identity_store.read_identity(tx, agent_id=self.scope.agent_id)
        header_tokens = count_header_tokens(self.scope.count_tokens)
        found = select_always_on(
            identity,
            censors,
            triggered={one.memory_id for one in censors},
            max_tokens=max_tokens,
            header_tokens=header_tokens,
            count_tokens=self.scope.count_tokens,
        )
        sections = {"identity": found.identity.blocks, "censors": found.censors.blocks}
        return SessionPrompt(system=render_rules(render(sections, header_tokens=header_tokens).text))

    async def _read_state(self, tx: Tx, place: InputPlace, positions: Sequence[int], edition: str) -> _SessionState:
        """Read what is stored of the session. Its system message is returned only if it was made for this edition.

        An edition is the version of the template and the last summary; a new system message is made for a new one.
        """
        agent_id, began_at, system, replaced = self.scope.agent_id, self.scope.now(), None, ()
        if place.session_id:
            key = {"agent_id": agent_id, "session_id": place.session_id}
            began_at, system = await log.find_system_block(tx, **key)
            replaced = await staleness.list_replaced(tx, positions, **key) if positions else ()
        state = _SessionState(facts=SystemFacts(began_at=began_at, zone=self.zone), replaced=replaced)
        if system and system.edition == edition:
            return replace(state, system=system)
        names, introductions = await read_user_names(tx, self.scope)
        return replace(state, facts=replace(state.facts, names=names), introductions=introductions)

    def _choose_system(
        self, place: InputPlace, context: SessionContext | None, state: _SessionState, view: Sequence[ViewMessage]
    ) -> PromptBlock:
        """Return the stored system message if `state` has one, else a new one.

        Without the rules of a context, a new one has no edition, so that it is not stored.
        """
        if state.system:
            return state.system
        is_complete = context is not None and RULES_SOURCE not in context.bundle.missing
        return replace(self._to_system_block(place, context, state), edition=find_edition(view) if is_complete else "")

    def _build_memory(
        self,
        context: SessionContext | None,
        state: _SessionState,
        system: PromptBlock,
        conversation: Sequence[ViewMessage],
        earlier: MemoryBlock | None,
    ) -> str:
        """Return the text before the input: what the context adds to the earlier parts of the prompt.

        `earlier` is the text with which the input was sent before.
        """
        before = earlier.text if earlier else ""
        if context is None:
            return before
        bundle = context.bundle
        added = build_block(
            NewContext(
                text="" if earlier else bundle.text,
                today=self.scope.now().astimezone(self.zone).date(),
                is_new=context.method != "stood" and earlier is None,
                shows_frame=bundle.frame_choice.is_sure,
                rules=None if RULES_SOURCE in bundle.missing else list_rules(bundle.text),
                kept_rules=context.kept_rules | _list_omitted_lines(bundle),
                replaced=[
                    ReplacedFact(strip_start_prefix(one.text), tuple(map(strip_start_prefix, one.successors)))
                    for one in state.replaced
                    if earlier is None
                ],
            ),
            SentContext(
                system=system.text,
                day=state.facts.local_beginning.date(),
                blocks=[*(item.memory.text for item in conversation if item.memory), before],
            ),
        )
        return before.removesuffix(INPUT_HEADER) + added if added else before

    def _to_system_block(self, place: InputPlace, context: SessionContext | None, state: _SessionState) -> PromptBlock:
        rules = split_by_input_dependence(context.bundle.text)[0] if context else ""
        text = render_system_prompt(state.facts, rules)
        return PromptBlock(
            kind="system",
            position=place.position,
            text=text,
            tokens=self.scope.count_tokens(text),
            memory_ids=(*state.introductions, *(context.bundle.rule_ids if context else ())),
        )

    def _to_memory_block(
        self, place: InputPlace, text: str, context: SessionContext, state: _SessionState
    ) -> PromptBlock:
        replaced = (memory_id for one in state.replaced for memory_id in one.memory_ids)
        return PromptBlock(
            kind="memory",
            position=place.position,
            text=text,
            tokens=self.scope.count_tokens(text),
            min_trust=context.bundle.min_external_trust,
            bundle_id=context.bundle.bundle_id,
            memory_ids=(*replaced, *context.bundle.stated_ids),
        )


def _list_omitted_lines(bundle: Bundle) -> frozenset[str]:
    """Return the lines of the identity that hold, but were left out of a context for lack of room."""
    return frozenset(render_tenet(one.part, one.text, one.said_on) for one in bundle.identity.omitted)
