"""The database roles of treadle, and sessions that have one of them."""

from tests.drivers.engine import Driver

ROLES = ("treadle_producer", "treadle_worker", "treadle_observer", "treadle_operator")
UNKNOWN_ID = "00000000-0000-7000-8000-000000000000"
A_DAG = '{"name": "x", "tasks": [{"type": "code"}]}'
A_SCHEDULE = """define_schedule('s', '{"cron": "@daily", "task": {"type": "code"}}')"""
A_TRIGGER = """define_trigger('t', '{"on": "x", "task": {"type": "code"}}')"""


def become(driver: Driver, role: str) -> Driver:
    """A session with the rights of a login that has this role only."""
    session = driver.another()
    session.rows(f"set role {role}")
    return session
