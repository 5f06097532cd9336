"""Erasure, on request, of everything that is stored about a person or thing, or of a whole agent."""

import asyncio
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

from newton.agent.events import clear
from newton.agent.scope import AgentScope
from newton.agent.services import person_search, stated_names
from newton.agent.services.person_search import build_name_pattern, fold_name, is_searchable
from newton.agent.services.stated_names import AliasCandidate, SpokenText, StatedName
from newton.brain import decisions
from newton.db.pool import Tx, visit_agent
from newton.db.queries import load
from newton.errors import ConflictError, InputError
from newton.heart import procedures
from newton.heart.identity import identity_store
from newton.heart.identity.identity_store import IdentityEdit
from newton.heart.lifecycle.engine import LifecycleContext
from newton.memory import agents
from newton.memory.forgetting import forget
from newton.memory.hygiene import clean_text
from newton.memory.memory import digest
from newton.text.names import normalize_name

SQL = load("newton.agent.services", "erasure.sql")

TOKEN_LENGTH = 8  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePlan:
    """The data that an erasure affects.

    `memories` are deleted (id, kind, short form); `decisions` and `tenets` (lines of the identity) lose their text.
    `related` are the ids and kinds of other records that contain one of the `names`, such as contexts, tasks and
    documents. `names` are those that the caller gave and those that the memory states for them; `pattern` finds them.
    `stated` are the latter with the texts that state them. `possible` are names that texts may tell, and parts of the
    names alone; they are not erased. Nor are `shared_names`, which are stated, but which another entity also has.
    `remains`, of an erasure that was carried out, counts what a scan of all tables and of the logs still finds, by
    table or file. `parts` are the plans of the agent and of its projects, each with what that one stores; the fields
    have what all of them store.
    """

    agent_id: UUID
    names: tuple[str, ...]
    pattern: str
    stated: tuple[StatedName, ...]
    possible: tuple[StatedName, ...]
    shared_names: tuple[str, ...]
    memories: Sequence[tuple[UUID, str, str]]
    decisions: Sequence[UUID]
    tenets: Sequence[UUID]
    related: Sequence[tuple[UUID, str]]
    remains: Mapping[str, int] = field(default_factory=dict[str, int])
    parts: tuple["ErasurePlan", ...] = ()

    @property
    def token(self) -> str:
        """Return a hash of this plan. A caller passes it to `erase` to confirm exactly this plan."""
        ids = [*(memory_id for memory_id, _, _ in self.memories), *self.decisions, *self.tenets]
        ids += [related_id for related_id, _ in self.related]
        return digest(str(self.agent_id), *self.names, *map(str, ids)).hex()[:TOKEN_LENGTH]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureService:
    """Erases all that one agent stores about a subject (a person or thing), or all data of the agent.

    `logs` are the log files of the database and the daemon that this process can read.
    """

    scope: AgentScope
    logs: tuple[Path, ...] = ()

    async def plan(self, subject: str, *, also: Sequence[str] = ()) -> ErasurePlan:
        """Return what the erasure of a subject (a person or thing) would affect.

        It covers this name, those in `also`, and those that memories state for it. Raises InputError if nothing is
        found.
        """
        async with self.scope.transaction() as tx:
            return await self._plan(tx, subject, also)

    async def erase(self, subject: str, *, token: str, reason: str, also: Sequence[str] = ()) -> ErasurePlan:
        """Erase a subject, and all memories derived from it, in one transaction; return the plan that was carried out.

        Afterwards the names are overwritten in the logs, and `remains` of the plan says what a scan of all tables and
        logs still finds. Raises ConflictError if `token` is not that of the current plan, and InputError for a reason
        that contains a name of the subject, because the reason stays stored.
        """
        plan = await self._erase(subject, token=token, reason=reason, also=also)
        person_search.mask_in_logs(self.logs, plan.pattern)
        async with self.scope.transaction() as tx:
            remains = Counter[str]()
            for part in plan.parts:
                async with visit_agent(tx, part.agent_id, home=self.scope.agent_id):
                    remains.update(await person_search.count_matches(tx, plan.pattern, agent_id=part.agent_id))
        return replace(plan, remains={**remains, **person_search.count_in_logs(self.logs, plan.pattern)})

    async def _erase(self, subject: str, *, token: str, reason: str, also: Sequence[str]) -> ErasurePlan:
        """Erase what the present plan lists, in one transaction. Raises as `erase`."""
        async with self.scope.write() as (tx, ctx):
            plan = await self._plan(tx, subject, also)
            if token != plan.token:
                raise ConflictError(
                    "The data to erase has changed since the plan was shown.",
                    hint="Run the command again without --confirm; it shows the new plan and a new token.",
                )
            reason, pattern = clean_text(reason, what="reason"), plan.pattern
            if re.search(pattern, reason):
                raise InputError(
                    "The reason names the subject to erase.",
                    hint="Omit the name from the reason, because the reason stays stored.",
                )
            for part in reversed(plan.parts):  # the projects first: the contexts of the agent's memories go with these
                async with visit_agent(tx, part.agent_id, home=self.scope.agent_id):
                    await _erase_part(tx, part, reason=reason, ctx=replace(ctx, agent_id=part.agent_id))
            counts = {name: len(getattr(plan, name)) for name in ("memories", "decisions", "tenets")}
            self.scope.publish("subject.erased", counts)
            return plan

    async def erase_agent(self) -> None:
        """Delete all data of the agent, except its access tokens, and its projects."""
        async with self.scope.write() as (tx, ctx):
            for project in await agents.list_projects(tx, agent_id=ctx.agent_id):
                await agents.delete_project(tx, project.agent_id, agent_id=ctx.agent_id)
            await SQL["erase_agent"].execute(tx, agent_id=ctx.agent_id)
            clear(agent_id=ctx.agent_id, now=ctx.now)

    async def _plan(self, tx: Tx, subject: str, also: Sequence[str]) -> ErasurePlan:
        """Find all records with a name of the subject, also in projects. Raises InputError if there are none."""
        given = [_clean_name(name) for name in (subject, *also)]
        parts = [await self._plan_part(tx, given)]
        for project in await agents.list_projects(tx, agent_id=self.scope.agent_id):
            async with visit_agent(tx, project.agent_id, home=self.scope.agent_id):
                above = replace(self, scope=replace(self.scope, agent_id=project.agent_id))
                parts.append(await above._plan_part(tx, parts[0].names))
        if not any(part.memories or part.tenets or part.related for part in parts):
            raise InputError(
                f"Nothing is stored about {given[0]!r}.",
                hint="`newton entities` lists the known names; give one of them.",
            )
        return _join_parts(parts)

    async def _plan_part(self, tx: Tx, given: Sequence[str]) -> ErasurePlan:
        """Find the records of the agent in scope that contain a given name, or one that is stated for the subject."""
        agent_id = self.scope.agent_id
        archived = await person_search.list_archived_texts(tx, agent_id=agent_id)
        names, stated, possible, shared_names = await self._find_names(tx, given, archived.values())
        keys = list({key for name in names for key in (normalize_name(name), name.casefold(), name.lower())})
        pattern = build_name_pattern(names)
        expression = re.compile(pattern)
        memories = await SQL["find_memories_about"].fetch_all(
            tx,
            agent_id=agent_id,
            keys=keys,
            pattern=pattern,
            shipped=procedures.DISK_ORIGIN,
            archived=[memory_id for memory_id, text in archived.items() if expression.search(text)],
        )
        tenets = await SQL["find_tenets"].fetch_all(tx, agent_id=agent_id, pattern=pattern)
        related = await SQL["find_other_records"].fetch_all(tx, agent_id=agent_id, pattern=pattern)
        return ErasurePlan(
            agent_id=agent_id,
            names=tuple(sorted(names)),
            pattern=pattern,
            stated=tuple(StatedName(name, stated[name]) for name in sorted(stated)),
            possible=tuple(StatedName(name, possible[name]) for name in sorted(possible)),
            shared_names=tuple(sorted(shared_names)),
            memories=[tuple(row) for row in memories if row["kind"] != "decision"],
            decisions=[row["memory_id"] for row in memories if row["kind"] == "decision"],
            tenets=[row["tenet_id"] for row in tenets],
            related=[tuple(row) for row in related],
        )

    async def _find_names(
        self, tx: Tx, given: Sequence[str], archived: Collection[str]
    ) -> tuple[set[str], dict[str, str], dict[str, str], set[str]]:
        """Return all names of the subject: the given ones, those of its entities, and those that texts state.

        Second, return the stated names with the texts that state them, third the possible names, with texts too, and
        fourth those that another entity also has.
        """
        agent_id = self.scope.agent_id
        rows = await SQL["list_names"].fetch_all(tx, agent_id=agent_id)
        entities = [set(filter(is_searchable, (row["name"], *row["aliases"]))) for row in rows]
        names, stated = set(given), dict[str, str]()
        while True:
            folded = set(map(fold_name, names))
            subject_entities = [one for one in entities if not folded.isdisjoint(map(fold_name, one))]
            names = names.union(*subject_entities)
            others = [one for one in entities if one not in subject_entities and any(" " in name for name in one)]
            parts = stated_names.list_name_parts(names)
            pattern = build_name_pattern(names | parts)
            texts = await SQL["list_texts_with"].fetch_all(tx, agent_id=agent_id, pattern=pattern)
            spoken = [*(SpokenText(*row) for row in texts), *map(SpokenText, archived)]
            found, candidates = await asyncio.to_thread(_find_stated, spoken, names, parts, others)
            candidates = await self._weigh(tx, candidates)
            found |= {one.name: one.text for one in candidates if one.points >= stated_names.SURE_POINTS}
            foreign = {name for name in found if _is_name_of(others, name)}
            added = {name: text for name, text in found.items() if name not in foreign}
            if not added:
                possible = {one.name: one.text for one in candidates} | {name: found[name] for name in foreign}
                shared = {name for name in possible if _is_first_name_of(others, name)}
                return names, stated, {name: possible[name] for name in possible.keys() - shared}, shared & foreign
            names, stated = names | added.keys(), stated | added

    async def _weigh(self, tx: Tx, candidates: Sequence[AliasCandidate]) -> list[AliasCandidate]:
        """Return the candidates that are at least possible, with the points for their use in other texts."""
        minimum = stated_names.POSSIBLE_POINTS
        likely = [one for one in candidates if one.points + stated_names.USE_POINTS >= minimum]
        pattern = build_name_pattern(stated_names.strip_article(one.name) for one in likely)
        uses = await SQL["list_uses"].fetch_all(tx, agent_id=self.scope.agent_id, pattern=pattern) if likely else []
        texts = [row["text"] for row in uses]
        weighed = await asyncio.to_thread(lambda: [stated_names.weigh_uses(one, texts) for one in likely])
        best = {one.name: one for one in sorted(weighed, key=lambda one: one.points)}
        return [one for one in best.values() if one.points >= minimum]


