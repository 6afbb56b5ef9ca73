"""The root of all errors, and how they are found by SQLSTATE."""

import re
from typing import ClassVar

from treadle.errors.masking import mask_detail, mask_text


class TreadleError(Exception):
    """Base class: catches everything treadle raises on purpose."""

    sqlstate: ClassVar[str | None] = None
    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500
    # For programs: the name of the class in kebab case, where it says nothing else.
    code: ClassVar[str] = "error"

    def __init_subclass__(cls) -> None:
        if "code" not in cls.__dict__:
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()

    def __init__(self, message: str, *, hint: str | None = None, **detail: object) -> None:
        # Errors reach clients and logs.
        super().__init__(mask_text(message))
        self.hint = None if hint is None else mask_text(hint)
        self.detail: dict[str, object] = {
            name: mask_detail(value) for name, value in detail.items()
        }


def by_sqlstate() -> dict[str, type[TreadleError]]:
    """Map each SQLSTATE of the taxonomy to its class."""
    found: dict[str, type[TreadleError]] = {}
    waiting = [TreadleError]
    while waiting:
        cls = waiting.pop()
        waiting.extend(cls.__subclasses__())
        if cls.sqlstate is not None:
            found[cls.sqlstate] = cls
    return found
