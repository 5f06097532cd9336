"""Recognition, by patterns, of requests that programs send on their own (UI tasks), such as one for a chat's title."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated

import re2
from pydantic import AfterValidator, Field

from newton.content.package_data import data_folder
from newton.content.yaml_models import NamedModel, StrictModel, read_folder, validate_model
from newton.content.yaml_source import load_yaml

EXAMINED_CHARS = 6_000  # of the beginning and of the end of a message
# The signs of a program, less those of a person, that a request needs whose words a pattern matches.
MIN_LIKELY_SIGNS, MIN_POSSIBLE_SIGNS = 1, 2
MAX_PERSON_SIGNS = 3
MAX_SYSTEM_CHARS, SYSTEM_REACH = 3_000, 400  # of a system message that is the instruction of a UI task
CHAT = (
    r"(?:(?:the|this|that|our|a|an|each|following|given|above|below)\s+)*"
    r"(?:(?:short|previous|entire|whole|ongoing|current|full|users?'?s?|recent|partial|complete)\s+)*"
    r"(?:chat|conversation|dialog(?:ue)?|discussion|thread|exchange|messages|message history|transcript)\b"
    r"(?:\s+(?:history|log|transcript|so far|below|above))?"
)
COUNT = r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty)"
_OPTIONS = re2.Options()
_OPTIONS.case_sensitive, _OPTIONS.log_errors = False, False

_OUR_CHAT = re.compile(r"\bour (chat|conversation|discussion|dialog)", re.IGNORECASE)  # programs say this too
_QUOTED_WORDS = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|`[^`\n]*`")
_SPEAKER = r"^\W{0,3}(?:user|human|assistant|ai|bot|model|system|nutzer|utilisateur|usuario|用户|助手)\W{0,3}:"
_SPEAKER_PATTERN = re.compile(_SPEAKER, re.IGNORECASE | re.MULTILINE)
_QUOTED_LINE = re.compile(f"{_SPEAKER}.*$", re.IGNORECASE | re.MULTILINE)
_QUOTED_BLOCK = re.compile(
    r"<(chat|chat_history|conversation|messages?|history|transcript|dialog(?:ue)?|context|text|input|user_message|query"
    r"|draft)\b[^>\n]*>.*?</\1>|```.*?```",
    re.IGNORECASE | re.DOTALL,
)


def _compile(pattern: str) -> "re2.Pattern":
    return re2.compile(f"(?m){pattern.replace('{chat}', CHAT).replace('{count}', COUNT)}", _OPTIONS)


def _check_pattern(pattern: str) -> str:
    try:
        _compile(pattern)
    except re2.error as error:
        raise ValueError(f"is not a pattern of RE2: {error}") from None
    return pattern


Pattern = Annotated[str, Field(min_length=1, max_length=1_000), AfterValidator(_check_pattern)]


class UiTask(NamedModel):
    """One kind of request that programs send on their own, with the patterns by which it is recognized.

    In a pattern (RE2, case-insensitive), `{chat}` stands for any word for a conversation, and `{count}` for a number.
    """

    description: str = Field(min_length=1, max_length=500)
    certain: tuple[Pattern, ...] = Field(
        (), description="Patterns whose match alone shows that a program wrote the request."
    )
    likely: tuple[Pattern, ...] = Field(
        (), description="Patterns whose match counts only with one more sign that a program wrote the request."
    )
    possible: tuple[Pattern, ...] = Field(
        (), description="Patterns whose match counts only with two more signs that a program wrote the request."
    )

    @cached_property
    def certain_patterns(self) -> tuple["re2.Pattern", ...]:
        return tuple(_compile(one) for one in self.certain)

    @cached_property
    def worded_patterns(self) -> tuple[tuple["re2.Pattern", int], ...]:
        """Return the `likely` and `possible` patterns, each with the number of further signs that a match needs."""
        likely = ((_compile(one), MIN_LIKELY_SIGNS) for one in self.likely)
        return (*likely, *((_compile(one), MIN_POSSIBLE_SIGNS) for one in self.possible))


class RequestSigns(StrictModel):
    """Patterns that show whether a program or a person wrote a request. Each group of `program` counts at most once."""

    program: dict[str, tuple[Pattern, ...]]
    person: tuple[Pattern, ...]

    @cached_property
    def program_patterns(self) -> tuple["re2.Pattern", ...]:
        return tuple(_compile("|".join(f"(?:{one})" for one in group)) for group in self.program.values())

    @cached_property
    def person_pattern(self) -> "re2.Pattern":
        return _compile("|".join(f"(?:{one})" for one in self.person))


@cache
def _load_signs() -> RequestSigns:
    return validate_model(load_yaml(Path(__file__).with_name("request_signs.yaml")), RequestSigns)


def load_ui_tasks(extra: Path | None = None) -> tuple[UiTask, ...]:
    """Load the UI tasks that ship with Newton; one in the folder `extra` replaces the one of the same name.

    Raises ConfigError for the first mistake in a file.
    """
    own = {} if extra is None else read_folder(extra.expanduser(), UiTask)
    return tuple({**_load_shipped_ui_tasks(), **own}.values())


@cache
def _load_shipped_ui_tasks() -> Mapping[str, UiTask]:
    return read_folder(data_folder("ui_tasks"), UiTask)


def find_ui_task(tasks: Iterable[UiTask], user: str, *, system: str = "", earlier: Sequence[str] = ()) -> UiTask | None:
    """Return the kind of UI task that a request is; None if a person seems to have written it. Pure.

    `user` is the last message of the user, `system` the system message, and `earlier` are the messages before `user`.
    The system message is examined too, because some programs put the instruction there and the conversation into
    `user`.
    """
    kinds, words = list(tasks), _examine(user)
    certain = next((one for one in kinds if any(pattern.search(words) for pattern in one.certain_patterns)), None)
    if found := certain or _find_likely(kinds, words, reach=EXAMINED_CHARS, bonus=0):
        return found
    if earlier or len(system) > MAX_SYSTEM_CHARS:  # instructions for a whole conversation
        return None
    is_transcript = _SPEAKER_PATTERN.search(user) is not None
    return _find_likely(kinds, system, reach=SYSTEM_REACH, bonus=1 if is_transcript else 0)


def _find_likely(tasks: Sequence[UiTask], text: str, *, reach: int, bonus: int) -> UiTask | None:
    """Return the kind of UI task for which the first `reach` characters of a text ask, if a program seems to have
    written it.

    `bonus` is added to the number of signs of a program that are found in the text.
    """
    instruction = _QUOTED_LINE.sub("", _QUOTED_BLOCK.sub("", text))
    asked = instruction[:reach]
    matches = [
        (match.span()[0], needed, task)
        for task in tasks
        for pattern, needed in task.worded_patterns
        if (match := pattern.search(asked))
    ]
    if not matches:
        return None
    known = _load_signs()
    signs = bonus + sum(1 for pattern in known.program_patterns if pattern.search(text))
    signs += len(_SPEAKER_PATTERN.findall(text)) > 1
    patterns = [pattern for task in tasks for pattern, _ in task.worded_patterns]
    signs -= _count_person_signs(instruction, [*patterns, *known.program_patterns], known)
    matches = [match for match in matches if signs >= match[1]]
    return min(matches, key=lambda match: match[0])[2] if matches else None  # a request begins with what it asks for


def _count_person_signs(instruction: str, patterns: Sequence["re2.Pattern"], known: RequestSigns) -> int:
    """Count the signs of a person in the lines that one of `patterns` matches, up to MAX_PERSON_SIGNS.

    Other lines are not counted, because they may quote what a person said in the conversation.
    """
    lines = [line for line in instruction.splitlines() if any(pattern.search(line) for pattern in patterns)]
    text = _OUR_CHAT.sub("", _QUOTED_WORDS.sub("", "\n".join(lines)))
    return min(len(known.person_pattern.findall(text)), MAX_PERSON_SIGNS)


def _examine(text: str) -> str:
    return text if len(text) <= 2 * EXAMINED_CHARS else f"{text[:EXAMINED_CHARS]}\n{text[-EXAMINED_CHARS:]}"
