"""Every endpoint with whatever its description allows, and with what it does not."""

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
ENDLESS = "/v1/events"


@schemathesis.serializer("application/x-ndjson")
def lines(context: object, value: object) -> bytes:
    """Import takes whatever comes, a line at a time."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


def fuzz(url: str, token: str, *, examples: int) -> int:
    """Asks each endpoint so often; how many requests were sent. Raises what is wrong with an answer."""
    asked = 0
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path == ENDLESS:
            continue

        @settings(
            max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
        )
        @seed(7)
        @given(case=operation.as_strategy())
        def ask(case: schemathesis.Case) -> None:
            nonlocal asked
            asked += 1
            case.call_and_validate(headers={"Authorization": f"Bearer {token}"}, checks=CHECKS)

        ask()
    return asked
