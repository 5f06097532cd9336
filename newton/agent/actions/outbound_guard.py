"""Control of what leaves in one turn: links in the reply, and arguments of tool calls. What is held back is said."""

import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import UUID

from newton.agent.actions.act_requests import find_tool_kinds, find_unasked
from newton.agent.actions.act_rules import ActRules
from newton.agent.actions.code_rules import CodeRules
from newton.agent.actions.external_tools import ApprovalCallback, ApprovalRequest, ExternalTool
from newton.agent.actions.link_text import TextLink, find_links, find_open_end, split_link
from newton.agent.actions.outbound_rules import EMAIL, OutboundRules, PromptTexts, iter_strings
from newton.agent.actions.permissions import PermissionService
from newton.agent.actions.prompt_texts import MemoryText, OwnText, collect_texts, list_passages
from newton.agent.loop.prompt import PromptBuilder
from newton.agent.scope import AgentScope
from newton.cognition.session_context.service import SessionContext
from newton.concurrency import compute
from newton.db.queries import load
from newton.errors import NewtonError
from newton.memory.lookup import SHORT_ID_DIGITS
from newton.memory.memory import PERSON_TIERS, digest
from newton.memory.redaction.own_secrets import redact_own_secrets
from newton.providers.chat import ReplyDelta, ReplyPiece, ToolDefinition
from newton.text.words import prepare_words

SQL = load("newton.agent.actions", "outbound_guard.sql")

LINK_SERVER = "@links"  # in place of a server in permissions of links; no server can have this name
EXACT_MARK = "#"  # before the hash of what a permission is limited to; no name of a tool or host has it
EXACT_DIGITS = 16
REPEATED = ":repeated"  # ends the name of a permission for a call that may be made again
MAX_MEMORY_CHARS = 8_000  # of one memory that is compared
MAX_TOKEN_CHARS = 200
MIN_TIED_CHARS, MAX_TIED_CHARS, MAX_TIED = 3, 100, 20  # of a value that memories are searched for, and of memories
# The end of a text of which the rest has not arrived: it may be a token of Newton, or another one.
_TOKEN_BEGIN = re.compile(r"(?<![A-Za-z0-9])n(?:w(?:[to]\w*)?)?\Z|[A-Za-z0-9_+/=.-]{12,}\Z")
_LAST_WORD = re.compile(r"[^\s<>()]{1,100}\Z")
TEXT = (0, "")  # the key of the text of a reply, beside those of its deltas: choice and field
MAX_NOTES = 5  # at the end of a reply


def create_link_permission(host: str) -> ExternalTool:
    """Return what a permission is given to for links to a host, or for one link: `HOST#HASH`."""
    definition = ToolDefinition(f"{LINK_SERVER} {host}", {"parameters": {}})
    return ExternalTool(
        server=LINK_SERVER,
        name=host,
        description=f"Links to {host} in replies.",
        definition=definition,
        required=frozenset(),
        fingerprint=digest(LINK_SERVER, host),
    )


def limit_to_call(tool: ExternalTool, values: Mapping[str, object], *, ending: str = "") -> ExternalTool:
    """Return what a permission is given to that holds for a call of a tool with exactly these arguments.

    It is used up by its first run; one with the ending REPEATED, which a person gave at a question, is not.
    """
    name = f"{tool.name}{EXACT_MARK}{_hash(json.dumps(values, sort_keys=True))}{ending}"
    return replace(tool, name=name, is_trusted=False)


