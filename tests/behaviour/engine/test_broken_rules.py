"""A definition that violates a constraint gets an error that names the fields."""

import re

import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged

SCHEDULE = '"cron": "@daily", "task": {"type": "code"}'


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("""define_queue('q', '{"max_depth": 0}')""", "max_depth is not valid"),
        ("""define_queue('Q')""", "name is not valid"),
        (
            """define_queue('q', '{"keep_dead_s": -1}')""",
            "keep_completed_s or keep_cancelled_s or keep_dead_s is not valid",
        ),
        ("""define_type(null)""", "name is missing"),
        (f"""define_schedule('s', '{{{SCHEDULE}, "jitter_s": -1}}')""", "jitter_s is not valid"),
        (f"""define_schedule('a b', '{{{SCHEDULE}}}')""", "name is not valid"),
        ("""define_schedule('s', '{"task": {"type": "code"}}')""", "cron is missing"),
        ("""define_project('p', '{"share": 0}')""", "share is not valid"),
        ("""register_agent('')""", "id is not valid"),
    ],
)
def test_the_columns_are_named_and_no_constraint(driver: Driver, call: str, problem: str) -> None:
    with unchanged(driver), refused("TR001", f"(?m)^[a-z]+ .*: .*{re.escape(problem)}$"):
        driver.rows(f"select treadle.{call}")


def test_a_schedule_without_a_task_or_dag_is_rejected(driver: Driver) -> None:
    with unchanged(driver), refused("TR001", "a schedule needs a task or a DAG"):
        driver.rows("""select treadle.define_schedule('s', '{"cron": "@daily"}')""")
