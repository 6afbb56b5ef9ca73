"""Drawings of DAGs: every line can be followed from a task to its dependencies."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.cli.dags.graph import ASCII, MARK, Edge, Row, draw

ACROSS, DOWN = "─╌", "│┊"


def picture(nodes: str, edges: str, *, spaced: bool = False) -> list[str]:
    """The picture of nodes with one letter each; `a-b` is an edge, `a~b` an optional one."""
    found = [Edge(each[0], each[2], each[1] == "~") for each in edges.split()]
    rows = draw(list(nodes), found, spaced=spaced)
    return [row.text + (f" {row.node}" if row.node else "") for row in rows]


class Tracer:
    """Follows lines as eyes do, and knows nothing of how they were made."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._marks = {(at, row.mark): row.node for at, row in enumerate(rows) if row.node}

    def parents(self) -> dict[str, set[str]]:
        """What each node waits for, by the picture."""
        return {node: set(self._begin(*place)) for place, node in self._marks.items() if node}

    def _char(self, row: int, place: int) -> str:
        text = self._rows[row].text if row >= 0 else ""
        return text[place] if 0 <= place < len(text) else " "

    def _begin(self, row: int, place: int) -> Iterator[str]:
        if self._char(row, place - 1) in ACROSS:
            yield from self._left(row, place - 1)
        elif self._char(row - 1, place) in f"{MARK}{DOWN}├┤╭╮":
            yield from self._up(row - 1, place)

    def _up(self, row: int, place: int) -> Iterator[str]:
        char = self._char(row, place)
        if char == MARK:
            yield str(self._marks[row, place])
        elif char in DOWN:
            yield from self._up(row - 1, place)
        elif char == "├":
            yield from self._up(row - 1, place)
            yield from self._right(row, place + 1)
        elif char == "╭":
            yield from self._right(row, place + 1)
        elif char == "┤":
            yield from self._up(row - 1, place)
            yield from self._left(row, place - 1)
        elif char == "╮":
            yield from self._left(row, place - 1)
        else:
            raise AssertionError(f"a line ends at {char!r} in row {row}, column {place}")

    def _left(self, row: int, place: int) -> Iterator[str]:
        while self._char(row, place) in ACROSS + DOWN:
            place -= 1
        char = self._char(row, place)
        if char == MARK:
            yield str(self._marks[row, place])
        elif char in "├╰":
            yield from self._up(row - 1, place)
        else:
            assert char == "╶", f"a line from the right ends at {char!r} in row {row}"

    def _right(self, row: int, place: int) -> Iterator[str]:
        while self._char(row, place) in ACROSS + DOWN:
            place += 1
        char = self._char(row, place)
        if char in "┴╯":
            yield from self._up(row - 1, place)
        if char == "┴":
            yield from self._right(row, place + 1)
        assert char in f"┴╯╮{MARK}", f"a line from the left ends at {char!r} in row {row}"


@st.composite
def graphs(draws: st.DrawFn) -> tuple[list[str], list[Edge]]:
    """Up to 14 nodes with edges from earlier to later ones, in any order of the list."""
    count = draws(st.integers(1, 14))
    names = [f"n{number}" for number in range(count)]
    pairs = [(a, b) for b in range(count) for a in range(b)]
    chosen = draws(st.lists(st.sampled_from(pairs), unique=True, max_size=30)) if pairs else []
    edges = [Edge(names[a], names[b], draws(st.booleans())) for a, b in chosen]
    return draws(st.permutations(names)), edges


@given(graphs(), st.booleans())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_lines_connect_a_task_exactly_to_its_dependencies(
    graph: tuple[list[str], list[Edge]], spaced: bool
) -> None:
    nodes, edges = graph

    rows = draw(nodes, edges, spaced=spaced)

    assert sorted(row.node for row in rows if row.node) == sorted(nodes)
    assert all(row.text[row.mark] == MARK for row in rows if row.node)
    wanted = {node: {edge.source for edge in edges if edge.target == node} for node in nodes}
    assert Tracer(rows).parents() == wanted


@given(graphs())
@settings(max_examples=100, deadline=None, derandomize=True)
def test_a_task_is_drawn_below_its_dependencies(graph: tuple[list[str], list[Edge]]) -> None:
    nodes, edges = graph

    place = {row.node: at for at, row in enumerate(draw(nodes, edges))}

    assert all(place[edge.source] < place[edge.target] for edge in edges)


@given(graphs())
@settings(max_examples=100, deadline=None, derandomize=True)
def test_ascii_is_ascii_and_as_wide(graph: tuple[list[str], list[Edge]]) -> None:
    for row in draw(*graph):
        text = row.text.replace(MARK, "*").translate(ASCII)
        assert text.isascii()
        assert len(text) == len(row.text)


def test_a_landing_page() -> None:
    assert picture("rdsit", "r-s d-s i-t s-t", spaced=True) == [
        "● r",
        "│ ● d",
        "├─╯",
        "● s",
        "│ ● i",
        "├─╯",
        "● t",
    ]


def test_a_diamond() -> None:
    assert picture("abcd", "a-b a-c b-d c-d") == ["● a", "├─●─╮ b", "╰─●─┤ c", "╭───╯", "● d"]


def test_a_chain_is_straight_and_has_air_only_when_asked() -> None:
    assert picture("abc", "a-b b-c") == ["● a", "● b", "● c"]
    assert picture("abc", "a-b b-c", spaced=True) == ["● a", "│", "● b", "│", "● c"]


def test_a_fan_takes_one_row_for_each() -> None:
    parts = "bcdefghijklmnopqrstuvwxyz12345"
    edges = " ".join(f"a-{part} {part}-9" for part in parts)

    shown = picture(f"a{parts}9", edges)

    assert shown[:2] == ["● a", "├─●─╮ b"]
    assert shown[-3:] == ["╰─●─┤ 5", "╭───╯", "● 9"]
    assert len(shown) == 33


def test_an_optional_edge_is_dashed() -> None:
    assert picture("ab", "a~b") == ["● a", "┊", "● b"]
    assert picture("abc", "a~c b-c") == ["● a", "┊ ● b", "┊ │", "├─╯", "● c"]
    assert picture("abcd", "a~b a-c c-d") == ["● a", "├╌● b", "● c", "● d"]


def test_tasks_without_edges_are_drawn_as_a_list() -> None:
    assert picture("ab", "") == ["╶─● a", "╶─● b"]
    assert picture("abcd", "a-b c-d") == ["● a", "● b", "", "● c", "● d"]
    assert picture("abcd", "a-d b-d c-d")[:3] == ["╶─●─╮ a", "╶─●─┤ b", "╶─●─┤ c"]


def test_edges_to_the_outside_are_left_out() -> None:
    assert picture("ab", "x-a a-b b-y") == ["● a", "● b"]


def test_a_circle_is_drawn_somehow() -> None:
    rows = draw(["a", "b", "c"], [Edge("a", "b"), Edge("b", "a"), Edge("b", "c")])

    assert sorted(row.node or "" for row in rows if row.node) == ["a", "b", "c"]


@pytest.mark.parametrize("size", [60, 200])
def test_parallel_chains_share_a_line_where_they_meet(size: int) -> None:
    count = size // 2 - 1
    names = ["s", *(f"{kind}{number}" for number in range(count) for kind in "ab"), "t"]
    edges = []
    for number in range(count):
        ends = ("s", f"a{number}", f"b{number}", "t")
        edges += [Edge(*pair) for pair in pairwise(ends)]

    rows = draw(names, edges)

    assert max(len(row.text) for row in rows) <= 5
