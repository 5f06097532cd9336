"""`newton …`: parses words, calls what wiring built, prints the answer. Nothing is loaded before it is needed."""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

from cyclopts import App, CycloptsError

from newton import __version__
from newton.errors import NewtonError
from newton.runtime.cli.failing import print_error, to_input_error
from newton.runtime.statuses import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, get_error_status

HELP_FLAGS = {"--help", "-h", "--version"}

# Where each command lives and what it does in a line; its module is loaded when it is called.
TOP_LEVEL_COMMANDS = {
    "chat": ("newton.runtime.cli.chat:chat", "Talk. What is said is remembered."),
    "ask": ("newton.runtime.cli.ask:ask", "Ask one question and get one answer."),
    "serve": ("newton.runtime.cli.serve:serve", "Serve agents over HTTP until told to stop."),
    "mcp": ("newton.runtime.cli.mcp:mcp", "Speak MCP with a program that starts it."),
    "context": ("newton.runtime.cli.ask:context", "Show the context a model would be given for an input."),
    "bundles": ("newton.runtime.cli.bundles:bundles", "List the contexts that were made."),
    "why": ("newton.runtime.cli.bundles:why", "Explain a context, or one memory of it."),
    "replay": ("newton.runtime.cli.bundles:replay", "Make a context once more, and compare."),
    "diff": ("newton.runtime.cli.bundles:diff", "Show what two contexts do not have in common."),
    "remember": ("newton.runtime.cli.memories:remember", "Remember a fact or an episode."),
    "recall": ("newton.runtime.cli.memories:recall", "Show the memories most likely meant."),
    "import": ("newton.runtime.cli.importing:import_", "Import memories of every kind from NDJSON."),
    "export": ("newton.runtime.cli.exporting:export", "Write everything that an agent is to a file."),
    "ingest": ("newton.runtime.cli.ingest:ingest", "Take in documents: Markdown, text, HTML, PDF."),
    "show": ("newton.runtime.cli.curating:show", "Show one memory in full."),
    "history": ("newton.runtime.cli.curating:history", "Show every change of a memory's state, and why."),
    "confirm": ("newton.runtime.cli.curating:confirm", "Say that a fact is so."),
    "supersede": ("newton.runtime.cli.curating:supersede", "Put a new statement in the place of a fact."),
    "retract": ("newton.runtime.cli.curating:retract", "Say that a fact was never true."),
    "forget": ("newton.runtime.cli.curating:forget", "Forget memories for good."),
    "erase": ("newton.runtime.cli.erase:erase", "Take away all that is told of somebody, or an agent."),
    "decide": ("newton.runtime.cli.decide:decide", "Record a decision, with what speaks for and against it."),
    "think": ("newton.runtime.cli.decisions:think", "Add a thought to an open decision."),
    "done": ("newton.runtime.cli.decisions:done", "Say that what was decided is done."),
    "review": ("newton.runtime.cli.decisions:review", "Say what became of a decision."),
    "entities": ("newton.runtime.cli.entities:entities", "Show who and what there is, and how it belongs together."),
    "calibration": ("newton.runtime.cli.calibration:calibration", "Show how far stated confidence can be trusted."),
    "growth": ("newton.runtime.cli.growth:growth", "Report how the agent has grown, week by week."),
    "metrics": ("newton.runtime.cli.metrics:metrics", "Show how well contexts serve, beside what is aimed at."),
    "working": ("newton.runtime.cli.working:working", "Show what a session has at hand, as a context."),
    "frames": ("newton.runtime.cli.frames:frames", "List the frames, or show one."),
    "reembed": ("newton.runtime.cli.reembed:reembed", "Let another embedding model take over."),
    "backup": ("newton.runtime.cli.backing:backup", "Copy everything of every agent into a folder."),
    "restore": ("newton.runtime.cli.backing:restore", "Put a backup in the place of the data."),
    "doctor": ("newton.runtime.cli.doctor:doctor", "Say what works, what does not, and what to do."),
}
PROCEDURE_COMMANDS = {
    "list": ("newton.runtime.cli.procedures:list_", "List the procedures with their records."),
    "show": ("newton.runtime.cli.procedures:show_", "Show a procedure with its three bands."),
    "used": ("newton.runtime.cli.procedures:used", "Say that a procedure was followed."),
    "judged": ("newton.runtime.cli.procedures:judged", "Say how its last use went."),
}
PROFILE_COMMANDS = {
    "list": ("newton.runtime.cli.profiles:list_", "List the ways to score memories."),
    "show": ("newton.runtime.cli.profiles:show_", "Show how a profile scores."),
    "fit": ("newton.runtime.cli.profiles:fit", "Learn weights from what was used, and compare them."),
}
JOB_COMMANDS = {
    "list": ("newton.runtime.cli.jobs:list_", "List the jobs, with what their last runs did and why."),
    "run": ("newton.runtime.cli.jobs:run", "Run a job now."),
    "dead": ("newton.runtime.cli.jobs:dead", "List the runs that were given up."),
    "retry": ("newton.runtime.cli.jobs:retry", "Have what was given up tried again."),
}
CENSOR_COMMANDS = {
    "list": ("newton.runtime.cli.censors:list_", "List the censors with their records."),
    "add": ("newton.runtime.cli.censors:add", "Forbid something."),
    "check": ("newton.runtime.cli.censors:check", "Ask the censors about a text."),
    "approve": ("newton.runtime.cli.censors:approve", "Put a proposed censor in force."),
    "wrong": ("newton.runtime.cli.censors:wrong", "Say that a censor was met wrongly."),
    "retire": ("newton.runtime.cli.censors:retire", "Take a censor out of force."),
}
DECISION_COMMANDS = {
    "list": ("newton.runtime.cli.decisions:list_", "List the decisions, or those that are due."),
    "show": ("newton.runtime.cli.decisions:show_", "Show a decision with all that belongs to it."),
    "amend": ("newton.runtime.cli.decisions:amend", "Add to a decision."),
    "link": ("newton.runtime.cli.decisions:link", "Say how two decisions belong together."),
    "erase": ("newton.runtime.cli.decisions:erase", "Take the words of a decision away for good."),
}
ATTRIBUTE_COMMANDS = {
    "list": ("newton.runtime.cli.attributes:list_", "List the attributes that facts tell of."),
    "single": ("newton.runtime.cli.attributes:single", "Say that one has one value at a time."),
    "many": ("newton.runtime.cli.attributes:many", "Say that one may have many values."),
}
GUARDRAIL_COMMANDS = {
    "list": ("newton.runtime.cli.guard:list_", "List the guardrails."),
    "add": ("newton.runtime.cli.guard:add", "Add a guardrail, or put another in its place."),
    "check": ("newton.runtime.cli.guard:check", "Ask the guardrails about a choice."),
    "retire": ("newton.runtime.cli.guard:retire", "Take a guardrail out of force."),
    "restore": ("newton.runtime.cli.guard:restore", "Put the guardrail of a file back in force."),
}
IDENTITY_COMMANDS = {
    "show": ("newton.runtime.cli.identity:show_", "Show what holds always, and what of it fits."),
    "add": ("newton.runtime.cli.identity:add", "Add a line."),
    "change": ("newton.runtime.cli.identity:change", "Put other words in the place of a line."),
    "remove": ("newton.runtime.cli.identity:remove", "Take a line out."),
    "history": ("newton.runtime.cli.identity:history", "Show every version, and what it changed."),
    "rollback": ("newton.runtime.cli.identity:rollback", "Make the identity what it was in a version."),
    "proposals": ("newton.runtime.cli.identity:proposals", "List what waits for your yes."),
    "accept": ("newton.runtime.cli.identity:accept", "Say yes to a proposal."),
    "reject": ("newton.runtime.cli.identity:reject", "Say no to a proposal."),
    "erase": ("newton.runtime.cli.identity:erase", "Take the words of a line away for good."),
}
TASK_COMMANDS = {
    "list": ("newton.runtime.cli.tasks:list_", "Draw the tasks of a session."),
    "path": ("newton.runtime.cli.tasks:path", "Say what is being done, from the root goal on."),
    "push": ("newton.runtime.cli.tasks:push", "Begin a task within the current one."),
    "pop": ("newton.runtime.cli.tasks:pop", "End the current task with its result."),
    "block": ("newton.runtime.cli.tasks:block", "Set the current task aside."),
    "resume": ("newton.runtime.cli.tasks:resume", "Go on with a blocked task."),
    "fail": ("newton.runtime.cli.tasks:fail", "End the current task as a dead end, or replan."),
}
SESSION_COMMANDS = {
    "list": ("newton.runtime.cli.sessions:list_", "List the conversations: last use, lines, first words, branches."),
    "log": ("newton.runtime.cli.sessions:log", "Show every line of a conversation."),
    "view": ("newton.runtime.cli.sessions:view", "Show a conversation as a model would be sent it now."),
    "compact": ("newton.runtime.cli.sessions:compact", "Make a conversation shorter now, where that is due."),
    "entries": ("newton.runtime.cli.sessions:entries", "List what was made shorter, and how."),
    "restore": ("newton.runtime.cli.sessions:restore", "Bring back what an entry stands for."),
    "checkpoint": ("newton.runtime.cli.sessions:checkpoint", "Name the place where a conversation is, or list them."),
    "branch": ("newton.runtime.cli.sessions:branch", "Begin a conversation that goes on from another."),
    "inject": ("newton.runtime.cli.sessions:inject", "Show lines of one conversation in another."),
    "eject": ("newton.runtime.cli.sessions:eject", "Take injected lines out again, or list them."),
    "stats": ("newton.runtime.cli.sessions:stats", "Show how compactions went, by strategy."),
}
AGENT_COMMANDS = {
    "list": ("newton.runtime.cli.agents:list_", "List the agents of this database."),
    "begin": ("newton.runtime.cli.agents:begin", "Begin an agent, whom programs may name from then on."),
}
TOKEN_COMMANDS = {
    "create": ("newton.runtime.cli.tokens:create", "Make a token, and show it this once."),
    "list": ("newton.runtime.cli.tokens:list_", "List the tokens of an agent."),
    "revoke": ("newton.runtime.cli.tokens:revoke", "End a token at once."),
}
BENCH_COMMANDS = {
    "recall": ("newton.bench.recall:command", "How much of the evidence reaches the context."),
    "context": ("newton.bench.context:command", "How long a context takes, beside the bare searches."),
    "lifecycle": ("newton.bench.lifecycle:command", "How long the daily job takes."),
    "door": ("newton.bench.door:command", "What HTTP adds to a context, and what one daemon bears."),
    "decisions": ("newton.bench.decisions:command", "What guardrails cost, and the figures of a ledger."),
    "soak": ("newton.bench.soak:command", "A day of the daemon's jobs in minutes."),
}


