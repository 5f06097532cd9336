"""The checks of `newton doctor` in its own process, which opens the database and the models for them."""

from collections.abc import AsyncGenerator

from newton.db.connection import open_owner_connection
from newton.db.requirements import MissingRequirement, find_missing
from newton.errors import NewtonError
from newton.runtime.cli.command_agent import open_own_agent
from newton.runtime.health.check_result import HealthFinding
from newton.runtime.health.installation_checks import check_chat_model, check_installation
from newton.settings import Settings


async def run_own_checks(settings: Settings, *, verify: bool) -> AsyncGenerator[HealthFinding]:
    """Yield the findings on the database and the models of the settings."""
    try:
        missing = await _find_missing(settings)
        for one in missing:
            yield HealthFinding("wrong", one.problem, one.remedy)
        if not missing:
            async with open_own_agent(settings) as newton:
                async for finding in check_installation(newton, verify=verify):
                    yield finding
    except NewtonError as error:
        yield HealthFinding("wrong", error.what, error.hint)
    yield await check_chat_model(settings)


async def _find_missing(settings: Settings) -> list[MissingRequirement]:
    """Return what an external server lacks; nothing is changed."""
    if settings.database_url is None:
        return []
    async with open_owner_connection(settings) as connection:
        return await find_missing(connection)
