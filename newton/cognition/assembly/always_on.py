"""Selection of the identity lines and the censors (prohibitions) of a context, before any memory is placed. Pure."""

import functools
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple
from uuid import UUID

from newton.cognition.assembly.budget import FIXED_LAYERS
from newton.cognition.assembly.render import TextBlock, render_item
from newton.cognition.assembly.sections import CensorLine, CensorSection, IdentitySection
from newton.heart.censors import Censor
from newton.heart.identity.tenets import Identity
from newton.memory.memory import TokenCounter
from newton.memory.representations import to_bullet

IDENTITY, CENSORS = "identity", "censors"
NOUNS: Mapping[str, tuple[str, str]] = {
    IDENTITY: ("identity line is", "identity lines are"),
    CENSORS: ("constraint is", "constraints are"),
}
# The layers whose note on omitted lines is paid for, in the order of the attempts.
OMISSION_END = " not shown for lack of room."  # of the line that counts those left out
NOTE_ATTEMPTS: Sequence[frozenset[str]] = tuple(map(frozenset[str], ((), (CENSORS,), (IDENTITY,), (IDENTITY, CENSORS))))
# Attempts for a context that is too small for both notes.
SMALL_ATTEMPTS = (NOTE_ATTEMPTS[1], NOTE_ATTEMPTS[2])
# Weights of the layers while their lines compete for the tokens.
LAYER_WEIGHTS: Mapping[str, int] = {layer: FIXED_LAYERS[layer] for layer in (IDENTITY, CENSORS)}


class AlwaysOnSections(NamedTuple):
    """The identity section and the censor section of a context, and the tokens of each, header included."""

    identity: IdentitySection = IdentitySection()
    censors: CensorSection = CensorSection()
    tokens: Mapping[str, int] = {IDENTITY: 0, CENSORS: 0}


class _RankedLine(NamedTuple):
    """An identity line or a censor, in the order of selection: by tier, then by share.

    `tier` is 0 for a triggered censor, 1 for identity lines and blocking censors, 2 for other censors. `share` is the
    sum of the tokens in its layer up to and including this line, divided by the layer's weight.
    """

    tier: int
    share: float
    layer: str
    position: int
    tokens: int


def list_applicable(censors: Sequence[Censor], *, domains: Sequence[str], triggered: Set[UUID]) -> list[Censor]:
    """Return the censors (prohibitions) that have no domain, have one of `domains`, or are in `triggered`."""
    return [one for one in censors if one.domain in (None, *domains) or one.memory_id in triggered]


def select_always_on(
    identity: Identity,
    censors: Sequence[Censor],
    *,
    triggered: Set[UUID],
    max_tokens: int,
    header_tokens: Mapping[str, int],
    count_tokens: TokenCounter,
) -> AlwaysOnSections:
    """Return the identity lines and the censors that fit into `max_tokens`, and a note with the number of omitted ones.

    Triggered censors are selected first, then identity lines and blocking censors in proportion to `LAYER_WEIGHTS`,
    then warnings. `censors` are the applicable ones, the strictest first; the section keeps this order.
    """
    lines = _rank_lines(identity, censors, triggered)
    shown = _Selection(lines, max_tokens, header_tokens, count_tokens).select()
    tenets = identity.by_priority
    identity_count = sum(line.layer == IDENTITY for line in shown.lines)
    positions = {line.position for line in shown.lines if line.layer == CENSORS}
    notes = {layer: _render_note(layer, shown.omitted[layer], count_tokens) for layer in shown.notes}
    identity_section = IdentitySection(
        identity.version,
        tuple(tenets[:identity_count]),
        tuple(tenets[identity_count:]),
        identity.removed_texts,
        notes.get(IDENTITY),
    )
    censor_section = CensorSection(
        tuple(
            CensorLine(one.memory_id, render_item(one.context_line, one.summary_tokens))
            for position, one in enumerate(censors)
            if position in positions
        ),
        tuple(one.memory_id for position, one in enumerate(censors) if position not in positions),
        notes.get(CENSORS),
    )
    blocks = {IDENTITY: identity_section.blocks, CENSORS: censor_section.blocks}
    tokens = {
        layer: sum(block.tokens for block in found) + header_tokens[layer] * bool(found)
        for layer, found in blocks.items()
    }
    return AlwaysOnSections(identity_section, censor_section, tokens)


