"""The report of growth as Markdown, as one page that needs nothing else, and as plain values. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from html import escape
from typing import NamedTuple

from newton.agent.appraising import CONFIRMED_FROM, PRECISE_FROM, REPEATED_MOST, Appraisal
from newton.agent.growth import FEWEST, Figure, Growth
from newton.brain.calibration.bias import ENOUGH
from newton.brain.calibration.trend import WINDOW
from newton.brain.repeating import Weighed
from newton.heart.retrospect import Changed
from newton.memory.lookup import short
from newton.runtime.plots import page, words

HEAD = ("", "now", "before", "computed from")
TOO_FEW = "too few"
MOST_CHARACTERS = 80  # of the words of a decision
MOST_OF_A_LINE = 1_000
MOST_LISTED = 5
CODE = re.compile(r"`([^`]+)`")


class Row(NamedTuple):
    """A figure as it is called, and what its n counts; counts are computed from themselves."""

    label: str
    figure: str
    of: str = ""


SECTIONS: dict[str, tuple[Row, ...]] = {
    "Decisions": (
        Row("made", "made"),
        Row("judged", "judged"),
        Row("came true", "accuracy", "judged"),
        Row("Brier score", "brier", "judged"),
        Row("its slope, per 100 decisions", "slope", "judged so far"),
        Row("bias", "bias", "judged"),
        Row("overdue at the end", "overdue"),
    ),
    "Mistakes made again": (
        Row("near a known failure", "near"),
        Row("answered it", "answered"),
        Row("were shown it, no more", "shown"),
        Row(f"repeat a mistake (aim: under {words.percent(REPEATED_MOST)})", "repeated", "made, with vectors"),
    ),
    "Censors": (
        Row("met", "met"),
        Row("called wrong", "false_positives"),
        Row(f"right (aim: over {words.percent(PRECISE_FROM)})", "precision", "times met"),
        Row("escalated", "escalated"),
        Row("retired", "retired"),
    ),
    "Procedures": (
        Row("uses", "uses"),
        Row("succeeded", "succeeded", "judged uses"),
        Row("became effective", "effective"),
        Row("became ineffective", "ineffective"),
    ),
    "Facts and episodes": (
        Row("facts learnt", "learnt"),
        Row(f"confirmed (aim: over {words.percent(CONFIRMED_FROM)})", "confirmed", "facts known"),
        Row("superseded", "superseded"),
        Row("disproved", "disproved"),
        Row("episodes made", "episodes"),
    ),
}
PROCEDURES = ("procedure", "uses", "succeeded", "uses before", "succeeded before")


def markdown(growth: Growth, said: Appraisal, *, of: str) -> str:
    """The report about the agent `of`, for a terminal or a file."""
    parts = [f"# {words.named(_title(of), most=120)}", _spans(growth), *_scarce(growth)]
    for title, sentences in _appraisal(said):
        parts += [f"## {title}", _bullets(sentences)]
    for title, rows in SECTIONS.items():
        parts += [f"## {title}", _grid(HEAD, _rows(growth, rows))]
        parts += [part for lead, lines in _lists(growth, title) for part in (lead, _bullets(lines)) if part]
        if title == "Procedures" and growth.followed:
            parts.append(_grid(PROCEDURES, _followed(growth)))
    return "\n\n".join(parts)


def html(growth: Growth, said: Appraisal, *, of: str) -> str:
    """The same as a page, with a plot of the trend where there is one."""
    cards = [page.card(title, _items(sentences)) for title, sentences in _appraisal(said)]
    for title, rows in SECTIONS.items():
        inside = page.table(HEAD, _rows(growth, rows), numbers={1, 2})
        inside += "".join(f"<p>{escape(lead)}</p>{_items(lines)}" for lead, lines in _lists(growth, title))
        if title == "Procedures" and growth.followed:
            inside += page.table(PROCEDURES, _followed(growth), numbers={1, 2, 3, 4})
        cards.append(page.card(title, inside))
        if title == "Decisions":
            cards.append(page.card("Judgement over time", _plot(growth)))
    lead = "".join(f'<p class="soft">{line}</p>' for line in (_spans(growth), *_scarce(growth)))
    return page.document(_title(of), f'{lead}<div class="cards">{"".join(cards)}</div>')


def plain(growth: Growth, said: Appraisal) -> dict[str, object]:
    """For JSON. A figure that has too little behind it is there, and `enough` says so."""
    figures: dict[str, Figure] = {
        row.figure: getattr(growth.figures, row.figure) for rows in SECTIONS.values() for row in rows
    }
    return {
        "periods": {name: at.isoformat() for name, at in growth.periods._asdict().items()},
        "figures": {name: _plain(figure) for name, figure in figures.items()},
        "bias": growth.bias and {"interval95": growth.bias.interval, "verdict": growth.bias.verdict},
        "overdue": [
            {"decision_id": str(one.decision_id), "look_again_at": _iso(one.look_again_at), "words": one.description}
            for one in growth.overdue
        ],
        "repeated": [_repeat(one) for one in growth.repeats.repeated],
        "without_vector": growth.repeats.missing,
        "procedures": [one._asdict() for one in growth.followed],
        "changed": [
            {**one._asdict(), "at": one.at.isoformat(), "memory_id": str(one.memory_id)} for one in growth.changed
        ],
        **said._asdict(),
    }


def _plot(growth: Growth) -> str:
    if growth.trend is None:
        return f"<p>{escape(words.trendless(growth.figures.slope.n))}</p>"
    return page.lines(growth.trend)


def _scarce(growth: Growth) -> list[str]:
    """What 'too few' means, where it stands."""
    cells = [cell for rows in SECTIONS.values() for row in _rows(growth, rows) for cell in row]
    if TOO_FEW not in cells:
        return []
    return [f"Too few: a share or a score needs {FEWEST}, a bias {ENOUGH} reviews, a slope {2 * WINDOW}."]


def _title(of: str) -> str:
    return f"Growth of {of}"


def _spans(growth: Growth) -> str:
    before, start, now = growth.periods
    return (
        f"Now: {start:%Y-%m-%d %H:%M} to {now:%Y-%m-%d %H:%M} ({start:%Z}). "
        f"Before: as long a time, from {before:%Y-%m-%d %H:%M} on."
    )


def _appraisal(said: Appraisal) -> Iterable[tuple[str, Sequence[str]]]:
    """Nothing is said where there is nothing to say."""
    for title, sentences in zip(("Strengths", "Concerns", "Recommendations"), said, strict=True):
        if sentences:
            yield title, sentences
    if not any(said):
        yield "In short", ("There is too little to speak of strengths or concerns.",)


def _rows(growth: Growth, rows: Iterable[Row]) -> list[tuple[str, str, str, str]]:
    return [_row(row, getattr(growth.figures, row.figure)) for row in rows]


def _row(row: Row, of: Figure) -> tuple[str, str, str, str]:
    computed = "" if of.kind == "count" else f"{of.n:,} {row.of} ({of.n_before:,} before)"
    now, before = _cell(of, of.now, of.n), _cell(of, of.before, of.n_before)
    return row.label, now, before, computed


def _cell(of: Figure, value: float | None, n: int) -> str:
    if n < of.fewest:
        return TOO_FEW if n else "none"
    if value is None:
        return "none"
    match of.kind:
        case "count":
            return f"{int(value):,}"
        case "share":
            return words.percent(value)
        case "score":
            return f"{value:.3f}"
        case "signed":
            return words.signed(value)


def _lists(growth: Growth, title: str) -> list[tuple[str, list[str]]]:
    """What stands below a table: words, and the list that they lead to."""
    match title:
        case "Decisions":
            return _waiting(growth)
        case "Mistakes made again":
            return _mistakes(growth)
        case "Censors":
            return _changes([one for one in growth.changed if one.kind == "censor"])
        case "Procedures":
            return _changes([one for one in growth.changed if one.kind == "procedure"])
        case _:
            return []


def _waiting(growth: Growth) -> list[tuple[str, list[str]]]:
    bias = [(f"Bias {words.bias(growth.bias)}.", list[str]())] if growth.bias else []
    due = [
        f"`{short(one.decision_id)}` due {one.look_again_at:%Y-%m-%d}: {_words(one.description)}"
        for one in growth.overdue
    ]
    return [*bias, *([("Waiting for an outcome the longest:", due)] if due else [])]


def _mistakes(growth: Growth) -> list[tuple[str, list[str]]]:
    of = growth.repeats
    told: list[tuple[str, list[str]]] = []
    if of.missing:
        told.append((f"Not compared, because they have no vector: {of.missing:,}.", []))
    if of.repeated:
        lines = [_again(one) for one in of.repeated[-MOST_LISTED:]]
        told.append((f"Neither answered nor shown what had failed{_most(len(of.repeated))}:", lines))
    return told


def _again(one: Weighed) -> str:
    return (
        f"`{short(one.near.decision_id)}` {one.decided_at:%Y-%m-%d} ({one.outcome or 'open'}): "
        f"{_words(one.description)}, like `{short(one.near.failed_id)}`: {_words(one.failed)} "
        f"(likeness {one.near.cosine:.2f})"
    )


def _changes(changed: Sequence[Changed]) -> list[tuple[str, list[str]]]:
    lines = [
        f"{one.at:%Y-%m-%d} {one.state.lower()}: {_words(one.name)} (`{short(one.memory_id)}`; {one.because})"
        for one in changed[-MOST_LISTED:]
    ]
    return [(f"Changed{_most(len(changed))}:", lines)] if lines else []


def _most(number: int) -> str:
    return f", the last {MOST_LISTED} of {number:,}" if number > MOST_LISTED else ""


def _followed(growth: Growth) -> list[tuple[str, ...]]:
    return [
        (
            words.named(one.name, most=40),
            f"{one.uses:,}",
            _went(one.successes, one.failures),
            f"{one.uses_before:,}",
            _went(one.successes_before, one.failures_before),
        )
        for one in growth.followed[:MOST_LISTED]
    ]


def _went(successes: int, failures: int) -> str:
    return f"{successes:,} of {successes + failures:,} judged"


def _words(said: str | None) -> str:
    return "[erased]" if said is None else words.named(said, most=MOST_CHARACTERS)


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {words.named(line, most=MOST_OF_A_LINE)}" for line in lines)


def _items(lines: Iterable[str]) -> str:
    items = "".join(
        "<li>" + CODE.sub(r"<code>\1</code>", escape(words.named(line, most=MOST_OF_A_LINE))) + "</li>"
        for line in lines
    )
    return f"<ul>{items}</ul>" if items else ""


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns also stand below each other in a terminal."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (head, *rows)]
    wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["| " + " | ".join(f"{cell:<{most}}" for cell, most in zip(row, wide, strict=True)) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "|".join("-" * (most + 2) for most in wide) + "|", *lines[1:]])


def _plain(of: Figure) -> dict[str, object]:
    return {**asdict(of), "enough": of.n >= of.fewest}


def _repeat(one: Weighed) -> dict[str, object]:
    return {
        "decision_id": str(one.near.decision_id),
        "failed_id": str(one.near.failed_id),
        "likeness": round(one.near.cosine, 3),
        "decided_at": one.decided_at.isoformat(),
        "outcome": one.outcome,
        "words": one.description,
        "failed": one.failed,
    }


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
