"""Check one output against a JSON schema, in a process that can be killed.

Reads {"schema": …, "output": …} and writes {"messages": […]}, or {"problem": …} when the schema
itself cannot be used. It imports very little, because it is started for a single check.
"""

import json
import sys
from itertools import islice
from typing import Any

MAX_MESSAGES = 20
MAX_MESSAGE = 300
# The size limit of a compiled pattern: a short pattern can expand to a huge one.
PATTERN_BYTES = 2 * 1024 * 1024


def compiled(schema: Any) -> Any:
    """Return a validator without external references, whose patterns run in linear time."""
    import jsonschema_rs

    def refuse(uri: str) -> Any:
        raise ValueError(f"{uri} is not part of the schema")

    return jsonschema_rs.validator_for(
        schema,
        retriever=refuse,
        pattern_options=jsonschema_rs.RegexOptions(size_limit=PATTERN_BYTES),
    )


def messages_of(validator: Any, output: Any) -> list[str]:
    """Return the first few errors of an output, each with its place."""
    return [
        f"{_place(error.instance_path)}: {shortened(error.message)}"
        for error in islice(validator.iter_errors(output), MAX_MESSAGES)
    ]


def shortened(text: str) -> str:
    """Shorten a message in the middle: it begins with the value and ends with the error."""
    if len(text) <= MAX_MESSAGE:
        return text
    return f"{text[: MAX_MESSAGE // 3]} … {text[-MAX_MESSAGE // 2 :]}"


def _place(path: Any) -> str:
    return "output" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def main() -> None:
    """Read the request, check the output and print the result."""
    given = json.loads(sys.stdin.buffer.read())
    try:
        validator = compiled(given["schema"])
    except ValueError as error:
        answer: dict[str, Any] = {"problem": shortened(str(error).partition("\n\n")[0])}
    else:
        answer = {"messages": messages_of(validator, given["output"])}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
