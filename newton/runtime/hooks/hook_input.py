"""The input of a hook: its flags, and the JSON object that Claude Code or Codex writes to its standard input."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

JsonObject = dict[str, Any]

DEFAULT_AGENT, DEFAULT_TOKENS = "default", 600
DEFAULT_DATA_DIR = "~/.local/share/newton"
URL_VARIABLE, TOKEN_VARIABLE, DATA_DIR_VARIABLE = "NEWTON_URL", "NEWTON_TOKEN", "NEWTON_DATA_DIR"
PROJECT_VARIABLE, MEMORY_VARIABLE = "CLAUDE_PROJECT_DIR", "NEWTON_PROJECT"
VALUE_FLAGS = {
    **{"--agent": "agent", "--project": "project", "--max-tokens": "max_tokens"},
    **{"--data-dir": "data_dir", "--program": "program"},
}

Program = Literal["claude-code", "codex"]
PROGRAM_NAMES: dict[str, str] = {"claude-code": "Claude Code", "codex": "Codex"}
NOTIFY_TYPE, NOTIFY_EVENT = "agent-turn-complete", "AgentTurnComplete"  # of `notify` in Codex's config.toml
MAX_TEXT_CHARS = 200_000  # of one message

IGNORED_EVENTS = """
Notification PostCompact SubagentStart PermissionRequest PermissionDenied Setup StopFailure Interrupt
TeammateIdle TaskCreated TaskCompleted InstructionsLoaded ConfigChange CwdChanged FileChanged WorktreeCreate
WorktreeRemove Elicitation ElicitationResult UserPromptExpansion PostToolBatch
"""  # events that need nothing of Newton

# A slash command and its arguments. A path such as /etc/hosts is none.
_COMMAND = re.compile(r"/[A-Za-z][\w:.-]*(?:\s+(?P<arguments>.+))?\s*", re.DOTALL)
# Prompts that a program writes in the name of the user.
_PROGRAM_TEXT = re.compile(
    r"\s*(?:<(?:command-\w+|local-command-\w+|bash-\w+|task-notification|system-reminder|user-prompt-submit-hook"
    r"|environment_context|user_instructions|turn_aborted)[\s>]"
    r"|\[Request interrupted|This session is being continued from a previous conversation|Caveat: The messages below)"
)
MIN_ARGUMENT_WORDS = 3  # of a slash command, to be words of the user


class InvalidInputError(Exception):
    """The input of a hook is not a JSON object with the fields that Claude Code and Codex send."""


class HookInput(NamedTuple):
    """An event of a session of a coding agent. `project` is the project's folder, and `fields` the whole input."""

    event: str
    program: Program
    session_id: str
    project: Path
    fields: JsonObject

    @property
    def project_key(self) -> str:
        """Return the name of the project's folder and a digest of its path, such as `shop-3f9c2a`."""
        name = re.sub(r"[^\w.-]+", "-", self.project.name)[:60].strip("-.") or "root"
        return f"{name}-{hashlib.sha256(str(self.project).encode('utf-8', 'replace')).hexdigest()[:6]}"

    @property
    def session(self) -> str:
        """Return the name of the session in Newton: `project_key`, a slash, and the program with its session id."""
        own_id = re.sub(r"[^\w.-]+", "-", self.session_id)[:80]
        return f"{self.project_key}/{self.program}-{own_id}"

    def text(self, name: str) -> str:
        """Return a field of the input as text; "" if the field is missing or not a text."""
        return clean(as_text(self.fields.get(name)))


