"""Structured logging of the daemon: one event per line, without text of users."""

import logging
import sys
from typing import Literal, cast

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

LogFormat = Literal["json", "plain"]

# Fields of records of the standard library's logging: of `newton.fault_isolation`, and of calls of models.
LOG_FIELDS = ("part", "error", "at", "purpose", "model", "failure", "failed_calls", "left_out")


def configure(log_format: LogFormat) -> None:
    """Write all logs, including those of libraries, to standard error: JSON lines, or readable text for `plain`."""
    is_json = log_format == "json"
    renderer = structlog.processors.JSONRenderer() if is_json else structlog.dev.ConsoleRenderer(colors=False)
    processors: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _drop_exception_text,
    ]
    structlog.configure(
        processors=[*processors, renderer],
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    last: list[Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer]
    fields = structlog.stdlib.ExtraAdder(allow=LOG_FIELDS)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=[fields, *processors], processors=last))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
    # uvicorn would log an unexpected exception a second time
    logging.getLogger("uvicorn.error").addFilter(lambda record: record.exc_info is None)


def log_message(text: str) -> None:
    """Log a text at the level info, without other fields."""
    structlog.get_logger("newton").info(text)


def _drop_exception_text(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Replace the exception of a log event by its type name, because its message may quote text of a user."""
    exc_info = event.pop("exc_info", None)
    if isinstance(exc_info, tuple):
        error_type, *_ = cast("tuple[type[BaseException], ...]", exc_info)
        event["error"] = error_type.__name__
    return event
