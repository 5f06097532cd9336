"""Selection of the facts on a person that a context shows as a section of its own, the profile. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from newton.cognition.assembly.budget import ContextBudget, reserve_layer
from newton.cognition.assembly.render import TextBlock, count_day_tokens
from newton.cognition.sources.person import ABOUT_LAYER, FoundPerson
from newton.heart.persons.profile_sections import ENDED, TITLES
from newton.memory.memory import TokenCounter, past_reason
from newton.memory.representations import to_bullet
from newton.memory.search_types import RetrievedMemory

LABEL_TOKENS = 8  # of a fact: whose word, its day
MIN_TOKEN_CHARS = 3  # of what replaced a fact, in its label
MAX_SHARE = 0.5  # of the tokens of the flexible layers
ASKED_SHARE = 0.9  # of the same, for an input that asks for what is known of a person


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutSelection:
    """The facts of the profile that fit, the tokens to reserve for them, and a note on how many there are."""

    person: FoundPerson = field(default_factory=FoundPerson)
    tokens: int = 0
    note: TextBlock | None = None

    def reserve(self, budget: ContextBudget) -> ContextBudget:
        """Return the budget with room for the profile."""
        return reserve_layer(budget, ABOUT_LAYER, self.tokens, max_share=ASKED_SHARE)


def select_about(
    found: FoundPerson,
    budget: ContextBudget,
    max_tokens: int,
    header_tokens: Mapping[str, int],
    count_tokens: TokenCounter,
) -> AboutSelection:
    """Return the facts that fit: into `max_tokens`, headings included, if the input does not ask for them."""
    headings = count_day_tokens(count_tokens).sections
    flexible, is_asked = sum(budget.layers[name] for name in budget.flexible), found.question.is_asked
    limit = int(flexible * ASKED_SHARE) if is_asked else min(max_tokens, int(flexible * MAX_SHARE))
    note = _render_note(found, 0, count_tokens) if found.question.is_complete else None
    used, started, chosen = (
        header_tokens[ABOUT_LAYER] + (note.tokens + 3 if note else 0),
        set[str](),
        list[RetrievedMemory](),
    )
    for number, one in enumerate(found.memories):
        section = found.sections[one.memory_id]
        heading = 0 if section in started else headings[section]
        cost = one.summary_tokens + LABEL_TOKENS + len(one.changed or "") // MIN_TOKEN_CHARS + heading
        may_be_past = found.question.changes or (section == ENDED and len(chosen) == number)  # if all that holds fits
        is_past = past_reason(one.kind, one.state) and not may_be_past
        if used + cost <= limit and not (one.quarantined or is_past):
            used += cost
            started.add(section)
            chosen.append(one)
    if not chosen:
        note = note if found.question.changes else None
        return AboutSelection(person=replace(found, memories=(), sections={}), tokens=used if note else 0, note=note)
    sections = {one.memory_id: found.sections[one.memory_id] for one in chosen}
    person = replace(found, memories=chosen, sections=sections)
    shown = sum(found.question.changes is not None or not past_reason(one.kind, one.state) for one in chosen)
    return AboutSelection(person=person, tokens=used, note=note and _render_note(found, shown, count_tokens))


def _render_note(found: FoundPerson, shown: int, count_tokens: TokenCounter) -> TextBlock:
    total, name = max(found.total, shown), f' "{found.question.name}"' if found.question.name else ""
    more = "" if shown >= total else f"; `newton about{name} --all` lists them"
    if span := found.question.changes:
        counts = Counter(found.sections.values())
        parts = (f"{counts[name]} {TITLES[name].casefold()}" for name in ("added", "replaced", "ended"))
        begin = f"{span.phrase[:1].upper()}{span.phrase[1:]} ({span.start:%Y-%m-%d})" if span.start else span.phrase
        line = to_bullet(f"{begin}: {', '.join(parts)}; {shown} shown.")
    else:
        line = to_bullet(f"{total} {'fact' if total == 1 else 'facts'}, {shown} shown{more}.")
    return TextBlock(line, count_tokens(line))
