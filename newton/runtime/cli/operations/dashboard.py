"""Command `newton dashboard`: print a link that opens the dashboard of a running daemon."""

import webbrowser
from typing import Annotated

from cyclopts import Parameter

from newton.client import Client
from newton.errors import ConfigError
from newton.runtime import daemon_address
from newton.runtime.chat_backend.daemon_errors import convert_api_errors
from newton.runtime.cli.daemon_access import DaemonOption, TokenFileOption, check_daemon_url, find_token
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say, to_json
from newton.settings import Settings


async def print_dashboard_link(
    *,
    daemon: DaemonOption = None,
    token_file: TokenFileOption = None,
    browser: Annotated[bool, Parameter(negative=(), help="Also open the link in the default browser.")] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Print a link that opens the dashboard of the running daemon once, within ten minutes.

    The browser may do what the token may do: the operator's token everything, a token of an agent what its scope
    permits in this agent.

    Example: newton dashboard --browser
    """
    settings = load_settings(agent)
    url = check_daemon_url(daemon) if daemon else _read_daemon_url(settings)
    token = find_token(settings, url, token_file)
    with convert_api_errors():
        async with Client(url, token=token, agent=agent, project=settings.project) as client:
            link = await client.post("/v1/dashboard/links", {})
    target = f"{url.rstrip('/')}{link['path']}"
    if json:
        say(to_json({"url": target, "expires_in_seconds": link["expires_in_seconds"]}))
    else:
        say(target)
    if browser:
        webbrowser.open(target)


def _read_daemon_url(settings: Settings) -> str:
    """Return the URL of the daemon of the data folder. Raises ConfigError if none runs."""
    address = daemon_address.read_address(settings.home)
    if address is None:
        raise ConfigError(
            f"No daemon serves {settings.home}.", hint="Start one with `newton serve`, or give its URL with --daemon."
        )
    return address.url