@dataclass(slots=True, kw_only=True)
class OutboundGuard:
    """Checks what leaves in one turn against the texts of its `prompt`, which the tool loop replaces in each round.

    `memory_ids` are the memories that the context of the turn states. `approve` asks the person; without it, what may
    not leave is held back, and `notes` say so for the end of the reply.
    """

    permissions: PermissionService
    session_id: UUID | None = None
    memory_ids: Sequence[UUID] = ()
    approve: ApprovalCallback | None = None
    prompt: PromptBuilder | None = None
    notes: list[str] = field(default_factory=list[str])
    _rules: tuple[PromptBuilder | None, OutboundRules] | None = None
    _answers: dict[str, bool] = field(default_factory=dict[str, bool])
    _words_before: dict[tuple[int, str], str] = field(default_factory=dict[tuple[int, str], str])

    async def find_call_problem(self, tool: ExternalTool, values: Mapping[str, object]) -> str:
        """Return why a call needs a question also with a permission; an empty text if it does not.

        What an untrusted server calls a read may be an act.
        """
        rules = await self._read_rules()
        problem = await self._judge(rules, tool, values)
        texts = rules.texts
        words = f"{texts.asked}\n{texts.agreed}\n{'' if texts.foreign else texts.earlier}"
        if problem and (tied := await self._find_tied(words, values)):
            known = replace(texts, known=(*texts.known, *tied))
            problem = await self._judge(OutboundRules(known), tool, values)
        return problem

    async def _judge(self, rules: OutboundRules, tool: ExternalTool, values: Mapping[str, object]) -> str:
        free = {} if tool.is_read and tool.is_trusted else tool.select_free(values)
        acts, named = ActRules(rules), (tool.name, tool.description)
        is_act = not (tool.is_read and (tool.is_trusted or not find_tool_kinds(tool.name, "")))
        return await compute(
            lambda: (
                CodeRules(rules).find_argument_problem(values)
                or acts.find_foreign_part(free)
                or (find_unasked(rules.texts, *named, iter_strings(values)) if is_act else None)
                or (acts.find_unnamed_part(*named, free) if is_act else None)
                or ""
            ),
            chars=rules.texts.count_chars(),
        )

    async def _find_tied(self, asked: str, values: Mapping[str, object]) -> list[str]:
        """Return memories of the person with a word of these texts and a value of a call, such as Vera's address."""
        said = [one for value in iter_strings(values) for one in (value, *EMAIL.findall(value))]
        names = [one for one in said if MIN_TIED_CHARS <= len(one) <= MAX_TIED_CHARS]
        if not names or not asked.strip():
            return []
        async with self.permissions.scope.transaction() as tx:
            rows = await SQL["list_tied_memories"].fetch_all(
                tx,
                agent_id=self.permissions.scope.agent_id,
                input=prepare_words(asked),
                values=names,
                trusts=sorted(PERSON_TIERS),
                max_chars=MAX_MEMORY_CHARS,
                limit=MAX_TIED,
            )
        found = [MemoryText(**row) for row in rows]
        return [OwnText.split(one.text).own if one.kind == "exchange" else one.text for one in found if one.is_own]

    async def filter_links(self, pieces: AsyncGenerator[ReplyPiece]) -> AsyncGenerator[ReplyPiece]:
        """Yield the pieces of a reply, with a mark in place of each link that may not leave.

        Text that may be the beginning of a link waits for its end; the rest flows.
        """
        pending, failure = dict[tuple[int, str], str](), None
        async with aclosing(pieces):
            try:
                async for piece in pieces:
                    if isinstance(piece, ReplyDelta):
                        yield await self._filter_delta(piece, pending)
                        continue
                    for rest in await self._flush(pending, is_end=False):  # the reply follows the reasoning
                        yield rest
                    if ready := await self._take_ready(TEXT, piece, pending):
                        yield ready
            except NewtonError as error:
                failure = error
        for rest in await self._flush(pending, is_end=True):
            yield rest
        if failure:
            raise failure

    async def _flush(self, pending: dict[tuple[int, str], str], *, is_end: bool) -> list[ReplyPiece]:
        """Return the texts that wait for the end of a link: of all choices at the end, else of the first one's deltas.

        The text of the reply comes last.
        """
        keys = sorted((key for key in pending if is_end or (key[0] == 0 and key != TEXT)), key=lambda key: key == TEXT)
        cleaned = {key: await self._clean(pending.pop(key), key) for key in keys}
        return [
            text if key == TEXT else ReplyDelta(index=key[0], delta={key[1]: text})
            for key, text in cleaned.items()
            if text
        ]

    def take_notes(self) -> str:
        """Return a paragraph that says what was held back and how to let it go, once; an empty text for nothing."""
        notes = list(dict.fromkeys(self.notes))[:MAX_NOTES]
        self.notes.clear()
        return "".join(f"\n\n[{note}]" for note in notes)

    async def _filter_delta(self, piece: ReplyDelta, pending: dict[tuple[int, str], str]) -> ReplyDelta:
        changed = {
            name: await self._take_ready((piece.index, name), text, pending)
            for name, text in piece.delta.items()
            if isinstance(text, str) and name != "role"
        }
        if piece.finish_reason:
            for key in [key for key in pending if key[0] == piece.index and key != TEXT]:
                changed[key[1]] = changed.get(key[1], "") + await self._clean(pending.pop(key), key)
        return replace(piece, delta={**piece.delta, **changed}) if changed else piece

    async def _take_ready(self, key: tuple[int, str], text: str, pending: dict[tuple[int, str], str]) -> str:
        """Return the part of a text that ends in the middle of no link and no token, cleaned; keep the rest."""
        text = pending.pop(key, "") + text
        end = find_open_end(text)
        if (token := _TOKEN_BEGIN.search(text, max(len(text) - MAX_TOKEN_CHARS, 0))) is not None:
            end = min(end, token.start())
        if end < len(text):
            pending[key] = text[end:]
        return await self._clean(text[:end], key)

    async def _clean(self, text: str, key: tuple[int, str]) -> str:
        """Return a text with a mark in place of each link that may not leave, and of each secret of Newton itself.

        A link may have begun in the word before it, which has left already.
        """
        text = redact_own_secrets(text)
        before = self._words_before.get(key, "")
        text, position = before + text, len(before)
        self._words_before[key] = "".join(_LAST_WORD.findall(text[-100:]))
        if not (links := [one for one in find_links(text) if one.end > position]):
            return text[position:]
        rules, parts = await self._read_rules(), list[str]()
        for link in links:
            if parts and link.start < position:
                continue
            problem = await compute(partial(rules.find_link_problem, link.url), chars=rules.texts.count_chars())
            if problem and not await self._is_let_go(rules, link, problem):
                parts += [text[position : link.start], f"[link held back: {_show_host(rules, link.url)}]"]
                position = link.end
        return "".join(parts) + text[position:]

    async def _is_let_go(self, rules: OutboundRules, link: TextLink, problem: str) -> bool:
        """Return whether the person lets a link go: by an earlier permission, or by the answer to a question now."""
        if link.url not in self._answers:
            self._answers[link.url] = await self._ask_for_link(_show_host(rules, link.url), link, problem)
        return self._answers[link.url]

    async def _ask_for_link(self, shown: str, link: TextLink, problem: str) -> bool:
        host = split_link(link.url).host
        problem = problem.replace(host, shown) if host else problem  # its other labels may carry text
        exact = create_link_permission(f"{shown}{EXACT_MARK}{_hash(link.url)}")
        # a permission for a host is none for a secret
        every = create_link_permission(host) if shown == host and "secret" not in problem else exact
        judged = {await self.permissions.judge(one, session_id=self.session_id) for one in (exact, every)}
        if not judged.isdisjoint(("denied", "allowed")):
            return "denied" not in judged
        if self.approve is None:
            command = f"newton permissions allow {LINK_SERVER} {every.name}"
            self.notes.append(
                f"A link to {shown} was held back, because {problem}. `{command}` lets it go; then ask again."
            )
            return False
        request = ApprovalRequest(
            tool=every, arguments=json.dumps({"url": link.url}), reason=f"Held back, because {problem}."
        )
        return await self.permissions.store_answer(every, await self.approve(request), session_id=self.session_id)

    async def _read_rules(self) -> OutboundRules:
        """Return the rules for the texts of the present prompt."""
        if self._rules is None or self._rules[0] is not self.prompt:
            texts = await self._read_texts(self.prompt) if self.prompt else PromptTexts()
            self._rules = self.prompt, OutboundRules(texts)
        return self._rules[1]

    async def _read_texts(self, prompt: PromptBuilder) -> PromptTexts:
        key = {"agent_id": self.permissions.scope.agent_id, "session_id": self.session_id}
        passages = [one for one in list_passages(prompt) if len(one) >= SHORT_ID_DIGITS]
        async with self.permissions.scope.transaction() as tx:
            rows = await SQL["list_memory_texts"].fetch_all(
                tx, **key, memory_ids=list(self.memory_ids), max_chars=MAX_MEMORY_CHARS, passages=passages
            )
            foreign = {row["position"] for row in await SQL["list_foreign_lines"].fetch_all(tx, **key)}
        speaks = self.permissions.scope.trust
        return collect_texts(prompt, [MemoryText(**row) for row in rows], foreign, speaks=speaks)


def create_guard(
    scope: AgentScope, session_id: UUID | None, context: SessionContext | None, *, approve: ApprovalCallback | None
) -> OutboundGuard:
    """Return the control of what leaves in a turn of a session with this context."""
    memory_ids = context.bundle.stated_ids if context else ()
    permissions = PermissionService(scope=scope)
    return OutboundGuard(permissions=permissions, session_id=session_id, memory_ids=memory_ids, approve=approve)


def _show_host(rules: OutboundRules, url: str) -> str:
    """Return the host of a link as it may be shown: its last labels if the others may carry text."""
    host = split_link(url).host.rpartition("@")[2]
    return host if rules.find_link_problem(f"https://{host}/") is None else ".".join(host.split(".")[-2:])


def _hash(text: str) -> str:
    return digest(text).hex()[:EXACT_DIGITS]
