"""Assembly of scored candidates into a context: exclude, fill and render. Pure."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from newton.cognition.assembly.artifact_selection import (
    ALREADY_SENT,
    DEFAULT_ARTIFACT_SELECTOR,
    SESSION_LAYER,
    ArtifactSelection,
    ArtifactSelector,
    select_artifacts,
)
from newton.cognition.assembly.budget import ContextBudget
from newton.cognition.assembly.fill import FillCandidate, Placement, fill
from newton.cognition.assembly.order import arrange
from newton.cognition.assembly.render import (
    LAYERS_BY_DAY,
    DayTokens,
    TextBlock,
    render,
    render_day_heading,
    render_item,
)
from newton.cognition.assembly.scored_candidate import LayerUsage, ScoredCandidate
from newton.cognition.assembly.sections import NO_TASKS, CensorLine, IdentitySection, TaskSection
from newton.cognition.request import SentMessages
from newton.cognition.scoring.score import FEATURE_NAMES, ScoredMemory
from newton.cognition.sources.signals import asks_for_whole_range
from newton.content.profiles import Profile
from newton.heart.identity.tenets import normalize_line
from newton.heart.procedures import section_header
from newton.memory.memory import past_reason
from newton.memory.representations import date_prefix, to_bullet
from newton.memory.search_types import RetrievedMemory
from newton.memory.time_expressions import TimeRange
from newton.memory.time_search import DATED_KINDS

# Minimum cosine or lexical evidence of a procedure; without it, procedures would be in every context.
MIN_PROCEDURE_EVIDENCE = 0.35

# Evidence is capped here. More means that a memory repeats the words of the input, as a summary of an earlier
# conversation does, and must not displace the answer.
FULL_EVIDENCE = 1.0

TIMELY_INDEX = FEATURE_NAMES.index("timely")

# Verbatim evidence: has no minimum unless the context is adaptive.
VERBATIM_KINDS = frozenset({"exchange", "passage"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyInput:
    """Everything besides the candidates that determines a context. Stored with the bundle for replay.

    `min_evidence` is the least evidence of a derived memory. `is_adaptive` limits the context to what the input needs.
    `focus` are the messages just out of view, latest first. `open_decisions` are pending and not candidates. `extra`
    are the caller's lines. `triggered` are procedures that the input asks for. `unranked` came without a search and
    need no evidence. `time_ranges` are the times that the input asks for; `empty_range_note` says that memory has
    nothing of them.
    """

    input: str
    budget: ContextBudget
    profile: Profile
    identity: IdentitySection
    min_evidence: float
    is_adaptive: bool
    frame_section: TextBlock
    censor_lines: Sequence[CensorLine]
    focus: Sequence[RetrievedMemory]
    open_decisions: Sequence[RetrievedMemory]
    calibration_note: TextBlock | None
    triggered: frozenset[UUID]
    unranked: frozenset[UUID]
    sent_messages: SentMessages | None
    extra: Sequence[TextBlock]
    header_tokens: Mapping[str, int]
    day_tokens: DayTokens
    artifact_selector: ArtifactSelector = DEFAULT_ARTIFACT_SELECTOR
    time_ranges: Sequence[TimeRange] = ()
    tasks: TaskSection = NO_TASKS
    empty_range_note: TextBlock | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyResult:
    """The text with its tokens, the verdict on every candidate, and the memories in Current Focus."""

    block: TextBlock
    identity: IdentitySection
    focus: tuple[RetrievedMemory, ...]
    layers: Mapping[str, LayerUsage]
    candidates: tuple[ScoredCandidate, ...]


def assemble(scored: Sequence[ScoredMemory], assembly_input: AssemblyInput) -> AssemblyResult:
    """Fill the context. Never exceeds the budget."""
    ordered = sorted(scored, key=lambda s: (-s.score, s.found.memory_id))
    focus = select_focus(assembly_input)
    fixed = render(_build_fixed_sections(assembly_input, focus), header_tokens=assembly_input.header_tokens)
    refused = _find_refused([s for s in ordered if s.layer != SESSION_LAYER], assembly_input, focus=focus)
    placing = _Placer(ordered, assembly_input, refused, max_tokens=assembly_input.budget.total - fixed.tokens)
    verdicts = placing.place_all([found.summary for found in focus])
    return compose([ScoredCandidate(s, verdicts[s.found.memory_id]) for s in ordered], assembly_input, focus=focus)


class _Placer:
    """Fills the context. Rejects artifacts that repeat a message of the context."""

    def __init__(
        self,
        ordered: Sequence[ScoredMemory],
        assembly_input: AssemblyInput,
        refused: Mapping[UUID, Placement],
        *,
        max_tokens: int,
    ) -> None:
        self._ordered, self._assembly_input, self._refused, self._max_tokens = (
            ordered,
            assembly_input,
            refused,
            max_tokens,
        )
        self._artifacts = [s.found for s in ordered if s.layer == SESSION_LAYER]

    def place_all(self, shown_texts: Sequence[str]) -> dict[UUID, Placement]:
        """Return one placement per candidate. `shown_texts` are in the context in any case."""
        lines = {s.found.memory_id: s.found for s in self._ordered if s.found.kind == "exchange"}
        may = [line.summary for memory_id, line in lines.items() if memory_id not in self._refused]
        doubtful = self._find_repeated(self._artifacts, [*shown_texts, *may])
        placed = self._fill_layers(doubtful)
        shown = [_select_text(line, placed[memory_id]) for memory_id, line in lines.items() if placed[memory_id].detail]
        certain = self._find_repeated([f for f in self._artifacts if f.memory_id in doubtful], [*shown_texts, *shown])
        return placed if certain == doubtful else self._fill_layers(certain)

    def _find_repeated(self, artifacts: Sequence[RetrievedMemory], shown_texts: Sequence[str]) -> set[UUID]:
        folded = [line.casefold() for line in shown_texts] if artifacts else []
        return {f.memory_id for f in artifacts if any(f.spoken_text.casefold() in line for line in folded)}

    def _fill_layers(self, repeated: Set[UUID]) -> dict[UUID, Placement]:
        setting = self._assembly_input
        barred = {f.memory_id: gone for f in self._artifacts if (gone := past_reason(f.kind, f.state))}
        barred |= dict.fromkeys(repeated, "stands in a line that is in the context")
        room = setting.budget.layers.get(SESSION_LAYER, 0) - setting.header_tokens.get(SESSION_LAYER, 0)
        choice = select_artifacts(
            self._artifacts, setting.artifact_selector, setting.sent_messages, excluded=barred, max_tokens=room
        )
        out = {memory_id: Placement(memory_id, None, 0, why) for memory_id, why in choice.rejected.items()}
        places = {memory_id: -float(place) for place, memory_id in enumerate(choice.selected)}
        wanted = (s for s in self._ordered if s.found.memory_id not in self._refused and s.found.memory_id not in out)
        candidates = (to_fill_candidate(s, setting.day_tokens) for s in wanted)
        placed = fill(
            [c._replace(score=places.get(c.memory_id, c.score)) for c in candidates],
            max_tokens=self._max_tokens,
            layers=setting.budget.layers,
            header_tokens=setting.header_tokens,
            policy=setting.profile.fill,
            sealed_layers={SESSION_LAYER, *setting.budget.layers} - setting.budget.flexible,
        )
        return {**self._refused, **out, **{p.memory_id: _add_artifact_reason(p, choice) for p in placed}}


def _add_artifact_reason(placed: Placement, selection: ArtifactSelection) -> Placement:
    place = selection.selected.get(placed.memory_id)
    return placed._replace(reason=f"{placed.reason}: {place}") if place and placed.detail else placed


def _select_text(found: RetrievedMemory, placed: Placement) -> str:
    return found.micro if placed.detail == "micro" else found.summary


def compose(
    candidates: Sequence[ScoredCandidate], assembly_input: AssemblyInput, *, focus: Sequence[RetrievedMemory]
) -> AssemblyResult:
    """Return the context of already placed candidates, which come best first."""
    sections = {**_build_fixed_sections(assembly_input, focus), **_build_sections(candidates, assembly_input)}
    page = render(sections, header_tokens=assembly_input.header_tokens)
    return AssemblyResult(
        block=page,
        identity=assembly_input.identity,
        focus=tuple(focus),
        layers=_measure_layers(sections, assembly_input),
        candidates=tuple(candidates),
    )


def _build_fixed_sections(
    assembly_input: AssemblyInput, focus: Sequence[RetrievedMemory]
) -> dict[str, Sequence[TextBlock]]:
    """Return the sections that do not depend on the candidates."""
    return {
        "identity": assembly_input.identity.blocks,
        "censors": [constraint.block for constraint in assembly_input.censor_lines],
        "frame": [assembly_input.frame_section],
        **assembly_input.tasks.to_layers(),
        "working": [render_item(found.summary, found.summary_tokens) for found in focus],
        "additional": assembly_input.extra,
        "note": _build_notes(assembly_input),
    }


def to_fill_candidate(scored: ScoredMemory, day_tokens: DayTokens) -> FillCandidate:
    """Return the fill candidate of a memory; below a day heading its lines have no date prefix."""
    found, layer = scored.found, scored.layer
    if layer not in LAYERS_BY_DAY or (day := found.day) is None:
        return FillCandidate(found.memory_id, layer, scored.score, found.summary_tokens, found.micro_tokens)
    summary, micro = (tokens - day_tokens.prefix for tokens in (found.summary_tokens, found.micro_tokens))
    return FillCandidate(found.memory_id, layer, scored.score, summary, micro, day, day_tokens.heading)


def _find_refused(
    ordered: Sequence[ScoredMemory], assembly_input: AssemblyInput, *, focus: Sequence[RetrievedMemory]
) -> dict[UUID, Placement]:
    """Return the candidates excluded from this context regardless of room."""
    taken = {found.memory_id for found in focus}
    barred = {s.found.memory_id: find_exclusion_reason(s.found, assembly_input, focus_ids=taken) for s in ordered}
    best = max((s.found.evidence_score for s in ordered if _sets_evidence_scale(s.found, barred)), default=0.0)
    elsewhen = _find_out_of_range(ordered, assembly_input)
    telling = Deduplicator(assembly_input, focus)
    refused: dict[UUID, Placement] = {}
    for s in ordered:
        other = "not of the time asked for" if s.found.memory_id in elsewhen else None
        far = other or ("too far from the input" if _is_too_far(s.found, assembly_input, best) else None)
        why = barred[s.found.memory_id] or telling.find_duplicate_reason(s.found, other_reason=far)
        if why:
            refused[s.found.memory_id] = Placement(s.found.memory_id, None, 0, why)
    return refused


def _find_out_of_range(ordered: Sequence[ScoredMemory], assembly_input: AssemblyInput) -> Set[UUID]:
    """Return the dated memories outside the input's time ranges. Empty unless the context is adaptive, the input asks
    for a whole range, and some memory is within it."""
    dated = [s for s in ordered if s.found.kind in DATED_KINDS] if assembly_input.is_adaptive else []
    if not any(s.features[TIMELY_INDEX] for s in dated) or not asks_for_whole_range(
        assembly_input.input, assembly_input.time_ranges
    ):
        return frozenset()
    return {s.found.memory_id for s in dated if not s.features[TIMELY_INDEX]}


class Deduplicator:
    """Rejects memories that repeat the identity or an earlier, better memory."""

    def __init__(self, assembly_input: AssemblyInput, shown: Iterable[RetrievedMemory]) -> None:
        self._identity_reasons = {
            normalize_line(tenet.text): "stands in the identity" for tenet in assembly_input.identity.shown
        }
        self._identity_reasons |= {
            normalize_line(words): "stood in the identity, and holds no more"
            for words in assembly_input.identity.removed_texts
        }
        self._shown_texts = {found.dedup_text for found in shown}

    def find_duplicate_reason(self, found: RetrievedMemory, *, other_reason: str | None = None) -> str | None:
        """Return why the memory is a duplicate, else `other_reason`. Register it when both are None."""
        if self._identity_reasons and (reason := self._identity_reasons.get(normalize_line(found.spoken_text))):
            return reason
        if found.dedup_text in self._shown_texts:
            return "says the same as a better one"
        if other_reason is None:
            self._shown_texts.add(found.dedup_text)
        return other_reason


def find_exclusion_reason(found: RetrievedMemory, assembly_input: AssemblyInput, *, focus_ids: Set[UUID]) -> str | None:
    """Return why the memory is excluded from this context, or None."""
    if gone := past_reason(found.kind, found.state) or (
        found.quarantined and f"quarantined: it comes from a {found.trust}"
    ):
        return gone
    if found.memory_id in focus_ids:
        return "already in Current Focus"
    if found.memory_id in assembly_input.tasks.task_ids:
        return "already in Tasks"
    if assembly_input.sent_messages and assembly_input.sent_messages.contains(found):
        return ALREADY_SENT
    if found.repeats_query(assembly_input.input):
        return "repeats the input"
    return _find_unwanted_reason(found, assembly_input)


def _find_unwanted_reason(found: RetrievedMemory, assembly_input: AssemblyInput) -> str | None:
    if found.outcome == "failure" and not assembly_input.profile.reach.failures:
        return "a failure, which this profile leaves out"
    if assembly_input.is_adaptive and found.is_only_question:
        return "only asks"
    if found.kind == "procedure" and not _is_procedure_match(found, assembly_input):
        return "not a procedure for this"
    return None


def _sets_evidence_scale(found: RetrievedMemory, exclusion_reasons: Mapping[UUID, str | None]) -> bool:
    """Return True when the memory counts for the best evidence. Procedures, which may be built-in, do not."""
    return found.kind != "procedure" and not exclusion_reasons[found.memory_id]


def _is_too_far(found: RetrievedMemory, assembly_input: AssemblyInput, best_evidence: float) -> bool:
    """Return True for too little evidence. For messages, relevance includes evidence of adjacent messages."""
    if found.memory_id in assembly_input.unranked:
        return False
    if found.kind in VERBATIM_KINDS:
        return assembly_input.is_adaptive and (
            found.relevance < assembly_input.profile.near or found.evidence_score < assembly_input.min_evidence
        )
    return found.evidence_score < max(
        assembly_input.profile.floor * min(best_evidence, FULL_EVIDENCE), assembly_input.min_evidence
    )


def _is_procedure_match(found: RetrievedMemory, assembly_input: AssemblyInput) -> bool:
    return found.memory_id in assembly_input.triggered or max(found.similarity, found.lexical) >= MIN_PROCEDURE_EVIDENCE


def select_focus(assembly_input: AssemblyInput, *, added_ids: Set[UUID] = frozenset()) -> list[RetrievedMemory]:
    """Return the lines of Current Focus that fit the layer: messages just out of view, oldest first, then pending
    decisions. `added_ids` are included at any cost."""
    left = assembly_input.budget.layers["working"] - assembly_input.header_tokens["working"]
    shown: list[RetrievedMemory] = []
    full = False
    for found in (*reversed(assembly_input.open_decisions), *assembly_input.focus):
        full = full or found.summary_tokens > left
        if full and found.memory_id not in added_ids:
            continue
        left -= found.summary_tokens
        shown.insert(0, found)
    return shown


def _build_notes(assembly_input: AssemblyInput) -> list[TextBlock]:
    room = assembly_input.budget.layers["note"] - assembly_input.header_tokens["note"]
    blocks: list[TextBlock] = []
    for block in filter(None, (assembly_input.empty_range_note, assembly_input.calibration_note)):
        if block.tokens <= room:
            room -= block.tokens
            blocks.append(block)
    return blocks


def _build_sections(candidates: Sequence[ScoredCandidate], assembly_input: AssemblyInput) -> dict[str, list[TextBlock]]:
    """Return the selected items by layer, in the profile's order."""
    layers: dict[str, list[ScoredCandidate]] = {}
    for c in candidates:
        if c.detail:
            layers.setdefault(c.layer, []).append(c)
    return {
        layer: _group_by_day(held, assembly_input)
        if layer in LAYERS_BY_DAY
        else [_render_item(c) for c in arrange(held, assembly_input.profile, sort_key=_date_key)]
        for layer, held in layers.items()
    }


