"""Files and images that an input of the chat names as `@path` (issue 22, `newton chat`)."""

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from tests.endpoint import Wire, aside, says
from tests.system.daemons import daemon
from tests.system.model_line import png
from tests.system.talking_model import TalkingModel, talking_model
from tests.system.typed import Done, chatted, ok, typed


@pytest.fixture
def model() -> Iterator[TalkingModel]:
    with aside(talking_model()) as made:
        yield made


def write_pdf(path: Path, text: str) -> None:
    """A PDF of one page with one line."""
    writer = PdfWriter()
    page = writer.add_blank_page(width=300, height=200)
    font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    named = DictionaryObject({NameObject(key): NameObject(value) for key, value in font.items()})
    fonts = DictionaryObject({NameObject("/F1"): named})
    page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    stream = DecodedStreamObject()
    stream.set_data(f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode())
    page[NameObject("/Contents")] = cast("Any", writer)._add_object(stream)
    writer.write(path)


def say(home: Path, model: TalkingModel, session: str, *texts: str) -> Done:
    """The chat of a person who types these lines."""
    lines = "".join(f"{text}\n" for text in texts)
    return chatted(home, lines, "--session", session, **model.settings)


@pytest.mark.slow
def test_a_text_and_a_pdf_become_documents_and_an_image_goes_to_the_model(home: Path, model: TalkingModel) -> None:
    picture = write_files(home)
    done = say(home, model, "files", ATTACHING)
    assert "Fine." in ok(done)
    assert_attached(model, picture)
    documents = json.loads(ok(typed(home, "documents", "--json")))["items"]
    assert {one["title"] for one in documents} >= {"ferry times", "plan"} or len(documents) == 2
    for question in ("When does the ferry leave?", "Which pier is closed in May?"):
        found = ok(typed(home, "recall", question, "--kind", "passage"))
        assert ("nine" if "ferry" in question else "pier is closed") in found


@pytest.mark.slow
def test_files_are_attached_in_a_chat_with_a_daemon(home: Path, model: TalkingModel) -> None:
    picture = write_files(home)
    with daemon(home, NEWTON_EMBEDDING_PROVIDER="none", **model.settings) as served:
        flags = ("--session", "remote", "--daemon", served.url)
        lines = f"{ATTACHING}\nRead @gone.txt\n/documents\n"
        done = chatted(home, lines, *flags, NEWTON_TOKEN=served.token)
        assert "Fine." in ok(done) and "(1 passage)" in done.stdout and "There is no file gone.txt" in done.stderr
        assert_attached(model, picture, turn=0)
        with served.client() as client:
            artifacts = client.get("/v1/artifacts", params={"session": "remote"}).json()["items"]
            found = client.post("/v1/recall", json={"query": "Which pier is closed in May?"}).json()["items"]
    assert {"ferry times.txt", "plan.pdf"} <= {one["name"] for one in artifacts}
    assert "pier is closed" in str(found)


ATTACHING = 'See @"ferry times.txt" and @plan.pdf, then @map.png; mail ana@example.com'


def write_files(home: Path) -> str:
    """Write the files that the message names; the picture as a data URL."""
    (home / "ferry times.txt").write_text("The ferry leaves at nine.", encoding="utf-8")
    write_pdf(home / "plan.pdf", "The pier is closed in May.")
    picture = png(4, 4)
    (home / "map.png").write_bytes(base64.b64decode(picture.partition(",")[2]))
    return picture


def assert_attached(model: TalkingModel, picture: str, *, turn: int = -1) -> None:
    content: Any = model.turns[turn]["messages"][-1]["content"]
    assert content.__class__ is list
    assert [part["image_url"]["url"] for part in content if part["type"] == "image_url"] == [picture]
    words = " ".join(part.get("text", "") for part in content)
    assert "ferry times.txt" in words and "plan.pdf" in words and "[image: map.png]" in words


@pytest.mark.slow
def test_a_model_that_refuses_images_answers_without_them_and_the_person_is_told(
    home: Path, model: TalkingModel
) -> None:
    async def refuse_images(wire: Wire) -> None:
        if isinstance(wire.body["messages"][-1]["content"], str):
            await says(["I see no picture."])(wire)
        else:
            error = {"message": "This model does not support image input.", "type": "invalid_request_error"}
            await wire.send(400, {"error": error})

    model.usual = refuse_images
    (home / "map.png").write_bytes(base64.b64decode(png(4, 4).partition(",")[2]))
    done = say(home, model, "refused", "What is on @map.png?")
    assert "I see no picture." in ok(done)
    assert "This model does not support image input." in done.stderr and "got no image" in done.stderr
    assert len(model.turns) == 2


@pytest.mark.slow
def test_what_cannot_be_attached_is_named_and_what_is_no_path_is_left_alone(home: Path, model: TalkingModel) -> None:
    (home / "folder").mkdir()
    (home / "noise.bin").write_bytes(os.urandom(4_000))
    with (home / "huge.log").open("wb") as file:
        file.truncate(200_000_000)
    done = say(
        home,
        model,
        "odd",
        *("Ask @ana, ana@example.com or a @ b.", "Read @gone.txt", "Read @folder"),
        *("Read @huge.log", "Read @noise.bin"),
    )
    ok(done)
    for told in ("There is no file gone.txt", "folder is a folder", "huge.log has more than 20 MB", "noise.bin"):
        assert told in done.stderr
    assert done.stderr.count("The message was not sent.") == 2 and "Traceback" not in done.stderr
    sent = [str(body["messages"][-1]["content"]).rpartition("\n")[2] for body in model.turns]
    assert sent == ["Ask @ana, ana@example.com or a @ b.", "Read @gone.txt", "Read @folder"]
