"""From scored candidates to a context: who is out before it starts, who fits, and the text of it. Pure."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from newton.cognition.budget import Budget
from newton.cognition.bundle import Considered, Layer
from newton.cognition.constraints import Constraint
from newton.cognition.earlier import IN_VIEW, LAYER, NOTHING, Chosen, Earlier, chosen
from newton.cognition.fill import Candidate, Placed, fill
from newton.cognition.identity import Presence
from newton.cognition.order import arranged
from newton.cognition.render import BY_DAY, Block, DayTokens, item, render, under
from newton.cognition.request import InView
from newton.cognition.score import FEATURES, Scored
from newton.cognition.signals import asks_for_all_of
from newton.cognition.stacked import NO_TASKS, Stacked
from newton.content.profiles import Profile
from newton.heart.procedures import section
from newton.heart.tenets import plain
from newton.memory.memory import past
from newton.memory.recall import Found
from newton.memory.representations import bullet, day_in_front
from newton.memory.spans import Span
from newton.memory.timely import DATED

# A procedure is offered when its evidence is at least this, by meaning or by words; else it would be in every context.
FITS = 0.35

# So much evidence is plain enough. More only says that a memory has the words of the input, as an account of an earlier
# conversation about it has, and must not drive out what answers it.
PLAIN = 1.0

TIMELY = FEATURES.index("timely")

# Verbatim evidence: where there is room for all that fits it has no floor.
RAW = frozenset({"exchange", "passage"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the candidates are placed into: whatever counts beside them. It is stored with the bundle, so that this can
    be done again. `identity` stands first whatever the input; `floor` is the least evidence with which a derived memory
    comes in, and `needed` says that the context is to hold what the input needs, not all that fits; `focus` is what
    stands just out of view, the nearest first; `open` are the decisions that are being made
    and are no candidates; `advice` is the calibration note, `additional` what the caller adds, `called_for` are the
    procedures that the input asks for, `times` the times, and `unsearched` is what came without a search: it needs no
    evidence; `earlier` says how artifacts of the session are chosen, `tasks` where its work stands, and `blank` that
    nothing is known of the times."""

    input: str
    budget: Budget
    profile: Profile
    identity: Presence
    floor: float
    needed: bool
    approach: Block
    constraints: Sequence[Constraint]
    focus: Sequence[Found]
    open: Sequence[Found]
    advice: Block | None
    called_for: frozenset[UUID]
    unsearched: frozenset[UUID]
    in_view: InView | None
    additional: Sequence[Block]
    header_tokens: Mapping[str, int]
    day_tokens: DayTokens
    earlier: Earlier = NOTHING
    times: Sequence[Span] = ()
    tasks: Stacked = NO_TASKS
    blank: Block | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """The text, its tokens, the verdict on every candidate, and what stands in Current Focus."""

    page: Block
    identity: Presence
    focus: tuple[Found, ...]
    layers: Mapping[str, Layer]
    candidates: tuple[Considered, ...]


def assemble(scored: Sequence[Scored], setting: Setting) -> Assembly:
    """Fills the context. Never costs more than the budget, however small."""
    ordered = sorted(scored, key=lambda s: (-s.score, s.found.memory_id))
    focus = focused(setting)
    fixed = render(_always(setting, focus), header_tokens=setting.header_tokens)
    refused = _refused([s for s in ordered if s.layer != LAYER], setting, focus=focus)
    placing = _Placing(ordered, setting, refused, room=setting.budget.total - fixed.tokens)
    verdicts = placing.verdicts([found.summary for found in focus])
    return composed([Considered(s, verdicts[s.found.memory_id]) for s in ordered], setting, focus=focus)


class _Placing:
    """Fills the context with what may be in it. What a line tells that is in already, no artifact tells again."""

    def __init__(
        self, ordered: Sequence[Scored], setting: Setting, refused: Mapping[UUID, Placed], *, room: int
    ) -> None:
        self._ordered, self._setting, self._refused, self._room = ordered, setting, refused, room
        self._artifacts = [s.found for s in ordered if s.layer == LAYER]

    def verdicts(self, told: Sequence[str]) -> dict[UUID, Placed]:
        """One for every candidate. `told` stands in the context anyway."""
        lines = {s.found.memory_id: s.found for s in self._ordered if s.found.kind == "exchange"}
        may = [line.summary for memory_id, line in lines.items() if memory_id not in self._refused]
        doubtful = self._repeating(self._artifacts, [*told, *may])
        placed = self._filled(doubtful)
        shown = [_shown(line, placed[memory_id]) for memory_id, line in lines.items() if placed[memory_id].detail]
        certain = self._repeating([f for f in self._artifacts if f.memory_id in doubtful], [*told, *shown])
        return placed if certain == doubtful else self._filled(certain)

    def _repeating(self, artifacts: Sequence[Found], told: Sequence[str]) -> set[UUID]:
        folded = [line.casefold() for line in told] if artifacts else []
        return {f.memory_id for f in artifacts if any(f.said.casefold() in line for line in folded)}

    def _filled(self, repeating: Set[UUID]) -> dict[UUID, Placed]:
        setting = self._setting
        barred = {f.memory_id: gone for f in self._artifacts if (gone := past(f.kind, f.state))}
        barred |= dict.fromkeys(repeating, "stands in a line that is in the context")
        room = setting.budget.layers.get(LAYER, 0) - setting.header_tokens.get(LAYER, 0)
        choice = chosen(self._artifacts, setting.earlier, setting.in_view, barred=barred, room=room)
        out = {memory_id: Placed(memory_id, None, 0, why) for memory_id, why in choice.out.items()}
        places = {memory_id: -float(place) for place, memory_id in enumerate(choice.places)}
        wanted = (s for s in self._ordered if s.found.memory_id not in self._refused and s.found.memory_id not in out)
        candidates = (candidate(s, setting.day_tokens) for s in wanted)
        placed = fill(
            [c._replace(score=places.get(c.memory_id, c.score)) for c in candidates],
            room=self._room,
            layers=setting.budget.layers,
            headers=setting.header_tokens,
            policy=setting.profile.fill,
            sealed={LAYER, *setting.budget.layers} - setting.budget.flowing,
        )
        return {**self._refused, **out, **{p.memory_id: _said(p, choice) for p in placed}}


