"""Assembly of a context: reject candidates, place the rest within the budget, and render. Pure."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from uuid import UUID

from newton.cognition.assembly.artifact_selection import add_artifact_reason, select_artifacts
from newton.cognition.assembly.assembly_input import AssemblyInput
from newton.cognition.assembly.candidate_sections import build_candidate_sections
from newton.cognition.assembly.exclusion_rules import (
    IS_FACT_SOURCE,
    REPEATS_STATED_FACT,
    MemoryDeduplicator,
    find_exclusion_reason,
    find_fact_sources,
    find_floor_reason,
    find_needless,
    find_out_of_range,
    find_repeated_messages,
    is_too_far,
)
from newton.cognition.assembly.fact_labels import render_fact
from newton.cognition.assembly.fill import DOCUMENT_LAYER, SESSION_LAYER, FillCandidate, FillPlacement, fill
from newton.cognition.assembly.relevance_floor import MIN_SUFFICIENCY
from newton.cognition.assembly.render import (
    FENCE_GROUP,
    FENCED_KINDS,
    LAYERS_BY_DAY,
    TextBlock,
    render,
    render_memory,
)
from newton.cognition.assembly.scored_candidate import (
    STANDS,
    LayerUsage,
    ScoredCandidate,
    label_candidates,
    reject_repeated_facts,
    reject_surplus_passages,
    resize_long_candidate,
)
from newton.cognition.assembly.sections import IdentitySection
from newton.cognition.scoring.score import ScoredMemory
from newton.cognition.sources.person import ABOUT_LAYER
from newton.memory.memory import past_reason
from newton.memory.search_types import RetrievedMemory
from newton.text.questions import contains_question

EPISODE_LAYER, OTHER_SESSIONS = "episodes", "other sessions"
INEFFECTIVE_PENALTY = 10.0  # more than any score


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyResult:
    """A rendered context: its text, the tokens of each layer, all candidates, and the memories in Current Focus."""

    block: TextBlock
    identity: IdentitySection
    focus: tuple[RetrievedMemory, ...]
    layers: Mapping[str, LayerUsage]
    candidates: tuple[ScoredCandidate, ...]


def assemble(scored: Sequence[ScoredMemory], assembly_input: AssemblyInput) -> AssemblyResult:
    """Select memories for a context, best score first, within the budget, and render it."""
    injected = assembly_input.injected
    ordered = sorted(scored, key=lambda s: (s.found.memory_id not in injected, -_rank_score(s), s.found.memory_id))
    focus = select_focus(assembly_input)
    fixed = render(_build_fixed_sections(assembly_input, focus), header_tokens=assembly_input.header_tokens)
    rejected = _reject_candidates([s for s in ordered if s.layer != SESSION_LAYER], assembly_input, focus=focus)
    free_tokens = assembly_input.budget.total - fixed.tokens - _reserve_note(assembly_input)
    placer = _Placer(ordered, assembly_input, rejected, max_tokens=max(0, free_tokens))
    verdicts = placer.place_all([found.summary for found in focus])
    return compose([ScoredCandidate(s, verdicts[s.found.memory_id]) for s in ordered], assembly_input, focus=focus)


class _Placer:
    """Places candidates in a context. Rejects artifacts that repeat a message of the context."""

    def __init__(
        self,
        ordered: Sequence[ScoredMemory],
        assembly_input: AssemblyInput,
        rejected: Mapping[UUID, FillPlacement],
        *,
        max_tokens: int,
    ) -> None:
        self._ordered, self._assembly_input = ordered, assembly_input
        self._rejected, self._max_tokens = rejected, max_tokens
        self._artifacts = [s.found for s in ordered if s.layer == SESSION_LAYER]

    def place_all(self, shown_texts: Sequence[str]) -> dict[UUID, FillPlacement]:
        """Return for each candidate its form in the context, if any, and the reason.

        Leaves out artifacts that repeat a placed message or one of `shown_texts`, which are always in the context.
        """
        messages = [s for s in self._ordered if s.found.kind in ("exchange", "event")]
        possible = [s.found.summary for s in messages if s.found.memory_id not in self._rejected]
        suspected = self._find_repeated(self._artifacts, [*shown_texts, *possible])
        # A message that finds no room repeats nothing, so the artifacts are checked again against those placed.
        placed = self._fill_layers(suspected)
        candidates = [ScoredCandidate(s, placed[s.found.memory_id]) for s in messages]
        shown = [*shown_texts, *(c.text for c in candidates if c.detail)]
        confirmed = self._find_repeated([f for f in self._artifacts if f.memory_id in suspected], shown)
        return placed if confirmed == suspected else self._fill_layers(confirmed)

    def _find_repeated(self, artifacts: Sequence[RetrievedMemory], shown_texts: Sequence[str]) -> set[UUID]:
        folded = [text.casefold() for text in shown_texts] if artifacts else []
        return {f.memory_id for f in artifacts if any(f.spoken_text.casefold() in text for text in folded)}

    def _fill_layers(self, repeated: Set[UUID]) -> dict[UUID, FillPlacement]:
        """Place all candidates within the budget, without the `repeated` artifacts."""
        inputs = self._assembly_input
        excluded = {f.memory_id: reason for f in self._artifacts if (reason := past_reason(f.kind, f.state))}
        excluded |= dict.fromkeys(repeated, "repeats a message of the context")
        free_tokens = inputs.budget.layers.get(SESSION_LAYER, 0) - inputs.header_tokens.get(SESSION_LAYER, 0)
        selection = select_artifacts(
            self._artifacts, inputs.artifact_selector, inputs.sent_messages, excluded=excluded, max_tokens=free_tokens
        )
        rejected = {
            memory_id: FillPlacement(memory_id, None, 0, reason) for memory_id, reason in selection.rejected.items()
        }
        rejected = {**self._rejected, **rejected}
        ranks = {memory_id: -float(rank) for rank, memory_id in enumerate(selection.selected)}
        asked = inputs.gathering.about if inputs.gathering.asks_person else {}
        candidates = [to_fill_candidate(s, inputs) for s in self._ordered if s.found.memory_id not in rejected]
        layers, maximum = inputs.budget.layers, inputs.budget.other_sessions
        limited = {s.found.memory_id for s in self._ordered if is_of_other_session(s, inputs)}
        placed = fill(
            [
                c._replace(
                    score=ranks.get(c.memory_id, c.score),
                    is_first=c.memory_id in inputs.injected or c.memory_id in asked,
                    sublayer=OTHER_SESSIONS if c.memory_id in limited else "",
                )
                for c in candidates
            ],
            max_tokens=self._max_tokens,
            layers=layers if maximum is None else {**layers, OTHER_SESSIONS: maximum},
            header_tokens=inputs.header_tokens,
            policy=inputs.profile.fill,
            sealed_layers={SESSION_LAYER, DOCUMENT_LAYER, *inputs.budget.layers} - inputs.budget.flexible,
        )
        placed = [_add_choice_reason(p, inputs) for p in placed]
        return {**rejected, **{p.memory_id: add_artifact_reason(p, selection) for p in placed}}


def compose(
    candidates: Sequence[ScoredCandidate], assembly_input: AssemblyInput, *, focus: Sequence[RetrievedMemory]
) -> AssemblyResult:
    """Render a context of candidates that have been placed, best first."""
    candidates = label_candidates(candidates, assembly_input.fact_labels)
    shown = build_candidate_sections(
        candidates,
        assembly_input.section_profile,
        assembly_input.day_tokens,
        show_ids=assembly_input.item_id_tokens > 0,
    )
    fixed, is_asked = _build_fixed_sections(assembly_input, focus), assembly_input.gathering.asks_person
    profile = [*shown.get(ABOUT_LAYER, ()), *fixed[ABOUT_LAYER]]
    sections = {**fixed, **shown, ABOUT_LAYER: profile}
    if is_asked and profile:
        pass
    elif not (focus or any(c.detail and c.layer != ABOUT_LAYER and c.reason != STANDS for c in candidates)):
        sections = _add_note(sections, assembly_input.nothing_known_note, assembly_input)
    elif _is_insufficient(candidates, assembly_input):
        sections = _add_note(sections, assembly_input.uncertain_note, assembly_input)
    return AssemblyResult(
        block=render(sections, header_tokens=assembly_input.header_tokens),
        identity=assembly_input.identity,
        focus=tuple(focus),
        layers=_measure_layers(sections, assembly_input),
        candidates=tuple(candidates),
    )


def _is_insufficient(candidates: Sequence[ScoredCandidate], assembly_input: AssemblyInput) -> bool:
    """Return True if the selected memories probably do not answer the input; False if this cannot be judged.

    If each memory was judged as an answer, the sufficiency decides. Else memory must hardly know the topic of the
    input, and no artifact or tool result of the session is shown, which may answer it all the same.
    """
    floor = assembly_input.relevance_floor
    if not floor.judges_answers:
        return _is_unknown_topic(assembly_input) and not any(
            c.detail and _is_from_session(c.scored, assembly_input) for c in candidates
        )
    shown = [c.scored for c in candidates if c.detail]
    found = [c.scored for c in candidates if c.reason != REPEATS_STATED_FACT]
    sufficiency = floor.estimate_sufficiency(shown, found)
    return sufficiency is not None and sufficiency < MIN_SUFFICIENCY


def _is_unknown_topic(assembly_input: AssemblyInput) -> bool:
    """Return True if memories are selected by topic, not as answers, and memory hardly knows the topic of the input."""
    floor = assembly_input.relevance_floor
    return floor.minimum > 0 and floor.is_hardly_known and not floor.judges_answers


def is_of_other_session(scored: ScoredMemory, assembly_input: AssemblyInput) -> bool:
    """Return True for a message or summary of another session that was not injected into this one."""
    found = scored.found
    is_added = found.memory_id in assembly_input.injected or found.memory_id in assembly_input.observations
    return scored.layer == EPISODE_LAYER and found.thread_id != assembly_input.session_id and not is_added


def _is_from_session(scored: ScoredMemory, assembly_input: AssemblyInput) -> bool:
    """Return True for an artifact or a tool result of the session, and for a memory injected into it."""
    memory_id = scored.found.memory_id
    is_added = memory_id in assembly_input.injected or memory_id in assembly_input.observations
    return is_added or scored.layer == SESSION_LAYER


def _reserve_note(assembly_input: AssemblyInput) -> int:
    """Return the tokens to reserve for the note on an unknown topic, because similar memories can fill the context."""
    note = assembly_input.uncertain_note
    if note is None or not _is_unknown_topic(assembly_input) or not _takes_note(assembly_input):
        return 0
    return note.tokens + assembly_input.header_tokens["note"]


def _takes_note(assembly_input: AssemblyInput) -> bool:
    """Return True if the input asks a question, and no other note says what is missing from memory.

    Nothing is missing for a task: memory may help with it, but it is not asked.
    """
    if assembly_input.relevance_floor.need == "gather":
        return False
    is_asked = assembly_input.gathering.is_chronological or contains_question(assembly_input.input)
    return is_asked and not (assembly_input.empty_range_note or assembly_input.incomplete_note)


def _add_note(
    sections: Mapping[str, Sequence[TextBlock]], note: TextBlock | None, assembly_input: AssemblyInput
) -> Mapping[str, Sequence[TextBlock]]:
    """Add the note if the input is a question without another note, and the context still fits its budget."""
    if note is None or not _takes_note(assembly_input):
        return sections
    extended = {**sections, "note": [*sections["note"], note]}
    fits = render(extended, header_tokens=assembly_input.header_tokens).tokens <= assembly_input.budget.total
    return extended if fits else sections


def _build_fixed_sections(
    assembly_input: AssemblyInput, focus: Sequence[RetrievedMemory]
) -> dict[str, Sequence[TextBlock]]:
    """Return the sections that do not depend on the candidates."""
    shows_ids = assembly_input.item_id_tokens > 0
    return {
        "identity": assembly_input.identity.blocks,
        "censors": assembly_input.censors.blocks,
        "frame": [assembly_input.frame_section],
        "brief": assembly_input.brief.blocks,
        **assembly_input.tasks.to_layers(),
        ABOUT_LAYER: [note] if (note := assembly_input.about_note) else [],
        "working": [render_memory(f.memory_id, *_label_focus(f, assembly_input), show_id=shows_ids) for f in focus],
        "additional": assembly_input.extra,
        "note": _build_notes(assembly_input),
    }


def _label_focus(found: RetrievedMemory, assembly_input: AssemblyInput) -> tuple[str, int]:
    """Return the line of a memory in Current Focus, with its label, and the tokens of the line."""
    label, ids = assembly_input.fact_labels.get(found.memory_id), assembly_input.item_id_tokens
    if label is None:
        return found.summary, found.summary_tokens + ids
    return render_fact(label, found.summary), label.summary_tokens + ids


def _rank_score(scored: ScoredMemory) -> float:
    """Return the score that orders memories for placement. Ineffective procedures rank below all other memories."""
    return scored.score - INEFFECTIVE_PENALTY * (scored.found.state == "INEFFECTIVE")


def to_fill_candidate(scored: ScoredMemory, assembly_input: AssemblyInput) -> FillCandidate:
    """Return the size and score of a memory for filling. Lines under a day heading are counted without date prefix."""
    found, layer, day_tokens = scored.found, scored.layer, assembly_input.day_tokens
    ids, label = assembly_input.item_id_tokens, assembly_input.fact_labels.get(found.memory_id)
    ids *= max(len(label.group), 1) if label else 1  # an item of contradicting facts has one line for each
    summary, micro = (label or found).summary_tokens + ids, (label or found).micro_tokens + ids
    if found.is_long and not (label and label.group):
        extra = summary - found.summary_tokens
        candidate = FillCandidate(found.memory_id, layer, _rank_score(scored), summary, micro)
        return resize_long_candidate(candidate, found, extra, extra - ids + assembly_input.cut_id_tokens)
    if scored.section:
        heading = day_tokens.sections[scored.section]
        return FillCandidate(found.memory_id, layer, _rank_score(scored), summary, micro, scored.section, heading)
    if found.kind in FENCED_KINDS:
        return FillCandidate(found.memory_id, layer, scored.score, summary, micro, FENCE_GROUP, day_tokens.fence)
    if layer not in LAYERS_BY_DAY or (day := found.day) is None:
        return FillCandidate(found.memory_id, layer, _rank_score(scored), summary, micro)
    summary, micro = summary - day_tokens.prefix, micro - day_tokens.prefix
    return FillCandidate(found.memory_id, layer, scored.score, summary, micro, day, day_tokens.heading)


def _reject_candidates(
    ordered: Sequence[ScoredMemory], assembly_input: AssemblyInput, *, focus: Sequence[RetrievedMemory]
) -> dict[UUID, FillPlacement]:
    """Return the candidates that are excluded even if they would fit, with the reasons."""
    focus_ids = {found.memory_id for found in focus}
    excluded = {s.found.memory_id: find_exclusion_reason(s.found, assembly_input, focus_ids=focus_ids) for s in ordered}
    # procedures do not count for the best evidence: they may be built-in
    comparable = [
        s.found
        for s in ordered
        if s.found.kind != "procedure"
        and not excluded[s.found.memory_id]
        and s.found.memory_id not in assembly_input.observations  # the result of a tool must not displace knowledge
    ]
    best = max((found.evidence_score for found in comparable), default=0.0)
    best_fact = assembly_input.relevance_floor.find_best_fact([s for s in ordered if not excluded[s.found.memory_id]])
    out_of_range = find_out_of_range(ordered, assembly_input)
    deduplicator = MemoryDeduplicator(assembly_input.identity, focus)
    rejected: dict[UUID, FillPlacement] = {}
    for s in ordered:
        reason = "outside of the requested time" if s.found.memory_id in out_of_range else None
        if s.found.memory_id not in assembly_input.observations:  # these were judged by rules of their own
            if not reason and is_too_far(s.found, assembly_input, best):
                reason = "too far from the input"
            reason = reason or find_floor_reason(s, assembly_input, best_fact)
        if reason := excluded[s.found.memory_id] or deduplicator.find_duplicate_reason(s.found, other_reason=reason):
            rejected[s.found.memory_id] = FillPlacement(s.found.memory_id, None, 0, reason)
    needless = find_needless(ordered, rejected.keys(), assembly_input)
    rejected |= {memory_id: FillPlacement(memory_id, None, 0, reason) for memory_id, reason in needless.items()}
    kept = [s.found for s in ordered if s.found.memory_id not in rejected]
    repeated = find_repeated_messages(one for one in kept if one.thread_id not in assembly_input.related_sessions)
    rejected |= {memory_id: FillPlacement(memory_id, None, 0, REPEATS_STATED_FACT) for memory_id in repeated}
    if assembly_input.budget.other_sessions is not None or assembly_input.gathering.asks_person:
        sources = find_fact_sources(kept) - assembly_input.gathering.about.keys()  # a name may be only in its message
        rejected |= {memory_id: FillPlacement(memory_id, None, 0, IS_FACT_SOURCE) for memory_id in sources}
    rejected |= reject_surplus_passages(ordered, rejected, assembly_input.artifact_selector.policy.max_selected)
    return reject_repeated_facts(ordered, rejected, assembly_input.fact_labels, assembly_input.relation_evidence)


def select_focus(assembly_input: AssemblyInput, *, added_ids: Set[UUID] = frozenset()) -> list[RetrievedMemory]:
    """Return the lines of the Current Focus section: the best messages that fit, oldest first, then open decisions.

    The messages in `added_ids` are included even if they do not fit.
    """
    free_tokens = assembly_input.budget.layers["working"] - assembly_input.header_tokens["working"]
    shown: list[RetrievedMemory] = []
    is_full = False
    for found in (*reversed(assembly_input.open_decisions), *assembly_input.focus):
        _, tokens = _label_focus(found, assembly_input)
        is_full = is_full or tokens > free_tokens
        if not is_full or found.memory_id in added_ids:
            free_tokens -= tokens
            shown.append(found)
    # messages by position, then decisions by time
    return sorted(shown, key=lambda f: (f.kind == "decision", f.position or 0, f.occurred_at, f.memory_id))


def _add_choice_reason(placed: FillPlacement, assembly_input: AssemblyInput) -> FillPlacement:
    """Add to the reason of a placed memory why it was chosen as an event or for the kind of question."""
    verdict = assembly_input.observations.get(placed.memory_id)
    reason = verdict.reason if verdict else assembly_input.gathering.reasons.get(placed.memory_id)
    return placed._replace(reason=f"{placed.reason}: {reason}") if reason and placed.detail else placed


def _build_notes(assembly_input: AssemblyInput) -> list[TextBlock]:
    free_tokens = assembly_input.budget.layers["note"] - assembly_input.header_tokens["note"]
    blocks: list[TextBlock] = []
    notes = (
        assembly_input.incomplete_note,
        *assembly_input.approval_notes,
        assembly_input.empty_range_note,
        assembly_input.calibration_note,
    )
    for block in filter(None, notes):
        if block.tokens <= free_tokens:
            free_tokens -= block.tokens
            blocks.append(block)
    return blocks


def _measure_layers(
    sections: Mapping[str, Sequence[TextBlock]], assembly_input: AssemblyInput
) -> dict[str, LayerUsage]:
    headers, budget = assembly_input.header_tokens, assembly_input.budget
    return {
        name: LayerUsage(
            share=share,
            ceiling=budget.find_ceiling(name),
            used=render({name: sections.get(name, ())}, header_tokens=headers).tokens,
        )
        for name, share in budget.layers.items()
    }
