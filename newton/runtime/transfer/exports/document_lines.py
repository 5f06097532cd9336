"""Lines of an import for documents: decision records as decisions, and links between notes as relations."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from pydantic import JsonValue

from newton.content.documents import DocumentError, LoadedDocument, load_bytes, parse_document
from newton.content.sections import HEADING_SEPARATOR
from newton.file_access import open_regular
from newton.memory.hygiene import MAX_NAME_CHARACTERS
from newton.memory.memory import digest
from newton.runtime.transfer.exports.export_lines import ExportLine, JsonObject, find_time, read_change_time

# Records state no confidence. An accepted decision gets a higher one than a proposal or a rejected one.
ACCEPTED_CONFIDENCE, OTHER_CONFIDENCE = 0.7, 0.5
MAX_STATUS_CHARS = 40
MAX_SUMMARY_CHARS = 600  # of the decision that follows the title; the whole text of the section is kept as a reason
RECORD_FOLDERS = frozenset(("adr", "adrs", "decisions", "architecture-decisions", "decision-records", "decision-log"))
SUFFIXES = (".md", ".markdown", ".rst", ".adoc", ".txt")

_NUMBERED = re.compile(r"(?:adr[-_ ]?)?0*(\d{1,5})[-_. ]", re.IGNORECASE)
_TITLE_NUMBER = re.compile(r"^(?:ADR[-_ #]?)?(?:\d+[.:)]?|#\d+)\s*[-:–—]?\s*|^ADR[-_ ]?\d+\s*[-:–—]?\s*", re.IGNORECASE)
_FIELD = re.compile(r"^[\s>|*_:-]*(status|date|decided|tags)[\s*_]*:[\s*_]*(.+?)[*_\s]*$", re.IGNORECASE | re.MULTILINE)
_DATE = re.compile(r"\b(?:(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})|(\d{1,2})[-/.](\d{1,2})[-/.](\d{4}))\b")
_LONG_DATE = re.compile(r"\b(?:(\d{1,2})\.?\s+([A-Z][a-z]{2})[a-z]*|([A-Z][a-z]{2})[a-z]*\s+(\d{1,2})),?\s+(\d{4})\b")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_STATUSES: Sequence[tuple[str, re.Pattern[str]]] = (
    ("superseded", re.compile(r"\bsupers?[ec]e?ded\b|\breplaced by\b|\bobsolete", re.IGNORECASE)),
    ("deprecated", re.compile(r"\bdeprecated\b", re.IGNORECASE)),
    ("rejected", re.compile(r"\b(?:rejected|declined|withdrawn|abandoned)\b", re.IGNORECASE)),
    ("accepted", re.compile(r"\b(?:accepted|approved|decided|implemented|adopted|active|final)\b", re.IGNORECASE)),
    ("proposed", re.compile(r"\b(?:proposed|proposal|draft|pending|in review|under review)\b", re.IGNORECASE)),
)
# How a record names another one, by the link from the first to the second; "...ed by" is from the second to the first.
_LINKS: Sequence[tuple[str, re.Pattern[str]]] = (
    ("supersedes", re.compile(r"\bsupers?[ec]e?d(?:es?|ed)\b|\breplace[sd]\b", re.IGNORECASE)),
    ("depends_on", re.compile(r"\b(?:depends on|builds (?:up)?on|requires|required(?= by))\b", re.IGNORECASE)),
    (
        "relates",
        re.compile(r"\b(?:amend(?:s|ed)|clarif(?:ies|ied)|relate[sd]|extend(?:s|ed)|refine[sd])\b", re.IGNORECASE),
    ),
)
_TARGET = re.compile(
    r"\]\(<?[^()<>\s]*?([^()<>\s/]+\.(?:md|markdown|rst|adoc|txt))[^()]*\)|(?:ADR|#)?[-_ #]*\b0*(\d{1,5})\b",
    re.IGNORECASE,
)
_RECORD_TITLE = re.compile(r"\[[^\[\]]*(?=\]\([^()]*\.(?:md|markdown|rst|adoc|txt)\b)", re.IGNORECASE)
_ITEM = re.compile(r"^(?:[-*+•]|\d+[.)])\s+")
_MARKDOWN_LINK = re.compile(r"\[([^\[\]]+)\]\([^()]*\)")

_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "status": ("status",),
    "decision": ("decision", "decision outcome", "decisions", "resolution", "outcome"),
    "consequences": ("consequences", "positive consequences", "negative consequences", "implications", "results"),
    "options": ("considered options", "options considered", "options", "alternatives", "alternatives considered",
                "considered alternatives", "rejected alternatives"),
}  # fmt: skip


@dataclass(slots=True)
class DecisionRecordFile:
    """A decision record: its path, number, title, status and date, and the texts of its sections by their part."""

    path: Path
    number: int | None
    title: str
    status_text: str
    date: str | None
    tags: Sequence[str]
    texts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    @property
    def status(self) -> str:
        """Return the status in one known word, else as the record states it; "" if it states none."""
        stated = self.status_text.strip().partition("\n")[0].strip("*_ .").lower()
        return _find_status(self.status_text) or stated[:MAX_STATUS_CHARS]

    @property
    def series(self) -> str:
        """Return the beginning that the refs (ids for the import) of all versions of the record share."""
        return f"adr:{digest(str(self.path.resolve().parent)).hex()[:12]}:{self.path.name[:100]}"

    def text(self, part: str) -> str:
        return "\n".join(self.texts.get(part, ()))


def is_record_path(path: Path) -> bool:
    """Return whether a file may be a decision record by its name, or by that of its folder."""
    if path.suffix.lower() not in SUFFIXES or "template" in path.stem.lower():
        return False
    return _NUMBERED.match(path.name) is not None or _is_named_record(path)


def _is_named_record(path: Path) -> bool:
    return path.name.lower().startswith("adr") or path.parent.name.lower() in RECORD_FOLDERS


def read_records(paths: Sequence[Path]) -> list[DecisionRecordFile]:
    """Return the decision records among documents, sorted by folder and number.

    A file named as a record, or in a folder for records, is one if it has a status, or both a context and a decision.
    Another file is one if it has a number, a status and a decision.
    """
    found = [record for path in paths if is_record_path(path) and (record := _read_record(path))]
    return sorted(found, key=lambda one: (one.path.parent, one.number or 0, one.path.name))


def read_record_lines(records: Sequence[DecisionRecordFile], passed_over: Counter[str]) -> Iterator[ExportLine]:
    """Yield a decision to import for each record, then the links between them.

    Links to records that are not there are counted in `passed_over`.
    """
    dates, by_name, by_number = _find_dates(records), dict[tuple[Path, str], int](), dict[tuple[Path, int], int]()
    for index, record in enumerate(records):
        by_name[record.path.parent, record.path.name] = index
        if record.number is not None:
            by_number[record.path.parent, record.number] = index
        yield str(record.path), _build_decision(record, dates[index])
    for record in records:
        yield str(record.path), _build_link(record.series, "supersedes", record.series)  # its earlier versions
    for (source, link, target), place in _find_links(records, by_name, by_number, passed_over).items():
        earlier = link == "supersedes" and dates[source] < dates[target]
        kind = "relates" if earlier else link
        yield place, _build_link(records[source].series, kind, records[target].series)


def _read_record(path: Path) -> DecisionRecordFile | None:
    try:
        loaded = parse_document(load_bytes(path))
    except DocumentError:  # the ingestion of documents names it
        return None
    texts = _split_parts(loaded)
    fields = {name.lower(): value.strip("\"'") for name, value in reversed(_FIELD.findall("\n".join(texts["head"])))}
    status = "\n".join(texts["status"]) or fields.get("status", "")
    has_status = _find_status(status) is not None
    if _is_named_record(path):
        is_record = has_status or bool(texts["decision"] and (status or texts["context"]))
    else:  # any note may have a number and a status
        is_record = has_status and bool(texts["decision"])
    if not is_record:
        return None
    number = _NUMBERED.match(path.name)
    tags = [one.strip(" []\"'#") for one in fields.get("tags", "").split(",")]
    return DecisionRecordFile(
        path=path,
        number=int(number[1]) if number else None,
        title=_TITLE_NUMBER.sub("", loaded.title, count=1).strip() or loaded.title,
        status_text=status,
        date=next(filter(None, map(_find_date, (fields.get("date", ""), fields.get("decided", ""), status))), None),
        tags=[one for one in tags if one],
        texts=texts,
    )


def _find_status(text: str) -> str | None:
    """Return the status that a text states. Of several, "superseded" counts, or else that of the last line.

    >>> _find_status("Proposed 2020-01-01\\nAccepted 2020-02-01"), _find_status("Accepted\\n\\nThe cost is pending.")
    ('accepted', 'accepted')
    """
    lines = [line.lstrip(" \t*_>|:/.-0123456789") for line in reversed(text.splitlines())]
    begins = [line for line in lines if any(pattern.match(line) for _, pattern in _STATUSES)]
    is_superseded = _STATUSES[0][1].search(text) is not None
    texts = [text] if is_superseded else [*begins[:1], text]
    return next((name for one in texts for name, pattern in _STATUSES if pattern.search(one)), None)


def _find_date(text: str) -> str | None:
    """Return the first date of a text as YYYY-MM-DD. Of 13/02/2016 and 2/3/2016, the first number is the day.

    >>> _find_date("Date: 13/02/2016"), _find_date("Accepted on March 4th, 2019"), _find_date("May 5, 2020")
    ('2016-02-13', None, '2020-05-05')
    """
    if match := _DATE.search(text):
        year, month, day = match[1] or match[6], match[2] or match[5], match[3] or match[4]
        if int(month) > len(_MONTHS):
            month, day = day, month
        return f"{year}-{int(month):02}-{int(day):02}"
    match = _LONG_DATE.search(text)
    month = (match[2] or match[3]) if match else ""
    if not match or month not in _MONTHS:
        return None
    return f"{match[5]}-{_MONTHS.index(month) + 1:02}-{int(match[1] or match[4]):02}"


def _split_parts(loaded: LoadedDocument) -> dict[str, list[str]]:
    """Return the paragraphs of a record by part. Other sections belong to its context, with their headings."""
    texts: dict[str, list[str]] = {part: [] for part in ("head", *_SECTIONS, "context")}
    for section in loaded.sections:
        headings = [one.strip(" :*_").lower() for one in section.heading.split(HEADING_SEPARATOR)]
        named = [part for part, names in _SECTIONS.items() for one in headings if _TITLE_NUMBER.sub("", one) in names]
        part = named[-1] if named else "head" if len(headings) == 1 and not texts["context"] else "context"
        if part == "context" and headings[-1] not in ("context", ""):
            texts[part].append(f"{section.heading.split(HEADING_SEPARATOR)[-1]}:")
        texts[part] += section.paragraphs
    return texts


def _find_dates(records: Sequence[DecisionRecordFile]) -> list[str]:
    """Return the date of each record: its own, that of a record beside it, or that of the last change of the files."""
    dates = [find_time(record.date) for record in records]
    for order in (range(1, len(records)), range(len(records) - 2, -1, -1)):
        for index in order:
            other = index - 1 if order.step > 0 else index + 1
            if dates[index] is None and records[index].path.parent == records[other].path.parent:
                dates[index] = dates[other]
    changes = [read_change_time(record.path) or "" for record in records]
    return [date or max(changes) for date in dates]


def _build_decision(record: DecisionRecordFile, at: str) -> dict[str, JsonValue]:
    decision, consequences, context = (record.text(part) for part in ("decision", "consequences", "context"))
    prefix = "" if record.status in ("accepted", "") else f"{record.status.capitalize()}: "
    summary = " ".join(decision.split())[:MAX_SUMMARY_CHARS]
    options: list[JsonValue] = [
        _ITEM.sub("", _MARKDOWN_LINK.sub(r"\1", one)).strip() or "?" for one in record.texts["options"]
    ]
    line: dict[str, JsonValue] = {
        "type": "decision",
        "description": prefix + record.title + (f": {summary}" if summary else ""),
        "confidence": ACCEPTED_CONFIDENCE if record.status == "accepted" else OTHER_CONFIDENCE,
        "category": "architecture",
        "tags": [*filter(None, [record.status]), *(tag[:MAX_NAME_CHARACTERS] for tag in record.tags)],
        "reasons": [{"kind": "analysis", "text": decision}] if len(decision) > len(summary) else [],
        "alternatives": options[:50],
        "at": at,
        **({"context": context} if context else {}),
        **({"expected": consequences} if consequences else {}),
    }
    stated = {**line, "at": find_time(record.date)}  # without a date of another file, or of the last change
    return {**line, "ref": f"{record.series}#{digest(repr(stated)).hex()[:12]}"}


def _build_link(source: str, link: str, target: str) -> dict[str, JsonValue]:
    return {"type": "decision_link", "source": source, "link": link, "target": target}


def _find_links(
    records: Sequence[DecisionRecordFile],
    by_name: Mapping[tuple[Path, str], int],
    by_number: Mapping[tuple[Path, int], int],
    passed_over: Counter[str],
) -> dict[tuple[int, str, int], str]:
    """Return the links in the statuses of the records as (index of source, link, index of target), with their places.

    `by_name` and `by_number` have the indexes of the records in `records`, by folder and file name or number.
    """
    found = dict[tuple[int, str, int], str]()
    for index, record in enumerate(records):
        folder = record.path.parent
        for link, is_passive, name, number in _find_named(record.status_text):
            other = by_name.get((folder, name)) if name else by_number.get((folder, int(number)))
            if other is None:
                passed_over["links to records that are not there"] += 1
            elif other != index:
                ends = (other, link, index) if is_passive else (index, link, other)
                found.setdefault(ends, str(record.path))
    return found


def _find_named(status: str) -> Iterator[tuple[str, bool, str, str]]:
    """Yield each link in a status: its kind, whether it is passive ("superseded by"), and the file or number."""
    for line in status.splitlines():
        text = _RECORD_TITLE.sub("", _DATE.sub("", line))
        verbs = sorted((match.span(), name) for name, pattern in _LINKS for match in pattern.finditer(text))
        ends = [*(start for (start, _), _ in verbs[1:]), len(text)]
        for ((start, end), link), stop in zip(verbs, ends, strict=False):
            part = text[end:stop]
            is_passive = (
                text[start:end].lower().endswith("ed") and re.search(r"\bby\b", part, re.IGNORECASE) is not None
            )
            for name, number in _TARGET.findall(part):
                yield link, is_passive, name, number


NOTE_SUFFIXES = (".md", ".markdown")
LINK_TYPE, NOTE_TYPE = "links to", "note"
MAX_NOTE_CHARS = 1_000_000  # of a note in which links are searched
_WIKI_LINK = re.compile(r"\[\[([^\[\]|#^\n]+)(?:[#^][^\[\]|\n]*)?(?:\|[^\[\]\n]*)?\]\]")
_NOTE_LINK = re.compile(r"\]\(<?([^()<>\s]+?\.(?:md|markdown))(?:#[^()\s>]*)?>?\)", re.IGNORECASE)


def read_links(paths: Sequence[Path]) -> Iterator[JsonObject]:
    """Yield an entity to import for each linked note among the files `paths`, and a relation for each linked pair.

    A link to a note that does not exist yields nothing.
    """
    notes = [path for path in paths if path.suffix.lower() in NOTE_SUFFIXES]
    by_name = {path.stem.casefold(): path.stem for path in notes}
    pairs = {(note.stem, target): None for note in notes for target in _find_targets(note, by_name)}
    for name in dict.fromkeys(name for pair in pairs for name in pair):
        yield {"type": "entity", "name": name, "entity_type": NOTE_TYPE}
    for source, target in pairs:
        ref = f"link:{source}:{target}"
        yield {"type": "relation", "ref": ref, "source": source, "relation_type": LINK_TYPE, "target": target}


def _find_targets(note: Path, by_name: Mapping[str, str]) -> Iterator[str]:
    try:
        with open_regular(note) as file:
            text = file.read(MAX_NOTE_CHARS).decode(errors="replace")
    except OSError:  # the ingestion has reported it
        return
    linked = [Path(name.strip()).name.removesuffix(".md") for name in _WIKI_LINK.findall(text)]
    linked += [Path(unquote(path)).stem for path in _NOTE_LINK.findall(text)]
    for name in linked:
        target = by_name.get(name.casefold())
        if target and target != note.stem:
            yield target
