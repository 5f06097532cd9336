"""The commands that no operation declares, and what holds for commands of both kinds."""

from collections.abc import Mapping

TITLE = "Memory, context and decisions for AI agents."  # of `newton --help`

# The commands of `newton --help`.
MAIN_COMMANDS = (
    *("chat", "ask", "remember", "recall", "list", "forget", "import", "serve", "dashboard", "decide", "review"),
    "doctor",
)

# By group of the help: the function of each command, in a module of this package, and its one-line help.
COMMANDS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "memory": {
        "erase": (
            "memory.erase:erase_subject_or_agent",
            "Permanently erase everything about one person, or a whole agent.",
        ),
        "ingest": (
            "transfer.ingest:ingest_documents",
            "Store documents (any text, Office, HTML, PDF, e-mail) as passages.",
        ),
    },
    "decisions": {
        "decide": ("decisions.decide:record_decision", "Record a decision with reasons and confidence."),
        "decisions verify": (
            "decisions.records:verify_decision",
            "Run the verifier of a decision, and record the outcome.",
        ),
    },
    "sessions": {
        "chat": ("talk.chat:chat", "Chat with the agent; the conversation is remembered."),
        "ask": ("talk.ask:ask", "Ask one question and print the answer."),
        "artifacts save": ("transfer.artifacts:save_artifact", "Write the text of an artifact to a file."),
        "artifacts add": ("transfer.artifacts:add_artifact", "Store a file as an artifact of a session."),
    },
    "rules": {
        "guard add": ("judgement.guard:add_guardrail", "Add or replace a guardrail."),
        "guard retire": ("judgement.guard:retire_guardrail", "Disable a guardrail."),
        "guard restore": ("judgement.guard:restore_guardrail", "Enable a disabled or replaced guardrail again."),
        "skills add": ("memory.skills:add_skills", "Store SKILL.md folders as procedures."),
        "skills remove": ("memory.skills:remove_skill", "Retire the procedure of a skill."),
        "permissions allow": ("operations.permissions:allow_tool", "Allow a tool of a server."),
        "permissions deny": ("operations.permissions:deny_tool", "Forbid a tool of a server."),
    },
    "server": {
        "serve": ("operations.serve:serve_http", "Run the daemon: HTTP, MCP, the OpenAI protocol and scheduled jobs."),
        "dashboard": (
            "operations.dashboard:print_dashboard_link",
            "Print a link that opens the dashboard of the daemon.",
        ),
        "mcp serve": ("operations.mcp:serve_mcp", "Serve MCP over standard input and output, for one client."),
        "mcp add": ("operations.mcp_servers:add_server", "Add an MCP server whose tools the model may call."),
        "mcp list": ("operations.mcp_servers:list_servers", "List the MCP servers whose tools the model may call."),
        "mcp remove": ("operations.mcp_servers:remove_server", "Remove an MCP server."),
        "mcp test": ("operations.mcp_servers:test_server", "Connect to an MCP server and list its tools."),
        "hook run": ("operations.hook:run_hook", "Answer one event of a coding agent."),
        "hook install": ("operations.hook:install_hooks", "Add the hooks to the settings of a coding agent."),
        "hook uninstall": ("operations.hook:uninstall_hooks", "Remove the hooks from the settings of a coding agent."),
        "hook status": ("operations.hook:show_status", "Show where the hooks are installed."),
        "agents list": ("operations.agents:list_agents", "List the agents of this database."),
        "agents show": ("operations.agents:show_agent", "Show how much an agent has stored."),
        "agents create": ("operations.agents:create_agent", "Create an agent."),
        "agents set-model": ("operations.agents:set_agent_model", "Set the default model of an agent."),
        "agents delete": (
            "operations.agents:delete_agent",
            "Delete an agent with all its data and tokens permanently.",
        ),
        "agents move": ("operations.agent_places:move_agent", "Move an agent to another node of a Citus cluster."),
        "agents isolate": (
            "operations.agent_places:isolate_agent",
            "Give an agent a shard of its own in a Citus cluster.",
        ),
        "tokens create": ("operations.tokens:create_token", "Create a token and print it once."),
        "tokens list": ("operations.tokens:list_tokens", "List the tokens of an agent."),
        "tokens revoke": ("operations.tokens:revoke_token", "Revoke a token."),
        "jobs list": ("operations.jobs:list_jobs", "List the jobs with their last runs."),
        "jobs show": ("operations.jobs:show_job", "Show the last runs of a job, and when and why it runs next."),
        "jobs run": ("operations.jobs:run_job", "Run a job now."),
        "jobs dead": ("operations.jobs:list_dead_runs", "List dead runs of jobs: runs that failed too often."),
        "jobs retry": ("operations.jobs:retry_dead_runs", "Queue dead runs of jobs again."),
        "doctor": ("operations.health:run_doctor", "Check the installation and print remedies."),
        "verbs": ("operations.verbs:show_verbs", "List the operations of Newton and their names in each interface."),
    },
    "data": {
        "import": (
            "transfer.import_:import_file",
            "Import memories, conversations of other programs, or an exported agent.",
        ),
        "export": ("transfer.export:export_agent", "Export an agent as a file, or its memories as Markdown."),
        "backup": ("operations.backup:create_backup", "Back up all agents to a folder."),
        "restore": ("operations.backup:restore_backup", "Restore a backup."),
        "reembed": ("operations.reembed:reembed_memories", "Switch to another embedding model."),
        "db requirements": (
            "operations.database:print_requirements",
            "Print what a PostgreSQL server needs for Newton, as SQL for its administrator.",
        ),
        "db distribute": (
            "operations.database:distribute_database",
            "Distribute all agents over the nodes of a Citus cluster.",
        ),
    },
}

# The help of the groups of commands whose default command no operation declares.
COMMAND_GROUPS: Mapping[str, str] = {
    "agents": "List, show, create, move and delete agents, and set their models.",
    "artifacts": "Long tool outputs, pasted texts and files of a session.",
    "db": "The database on several nodes.",
    "hook": "Memory for the coding agents Claude Code and Codex, by their hooks.",
    "jobs": "Scheduled jobs that `newton serve` runs.",
    "mcp": "MCP: serve an agent, and the servers whose tools its model may call.",
    "skills": "Skills: procedures from SKILL.md folders.",
    "tokens": "Access tokens for the API of the daemon.",
}

# Arguments that print help. No command runs.
HELP_FLAGS = frozenset(("--help", "-h", "--version"))
# The first words of a command line that asks for a page of the help.
HELP_WORDS = ("help", "--help", "-h")

# Commands and groups that always run in the caller's process: they read or write its files, talk with its terminal,
# start, stop or check the daemon, or use no data of an agent.
IN_PROCESS_COMMANDS = frozenset(
    (
        *("chat", "serve", "dashboard", "mcp", "doctor", "backup", "restore", "reembed"),
        *("import", "export", "ingest", "verbs", "hook"),
    )
)

# The command of a group that runs if none is given: the first of these names that the group has, with exceptions.
DEFAULT_NAMES = ("list", "show")
DEFAULT_COMMANDS = {"hook": "run", "mcp": "serve"}

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
