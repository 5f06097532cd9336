"""Client operations on artifacts: long tool outputs, pasted texts, files and uploads of a session."""

from typing import Any

from .inventory import InventoryOperations
from .json_types import JsonDict


class ArtifactOperations(InventoryOperations):
    """Client operations on the artifacts of a session. Without `session`, it is the one with the latest artifact."""

    async def artifacts(self, session: str | None = None, **fields: Any) -> list[JsonDict]:
        """List the artifacts of a session, the newest first.

        `fields` are `name`, which lists the versions of one artifact, and `all_versions`, which lists every version of
        each artifact instead of the newest one.
        """
        return await self.get_items("/v1/artifacts", **_with_session(session, fields))

    async def read_artifact(self, name: str | None = None, session: str | None = None, **fields: Any) -> JsonDict:
        """Return lines of an artifact: `passages`, and `next_lines` or `next_offset` for the next page.

        `fields` are `lines` (such as "120-180"), `search` (which needs no name), `version` and `offset`.
        """
        named = {"name": name} if name else {}
        return await self.get("/v1/artifacts/lines", {**named, **_with_session(session, fields)})

    async def artifact_text(self, name: str, session: str | None = None, **fields: Any) -> str:
        """Return the whole text of an artifact; `fields` is `version`."""
        params = {"name": name, **_with_session(session, fields)}
        return (await self.request("GET", "/v1/artifacts/text", params=params)).text

    async def diff_artifact(self, name: str, session: str | None = None, **fields: Any) -> str:
        """Return the differences between the versions `old` and `new` of an artifact, as a unified diff."""
        return (await self.get("/v1/artifacts/diff", {"name": name, **_with_session(session, fields)}))["diff"]

    async def add_artifact(self, session: str, name: str, content: str | None = None, **fields: object) -> JsonDict:
        """Store a text as an artifact of a session; return its version and size.

        Of an image or another binary, only size and hash are stored: give `sha256` and `byte_count`, or `data` in
        base64, in place of `content`. `fields` may also contain `media_type` and `source` ("own", "tool" or "web").
        """
        return await self.post("/v1/artifacts", {"session": session, "name": name, "content": content, **fields})

    async def delete_artifact(self, name: str, session: str | None = None, **fields: Any) -> int:
        """Permanently delete an artifact, or one `version`; return the number of versions. Needs the scope `admin`."""
        params = {"name": name, **_with_session(session, fields)}
        return (await self._send("DELETE", "/v1/artifacts", params=params))["deleted"]


def _with_session(session: str | None, fields: dict[str, Any]) -> dict[str, Any]:
    return {**fields, **({"session": session} if session else {})}
