# Generated from newton/client/items.py by scripts/make-reference; change that module instead.
"""Client operations on items: JSON values stored under a namespace and a key."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ..json_types import JsonDict
from .inventory import SyncInventoryOperations


class SyncItemOperations(SyncInventoryOperations):
    """Client operations on items, which are JSON values with a key in a namespace.

    A namespace is a sequence of parts, from the outermost to the innermost.
    """

    def put_item(
        self,
        namespace: Sequence[str],
        key: str,
        value: Mapping[str, object],
        *,
        index: Literal[False] | Sequence[str] | None = None,
        **fields: object,
    ) -> JsonDict:
        """Store a JSON value as an item, or replace the value of an existing item; return the item's ids and times.

        The text of the fields named in `index`, such as "title" or "tags[*]", becomes a memory that searches find. By
        default all fields are used; False uses none. `fields` may contain `source` ("own", "tool" or "web").
        """
        chosen = {} if index is None else {"index": index if index is False else list(index)}
        body = {"namespace": list(namespace), "key": key, "value": value, **chosen, **fields}
        return self._send("PUT", "/v1/items", body)

    def item(self, namespace: Sequence[str], key: str) -> JsonDict:
        """Return an item: its value, ids and times. Raises ApiError `not_found`."""
        return self.get("/v1/items", {"namespace": list(namespace), "key": key})

    def delete_item(self, namespace: Sequence[str], key: str) -> list[str]:
        """Permanently delete an item; return the ids of its deleted memories. Needs a token of the scope `admin`."""
        params = {"namespace": list(namespace), "key": key}
        return (self._send("DELETE", "/v1/items", params=params))["items"]

    def search_items(self, namespace: Sequence[str] = (), query: str | None = None, **fields: Any) -> list[JsonDict]:
        """Search the items of all namespaces that begin with `namespace`.

        The items most similar to `query` come first or, without it, the last updated ones. `fields` are `filter`, which
        restricts the fields of the values, `limit` and `offset`.
        """
        body = {"namespace": list(namespace), "query": query, **fields}
        return (self.post("/v1/items/search", body))["items"]

    def item_namespaces(self, **fields: Any) -> list[list[str]]:
        """List the namespaces that have items. `fields` are prefix, suffix, max_depth, limit and offset."""
        return (self.get("/v1/items/namespaces", fields))["items"]
