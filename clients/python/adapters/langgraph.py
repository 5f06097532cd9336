"""LangGraph store that keeps its items in Newton."""

import asyncio
from collections.abc import Generator, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

from langgraph.store.base import BaseStore, GetOp, Item, ListNamespacesOp, Op, PutOp, Result, SearchItem, SearchOp

from .. import ApiError, Client, SyncClient

PAGE_SIZE = 200  # items or namespaces of one request
ANY_PART = "*"
ITEM_FIELDS = ("namespace", "key", "value", "created_at", "updated_at")


class ClientCall(NamedTuple):
    """A method call that either the asynchronous or the synchronous client can run."""

    method: str
    arguments: tuple[Any, ...]
    fields: Mapping[str, Any]


Steps = Generator[ClientCall, Any, Result]


class NewtonStore(BaseStore):
    """LangGraph store, used as `graph.compile(store=NewtonStore(SyncClient()))`.

    The text of the fields named in `index` becomes a memory of Newton that searches find. By default all fields are
    used; False uses none. With a `Client` only the asynchronous methods work; with a `SyncClient` they run in a thread.
    """

    __slots__ = ("client", "index")

    def __init__(self, client: Client | SyncClient, *, index: Literal[False] | Sequence[str] | None = None) -> None:
        self.client, self.index = client, index

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run the reads, then the writes; return the results in the order of `ops`.

        Raises TypeError if the store has an asynchronous `Client`, and ApiError if a request fails.
        """
        client = self.client
        if not isinstance(client, SyncClient):
            raise TypeError("The synchronous methods of NewtonStore need a SyncClient.")
        ops = list(ops)
        results: list[Result] = [None] * len(ops)
        for n in order_operations(ops):
            steps, answer = self._run(ops[n]), None
            while isinstance(call := next_call(steps, answer), ClientCall):
                try:
                    answer = getattr(client, call.method)(*call.arguments, **call.fields)
                except ApiError as error:
                    answer = none_if_missing(error)
            results[n] = call
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run the reads, then the writes; return the results in the order of `ops`. Raises ApiError."""
        client = self.client
        if isinstance(client, SyncClient):
            return await asyncio.to_thread(self.batch, ops)
        ops = list(ops)
        results: list[Result] = [None] * len(ops)
        for n in order_operations(ops):
            steps, answer = self._run(ops[n]), None
            while isinstance(call := next_call(steps, answer), ClientCall):
                try:
                    answer = await getattr(client, call.method)(*call.arguments, **call.fields)
                except ApiError as error:
                    answer = none_if_missing(error)
            results[n] = call
        return results

    def _run(self, op: Op) -> Steps:
        """Return a generator that yields client calls, is sent their results, and returns the operation's result."""
        if isinstance(op, SearchOp):
            return search(op)
        if isinstance(op, ListNamespacesOp):
            return list_namespaces(op)
        if isinstance(op, GetOp):
            return get(op)
        return put(op, self.index if op.index is None else op.index)


def order_operations(ops: Sequence[Op]) -> list[int]:
    """Return the positions of the operations to run: first those that read, then the last write of each item."""
    last = {(op.namespace, op.key): n for n, op in enumerate(ops) if isinstance(op, PutOp)}
    return [*(n for n, op in enumerate(ops) if not isinstance(op, PutOp)), *sorted(last.values())]


def next_call(steps: Steps, answer: Any) -> "ClientCall | Result":
    """Send the last answer to an operation; return its next call or, if it has ended, its result."""
    try:
        return steps.send(answer)
    except StopIteration as end:
        return end.value


def none_if_missing(error: ApiError) -> None:
    """Return None if the error is that an item does not exist; raise any other error."""
    if error.code != "not_found":
        raise error


def get(op: GetOp) -> Steps:
    if not op.namespace:
        return None
    found = yield ClientCall("item", (op.namespace, op.key), {})
    return found and Item(**{name: found[name] for name in ITEM_FIELDS})


def put(op: PutOp, index: Literal[False] | Sequence[str] | None) -> Steps:
    if op.ttl is not None:
        raise NotImplementedError("NewtonStore keeps items until they are deleted; omit ttl.")
    if op.value is None:
        yield ClientCall("delete_item", (op.namespace, op.key), {})
    else:
        yield ClientCall("put_item", (op.namespace, op.key, dict(op.value)), {"index": index})
    return None


def search(op: SearchOp) -> Steps:
    items: list[SearchItem] = []
    fields = {"namespace": op.namespace_prefix, "query": op.query or None, "filter": op.filter}
    while len(items) < op.limit:
        limit = min(PAGE_SIZE, op.limit - len(items))
        page = {"limit": limit, "offset": op.offset + len(items)}
        found = (yield ClientCall("search_items", (), {**fields, **page}))["items"]
        items += [SearchItem(**{name: one[name] for name in (*ITEM_FIELDS, "score")}) for one in found]
        if len(found) < limit:
            break
    return items


def list_namespaces(op: ListNamespacesOp) -> Steps:
    conditions = op.match_conditions or ()
    prefix = merge_paths([one.path for one in conditions if one.match_type == "prefix"])
    suffix = merge_paths([one.path[::-1] for one in conditions if one.match_type == "suffix"])
    if prefix is None or suffix is None:
        return []
    fields: dict[str, Any] = {"prefix": prefix, "suffix": suffix[::-1], "max_depth": op.max_depth}
    namespaces: list[tuple[str, ...]] = []
    while len(namespaces) < op.limit:
        limit = min(PAGE_SIZE, op.limit - len(namespaces))
        page = {"limit": limit, "offset": op.offset + len(namespaces)}
        found = (yield ClientCall("item_namespaces", (), {**fields, **page}))["items"]
        namespaces += map(tuple, found)
        if len(found) < limit:
            break
    return namespaces


def merge_paths(paths: Sequence[Sequence[str]]) -> list[str] | None:
    """Return the path that matches the namespaces which all `paths` match; None if there are none.

    A part `*` matches any part.
    """
    columns = [set(parts) - {ANY_PART} for parts in zip_longest(*paths, fillvalue=ANY_PART)]
    if any(len(parts) > 1 for parts in columns):
        return None
    return [next(iter(parts), ANY_PART) for parts in columns]
