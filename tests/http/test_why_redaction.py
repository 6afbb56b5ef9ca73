"""A reason of `why` that nobody opened for restricted tokens shows nothing of other tasks."""

from treadle.api.access import _narrowed


def test_an_unknown_reason_with_tasks_out_of_reach_shows_its_code_only() -> None:
    reason = {
        "reason": "brand_new",
        "sentence": "waiting for secret plan",
        "until": None,
        "detail": {"tasks": [{"id": "1", "name": "secret plan"}], "name": "secret plan"},
    }

    assert _narrowed(reason, {"1"}) == reason
    assert _narrowed(reason, set()) == {
        "reason": "brand_new",
        "sentence": "waiting: brand_new",
        "until": None,
        "detail": {"tasks": []},
    }
