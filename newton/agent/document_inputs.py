"""Inputs of a document to store."""

import base64
import binascii
from typing import Literal

from pydantic import Field, model_validator

from newton.agent.field_types import CleanText, Ref
from newton.agent.inputs import ToolInput


class IngestDocumentInput(ToolInput):
    """Store the text of a document as memories: its passages are found by searches. The name of the document says its
    format, such as notes.md, script.py, prices.csv or mail.eml. If a document with this name is stored, its passages
    are replaced. Do not store secrets."""

    name: Ref = Field(description="The file name of the document, such as notes.md. It says the format.")
    content: CleanText = Field(description="The text of the document.")
    title: CleanText | None = Field(
        None, max_length=200, description="The title of the document. Default: its first heading, or its name."
    )
    source: Literal["own", "tool", "web"] = Field(
        "tool",
        description="Who wrote the document: own (the person), tool (the default: another program or person) or web (a "
        "page). Text that is not the person's own is used only after a person ingests the document.",
    )


class UploadDocumentInput(ToolInput):
    """A document to store: its content is either `content` or `content_base64`."""

    name: Ref = Field(description="The file name of the document, such as report.pdf. It says the format.")
    content: str | None = Field(None, description="The content of a document of text.")
    content_base64: str | None = Field(None, description="The bytes of the document in Base64.")
    encoding: str | None = Field(
        None, max_length=50, description="The encoding of the bytes of a text. Default: it is detected."
    )
    ref: Ref | None = Field(
        None,
        description="The name under which the document is stored: another document with this name is replaced. Default:"
        " `name`.",
    )
    title: CleanText | None = Field(
        None, max_length=200, description="The title of the document. Default: its own title, or its name."
    )
    source: Literal["own", "tool", "web"] = Field(
        "own",
        description="Who wrote the document: own (the person), tool (another program) or web (a page). Text that is not"
        " the person's own stays quarantined.",
    )

    @model_validator(mode="after")
    def _check_content(self) -> "UploadDocumentInput":
        if (self.content is None) == (self.content_base64 is None):
            raise ValueError("needs either `content` or `content_base64`")
        if self.content is not None and self.encoding is not None:
            raise ValueError("has an `encoding`, which only `content_base64` can have")
        if self.content_base64 is not None:
            self.read_bytes()
        return self

    def read_bytes(self) -> bytes:
        """Return the content as bytes. Raises ValueError for invalid Base64."""
        if self.content_base64 is None:
            return (self.content or "").encode()
        try:
            return base64.b64decode(self.content_base64, validate=True)
        except binascii.Error as error:
            raise ValueError(f"has invalid Base64: {error}") from None
