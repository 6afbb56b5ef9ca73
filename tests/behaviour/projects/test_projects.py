"""Projects are identified by id, and by a unique name."""

from uuid import UUID

import pytest

from tests.drivers.engine import Driver
from tests.drivers.races import while_held

pytestmark = pytest.mark.requirement("W1")
LONGEST = "é" * 200


def create(driver: Driver, name: str) -> UUID:
    made: UUID = driver.value("select treadle.create_project(%s)", name)
    return made


def change(driver: Driver, project: UUID, changes: str) -> None:
    driver.rows("select treadle.update_project(%s, %s)", project, changes)


def names(driver: Driver, project: UUID) -> tuple[str, str]:
    [(name, label)] = driver.rows(
        "select name, label from treadle.project_list where id = %s", project
    )
    return name, label


def numbered(name: str, project: UUID) -> tuple[str, str]:
    return f"{name} #{str(project)[-8:]}", name


@pytest.mark.parametrize("name", ["A", LONGEST])
def test_the_second_of_two_that_are_called_alike_has_a_number(driver: Driver, name: str) -> None:
    first, second, third = (create(driver, name) for _ in range(3))

    assert names(driver, first) == (name, name)
    assert names(driver, second) == numbered(name, second)
    assert names(driver, third) == numbered(name, third)


def test_two_concurrent_creations_make_two_projects(fresh: Driver) -> None:
    late = while_held(fresh, lambda first: create(first, "A"), lambda second: create(second, "A"))

    assert names(fresh, late) == numbered("A", late)


def test_a_project_may_be_called_like_another_later(driver: Driver) -> None:
    first, second = create(driver, "A"), create(driver, "B")

    change(driver, second, '{"name": "A"}')
    assert names(driver, second) == numbered("A", second)

    change(driver, first, '{"name": "C"}')
    assert names(driver, second) == numbered("A", second)
    change(driver, second, '{"name": "B"}')
    assert names(driver, second) == ("B", "B")


def test_an_empty_change_changes_nothing(driver: Driver) -> None:
    create(driver, "A")
    second = create(driver, "A")
    look = "select xmin::text, updated_at from treadle.projects where id = %s"
    before = driver.rows(look, second)

    change(driver, second, '{"name": "A", "external_ref": null}')
    change(driver, second, "{}")

    assert driver.rows(look, second) == before


def test_concurrent_changes_of_a_project_do_not_undo_each_other(fresh: Driver) -> None:
    project = create(fresh, "A")

    while_held(
        fresh,
        lambda first: change(first, project, '{"external_ref": "x"}'),
        lambda late: change(late, project, '{"name": "B"}'),
    )

    found = fresh.rows("select name, external_ref from treadle.projects where id = %s", project)
    assert found == [("B", "x")]


def test_options_find_a_project_by_its_unique_name(driver: Driver) -> None:
    first, second = create(driver, "A"), create(driver, "A")

    tasks = [driver.enqueue(project=names(driver, each)[0]) for each in (first, second)]

    assert [driver.task(each)["project_id"] for each in tasks] == [first, second]
