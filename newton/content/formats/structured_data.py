"""Parsing of JSON, YAML, TOML and INI by their keys, and of notebooks by their cells."""

import json
from typing import Any, cast

from newton.content.formats.code_outline import parse_code
from newton.content.formats.markdown import parse_markdown
from newton.content.sections import DocumentSection, ParsedDocument, join_heading
from newton.errors import InputError

LONG_LINE_CHARS = 500  # JSON with a longer line is printed anew, so that it can be divided by keys


def parse_data(text: str, suffix: str) -> ParsedDocument:
    """Divide structured data by its keys. JSON on one line is indented first; its positions are the paths of keys."""
    is_compact = suffix == ".json" and any(len(line) > LONG_LINE_CHARS for line in text.split("\n"))
    if not is_compact:
        return parse_code(text, suffix)
    return parse_code(json.dumps(_load_json(text), ensure_ascii=False, indent=2), suffix, has_lines=False)


def parse_notebook(text: str) -> ParsedDocument:
    """Return the text and code cells of a Jupyter notebook, without their outputs."""
    notebook = _load_json(text)
    cells = cast("dict[str, Any]", notebook).get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise InputError("it is no notebook: it has no list of cells.", hint="Save it again in Jupyter.")
    sections, heading, title = list[DocumentSection](), "", ""
    for number, cell in enumerate(cast("list[Any]", cells), start=1):
        kind, source = _read_cell(cell)
        if not source.strip():
            continue
        if kind == "markdown":
            parsed = parse_markdown(source)
            title = title or parsed.title
            for section in parsed.sections:
                heading = section.heading or heading
                sections.append(section._replace(heading=heading, spans=(), place=f"cell {number}"))
        else:
            paragraphs = (source.strip("\n"),)
            sections.append(DocumentSection(join_heading((heading,)), paragraphs, place=f"cell {number}", by_line=True))
    return ParsedDocument(title, tuple(sections))


def _read_cell(cell: object) -> tuple[str, str]:
    """Return the type and the source of a cell; two empty texts for anything else."""
    if not isinstance(cell, dict):
        return "", ""
    fields = cast("dict[str, object]", cell)
    source = fields.get("source", "")
    lines = cast("list[object]", source) if isinstance(source, list) else [source]
    return str(fields.get("cell_type", "")), "".join(str(line) for line in lines)


def _load_json(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise InputError("its JSON is nested too deeply.", hint="Use fewer levels of lists and objects.") from None
    except ValueError as error:
        raise InputError(f"it is no valid JSON: {error}.", hint="Correct the file.") from None
