"""Links between the notes of a folder, as of Obsidian: each becomes a relation of the two notes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

from newton.runtime.transfer.exports.export_lines import JsonObject

NOTE_SUFFIXES = (".md", ".markdown")
LINK_TYPE, NOTE_TYPE = "links to", "note"
MAX_NOTE_CHARS = 1_000_000  # of a note in which links are searched
_WIKI_LINK = re.compile(r"\[\[([^\[\]|#^\n]+)(?:[#^][^\[\]|\n]*)?(?:\|[^\[\]\n]*)?\]\]")
_MARKDOWN_LINK = re.compile(r"\]\(<?([^()<>\s]+?\.(?:md|markdown))(?:#[^()\s>]*)?>?\)", re.IGNORECASE)


def read_links(paths: Sequence[Path]) -> Iterator[JsonObject]:
    """Yield an entity for each note that links to another one or is linked to, and a relation for each such pair.

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
        text = note.read_text(encoding="utf-8", errors="replace")[:MAX_NOTE_CHARS]
    except OSError:  # the ingestion has reported it
        return
    linked = [Path(name.strip()).name.removesuffix(".md") for name in _WIKI_LINK.findall(text)]
    linked += [Path(unquote(path)).stem for path in _MARKDOWN_LINK.findall(text)]
    for name in linked:
        target = by_name.get(name.casefold())
        if target and target != note.stem:
            yield target
