"""Commands `newton hook`: hooks that give coding agents a memory across projects and sessions."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from newton.errors import InputError
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings, require_yes
from newton.runtime.cli.printing import say
from newton.runtime.daemon_address import read_address
from newton.runtime.hooks import hook_runner, installation, spool
from newton.runtime.hooks.hook_input import (
    DEFAULT_AGENT,
    DEFAULT_DATA_DIR,
    DEFAULT_TOKENS,
    PROGRAM_NAMES,
    Program,
    find_project,
)
from newton.runtime.hooks.installation import SettingsChange

ProgramArgument = Annotated[Program, Parameter(help="Coding agent: claude-code or codex.")]
ProjectOption = Annotated[
    bool,
    Parameter(
        negative=(),
        help="Use the coding agent's settings of the current folder's project, in a file that is not committed.",
    ),
]
UserOption = Annotated[
    bool, Parameter(negative=(), help="Use the coding agent's settings of the user, for all projects (default).")
]
HookAgentOption = Annotated[
    str, Parameter("--agent", help="Newton's agent whose memory the coding agent uses. Agents share no data.")
]
PerProjectOption = Annotated[
    bool, Parameter(negative=(), help="Use a separate agent for each project, which is created when needed.")
]
HookTokensOption = Annotated[int, Parameter("--max-tokens", help="Maximum tokens of a context.")]
ConfirmedOption = Annotated[
    bool, Parameter("--yes", negative=(), help="Write the change of the settings file without asking.")
]


def run_hook(
    *,
    program: Annotated[
        str | None, Parameter(help="Coding agent: claude-code or codex; if omitted, it is recognised by its input.")
    ] = None,
    agent: HookAgentOption = DEFAULT_AGENT,
    project: Annotated[
        str | None, Parameter(help="Project of the agent whose memory is used; default: NEWTON_PROJECT, or none.")
    ] = None,
    per_project: PerProjectOption = False,
    max_tokens: HookTokensOption = DEFAULT_TOKENS,
    data_dir: Annotated[
        str | None, Parameter(help=f"Data folder of the daemon; default: NEWTON_DATA_DIR, or {DEFAULT_DATA_DIR}.")
    ] = None,
) -> int:
    """Read one event of a coding agent as JSON from standard input and print the answer as JSON.

    After `newton hook install` the coding agent runs this command. `newton hook` without a subcommand does the same and
    starts faster. The exit status is 0 even if no daemon runs, so that the coding agent continues.

    Example: newton hook run --agent work < event.json
    """
    values = {"--program": program, "--agent": agent, "--project": project, "--data-dir": data_dir}
    values["--max-tokens"] = str(max_tokens)
    flags = [f"{name}={value}" for name, value in values.items() if value is not None]
    return hook_runner.main([*flags, *(["--per-project"] if per_project else [])])


def install_hooks(
    program: ProgramArgument,
    *,
    project: ProjectOption = False,
    user: UserOption = False,
    agent: HookAgentOption = DEFAULT_AGENT,
    per_project: PerProjectOption = False,
    max_tokens: HookTokensOption = DEFAULT_TOKENS,
    yes: ConfirmedOption = False,
) -> None:
    """Add the hooks to the settings file of a coding agent.

    The change is shown before it is written, and the old file is kept. With NEWTON_PROJECT, the hooks use the memory of
    this project.

    Example: newton hook install claude-code
    """
    if per_project and agent != DEFAULT_AGENT:
        raise InputError("--agent and --per-project exclude each other.", hint="Give --agent or --per-project.")
    settings = load_settings(agent)
    flags = ["--per-project"] if per_project else ["--agent", settings.agent]
    flags += ["--project", settings.project] if settings.project else []
    flags += ["--max-tokens", str(max_tokens)] if max_tokens != DEFAULT_TOKENS else []
    is_default_home = settings.home == Path(DEFAULT_DATA_DIR).expanduser()
    flags += [] if is_default_home else ["--data-dir", str(settings.home.absolute())]
    folder, path = _find_settings_file(program, project=project, user=user)
    command = installation.build_command(program, flags)
    change = installation.plan_installation(path, program, command, within=folder)
    if _apply(change, f"{PROGRAM_NAMES[program]} runs the hooks from its next session on.", yes=yes):
        say(
            f"Check the hooks there with /hooks, and start the daemon with `newton serve`. Agent: {_name_agent(flags)}."
        )
    if obstacle := installation.find_obstacle(path, program):
        formatting.print_notice(obstacle)


def uninstall_hooks(
    program: ProgramArgument,
    *,
    project: ProjectOption = False,
    user: UserOption = False,
    yes: ConfirmedOption = False,
) -> None:
    """Remove the hooks from the settings file of a coding agent. The memories stay.

    Example: newton hook uninstall claude-code
    """
    folder, path = _find_settings_file(program, project=project, user=user)
    _apply(installation.plan_removal(path, within=folder), "The hooks are removed.", yes=yes)


def show_status(*, json: JsonOption = False) -> None:
    """Show where the hooks are installed, whether a daemon runs, and how many events wait for it.

    Example: newton hook status
    """
    home, project = Path.home(), find_project(".", None)
    data_dir = load_settings().home
    programs: tuple[Program, ...] = ("claude-code", "codex")
    rows = [_describe_hooks(program, home, scope) for program in programs for scope in (None, project)]
    address = read_address(data_dir)
    waiting = spool.count_entries(data_dir)
    if json:
        formatting.print_json({"hooks": rows, "daemon": address.url if address else None, "waiting": waiting})
        return
    for row in rows:
        state = "installed" if row["commands"] else "not installed"
        say(f"{row['program']:<12}{row['scope']:<9}{state:<15}{row['file']}")
        if row["commands"] and row["obstacle"]:
            say(f"  {row['obstacle']}")
    say(f"daemon: {address.url if address else 'none; start it with `newton serve`'}")
    say(f"events that wait for the daemon: {waiting}")


def _describe_hooks(program: Program, home: Path, project: Path | None) -> dict[str, object]:
    path = installation.find_settings_file(program, home=home, project=project)
    return {
        "program": program,
        "scope": "project" if project else "user",
        "file": str(path),
        "commands": installation.find_commands(path),
        "obstacle": installation.find_obstacle(path, program),
    }


def _find_settings_file(program: Program, *, project: bool, user: bool) -> tuple[Path | None, Path]:
    """Return the folder of the project, None with the settings of the user, and the settings file."""
    if project and user:
        raise InputError("--project and --user exclude each other.", hint="Give --project or --user.")
    folder = find_project(".", None) if project else None
    return folder, installation.find_settings_file(program, home=Path.home(), project=folder)


def _apply(change: SettingsChange, done: str, *, yes: bool) -> bool:
    """Show a change of a settings file, ask for confirmation, write it and print `done`.

    Return False if the file needs no change.
    """
    if not change.is_needed:
        say(f"{change.path} needs no change.")
        return False
    say(change.diff(), end="", flush=True)
    require_yes("Write this change?", yes=yes)
    backup = change.write()
    say(f"{done}{f' The old file is {backup}.' if backup else ''}")
    return True


def _name_agent(flags: list[str]) -> str:
    return "one per project" if flags[0] == "--per-project" else flags[1]
