"""Documents from disk: what each format becomes, and what is refused with which remedy."""

import io
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pypdf import PdfReader, PdfWriter

from newton.content import sandbox
from newton.content.document_folders import IGNORED, find_documents
from newton.content.documents import MAX_BYTES, LoadedDocument, read_document
from newton.content.sections import DocumentSection
from newton.errors import InputError
from tests.cases import load_cases

CASES = load_cases(__file__)

MARKDOWN = CASES["MARKDOWN"]

HTML = CASES["HTML"]

TEXT = CASES["TEXT"]


def pdf(*pages: str, title: str = "", letters: str = "") -> bytes:
    """A PDF in the plainest form: each line of a page is shown by an operator of its own.

    `letters` says in PDF's own words which characters the codes of the font stand for.
    """
    unicode = f"begincmap\n{letters}\nendcmap"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "",
        f"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica {'/ToUnicode 4 0 R' if letters else ''} >>",
        f"<< /Length {len(unicode)} >>\nstream\n{unicode}\nendstream",
    ]
    for page in pages:
        shown = "".join(f"({line}) Tj 0 -14 Td\n" for line in page.split("\n"))
        stream = f"BT /F1 12 Tf 72 720 Td\n{shown}ET"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        resources = f"/Resources << /Font << /F1 3 0 R >> >> /Contents {len(objects)} 0 R"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] {resources} >>")
    kids = " ".join(f"{number} 0 R" for number in range(6, 6 + 2 * len(pages), 2))
    objects[1] = f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>"
    objects.append(f"<< /Title ({title}) >>")
    body, places = "%PDF-1.4\n", list[int]()
    for number, content in enumerate(objects, start=1):
        places.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    trailer = f"<< /Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R >>"
    return (
        f"{body}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n{trailer}\n"
        f"startxref\n{len(body)}\n%%EOF\n"
    ).encode("latin-1")


def encrypted(raw: bytes, *, user: str, algorithm: str = "RC4-128") -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(raw)))
    writer.encrypt(user, owner_password="owner", algorithm=algorithm)
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()


def document(folder: Path, name: str, content: str | bytes) -> LoadedDocument:
    """The document without what its file says: positions, encoding and date."""
    read = read_document(saved(folder, name, content))
    sections = tuple(section._replace(spans=()) for section in read.sections)
    return replace(read, sections=sections, encoding=None, date=None)


