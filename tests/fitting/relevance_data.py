"""Searches with known answers, for scripts/fit-relevance: dialogue, generated memories and small stores of facts."""

import json
import random
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import yaml

from bench.dataset import DatasetConversation, DatasetQuestion, load_conversations
from newton.clock import ManualClock
from newton.cognition.questions.question_kinds import read_question
from newton.cognition.questions.question_rules import ANSWERED_KINDS
from newton.cognition.request import ContextBuildRequest
from newton.content.profiles import GatherOptions
from newton.memory.agents import get_or_create_agent
from newton.memory.representations import one_line
from newton.memory.search_types import RecallResult, RetrievedMemory
from newton.providers import token_counter
from newton.runtime.transfer.import_source import read_file
from newton.runtime.wiring import AgentServices
from tests.fitting.answers import AnswerCase
from tests.fitting.generated_beliefs import generate_store
from tests.fitting.merged_conversations import import_merged
from tests.long_texts import generate_long_texts, import_texts
from tests.scenarios import worked

DATA = Path(__file__).parents[1] / "data"
LIFE, SMALL = "life", "small"  # groups of questions beside the folders
UNKNOWN, SMALL_UNKNOWN = "unknown", "small and unknown"  # groups that have no answer
FOREIGN = 3  # of each person's questions without an answer, those that share no word with the facts
NOW = datetime(2026, 11, 1, tzinfo=UTC)
FOREIGN_QUESTIONS = {"locomo": 40, "beam": 20}  # on other conversations, for each conversation of a group
STORES = ((9, 80), (9, 80), (9, 80), (4, 60), (4, 60), (4, 60), (1, 30), (1, 30), (1, 30), (2, 40), (2, 40))
LONG_TEXTS, LONG_SEED = 120, 77

# Whether a found memory is relevant: True, False, or None if it counts for neither.
Label = Callable[[RetrievedMemory], bool | None]


@dataclass(frozen=True, slots=True)
class TopicCase:
    """What was found for a question of a group, and which of the memories are about it. Memories may have no label.

    `count` is the number of lines that answer a question on a conversation, 0 for another one.
    """

    group: str
    result: RecallResult
    labels: Mapping[UUID, bool]
    count: int = 0


class Folder(NamedTuple):
    """The conversations of a folder, of which the first half is fitted and the second is held out."""

    name: str
    conversations: Sequence[DatasetConversation]

    @property
    def group(self) -> str:
        return "beam" if "beam" in self.name else "locomo"

    @property
    def cut(self) -> int:
        return (len(self.conversations) + 1) // 2

    @property
    def fitted(self) -> Sequence[DatasetConversation]:
        return self.conversations[: self.cut]

    @property
    def held_out(self) -> Sequence[DatasetConversation]:
        return self.conversations[self.cut :]


def load_folder(path: Path) -> Folder:
    """Load the conversations of a folder in the order of the numbers in their names: `chat_10` comes after `chat_9`."""
    loaded = load_conversations(path, count_tokens=token_counter.count)
    return Folder(path.name, sorted(loaded, key=lambda one: [int(n) for n in re.findall(r"\d+", one.name)]))


async def collect_topics(newton: AgentServices, folders: Sequence[Folder]) -> list[TopicCase]:
    """Return the cases for the probability of being relevant to a topic."""
    unknown, cases = load_data("unknown_questions.yaml")[::2], list[TopicCase]()
    everything = [one for folder in folders for one in folder.conversations]
    dialogue = await import_merged(await create_agent(newton, "dialogue"), everything)
    for folder in folders:
        for conversation in folder.fitted:
            for question in conversation.questions:
                label = _label_dialogue(conversation, question)
                case = _to_topic_case(folder.name, await search(dialogue, question.text), label)
                cases.append(replace(case, count=len(question.gold)))
    life, asked = await _import_life(await create_agent(newton, "life"))
    cases += [_to_topic_case(LIFE, await search(life, text), label) for text, label in asked]
    for own in (dialogue, life):
        cases += [TopicCase(UNKNOWN, await search(own, text), {}) for text in unknown]
    for number, person in enumerate(load_data("small_stores.yaml")):
        small = await _import_person(await create_agent(newton, f"small-{number}"), person)
        for one in person["questions"]:
            cases.append(_to_topic_case(SMALL, await search(small, one["ask"]), _label_facts(one["gold"])))
        foreign = person["unanswerable"][:FOREIGN]
        cases += [TopicCase(SMALL_UNKNOWN, await search(small, text), {}) for text in foreign]
    return cases


