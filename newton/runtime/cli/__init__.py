"""`newton …`: parses words, calls what wiring built, prints the answer. Nothing is loaded before it is needed."""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

from cyclopts import App, CycloptsError, Group

from newton import __version__
from newton.errors import NewtonError
from newton.runtime.cli.errors import print_error, to_input_error
from newton.runtime.error_status import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, get_error_status

HELP_FLAGS = {"--help", "-h", "--version"}

# Where each command lives and what it does in a line; its module is loaded when it is called.
TOP_LEVEL_COMMANDS = {
    "chat": ("newton.runtime.cli.talk.chat:chat", "Chat with the agent; the conversation is remembered."),
    "ask": ("newton.runtime.cli.talk.ask:ask", "Ask one question."),
    "serve": (
        "newton.runtime.cli.operations.serve:serve_http",
        "Run the daemon: HTTP, MCP, the OpenAI protocol, scheduled jobs.",
    ),
    "mcp": ("newton.runtime.cli.operations.mcp:serve_mcp", "Serve MCP over standard input and output."),
    "context": ("newton.runtime.cli.talk.ask:show_context", "Show the context for an input."),
    "bundles": ("newton.runtime.cli.talk.bundles:list_bundles", "List stored contexts."),
    "why": ("newton.runtime.cli.talk.bundles:explain_bundle", "Explain why each memory is in a context or not."),
    "replay": ("newton.runtime.cli.talk.bundles:replay_bundle", "Rebuild a stored context and compare."),
    "diff": ("newton.runtime.cli.talk.bundles:diff_bundles", "Compare two contexts."),
    "remember": ("newton.runtime.cli.memory.memories:remember", "Store a fact or an episode."),
    "recall": ("newton.runtime.cli.memory.memories:recall", "Search the memories."),
    "import": ("newton.runtime.cli.memory.import_:import_file", "Import memories of every kind from NDJSON."),
    "export": ("newton.runtime.cli.memory.export:export_agent", "Export an agent to a file."),
    "ingest": ("newton.runtime.cli.memory.ingest:ingest_documents", "Ingest documents: Markdown, text, HTML, PDF."),
    "show": ("newton.runtime.cli.memory.curation:show_memory", "Show one memory in full."),
    "history": ("newton.runtime.cli.memory.curation:show_history", "Show all state changes of a memory with reasons."),
    "confirm": ("newton.runtime.cli.memory.curation:confirm_fact", "Confirm a fact."),
    "supersede": ("newton.runtime.cli.memory.curation:supersede_fact", "Replace a fact by a newer one."),
    "retract": ("newton.runtime.cli.memory.curation:retract_fact", "Mark a fact as never true."),
    "forget": ("newton.runtime.cli.memory.curation:forget_memories", "Delete memories permanently."),
    "erase": (
        "newton.runtime.cli.memory.erase:erase_subject_or_agent",
        "Permanently erase everything about one person, or a whole agent.",
    ),
    "decide": (
        "newton.runtime.cli.decisions.decide:record_decision",
        "Record a decision with reasons and confidence.",
    ),
    "think": ("newton.runtime.cli.decisions.records:add_thought", "Add a thought to an open decision."),
    "done": ("newton.runtime.cli.decisions.records:mark_done", "Mark a decision as done."),
    "review": ("newton.runtime.cli.decisions.records:review_decision", "Record the outcome of a decision."),
    "entities": (
        "newton.runtime.cli.memory.entities:show_entities",
        "List known entities and their relations.",
    ),
    "calibration": (
        "newton.runtime.cli.judgement.calibration:show_calibration",
        "Show how well calibrated stated confidence is.",
    ),
    "growth": (
        "newton.runtime.cli.judgement.growth:report_growth",
        "Report how the agent developed, compared with the period before.",
    ),
    "metrics": (
        "newton.runtime.cli.judgement.metrics:show_metrics",
        "Show how well contexts serve, beside what is aimed at.",
    ),
    "working-memory": (
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
    "record-use": ("newton.runtime.cli.memory.procedures:record_use", "Record a use of a procedure."),
    "record-outcome": ("newton.runtime.cli.memory.procedures:record_outcome", "Record the outcome of its last use."),
}
PROFILE_COMMANDS = {
    "list": ("newton.runtime.cli.talk.profiles:list_profiles", "List the scoring profiles."),
    "show": ("newton.runtime.cli.talk.profiles:show_profile", "Show how a profile scores."),
    "fit": ("newton.runtime.cli.talk.profiles:fit_profile", "Fit weights to what replies used, and compare."),
}
JOB_COMMANDS = {
    "list": ("newton.runtime.cli.operations.jobs:list_jobs", "List the jobs with their last runs."),
    "run": ("newton.runtime.cli.operations.jobs:run_job", "Run a job now."),
    "dead": ("newton.runtime.cli.operations.jobs:list_dead_runs", "List failed runs."),
    "retry": ("newton.runtime.cli.operations.jobs:retry_dead_runs", "Retry failed runs."),
}
CENSOR_COMMANDS = {
    "list": ("newton.runtime.cli.judgement.censors:list_censors", "List the censors with their records."),
    "add": ("newton.runtime.cli.judgement.censors:add_censor", "Add a censor."),
    "check": ("newton.runtime.cli.judgement.censors:check_text", "Check a text against the censors."),
    "approve": ("newton.runtime.cli.judgement.censors:approve_censor", "Approve a proposed censor."),
    "false-positive": ("newton.runtime.cli.judgement.censors:report_false_positive", "Report a false positive."),
    "retire": ("newton.runtime.cli.judgement.censors:retire_censor", "Retire a censor."),
}
DECISION_COMMANDS = {
    "list": ("newton.runtime.cli.decisions.records:list_decisions", "List the decisions, or those that are due."),
    "show": ("newton.runtime.cli.decisions.records:show_decision", "Show a decision in full."),
    "amend": ("newton.runtime.cli.decisions.records:amend_decision", "Add text to a decision."),
    "link": ("newton.runtime.cli.decisions.records:link_decisions", "Link two decisions."),
    "erase": ("newton.runtime.cli.decisions.records:erase_decision", "Erase the text of a decision permanently."),
}
ATTRIBUTE_COMMANDS = {
    "list": ("newton.runtime.cli.memory.attributes:list_attributes", "List the attributes of facts."),
    "single": ("newton.runtime.cli.memory.attributes:set_single_valued", "Declare an attribute single-valued."),
    "many": ("newton.runtime.cli.memory.attributes:set_multi_valued", "Declare an attribute multi-valued."),
}
GUARDRAIL_COMMANDS = {
    "list": ("newton.runtime.cli.judgement.guard:list_guardrails", "List the guardrails."),
    "add": ("newton.runtime.cli.judgement.guard:add_guardrail", "Add or replace a guardrail."),
    "check": ("newton.runtime.cli.judgement.guard:check_guardrails", "Check a draft decision against the guardrails."),
    "retire": ("newton.runtime.cli.judgement.guard:retire_guardrail", "Disable a guardrail."),
    "restore": ("newton.runtime.cli.judgement.guard:restore_guardrail", "Enable the guardrail of a file again."),
}
IDENTITY_COMMANDS = {
    "show": ("newton.runtime.cli.memory.identity:show_identity", "Show the identity and which lines fit the budget."),
    "add": ("newton.runtime.cli.memory.identity:add_line", "Add a line."),
    "change": ("newton.runtime.cli.memory.identity:change_line", "Change a line."),
    "remove": ("newton.runtime.cli.memory.identity:remove_line", "Remove a line."),
    "history": ("newton.runtime.cli.memory.identity:show_versions", "Show all versions."),
    "rollback": ("newton.runtime.cli.memory.identity:roll_back", "Roll back to a version."),
    "proposals": ("newton.runtime.cli.memory.identity:list_proposals", "List proposals that wait for approval."),
    "accept": ("newton.runtime.cli.memory.identity:accept_proposal", "Accept a proposal."),
    "reject": ("newton.runtime.cli.memory.identity:reject_proposal", "Reject a proposal."),
    "erase": ("newton.runtime.cli.memory.identity:erase_line", "Erase the text of a line permanently."),
}
TASK_COMMANDS = {
    "list": ("newton.runtime.cli.conversations.tasks:list_tasks", "Show the task tree of a session."),
    "path": (
        "newton.runtime.cli.conversations.tasks:show_path",
        "Show the path from the root goal to the current task.",
    ),
    "push": ("newton.runtime.cli.conversations.tasks:push_task", "Start a subtask of the current task."),
    "pop": ("newton.runtime.cli.conversations.tasks:pop_task", "Finish the current task with its result."),
    "block": ("newton.runtime.cli.conversations.tasks:block_task", "Block the current task."),
    "resume": ("newton.runtime.cli.conversations.tasks:resume_task", "Resume a blocked task."),
    "fail": ("newton.runtime.cli.conversations.tasks:fail_task", "Mark the current task as a dead end, or replan."),
}
SESSION_COMMANDS = {
    "list": (
        "newton.runtime.cli.conversations.sessions:list_sessions",
        "List the sessions.",
    ),
    "log": ("newton.runtime.cli.conversations.sessions:show_log", "Show all messages of a session."),
    "view": (
        "newton.runtime.cli.conversations.sessions:show_view",
        "Show a session as a model would be sent it.",
    ),
    "compact": (
        "newton.runtime.cli.conversations.sessions:compact_session",
        "Compact a session now.",
    ),
    "compactions": ("newton.runtime.cli.conversations.sessions:list_compactions", "List the compaction entries."),
    "expand": (
        "newton.runtime.cli.conversations.sessions:expand_compaction",
        "Show the messages of a compaction entry again.",
    ),
    "checkpoint": (
        "newton.runtime.cli.conversations.sessions:checkpoint_session",
        "Set or list checkpoints.",
    ),
    "branch": (
        "newton.runtime.cli.conversations.sessions:branch_session",
        "Branch a session.",
    ),
    "inject": (
        "newton.runtime.cli.conversations.sessions:inject_messages",
        "Show messages of one session in another.",
    ),
    "eject": (
        "newton.runtime.cli.conversations.sessions:eject_messages",
        "Remove or list injected messages.",
    ),
    "stats": (
        "newton.runtime.cli.conversations.sessions:show_compaction_stats",
        "Show compaction statistics by strategy.",
    ),
}
AGENT_COMMANDS = {
    "list": ("newton.runtime.cli.operations.agents:list_agents", "List the agents of this database."),
    "create": (
        "newton.runtime.cli.operations.agents:create_agent",
        "Create an agent that API clients can select.",
    ),
}
TOKEN_COMMANDS = {
    "create": ("newton.runtime.cli.operations.tokens:create_token", "Create a token and print it once."),
    "list": ("newton.runtime.cli.operations.tokens:list_tokens", "List the tokens of an agent."),
    "revoke": ("newton.runtime.cli.operations.tokens:revoke_token", "Revoke a token."),
}
BENCH_COMMANDS = {
    "recall": ("newton.bench.recall:run_benchmark", "Measure how much evidence reaches the context."),
    "context": ("newton.bench.context:run_benchmark", "Measure the time of a context against bare searches."),
    "lifecycle": ("newton.bench.lifecycle:run_benchmark", "Measure the daily lifecycle job."),
    "http": ("newton.bench.http:run_benchmark", "Measure the overhead of HTTP and the load limit of a daemon."),
    "decisions": ("newton.bench.decisions:run_benchmark", "Measure guardrails and calibration."),
    "soak": ("newton.bench.soak:run_benchmark", "Run a day of jobs in minutes."),
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
    ("identity", "The agent's identity and standing instructions.", IDENTITY_COMMANDS),
    ("procedures", "Procedures and their track records.", PROCEDURE_COMMANDS),
    ("censors", "Prohibitions: warn or block.", CENSOR_COMMANDS),
    ("decisions", "List, link, amend and erase decisions.", DECISION_COMMANDS),
    ("attributes", "Attributes of facts, single-valued or multi-valued.", ATTRIBUTE_COMMANDS),
    ("guard", "Guardrails on decisions.", GUARDRAIL_COMMANDS),
    ("profiles", "Scoring profiles.", PROFILE_COMMANDS),
    ("sessions", "Sessions: log, view, compaction, branches.", SESSION_COMMANDS),
    ("tasks", "The task stack of a session.", TASK_COMMANDS),
    ("jobs", "Scheduled jobs run by `newton serve`: schedule, last result, reason.", JOB_COMMANDS),
    ("agents", "List and create agents.", AGENT_COMMANDS),
    ("tokens", "Tokens of the daemon's API.", TOKEN_COMMANDS),
    ("bench", "Measure Newton.", BENCH_COMMANDS),
)


# The groups of `newton --help`, in their order. A command belongs to exactly one.
HELP_GROUPS = {
    "Talk": ("chat", "ask", "context"),
    "Memory": (
        *("remember", "recall", "show", "history", "confirm", "supersede", "retract", "forget", "entities"),
        *("attributes", "procedures", "identity", "ingest", "import", "export", "erase"),
    ),
    "Decisions": ("decide", "think", "done", "review", "decisions", "guard", "calibration"),
    "Conversations": ("sessions", "tasks", "working-memory"),
    "Judgement": ("bundles", "why", "replay", "diff", "frames", "profiles", "censors", "growth", "metrics"),
    "Operations": ("serve", "mcp", "tokens", "agents", "jobs", "doctor", "backup", "restore", "reembed", "bench"),
}
_GROUPS = {title: Group(title, sort_key=position) for position, title in enumerate(HELP_GROUPS, 1)}
GROUP_BY_COMMAND = {command: _GROUPS[title] for title, commands in HELP_GROUPS.items() for command in commands}


def build_app(argv: Sequence[str] = ()) -> App:
    """All commands. What one does in a line stands here; of the one asked for, its own words are read instead."""
    app = App(
        name="newton",
        version=__version__,
        help="Memory, context and decisions for AI agents.",
    )
    for name, does, commands in COMMAND_GROUPS:
        group = App(name=name, help=does, group=GROUP_BY_COMMAND[name])
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
        group = GROUP_BY_COMMAND.get(name) if app.name == ("newton",) else None
        app.command(where, name=name, help=None if name in called else does, group=group)


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