def _group_by_day(candidates: Sequence[ScoredCandidate], assembly_input: AssemblyInput) -> list[TextBlock]:
    """Return undated items, then days in the profile's order by their best item; chronological within a day."""
    days: dict[str | None, list[ScoredCandidate]] = {}
    for c in candidates:
        days.setdefault(c.day, []).append(c)
    blocks = [_render_item(c) for c in arrange(days.pop(None, []), assembly_input.profile, sort_key=_date_key)]
    for day, of_it in arrange(list(days.items()), assembly_input.profile, sort_key=lambda day: _date_key(day[1][0])):
        assert day is not None, "undated items are removed above"
        said = date_prefix(day)
        lines = [render_item(c.text.removeprefix(said), c.tokens) for c in sorted(of_it, key=_chronological_key)]
        blocks += [render_day_heading(day, assembly_input.day_tokens), *lines]
    return blocks


def _date_key(scored_candidate: ScoredCandidate) -> tuple[datetime, UUID]:
    return scored_candidate.scored.found.occurred_at, scored_candidate.memory_id


def _chronological_key(scored_candidate: ScoredCandidate) -> tuple[datetime, int, int, UUID]:
    """Sort by time, then thread and position; an item that spans several messages precedes them."""
    found = scored_candidate.scored.found
    place = -1 if found.position is None else found.position
    return found.occurred_at, found.thread_id.int if found.thread_id else 0, place, found.memory_id


def _render_item(scored_candidate: ScoredCandidate) -> TextBlock:
    """Render an item. A procedure has its own section, titled with the name at the start of its micro form."""
    if scored_candidate.kind != "procedure":
        return render_item(scored_candidate.context_line, scored_candidate.tokens)
    name = scored_candidate.scored.found.micro.partition(":")[0]
    return TextBlock(section_header(name) + to_bullet(scored_candidate.text), scored_candidate.tokens)


def _measure_layers(
    sections: Mapping[str, Sequence[TextBlock]], assembly_input: AssemblyInput
) -> dict[str, LayerUsage]:
    used = {
        name: render({name: blocks}, header_tokens=assembly_input.header_tokens).tokens
        for name, blocks in sections.items()
    }
    return {
        name: LayerUsage(budget=tokens, used=used.get(name, 0)) for name, tokens in assembly_input.budget.layers.items()
    }
