"""`treadle projects`, and the priority options of `treadle tasks enqueue`."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.drivers.commands import Cli

pytestmark = pytest.mark.requirement("R9")


@pytest.mark.requirement("B6")
def test_a_project_is_defined_and_listed_with_its_load(cli: Cli) -> None:
    made = cli("projects", "create", "site", "--share", "3", "--external-ref", "S-1").out.strip()

    assert cli("projects", "update", "site", "--json").json == {
        "id": made,
        "name": "site",
        "status": "updated",
    }
    cli("tasks", "enqueue", "code", "--project", "site")

    [project] = cli("projects", "list", "--json").json["items"]
    assert (project["id"], project["name"], project["external_ref"]) == (made, "site", "S-1")
    assert float(project["share"]) == 3
    assert (project["ready"], project["running"]) == (1, 0)


def test_a_share_that_cannot_be_is_refused(still: Cli) -> None:
    refused = still("projects", "update", "site", "--share", "0")

    assert refused.code == 2
    assert "share" in refused.err


@pytest.mark.parametrize(
    ("option", "priority"),
    [(("--urgency", "8"), 25), (("--tier", "low"), 70), (("--priority", "3"), 3)],
)
def test_a_priority_can_be_said_in_three_ways(
    option: tuple[str, str], priority: int, cli: Cli
) -> None:
    task = cli("tasks", "enqueue", "code", *option).out.strip()

    assert cli("tasks", "show", task, "--json").json["priority"] == priority


def test_a_deadline_is_a_moment_or_a_time_from_now(cli: Cli) -> None:
    for text, wanted in (
        ("2h", datetime.now(tz=UTC) + timedelta(hours=2)),
        ("90m", datetime.now(tz=UTC) + timedelta(minutes=90)),
        ("2030-01-31T17:00+01:00", datetime(2030, 1, 31, 16, tzinfo=UTC)),
    ):
        task = cli("tasks", "enqueue", "code", "--deadline", text).out.strip()

        shown = datetime.fromisoformat(cli("tasks", "show", task, "--json").json["deadline_at"])
        assert abs(shown - wanted) < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--deadline", "soon"), 2, "deadline_at is not a time: 'soon'"),
        (("--deadline", "2030-01-31T17:00"), 2, "with its zone"),
        (("--run-at", "soon"), 2, "run_at is not a time: 'soon'"),
        (("--run-at", "2h", "--delay", "60"), 2, "cannot be combined"),
        (("--urgency", "11"), 2, "urgency must be a whole number from 1 to 10"),
        (("--tier", "urgent"), 2, "tier must be critical or high"),
        (("--tier", "low", "--priority", "3"), 2, "cannot be combined"),
        (("--project", "nobody"), 3, "there is no project 'nobody'"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(
    arguments: tuple[str, ...], code: int, said: str, still: Cli
) -> None:
    refused = still("tasks", "enqueue", "code", *arguments)

    assert refused.code == code
    assert said in refused.err
    assert still("tasks", "list", "--json").json == {"items": []}
