"""Connection of `newton chat` and `newton ask` to an agent, on this machine or in a daemon."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from newton.client import ApiError, Client
from newton.errors import InputError, ProviderError, UnauthorizedError
from newton.providers.chat import ModelSelector
from newton.runtime.access import operator_token
from newton.runtime.chat_backend.daemon_errors import convert_api_errors
from newton.runtime.chat_backend.local import LocalAgent
from newton.runtime.chat_backend.protocol import ChatBackend
from newton.runtime.chat_backend.remote import RemoteAgent
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.command_context import require_own_process
from newton.runtime.cli.daemon_access import TOKEN_HINT, check_daemon_url, find_token
from newton.runtime.cli.formatting import print_new_agent
from newton.runtime.cli.progress import print_progress
from newton.settings import Settings

MAX_ATTEMPTS = 3


@asynccontextmanager
async def open_chat_backend(
    settings: Settings, daemon: str | None, token_file: Path | None, *, is_agent_explicit: bool
) -> AsyncGenerator[ChatBackend]:
    """Yield a local agent or, if `daemon` is a URL, a connection to that daemon whose token is verified.

    `is_agent_explicit` is True if the command line names the agent. Raises InputError for an invalid URL or token file,
    ConfigError without a token, and the errors that the daemon returns.
    """
    if daemon is None:
        if token_file is not None:
            raise InputError("--token-file requires --daemon.", hint="Give the URL of the daemon with --daemon.")
        async with open_agent(settings, on_new_agent=print_new_agent) as newton:
            model = newton.chat_model
            if isinstance(model, ModelSelector):
                with suppress(ProviderError):  # the turn tells why the model is unknown
                    await model.resolve_name()
            yield LocalAgent(newton=newton, turn_runner=newton.turn_runner(model, on_event=print_progress))
        return
    require_own_process()
    url = check_daemon_url(daemon)
    token = find_token(settings, url, token_file)
    is_operator = token.startswith(operator_token.PREFIX) and "agent" in settings.model_fields_set
    agent = settings.agent if is_agent_explicit or is_operator else None
    with convert_api_errors():
        async with Client(url, token=token, agent=agent, project=settings.project, max_attempts=MAX_ATTEMPTS) as client:
            try:
                token_info = await client.get_token_info()
            except ApiError as error:
                if error.code != UnauthorizedError.code:
                    raise
                raise UnauthorizedError(f"The daemon at {url} rejects the token.", hint=TOKEN_HINT) from None
            yield RemoteAgent(client=client, token_info=token_info, on_event=print_progress)