def _said(placed: Placed, choice: Chosen) -> Placed:
    place = choice.places.get(placed.memory_id)
    return placed._replace(reason=f"{placed.reason}: {place}") if place and placed.detail else placed


def _shown(found: Found, placed: Placed) -> str:
    return found.micro if placed.detail == "micro" else found.summary


def composed(considered: Sequence[Considered], setting: Setting, *, focus: Sequence[Found]) -> Assembly:
    """The context of what was chosen, which comes best first."""
    sections = {**_always(setting, focus), **_sections(considered, setting)}
    page = render(sections, header_tokens=setting.header_tokens)
    return Assembly(
        page=page,
        identity=setting.identity,
        focus=tuple(focus),
        layers=_layers(sections, setting),
        candidates=tuple(considered),
    )


def _always(setting: Setting, focus: Sequence[Found]) -> dict[str, Sequence[Block]]:
    """What stands in the context whatever is chosen for it."""
    return {
        "identity": setting.identity.blocks,
        "censors": [constraint.block for constraint in setting.constraints],
        "frame": [setting.approach],
        **setting.tasks.sections(),
        "working": [item(found.summary, found.summary_tokens) for found in focus],
        "additional": setting.additional,
        "note": _advised(setting),
    }


def candidate(scored: Scored, days: DayTokens) -> Candidate:
    """What filling needs to know of it: its tokens below a heading of its day, where its layer has such."""
    found, layer = scored.found, scored.layer
    if layer not in BY_DAY or (day := found.day) is None:
        return Candidate(found.memory_id, layer, scored.score, found.summary_tokens, found.micro_tokens)
    summary, micro = (tokens - days.in_front for tokens in (found.summary_tokens, found.micro_tokens))
    return Candidate(found.memory_id, layer, scored.score, summary, micro, day, days.heading)


def _refused(ordered: Sequence[Scored], setting: Setting, *, focus: Sequence[Found]) -> dict[UUID, Placed]:
    """Those that may not be in this context, whatever the room."""
    taken = {found.memory_id for found in focus}
    barred = {s.found.memory_id: excluded(s.found, setting, taken=taken) for s in ordered}
    best = max((s.found.evidence for s in ordered if _measures(s.found, barred)), default=0.0)
    elsewhen = _elsewhen(ordered, setting)
    telling = Telling(setting, focus)
    refused: dict[UUID, Placed] = {}
    for s in ordered:
        other = "not of the time asked for" if s.found.memory_id in elsewhen else None
        far = other or ("too far from the input" if _is_far(s.found, setting, best) else None)
        why = barred[s.found.memory_id] or telling.of(s.found, unless=far)
        if why:
            refused[s.found.memory_id] = Placed(s.found.memory_id, None, 0, why)
    return refused


def _elsewhen(ordered: Sequence[Scored], setting: Setting) -> Set[UUID]:
    """What happened at other times, where the context is to hold what the input needs, which is all that happened at
    one and nothing else, and something did. Whatever has a subject only comes later then."""
    dated = [s for s in ordered if s.found.kind in DATED] if setting.needed else []
    if not any(s.features[TIMELY] for s in dated) or not asks_for_all_of(setting.input, setting.times):
        return frozenset()
    return {s.found.memory_id for s in dated if not s.features[TIMELY]}


class Telling:
    """What a context tells already, in its identity or by a memory: nothing is told twice, and the better one comes
    first."""

    def __init__(self, setting: Setting, present: Iterable[Found]) -> None:
        self._stands = {plain(tenet.words): "stands in the identity" for tenet in setting.identity.shown}
        self._stands |= {plain(words): "stood in the identity, and holds no more" for words in setting.identity.gone}
        self._told = {found.heard for found in present}

    def of(self, found: Found, *, unless: str | None = None) -> str | None:
        """Why this memory is not told as well; else None, and from now on it is. `unless` is another reason not to."""
        if self._stands and (reason := self._stands.get(plain(found.said))):
            return reason
        if found.heard in self._told:
            return "says the same as a better one"
        if unless is None:
            self._told.add(found.heard)
        return unless