def _join_parts(parts: Sequence[ErasurePlan]) -> ErasurePlan:
    """Return the plan for an agent and its projects."""
    names = {name for part in parts for name in part.names}
    return replace(
        parts[0],
        names=tuple(sorted(names)),
        pattern=build_name_pattern(names),
        stated=tuple({one.name: one for part in parts[::-1] for one in part.stated}.values()),
        possible=tuple(
            {one.name: one for part in parts[::-1] for one in part.possible if one.name not in names}.values()
        ),
        shared_names=tuple(sorted({name for part in parts for name in part.shared_names} - names)),
        memories=[one for part in parts for one in part.memories],
        decisions=[one for part in parts for one in part.decisions],
        tenets=[one for part in parts for one in part.tenets],
        related=[one for part in parts for one in part.related],
        parts=tuple(parts),
    )


async def _erase_part(tx: Tx, plan: ErasurePlan, *, reason: str, ctx: LifecycleContext) -> None:
    """Erase what a plan lists of one agent, whose rows the transaction uses."""
    for decision_id in plan.decisions:
        await decisions.erase(tx, decision_id, reason=reason, ctx=ctx)
    if plan.memories:
        await forget(tx, [memory[0] for memory in plan.memories], derived=True, reason=reason, ctx=ctx)
    await _redact(tx, plan.related, plan.pattern, reason=reason, ctx=ctx)
    for tenet_id in plan.tenets:
        await _erase_tenet(tx, tenet_id, IdentityEdit(ctx=ctx, reason=reason))


