"""Registry of all commands: the function, one-line help, group and `newton --help` section of each."""

# The function of each command, in a module of this package, and its description.

TOP_LEVEL_COMMANDS = {
    "chat": ("talk.chat:chat", "Chat with the agent; the conversation is remembered."),
    "ask": ("talk.ask:ask", "Ask one question and print the answer."),
    "serve": ("operations.serve:serve_http", "Run the daemon: HTTP, MCP, the OpenAI protocol and scheduled jobs."),
    "dashboard": (
        "operations.dashboard:print_dashboard_link",
        "Print a link that opens the dashboard of the daemon.",
    ),
    "context": (
        "talk.ask:show_context",
        "Show the context (the text from memory) that a model would get for an input.",
    ),
    "prompt": ("conversations.prompts:show_prompt", "Show exactly what the model received in a turn."),
    "bundles": ("talk.bundles:list_bundles", "List the contexts that were built and stored."),
    "why": ("talk.bundles:explain_bundle", "Explain why each memory is in a context or not."),
    "replay": ("talk.bundles:replay_bundle", "Rebuild a stored context and compare it with the original."),
    "diff": ("talk.bundles:diff_bundles", "Compare two stored contexts."),
    "remember": ("memory.memories:remember", "Store a fact, or an episode (an experience with a title)."),
    "recall": ("memory.memories:recall", "Search the memories by meaning and words."),
    "import": (
        "transfer.import_:import_file",
        "Import memories, conversations of other programs, or an exported agent.",
    ),
    "export": (
        "transfer.export:export_agent",
        "Export an agent as a file, or its memories as Markdown.",
    ),
    "ingest": (
        "transfer.ingest:ingest_documents",
        "Store documents (any text, Office, HTML, PDF, e-mail) as passages.",
    ),
    "list": ("memory.memory_lists:list_memories", "List the stored memories, with filters."),
    "show": ("operation_commands:memories.records.show_memory", "Show one memory in full."),
    "history": (
        "operation_commands:memories.records.show_history",
        "Show all state changes and edits of a memory.",
    ),
    "confirm": ("operation_commands:memories.curation.confirm_fact", "Confirm that a fact is true."),
    "supersede": (
        "operation_commands:memories.curation.supersede_fact",
        "Replace a fact that was true until now.",
    ),
    "retract": ("operation_commands:memories.curation.retract_fact", "Mark a fact as never true."),
    "edit": (
        "operation_commands:memories.edits.edit_memory",
        "Set the importance or the subject of a memory, or mark a fact as core.",
    ),
    "outcome": (
        "operation_commands:memories.curation.set_outcome",
        "Set the outcome of an episode: whether it succeeded.",
    ),
    "bulk": (
        "operation_commands:memories.bulk_changes.change_memories",
        "Forget, retract or edit all memories that filters select.",
    ),
    "forget": ("operation_commands:memories.deletion.forget_memory", "Delete a memory permanently."),
    "erase": (
        "memory.erase:erase_subject_or_agent",
        "Permanently erase everything about one person, or a whole agent.",
    ),
    "decide": ("decisions.decide:record_decision", "Record a decision with reasons and confidence."),
    "think": (
        "operation_commands:decisions.decisions.add_thought",
        "Add a thought, a step of deliberation, to an open decision.",
    ),
    "done": ("operation_commands:decisions.decisions.mark_done", "Mark a decision as carried out."),
    "outcomes": ("operation_commands:decisions.decisions.list_outcomes", "List the outcomes and lessons of decisions."),
    "review": ("operation_commands:decisions.decisions.review_decision", "Record the outcome of a decision."),
    "calibration": (
        "operation_commands:decisions.calibration.show_calibration",
        "Compare the confidence stated in decisions with their outcomes.",
    ),
    "metrics": ("judgement.metrics:show_metrics", "Show quality metrics of the contexts, each with its target."),
    "working-memory": (
        "conversations.working_memory:show_working_memory",
        "Show the memories that a session stored, showed or read.",
    ),
    "frames": ("talk.frames:show_frames", "List the frames (kinds of input, such as debug), or show one."),
    "reembed": ("operations.reembed:reembed_memories", "Switch to another embedding model."),
    "backup": ("operations.backup:create_backup", "Back up all agents to a folder."),
    "restore": ("operations.backup:restore_backup", "Restore a backup."),
    "verbs": ("operations.verbs:show_verbs", "List the operations of Newton and their names in each interface."),
    "doctor": ("operations.health:run_doctor", "Check the installation and print remedies."),
}
MCP_COMMANDS = {
    "serve": ("operations.mcp:serve_mcp", "Serve MCP over standard input and output, for one client."),
    "add": ("operations.mcp_servers:add_server", "Add an MCP server whose tools the model may call."),
    "list": ("operations.mcp_servers:list_servers", "List the MCP servers whose tools the model may call."),
    "remove": ("operations.mcp_servers:remove_server", "Remove an MCP server."),
    "test": ("operations.mcp_servers:test_server", "Connect to an MCP server and list its tools."),
}
PERMISSION_COMMANDS = {
    "allow": ("operations.permissions:allow_tool", "Allow a tool of a server."),
    "deny": ("operations.permissions:deny_tool", "Forbid a tool of a server."),
}
SKILL_COMMANDS = {
    "add": ("memory.skills:add_skills", "Store SKILL.md folders as procedures."),
    "remove": ("memory.skills:remove_skill", "Retire the procedure of a skill."),
}
PROFILE_COMMANDS = {
    "list": ("talk.profiles:list_profiles", "List the profiles."),
    "show": ("talk.profiles:show_profile", "Show how a profile scores memories."),
    "fit": ("talk.profiles:fit_relevance", "Correct the relevance of memories by those that replies used."),
    "reset": ("talk.profiles:reset_relevance", "Remove the correction of relevance that was fitted to the replies."),
}
JOB_COMMANDS = {
    "list": ("operations.jobs:list_jobs", "List the jobs with their last runs."),
    "show": ("operations.jobs:show_job", "Show the last runs of a job, and when and why it runs next."),
    "run": ("operations.jobs:run_job", "Run a job now."),
    "dead": ("operations.jobs:list_dead_runs", "List dead runs of jobs: runs that failed too often."),
    "retry": ("operations.jobs:retry_dead_runs", "Queue dead runs of jobs again."),
}
DECISION_COMMANDS = {
    "verify": ("decisions.records:verify_decision", "Run the verifier of a decision, and record the outcome."),
}
GUARDRAIL_COMMANDS = {
    "add": ("judgement.guard:add_guardrail", "Add or replace a guardrail."),
    "retire": ("judgement.guard:retire_guardrail", "Disable a guardrail."),
    "restore": ("judgement.guard:restore_guardrail", "Enable a disabled or replaced guardrail again."),
}
SESSION_COMMANDS = {
    "view": (
        "conversations.sessions:show_view",
        "Show the messages and summaries of a session that a model would receive.",
    ),
    "stats": (
        "conversations.session_contents:show_stats",
        "Show the tokens of a session by part, its compactions and its latest context.",
    ),
}
ARTIFACT_COMMANDS = {
    "list": ("conversations.artifacts:list_artifacts", "List the artifacts of a session, or the versions of one."),
    "show": ("conversations.artifacts:show_artifact", "Show lines of an artifact, or those that a search finds."),
    "diff": ("conversations.artifacts:diff_artifact", "Compare two versions of an artifact."),
    "save": ("conversations.artifacts:save_artifact", "Write the text of an artifact to a file."),
    "add": ("conversations.artifacts:add_artifact", "Store a file as an artifact of a session."),
    "delete": ("conversations.artifacts:delete_artifact", "Delete an artifact permanently."),
}
AGENT_COMMANDS = {
    "list": ("operations.agents:list_agents", "List the agents of this database."),
    "show": ("operations.agents:show_agent", "Show how much an agent has stored."),
    "create": ("operations.agents:create_agent", "Create an agent."),
    "set-model": ("operations.agents:set_agent_model", "Set the default model of an agent."),
    "delete": ("operations.agents:delete_agent", "Delete an agent with all its data and tokens permanently."),
    "move": ("operations.agent_places:move_agent", "Move an agent to another node of a Citus cluster."),
    "isolate": ("operations.agent_places:isolate_agent", "Give an agent a shard of its own in a Citus cluster."),
}
DATABASE_COMMANDS = {
    "requirements": (
        "operations.database:print_requirements",
        "Print what a PostgreSQL server needs for Newton, as SQL for its administrator.",
    ),
    "distribute": (
        "operations.database:distribute_database",
        "Distribute all agents over the nodes of a Citus cluster.",
    ),
}
TOKEN_COMMANDS = {
    "create": ("operations.tokens:create_token", "Create a token and print it once."),
    "list": ("operations.tokens:list_tokens", "List the tokens of an agent."),
    "revoke": ("operations.tokens:revoke_token", "Revoke a token."),
}
HOOK_COMMANDS = {
    "run": ("operations.hook:run_hook", "Answer one event of a coding agent."),
    "install": ("operations.hook:install_hooks", "Add the hooks to the settings of a coding agent."),
    "uninstall": ("operations.hook:uninstall_hooks", "Remove the hooks from the settings of a coding agent."),
    "status": ("operations.hook:show_status", "Show where the hooks are installed."),
}
# Arguments that print help. No command runs.
HELP_FLAGS = frozenset(("--help", "-h", "--version"))