def excluded(found: Found, setting: Setting, *, taken: Set[UUID]) -> str | None:
    """Why a memory may not be in this context at all, or None."""
    if gone := past(found.kind, found.state) or (found.quarantined and f"quarantined: it comes from a {found.trust}"):
        return gone
    if found.memory_id in taken:
        return "already in Current Focus"
    if found.memory_id in setting.tasks.task_ids:
        return "already in Tasks"
    if setting.in_view and setting.in_view.holds(found):
        return IN_VIEW
    if found.echoes(setting.input):
        return "repeats the input"
    return _unwanted(found, setting)


def _unwanted(found: Found, setting: Setting) -> str | None:
    if found.outcome == "failure" and not setting.profile.reach.failures:
        return "a failure, which this profile leaves out"
    if setting.needed and found.only_asks:
        return "only asks"
    if found.kind == "procedure" and not _fits(found, setting):
        return "not a procedure for this"
    return None


def _measures(found: Found, barred: Mapping[UUID, str | None]) -> bool:
    """Whether it says how much can be known of this: a procedure, which may have come with Newton, does not."""
    return found.kind != "procedure" and not barred[found.memory_id]


def _is_far(found: Found, setting: Setting, best: float) -> bool:
    """A line may be what the input is about by what stands beside it, so what that lends counts for it."""
    if found.memory_id in setting.unsearched:
        return False
    if found.kind in RAW:
        return setting.needed and (found.relevance < setting.profile.near or found.evidence < setting.floor)
    return found.evidence < max(setting.profile.floor * min(best, PLAIN), setting.floor)


def _fits(found: Found, setting: Setting) -> bool:
    return found.memory_id in setting.called_for or max(found.similarity, found.lexical) >= FITS


def focused(setting: Setting, *, entering: Set[UUID] = frozenset()) -> list[Found]:
    """What is being decided, and before it the latest lines of the session that are out of view, oldest first; as many
    as the layer holds, but for those `entering`, which come in whatever they cost."""
    left = setting.budget.layers["working"] - setting.header_tokens["working"]
    shown: list[Found] = []
    full = False
    for found in (*reversed(setting.open), *setting.focus):
        full = full or found.summary_tokens > left
        if full and found.memory_id not in entering:
            continue
        left -= found.summary_tokens
        shown.insert(0, found)
    return shown


def _advised(setting: Setting) -> list[Block]:
    room = setting.budget.layers["note"] - setting.header_tokens["note"]
    blocks: list[Block] = []
    for block in filter(None, (setting.blank, setting.advice)):
        if block.tokens <= room:
            room -= block.tokens
            blocks.append(block)
    return blocks


def _sections(considered: Sequence[Considered], setting: Setting) -> dict[str, list[Block]]:
    """The chosen items by layer, in the profile's order. They come best first."""
    layers: dict[str, list[Considered]] = {}
    for c in considered:
        if c.detail:
            layers.setdefault(c.layer, []).append(c)
    return {
        layer: _under_days(held, setting)
        if layer in BY_DAY
        else [_block(c) for c in arranged(held, setting.profile, when=_when)]
        for layer, held in layers.items()
    }


def _under_days(held: Sequence[Considered], setting: Setting) -> list[Block]:
    """What is of no day first; then the days in the profile's order, each after its best, and each as it went."""
    days: dict[str | None, list[Considered]] = {}
    for c in held:
        days.setdefault(c.day, []).append(c)
    blocks = [_block(c) for c in arranged(days.pop(None, []), setting.profile, when=_when)]
    for day, of_it in arranged(list(days.items()), setting.profile, when=lambda day: _when(day[1][0])):
        assert day is not None, "what is of no day was taken out"
        said = day_in_front(day)
        lines = [item(c.text.removeprefix(said), c.tokens) for c in sorted(of_it, key=_told)]
        blocks += [under(day, setting.day_tokens), *lines]
    return blocks


def _when(considered: Considered) -> tuple[datetime, UUID]:
    return considered.scored.found.occurred_at, considered.memory_id


def _told(considered: Considered) -> tuple[datetime, int, int, UUID]:
    """As it went: what spans more than a line before its lines, and lines of one moment as they were said."""
    found = considered.scored.found
    place = -1 if found.place is None else found.place
    return found.occurred_at, found.thread.int if found.thread else 0, place, found.memory_id


def _block(considered: Considered) -> Block:
    """As it stands in the context. A procedure has a section of its own; its micro begins with its name."""
    if considered.kind != "procedure":
        return item(considered.shown, considered.tokens)
    name = considered.scored.found.micro.partition(":")[0]
    return Block(section(name) + bullet(considered.text), considered.tokens)


def _layers(sections: Mapping[str, Sequence[Block]], setting: Setting) -> dict[str, Layer]:
    used = {
        name: render({name: blocks}, header_tokens=setting.header_tokens).tokens for name, blocks in sections.items()
    }
    return {name: Layer(budget=tokens, used=used.get(name, 0)) for name, tokens in setting.budget.layers.items()}