# What a group does when no command of it is named.
DEFAULT_COMMANDS = {
    "agents": "list",
    "decisions": "list",
    "identity": "show",
    "jobs": "list",
    "profiles": "list",
    "sessions": "list",
    "tasks": "list",
    "tokens": "list",
}

COMMAND_GROUPS = (
    ("identity", "Who the agent is, and what you want always.", IDENTITY_COMMANDS),
    ("procedures", "How things are done.", PROCEDURE_COMMANDS),
    ("censors", "What must not be done.", CENSOR_COMMANDS),
    ("decisions", "What was decided, and what became of it.", DECISION_COMMANDS),
    ("attributes", "What facts tell of their subjects.", ATTRIBUTE_COMMANDS),
    ("guard", "What must hold of a decision.", GUARDRAIL_COMMANDS),
    ("profiles", "How memories are scored.", PROFILE_COMMANDS),
    ("sessions", "Conversations, and what models are shown of them.", SESSION_COMMANDS),
    ("tasks", "What a session is at: goals within goals.", TASK_COMMANDS),
    ("jobs", "What is done by itself, and when.", JOB_COMMANDS),
    ("agents", "Whose minds there are.", AGENT_COMMANDS),
    ("tokens", "Who may speak to the daemon.", TOKEN_COMMANDS),
    ("bench", "Measure Newton.", BENCH_COMMANDS),
)