async def _redact(
    tx: Tx, records: Sequence[tuple[UUID, str]], pattern: str, *, reason: str, ctx: LifecycleContext
) -> None:
    """Redact records that a pattern matches, such as contexts, tasks and texts of prompts."""
    ids, kinds = [record[0] for record in records], [record[1] for record in records]
    record = {"now": ctx.now, "reason": reason, "origin": ctx.origin}
    await SQL["record_forgotten"].execute(tx, agent_id=ctx.agent_id, ids=ids, kinds=kinds, **record)
    await SQL["redact_references"].execute(tx, agent_id=ctx.agent_id, ids=ids, pattern=pattern)


async def redact_texts(tx: Tx, texts: Collection[str], *, reason: str, ctx: LifecycleContext) -> None:
    """Redact all records outside of memories that repeat one of these texts."""
    if not texts:
        return
    parts = (r"\s+".join(map(re.escape, text.split())) for text in texts)
    pattern = f"(?i)(?:{'|'.join(parts)})"
    records = await SQL["find_other_records"].fetch_all(tx, agent_id=ctx.agent_id, pattern=pattern)
    await _redact(tx, [tuple(row) for row in records], pattern, reason=reason, ctx=ctx)


def _clean_name(name: str) -> str:
    """Return a given name without spaces around it. Raises InputError if it has no letter or digit."""
    plain = clean_text(name, what="name").strip()
    if not is_searchable(plain):
        raise InputError(f"{plain!r} is not a name.", hint="Give a name that has a letter or a digit.")
    return plain