def parse_input(raw: str, *, program: str | None, project_dir: str | None) -> HookInput:
    """Parse the input of a hook. Raises InvalidInputError, whose text says what is wrong."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"the input is not JSON ({error})") from None
    fields = as_object(value)
    if not isinstance(value, dict):
        raise InvalidInputError("the input is not a JSON object")
    if fields.get("type") == NOTIFY_TYPE:
        fields = {name.replace("-", "_"): value for name, value in fields.items()}
        fields |= {"hook_event_name": NOTIFY_EVENT, "session_id": fields.get("thread_id") or fields.get("turn_id")}
    event, session_id = fields.get("hook_event_name"), fields.get("session_id")
    if not isinstance(event, str) or not isinstance(session_id, str) or not session_id:
        raise InvalidInputError("the input has no text in `hook_event_name` or `session_id`")
    is_codex = program == "codex" or (program is None and _is_from_codex(fields))
    return HookInput(
        event=event,
        program="codex" if is_codex else "claude-code",
        session_id=session_id,
        project=find_project(as_text(fields.get("cwd")) or ".", project_dir),
        fields=fields,
    )


def _is_from_codex(fields: JsonObject) -> bool:
    """Return whether Codex sent the fields.

    Only Codex sends a `turn_id`, a `transcript_path` that is null, or one in `~/.codex`.
    """
    path = fields.get("transcript_path", "")
    return "turn_id" in fields or path is None or "/.codex/" in as_text(path)


def find_project(cwd: str, project_dir: str | None) -> Path:
    """Return the project's folder.

    It is `project_dir` if given, else the nearest folder at or above `cwd` with a `.git`, else `cwd`.
    """
    if project_dir:
        return Path(project_dir)
    start = Path(cwd).absolute()
    return next((folder for folder in (start, *start.parents) if (folder / ".git").exists()), start)


def find_user_words(prompt: str) -> str:
    """Return the text of the user in a prompt; "" if a program wrote the prompt.

    Of a slash command, return the arguments if they have at least `MIN_ARGUMENT_WORDS` words, else "".

    >>> [find_user_words(text) for text in ("/review the retry logic", "/clear", "/etc/hosts is wrong")]
    ['the retry logic', '', '/etc/hosts is wrong']
    """
    text = prompt.strip()
    if _PROGRAM_TEXT.match(text):
        return ""
    if command := _COMMAND.fullmatch(text):
        arguments = (command["arguments"] or "").strip()
        return arguments if len(arguments.split()) >= MIN_ARGUMENT_WORDS else ""
    return text


def clean(text: str) -> str:
    """Return a text that can be stored: cut to `MAX_TEXT_CHARS`, with NUL and lone surrogates replaced."""
    if len(text) > MAX_TEXT_CHARS:
        text = text[:MAX_TEXT_CHARS] + " […]"
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def make_ref(*parts: str) -> str:
    """Return an id of a message or event that depends only on `parts`: a repeated request then stores nothing twice."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


class InvalidFlagError(Exception):
    """A flag of `newton hook` is unknown, or its value is invalid."""


class HookOptions(NamedTuple):
    """The flags of `newton hook`. If `program` is None, the coding agent is recognized by its input.

    `project` is the project of the agent whose memory is used, None for the agent's own.
    """

    agent: str = DEFAULT_AGENT
    per_project: bool = False
    max_tokens: int = DEFAULT_TOKENS
    data_dir: str | None = None
    program: str | None = None
    project: str | None = None

    @property
    def owner(self) -> str:
        """Return a name of the memory that the events belong to."""
        return f"{self.agent} {self.project}" if self.project else self.agent


def find_data_dir(option: str | None, env: Mapping[str, str]) -> Path:
    """Return the data folder: the option, the variable NEWTON_DATA_DIR, or the default.

    A `newton.toml` in the working folder is ignored, because a hook runs in the folder of any project.
    """
    return Path(option or env.get(DATA_DIR_VARIABLE) or DEFAULT_DATA_DIR).expanduser()


def parse_flags(flags: Sequence[str]) -> HookOptions:
    """Parse the flags of `newton hook`. Raises InvalidFlagError for an unknown flag or an invalid value."""
    fields: dict[str, Any] = {}
    rest = list(flags)
    while rest:
        flag, *rest = rest
        flag, has_value, value = flag.partition("=")
        if flag == "--per-project":
            fields["per_project"] = True
            continue
        field = VALUE_FLAGS.get(flag)
        if field is None or not (has_value or rest):
            raise InvalidFlagError(f"the flag {flag!r} is unknown or has no value; see `newton hook run --help`")
        if not has_value:
            value, *rest = rest
        if field == "max_tokens" and not value.isdecimal():
            raise InvalidFlagError(f"the value {value!r} of --max-tokens is not a whole number")
        fields[field] = int(value) if field == "max_tokens" else value
    return HookOptions(**fields)


def as_object(value: object) -> JsonObject:
    """Return the value if it is a JSON object, else an empty object."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return the value if it is a list, else an empty list."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Return the value if it is a text, else ""."""
    return value if isinstance(value, str) else ""
