"""Cycles are rejected for every kind of edge, also when two sessions would close one together."""

import itertools

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.dag_faults import faults
from tests.drivers.dag_races import TIMES, Call, Case, claimed, finish, race
from tests.drivers.dags import add, create, depend, node, opened, shaped, spawn, start, suspend
from tests.drivers.engine import Driver, Record
from tests.drivers.races import while_held
from tests.drivers.refusals import refused, unchanged

pytestmark = pytest.mark.requirement("F6")


def output_of(name: str) -> Record:
    return {"inputs": {"given": f"task:{name}:output"}}


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ([node("a", ["a"])], "wait for each other: a -> a$"),
        ([node("a", ["b"]), node("b", ["a"])], "a -> b -> a$"),
        ([node("a", [{"task": "b", "optional": True}]), node("b", ["a"])], "a -> b -> a$"),
        ([node("a", **output_of("b")), node("b", ["a"])], "a -> b -> a$"),
        ([node("a", **output_of("a"))], "a -> a$"),
        ([node("free"), node("a", ["c", "free"]), node("b", ["a"]), node("c", ["b"])], "a -> c ->"),
        (
            # Those that only wait for the circle are not part of it.
            [node("late", ["a"]), node("a", ["b"]), node("b", ["a"]), node("first")],
            "wait for each other: [ab] -> [ab] -> [ab]$",
        ),
    ],
)
def test_a_circle_in_a_new_dag_is_refused_and_named(
    driver: Driver, tasks: list[Record], words: str
) -> None:
    with unchanged(driver), refused("TR103", f"(?m){words}"):
        create(driver, tasks)

    graph = create(driver, [node("old")])
    query = "select treadle.add_tasks(%s, %s)"
    with unchanged(driver), refused("TR103", f"(?m){words}"):
        driver.rows(query, graph.id, Jsonb(tasks))


def test_a_long_circle_is_found_and_named_by_its_beginning(driver: Driver) -> None:
    size = 500
    tasks = [node(f"t{place}", [f"t{(place + 1) % size}"]) for place in range(size)]

    with unchanged(driver), refused("TR103", "t0 -> t1 -> t2 -> .* -> t19"):
        create(driver, tasks)


def test_a_long_chain_in_reverse_order_is_not_a_cycle(driver: Driver) -> None:
    size = 2000
    tasks = [node(f"t{place}", [f"t{place + 1}"]) for place in range(size)]

    graph = create(driver, [*tasks, node(f"t{size}")])

    assert graph.ready() == {f"t{size}"}
    with refused("TR103"):
        depend(driver, graph[f"t{size}"], graph["t0"])


@pytest.mark.parametrize("optional", [False, True])
def test_a_dependency_that_closes_a_circle_is_refused(driver: Driver, optional: bool) -> None:
    graph = shaped(driver, {"a": [], "b": ["a"], "c": ["b"], "d": ["b", "c"]})

    for task, needed in [("a", "a"), ("d", "d"), ("a", "b"), ("a", "d"), ("b", "d")]:
        with unchanged(driver), refused("TR103", "cannot depend on"):
            depend(driver, graph[task], graph[needed], optional=optional)
    assert depend(driver, graph["d"], graph["a"], optional=optional)


def test_a_circle_over_two_dags_and_a_task_without_one_is_refused(driver: Driver) -> None:
    alone = driver.enqueue()
    first = create(driver, [node("a", [str(alone)])])
    second = create(driver, [node("b", [str(first["a"])]), node("c", ["b"])])

    with unchanged(driver), refused("TR103", "cannot depend on"):
        depend(driver, alone, second["c"])


def test_in_an_open_dag_a_circle_is_refused_before_it_starts(driver: Driver) -> None:
    graph = opened(driver)
    add(graph, node("a"))
    add(graph, node("b", ["a"]))

    with unchanged(driver), refused("TR103"):
        depend(driver, graph["a"], graph["b"])

    assert start(graph) == 2
    assert graph.ready() == {"a"}


def test_a_dependency_that_was_met_closes_no_circle(driver: Driver) -> None:
    graph = shaped(driver, {"a": [], "b": ["a"], "c": []})
    graph.complete("a")

    assert depend(driver, graph["c"], graph["b"])
    assert depend(driver, graph["b"], graph["a"]) is False
    assert graph.ready() == {"b"}


@pytest.mark.parametrize("deep", [False, True])
def test_a_task_cannot_wait_for_a_subtask_that_waits_for_it(driver: Driver, deep: bool) -> None:
    graph = shaped(driver, {"p": []})
    parent = graph.claim("p")
    [first, second] = spawn(driver, parent, [node("x", ["p"]), node("y", ["x"])])

    with unchanged(driver), refused("TR103", "which waits for it"):
        suspend(driver, parent, [second if deep else first])
    with unchanged(driver), refused("TR103", "itself"):
        suspend(driver, parent, [parent.id])

    assert driver.complete(parent) == "completed"
    assert graph.states() == {"p": "completed", "x": "ready", "y": "pending"}


def edge(task: str, needed: str) -> Call:
    return lambda session, case: depend(session, case[task], case[needed])


def waiting(task: str, needed: str) -> Call:
    def call(session: Driver, case: Case) -> str:
        [child] = spawn(session, case.claims[task], [node(f"of-{task}", [needed])])
        return suspend(session, case.claims[task], [child])

    return call


def tail(name: str) -> dict[str, list[str]]:
    """A chain behind a task that is longer than the cap of the critical path."""
    names = [name, *(f"{name}{number}" for number in range(30))]
    return {later: [sooner] for sooner, later in itertools.pairwise(names)}


# Edges that exist, what is claimed, and the two calls that close a circle together.
TOGETHER: dict[str, tuple[dict[str, list[str]], Call, Call]] = {
    "two tasks": ({"x": [], "y": []}, edge("x", "y"), edge("y", "x")),
    # b waits for a and d for c; no task is locked by both.
    "two pairs": (
        {"a": [], "b": ["a"], "c": [], "d": ["c"], **tail("b"), **tail("d")},
        edge("a", "d"),
        edge("c", "b"),
    ),
    "three pairs": (
        {"a": [], "b": ["a"], "c": [], "d": ["c"], "e": ["d"], "f": ["b"]},
        edge("a", "e"),
        edge("c", "f"),
    ),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_of_two_edges_that_close_a_circle_together_one_is_refused(
    driver: Driver, name: str
) -> None:
    edges, first, second = TOGETHER[name]
    made = [Case(shaped(driver, edges), {}) for _ in range(TIMES)]

    said = race(driver, made, first, second)

    assert set(said) <= {(True, "TR103"), ("TR103", True)}
    finish(driver)


@pytest.mark.parametrize("name", TOGETHER)
def test_the_second_edge_waits_for_the_first_and_is_refused(driver: Driver, name: str) -> None:
    edges, first, second = TOGETHER[name]
    case = Case(shaped(driver, edges), {})

    with refused("TR103"):
        while_held(driver, lambda held: first(held, case), lambda late: second(late, case))

    assert faults(driver) == []
    finish(driver)


def test_of_two_tasks_that_begin_to_wait_for_each_other_one_is_refused(driver: Driver) -> None:
    made = claimed(driver, [shaped(driver, {"p": [], "q": []}) for _ in range(TIMES)])

    said = race(driver, made, waiting("p", "q"), waiting("q", "p"))

    assert set(said) <= {("pending", "TR103"), ("TR103", "pending")}
    for case, answer in zip(made, said, strict=True):
        refused_one = case.claims["p" if answer[0] == "TR103" else "q"]
        assert driver.complete(refused_one) == "completed"
    finish(driver)
