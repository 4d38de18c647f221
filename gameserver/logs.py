"""Logs as one JSON object a line, from our own loggers and every library's."""

import logging
import logging.config

import structlog
from prometheus_client import Counter

ERRORS = Counter("logged_errors_total", "Log records of level error and above")


def configure_logs(level: str) -> None:
    """Send structlog and the standard library's logging to stderr as JSON lines."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "json": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "foreign_pre_chain": shared,
                    "processors": [
                        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                        # Plain text: the structured one carries local variables, so passwords.
                        structlog.processors.format_exc_info,
                        structlog.processors.JSONRenderer(),
                    ],
                }
            },
            "handlers": {
                "stderr": {"class": "logging.StreamHandler", "formatter": "json"},
                "count": {"()": _ErrorCounter, "level": "ERROR"},
            },
            "root": {"handlers": ["stderr", "count"], "level": level},
            "loggers": {
                # One line a request would cost more than many requests do; /metrics counts them.
                "uvicorn.access": {"level": "WARNING"},
                # A client's mistake is answered, not logged.
                "django.request": {"level": "ERROR"},
                "botocore": {"level": "WARNING"},
                "pynamodb": {"level": "WARNING"},
            },
        }
    )


class _ErrorCounter(logging.Handler):
    """Count errors for the dashboard; whatever logs one, it passes here."""

    def emit(self, record: logging.LogRecord) -> None:
        ERRORS.inc()
