"""`python -m bench languages`: the share of the evidence in contexts for the same 60 questions in ten languages."""

import json as json_format
import random
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import Parameter

from bench.dataset import MESSAGES_SUFFIX, QUESTIONS_SUFFIX
from bench.environment import AtLeastOne
from bench.recall import run_benchmark as run_recall
from newton.runtime.cli.options import JsonOption
from newton.text.languages import ENGLISH, LANGUAGES

DEFAULT_BUDGETS = (100, 200, 500)
SESSION_MESSAGES = 10
FIRST_DAY = datetime(2026, 3, 1, 10, tzinfo=UTC)
QUESTIONS = Path(__file__).parent / "language_questions"
SEED = 7  # of the order of the messages, which is the same in each language


class TranslatedQuestion(NamedTuple):
    """A question, the message that answers it, and a message with the same words that does not."""

    question: str
    evidence: str
    distractor: str


async def run_benchmark(
    *,
    budget: Annotated[list[int] | None, AtLeastOne, Parameter(negative=())] = None,
    across: Annotated[bool, Parameter(negative=())] = False,
    json: JsonOption = False,
) -> None:
    """Measure how much of the evidence for the same questions contexts contain in ten languages.

    It uses a temporary database. Each language has an agent of its own with 60 messages that answer a question and 60
    with the same words that do not.

    Example: python -m bench languages --budget 500 --json

    Parameters
    ----------
    budget:
        Maximum tokens of a context; repeatable. Default: 100, 200 and 500.
    across:
        Ask in each language about the messages in English.
    """
    with tempfile.TemporaryDirectory() as folder:
        for code in LANGUAGES:
            _write_conversation(Path(folder), code, across=across)
        await run_recall(Path(folder), budget=budget or list(DEFAULT_BUDGETS), json=json)


def load_questions(code: str) -> list[TranslatedQuestion]:
    """Return the questions in a language, in the same order in each."""
    text = (QUESTIONS / f"{code}.tsv").read_text(encoding="utf-8")
    return [TranslatedQuestion(*line.split("\t")) for line in text.splitlines()]


def _write_conversation(folder: Path, code: str, *, across: bool) -> None:
    asked = load_questions(code)
    messages = _shuffle(load_questions(ENGLISH) if across else asked)
    lines = [
        {
            "type": "message",
            "ref": ref,
            "session": f"session-{n // SESSION_MESSAGES}",
            "role": "user",
            "content": content,
            "at": (FIRST_DAY + timedelta(days=n // SESSION_MESSAGES, minutes=n)).isoformat(),
        }
        for n, (ref, content) in enumerate(messages)
    ]
    questions = [
        {"id": f"q{n}", "text": one.question, "type": code, "gold": [f"evidence-{n}"]} for n, one in enumerate(asked)
    ]
    for suffix, rows in ((MESSAGES_SUFFIX, lines), (QUESTIONS_SUFFIX, questions)):
        text = "".join(f"{json_format.dumps(row, ensure_ascii=False)}\n" for row in rows)
        (folder / f"{code}{suffix}").write_text(text, encoding="utf-8")


def _shuffle(questions: Sequence[TranslatedQuestion]) -> list[tuple[str, str]]:
    messages = [(f"evidence-{n}", one.evidence) for n, one in enumerate(questions)]
    messages += [(f"distractor-{n}", one.distractor) for n, one in enumerate(questions)]
    random.Random(SEED).shuffle(messages)
    return messages
