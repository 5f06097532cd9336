"""Replies without a model, which quote memories of the context as far as the censors permit."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from newton.agent.loop.action_gate import ActionGate
from newton.agent.loop.turn_state import RunningTurn
from newton.cognition.assembly.exclusion_rules import TIMELY_INDEX
from newton.cognition.assembly.fact_labels import render_contradiction
from newton.cognition.assembly.relevance_floor import ANSWER_INDEX, ANSWER_KINDS
from newton.cognition.assembly.render import render_header
from newton.cognition.assembly.scored_candidate import SHOWN_TOGETHER, STANDS, ScoredCandidate
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.bundles.bundle_store import AnsweredBy
from newton.cognition.questions.question_kinds import read_question
from newton.cognition.questions.question_rules import REASONS, asks_memory
from newton.cognition.session_context.service import SessionContext
from newton.cognition.sources.person import ABOUT_LAYER, NAME
from newton.cognition.sources.signals import asks_for_whole_range
from newton.dialogue.brief.item_detection import find_asked_kinds
from newton.errors import CensorError, NewtonError
from newton.heart.identity.standing_wishes import detect_instructions
from newton.heart.identity.user_names import find_names
from newton.heart.persons.person_questions import read_person_question
from newton.heart.persons.profile_sections import classify_text
from newton.heart.statements.commitment import is_addressed
from newton.heart.statements.statement_candidates import ClauseForm, has_verb, split_message
from newton.heart.statements.statement_selection import only_tells
from newton.memory.memory_reader import DATED_KINDS
from newton.memory.representations import to_bullet
from newton.text.greetings import is_courtesy
from newton.text.languages import ENGLISH, detect_language
from newton.text.patterns import find_statements
from newton.text.questions import contains_question, is_only_question, summarizes_session_starting_with
from newton.text.words import extract_content_words

MAX_QUOTES = 8
MIN_QUOTE_SHARE = 0.1  # of the best probability of an answer, for each other quote
MAX_NAME_QUESTION_WORDS = 2  # of content, in a question that asks for nothing but the name
WISH_REASONS = frozenset({REASONS["manner"], REASONS["instruction"]})
MIN_WISH_SHARE = 0.6  # of the characters of a text that only states a wish
MIN_COSINE = 0.2  # for memories that share no word with the input, if it was not judged whether they answer

# Procedures are excluded: they are instructions, not answers.
QUOTABLE_KINDS = frozenset({"exchange", "episode", "fact", "passage", "item", "event", "decision"})

NOTHING_FOUND = "Memory has nothing about this yet."
STORED = "Stored."


def asks_nothing(text: str) -> bool:
    """Return whether a message only tells something, in whole sentences, so that no memory answers it.

    >>> texts = ("I moved to Bergen.", "boiler plumber", "I moved. Where was my flat?", "Tell me about my flat.")
    >>> [asks_nothing(one) for one in texts]
    [True, False, False, False]
    """
    person, reading, code = read_person_question(text), read_question(text), detect_language(text)
    is_asked = contains_question(text) or asks_memory(text, reading) or person.is_asked or detect_instructions(text)
    # "I want to bake something" needs what is known of the person, "I can't eat nuts" tells it
    is_concerned = person.sections and classify_text(text, code) not in person.sections
    if is_asked or is_concerned or reading.kind != "point":
        return False
    if code != ENGLISH:
        return bool(find_statements(text, code)) and not is_addressed(text, code)
    clauses = split_message(text)
    tells = any(one.form is ClauseForm.STATEMENT and has_verb(one.text) for one in clauses)
    return only_tells(text, clauses) and (tells or is_courtesy(text))


def quote_memories(bundle: Bundle) -> list[str]:
    """Return lines that quote up to MAX_QUOTES memories of the context relevant to the input, best first.

    If the input asks about a time from which there are no memories, memories with a date are left out.
    """
    profile, gathering = _quote_profile(bundle), bundle.assembly_input.gathering
    question = read_person_question(bundle.input)
    asks_only_name = question.asks_name and len(extract_content_words(bundle.input)) <= MAX_NAME_QUESTION_WORDS
    if profile and (gathering.asks_changes or question.is_complete or asks_only_name):
        return profile
    skip_dated = bundle.empty_time_ranges and asks_for_whole_range(bundle.input, bundle.assembly_input.time_ranges)
    items = _select_answers([item for item in bundle.items if _is_relevant(item, bundle)], bundle)
    items = [item for item in items if not (skip_dated and item.kind in DATED_KINDS)][:MAX_QUOTES]
    quotes = [_render_quote(item, bundle) for item in items]
    return [*profile, *_quote_brief(bundle), *(one for one in quotes if one not in profile)][:MAX_QUOTES]


def _select_answers(items: Sequence[ScoredCandidate], bundle: Bundle) -> Sequence[ScoredCandidate]:
    """Return the items that come near the best answer, of those whose probabilities of an answer are compared.

    A model finds the answer among memories that are far from it, but a reply must not recite them.
    """
    floor = bundle.assembly_input.relevance_floor
    least = MIN_QUOTE_SHARE * max((item.scored.features[ANSWER_INDEX] for item in items), default=0.0)
    is_near = {item.memory_id for item in items if item.scored.features[ANSWER_INDEX] >= least}
    asked = bundle.assembly_input.gathering.about if bundle.assembly_input.gathering.asks_person else {}
    return [one for one in items if not floor.compares_answers or one.memory_id in is_near or one.memory_id in asked]


def _quote_profile(bundle: Bundle) -> list[str]:
    """Return what the context knows of the person whom the input asks about, in sections; nothing for other inputs.

    The identity has what the user wants to be called, and rules of the user.
    """
    if not bundle.assembly_input.gathering.asks_person:
        return []
    question = read_person_question(bundle.input)
    profile, identity = (_list_lines(bundle.text, layer) for layer in (ABOUT_LAYER, "identity"))
    named = [line for line in identity if find_names([line.rpartition(": ")[2]])]
    if question.asks_name:
        return [*named, *(profile or _quote_name(bundle))]
    if bundle.assembly_input.gathering.asks_changes:
        return profile
    return [*profile, *([] if question.name else identity)] if profile else []


def _quote_name(bundle: Bundle) -> list[str]:
    """Return the memories that tell the name of the user among the other facts and the messages of the conversation."""
    about = bundle.assembly_input.gathering.about
    telling = {memory_id for memory_id, section in about.items() if section == NAME}
    items = [one for one in bundle.items if telling & {one.memory_id, *(one.label.group if one.label else ())}]
    spoken = [to_bullet(one.summary).rstrip() for one in bundle.focus if one.memory_id in telling]
    return [*dict.fromkeys([*(_render_quote(one, bundle) for one in items), *spoken])]


def _list_lines(text: str, layer: str) -> list[str]:
    """Return the lines of a section of a context."""
    return f"\n{text}".partition(f"\n{render_header(layer)}")[2].partition("\n## ")[0].splitlines()


def _quote_brief(bundle: Bundle) -> list[str]:
    """Return the goals, deadlines and rules of the session for which the input asks ("What is our deadline?")."""
    if not contains_question(bundle.input):
        return []
    kinds = find_asked_kinds(bundle.input)
    return [line.block.text.rstrip() for line in bundle.assembly_input.brief.lines if line.kind in kinds]


def render_reply(quotes: Sequence[str], bundle: Bundle, *, is_stored: bool) -> str:
    """Return a reply that consists of the quotes, or says that nothing was found.

    If the input asks nothing and `is_stored`, the reply says that the input was stored, followed by the quotes, if any.
    For a request it says too that nothing was found.
    """
    gathering = bundle.assembly_input.gathering
    asks = contains_question(bundle.input) or is_only_question(bundle.input) or gathering.is_chronological
    if not is_stored or asks:
        return _render_quotes(quotes, bundle)
    is_told = not quotes and gathering.reading.kind != "standing"
    return STORED if is_told else f"{STORED} {_render_quotes(quotes, bundle)}"


def _render_quotes(quotes: Sequence[str], bundle: Bundle) -> str:
    empty = ", ".join(bundle.empty_time_ranges)
    incomplete = bundle.incomplete_text
    if not quotes and incomplete:
        return incomplete
    if not quotes:
        return f"Memory has nothing from that time ({empty})." if empty else NOTHING_FOUND
    start = "From memory, which may not answer this:" if bundle.may_not_answer else "From memory:"
    head = [f"Memory has nothing from that time ({empty}).", "From other times:"] if empty else [start]
    return "\n".join([*head, *quotes, *filter(None, [incomplete])])


def _render_quote(item: ScoredCandidate, bundle: Bundle) -> str:
    """Return one memory as a line of the reply; facts that contradict each other are rendered together."""
    if item.label is None:
        return to_bullet(item.text).rstrip()
    lines = {c.memory_id: c.context_line for c in bundle.items}
    shown = [lines[memory_id] for memory_id in item.label.group or (item.memory_id,) if memory_id in lines]
    return render_contradiction(shown, item.label.alternative).rstrip()


def _is_relevant(item: ScoredCandidate, bundle: Bundle) -> bool:
    """Return whether a memory of the context may be quoted as an answer to the input."""
    found = item.scored.found
    if (
        item.kind not in QUOTABLE_KINDS
        or item.reason in (SHOWN_TOGETHER, STANDS)
        or found.is_only_question
        or (item.kind == "episode" and summarizes_session_starting_with(found.spoken_text, bundle.input))
    ):
        return False
    if _is_unasked_wish(item, bundle):
        return False
    if item.scored.features[TIMELY_INDEX] > 0:
        return True
    # the messages of the session are in the context whatever they say
    floor = bundle.assembly_input.relevance_floor
    if floor.find_reason(item.scored) is not None:
        return False
    is_judged = floor.judges_answers and item.kind in ANSWER_KINDS
    return is_judged or item.features["lexical"] > 0 or item.features["cosine"] >= MIN_COSINE


def _is_unasked_wish(item: ScoredCandidate, bundle: Bundle) -> bool:
    """Return whether a memory only says how to answer ("Please answer briefly"), but the input is about something else.

    Such memories are in a context because they apply to each input, not because they answer it.
    """
    text = item.scored.found.spoken_text
    wish = " ".join(one.text for one in detect_instructions(text))
    applies = bundle.assembly_input.gathering.reasons.get(item.memory_id) in WISH_REASONS
    if not applies and len(wish) < MIN_WISH_SHARE * len(text):
        return False
    return extract_content_words(bundle.input).isdisjoint(extract_content_words(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryQuoter:
    """Replies with quotes of memories where no model answered. `has_model` says whether a model is configured."""

    gate: ActionGate
    has_model: bool

    async def quote(
        self,
        turn: RunningTurn,
        context: SessionContext | None,
        reason: NewtonError,
        *,
        exempt: Collection[UUID],
    ) -> tuple[str, AnsweredBy] | None:
        """Return a reply that quotes the context, and who wrote it: "memory" or, if it is forbidden, "censor".

        Return None without a context; an API caller also gets None without quotes if a model is configured, and else
        `reason` before the quotes. Censors with ids in `exempt` are not applied.
        """
        if context is None:
            return None
        is_told = turn.private is None and asks_nothing(turn.question or "")
        quotes = [] if is_told else quote_memories(context.bundle)
        if turn.is_api_call and not quotes and self.has_model:
            return None
        allowed = await self.gate.omit_blocked(quotes, exempt=exempt)
        reply = STORED if is_told else render_reply(allowed or quotes, context.bundle, is_stored=turn.private is None)
        if turn.is_api_call:  # its clients show nothing but the text
            reply = f"({reason.what} This answer only quotes memory.)\n\n{reply}"
        try:
            await self.gate.check_reply(reply, exempt=exempt)
        except CensorError as error:
            return str(error), "censor"
        return reply, "memory"
