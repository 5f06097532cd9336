"""The methods of the client that call one operation each. A stub beside this module has their types."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from .connection import DaemonConnection
from .http_messages import decode_json, encode_fields
from .operation_table import KEY, TIMEOUT, ClientOperation, load_client_operations


class OperationMethods(DaemonConnection):
    """A method for each operation (function of the API). It returns the JSON that `/openapi.json` describes."""

    async def run_operation(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Run the operation `name` and return the JSON of its result.

        A request that writes takes effect only once, even if it is retried, and only once for all calls with the same
        `idempotency_key` among the arguments. `timeout_seconds` among them limits how long the daemon searches memory.
        """
        operation, given = load_client_operations()[name], dict(arguments)
        key, timeout = given.pop(KEY, None) or str(uuid4()), given.pop(TIMEOUT, None)
        path = operation.fill_path(given)
        fields: dict[str, Any] = encode_fields(operation.select_fields(given))
        if operation.method in ("GET", "DELETE"):
            key = key if operation.writes else None
            return decode_json(await self.request(operation.method, path, params=fields, idempotency_key=key))
        return decode_json(
            await self.request(operation.method, path, body=fields, idempotency_key=key, timeout_seconds=timeout)
        )


def _build_method(name: str, operation: ClientOperation) -> Callable[..., Any]:
    signature = operation.signature

    def method(*args: Any, **fields: Any) -> Any:
        self, *_ = args
        given = dict(signature.bind(*args, **fields).arguments)
        del given["self"]
        return self.run_operation(name, given)

    method.__name__, method.__doc__ = name, operation.help
    method.__signature__ = signature  # pyrefly: ignore[missing-attribute]  # help() shows it
    return method


for _name, _operation in load_client_operations().items():
    setattr(OperationMethods, _name, _build_method(_name, _operation))
