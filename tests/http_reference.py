"""Write the tables of docs/reference/http-api.md from the OpenAPI document.

`python tests/http_reference.py` replaces what is between the marks of each tag.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from treadle import Treadle
from treadle.api.app import make_app

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "http-api.md"
MARKS = re.compile(r"(?s)<!-- begin: (.*?) -->\n.*?<!-- end -->")
# A body with more fields has a page of its own.
MOST_FIELDS = 14
# The section about pages explains them.
PAGING = {"limit", "cursor"}


def document() -> dict[str, Any]:
    """The OpenAPI document of the server."""
    return make_app(Treadle("postgresql://nowhere/nothing")).openapi()


def write(page: str, shown: dict[str, Any]) -> str:
    """The text of the page with new tables."""

    def table(found: re.Match[str]) -> str:
        rows = [
            row(shown, method, path, operation)
            for path, operations in shown["paths"].items()
            for method, operation in operations.items()
            if operation["tags"] == [found[1]]
        ]
        head = ["| request | scope | what it does |", "|---|---|---|"]
        return "\n".join([f"<!-- begin: {found[1]} -->", *head, *rows, "<!-- end -->"])

    return MARKS.sub(table, page)


def row(shown: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> str:
    """A line of a table."""
    [needed] = operation.get("security", [{"token": ["none"]}])
    text = " ".join(f"{operation['summary']}. {operation['description']}".split())
    if given := list(parameters(shown, operation)):
        text += f" Parameters: {', '.join(f'`{name}`' for name in given)}."
    return f"| `{method.upper()} {path}` | {needed['token'][0]} | {text} |"


def parameters(shown: dict[str, Any], operation: dict[str, Any]) -> Iterator[str]:
    """The names of the query parameters and of the fields of the body."""
    for each in operation.get("parameters", []):
        if each["in"] == "query" and each["name"] not in PAGING:
            yield each["name"]
    for content in operation.get("requestBody", {}).get("content", {}).values():
        schema = content["schema"]
        place = schema.get("anyOf", [schema])[0].get("$ref", "").rpartition("/")[2]
        fields = shown["components"]["schemas"].get(place, {}).get("properties", {})
        if len(fields) <= MOST_FIELDS:
            yield from fields


if __name__ == "__main__":
    PAGE.write_text(write(PAGE.read_text(encoding="utf-8"), document()), encoding="utf-8")
