"""Every endpoint with whatever its description allows, and with what it does not."""

from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import checks
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks as openapi_checks

from newton.runtime.api.middleware.admission import TIMEOUT_HEADER

GENERAL: Any = checks
OPENAPI: Any = openapi_checks


def answers_in_time(ctx: object, response: Any, case: Any) -> None:
    """Raises for an error of the server, unless the request itself set a time that was too short for it."""
    if case.headers and TIMEOUT_HEADER in case.headers and response.status_code == 503:
        assert "timeout" in response.text and "retry-after" in response.headers
    else:
        GENERAL.not_a_server_error(ctx, response, case)


CHECKS: list[Any] = [
    answers_in_time,
    OPENAPI.status_code_conformance,
    OPENAPI.content_type_conformance,
    OPENAPI.response_schema_conformance,
]
ENDLESS = "/v1/events"


@schemathesis.serializer("application/x-ndjson")
def lines(context: object, value: object) -> bytes:
    """Import takes whatever comes, a line at a time."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


def fuzz(url: str, token: str, *, examples: int) -> int:
    """Asks each endpoint so often, half of it with what the description does not allow where it can be broken; how many
    requests were sent. Raises what is wrong with an answer."""
    asked = 0
    schema: Any = schemathesis.openapi.from_url(f"{url}/openapi.json")

    def ask(case: Any) -> None:
        nonlocal asked
        asked += 1
        case.call_and_validate(headers={"Authorization": f"Bearer {token}"}, checks=CHECKS)

    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path == ENDLESS:
            continue
        modes = [GenerationMode.POSITIVE] + ([GenerationMode.NEGATIVE] if operation.body else [])
        for mode in modes:
            limits = settings(
                max_examples=-(-examples // len(modes)),
                deadline=None,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
                phases=[Phase.generate],
            )
            limits(seed(7)(given(operation.as_strategy(generation_mode=mode))(ask)))()
    return asked