def _find_stated(
    spoken: Collection[SpokenText], names: Collection[str], parts: Collection[str], others: Iterable[Collection[str]]
) -> tuple[dict[str, str], list[AliasCandidate]]:
    """Return the further names that texts state for a person with these names, each with the shortest such text.

    Second, return candidates for further names, among them first and last names that are used alone. A first or last
    name means the person, unless another name has it; the word beside it may be a candidate: we call Ann Dodo.
    """
    other_names = [name for one in others for name in one if stated_names.is_full_name(name)]
    other = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, other_names)) or '(?!)'})(?!\w)")
    person, every = re.compile(build_name_pattern(names)), re.compile(build_name_pattern({*names, *parts}))
    other_texts = [*(person.sub("", one.text) for one in spoken), *other_names]
    namesakes = {part: _list_namesakes(other_texts, part) for part in parts}
    doubtful = spoken if any(namesakes.values()) else ()
    told = {one.name for text in doubtful for one in stated_names.find_alias_candidates(text, every, names, other)}
    alone = {part for part in parts if namesakes[part] <= told}
    known = re.compile(build_name_pattern({*names, *(part for part in parts if not namesakes[part])}))
    maybe_known = re.compile(build_name_pattern({*names, *alone}))
    short = re.compile(build_name_pattern(alone) or "(?!)")
    folded = set(map(fold_name, (*names, *parts)))
    found, candidates = dict[str, str](), list[AliasCandidate]()
    for one in sorted(spoken, key=lambda one: len(one.text)):
        for name in stated_names.find_stated_names(one, known, names):
            if fold_name(name) not in folded:
                found.setdefault(name, one.text)
        candidates += stated_names.find_alias_candidates(one, maybe_known, names, other)
        for name in set(short.findall(person.sub("", one.text))) & alone:
            candidates.append(AliasCandidate(name, one.text, stated_names.POSSIBLE_POINTS))
    return found, [one for one in candidates if one.name not in found]


def _list_namesakes(texts: Iterable[str], name: str) -> set[str]:
    """Return the words that texts have beside a first or last name in other full names."""
    capital = r"[^\W\d_a-zа-яё][\w-]+"
    full = re.compile(rf"\b{re.escape(name)} ({capital})|\b({capital}) {re.escape(name)}\b")
    return {match[1] or match[2] for text in texts for match in full.finditer(text)}


def _is_name_of(entities: Iterable[Collection[str]], name: str) -> bool:
    """Return whether a name is the name, or a word of a name, of one of the entities."""
    expression = re.compile(build_name_pattern([name]))
    return any(expression.search(other) for names in entities for other in names)


def _is_first_name_of(entities: Iterable[Collection[str]], name: str) -> bool:
    """Return whether a longer name of one of the entities begins with a name."""
    return any(fold_name(other).startswith(f"{fold_name(name)} ") for names in entities for other in names)


async def _erase_tenet(tx: Tx, tenet_id: UUID, edit: IdentityEdit) -> None:
    """Erase the text of a line of the identity, unless it was erased already with another line of the same text."""
    tenets = await identity_store.list_tenets(tx, agent_id=edit.ctx.agent_id)
    if any(tenet.tenet_id == tenet_id and tenet.words for tenet in tenets):
        await identity_store.erase(tx, str(tenet_id), edit=edit)
