"""Completion of the input of the chat: commands, names of frames, models and sessions, and paths after @."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

MAX_PATHS = 50


@dataclass(slots=True)
class ChatCompleter(Completer):
    """Completes the last word of an input. `names` are the possible arguments by command."""

    commands: Sequence[str]
    names: dict[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        text = document.text_before_cursor
        for word, start in complete_input(text, self.commands, self.names):
            yield Completion(word, start_position=start)


def complete_input(text: str, commands: Iterable[str], names: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, int]]:
    """Yield the words that can replace the end of a text, each with the negative length of what it replaces.

    >>> list(complete_input("/fr", ["/frame", "/forget"], {}))
    [('/frame', -3)]
    >>> list(complete_input("/frame d", ["/frame"], {"/frame": ["debug", "task"]}))
    [('debug', -1)]
    """
    if text.startswith("/") and " " not in text:
        yield from ((command, -len(text)) for command in commands if command.startswith(text))
        return
    word = text.rpartition(" ")[2].rpartition("\n")[2]
    if text.startswith("/"):
        possible = names.get(text.partition(" ")[0], ())
        yield from ((name, -len(word)) for name in possible if name.startswith(word) and name != word)
    if word.startswith("@"):
        yield from ((f"@{path}", -len(word)) for path in _list_paths(word[1:]))


def _list_paths(beginning: str) -> list[str]:
    """Return the paths that begin as given, folders with a slash at the end."""
    folder, _, name = beginning.rpartition("/")
    shown = f"{folder}/" if "/" in beginning else ""
    try:
        found = sorted(Path(shown or ".").expanduser().iterdir())
    except OSError:
        return []
    visible = [one for one in found if one.name.startswith(name) and (name.startswith(".") or one.name[0] != ".")]
    return [f"{shown}{one.name}{'/' if one.is_dir() else ''}" for one in visible[:MAX_PATHS]]
