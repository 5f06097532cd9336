"""Documents of all text-like formats: what each becomes, where its passages are, and which files are passed over."""

import io
import json
import os
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from email.message import EmailMessage
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any

import docx
import pptx
import pytest

from newton.content.document_folders import find_documents
from newton.content.documents import DocumentError, LoadedDocument, identify, parse_document
from newton.content.file_formats import SNIFFED_BYTES, check_encoding, decode_text, find_format, looks_like_text
from newton.content.formats.code_outline import find_definition, parse_code
from newton.content.formats.office_files import MAX_UNPACKED_BYTES
from newton.errors import InputError
from newton.heart.chunking import TextChunk, split_passages
from newton.providers import token_counter
from tests.cases import load_cases

CASES = load_cases(__file__)

xlsxwriter = import_module("xlsxwriter")  # it has no type stubs

PYTHON = CASES["PYTHON"]


def read(name: str, raw: bytes | str, *, encoding: str | None = None) -> LoadedDocument:
    content = raw.encode() if isinstance(raw, str) else raw
    return parse_document(identify(PurePath(name), content), encoding=encoding)


def cut(document: LoadedDocument, *, size: int = 120) -> list[TextChunk]:
    return split_passages(document.sections, count_tokens=token_counter.count, size=size, overlap=20)


def word_document() -> bytes:
    document, file = docx.Document(), io.BytesIO()
    document.core_properties.title = "The boat manual"
    document.core_properties.modified = datetime(2026, 3, 1, 9, tzinfo=UTC)
    document.add_heading("Install", 1)
    document.add_paragraph("Get the package.")
    document.add_paragraph("Run it.", style="List Bullet")
    table = document.add_table(2, 2)
    for cell, text in zip(
        (cell for row in table.rows for cell in row.cells), ("part", "price", "oar", "3"), strict=True
    ):
        cell.text = text
    document.save(file)
    return file.getvalue()