# Commands and groups that always run in the caller's process: they read or write its files, talk with its terminal,
# start, stop or check the daemon, or use no data of an agent.
IN_PROCESS_COMMANDS = frozenset(
    (
        *("chat", "serve", "dashboard", "mcp", "doctor", "backup", "restore", "reembed"),
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
    "entities": "list",
    "artifacts": "list",
    "guard": "list",
    "hook": "run",
    "identity": "show",
    "jobs": "list",
    "mcp": "serve",
    "permissions": "list",
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
    "dashboard": ("ui", "web", "browser", "open"),
    "doctor": ("status", "health", "check"),
    "why": ("explain",),
    "ask": ("question",),
    "sessions": ("conversations", "chats", "threads", "log"),
    "tokens": ("keys", "apikey", "login"),
    "metrics": ("stats",),
    "ingest": ("upload",),
}

# The modules in the packages of newton.operations that declare commands of a group, beside those in COMMAND_GROUPS.
OPERATION_MODULES: dict[str, tuple[str, ...]] = {
    "attributes": ("memories.attributes",),
    "censors": ("rules.censors",),
    "conflicts": ("memories.conflicts",),
    "decisions": ("decisions.decisions", "decisions.drafts"),
    "documents": ("memories.documents",),
    "entities": ("memories.entities",),
    "guard": ("rules.guardrails", "decisions.drafts"),
    "identity": ("agent.identity",),
    "permissions": ("agent.permissions",),
    "procedures": ("rules.procedures",),
    "profiles": ("decisions.calibration",),
    "sessions": (
        "conversations.sessions",
        "conversations.briefs",
        "conversations.compactions",
        "conversations.injections",
        "memories.entities",
    ),
    "tasks": ("conversations.tasks",),
}

COMMAND_GROUPS: tuple[tuple[str, str, dict[str, tuple[str, str]]], ...] = (
    ("identity", "The identity: lines that state who the agent is and what always applies.", {}),
    ("documents", "List, show and delete ingested documents.", {}),
    ("artifacts", "Long tool outputs, pasted texts and files of a session.", ARTIFACT_COMMANDS),
    ("procedures", "Procedures (how something is done, in steps) and their track records.", {}),
    ("skills", "Skills: procedures from SKILL.md folders.", SKILL_COMMANDS),
    ("censors", "Censors: prohibitions that warn of or block a text.", {}),
    ("decisions", "List, link, amend and erase decisions.", DECISION_COMMANDS),
    ("entities", "People and things (entities) that memories name, and their relations.", {}),
    ("conflicts", "Facts that may contradict each other.", {}),
    ("attributes", "Attributes of facts, with one current value or several.", {}),
    ("guard", "Guardrails: rules checked before a decision is recorded.", GUARDRAIL_COMMANDS),
    ("profiles", "Profiles: named ways to score memories.", PROFILE_COMMANDS),
    ("sessions", "Conversations: messages, summaries for a model, branches.", SESSION_COMMANDS),
    ("tasks", "The tasks and subtasks of a session.", {}),
    ("jobs", "Scheduled jobs that `newton serve` runs.", JOB_COMMANDS),
    ("agents", "List, show, create, move and delete agents, and set their models.", AGENT_COMMANDS),
    ("db", "The database on several nodes.", DATABASE_COMMANDS),
    ("tokens", "Access tokens for the API of the daemon.", TOKEN_COMMANDS),
    ("mcp", "MCP: serve an agent, and the servers whose tools its model may call.", MCP_COMMANDS),
    ("permissions", "Permissions to call tools of MCP servers.", PERMISSION_COMMANDS),
    ("hook", "Memory for the coding agents Claude Code and Codex, by their hooks.", HOOK_COMMANDS),
)
TOP_LEVEL_NAMES = frozenset((*TOP_LEVEL_COMMANDS, *(name for name, _, _ in COMMAND_GROUPS)))
# Every word that is a command: of `newton` itself, or of one of its groups.
COMMAND_NAMES = TOP_LEVEL_NAMES.union(*(commands for _, _, commands in COMMAND_GROUPS))


# The sections of `newton --help`, in order. Each command belongs to exactly one.
HELP_GROUPS = {
    "Talk": ("chat", "ask", "context"),
    "Memory": (
        *("remember", "recall", "list", "show", "history", "edit", "confirm", "supersede", "retract", "outcome"),
        *(
            "forget",
            "bulk",
            "entities",
            "conflicts",
            "attributes",
            "procedures",
            "skills",
            "identity",
            "documents",
        ),
        *("ingest", "import", "export", "erase"),
    ),
    "Decisions": ("decide", "think", "done", "review", "outcomes", "decisions", "guard", "calibration"),
    "Conversations": ("sessions", "prompt", "tasks", "artifacts", "working-memory"),
    "Contexts and rules": ("bundles", "why", "replay", "diff", "frames", "profiles", "censors", "metrics"),
    "Operations": (
        "serve",
        "dashboard",
        "mcp",
        "permissions",
        "hook",
        "tokens",
        "agents",
        "jobs",
        "verbs",
        "doctor",
        "backup",
        "restore",
        "db",
        "reembed",
    ),
}
