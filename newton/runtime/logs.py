"""Structured logging of the daemon: events with names and ids, one per line, without user text."""

import logging
import sys
from typing import Literal, cast

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

LogFormat = Literal["json", "plain"]


def configure(log_format: LogFormat) -> None:
    """Send all logs, also those of libraries, to standard error as JSON or readable text."""
    shown = structlog.processors.JSONRenderer() if log_format == "json" else structlog.dev.ConsoleRenderer(colors=False)
    known: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _drop_exception_text,
    ]
    structlog.configure(
        processors=[*known, shown],
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )
    library = logging.StreamHandler(sys.stderr)
    last: list[Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta, shown]
    library.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=known, processors=last))
    logging.basicConfig(level=logging.WARNING, handlers=[library], force=True)
    logging.captureWarnings(capture=True)
    # uvicorn would log an unexpected failure a second time
    logging.getLogger("uvicorn.error").addFilter(_has_no_exception)


def log_message(text: str) -> None:
    """Log a sentence."""
    structlog.get_logger("newton").info(text)


def _drop_exception_text(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Replace an exception by its type, because its message may quote user text."""
    raised = event.pop("exc_info", None)
    if isinstance(raised, tuple):
        kind, *_ = cast("tuple[type[BaseException], ...]", raised)
        event["error"] = kind.__name__
    return event


def _has_no_exception(record: logging.LogRecord) -> bool:
    return record.exc_info is None
