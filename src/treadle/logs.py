"""Structured logs: JSON lines, or coloured text on a terminal.

An event is a dotted name with fields, such as `task.claimed`, not a sentence.
"""

import logging
import sys
from typing import Literal

import structlog

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure_logging(
    log_format: Literal["auto", "json", "console"] = "auto", level: str = "info"
) -> None:
    """Set up structlog for this process; logs go to stderr."""
    as_json = log_format == "json" or (log_format == "auto" and not sys.stderr.isatty())
    # Seconds of the local time are enough on a terminal.
    times = ("iso", True) if as_json else ("%H:%M:%S", False)
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt=times[0], utc=times[1], key="ts"),
        structlog.processors.StackInfoRenderer(),
    ]
    renderer: list[structlog.typing.Processor]
    if as_json:
        renderer = [
            structlog.processors.format_exc_info,
            _event_first,
            structlog.processors.JSONRenderer(),
        ]
    else:
        # Plain tracebacks: the values of variables could be payloads.
        plain = structlog.dev.plain_traceback
        renderer = [
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(),
                exception_formatter=plain,
                timestamp_key="ts",
                sort_keys=False,
            )
        ]
    structlog.configure(
        processors=[*shared, *renderer],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    _adopt_stdlib([*shared, structlog.stdlib.add_logger_name], renderer, level)


def _event_first(
    logger: object, name: str, fields: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    first = {key: fields.pop(key) for key in ("event", "level", "ts") if key in fields}
    return {**first, **fields}


def _adopt_stdlib(
    shared: list[structlog.typing.Processor],
    renderer: list[structlog.typing.Processor],
    level: str,
) -> None:
    """Format the logs of the standard library module in the same way."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    root = logging.getLogger()
    for old in list(root.handlers):
        if isinstance(old.formatter, structlog.stdlib.ProcessorFormatter):
            root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(_LEVELS[level])
    # psycopg logs each failed connection; treadle logs it once.
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)
