"""Types of settings that are tables: model servers and MCP servers."""

import json
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, StringConstraints
from pydantic_core import PydanticCustomError

from newton.environment import expand_variables


def _check_url(url: str) -> str:
    """Return the URL. Rejects schemes except http and https, and credentials or a query, because URLs are logged."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise PydanticCustomError("url", "a URL must start with http:// or https://")
    if "@" in parts.netloc or parts.query:
        raise PydanticCustomError(
            "url", "a URL must not contain credentials or a query; set an API key in the setting for it"
        )
    return url


HttpUrl = Annotated[str, AfterValidator(_check_url)]
UpstreamName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][\w.-]*$")
]  # the name of a model may follow a "/"
McpServerName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9_-]{0,28}[a-z0-9])?$")]


class UpstreamSettings(BaseModel):
    """Settings of one model server: a `[models.NAME]` table in newton.toml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: Literal["openai", "anthropic"] = "openai"  # the protocol of the server
    base_url: HttpUrl | None = None  # default: that of the provider
    model: str | None = None  # default: the only model of the server
    api_key_env: str | None = None  # the environment variable that has the key
    api_key: SecretStr | None = None  # the key itself; `load` reads it from that variable
    window_tokens: int | None = Field(default=None, ge=1_000, le=10_000_000)  # default: see the setting `window_tokens`


class McpServerSettings(BaseModel):
    """Settings of one MCP server: a table `[mcp.servers.NAME]` in newton.toml, or an entry of `mcpServers` in JSON.

    A server has a `command`, which is started with `args`, or a `url`. `${NAME}` in these, in `env` and in `headers`
    stands for an environment variable. With `trust`, tools that the server marks as reading are called without a
    question. `tools` are the names of the only tools that are offered, and `frames` are further such lists by frame.
    `agents` are the names of the only agents that have the server.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: Path | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    trust: bool = False
    enabled: bool = True
    tools: tuple[str, ...] | None = None
    frames: dict[str, tuple[str, ...]] = {}
    agents: tuple[str, ...] | None = None
    timeout_seconds: float = Field(60.0, gt=0, le=3_600)

    def expand(self) -> "McpServerSettings":
        """Return the settings with the values of environment variables. Raises ConfigError for one that is not set."""
        return self.model_copy(
            update={
                "command": self.command and expand_variables(self.command),
                "args": tuple(map(expand_variables, self.args)),
                "env": {name: expand_variables(value) for name, value in self.env.items()},
                "url": self.url and expand_variables(self.url),
                "headers": {name: expand_variables(value) for name, value in self.headers.items()},
            }
        )

    def describe_address(self) -> str:
        """Return what decides which program answers, as JSON: URL and headers, or command, arguments, folder and `env`.

        The values are those of the settings: a `${NAME}` stands for itself, so that a renewed token changes nothing.
        """
        fields = self.model_dump(mode="json", include={"command", "args", "cwd", "env", "url", "headers"})
        return json.dumps(fields, sort_keys=True)


class McpSettings(BaseModel):
    """The table `[mcp]`: MCP servers by name, and JSON files that list more of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    servers: dict[McpServerName, McpServerSettings] = {}
    files: tuple[Path, ...] = ()