def build_app(argv: Sequence[str] = ()) -> App:
    """All commands. What one does in a line stands here; of the one asked for, its own words are read instead."""
    app = App(
        name="newton",
        version=__version__,
        help="A mind your agent can keep: it remembers, and gives each input the context that fits.",
    )
    for name, does, commands in COMMAND_GROUPS:
        group = App(name=name, help=does)
        _register(group, commands, argv[1:2] if argv[:1] == [name] else ())
        app.command(group)
    _register(app, TOP_LEVEL_COMMANDS, argv[:1])
    return app


def expand_default_command(argv: list[str]) -> list[str]:
    """`newton decisions --due` is short for `newton decisions list --due`."""
    name = "".join(argv[:1])
    short = name in DEFAULT_COMMANDS and (len(argv) == 1 or (argv[1].startswith("-") and argv[1] not in HELP_FLAGS))
    return [name, DEFAULT_COMMANDS[name], *argv[1:]] if short else argv


def _register(app: App, commands: Mapping[str, tuple[str, str]], called: Sequence[str]) -> None:
    for name, (where, does) in commands.items():
        app.command(where, name=name, help=None if name in called else does)


def main() -> NoReturn:
    """Runs the command line and exits: 0 done, 1 something outside failed, 2 refused, 130 interrupted."""
    code = run_command_line(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # its reader has left, or it is closed already
            stream.flush()
    # Everything is closed by now. A native thread of the embedder that a Ctrl-C left at work would crash in the
    # interpreter's teardown, which takes its memory away.
    os._exit(code)


def run_command_line(argv: list[str]) -> int:
    """The exit status of one command line. Every named failure ends in one message on stderr, never in a trace."""
    as_json = "--json" in argv
    try:
        argv = expand_default_command(argv)
        code = build_app(argv)(
            argv, exit_on_error=False, print_error=False, help_on_error=False, result_action="return_value"
        )
    except CycloptsError as error:
        return _report_error(to_input_error(error), as_json=as_json)
    except NewtonError as error:
        return _report_error(error, as_json=as_json)
    except (KeyboardInterrupt, EOFError):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has left; there is nobody to complain to
        return EXIT_FAILED
    return code if isinstance(code, int) else EXIT_OK


def _report_error(error: NewtonError, *, as_json: bool) -> int:
    status = get_error_status(error.code).exit_code
    print_error(error, status, as_json=as_json)
    return status
