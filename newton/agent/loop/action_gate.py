"""Checks of inputs, actions and replies against censors (rules that forbid something), made by code, not by a model."""

from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.db.pool import Tx
from newton.errors import CensorError, ProviderError
from newton.heart import censors
from newton.heart.censor_text import iter_passages
from newton.heart.censors import Censor, CensorStage
from newton.heart.lifecycle import engine
from newton.heart.speakers import Speaker
from newton.ids import derive_model_id
from newton.memory.lookup import short_id
from newton.providers.chat import ReplyDelta, ReplyPiece
from newton.text.questions import asks_about_rule, remove_questions

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

LOOKBACK_CHARS = 500  # the maximum length of a trigger
MAX_COMPARED_CHARS = 20_000  # of a text, by meaning: a sentence takes the model some milliseconds


@dataclass(frozen=True, slots=True)
class CensorCheck:
    """The result of comparing a text with the censors: those that match. `unchecked` is why meaning was not compared.

    `failure` is the reason why the check itself failed; such a check blocks, because a censor may forbid the text.
    `questioned` are the ids of censors that match only a question in the text. `explained` is the part of `questioned`
    whose question asks about the rule itself; the reply to it may name what these censors forbid. `name_commands`
    replaces the commands in a text by their names in the interface of the caller.
    """

    matches: tuple[Censor, ...]
    unchecked: str | None = None
    questioned: frozenset[UUID] = frozenset()
    explained: frozenset[UUID] = frozenset()
    name_commands: Callable[[str], str] = str
    failure: str | None = None

    @property
    def blocks(self) -> bool:
        """Return whether a censor blocks the text. A censor that matches only a question does not block it."""
        return self.failure is not None or any(map(self._is_blocked_by, self.matches))

    @property
    def message(self) -> str:
        """Return the trigger, the reason and the short id of one matching censor; a blocking censor is preferred."""
        first = self._first
        return f"{first.trigger}: {first.reason} (censor {short_id(first.memory_id)})"

    @property
    def input_refusal(self) -> str | None:
        """Return the message for a person whose input is blocked; None if no censor blocks it."""
        if self.failure is not None:
            return (
                f"The input could not be compared with the censors ({self.failure}), so no model was called."
                " Send it again, or report the entry `part_failed` of the log."
            )
        if not self.blocks:
            return None
        return (
            f"A censor forbids this input: {self.message}. Say it in other words, or change the censor: {self.remedy}"
        )

    @property
    def remedy(self) -> str:
        """Return a sentence for a person: how to change the censor that `message` names."""
        ref = short_id(self._first.memory_id)
        return self.name_commands(
            f"`newton censors relax {ref} --reason REASON` makes it only warn;"
            f" `newton censors false-positive {ref}` reports a wrong match."
        )

    @property
    def _first(self) -> Censor:
        return next(filter(self._is_blocked_by, self.matches), self.matches[0])

    def _is_blocked_by(self, censor: Censor) -> bool:
        return censor.is_blocking and censor.memory_id not in self.questioned


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionGate:
    """Checks texts against the censors of one agent. Matches are recorded if `is_recording` is True.

    `name_commands` replaces the commands in a text by their names in the interface of the caller.
    """

    scope: AgentScope
    is_recording: bool = True
    name_commands: Callable[[str], str] = str

    async def check(
        self, text: str, stage: CensorStage, *, dry_run: bool = False, rules: Sequence[Censor] | None = None
    ) -> CensorCheck:
        """Compare a text with the censors; `stage` says whether it is an input, an action or a reply ("output").

        The matches are recorded, except with `dry_run`, of a mere question in an input, and of a reply. `rules` are the
        censors in force, if they were read just now.
        """
        rules = await self._list_rules() if rules is None else rules
        vectors, unchecked = await self._embed_text(text, rules)
        matches = censors.find_matching(rules, text, vectors)
        acts = _find_act_matches(matches, text, vectors, stage)
        if acts and not dry_run:
            await self._record_activations(acts, stage)
        if stage != "input":
            return CensorCheck(tuple(matches), unchecked, name_commands=self.name_commands)
        questioned = frozenset(censor.memory_id for censor in matches if censor not in acts)
        explained = questioned if asks_about_rule(text) else frozenset[UUID]()
        return CensorCheck(tuple(matches), unchecked, questioned, explained, self.name_commands)

    async def check_write(self, text: str, *, by: Speaker = "model") -> str | None:
        """Check a text that is to be stored; return the warning of a censor that matches it, or None.

        The own text of a person is never blocked and not recorded as a match, because it is no action of the agent.
        Raises CensorError if a censor blocks the text of an app or a model.
        """
        is_person = by == "person"
        check = await self.check(text, "action", dry_run=is_person)
        if check.blocks and not is_person:
            raise CensorError(
                f"A censor forbids the text: {check.message}.", hint="Nothing was stored. Do something else."
            )
        return check.message if check.matches else None

    async def check_reply(self, text: str, *, exempt: Collection[UUID] = ()) -> None:
        """Raise CensorError if a censor blocks a complete reply. Censors whose ids are in `exempt` are not applied."""
        if blocking := await self._list_blocking(exempt):
            await self._check_chunk(blocking, "", text)

    async def omit_blocked(self, texts: Sequence[str], *, exempt: Collection[UUID] = ()) -> list[str]:
        """Return the texts that no censor blocks. Matches are not recorded.

        Censors whose ids are in `exempt` are not applied.
        """
        if not (blocking := await self._list_blocking(exempt)):
            return list(texts)
        embedded = [(await self._embed_text(text, blocking))[0] for text in texts]
        pairs = zip(texts, embedded, strict=True)
        return [text for text, vectors in pairs if not censors.find_matching(blocking, text, vectors)]

    async def filter_stream(
        self, chunks: AsyncGenerator[ReplyPiece], *, rules: Sequence[Censor], exempt: Collection[UUID] = ()
    ) -> AsyncGenerator[ReplyPiece]:
        """Yield the pieces of a reply. While a blocking censor is in force, yield whole lines, each after its check.

        `rules` are the censors in force, of which those with ids in `exempt` are not applied. Raises CensorError in
        place of the first blocked line. Pieces that are not text, such as reasoning and alternative replies, then come
        last, without those that a censor blocks.
        """
        blocking = _select_blocking(rules, exempt)
        passed = pending = ""
        deltas: list[ReplyDelta] = []
        async with aclosing(chunks):
            async for chunk in chunks:
                if not blocking:
                    yield chunk
                    continue
                if isinstance(chunk, ReplyDelta):
                    deltas.append(chunk)
                    continue
                pending += chunk
                ready = pending[: pending.rfind("\n") + 1]
                if ready:
                    await self._check_chunk(blocking, passed, ready)
                    passed, pending = passed + ready, pending[len(ready) :]
                    yield ready
        if pending:
            await self._check_chunk(blocking, passed, pending)
            yield pending
        for delta in await self._omit_blocked_deltas(deltas, blocking):
            yield delta

    async def _omit_blocked_deltas(
        self, deltas: Sequence[ReplyDelta], blocking: Sequence[Censor]
    ) -> Sequence[ReplyDelta]:
        """Return the deltas (pieces that are not plain text) of all choices whose text no censor blocks.

        A blocked choice other than the first is replaced by one delta that ends it with the reason `content_filter`.
        """
        by_choice: dict[int, list[ReplyDelta]] = {}
        for delta in deltas:
            by_choice.setdefault(delta.index, []).append(delta)
        allowed: list[ReplyDelta] = []
        for index, parts in by_choice.items():
            text = "".join(text for part in parts for text in _iter_texts(part.delta))
            vectors, _ = await self._embed_text(text, blocking)
            if not censors.find_matching(blocking, text, vectors):
                allowed += parts
            elif index:
                allowed.append(ReplyDelta(index=index, finish_reason="content_filter"))
        return allowed

    async def _check_chunk(self, blocking: Sequence[Censor], previous: str, chunk: str) -> None:
        """Raise CensorError if a censor blocks `chunk`. A match may begin at the end of `previous`, the text before
        it.
        """
        text = previous[-LOOKBACK_CHARS:] + chunk
        vectors, _ = await self._embed_text(text, blocking)
        if matches := censors.find_matching(blocking, text, vectors):
            await self._record_activations(matches[:1], "output")
            check = CensorCheck((matches[0],), name_commands=self.name_commands)
            raise CensorError(f"A censor blocked the reply: {check.message}.", hint=check.remedy)

    async def _list_blocking(self, exempt: Collection[UUID]) -> Sequence[Censor]:
        return _select_blocking(await self._list_rules(), exempt)

    async def _list_rules(self) -> Sequence[Censor]:
        async with self.scope.transaction() as tx:
            return await self.list_rules(tx)

    async def list_rules(self, tx: Tx) -> Sequence[Censor]:
        """Return the censors in force, those above a project included, with vectors if an embedding model is set."""
        model = derive_model_id(self.scope.embedder.identity) if self.scope.embedder else None
        rules, own_id = list[Censor](), self.scope.agent_id
        async for agent_id in self.scope.visit_levels(tx):
            in_force = await censors.list_in_force(tx, agent_id=agent_id, model_id=model)
            rules += in_force if agent_id == own_id else [replace(one, is_inherited=True) for one in in_force]
        return rules

    async def _record_activations(self, matches: Sequence[Censor], stage: CensorStage) -> None:
        if not self.is_recording:
            return
        for scope in filter(None, (self.scope, self.scope.above)):
            is_above = scope is not self.scope
            memory_ids = [censor.memory_id for censor in matches if censor.is_inherited == is_above]
            if memory_ids:
                async with scope.write() as (tx, ctx):
                    await engine.record_activations(tx, "censor", memory_ids, stage=stage, ctx=ctx)

    async def _embed_text(self, text: str, rules: Sequence[Censor]) -> "tuple[Sequence[Vector], str | None]":
        """Return the vectors of the text and of its passages, and the reason why it, or a part, is not compared."""
        if not any(censor.match_mode == "meaning" for censor in rules):
            return (), None
        if self.scope.embedder is None:
            return (), "no embedding model is set"
        passages = list(iter_passages(text[:MAX_COMPARED_CHARS]))
        texts = [text, *passages] if len(passages) > 1 else [text]
        try:
            vectors = await self.scope.embedder.embed(texts)
        except ProviderError as error:
            return (), error.what
        is_whole = len(text) <= MAX_COMPARED_CHARS
        return vectors, None if is_whole else f"only the first {MAX_COMPARED_CHARS:,} characters are compared"


def _select_blocking(rules: Sequence[Censor], exempt: Collection[UUID]) -> Sequence[Censor]:
    return [one for one in rules if one.is_blocking and one.memory_id not in exempt]


def _iter_texts(value: object) -> Iterator[str]:
    """Yield all strings in a JSON value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in cast("Mapping[str, object]", value).values():
            yield from _iter_texts(one)
    elif isinstance(value, list):
        for one in cast("list[object]", value):
            yield from _iter_texts(one)


def _find_act_matches(
    matches: Sequence[Censor], text: str, vectors: "Sequence[Vector]", stage: CensorStage
) -> Sequence[Censor]:
    """Return the matches to record: none in a reply, and in an input only those of more than a question."""
    if stage == "output":
        return ()
    acts = text if stage == "action" else remove_questions(text)
    return censors.find_matching(matches, acts, vectors) if acts.strip() else ()
