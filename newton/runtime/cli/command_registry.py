"""All commands: the function of each, its one-line help, its group and its section of `newton --help`."""

# The function of each command, in a module of this package or in newton.bench, and its description.
TOP_LEVEL_COMMANDS = {
    "chat": ("talk.chat:chat", "Chat with the agent; the conversation is remembered."),
    "ask": ("talk.ask:ask", "Ask one question."),
    "serve": ("operations.serve:serve_http", "Run the daemon: HTTP, MCP, the OpenAI protocol, scheduled jobs."),
    "mcp": ("operations.mcp:serve_mcp", "Serve MCP over standard input and output."),
    "context": ("talk.ask:show_context", "Show the context for an input."),
    "bundles": ("talk.bundles:list_bundles", "List stored contexts."),
    "why": ("talk.bundles:explain_bundle", "Explain why each memory is in a context or not."),
    "replay": ("talk.bundles:replay_bundle", "Rebuild a stored context and compare it with the original."),
    "diff": ("talk.bundles:diff_bundles", "Compare two contexts."),
    "remember": ("memory.memories:remember", "Store a fact or an episode."),
    "recall": ("memory.memories:recall", "Search the memories."),
    "import": ("memory.import_:import_file", "Import memories from an NDJSON file."),
    "export": ("memory.export:export_agent", "Export an agent to a file."),
    "ingest": ("memory.ingest:ingest_documents", "Ingest documents: Markdown, text, HTML, PDF."),
    "list": ("memory.memory_lists:list_memories", "List what is in the memory, with filters."),
    "show": ("memory.curation:show_memory", "Show one memory in full."),
    "history": ("memory.curation:show_history", "Show all state changes and edits of a memory."),
    "confirm": ("memory.curation:confirm_fact", "Confirm a fact."),
    "supersede": ("memory.curation:supersede_fact", "Replace a fact by a newer one."),
    "retract": ("memory.curation:retract_fact", "Mark a fact as never true."),
    "edit": ("memory.edits:edit_memory", "Set the importance, the core mark or the subject of a memory."),
    "outcome": ("memory.curation:set_outcome", "Set the outcome of an episode."),
    "forget": ("memory.curation:forget_memories", "Delete memories permanently."),
    "erase": (
        "memory.erase:erase_subject_or_agent",
        "Permanently erase everything about one person, or a whole agent.",
    ),
    "decide": ("decisions.decide:record_decision", "Record a decision with reasons and confidence."),
    "think": ("decisions.records:add_thought", "Add a thought to an open decision."),
    "done": ("decisions.records:mark_done", "Mark a decision as carried out."),
    "outcomes": ("decisions.records:list_outcomes", "List the outcomes and lessons of decisions."),
    "review": ("decisions.records:review_decision", "Record the outcome of a decision."),
    "entities": ("memory.entities:show_entities", "List known entities and their relations."),
    "calibration": ("judgement.calibration:show_calibration", "Show how well calibrated stated confidence is."),
    "growth": ("judgement.growth:report_growth", "Report how the agent developed, compared with the period before."),
    "metrics": ("judgement.metrics:show_metrics", "Show quality metrics of the contexts and their targets."),
    "working-memory": ("conversations.working_memory:show_working_memory", "Show the working memory of a session."),
    "frames": ("talk.frames:show_frames", "List the frames, or show one."),
    "reembed": ("operations.reembed:reembed_memories", "Switch to another embedding model."),
    "backup": ("operations.backup:create_backup", "Back up all agents to a folder."),
    "restore": ("operations.backup:restore_backup", "Restore a backup."),
    "verbs": ("operations.verbs:show_verbs", "List what Newton can do, and its name in each interface."),
    "doctor": ("operations.doctor:run_doctor", "Check the installation and print remedies."),
}
PROCEDURE_COMMANDS = {
    "list": ("memory.procedures:list_procedures", "List the procedures with their records."),
    "show": ("memory.procedures:show_procedure", "Show a procedure in full."),
    "record-use": ("memory.procedures:record_use", "Record a use of a procedure."),
    "record-outcome": ("memory.procedures:record_outcome", "Record the outcome of the last use of a procedure."),
}
PROFILE_COMMANDS = {
    "list": ("talk.profiles:list_profiles", "List the scoring profiles."),
    "show": ("talk.profiles:show_profile", "Show how a profile scores."),
    "fit": ("talk.profiles:fit_profile", "Fit weights to the memories that replies used."),
}
JOB_COMMANDS = {
    "list": ("operations.jobs:list_jobs", "List the jobs with their last runs."),
    "run": ("operations.jobs:run_job", "Run a job now."),
    "dead": ("operations.jobs:list_dead_runs", "List failed runs."),
    "retry": ("operations.jobs:retry_dead_runs", "Retry dead runs: those that failed too often."),
}
CENSOR_COMMANDS = {
    "list": ("judgement.censors:list_censors", "List the censors with their records."),
    "add": ("judgement.censors:add_censor", "Add a censor."),
    "check": ("judgement.censors:check_text", "Check a text against the censors."),
    "approve": ("judgement.censors:approve_censor", "Approve a proposed censor."),
    "false-positive": ("judgement.censors:report_false_positive", "Report a false positive."),
    "relax": ("judgement.censors:relax_censor", "Make a blocking censor a warning."),
    "retire": ("judgement.censors:retire_censor", "Retire a censor."),
}
DECISION_COMMANDS = {
    "list": ("decisions.records:list_decisions", "List decisions."),
    "show": ("decisions.records:show_decision", "Show a decision in full."),
    "amend": ("decisions.records:amend_decision", "Add text to a decision."),
    "link": ("decisions.records:link_decisions", "Link two decisions."),
    "erase": ("decisions.records:erase_decision", "Erase the text of a decision permanently."),
}
ATTRIBUTE_COMMANDS = {
    "list": ("memory.attributes:list_attributes", "List the attributes of facts."),
    "set": ("memory.attributes:set_cardinality", "Declare an attribute single-valued or multi-valued."),
}
CONFLICT_COMMANDS = {
    "list": ("memory.conflicts:list_conflicts", "List facts that may exclude each other."),
    "settle": ("memory.conflicts:settle_conflict", "Settle the conflicts of a fact."),
}
GUARDRAIL_COMMANDS = {
    "list": ("judgement.guard:list_guardrails", "List the guardrails."),
    "add": ("judgement.guard:add_guardrail", "Add or replace a guardrail."),
    "check": ("judgement.guard:check_guardrails", "Check a draft decision against the guardrails."),
    "retire": ("judgement.guard:retire_guardrail", "Disable a guardrail."),
    "restore": ("judgement.guard:restore_guardrail", "Enable the guardrail of a file again."),
}
IDENTITY_COMMANDS = {
    "show": ("memory.identity:show_identity", "Show the identity and which lines fit the budget."),
    "add": ("memory.identity:add_line", "Add a line."),
    "change": ("memory.identity:change_line", "Change a line."),
    "remove": ("memory.identity:remove_line", "Remove a line."),
    "propose": ("memory.identity:propose_line", "Propose a line that waits for approval."),
    "history": ("memory.identity:show_versions", "Show all versions."),
    "rollback": ("memory.identity:roll_back", "Roll back to a version."),
    "proposals": ("memory.identity:list_proposals", "List proposals that wait for approval."),
    "accept": ("memory.identity:accept_proposal", "Accept a proposal."),
    "reject": ("memory.identity:reject_proposal", "Reject a proposal."),
    "erase": ("memory.identity:erase_line", "Erase the text of a line permanently."),
}
TASK_COMMANDS = {
    "list": ("conversations.tasks:list_tasks", "Show the task tree of a session."),
    "path": ("conversations.tasks:show_path", "Show the path from the root goal to the current task."),
    "push": ("conversations.tasks:push_task", "Start a subtask of the current task."),
    "pop": ("conversations.tasks:pop_task", "Finish the current task with its result."),
    "block": ("conversations.tasks:block_task", "Block the current task."),
    "resume": ("conversations.tasks:resume_task", "Resume a blocked task."),
    "fail": ("conversations.tasks:fail_task", "Mark the current task as failed, or replace it."),
}
SESSION_COMMANDS = {
    "list": ("conversations.sessions:list_sessions", "List the sessions."),
    "log": ("conversations.sessions:show_log", "Show all messages of a session."),
    "view": ("conversations.sessions:show_view", "Show what a model would be sent of a session."),
    "compact": ("conversations.sessions:compact_session", "Compact a session now."),
    "compactions": ("conversations.sessions:list_compactions", "List the compaction entries."),
    "expand": ("conversations.sessions:expand_compaction", "Show the messages of a compaction entry again."),
    "checkpoint": ("conversations.sessions:checkpoint_session", "Set or list checkpoints."),
    "branch": ("conversations.sessions:branch_session", "Branch a session."),
    "inject": ("conversations.sessions:inject_messages", "Show messages of one session in another."),
    "eject": ("conversations.sessions:eject_messages", "Remove or list injected messages."),
    "stats": ("conversations.sessions:show_compaction_stats", "Show compaction statistics by strategy."),
}
BULK_COMMANDS = {
    "forget": ("memory.bulk:forget_memories", "Delete all memories of a filter permanently."),
    "retract": ("memory.bulk:retract_facts", "Mark all facts of a filter as never true."),
    "importance": ("memory.bulk:set_importance", "Set the importance of all memories of a filter."),
    "core": ("memory.bulk:set_core", "Mark all facts of a filter as core, or remove the mark."),
}
DOCUMENT_COMMANDS = {
    "list": ("memory.documents:list_documents", "List the ingested documents."),
    "show": ("memory.documents:show_document", "Show a document with its passages."),
    "delete": ("memory.documents:delete_document", "Delete a document with its passages permanently."),
}
ITEM_COMMANDS = {
    "list": ("memory.items:list_items", "List or search items: JSON values of programs."),
    "show": ("memory.items:show_item", "Show an item in full."),
    "delete": ("memory.items:delete_item", "Delete an item with its memories permanently."),
}
AGENT_COMMANDS = {
    "list": ("operations.agents:list_agents", "List the agents of this database."),
    "show": ("operations.agents:show_agent", "Show what an agent holds."),
    "create": ("operations.agents:create_agent", "Create an agent for `--agent NAME` and API clients."),
    "set-model": ("operations.agents:set_agent_model", "Set the default model of an agent."),
    "delete": ("operations.agents:delete_agent", "Delete an agent with all its data and tokens permanently."),
}
TOKEN_COMMANDS = {
    "create": ("operations.tokens:create_token", "Create a token and print it once."),
    "list": ("operations.tokens:list_tokens", "List the tokens of an agent."),
    "revoke": ("operations.tokens:revoke_token", "Revoke a token."),
}
HOOK_COMMANDS = {
    "run": ("operations.hook:run_hook", "Answer one event of a coding agent."),
    "install": ("operations.hook:install_hooks", "Add the hooks to the settings of a coding agent."),
    "uninstall": ("operations.hook:uninstall_hooks", "Remove the hooks from its settings."),
    "status": ("operations.hook:show_status", "Show where the hooks are installed."),
}
BENCH_COMMANDS = {
    "recall": ("newton.bench.recall:run_benchmark", "Measure how much of the evidence reaches the context."),
    "unknown": (
        "newton.bench.unknown:run_benchmark",
        "Count the memories that enter contexts of questions that memory cannot answer.",
    ),
    "context": ("newton.bench.context:run_benchmark", "Measure the latency of contexts, compared with plain searches."),
    "sessions": ("newton.bench.sessions:run_benchmark", "Measure how often the context of a session is rebuilt."),
    "lifecycle": ("newton.bench.lifecycle:run_benchmark", "Measure the daily lifecycle job."),
    "http": ("newton.bench.http:run_benchmark", "Measure the overhead of HTTP and the load limit of a daemon."),
    "decisions": ("newton.bench.decisions:run_benchmark", "Measure guardrails and calibration."),
    "soak": ("newton.bench.soak:run_benchmark", "Run the jobs of a day in minutes."),
}

