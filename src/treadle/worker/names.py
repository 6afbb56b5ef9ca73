"""Names under which a task remembers: those of steps are checked, those of waits are made."""

import hashlib
from collections.abc import Container

from treadle.errors import InvalidArgument
from treadle.json import clean_text

MAX_BYTES = 200
KINDS = ("ask", "event", "spawn", "sleep")


def check_step_name(name: object) -> None:
    """Raise InvalidArgument for what cannot name a step."""
    problem = hint = None
    if not isinstance(name, str) or not name or clean_text(name) != name:
        problem = f"{name!r} cannot name a step"
        hint = "Give the step a name first, then the function: ctx.step('fetch', fetch, url)"
    elif len(name.encode()) > MAX_BYTES:
        problem = f"the name of a step has at most {MAX_BYTES} bytes, this has {len(name.encode())}"
        hint = "Choose a short name; pass step_key= for what it depends on."
    elif name.startswith(tuple(f"{kind}:" for kind in KINDS)):
        problem = f"the name of a step cannot begin with {name.partition(':')[0]}:"
        hint = "Waits, subtasks and sleeps have names like that."
    if problem is not None:
        raise InvalidArgument(problem, hint=hint, argument="name")


def numbered(kind: str, text: str, used: Container[str]) -> str:
    """`kind:text`, with a number from the second use on: one answer never serves two questions."""
    base = fit(f"{kind}:{' '.join(clean_text(text).split())}", MAX_BYTES - 8)
    name, number = base, 1
    while name in used:
        number += 1
        name = f"{base}#{number}"
    return name


def fit(text: str, limit: int = MAX_BYTES) -> str:
    """The text in at most so many bytes; what is cut off is told apart by its hash."""
    whole = text.encode()
    if len(whole) <= limit:
        return text
    mark = f"~{hashlib.sha256(whole).hexdigest()[:12]}"
    return whole[: limit - len(mark)].decode(errors="ignore") + mark
