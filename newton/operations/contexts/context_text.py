"""Parts of a context as text for people: its frame, its kind of question, and the tokens of a layer.

It loads nothing slow.
"""

from typing import TYPE_CHECKING

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
