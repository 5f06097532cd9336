"""Entry point of `python -m bench`. Each benchmark is a command with options of its own."""

import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from newton.errors import NewtonError
from newton.runtime.cli.app import HELP_DEFAULTS, report_error
from newton.runtime.error_status import EXIT_INTERRUPTED, EXIT_OK

COMMANDS = {
    "recall": (
        "bench.recall:run_benchmark",
        "Measure how often the memories that answer a question reach its context.",
    ),
    "everyday": (
        "bench.everyday:run_benchmark",
        "Measure whether everyday statements are found in other words, and superseded rightly.",
    ),
    "told": (
        "bench.told:run_benchmark",
        "Measure whether what people type is understood as they mean it: facts, corrections, changes, wills.",
    ),
    "lives": (
        "bench.lives:run_benchmark",
        "Measure what is known and shown of people who tell of their life for weeks.",
    ),
    "needs": (
        "bench.needs:run_benchmark",
        "Measure whether contexts have what a careful colleague would bring, and how much they have besides.",
    ),
    "languages": (
        "bench.languages:run_benchmark",
        "Measure whether the same questions find their evidence in ten languages.",
    ),
    "leaderboard": (
        "bench.leaderboard.command:run_benchmark",
        "Measure Newton, plain baselines and other memory libraries on public data sets, and write one page.",
    ),
    "receipt": (
        "bench.leaderboard.receipt_check:check_receipt",
        "Ask one question of the leaderboard again, and compare its contexts with the stored receipts.",
    ),
    "context": ("bench.context:run_benchmark", "Measure the latency of contexts, compared with plain searches."),
    "sessions": ("bench.sessions:run_benchmark", "Measure how often the context of a session is rebuilt."),
    "http": ("bench.http:run_benchmark", "Measure the overhead of HTTP and the load limit of a daemon."),
    "soak": ("bench.soak:run_benchmark", "Run the scheduled jobs of a day within minutes."),
}


def run(argv: Sequence[str]) -> int:
    """Run a command line and return its exit status: 0 (success), 1 (failure), 2 (rejected input) or 130 (Ctrl-C)."""
    app = App(name="bench", help="Benchmarks of Newton.", default_parameter=HELP_DEFAULTS)
    for name, (function, description) in COMMANDS.items():
        app.command(function, name=name, help=None if name in argv[:1] else description)
    try:
        app(argv, exit_on_error=False, print_error=False, help_on_error=False, result_action="return_value")
    except (CycloptsError, NewtonError) as error:
        return report_error(error, argv)
    except (KeyboardInterrupt, EOFError):
        return EXIT_INTERRUPTED
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