def presentation() -> bytes:
    slides, file = pptx.Presentation(), io.BytesIO()
    slide: Any = None
    for title, body in (("The quay", "It is of granite.\nIt is old."), ("The ferry", "It leaves at noon.")):
        slide = slides.slides.add_slide(slides.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, body
    slide.notes_slide.notes_text_frame.text = "Say hello first."
    slides.save(file)
    return file.getvalue()


def workbook(rows: int = 3) -> bytes:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as book:
        sheet = book.add_worksheet("Sales")
        sheet.write_row(0, 0, ["part", "price", "sold"])
        for number in range(1, rows + 1):
            sheet.write_row(number, 0, [f"oar {number}", number + 0.5, number])
        book.add_worksheet("Empty")
    return file.getvalue()


def mail(number: int, *, html: bool = False) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"] = "Ana <ana@example.org>", "Ben <ben@example.org>"
    message["Subject"], message["Date"] = f"Fähre {number}", f"Sun, 0{number} Mar 2026 09:00:00 +0100"
    message.set_content(f"The ferry {number} is late.\n\nFrom here on it rows.")
    if html:
        message.set_content("<p>The <b>ferry</b> is late.</p>", subtype="html")
        message.add_attachment(b"x", maintype="application", subtype="pdf", filename="table.pdf")
    return message


def mailbox(*messages: EmailMessage) -> bytes:
    return b"".join(b"From ana Sun Mar  1 09:00:00 2026\n" + bytes(one) + b"\n\n" for one in messages)


# S004-7


def test_code_is_divided_by_classes_and_functions_and_loses_no_line() -> None:
    document = read("boat.py", PYTHON.format(filler="        self.log = 1\n" * 60))
    places = [chunk.location for chunk in cut(document, size=300)]
    assert document.title == "boat.py" and document.format == "code"
    assert places[0] == "lines 1-3"
    assert any(place.startswith("Boat.__init__, lines 9-") for place in places)
    assert "Boat.length, lines 72-75" in places and places[-1] == "launch, lines 78-80"
    assert [section.heading for section in document.sections][-2:] == ["Boat > length", "launch"]
    # no line of code is lost and positions are true
    for path in sorted(Path("newton").rglob("*.py"))[::12]:
        text = path.read_text(encoding="utf-8")
        lines = [line.rstrip() for line in text.split("\n")]
        document = parse_code(text, ".py")
        shown = [
            (span, one)
            for section in document.sections
            for one, span in zip(section.paragraphs, section.spans, strict=True)
        ]
        for (first, last), paragraph in shown:
            assert "\n".join(lines[first - 1 : last]) == paragraph, path
        kept = [line for _, paragraph in shown for line in paragraph.split("\n") if line]
        assert kept == [line for line in lines if line], path


@pytest.mark.parametrize(("family", "line", "name"), CASES["a_definition_is_found_in_the_languages"])
def test_a_definition_is_found_in_the_languages(family: str, line: str, name: str | None) -> None:
    found = find_definition(line, family)
    assert (found and found.name) == name


def test_the_header_of_a_table_is_in_each_passage_of_its_rows() -> None:
    rows = "".join(f"oar {n};{n},50;sold to the harbour master\n" for n in range(1, 60))
    chunks = cut(read("prices.csv", f"part;price;note\n{rows}"))
    assert len(chunks) > 5
    assert all(chunk.text.startswith("part | price | note\noar ") and chunk.tokens <= 120 for chunk in chunks)
    assert all(chunk.tokens == token_counter.count(chunk.text) for chunk in chunks)
    body = [line for chunk in chunks for line in chunk.text.split("\n")[1:]]
    assert body == [f"oar {n} | {n},50 | sold to the harbour master" for n in range(1, 60)], "each row once, none cut"
    assert chunks[0].location.startswith("lines 2-") and chunks[-1].location.endswith("-60")
    # a table with quotes and tabs
    document = read("a.tsv", 'name\tnote\nboat\t"two\nlines\tand a tab"\n')
    assert document.sections[0].paragraphs == ("boat | two lines and a tab",)
    assert document.sections[0].locate(*document.sections[0].spans[0]) == "lines 2-3"
    assert read("a.csv", "only a header\n").sections[0].paragraphs == ("only a header",)
    header = " ".join(f"column{n}" for n in range(300))
    chunks = cut(read("a.csv", f"{header},b\n" + "boat,1\n" * 200))
    assert all(chunk.tokens <= 120 and "boat | 1" in chunk.text for chunk in chunks)


def test_office_documents_have_sections_slides_sheets_and_rows() -> None:
    document = read("boat.docx", word_document())
    assert (document.title, document.date) == ("The boat manual", datetime(2026, 3, 1, 9, tzinfo=UTC))
    (section,) = document.sections
    assert section.heading == "Install"
    assert section.paragraphs == ("Get the package.", "- Run it.", "part | price", "oar | 3")
    # a presentation has a section for each slide
    document = read("quay.pptx", presentation())
    assert [(one.heading, one.place) for one in document.sections] == [
        ("The quay", "slide 1"),
        ("The ferry", "slide 2"),
    ]
    assert document.sections[0].paragraphs[1:] == ("It is of granite.", "It is old.")
    assert document.sections[1].paragraphs[-1] == "Notes: Say hello first."
    # a workbook has its sheet and rows with the header
    chunks = cut(read("sales.xlsx", workbook(60)), size=100)
    assert all(chunk.text.startswith("part | price | sold\noar ") for chunk in chunks)
    assert chunks[0].location.startswith("sheet Sales, rows 2-") and chunks[-1].location.endswith("-61")
    assert "oar 1 | 1.5 | 1" in chunks[0].text


def test_messages_have_their_headers_and_dates_and_logs_their_days() -> None:
    (chunk,) = cut(read("late.eml", bytes(mail(1))))
    assert chunk.heading == "Fähre 1" and chunk.date == datetime(2026, 3, 1, 8, tzinfo=UTC)
    assert chunk.text.startswith("From: Ana <ana@example.org>; To: Ben <ben@example.org>; Date: 2026-03-01 08:00 UTC\n")
    assert "The ferry 1 is late." in chunk.text
    html = cut(read("late.eml", bytes(mail(2, html=True))))[0].text
    assert "Attachments: table.pdf" in html and "The ferry is late." in html
    # each message of a mailbox is a section
    document = read("all.mbox", mailbox(mail(1), mail(2), mail(3, html=True)))
    assert document.title == "all" and document.date == datetime(2026, 3, 3, 8, tzinfo=UTC)
    assert [(one.place, one.heading) for one in document.sections] == [
        (f"message {n}", f"Fähre {n}") for n in (1, 2, 3)
    ], "a line that begins with From begins no message"
    # a log is divided by days
    lines = [f"2026-03-0{day} 0{hour}:00:00 ERROR no fuel" for day in (1, 2) for hour in range(3)]
    document = read("app.log.1", "\n".join([*lines[:1], "  at engine.start", *lines[1:]]))
    assert [one.date for one in document.sections] == [datetime(2026, 3, day, tzinfo=UTC) for day in (1, 2)]
    assert document.sections[0].paragraphs[1] == "  at engine.start"
    assert cut(document)[1].location == "lines 5-7"


def test_data_is_divided_by_its_keys_and_a_notebook_by_its_cells() -> None:
    value = {"boats": [{"name": f"boat {n}", "oars": n} for n in range(40)], "quay": {"stone": "granite"}}
    compact, pretty = json.dumps(value), json.dumps(value, indent=2)
    places = {section.heading.split(" > ")[0] for section in read("a.json", pretty).sections}
    assert {"boats", "quay"} <= places
    assert {"boats", "quay"} <= {one.heading.split(" > ")[0] for one in read("a.json", compact).sections}
    assert read("a.json", compact).sections[0].spans == (), "lines that the file does not have"
    toml = "[server]\nport = 1\n" + "# note\n" * 200 + "[client]\nname = 'x'\n"
    assert [one.heading for one in read("a.toml", toml).sections] == ["server", "client"]
    # a notebook has its cells without outputs
    cells = [
        {"cell_type": "markdown", "source": ["# The quay\n", "It is of granite."]},
        {"cell_type": "code", "source": "stone = 1\n\nprint(stone)", "outputs": [{"data": {"image/png": "AAAA"}}]},
    ]
    document = read("quay.ipynb", json.dumps({"cells": cells}))
    assert document.title == "The quay"
    assert [(one.place, one.paragraphs) for one in document.sections] == [
        ("cell 1", ("It is of granite.",)),
        ("cell 2", ("stone = 1\n\nprint(stone)",)),
    ]


def test_lines_and_encodings_of_texts_are_known() -> None:
    chunks = cut(read("a.md", "---\ntitle: T\n---\n# One\n\nfirst\nsecond\n\n```\na\nb\n```\n\n## Two\n\nlast\n"))
    assert [chunk.location for chunk in chunks] == ["line 2", "lines 6-11", "line 16"]
    chunks = cut(read("a.txt", "Title\n=====\n\nfirst\nsecond\n\nthird\n"))
    assert [chunk.location for chunk in chunks] == ["lines 4-7"]
    # a given encoding is used or refused
    raw = "Łódź".encode("iso8859-2")
    assert read("a.txt", raw, encoding="iso8859-2").sections[0].paragraphs == ("Łódź",)
    with pytest.raises(DocumentError, match=r"it is not valid utf-8: byte 1 is 0xa3"):
        read("a.txt", raw, encoding="utf-8")
    with pytest.raises(InputError, match="is not a known encoding"):
        check_encoding("runes")


# ASCII only, each letter with an accent twice, Cyrillic, Japanese
@pytest.mark.parametrize(("text", "encoding"), CASES["the_encoding_of_a_text_is_detected"])
def test_the_encoding_of_a_text_is_detected(text: str, encoding: str) -> None:
    assert decode_text(text.encode(encoding)).text == text
    assert read("a.txt", text.encode(encoding)).sections[0].paragraphs == (text,)


@pytest.mark.parametrize("name", ["a.docx", "a.xlsx", "a.pptx"])
def test_an_archive_that_unpacks_to_too_much_is_refused_unread(name: str) -> None:
    file = io.BytesIO()
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("word/document.xml", "w") as entry,
    ):
        for _ in range(MAX_UNPACKED_BYTES // 2**20 + 1):
            entry.write(bytes(2**20))
    with pytest.raises(DocumentError, match=r"it unpacks to 201 MB; the limit is 200 MB\."):
        read(name, file.getvalue())


def test_hostile_archives_and_entities_are_refused() -> None:
    raw = bytearray(word_document())
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        size = archive.getinfo("word/document.xml").file_size
    for at in range(len(raw) - 4):
        if bytes(raw[at : at + 4]) == size.to_bytes(4, "little"):
            raw[at : at + 4] = (16).to_bytes(4, "little")
    with pytest.raises(DocumentError, match=r"it is damaged|is broken"):
        read("a.docx", bytes(raw))
    # entities of an office document are refused
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><p>&b;</p>'
        for name in ("word/document.xml", "ppt/presentation.xml"):
            archive.writestr(name, bomb)
    with pytest.raises(DocumentError, match="it is no Word document"):
        read("a.docx", file.getvalue())
    with pytest.raises(DocumentError, match="it declares XML entities"):
        read("a.pptx", file.getvalue())


def test_a_folder_says_what_it_passes_over_and_why(tmp_path: Path) -> None:
    files: dict[str, bytes] = {
        "a.md": b"x",
        "b.py": b"x = 1",
        "notes": b"a text without a suffix",
        "latin": "Fähre".encode("cp1252"),
        "c.png": b"\x89PNG\r\n\x1a\n\0\0",
        "d.exe": bytes(range(256)),
        "e.doc": b"\xd0\xcf\x11\xe0",
        "f.md": b"",
        ".env": b"SECRET=1",
        "g.lock": b"x",
        "h.odt": b"PK",
        "node_modules/i.js": b"x",
        "pipe": b"",
    }
    for name, raw in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(raw)
    (tmp_path / "pipe").unlink()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")
    with (tmp_path / "large.csv").open("wb") as file:
        file.truncate(51 * 2**20)
    found = find_documents(tmp_path)
    assert [path.name for path in found.documents] == ["a.md", "b.py", "latin", "notes"]
    assert dict(found.skipped.counts) == {
        "binary": 2,
        "old Office format": 1,
        "empty": 1,
        "hidden": 1,
        "backup or lock file": 1,
        "unsupported document format": 1,
        "folder of generated files": 1,
        "not a regular file": 1,
        "broken link, or no permission": 1,
        "larger than 50 MB": 1,
    }
    assert found.skipped.examples["binary"] == [str(tmp_path / "c.png"), str(tmp_path / "d.exe")]


def test_a_text_is_recognized_by_its_first_bytes_and_each_builder_makes_a_document() -> None:
    letters = "é".encode()
    assert looks_like_text(b"a" * (SNIFFED_BYTES - 1) + letters[:1]), "the last letter is cut"
    assert looks_like_text("Fähre".encode("utf-16")) and looks_like_text("Fähre".encode("cp1252"))
    assert not looks_like_text(bytes(range(256)) * 4) and not looks_like_text(b"\x7fELF\2\1\1\0\0")
    assert find_format(PurePath("CMakeLists.txt")) == "code" and find_format(PurePath("x.unknown")) is None
    builders: dict[str, Callable[[], bytes]] = {"a.docx": word_document, "a.pptx": presentation, "a.xlsx": workbook}
    for name, build in builders.items():
        assert cut(read(name, build())), name