async def collect_answers(
    newton: AgentServices, folders: Sequence[Folder], topics: Sequence[TopicCase]
) -> list[AnswerCase]:
    """Return the cases for the probability of an answer: each conversation in an agent of its own, and the others."""
    cases = [case for folder in folders async for case in ask_conversations(newton, folder, folder.fitted)]
    unknown = [case.result for case in topics if case.group == UNKNOWN][::2]
    cases += [AnswerCase("unknown", result.query.text, result, frozenset(), 0) for result in unknown]
    cases += [_to_merged_case(case) for case in topics if case.count and _asks_for_answer(case.result.query.text)]
    cases += [case async for case in ask_persons(newton, "small_stores.yaml")]
    cases += [case async for case in ask_stores(newton, "answers")]
    for seed, (names, questions) in enumerate(STORES, 1):
        store = generate_store(seed, names=names, questions=questions)
        own = await import_facts(await create_agent(newton, f"beliefs-{seed}"), store.facts)
        for question in store.questions:
            group = "generated" if question.right else "other attribute"
            found = await search(own, question.text)
            cases.append(_to_answer_case(group, question.text, found, question.right))
    return [*cases, *await _ask_long_texts(await create_agent(newton, "long"))]


async def _ask_long_texts(newton: AgentServices) -> list[AnswerCase]:
    texts, cases = generate_long_texts(LONG_TEXTS, seed=LONG_SEED), list[AnswerCase]()
    await import_texts(newton, texts)
    for text in texts:
        found = await search(newton, text.question)
        right = [f for f in found.memories if text.marked_sentence in one_line(f.full_text or f.summary)]
        cases.append(AnswerCase("long", text.question, found, frozenset(f.memory_id for f in right), 1))
    return cases


async def ask_conversations(
    newton: AgentServices, folder: Folder, chosen: Sequence[DatasetConversation]
) -> AsyncIterator[AnswerCase]:
    """Yield the questions for a fact or a list on each conversation, and questions on other ones of the folder."""
    for conversation in chosen:
        own = await import_merged(await create_agent(newton, f"answers-{conversation.name}"), [conversation])
        for question in conversation.questions:
            gold = {f"{conversation.name}/{ref}" for ref in question.gold}
            if _asks_for_answer(question.text):
                yield _to_answer_case(folder.group, question.text, await search(own, question.text), gold)
        others = [q.text for other in folder.conversations if other is not conversation for q in other.questions]
        for text in random.Random(conversation.name).sample(others, FOREIGN_QUESTIONS[folder.group]):
            yield AnswerCase(f"{folder.group} foreign", text, await search(own, text), frozenset(), 0)


async def ask_persons(newton: AgentServices, file: str) -> AsyncIterator[AnswerCase]:
    """Yield the questions to the agents with twelve facts of a file."""
    for number, person in enumerate(load_data(file)):
        small = await _import_person(await create_agent(newton, f"{file}-{number}"), person)
        for one in person["questions"]:
            right = {f"p-{n}" for n in one["gold"]}
            yield _to_answer_case("small", one["ask"], await search(small, one["ask"]), right)
        for place, text in enumerate(person["unanswerable"]):
            group = "foreign" if place < FOREIGN else "shared words"
            yield AnswerCase(group, text, await search(small, text), frozenset(), 0)


async def ask_stores(newton: AgentServices, name: str) -> AsyncIterator[AnswerCase]:
    """Yield the questions to the small memories of a file of `question_stores`. They have the name as their group."""
    for number, store in enumerate(load_data(f"question_stores/{name}.yaml")):
        own = await import_facts(await create_agent(newton, f"{name}-{number}"), store["items"])
        for one in store["questions"]:
            group = name if one["right"] else f"{name}, nothing known"
            yield _to_answer_case(group, one["ask"], await search(own, one["ask"]), set(one["right"]))


async def ask_beliefs(newton: AgentServices) -> AsyncIterator[AnswerCase]:
    """Yield the questions to the labelled beliefs of one person, of which nothing is fitted."""
    data = load_data("labelled_beliefs.yaml")
    current = {ref: text for ref, text in data["facts"].items() if ref not in data["superseded"]}
    own = await import_facts(await create_agent(newton, "labelled"), current)
    for one in data["questions"]:
        yield _to_answer_case("labelled beliefs", one["ask"], await search(own, one["ask"]), set(one["right"]))


