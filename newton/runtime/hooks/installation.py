"""Installation of the hooks: add them to the settings file of a coding agent, or remove them."""

import difflib
import json
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import newton
from newton.errors import InputError
from newton.file_access import create_private, is_inside, read_regular
from newton.runtime.hooks.hook_input import JsonObject, Program, as_list, as_object

BACKUP_SUFFIX = ".newton-backup"
MAX_SETTINGS_BYTES = 10_000_000
TIMEOUT_SECONDS = 10  # after which the coding agent goes on; a hook itself gives up earlier
EVENTS: Mapping[Program, Sequence[str]] = {
    "claude-code": (
        *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PreCompact"),
        *("Stop", "SubagentStop", "SessionEnd"),
    ),
    "codex": ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"),
}
BACKGROUND_EVENTS = frozenset({"PostToolUse", "PostToolUseFailure"})  # in Claude Code, which does not wait for them

# Per program, the settings file in the home folder and in a project. They name a program of this machine, so in a
# project it is the file of Claude Code that is not committed.
SETTINGS_FILES: Mapping[Program, tuple[str, str]] = {
    "claude-code": (".claude/settings.json", ".claude/settings.local.json"),
    "codex": (".codex/hooks.json", ".codex/hooks.json"),
}
_OWN_COMMAND = re.compile(r"\bnewton hook --program (?:claude-code|codex)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChange:
    """A planned change of a settings file: its text before and after. `before` is None if the file does not exist.

    The file of a project stays in the folder `within`, whatever links the project contains.
    """

    path: Path
    before: str | None
    after: str
    within: Path | None = None

    @property
    def is_needed(self) -> bool:
        return self.before != self.after

    def diff(self) -> str:
        """Return the change as a unified diff."""
        lines = (text.splitlines(keepends=True) for text in (self.before or "", self.after))
        return "".join(difflib.unified_diff(*lines, fromfile=str(self.path), tofile=str(self.path)))

    def write(self) -> Path | None:
        """Write the new text, and copy an old file to one with the suffix `.newton-backup`.

        Return the path of the copy, or None if there was no file. Raises InputError for a file that is outside of its
        project.
        """
        check_place(self.path, self.within)
        path = self.path.resolve()  # the file may be a link to one under version control
        path.parent.mkdir(parents=True, exist_ok=True)
        backup = path.with_name(path.name + BACKUP_SUFFIX) if self.before is not None else None
        new = path.with_name(path.name + ".newton-new")
        if backup and self.before is not None:
            with create_private(backup) as file:
                file.write(self.before.encode())
            shutil.copystat(path, backup)
        with create_private(new) as file:
            file.write(self.after.encode())  # the settings may contain keys, so nobody else may read them meanwhile
        if backup:
            shutil.copymode(path, new)
        new.replace(path)
        return backup


def check_place(path: Path, within: Path | None) -> None:
    """Raise InputError if a settings file, with its links followed, is outside of the folder `within`."""
    if within and not is_inside(path, within):
        what = f"{path} is a link to {path.resolve()}, which is outside of the project."
        raise InputError(what, hint="Replace the link by a file, or install the hooks for the user, with --user.")


def find_settings_file(program: Program, *, home: Path, project: Path | None) -> Path:
    """Return the coding agent's settings file in the home folder, or in `project` if given."""
    of_user, of_project = SETTINGS_FILES[program]
    return project / of_project if project else home / of_user


def build_command(program: Program, flags: Sequence[str]) -> str:
    """Return the shell command that runs a hook. Python does not import modules from the working folder."""
    root = Path(newton.__file__).parents[1]
    is_installed = root.name in ("site-packages", "dist-packages")
    words = [sys.executable, "-P", "-m", "newton", "hook", "--program", program, *flags]
    prefix = "" if is_installed else f"PYTHONPATH={shlex.quote(str(root))} "
    return prefix + shlex.join(words)


def plan_installation(path: Path, program: Program, command: str, *, within: Path | None = None) -> SettingsChange:
    """Return the change that adds the hooks and replaces earlier hooks of Newton.

    Raises InputError for an invalid settings file, and for one outside of the folder `within`.
    """
    check_place(path, within)
    before, settings = _read_settings(path)
    hooks = _remove_own(settings.get("hooks", {}))
    for event in EVENTS[program]:
        handler: JsonObject = {"type": "command", "command": command, "timeout": TIMEOUT_SECONDS}
        if program == "claude-code" and event in BACKGROUND_EVENTS:
            handler["async"] = True
        hooks.setdefault(event, []).append({"hooks": [handler]})
    return replace(_to_change(path, before, {**settings, "hooks": hooks}), within=within)


def plan_removal(path: Path, *, within: Path | None = None) -> SettingsChange:
    """Return the change that removes the hooks of Newton and keeps all else.

    Raises InputError for an invalid settings file, and for one outside of the folder `within`.
    """
    check_place(path, within)
    before, settings = _read_settings(path)
    if before is None or not find_commands(path):
        return SettingsChange(path=path, before=before, after=before or "")
    hooks = _remove_own(settings.get("hooks", {}))
    rest = {name: value for name, value in settings.items() if name != "hooks"}
    return replace(_to_change(path, before, {**settings, "hooks": hooks} if hooks else rest), within=within)


def find_commands(path: Path) -> list[str]:
    """Return the commands of Newton's hooks in a settings file, each once.

    Raises InputError for an invalid settings file.
    """
    _, settings = _read_settings(path)
    groups = [group for event_groups in settings.get("hooks", {}).values() for group in event_groups]
    commands = [str(handler.get("command", "")) for group in groups for handler in group["hooks"]]
    return list(dict.fromkeys(command for command in commands if _OWN_COMMAND.search(command)))


def find_obstacle(path: Path, program: Program) -> str | None:
    """Return a sentence if a setting prevents the coding agent from running installed hooks; None otherwise."""
    if program == "claude-code":
        _, settings = _read_settings(path)
        is_off = settings.get("disableAllHooks") is True
        return f"Hooks are off in {path}: `disableAllHooks` is true." if is_off else None
    config = path.with_name("config.toml")
    try:
        features = as_object(tomllib.loads(read_regular(config, max_bytes=MAX_SETTINGS_BYTES).decode()).get("features"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return f"{config} cannot be read: {error}."
    is_off = False in (features.get("hooks"), features.get("codex_hooks"))
    return f"Hooks are off in {config}: set `hooks = true` under `[features]`." if is_off else None


def _read_settings(path: Path) -> tuple[str | None, JsonObject]:
    """Return the text and the parsed content of a settings file, or None and {} if it does not exist.

    Raises InputError if the file cannot be read or its hooks have an unknown format.
    """
    try:
        text = read_regular(path, max_bytes=MAX_SETTINGS_BYTES).decode()
    except FileNotFoundError:
        return None, {}
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} cannot be read: {error}.",
            hint="Check the permissions and the encoding of the file; nothing was changed.",
        ) from None
    try:
        settings: object = json.loads(text) if text.strip() else JsonObject()
    except (ValueError, RecursionError) as error:
        hint = "Correct the file, or move it away and start the coding agent once; nothing was changed."
        raise InputError(f"{path} is not valid JSON: {error}.", hint=hint) from None
    if not _is_valid(settings):
        hint = "Write each event of `hooks` as a list of objects with a list `hooks`; nothing was changed."
        raise InputError(f"{path} has hooks in an unknown format.", hint=hint)
    return text, as_object(settings)


def _is_valid(settings: object) -> bool:
    hooks = as_object(settings).get("hooks", JsonObject())
    if not isinstance(settings, dict) or not isinstance(hooks, dict):
        return False
    by_event = as_object(cast("object", hooks)).values()
    groups = [as_object(group) for event_groups in by_event for group in as_list(event_groups)]
    handlers = [handler for group in groups for handler in as_list(group.get("hooks"))]
    are_lists = all(isinstance(one, list) for one in (*by_event, *(group.get("hooks") for group in groups)))
    return are_lists and all(isinstance(handler, dict) for handler in handlers)


def _remove_own(hooks: JsonObject) -> JsonObject:
    """Return the hooks by event without Newton's hooks, and without groups and events that become empty."""
    kept: JsonObject = {}
    for event, groups in hooks.items():
        left = [_without_own(group) for group in groups]
        remaining = [new for new, old in zip(left, groups, strict=True) if new["hooks"] or not old["hooks"]]
        if remaining or not groups:
            kept[event] = remaining
    return kept


def _without_own(group: JsonObject) -> JsonObject:
    handlers = [one for one in group["hooks"] if not _OWN_COMMAND.search(str(one.get("command", "")))]
    return {**group, "hooks": handlers}


def _to_change(path: Path, before: str | None, settings: JsonObject) -> SettingsChange:
    indent = re.search(r"\n([ \t]+)\S", before or "")
    unit = indent[1] if indent else 2
    after = json.dumps(settings, indent=unit, ensure_ascii=False) + "\n"
    return SettingsChange(path=path, before=before, after=after)
