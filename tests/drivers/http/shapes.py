"""Validate answers with the models of the OpenAPI document."""

from typing import Any

import httpx2
from pydantic import BaseModel


def shaped(model: type[BaseModel], answer: httpx2.Response, status: int = 200) -> dict[str, Any]:
    """The body of an answer, which has the fields of its model and no others."""
    assert answer.status_code == status, answer.text
    return _looked_at(model, answer.json())


def listed(model: type[BaseModel], answer: httpx2.Response) -> list[dict[str, Any]]:
    """The items of a page."""
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert set(body) == {"items", "next_cursor"}
    return [_looked_at(model, item) for item in body["items"]]


def walked(http: httpx2.Client, path: str, **params: Any) -> list[dict[str, Any]]:
    """All items of a list, one on each page, by its cursors."""
    items: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        given = {**params, "limit": 1} | ({} if cursor is None else {"cursor": cursor})
        body = http.get(path, params=given).json()
        assert len(body["items"]) <= 1
        items += body["items"]
        cursor = body["next_cursor"]
        if cursor is None:
            return items


def _looked_at(model: type[BaseModel], item: dict[str, Any]) -> dict[str, Any]:
    model.model_validate(item)
    names = {field.alias or name for name, field in model.model_fields.items()}
    assert not set(item) ^ names
    return item
