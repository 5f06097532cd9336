"""Errors of MCP requests: results of tools describe them; those for resources and prompts are errors of JSON-RPC."""

from collections.abc import Generator
from contextlib import contextmanager
from http import HTTPStatus

from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS

from newton.agent.loop.tools import ToolResult
from newton.errors import NewtonError, error_from_code
from newton.fault_isolation import isolate_failure
from newton.runtime.api import problems
from newton.runtime.hint_names import rename_in_error


@contextmanager
def convert_errors(**details: str) -> Generator[None]:
    """Convert each exception of the `with` block to an MCPError with a problem document and `details` as its data.

    An error of the caller, such as an unknown resource, has the code INVALID_PARAMS, as the protocol requires since its
    version 2026-07-28. Any other error has INTERNAL_ERROR.
    """
    try:
        with hide_internal_details():
            yield
    except NewtonError as error:
        raise _to_mcp_error(error, details) from None


@contextmanager
def hide_internal_details() -> Generator[None]:
    """Replace an unexpected exception of the `with` block by a NewtonError; else the SDK sends its message."""
    failures = dict[str, str]()
    with isolate_failure("MCP request", failures, passed=(NewtonError,)):
        yield
    if failures:
        raise problems.create_internal_error("part_failed")


def check_result(result: ToolResult) -> ToolResult:
    """Return the result of a tool. Raises the NewtonError that the result describes, if any."""
    if not result.is_error:
        return result
    fields = {name: str(value) for name, value in result.fields.items()}
    raise error_from_code(fields["code"], fields["error"], hint=fields["hint"])


def _to_mcp_error(error: NewtonError, details: dict[str, str]) -> MCPError:
    problem, error = problems.to_problem(error, "mcp"), rename_in_error(error, "mcp")
    code = INVALID_PARAMS if problem.status < HTTPStatus.INTERNAL_SERVER_ERROR else INTERNAL_ERROR
    return MCPError(code, f"{error.what} {error.hint}", {**problem.model_dump(), **details})
