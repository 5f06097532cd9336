"""The operations of the client that are written by hand: documents, erasures, jobs, agents and tokens."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from uuid import uuid4

from .connection import QueryParameters
from .operation_methods import OperationMethods
from .response_types import IdLike, JsonDict, encode_segment


class AgentOperations(OperationMethods):
    """Client operations that return plain JSON. `/openapi.json` describes the fields of each route.

    Each raises ApiError, with the code `not_found` for an id or a name that does not exist.
    """

    async def upload_document(self, name: str, content: str | bytes, **fields: object) -> JsonDict:
        """Store a document; its file name says its format. Return its id and the counts of its passages.

        `fields` are `encoding`, `ref`, `title` and `source` of `POST /v1/documents`.
        """
        body = {"content": content} if isinstance(content, str) else {"content_base64": b64encode(content).decode()}
        return await self._send("POST", "/v1/documents", {"name": name, **body, **fields})

    async def preview_erasure(self, subject: str, *, also: Sequence[str] = ()) -> JsonDict:
        """Return what `erase_person` would erase, and the `token` that confirms it. `also` are further names."""
        return await self._send("POST", "/v1/erasures/preview", {"subject": subject, "also": list(also)})

    async def erase_person(self, subject: str, *, token: str, also: Sequence[str] = (), **fields: object) -> JsonDict:
        """Permanently erase everything about a person. `token` comes from `preview_erasure` with the same names."""
        body = {"subject": subject, "also": list(also), "token": token, **fields}
        return await self._send("POST", "/v1/erasures", body)

    async def jobs(self) -> list[JsonDict]:
        """List the background jobs with their schedules, their last runs and their next ones."""
        return await self.get_items("/v1/jobs")

    async def job_runs(self, name: str, *, limit: int = 20) -> list[JsonDict]:
        """List the runs of a job, latest first."""
        return (await self.get(f"/v1/jobs/{encode_segment(name)}/runs", {"limit": limit}))["items"]

    async def run_job(self, name: str) -> str:
        """Queue a run of a job now; return its id. Needs a token with the scope `admin`."""
        return (await self._send("POST", f"/v1/jobs/{encode_segment(name)}/run"))["job_id"]

    async def agents(self) -> list[JsonDict]:
        """List the agents of the database. Needs the token of the operator."""
        return await self.get_items("/v1/agents")

    async def agent(self, name: str) -> JsonDict:
        """Return how much an agent has stored, and its last activity. Needs the token of the operator."""
        return await self.get(f"/v1/agents/{encode_segment(name)}")

    async def delete_agent(self, name: str, *, token: str | None = None) -> JsonDict:
        """Permanently delete an agent. Without `token`, delete nothing and return a preview with the `token` to send.

        Needs the access token of the operator.
        """
        params = {"token": token} if token else None
        return (await self.request("DELETE", f"/v1/agents/{encode_segment(name)}", params=params)).json()

    async def tokens(self, agent: str) -> list[JsonDict]:
        """List the access tokens of an agent. Needs the token of the operator."""
        return await self.get_items(f"/v1/agents/{encode_segment(agent)}/tokens")

    async def create_token(
        self, agent: str, name: str, *, scope: Literal["read", "write", "admin"] = "write", **fields: object
    ) -> str:
        """Create an access token for an agent and return it; it is not shown again. Needs the token of the operator."""
        body = {"name": name, "scope": scope, **fields}
        return (await self.post(f"/v1/agents/{encode_segment(agent)}/tokens", body))["token"]

    async def revoke_token(self, agent: str, token_id: IdLike) -> None:
        """Revoke an access token of an agent by its name or id. Needs the token of the operator."""
        path = f"/v1/agents/{encode_segment(agent)}/tokens/{encode_segment(str(token_id))}"
        await self.request("DELETE", path)

    async def get_items(self, path: str, **params: str | int | bool) -> list[JsonDict]:
        """Return the `items` of the list at `path`; `params` are its query parameters."""
        return (await self.get(path, params))["items"]

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        params: QueryParameters | None = None,
    ) -> Any:
        """Send a request and return the JSON of its response. A field that is None is sent as null.

        The request takes effect only once, even if it is retried.
        """
        return (await self.request(method, path, body=body, params=params, idempotency_key=str(uuid4()))).json()
