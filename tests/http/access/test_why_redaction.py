"""A reason of `why` is hidden from restricted tokens until it is opened."""

from typing import Any

import pytest

from treadle.api.why import REASONS, redact


def reason(code: str, **detail: object) -> dict[str, Any]:
    return {"reason": code, "sentence": "it waits for secret", "until": None, "detail": detail}


def test_a_reason_that_is_not_opened_shows_only_its_code() -> None:
    found = redact(reason("brand_new", tasks=[{"id": "1"}], name="secret"), {"1"})

    assert found == {
        "reason": "brand_new",
        "sentence": "waiting: brand_new",
        "until": None,
        "detail": {},
    }


@pytest.mark.parametrize("code", REASONS)
def test_a_detail_that_is_not_opened_is_hidden_with_the_sentence(code: str) -> None:
    known = dict.fromkeys(REASONS[code].details - {"tasks"}, 1)

    found = redact(reason(code, **known, brand_new="secret"), set())

    assert "secret" not in str(found)
    assert found["detail"] == known


def test_a_task_out_of_reach_is_not_named() -> None:
    tasks = [{"id": "1", "name": "secret"}, {"id": "2", "name": "mine"}]
    found = redact(reason("dependencies", open=2, all=3, tasks=tasks), {"2"})

    assert found["sentence"] == "waiting for 2 of 3 dependencies"
    assert found["detail"] == {"open": 2, "all": 3, "tasks": tasks[1:]}


def test_a_reason_whose_tasks_are_all_visible_is_shown_completely() -> None:
    whole = reason("dependencies", open=1, all=1, tasks=[{"id": "1", "name": "mine"}])

    assert redact(whole, {"1"}) == whole
