"""`newton …`: parses words, calls what wiring built, prints the answer. Nothing is loaded before it is needed."""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

from cyclopts import App, CycloptsError

from newton import __version__
from newton.errors import NewtonError
from newton.runtime.cli.errors import print_error, to_input_error
from newton.runtime.error_status import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, get_error_status

HELP_FLAGS = {"--help", "-h", "--version"}

# Where each command lives and what it does in a line; its module is loaded when it is called.
TOP_LEVEL_COMMANDS = {
    "chat": ("newton.runtime.cli.talk.chat:chat", "Talk. What is said is remembered."),
    "ask": ("newton.runtime.cli.talk.ask:ask", "Ask one question and get one answer."),
    "serve": ("newton.runtime.cli.operations.serve:serve_http", "Serve agents over HTTP until told to stop."),
    "mcp": ("newton.runtime.cli.operations.mcp:serve_mcp", "Speak MCP with a program that starts it."),
    "context": ("newton.runtime.cli.talk.ask:show_context", "Show the context a model would be given for an input."),
    "bundles": ("newton.runtime.cli.talk.bundles:list_bundles", "List the contexts that were made."),
    "why": ("newton.runtime.cli.talk.bundles:explain_bundle", "Explain a context, or one memory of it."),
    "replay": ("newton.runtime.cli.talk.bundles:replay_bundle", "Make a context once more, and compare."),
    "diff": ("newton.runtime.cli.talk.bundles:diff_bundles", "Show what two contexts do not have in common."),
    "remember": ("newton.runtime.cli.memory.memories:remember", "Remember a fact or an episode."),
    "recall": ("newton.runtime.cli.memory.memories:recall", "Show the memories most likely meant."),
    "import": ("newton.runtime.cli.memory.import_:import_file", "Import memories of every kind from NDJSON."),
    "export": ("newton.runtime.cli.memory.export:export_agent", "Write everything that an agent is to a file."),
    "ingest": ("newton.runtime.cli.memory.ingest:ingest_documents", "Take in documents: Markdown, text, HTML, PDF."),
    "show": ("newton.runtime.cli.memory.curation:show_memory", "Show one memory in full."),
    "history": ("newton.runtime.cli.memory.curation:show_history", "Show every change of a memory's state, and why."),
    "confirm": ("newton.runtime.cli.memory.curation:confirm_fact", "Say that a fact is so."),
    "supersede": ("newton.runtime.cli.memory.curation:supersede_fact", "Put a new statement in the place of a fact."),
    "retract": ("newton.runtime.cli.memory.curation:retract_fact", "Say that a fact was never true."),
    "forget": ("newton.runtime.cli.memory.curation:forget_memories", "Forget memories for good."),
    "erase": (
        "newton.runtime.cli.memory.erase:erase_subject_or_agent",
        "Take away all that is told of somebody, or an agent.",
    ),
    "decide": (
        "newton.runtime.cli.decisions.decide:record_decision",
        "Record a decision, with what speaks for and against it.",
    ),
    "think": ("newton.runtime.cli.decisions.records:add_thought", "Add a thought to an open decision."),
    "done": ("newton.runtime.cli.decisions.records:mark_done", "Say that what was decided is done."),
    "review": ("newton.runtime.cli.decisions.records:review_decision", "Say what became of a decision."),
    "entities": (
        "newton.runtime.cli.memory.entities:show_entities",
        "Show who and what there is, and how it belongs together.",
    ),
    "calibration": (
        "newton.runtime.cli.judgement.calibration:show_calibration",
        "Show how far stated confidence can be trusted.",
    ),
    "growth": ("newton.runtime.cli.judgement.growth:report_growth", "Report how the agent has grown, week by week."),
    "metrics": (
        "newton.runtime.cli.judgement.metrics:show_metrics",
        "Show how well contexts serve, beside what is aimed at.",
    ),
    "working": (
        "newton.runtime.cli.conversations.working_memory:show_working_memory",
        "Show what a session has at hand, as a context.",
    ),
    "frames": ("newton.runtime.cli.talk.frames:show_frames", "List the frames, or show one."),
    "reembed": ("newton.runtime.cli.operations.reembed:reembed_memories", "Let another embedding model take over."),
    "backup": ("newton.runtime.cli.operations.backup:create_backup", "Copy everything of every agent into a folder."),
    "restore": ("newton.runtime.cli.operations.backup:restore_backup", "Put a backup in the place of the data."),
    "doctor": ("newton.runtime.cli.operations.doctor:run_doctor", "Say what works, what does not, and what to do."),
}
PROCEDURE_COMMANDS = {
    "list": ("newton.runtime.cli.memory.procedures:list_procedures", "List the procedures with their records."),
    "show": ("newton.runtime.cli.memory.procedures:show_procedure", "Show a procedure with its three bands."),
    "used": ("newton.runtime.cli.memory.procedures:record_use", "Say that a procedure was followed."),
    "judged": ("newton.runtime.cli.memory.procedures:record_outcome", "Say how its last use went."),
}
PROFILE_COMMANDS = {
    "list": ("newton.runtime.cli.talk.profiles:list_profiles", "List the ways to score memories."),
    "show": ("newton.runtime.cli.talk.profiles:show_profile", "Show how a profile scores."),
    "fit": ("newton.runtime.cli.talk.profiles:fit_profile", "Learn weights from what was used, and compare them."),
}
JOB_COMMANDS = {
    "list": ("newton.runtime.cli.operations.jobs:list_jobs", "List the jobs, with what their last runs did and why."),
    "run": ("newton.runtime.cli.operations.jobs:run_job", "Run a job now."),
    "dead": ("newton.runtime.cli.operations.jobs:list_dead_runs", "List the runs that were given up."),
    "retry": ("newton.runtime.cli.operations.jobs:retry_dead_runs", "Have what was given up tried again."),
}
CENSOR_COMMANDS = {
    "list": ("newton.runtime.cli.judgement.censors:list_censors", "List the censors with their records."),
    "add": ("newton.runtime.cli.judgement.censors:add_censor", "Forbid something."),
    "check": ("newton.runtime.cli.judgement.censors:check_text", "Ask the censors about a text."),
    "approve": ("newton.runtime.cli.judgement.censors:approve_censor", "Put a proposed censor in force."),
    "wrong": ("newton.runtime.cli.judgement.censors:report_false_positive", "Say that a censor was met wrongly."),
    "retire": ("newton.runtime.cli.judgement.censors:retire_censor", "Take a censor out of force."),
}
DECISION_COMMANDS = {
    "list": ("newton.runtime.cli.decisions.records:list_decisions", "List the decisions, or those that are due."),
    "show": ("newton.runtime.cli.decisions.records:show_decision", "Show a decision with all that belongs to it."),
    "amend": ("newton.runtime.cli.decisions.records:amend_decision", "Add to a decision."),
    "link": ("newton.runtime.cli.decisions.records:link_decisions", "Say how two decisions belong together."),
    "erase": ("newton.runtime.cli.decisions.records:erase_decision", "Take the words of a decision away for good."),
}
ATTRIBUTE_COMMANDS = {
    "list": ("newton.runtime.cli.memory.attributes:list_attributes", "List the attributes that facts tell of."),
    "single": ("newton.runtime.cli.memory.attributes:set_single_valued", "Say that one has one value at a time."),
    "many": ("newton.runtime.cli.memory.attributes:set_multi_valued", "Say that one may have many values."),
}
GUARDRAIL_COMMANDS = {
    "list": ("newton.runtime.cli.judgement.guard:list_guardrails", "List the guardrails."),
    "add": ("newton.runtime.cli.judgement.guard:add_guardrail", "Add a guardrail, or put another in its place."),
    "check": ("newton.runtime.cli.judgement.guard:check_guardrails", "Ask the guardrails about a choice."),
    "retire": ("newton.runtime.cli.judgement.guard:retire_guardrail", "Take a guardrail out of force."),
    "restore": ("newton.runtime.cli.judgement.guard:restore_guardrail", "Put the guardrail of a file back in force."),
}
IDENTITY_COMMANDS = {
    "show": ("newton.runtime.cli.memory.identity:show_identity", "Show what holds always, and what of it fits."),
    "add": ("newton.runtime.cli.memory.identity:add_line", "Add a line."),
    "change": ("newton.runtime.cli.memory.identity:change_line", "Put other words in the place of a line."),
    "remove": ("newton.runtime.cli.memory.identity:remove_line", "Take a line out."),
    "history": ("newton.runtime.cli.memory.identity:show_versions", "Show every version, and what it changed."),
    "rollback": ("newton.runtime.cli.memory.identity:roll_back", "Make the identity what it was in a version."),
    "proposals": ("newton.runtime.cli.memory.identity:list_proposals", "List what waits for your yes."),
    "accept": ("newton.runtime.cli.memory.identity:accept_proposal", "Say yes to a proposal."),
    "reject": ("newton.runtime.cli.memory.identity:reject_proposal", "Say no to a proposal."),
    "erase": ("newton.runtime.cli.memory.identity:erase_line", "Take the words of a line away for good."),
}
TASK_COMMANDS = {
    "list": ("newton.runtime.cli.conversations.tasks:list_tasks", "Draw the tasks of a session."),
    "path": ("newton.runtime.cli.conversations.tasks:show_path", "Say what is being done, from the root goal on."),
    "push": ("newton.runtime.cli.conversations.tasks:push_task", "Begin a task within the current one."),
    "pop": ("newton.runtime.cli.conversations.tasks:pop_task", "End the current task with its result."),
    "block": ("newton.runtime.cli.conversations.tasks:block_task", "Set the current task aside."),
    "resume": ("newton.runtime.cli.conversations.tasks:resume_task", "Go on with a blocked task."),
    "fail": ("newton.runtime.cli.conversations.tasks:fail_task", "End the current task as a dead end, or replan."),
}
SESSION_COMMANDS = {
    "list": (
        "newton.runtime.cli.conversations.sessions:list_sessions",
        "List the conversations: last use, lines, first words, branches.",
    ),
    "log": ("newton.runtime.cli.conversations.sessions:show_log", "Show every line of a conversation."),
    "view": (
        "newton.runtime.cli.conversations.sessions:show_view",
        "Show a conversation as a model would be sent it now.",
    ),
    "compact": (
        "newton.runtime.cli.conversations.sessions:compact_session",
        "Make a conversation shorter now, where that is due.",
    ),
    "entries": ("newton.runtime.cli.conversations.sessions:list_compactions", "List what was made shorter, and how."),
    "restore": ("newton.runtime.cli.conversations.sessions:expand_compaction", "Bring back what an entry stands for."),
    "checkpoint": (
        "newton.runtime.cli.conversations.sessions:checkpoint_session",
        "Name the place where a conversation is, or list them.",
    ),
    "branch": (
        "newton.runtime.cli.conversations.sessions:branch_session",
        "Begin a conversation that goes on from another.",
    ),
    "inject": (
        "newton.runtime.cli.conversations.sessions:inject_messages",
        "Show lines of one conversation in another.",
    ),
    "eject": (
        "newton.runtime.cli.conversations.sessions:eject_messages",
        "Take injected lines out again, or list them.",
    ),
    "stats": (
        "newton.runtime.cli.conversations.sessions:show_compaction_stats",
        "Show how compactions went, by strategy.",
    ),
}
AGENT_COMMANDS = {
    "list": ("newton.runtime.cli.operations.agents:list_agents", "List the agents of this database."),
    "begin": (
        "newton.runtime.cli.operations.agents:create_agent",
        "Begin an agent, whom programs may name from then on.",
    ),
}
TOKEN_COMMANDS = {
    "create": ("newton.runtime.cli.operations.tokens:create_token", "Make a token, and show it this once."),
    "list": ("newton.runtime.cli.operations.tokens:list_tokens", "List the tokens of an agent."),
    "revoke": ("newton.runtime.cli.operations.tokens:revoke_token", "End a token at once."),
}
BENCH_COMMANDS = {
    "recall": ("newton.bench.recall:run_benchmark", "How much of the evidence reaches the context."),
    "context": ("newton.bench.context:run_benchmark", "How long a context takes, beside the bare searches."),
    "lifecycle": ("newton.bench.lifecycle:run_benchmark", "How long the daily job takes."),
    "door": ("newton.bench.http:run_benchmark", "What HTTP adds to a context, and what one daemon bears."),
    "decisions": ("newton.bench.decisions:run_benchmark", "What guardrails cost, and the figures of a ledger."),
    "soak": ("newton.bench.soak:run_benchmark", "A day of the daemon's jobs in minutes."),
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
