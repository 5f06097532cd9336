"""What the daemon says of itself: events with names and ids, a line each, and nothing that anybody said."""

import logging
import sys
from typing import Literal

import structlog

Format = Literal["json", "plain"]


def configure(form: Format) -> None:
    """Everything goes to standard error, as JSON or as a person reads it."""
    shown = structlog.processors.JSONRenderer() if form == "json" else structlog.dev.ConsoleRenderer(colors=False)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            shown,
        ],
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )
    # of an unexpected failure the server would print the message, which may quote what somebody said
    logging.getLogger("uvicorn.error").addFilter(_without_words)


def _without_words(record: logging.LogRecord) -> bool:
    return record.exc_info is None