async def search(newton: AgentServices, text: str) -> RecallResult:
    """Search for a text; return the result, with its memories and the share of the text's words that memory has."""
    request = ContextBuildRequest(agent_id=newton.scope.agent_id, input=text, tokens=8_000)
    sources = newton.context_builder.create_sources(request)
    gathered = await sources.gather(request, reach=GatherOptions(), now=newton.context_builder.clock.now())
    return gathered.recall_result


async def create_agent(newton: AgentServices, name: str) -> AgentServices:
    agent_id = await get_or_create_agent(newton.scope.db, f"fit-{name}", now=newton.scope.now())
    return replace(newton, scope=replace(newton.scope, agent_id=agent_id))


async def import_facts(newton: AgentServices, facts: Mapping[str, str]) -> AgentServices:
    """Import facts by ref; return the agent, whose time is NOW."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "facts.ndjson"
        lines = [{"type": "fact", "ref": ref, "content": fact, "at": NOW.isoformat()} for ref, fact in facts.items()]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return await _import_file(newton, path)


def load_data(name: str) -> Any:
    return yaml.safe_load((DATA / name).read_text(encoding="utf-8"))


def _to_answer_case(group: str, text: str, result: RecallResult, refs: frozenset[str] | set[str]) -> AnswerCase:
    right = frozenset(found.memory_id for found in result.memories if found.ref in refs)
    return AnswerCase(group, text, result, right, len(refs))


def _to_merged_case(case: TopicCase) -> AnswerCase:
    """Return the case of a question on one conversation to the agent that has all of them."""
    right = frozenset(memory_id for memory_id, is_right in case.labels.items() if is_right)
    return AnswerCase("merged", case.result.query.text, case.result, right, case.count)


def _asks_for_answer(text: str) -> bool:
    return read_question(text).kind in ANSWERED_KINDS


def _to_topic_case(group: str, result: RecallResult, label: Label) -> TopicCase:
    labels = {found.memory_id: label(found) for found in result.memories}
    return TopicCase(group, result, {key: value for key, value in labels.items() if value is not None})


def _label_dialogue(conversation: DatasetConversation, question: DatasetQuestion) -> Label:
    """Return a function that labels a gold line True, a line of another conversation False, and other lines None."""
    gold = {f"{conversation.name}/{ref}" for ref in question.gold}

    def label(found: RetrievedMemory) -> bool | None:
        if found.ref in gold:
            return True
        return None if (found.ref or "").startswith(f"{conversation.name}/") else False

    return label


def _label_facts(gold: Sequence[int]) -> Label:
    return lambda found: (found.ref or "") in {f"p-{n}" for n in gold}


async def _import_person(newton: AgentServices, person: Mapping[str, Any]) -> AgentServices:
    return await import_facts(newton, {f"p-{n}": fact for n, fact in enumerate(person["facts"])})


async def _import_file(newton: AgentServices, path: Path) -> AgentServices:
    report = await newton.importer().run(read_file(path))
    assert not report.rejections, report.rejections[:3]
    return replace(newton, context_builder=replace(newton.context_builder, clock=ManualClock(NOW)))


async def _import_life(newton: AgentServices) -> tuple[AgentServices, list[tuple[str, Label]]]:
    """Import facts about ten topics into a synthetic memory; return the agent and the questions with their labels."""
    topics = load_data("week.yaml")["topics"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "life.ndjson"
        path = worked.write(file, NOW, decisions=600, facts=1_500, episodes=400, procedures=60, censors=0)
        own = [
            {"type": "fact", "ref": f"w-{t}-{n}", "content": fact["say"], "at": NOW.isoformat()}
            for t, topic in enumerate(topics)
            for n, fact in enumerate(topic["facts"])
        ]
        with path.open("a") as opened:
            opened.writelines(f"{json.dumps(line)}\n" for line in own)
        newton = await _import_file(newton, path)

    def label_for(t: int) -> Label:
        def label(found: RetrievedMemory) -> bool | None:
            ref = found.ref or ""
            if ref.startswith(f"w-{t}-"):
                return True
            return None if ref.startswith(("w-", "r-")) else False

        return label

    return newton, [(fact["ask"], label_for(t)) for t, topic in enumerate(topics) for fact in topic["facts"]]