def _rank_lines(identity: Identity, censors: Sequence[Censor], triggered: Set[UUID]) -> list[_RankedLine]:
    lines: list[_RankedLine] = []
    used = dict.fromkeys(LAYER_WEIGHTS, 0)

    def add(tier: int, layer: str, position: int, tokens: int) -> None:
        used[layer] += tokens
        lines.append(_RankedLine(tier, used[layer] / LAYER_WEIGHTS[layer], layer, position, tokens))

    for position, tenet in enumerate(identity.by_priority):
        add(1, IDENTITY, position, tenet.tokens)
    for position, one in enumerate(censors):
        tier = 0 if one.memory_id in triggered else 1 if one.is_blocking else 2
        add(tier, CENSORS, position, one.summary_tokens)
    return sorted(lines)


class _Selected(NamedTuple):
    lines: Sequence[_RankedLine]
    notes: frozenset[str]
    omitted: Mapping[str, int]

    @property
    def is_complete(self) -> bool:
        """Return True when each layer with omitted lines has a note that says so."""
        return all(layer in self.notes for layer, count in self.omitted.items() if count)


class _Selection:
    """Selects as many ranked lines as fit, and reserves tokens for a note only where lines are omitted."""

    def __init__(
        self,
        lines: Sequence[_RankedLine],
        max_tokens: int,
        header_tokens: Mapping[str, int],
        count_tokens: TokenCounter,
    ) -> None:
        self._lines, self._max_tokens, self._header_tokens = lines, max_tokens, header_tokens
        self._counts = {layer: sum(line.layer == layer for line in lines) for layer in LAYER_WEIGHTS}
        self._note_tokens = {
            layer: max(_render_note(layer, number, count_tokens).tokens for number in {1, max(count, 1)})
            for layer, count in self._counts.items()
        }
        triggered = [line.tokens for line in lines if line.tier == 0]
        self._needs_triggered = bool(triggered) and min(triggered) + header_tokens[CENSORS] <= max_tokens

    def select(self) -> _Selected:
        """Return the first selection in which each layer with omitted lines has a note.

        In a small context, a triggered censor takes precedence over a note.
        """
        for notes in NOTE_ATTEMPTS:
            if (selected := self._fit(notes)) and selected.is_complete:
                return selected
        for notes in SMALL_ATTEMPTS:
            if selected := self._fit(notes):
                return selected
        return self._fill(frozenset(), self._max_tokens)

    def _fit(self, notes: frozenset[str]) -> _Selected | None:
        """Return the lines that fit beside the notes of the layers in `notes`.

        Return None if the notes do not fit, or displace all triggered censors although one would fit without notes.
        """
        reserved = sum(self._note_tokens[layer] + self._header_tokens[layer] for layer in notes)
        if reserved > self._max_tokens or not all(self._counts[layer] for layer in notes):
            return None
        selected = self._fill(notes, self._max_tokens - reserved)
        has_triggered = any(line.tier == 0 for line in selected.lines)
        return selected if has_triggered or not self._needs_triggered else None

    def _fill(self, notes: frozenset[str], free_tokens: int) -> _Selected:
        shown, started, closed = list[_RankedLine](), set(notes), set[str]()
        for line in self._lines:
            cost = line.tokens + (0 if line.layer in started else self._header_tokens[line.layer])
            if cost > free_tokens or line.layer in closed:
                closed |= {line.layer} & {IDENTITY}  # a later line of the identity must not replace an earlier one
                continue
            free_tokens -= cost
            started.add(line.layer)
            shown.append(line)
        omitted = {layer: count - sum(line.layer == layer for line in shown) for layer, count in self._counts.items()}
        return _Selected(shown, frozenset(layer for layer in notes if omitted[layer]), omitted)


@functools.lru_cache(maxsize=256)
def _render_note(layer: str, count: int, count_tokens: TokenCounter) -> TextBlock:
    """Render the line with the number of omitted identity lines or censors. Cached, because counting tokens is slow."""
    singular, plural = NOUNS[layer]
    line = to_bullet(f"{count} more {singular if count == 1 else plural}{OMISSION_END}")
    return TextBlock(line, count_tokens(line))
