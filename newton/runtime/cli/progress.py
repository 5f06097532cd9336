"""Printing of the progress of a turn and of compactions on the status line of the terminal."""

from newton.agent.loop.turn_status import ProgressEvent, TasksChanged, TurnStatus
from newton.dialogue.compaction.progress_events import (
    CompactionCompleted,
    CompactionFailed,
    CompactionProgressed,
    CompactionStarted,
)
from newton.operations.conversations.task_records import draw_changes
from newton.runtime.cli import formatting
from newton.runtime.cli.status_line import end_line, is_interactive, print_status

# The effect of each compaction strategy.
STRATEGY_MESSAGES = {
    "mask_outputs": "old tool outputs were omitted",
    "tool_calls": "older tool calls were summarized",
    "threshold": "the oldest turns were summarized",
    "goal_batch": "finished turns were summarized together",
    "goal_merge": "older summaries were merged",
}


def print_progress(event: ProgressEvent) -> None:
    """Print the tasks that the model has changed. If standard error is a terminal, print what a turn waits for, and the
    progress of a compaction; that text is replaced by the next one, and `print_status` with an empty text removes it.
    """
    if isinstance(event, TasksChanged):
        print_status("")
        end_line()
        formatting.print_notice("\n".join(draw_changes(event.tree)))
        return
    if not is_interactive():
        return
    match event:
        case TurnStatus():
            print_status(event.text)
        case CompactionStarted():
            print_status(f"Compacting the conversation: {event.current:,} of {event.max:,} tokens …")
        case CompactionProgressed():
            print_status(f"Compacting the conversation: {event.processed / event.total:.0%}")
        case CompactionCompleted():
            effect = STRATEGY_MESSAGES.get(event.strategy, "older messages were summarized")
            full = " Nothing more can be compacted." if event.exhausted else ""
            print_status("")
            formatting.print_notice(
                f"(Compacted: {effect}; {event.saved:,} tokens saved, {event.new_count:,} remain.{full})"
            )
        case CompactionFailed():
            print_status("")
            formatting.print_notice(f"(Compaction failed: {event.error.rstrip('.')}.)")
