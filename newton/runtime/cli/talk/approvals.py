"""The question in the terminal whether the model may call a tool of a server."""

import json
import sys
import termios
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from newton.agent.actions.external_tools import ApprovalAnswer, ApprovalRequest
from newton.agent.actions.outbound_guard import EXACT_MARK, LINK_SERVER
from newton.memory.representations import one_line
from newton.runtime.cli.formatting import print_notice
from newton.runtime.cli.printing import say
from newton.runtime.cli.status_line import end_line, print_status

LineAsker = Callable[[str], Awaitable[str]]

ANSWER_WORDS: Mapping[ApprovalAnswer, Sequence[str]] = {
    "once": ("o", "once", "y", "yes"),
    "session": ("s", "session"),
    "always": ("a", "always"),
    "never": ("v", "never"),
    "refused": ("", "n", "no"),
}
ANSWERS: Mapping[str, ApprovalAnswer] = {word: answer for answer, words in ANSWER_WORDS.items() for word in words}
MAX_SHORT_CHARS, MAX_SHORT_LINES = 1_000, 12  # of arguments that a terminal shows together with the tool
QUESTION = "Allow? [o]nce, for this [s]ession, [a]lways, ne[v]er, [n]o (Enter): "


async def ask_approval(request: ApprovalRequest, ask: LineAsker) -> ApprovalAnswer:
    """Show a call and ask whether it may be made. The end of the input is a refusal.

    What was typed before the question is discarded, so that it cannot be the answer.
    """
    print_status("")
    end_line()
    say(format_request(request), to_stderr=True)  # the arguments exactly as they are
    with suppress(termios.error, ValueError):
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
    while True:
        try:
            answer = (await ask(QUESTION)).strip().lower()
        except EOFError:
            return "refused"
        if answer in ANSWERS:
            return ANSWERS[answer]
        print_notice("Answer with o, s, a, v or n.")


def format_request(request: ApprovalRequest) -> str:
    """Return a tool call as text to show: the tool, all arguments, what the model expects, and the warnings."""
    tool = request.tool
    kind = (
        "read with" if tool.is_read else "act with" if not tool.is_destructive else "act, perhaps destructively, with"
    )
    # one line each, and the tool named again under long arguments: no text of a model can look like another question
    arguments = json.dumps(json.loads(request.arguments), ensure_ascii=False, indent=2)
    is_long = len(arguments) > MAX_SHORT_CHARS or arguments.count("\n") > MAX_SHORT_LINES
    return "\n".join(
        [
            f"The reply has a link to {tool.name.partition(EXACT_MARK)[0]}:"
            if tool.server == LINK_SERVER
            else f"The model wants to {kind} {tool.name} of the server {tool.server}:",
            *(f"  {line}" for line in arguments.splitlines()),
            *([f"  It expects: {one_line(request.expected)}"] if request.expected else []),
            *([f"  {request.reason}"] if request.reason else []),
            *(f"  Warning: {one_line(warning)}" for warning in request.warnings),
            *([f"  These are arguments of {tool.name} of the server {tool.server}."] if is_long else []),
        ]
    )
