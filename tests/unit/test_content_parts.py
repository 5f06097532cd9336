"""What is remembered of pictures, sound and files, and by which signs a conversation is recognized again."""

import base64
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.agent.loop.history_match import IncomingMessage, fingerprint_messages
from newton.providers.chat import ToolCall
from newton.runtime.api.chat_completions.content_parts import (
    clean_parts,
    describe_parts,
    has_attachments,
    hash_attachments,
)
from newton.runtime.api.chat_completions.request_models import ChatCompletionRequest

JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0"
    b"\xff\xe1\x01\x02" + b"e" * 256 + b"\xff\xc2\x00\x11\x08\x03\x00\x04\x00\x03"
)
LOSSY = b"RIFF\x24\0\0\0WEBPVP8 \x18\0\0\0\x30\x01\0\x9d\x01\x2a" + struct.pack("<HH", 550, 368) + b"\0" * 8
LOSSLESS = b"RIFF\x24\0\0\0WEBPVP8L\x18\0\0\0\x2f" + struct.pack("<I", 399 | (300 << 14)) + b"\0" * 8
EXTENDED = b"RIFF\x24\0\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0" + b"\xff\x03\0" + b"\xff\x02\0"
GIF = b"GIF89a" + struct.pack("<HH", 320, 200) + b"\0" * 8
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 1024, 768) + b"\x08\x02\0\0\0"


def picture(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def embedded(data: bytes, media: str) -> dict[str, Any]:
    return picture(f"data:{media};base64,{base64.b64encode(data).decode()}")


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (embedded(PNG, "image/png"), "[image: 1024x768 png]"),
        (embedded(JPEG, "image/jpeg"), "[image: 1024x768 jpeg]"),
        (embedded(GIF, "image/gif"), "[image: 320x200 gif]"),
        (embedded(LOSSY, "image/webp"), "[image: 550x368 webp]"),
        (embedded(LOSSLESS, "image/webp"), "[image: 400x301 webp]"),
        (embedded(EXTENDED, "image/webp"), "[image: 1024x768 webp]"),
        (embedded(b"?" * 9_000, "image/heic"), "[image: 8 KB heic]"),
        (embedded(PNG[:18], "image/png"), "[image: 0 KB png]"),
        (picture("data:image/png;base64,not base64"), "[image: 0 KB png]"),
        (picture("https://ana:pw@host.example/a/b.png?sig=s3cr3t#x"), "[image: https://host.example/a/b.png]"),
        (picture("http://[broken"), "[image: a URL]"),
        ({"type": "image_url", "image_url": "https://host.example/c.png"}, "[image: https://host.example/c.png]"),
        ({"type": "input_audio", "input_audio": {"data": "A" * 40_960, "format": "mp3"}}, "[audio: 30 KB mp3]"),
        ({"type": "file", "file": {"file_id": "file-abc"}}, "[file: file-abc]"),
        ({"type": "file", "file": {"filename": "a\nb.pdf", "file_data": "AAAA"}}, "[file: a b.pdf]"),
        ({"type": "hologram"}, "[hologram]"),
        ({"text": "Just words."}, "Just words."),
    ],
)
def test_a_part_is_remembered_in_a_few_words(part: dict[str, Any], said: str) -> None:
    assert describe_parts([part]) == said


def test_pictures_are_known_again_and_words_lose_their_secrets() -> None:
    first, other = embedded(PNG, "image/png"), embedded(PNG + b"\1", "image/png")
    assert hash_attachments([first]) == hash_attachments([{**first, "cache_control": {}}])
    assert hash_attachments([first]) != hash_attachments([other])
    signed = [picture(f"https://host.example/a.png?signature={n}") for n in range(2)]
    assert hash_attachments(signed[:1]) == hash_attachments(signed[1:])
    # words lose their secrets and nothing else changes
    shown = embedded(PNG, "image/png")
    said = {"type": "text", "text": "My key is AKIAIOSFODNN7EXAMPLE.", "cache_control": {"type": "ephemeral"}}
    cleaned, same = clean_parts([said, shown])
    assert cleaned == {**said, "text": "My key is [REDACTED:aws-key]."} and same is shown


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30) | st.sampled_from(["data:;base64,", "https://["]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(["type", "text", "image_url", "url", "file", "filename", "input_audio", "data", "format"])


@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=4), max_size=3))
def test_whatever_a_client_sends_can_be_described(parts: list[dict[str, Any]]) -> None:
    assert isinstance(describe_parts(parts), str)
    assert len(hash_attachments(parts)) == len(hash_attachments([]))
    assert len(clean_parts(parts)) == len(parts) and has_attachments(parts) in (True, False)


def test_the_messages_of_a_request_are_converted_once_and_are_no_field() -> None:
    body = ChatCompletionRequest.model_validate({
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
        "seed": 7,
    })  # fmt: skip
    assert [one.text for one in body.incoming_messages] == ["Hello"]
    assert body.incoming_messages is body.incoming_messages
    assert body.request_options.extra_body == {"seed": 7}


WORDS = st.text(st.characters(codec="utf-8"), max_size=20)
ONE = st.builds(IncomingMessage, st.sampled_from(["user", "assistant"]), WORDS)
TALKS = st.lists(ONE, min_size=1, max_size=6)


@pytest.mark.slow
@given(TALKS, TALKS)
def test_what_goes_on_from_the_same_words_begins_with_the_same_signs(
    talk: list[IncomingMessage], more: list[IncomingMessage]
) -> None:
    assert fingerprint_messages([*talk, *more])[: len(talk)] == fingerprint_messages(talk)


@pytest.mark.slow
@given(TALKS, st.data())
def test_an_edit_changes_every_sign_from_there_on_and_none_before(
    talk: list[IncomingMessage], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(talk) - 1))
    edited = [*talk[:place], talk[place]._replace(text=talk[place].text + "!"), *talk[place + 1 :]]
    before, after = fingerprint_messages(talk), fingerprint_messages(edited)
    assert before[:place] == after[:place]
    assert not set(before[place:]) & set(after[place:])


def test_how_a_client_writes_a_call_again_does_not_matter() -> None:
    one = IncomingMessage("assistant", "I look. ", (ToolCall("c", "f", '{"a": 1, "b": 2}'),))
    same = IncomingMessage("assistant", "I look.", (ToolCall("c", "f", '{"b":2,"a":1}'),))
    other = IncomingMessage("assistant", "I look.", (ToolCall("c", "f", '{"b":2,"a":2}'),))
    assert fingerprint_messages([one]) == fingerprint_messages([same]) != fingerprint_messages([other])
