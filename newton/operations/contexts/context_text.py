"""Parts of a context as text for people: its frame, its kind of question, and the tokens of a layer.

It loads nothing slow.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from newton.operations.text_format import pluralize

if TYPE_CHECKING:
    from newton.client.context import FrameSelection, LayerTokens, QuestionReport


def format_frame(choice: "FrameSelection") -> str:
    """Format the frame (kind of input) selected for an input, the confidence of the selection, and the runner-up.

    A frame that is kept from the session has no confidence: that of this input alone may be 0.
    """
    from newton.cognition.frames.selection import SAME_TOPIC  # noqa: PLC0415 (slow)

    if choice["forced"]:
        return f"frame {choice['name']} (requested)"
    if choice["reason"].startswith(SAME_TOPIC):
        return f"frame {choice['name']} (kept from the session; this input alone looks like {choice['runner_up']})"
    runner_up = f", runner-up {choice['runner_up']}" if choice["runner_up"] else ""
    confidence = "unsure" if choice["unsure"] else f"confidence {choice['confidence']:.0%}"
    return f"frame {choice['name']} ({confidence}{runner_up})"


def format_frame_features(choice: "FrameSelection") -> list[str]:
    """Format the languages of the input and the features that decided on its frame, with their weights in log odds."""
    if choice["forced"]:
        return []
    languages = ", ".join(choice["languages"]) or "not one in which frames are chosen"
    lines = [f"  language: {languages}"]
    for feature in choice["features"]:
        phrase = f" ({feature['phrase']!r})" if feature["kind"] == "form" and feature["phrase"] else ""
        lines.append(f"  {feature['weight']:+.2f}  {feature['kind']}: {feature['name']}{phrase}")
    return lines


def format_question(report: "QuestionReport") -> str:
    """Format the kind of question that the input asks, the words that decided this, and the rules for the search."""
    phrase = f" ({report['phrase']})" if report["phrase"] else ""
    return "; ".join([f"question: {report['kind']}{phrase}", *report["rules"]])


def format_layer_tokens(name: str, layer: "LayerTokens") -> str:
    """Format the tokens that a layer (section) of a context uses, its maximum, and its share if that is another number.

    >>> format_layer_tokens("procedures", {"share": 253, "ceiling": 4_000, "used": 374})
    'procedures  374 of at most 4,000 tokens (share 253)'
    """
    share = "" if layer["share"] == layer["ceiling"] else f" (share {layer['share']:,})"
    return f"{name}  {layer['used']:,} of at most {layer['ceiling']:,} tokens{share}"


def format_context_line(
    frame: "FrameSelection",
    profile: str,
    tokens: str,
    *,
    best: float | None,
    sufficiency: float | None,
    has_nothing_relevant: bool,
) -> str:
    """Format one line on a context: its frame (kind of input), scoring profile, tokens and best evidence."""
    found = "" if best is None else f" · best evidence {best:.2f}"
    found = " · no memories" if has_nothing_relevant else found
    found += "" if sufficiency is None else f" · sufficient with probability {sufficiency:.2f}"
    return f"{format_frame(frame)} · profile {profile} · {tokens}{found}"


def format_hidden_lines(lines: int, *, budget: int | None = None) -> Iterator[str]:
    """Yield that `lines` lines of the identity did not fit into a context; nothing for 0.

    `budget` is the token budget of the context, or None for the setting `context_tokens`.
    """
    if lines:
        command = f"newton identity --max-tokens {budget}" if budget else "newton identity"
        yield f"({pluralize(lines, 'line')} of the identity did not fit into the context; `{command}` shows which)"


def format_unknown_times(times: Sequence[str]) -> Iterator[str]:
    """Yield the times named in an input at which no memory occurred, if there are any."""
    if times:
        yield f"(No memory of the requested time: {', '.join(times)})"