# Arguments that print help. No command runs.
HELP_FLAGS = frozenset(("--help", "-h", "--version"))

# Commands and groups that always run in the caller's process: they read or write its files, talk with its terminal,
# start, stop or check the daemon, or use no data of an agent.
IN_PROCESS_COMMANDS = frozenset(
    (
        *("chat", "serve", "mcp", "doctor", "backup", "restore", "reembed", "bench"),
        *("import", "export", "ingest", "frames", "profiles", "verbs", "hook"),
    )
)

# The command of a group that runs if none is given.
DEFAULT_COMMANDS = {
    "agents": "list",
    "attributes": "list",
    "censors": "list",
    "conflicts": "list",
    "decisions": "list",
    "documents": "list",
    "items": "list",
    "guard": "list",
    "hook": "run",
    "identity": "show",
    "jobs": "list",
    "procedures": "list",
    "profiles": "list",
    "sessions": "list",
    "tasks": "list",
    "tokens": "list",
}

# What other programs call a command, by what it is called here; for the hint on an unknown command.
SYNONYMS = {
    "remember": ("add", "store", "save", "note", "memorize", "learn", "create", "put"),
    "recall": ("search", "find", "query", "memories", "facts", "retrieve", "lookup", "get"),
    "forget": ("delete", "remove", "rm", "del"),
    "supersede": ("update", "replace"),
    "serve": ("start", "run", "daemon", "server", "up"),
    "doctor": ("status", "health", "check"),
    "why": ("explain",),
    "ask": ("prompt", "question"),
    "sessions": ("conversations", "chats", "threads", "log"),
    "tokens": ("keys", "apikey", "login"),
    "metrics": ("stats",),
    "ingest": ("upload",),
}

