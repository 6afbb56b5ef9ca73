"""A reader continues after an event by its number, or by a place."""

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused
from tests.drivers.triggers import emit


def place(driver: Driver, after: str | None) -> str:
    [(found,)] = driver.rows("select treadle.event_cursor(%s)", after)
    return str(found)


def read_after(driver: Driver, after: str) -> list[int]:
    rows = driver.rows("select wanted, id from treadle.read_events(%s)", place(driver, after))
    return [row[1] for row in rows if row[0]]


def test_the_number_of_an_event_leads_to_what_comes_after_it(driver: Driver) -> None:
    first, second, third = (emit(driver, key=key) for key in "abc")

    assert read_after(driver, str(first)) == [second, third]
    assert read_after(driver, str(third)) == []
    assert read_after(driver, "0") == [first, second, third]
    assert place(driver, "000") == "0.0"


def test_a_plain_number_is_not_a_place_in_the_order_of_events(driver: Driver) -> None:
    slow = driver.another()
    slow.rows("begin")
    slow.rows("select pg_current_xact_id()")
    first = emit(driver, key="a")
    second = emit(slow, key="b")
    slow.rows("commit")

    # The higher number is read first: its reader has not read the lower one.
    assert read_after(driver, "0") == [second, first]
    assert read_after(driver, str(second)) == [first]
    assert read_after(driver, str(first)) == []


def test_a_place_is_one_already(driver: Driver) -> None:
    emit(driver)
    [(reached,)] = driver.rows(
        "select place from treadle.read_events('0.0') order by id desc limit 1"
    )
    [(now,)] = driver.rows("select place from treadle.read_events(null)")

    assert place(driver, reached) == reached
    assert place(driver, now) == now


def test_an_invalid_place_is_rejected(driver: Driver) -> None:
    emit(driver)
    for wrong in ("", "x", "-1", "1.2.3", "1.", ".1", " 1", "1e3", "9" * 19, "9" * 19 + ".1", None):
        with refused("TR001"):
            place(driver, wrong)
    with refused("TR001", "there is no event 999"):
        place(driver, "999")
