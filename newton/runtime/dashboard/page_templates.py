"""The templates of the dashboard: HTML in which every value is escaped, except charts and reports."""

import json
from collections.abc import Mapping, MutableMapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, cast
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from newton.memory.source_marks import format_trust
from newton.runtime.dashboard.api_client import encode_query

NAVIGATION = (
    ("/", "Overview"),
    ("/dashboard/memories", "Memories"),
    ("/dashboard/context", "Context"),
    ("/dashboard/decisions", "Decisions"),
    ("/dashboard/calibration", "Calibration"),
    ("/dashboard/conversations", "Conversations"),
    ("/dashboard/rules", "Rules"),
    ("/dashboard/jobs", "Jobs"),
    ("/dashboard/agents", "Agents"),
)


LABELS = {"age_h": "age in hours"}  # of identifiers that are no words


def render_template(template: str, /, **values: object) -> str:
    """Return the HTML that the named template renders with `values`."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("newton.runtime.dashboard", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(
        time=format_time,
        percent=format_percent,
        number=format_number,
        bytes=format_bytes,
        segment=quote_segment,
        short=shorten_id,
        label=format_label,
        plural=format_plural,
        setting=format_setting,
        figure=format_figure,
        trust=format_trust,
        code=format_code,
        compact_json=format_json,
    )
    cast("MutableMapping[str, Any]", environment.globals).update(navigation=NAVIGATION, query=build_query)
    return environment


def format_time(value: str | datetime | None) -> str:
    """Return a time in UTC; a dash for None.

    >>> format_time("2026-03-01T09:00:00Z")
    '2026-03-01 09:00'
    """
    if not value:
        return "–"
    at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def format_percent(share: float | None) -> str:
    """Return a share in percent; a dash for None."""
    return "–" if share is None else f"{100 * share:.0f} %"


def format_number(value: float | None, digits: int = 0) -> str:
    """Return a number with separators of thousands and `digits` decimal places; a dash for None.

    >>> format_number(-0.0001, 2)
    '0.00'
    """
    return "–" if value is None else f"{round(value, digits) + 0.0:,.{digits}f}"


def format_bytes(size: int) -> str:
    """Return a size with its unit.

    >>> format_bytes(532), format_bytes(5_300_000)
    ('532 B', '5.1 MiB')
    """
    number, unit = float(size), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1_024 or unit == "GiB":
            break
        number /= 1_024
    return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"


def quote_segment(text: str) -> str:
    """Return a text as one segment of a path.

    >>> quote_segment("harbour/pump 2")
    'harbour%2Fpump%202'
    """
    return quote(text, safe="")


def shorten_id(value: str) -> str:
    """Return the last eight digits of an id, which differ between memories of the same second."""
    return value.replace("-", "")[-8:]


def format_label(name: str) -> str:
    """Return an identifier as words.

    >>> format_label("type_priority")
    'type priority'
    """
    return LABELS.get(name) or name.replace("_", " ").lower()


def format_plural(kind: str) -> str:
    """Return the plural of a kind of memory.

    >>> format_plural("entity"), format_plural("fact")
    ('entities', 'facts')
    """
    name = format_label(kind)
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"


def format_setting(name: str) -> str:
    """Return the name of a setting of a context in words; `layer NAME` is the number of tokens of a section.

    >>> format_setting("layer facts"), format_setting("frame")
    ('tokens for facts', 'frame')
    """
    return f"tokens for {name.removeprefix('layer ')}" if name.startswith("layer ") else format_label(name)


def format_figure(value: object) -> object:
    """Return a number, or the text of one, with separators of thousands; anything else as it is."""
    text = str(value)
    return f"{int(text):,}" if text.isascii() and text.isdecimal() and len(text) < 16 else value


def format_code(text: str) -> Markup:
    """Return a text as HTML, escaped, in which parts between backquotes are code.

    >>> format_code("`newton metrics` shows <it>")
    Markup('<code>newton metrics</code> shows &lt;it&gt;')
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    template = Markup("<code>{}</code>")
    return Markup("").join(template.format(part) if number % 2 else escape(part) for number, part in enumerate(parts))


def format_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def build_query(values: Mapping[str, Any], **changes: Any) -> str:
    """Return a query string of `values` with changes, from a question mark on; empty without values."""
    text = encode_query({**values, **changes})
    return f"?{text}" if text else ""