def saved(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(path: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        read_document(path)
    assert caught.value.what.startswith(f"{path}: "), "it says which file"
    assert caught.value.hint.endswith("."), "it says what to do"
    return caught.value


# S004-7
def test_markdown(tmp_path: Path) -> None:
    assert document(tmp_path, "boat.md", MARKDOWN) == LoadedDocument(
        title="The *boat* manual",
        format="markdown",
        sections=(
            DocumentSection("", ('title: "The *boat* manual"\ndate: 2026-11-21', "Read this first.")),
            DocumentSection("Install", ("Get the [package](https://example.org/boat),\nthen wait.",)),
            DocumentSection(
                "Install > Linux x86",
                (
                    "1. Run `apt`.\n2. Reboot.\n   - or do not",
                    "| command | does |\n|---------|------|\n| `row`   | moves |\n| stop    |      |",
                    "apt install boat\n\nboat --row",
                ),
            ),
            DocumentSection(
                "Install > Care",
                ("Oil the oars & dry them.", "> # Not a heading\n> [1]: https://example.org/oars"),
            ),
            DocumentSection("Empty", ("Empty",)),
        ),
    )


def test_html(tmp_path: Path) -> None:
    assert document(tmp_path, "boat.HTM", HTML) == LoadedDocument(
        title="The boat & you",
        format="html",
        sections=(
            DocumentSection("", ("Before it all.",)),
            DocumentSection(
                "Install", ("Get the package, then wait.\nReally.", "Wait.", "- Run it.", "- Reboot.", "Twice.")
            ),
            DocumentSection("Install > Linux", ("command | does", "row | moves", "apt install boat\n\n  boat --row")),
            DocumentSection("Install > Care", ("Oil the oars.", "Dry them.")),
            DocumentSection("Empty", ("Empty",)),
        ),
    )


def test_plain_text(tmp_path: Path) -> None:
    assert document(tmp_path, "boat.rst", TEXT.replace("\n", "\r\n")) == LoadedDocument(
        title="The boat manual",
        format="text",
        sections=(
            DocumentSection("The boat manual", ("Read this first,\nthen wait.",)),
            DocumentSection("The boat manual > Install", ("Get it.",)),
            DocumentSection("The boat manual > Install > Linux", ("- apt\n- reboot",)),
            DocumentSection("The boat manual > Care", (".. code::", "    oil(oars)")),
        ),
    )


def test_pdf(tmp_path: Path) -> None:
    raw = pdf("Get the package,\nthen wait.", "", "Oil the oars.", title="The boat")
    assert document(tmp_path, "boat.pdf", raw) == LoadedDocument(
        title="The boat",
        format="pdf",
        sections=(
            DocumentSection("", ("Get the package, then wait.",), place="page 1"),
            DocumentSection("", ("Oil the oars.",), place="page 3"),
        ),
    )


@pytest.mark.parametrize(
    ("name", "content", "title"),
    [
        ("a.md", "text\n\n## First\n\nx\n\n# Second", "First"),
        ("a.md", "just text", "a"),
        ("a.md", "---\ntitle: Mine\n...\n# First", "Mine"),
        ("a.md", "---\n\n# After a rule\n\n---\n", "After a rule"),
        ("a.md", "Set\n===\n", "Set"),
        ("a.html", "<h2>First</h2>x", "First"),
        ("a.html", "<title> </title>x", "a"),
        ("boat manual.txt", "x", "boat manual"),
        ("a.pdf", pdf("x"), "a"),
        ("a.md", "\ufeff# Marked", "Marked"),
    ],
)
def test_a_document_is_titled_by_itself_or_by_its_file(
    tmp_path: Path, name: str, content: str | bytes, title: str
) -> None:
    assert document(tmp_path, name, content).title == title


def test_odd_sections_and_pdfs_are_read(tmp_path: Path) -> None:
    long = "word " * 100 + "end"
    assert document(tmp_path, "a.md", f"# A\n\n## {long}\n\nx").sections == (DocumentSection("A", (long, "x")),)
    # odd pdfs are read
    raw = pdf("oil\\000 it a", letters="1 beginbfchar\n<61> <D83D>\nendbfchar")
    assert document(tmp_path, "a.pdf", raw).sections == (
        DocumentSection("", ("oil it \N{REPLACEMENT CHARACTER}",), place="page 1"),
    )
    raw = encrypted(pdf("Oil the oars."), user="")
    assert document(tmp_path, "a.pdf", raw).sections == (DocumentSection("", ("Oil the oars.",), place="page 1"),)
    # what stands in one section changes no other
    before = document(tmp_path, "a.md", MARKDOWN).sections
    after = document(tmp_path, "a.md", MARKDOWN.replace("2. Reboot.", "2. Reboot.\n3. Rest.\n\nNow row.")).sections
    changed = [(old.heading, new.heading) for old, new in zip(before, after, strict=True) if old != new]
    assert changed == [("Install > Linux x86", "Install > Linux x86")]
    assert refusal(saved(tmp_path, "a.pdf", pdf(""))).hint == "If the document is a scan, run OCR on it first."


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.docx", b"x", ": it is no Office document."),
        ("a.doc", b"x", ": old Office format."),
        ("a.bin", b"\0\1\2", ": it is a binary file."),
        ("a.txt", b"a\0b", ": it has a NUL character, at character 2."),
        ("a.md", b"", ": it is empty."),
        ("a.pdf", b" \n", ": it is empty."),
        ("a.md", b"<!-- nothing -->\n***\n", ": it has no text."),
        ("a.html", b"<script>x()</script>", ": it has no text."),
        ("a.html", b"<div>" * 2_000 + b"x", ": its HTML nests more than 1,000 elements in each other."),
        ("a.json", b"[" * 100_000, ": its JSON is nested too deeply."),
        ("a.ipynb", b"[]", ": it is no notebook: it has no list of cells."),
        ("a.eml", b"only text", ": it has no headers of an e-mail."),
        ("a.md", b"> " * 500 + b"x", ": the document nests lists or quotes too deeply."),
        ("a.pdf", pdf("", ""), ": the document has no text on any of its 2 pages."),
        ("a.pdf", b"no pdf", ": the document is broken: pypdf.errors."),
        ("a.pdf", b"%PDF-1.4\n%%EOF", ": the document is broken: pypdf.errors."),
        ("a.pdf", pdf("x")[:300], ": the document is broken: "),
        ("a.pdf", pdf("x").replace(b"/Kids [6 0 R]", b"/Kids [2 0 R]"), ": the document is broken: "),
        ("a.pdf", pdf("x").replace(b"/Kids [6 0 R]", b"/Kids 7"), ": the document is broken: "),
        ("a.pdf", encrypted(pdf("x"), user="secret"), ": the document is encrypted."),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_file_and_a_remedy(
    tmp_path: Path, name: str, content: bytes, what: str
) -> None:
    path = saved(tmp_path, name, content)
    assert refusal(path).what.startswith(f"{path}{what}")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.md").what.endswith("it does not exist.")
    (tmp_path / "folder.md").mkdir()
    assert refusal(tmp_path / "folder.md").what.endswith("it is a folder.")
    os.mkfifo(tmp_path / "pipe.md")
    assert refusal(tmp_path / "pipe.md").what.endswith("it is not a regular file.")
    (tmp_path / "loop.md").symlink_to("loop.md")
    assert "cannot be read: " in refusal(tmp_path / "loop.md").what
    assert "cannot be read: " in refusal(tmp_path / ("long" * 100 + ".md")).what


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.pdf"
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    with monkeypatch.context() as unread:
        unread.delattr(Path, "read_bytes")
        unread.delattr(Path, "open")
        assert refusal(path).what.endswith("it has 100.0 MB; the limit is 50 MB.")
    os.truncate(path, MAX_BYTES)
    assert "MB" not in refusal(path.rename(tmp_path / "large.txt")).what, "50 MB are read"


def test_what_pypdf_says_of_a_crooked_file_reaches_nobody(tmp_path: Path) -> None:
    crooked = saved(tmp_path, "a.pdf", pdf("Oil the oars.").replace(b"startxref\n", b"startxref\n1"))
    script = (
        "import sys, pathlib\n"
        "from newton.content.documents import read_document\n"
        "print(read_document(pathlib.Path(sys.argv[1])))\n"
    )
    command, root = [sys.executable, "-c", script, str(crooked)], Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    assert "Oil the oars." in done.stdout
    assert done.stderr == ""


@pytest.mark.fault
@pytest.mark.parametrize(
    ("reader", "raw"),
    [
        ("newton.content.formats.webpage", b"<div>" * 990 + b"<b>x</i>" * 400_000),
        ("newton.content.formats.pdf", pdf(*["\n".join(["Oil the oars, then row."] * 2_000)] * 80)),
    ],
)
def test_a_reader_that_does_not_end_is_ended(reader: str, raw: bytes) -> None:
    with pytest.raises(InputError, match="takes more than 1 second"):
        sandbox.run_parser(reader, raw, seconds=1)


def test_a_reader_that_takes_all_memory_is_ended() -> None:
    # Each of the paragraphs opens each of the elements anew: 14 kB are a million nodes.
    grows = "<p>" + "".join(f"<b a={n}>" for n in range(1_000)) + "<p>x" * 1_000
    with pytest.raises(InputError, match=r"is broken|needs more than 100 MB"):
        sandbox.run_parser("newton.content.formats.webpage", grows.encode(), max_megabytes=100)


def test_a_folder_gives_its_documents_in_order(tmp_path: Path) -> None:
    for name in ("b/z.md", "b/a.PDF", "a.txt", "c.bin", ".hidden.md", ".git/x.md", "d.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"\0" if name == "c.bin" else b"x")
    (tmp_path / "b" / "up").symlink_to(tmp_path)
    (tmp_path / "loop.md").symlink_to("loop.md")
    (tmp_path / "linked.md").symlink_to("d.md")
    (tmp_path / "folder.md").mkdir()
    found = [str(path.relative_to(tmp_path)) for path in find_documents(tmp_path).documents]
    assert found == ["a.txt", "b/a.PDF", "b/z.md", "d.md", "linked.md"]
    assert find_documents(tmp_path / "c.bin").documents == [tmp_path / "c.bin"], "what was named is tried"
    assert find_documents(tmp_path / "b" / "up" / "b").documents[0].name == "a.PDF"


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        find_documents(tmp_path / "none")


def test_files_that_a_gitignore_file_names_are_passed_over(tmp_path: Path) -> None:
    for name in ("a.md", "secret.txt", "build/b.md", "sub/keep.log", "sub/drop.log", "sub/deep/c.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text", encoding="utf-8")
    (tmp_path / ".gitignore").write_text("# mine\nsecret*\n/build/\n*.log\n", encoding="utf-8")
    (tmp_path / "sub" / ".gitignore").write_text("!keep.log\n/deep\n", encoding="utf-8")
    found = find_documents(tmp_path)
    assert [str(path.relative_to(tmp_path)) for path in found.documents] == ["a.md", "sub/keep.log"]
    assert found.skipped.counts[IGNORED] == 4
    assert find_documents(tmp_path / "secret.txt").documents, "what is named is read"
