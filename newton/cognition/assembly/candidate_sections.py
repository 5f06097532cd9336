"""Rendering of the selected memories as sections, in the order of the profile, the best at start and end. Pure."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

import numpy as np

from newton.cognition.assembly.fact_labels import render_contradiction
from newton.cognition.assembly.render import (
    FENCED_KINDS,
    LAYERS_BY_DAY,
    DayTokens,
    TextBlock,
    add_item_id,
    fence,
    render_day_heading,
    render_memory,
    render_section_heading,
)
from newton.cognition.assembly.scored_candidate import SHOWN_TOGETHER, ScoredCandidate
from newton.cognition.sources.person import ABOUT_LAYER
from newton.content.profiles import Profile
from newton.heart.persons.profile_sections import TITLES
from newton.heart.procedures import section_header

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

T = TypeVar("T")


def arrange(best_first: Sequence[T], profile: Profile, *, sort_key: Callable[[T], tuple[datetime, UUID]]) -> list[T]:
    """Sort items as the profile says. `sort_key` returns (time, id) for the order `chronological`.

    The order `edges` puts the best item first, the second best last, and so on inwards. `clustered` is kept as best
    first, because it needs vectors: see `cluster`.
    """
    match profile.order:
        case "best_last":
            return list(reversed(best_first))
        case "edges":
            return [*best_first[0::2], *reversed(best_first[1::2])]
        case "chronological":
            return sorted(best_first, key=sort_key)
        case "best_first" | "clustered":
            return list(best_first)


def cluster(best_first: Sequence[UUID], vectors: "Mapping[UUID, Vector]", *, min_similarity: float) -> list[UUID]:
    """Group similar items: the best item, followed by items similar to it; then the best remaining item, and so on.

    Vectors are unit vectors; items without a vector form groups of their own. `min_similarity` is a cosine.
    """
    if not vectors:
        return list(best_first)
    zero = np.zeros_like(next(iter(vectors.values())))
    matrix = np.stack([vectors.get(memory_id, zero) for memory_id in best_first])
    remaining = np.ones(len(best_first), dtype=np.bool_)
    ordered: list[UUID] = []
    for leader in range(len(best_first)):
        if remaining[leader]:
            # row by row: the full matrix product would wait for BLAS threads
            group = (matrix @ matrix[leader] >= min_similarity) & remaining
            group[leader] = True  # an item without a vector is in its own group
            ordered += [best_first[index] for index in np.flatnonzero(group).tolist()]
            remaining &= ~group
    return ordered


FACTS = "facts"


def build_candidate_sections(
    candidates: Sequence[ScoredCandidate], profile: Profile, day_tokens: DayTokens, *, show_ids: bool
) -> dict[str, list[TextBlock]]:
    """Return the rendered items of each layer, in the profile's order, which for facts may be that of their statement.

    Facts that contradict each other are one item.

    `show_ids` adds the id of each memory to its line; the line of a long text that is cut has it always.
    """
    layers: dict[str, list[ScoredCandidate]] = {}
    for c in candidates:
        if c.detail and c.reason != SHOWN_TOGETHER:
            layers.setdefault(c.layer, []).append(c)
    members = {c.memory_id: c for c in candidates if c.label and c.label.group}
    return {
        layer: _group_by_day(items, profile, day_tokens, show_ids=show_ids)
        if layer in LAYERS_BY_DAY
        else _group_by_section(items, members, day_tokens, show_ids=show_ids)
        if layer == ABOUT_LAYER
        else [_render_item(c, members, show_id=show_ids) for c in _arrange_layer(layer, items, profile)]
        for layer, items in layers.items()
    }


def _arrange_layer(layer: str, items: Sequence[ScoredCandidate], profile: Profile) -> list[ScoredCandidate]:
    """Return the items of a layer in the profile's order; facts as they were stated, so that the latest is the last.

    A model takes the later of two facts about the same thing for the one that is true.
    """
    if layer == FACTS and profile.order == "best_first":
        return sorted(items, key=lambda item: (item.scored.found.told_at, item.memory_id))
    return arrange(items, profile, sort_key=_date_key)


def _group_by_day(
    candidates: Sequence[ScoredCandidate], profile: Profile, day_tokens: DayTokens, *, show_ids: bool
) -> list[TextBlock]:
    """Render the items without a date, then the items of each day under a heading, then text of tools within a fence.

    Days are in the profile's order of their best items, and chronological where that is the best first, so that the
    latest is the last; items within a day and within the fence are chronological.
    """
    days: dict[str | None, list[ScoredCandidate]] = {}
    for c in candidates:
        if c.kind not in FENCED_KINDS:
            days.setdefault(c.day, []).append(c)
    undated = arrange(days.pop(None, []), profile, sort_key=_date_key)
    blocks = [_render_item(c, {}, show_id=show_ids) for c in undated]
    ordered = arrange(list(days.items()), profile, sort_key=lambda day: _date_key(day[1][0]))
    for day, items in sorted(ordered, key=_day_of) if profile.order == "best_first" else ordered:
        assert day is not None, "undated items are removed above"
        lines = [
            render_memory(c.memory_id, c.context_line, c.tokens, show_id=show_ids)
            for c in sorted(items, key=_chronological_key)
        ]
        blocks += [render_day_heading(day, day_tokens), *lines]
    fenced = sorted((c for c in candidates if c.kind in FENCED_KINDS), key=_chronological_key)
    return [*blocks, *fence([_render_item(c, {}, show_id=show_ids) for c in fenced], day_tokens)]


def _group_by_section(
    candidates: Sequence[ScoredCandidate],
    members: Mapping[UUID, ScoredCandidate],
    day_tokens: DayTokens,
    *,
    show_ids: bool,
) -> list[TextBlock]:
    """Render the facts on a person under the headings of their sections, those stated last first."""
    told = sorted(candidates, key=lambda c: c.memory_id)
    # the latest message first, and what one message says in its order
    ordered = sorted(told, key=lambda c: (c.scored.found.told_at, c.scored.found.stated_position or 0), reverse=True)
    blocks = list[TextBlock]()
    for section in TITLES:
        items = list[tuple[ScoredCandidate, TextBlock]]()
        for c in (one for one in ordered if one.scored.section == section):
            if items and not show_ids and _is_continued(items[-1][0], c):
                items[-1] = (c, _continue_line(items[-1][1], c))
            else:
                items.append((c, _render_item(c, members, show_id=show_ids)))
        blocks += [render_section_heading(section, day_tokens), *(block for _, block in items)] if items else []
    return blocks


def _is_continued(before: ScoredCandidate, one: ScoredCandidate) -> bool:
    """Return whether a fact stands on the line of the one before: of one message, and nothing contradicts either."""
    first, second = before.scored.found, one.scored.found
    is_alone = not any((c.label and c.label.group) or "\n" in c.text for c in (before, one))
    is_same = (first.stated_thread_id, first.stated_position) == (second.stated_thread_id, second.stated_position)
    label, added = (c.label.prefix.removesuffix(":") if c.label else "" for c in (before, one))
    return is_alone and is_same and first.stated_thread_id is not None and label.startswith(added)


def _continue_line(block: TextBlock, one: ScoredCandidate) -> TextBlock:
    """Return the line with a further fact behind it, without its bullet and label, so the count is an upper limit."""
    return TextBlock(f"{block.text.rstrip()} {one.text}\n", block.tokens + one.tokens)


def _day_of(group: tuple[str | None, list[ScoredCandidate]]) -> str:
    return group[0] or ""


def _date_key(item: ScoredCandidate) -> tuple[datetime, UUID]:
    return item.scored.found.occurred_at, item.memory_id


def _chronological_key(item: ScoredCandidate) -> tuple[datetime, int, int, UUID]:
    """Return the sort key (time, session, position). An item that spans several messages comes before them."""
    found = item.scored.found
    position = -1 if found.position is None else found.position
    return found.occurred_at, found.thread_id.int if found.thread_id else 0, position, found.memory_id


def _render_item(item: ScoredCandidate, members: Mapping[UUID, ScoredCandidate], *, show_id: bool) -> TextBlock:
    """Render one item. A procedure gets a section of its own, titled with its name."""
    if item.label and item.label.group:
        group = [one for one in item.label.group if one in members]  # another may have been left out since
        lines = [(memory_id, members[memory_id].context_line) for memory_id in group]
        shown = [add_item_id(memory_id, line) if show_id else line for memory_id, line in lines]
        return TextBlock(render_contradiction(shown, item.label.alternative), item.tokens)
    if item.kind != "procedure":
        return render_memory(item.memory_id, item.context_line, item.tokens, show_id=show_id or item.is_cut)
    name = item.scored.found.micro.partition(":")[0]
    line = render_memory(item.memory_id, item.context_line, item.tokens, show_id=show_id)
    return TextBlock(section_header(name) + line.text, item.tokens)