COMMAND_GROUPS = (
    ("identity", "The agent's identity and standing instructions.", IDENTITY_COMMANDS),
    ("bulk", "Change all memories of a filter, after a preview.", BULK_COMMANDS),
    ("documents", "Ingested documents.", DOCUMENT_COMMANDS),
    ("items", "JSON values of programs, each with a namespace and a key.", ITEM_COMMANDS),
    ("procedures", "Procedures and their track records.", PROCEDURE_COMMANDS),
    ("censors", "Prohibitions: warn or block.", CENSOR_COMMANDS),
    ("decisions", "List, link, amend and erase decisions.", DECISION_COMMANDS),
    ("conflicts", "Facts that may exclude each other.", CONFLICT_COMMANDS),
    ("attributes", "Attributes of facts, single-valued or multi-valued.", ATTRIBUTE_COMMANDS),
    ("guard", "Guardrails on decisions.", GUARDRAIL_COMMANDS),
    ("profiles", "Scoring profiles.", PROFILE_COMMANDS),
    ("sessions", "Sessions: log, view, compaction, branches.", SESSION_COMMANDS),
    ("tasks", "The task stack of a session.", TASK_COMMANDS),
    ("jobs", "Scheduled jobs run by `newton serve`: schedule, last result, reason.", JOB_COMMANDS),
    ("agents", "List, show, create and delete agents, and set their models.", AGENT_COMMANDS),
    ("tokens", "Tokens of the daemon's API.", TOKEN_COMMANDS),
    ("hook", "Hooks of coding agents: Claude Code and Codex.", HOOK_COMMANDS),
    ("bench", "Measure Newton.", BENCH_COMMANDS),
)
TOP_LEVEL_NAMES = frozenset((*TOP_LEVEL_COMMANDS, *(name for name, _, _ in COMMAND_GROUPS)))
# Every word that is a command: of `newton` itself, or of one of its groups.
COMMAND_NAMES = TOP_LEVEL_NAMES.union(*(commands for _, _, commands in COMMAND_GROUPS))


# The sections of `newton --help`, in order. Each command belongs to exactly one.
HELP_GROUPS = {
    "Talk": ("chat", "ask", "context"),
    "Memory": (
        *("remember", "recall", "list", "show", "history", "edit", "confirm", "supersede", "retract", "outcome"),
        *("forget", "bulk", "entities", "conflicts", "attributes", "procedures", "identity", "documents", "items"),
        *("ingest", "import", "export", "erase"),
    ),
    "Decisions": ("decide", "think", "done", "review", "outcomes", "decisions", "guard", "calibration"),
    "Conversations": ("sessions", "tasks", "working-memory"),
    "Judgement": ("bundles", "why", "replay", "diff", "frames", "profiles", "censors", "growth", "metrics"),
    "Operations": (
        "serve",
        "mcp",
        "hook",
        "tokens",
        "agents",
        "jobs",
        "verbs",
        "doctor",
        "backup",
        "restore",
        "reembed",
        "bench",
    ),
}
