"""The commands of `newton bench`: where each is defined, and its help."""

BENCH_COMMANDS = {
    "recall": (
        "newton.bench.recall:run_benchmark",
        "Measure how often the memories that answer a question reach its context.",
    ),
    "unknown": (
        "newton.bench.unknown:run_benchmark",
        "Count the memories in contexts of questions that no memory answers.",
    ),
    "everyday": (
        "newton.bench.everyday:run_benchmark",
        "Measure whether everyday statements are found in other words, and superseded rightly.",
    ),
    "languages": (
        "newton.bench.trials.languages:run_benchmark",
        "Measure whether the same questions find their evidence in ten languages.",
    ),
    "detail": (
        "newton.bench.detail:run_benchmark",
        "Measure how often a context contains the sentence of a long text that answers.",
    ),
    "artifacts": (
        "newton.bench.artifacts:run_benchmark",
        "Measure how often a line of a long tool output or pasted text is found again.",
    ),
    "leaderboard": (
        "newton.bench.leaderboard.command:run_benchmark",
        "Measure Newton, plain baselines and other memory libraries on public data sets, and write one page.",
    ),
    "receipt": (
        "newton.bench.leaderboard.receipt_check:check_receipt",
        "Ask one question of the leaderboard again, and compare its contexts with the stored receipts.",
    ),
    "context": ("newton.bench.context:run_benchmark", "Measure the latency of contexts, compared with plain searches."),
    "sessions": (
        "newton.bench.conversations.sessions:run_benchmark",
        "Measure how often the context of a session is rebuilt.",
    ),
    "lifecycle": ("newton.bench.lifecycle:run_benchmark", "Measure the duration of the daily job `lifecycle`."),
    "turns": ("newton.bench.turns:run_benchmark", "Measure the time that a daemon adds to the first token of a reply."),
    "http": ("newton.bench.http:run_benchmark", "Measure the overhead of HTTP and the load limit of a daemon."),
    "decisions": (
        "newton.bench.decisions:run_benchmark",
        "Measure the latency of recording decisions, of guardrails and of calibration.",
    ),
    "prompts": (
        "newton.bench.conversations.prompts:run_benchmark",
        "Measure the size of the records of prompts, compared with the prompts.",
    ),
    "soak": ("newton.bench.soak:run_benchmark", "Run the scheduled jobs of a day within minutes."),
}
