"""Draw a DAG with lines, like `git log --graph`, or as a Mermaid flowchart.

A drawing with lines has one row per task, below the rows of its dependencies.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from treadle.cli import output
from treadle.cli.output import Record

MARK = "●"
DOWN, DASHED_DOWN, ACROSS, DASHED_ACROSS, ALONE = "│", "┊", "─", "╌", "╶"
# The corner for its arms: up, down, left, right.
CORNERS = {
    (1, 1, 0, 1): "├", (1, 1, 1, 0): "┤", (1, 1, 1, 1): "┼", (0, 1, 0, 1): "╭",
    (0, 1, 1, 0): "╮", (0, 1, 1, 1): "┬", (1, 0, 0, 1): "╰", (1, 0, 1, 0): "╯",
    (1, 0, 1, 1): "┴", (0, 0, 1, 1): "─", (1, 1, 0, 0): "│",
}  # fmt: skip
ASCII = str.maketrans("│┊─╌╶├┤┼╭╮┬╰╯┴", "|:-. ++++++'''")
# The fill and line colours of each state.
COLOURS = {
    "created": ("#f1f3f5", "#adb5bd"),
    "pending": ("#f1f3f5", "#868e96"),
    "blocked": ("#fff9db", "#f08c00"),
    "ready": ("#e3fafc", "#0c8599"),
    "claimed": ("#d0ebff", "#1971c2"),
    "running": ("#d0ebff", "#1971c2"),
    "validating": ("#d0ebff", "#1971c2"),
    "retrying": ("#fff3bf", "#e67700"),
    "completed": ("#d3f9d8", "#2f9e44"),
    "dead_lettered": ("#ffdeeb", "#c2255c"),
    "cancelled": ("#e9ecef", "#868e96"),
}
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-.,/$")


@dataclass(frozen=True, slots=True)
class Edge:
    """A dependency of the target on the source."""

    source: str
    target: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the drawing; the mark of its node is at column `mark`."""

    text: str
    node: str | None = None
    mark: int = -1

    def ascii(self) -> str:
        """The text for a terminal that only has ASCII."""
        return self.text.translate(ASCII)


@dataclass(slots=True)
class _Block:
    """A node, or several nodes with the same neighbours."""

    nodes: list[str]
    number: int
    parents: dict[int, bool] = field(default_factory=dict)
    children: dict[int, bool] = field(default_factory=dict)


@dataclass(slots=True)
class _Lane:
    """The column of a line, and the blocks it leads to; True marks an optional dependency."""

    column: int
    ahead: dict[int, bool]
    since: int

    @property
    def dashed(self) -> bool:
        return all(self.ahead.values())


def draw(nodes: Sequence[str], edges: Iterable[Edge], *, spaced: bool = False) -> list[Row]:
    """The drawing of a graph; `spaced` adds rows between tasks."""
    known = set(nodes)
    inside = [edge for edge in edges if {edge.source, edge.target} <= known]
    return list(_Drawing(_blocks(nodes, inside), spaced).rows())


def _blocks(nodes: Sequence[str], edges: Iterable[Edge]) -> list[_Block]:
    """Group nodes with the same neighbours."""
    before: dict[str, dict[str, bool]] = {node: {} for node in nodes}
    behind: dict[str, dict[str, bool]] = {node: {} for node in nodes}
    for edge in edges:
        before[edge.target][edge.source] = edge.optional
        behind[edge.source][edge.target] = edge.optional
    alike = {
        node: (frozenset(before[node].items()), frozenset(behind[node].items())) for node in nodes
    }
    count = Counter(alike.values())
    found: dict[object, _Block] = {}
    home: dict[str, _Block] = {}
    for node in nodes:
        # Two roots with the same children are drawn side by side, not as a group.
        apart = not before[node] and behind[node] and count[alike[node]] == 2
        block = found.setdefault(node if apart else alike[node], _Block([], len(found)))
        block.nodes.append(node)
        home[node] = block
    for node in nodes:
        home[node].parents = {home[each].number: way for each, way in before[node].items()}
        home[node].children = {home[each].number: way for each, way in behind[node].items()}
    return list(found.values())


class _Drawing:
    """Draws the rows from the top, and tracks the lanes between them."""

    def __init__(self, blocks: Sequence[_Block], spaced: bool) -> None:
        self._blocks = blocks
        self._spaced = spaced
        self._lanes: list[_Lane] = []
        self._last = Row("")
        self._time = 0

    def rows(self) -> Iterator[Row]:
        # Nodes without edges come last, as a list.
        alone = [block for block in self._blocks if not block.parents and not block.children]
        left = {block.number: block for block in self._blocks if block not in alone}
        while left:
            block = min(self._open(left), key=self._cost)
            del left[block.number]
            for row in (*self._enter(block), *self._body(block), *self._join()):
                self._last = row
                yield row
        for block in alone:
            if self._last.text:
                yield Row("")
            for node in block.nodes:
                yield Row(f"{ALONE}{ACROSS}{MARK}", node, 2)

    def _open(self, left: Mapping[int, _Block]) -> list[_Block]:
        """The blocks whose dependencies are drawn."""
        ready = [block for block in left.values() if not left.keys() & block.parents.keys()]
        if not ready:  # A cycle, which the database does not allow: break it anywhere.
            ready = [next(iter(left.values()))]
            for number in left.keys() & ready[0].parents.keys():
                del ready[0].parents[number]
                left[number].children.pop(ready[0].number, None)
        return ready

    def _cost(self, block: _Block) -> tuple[int, int, int]:
        """The order of drawing: fewest new lanes first, then the most recent lane."""
        into = [lane for lane in self._lanes if block.number in lane.ahead]
        kept = [lane for lane in self._lanes if lane.ahead.keys() != {block.number}]
        shared = any(lane.ahead == block.children for lane in kept)
        more = len(kept) - len(self._lanes) + bool(block.children and not shared)
        return more, -max((lane.since for lane in into), default=-1), block.number

    def _enter(self, block: _Block) -> Iterator[Row]:
        """Merge the lines that lead to a block into one lane."""
        into = [lane for lane in self._lanes if block.number in lane.ahead]
        if not into:
            # A root directly below another mark would look like its successor.
            if self._last.mark == 2 * self._free() or (self._last.text and not self._lanes):
                yield self._straight()
            return
        if _is_beside_lane(block, into):
            return
        for lane in [lane for lane in into if len(lane.ahead) > 1]:
            yield self._split(lane, block.number)
        into = [lane for lane in self._lanes if lane.ahead.keys() == {block.number}]
        if len(into) > 1:
            if any(lane.dashed for lane in into):
                yield self._straight()
            yield self._merge(into)
        # A group starts with lines, and no space is needed after lines.
        elif len(block.nodes) == 1 and self._last.mark >= 0 and (self._spaced or into[0].dashed):
            yield self._straight()

    def _body(self, block: _Block) -> Iterator[Row]:
        """The rows of a block, after which its own lane begins."""
        lane = next((lane for lane in self._lanes if block.number in lane.ahead), None)
        if len(block.nodes) == 1:
            yield self._node(block, lane)
            return
        optional = lane.ahead.pop(block.number) if lane else False
        ends = lane is not None and not lane.ahead
        if lane and ends:
            self._lanes.remove(lane)
        first = lane.column if lane else self._free()
        middle = self._free(first + 1)
        last = self._free(middle + 1) if block.children else middle
        for number, node in enumerate(block.nodes):
            cells = self._cells()
            top, bottom = number == 0, number == len(block.nodes) - 1
            handle = CORNERS[1, int(not (ends and bottom)), 0, 1] if lane else ALONE
            self._across(cells, first, middle, dashed=optional)
            _put(cells, first, handle)
            if last != middle:
                self._across(cells, middle, last, dashed=all(block.children.values()))
                _put(cells, last, CORNERS[int(not top), 1, 1, 0])
            _put(cells, middle, MARK)
            yield Row(_text(cells), node, 2 * middle)
        if block.children:
            beyond = self._begin(last, block.children)
            if not any(each is not beyond and each.ahead == beyond.ahead for each in self._lanes):
                yield self._shift(beyond, first)

    def _node(self, block: _Block, lane: _Lane | None) -> Row:
        [node] = block.nodes
        cells = self._cells()
        if lane is None:
            column = self._free()
        elif len(lane.ahead) == 1:
            column = lane.column
            self._lanes.remove(lane)
        else:
            column = self._free(lane.column + 1)
            self._across(cells, lane.column, column, dashed=lane.ahead.pop(block.number))
            _put(cells, lane.column, "├")
        _put(cells, column, MARK)
        if block.children:
            self._begin(column, block.children)
        return Row(_text(cells), node, 2 * column)

    def _join(self) -> Iterator[Row]:
        """Merge lanes that lead to the same blocks."""
        for lane in sorted(self._lanes, key=lambda each: each.column):
            same = [each for each in self._lanes if each.ahead == lane.ahead]
            if lane in self._lanes and len(same) > 1:
                yield self._merge(same)

    def _merge(self, lanes: Sequence[_Lane]) -> Row:
        """Merge lanes into the leftmost of them."""
        goal, *others = sorted(lanes, key=lambda lane: lane.column)
        cells = self._cells()
        for lane in reversed(others):
            self._lanes.remove(lane)
            beyond = [each for each in others if each.column >= lane.column]
            dashed = all(each.dashed for each in beyond)
            self._across(cells, goal.column, lane.column, dashed=dashed)
        for lane in others:
            _put(cells, lane.column, CORNERS[1, 0, 1, int(lane is not others[-1])])
        _put(cells, goal.column, "├")
        goal.ahead = {key: all(each.ahead[key] for each in lanes) for key in goal.ahead}
        goal.since = self._tick()
        return Row(_text(cells))

    def _split(self, lane: _Lane, number: int) -> Row:
        """Branch a lane for one block off a lane that leads to several."""
        cells = self._cells()
        column = self._free(lane.column + 1)
        optional = lane.ahead.pop(number)
        self._across(cells, lane.column, column, dashed=optional)
        _put(cells, lane.column, "├")
        _put(cells, column, "╮")
        self._begin(column, {number: optional})
        return Row(_text(cells))

    def _shift(self, lane: _Lane, column: int) -> Row:
        """Move a lane to a column on its left."""
        cells = self._cells()
        self._across(cells, column, lane.column, dashed=lane.dashed)
        _put(cells, column, "╭")
        _put(cells, lane.column, "╯")
        lane.column = column
        return Row(_text(cells))

    def _straight(self) -> Row:
        return Row(_text(self._cells()))

    def _begin(self, column: int, ahead: Mapping[int, bool]) -> _Lane:
        self._lanes.append(_Lane(column, dict(ahead), self._tick()))
        return self._lanes[-1]

    def _tick(self) -> int:
        self._time += 1
        return self._time

    def _free(self, start: int = 0) -> int:
        taken = {lane.column for lane in self._lanes}
        return next(each for each in range(start, start + len(taken) + 1) if each not in taken)

    def _cells(self) -> dict[int, str]:
        return {2 * lane.column: DASHED_DOWN if lane.dashed else DOWN for lane in self._lanes}

    def _across(self, cells: dict[int, str], start: int, end: int, *, dashed: bool) -> None:
        """Draw a line between two columns, below the lanes that it crosses."""
        crossed = {2 * lane.column for lane in self._lanes}
        for place in range(2 * start + 1, 2 * end):
            if place not in crossed:
                cells[place] = DASHED_ACROSS if dashed else ACROSS


def _is_beside_lane(block: _Block, into: Sequence[_Lane]) -> bool:
    """Whether a block is drawn beside its lane, because the lane leads further."""
    single = len(block.nodes) == 1 or not block.children
    return single and len(into) == 1 and len(into[0].ahead) > 1


def _put(cells: dict[int, str], column: int, text: str) -> None:
    cells[2 * column] = text


def _text(cells: Mapping[int, str]) -> str:
    return "".join(cells.get(place, " ") for place in range(max(cells, default=-1) + 1))


def flowchart(tasks: Sequence[Record]) -> Iterator[str]:
    """The lines of a Mermaid flowchart; a dotted arrow is an optional dependency."""
    yield "flowchart TD"
    numbers = {str(task["id"]): f"t{number}" for number, task in enumerate(tasks, start=1)}
    for task in tasks:
        words = [label(task["name"] or task["type"]), label(task["status"])]
        if task["run_s"] is not None:
            words[1] += f", {label(output.length(task['run_s']))}"
        text = "<br/>".join(words)
        yield f'  {numbers[str(task["id"])]}["{text}"]:::{task["status"]}'
    for task in tasks:
        for edge in task["depends_on"] or []:
            source, target = numbers.get(str(edge["id"])), numbers[str(task["id"])]
            if source is not None:
                yield f"  {source} {'-.->' if edge['optional'] else '-->'} {target}"
    for status in sorted({str(task["status"]) for task in tasks}):
        fill, line = COLOURS.get(status, COLOURS["created"])
        yield f"  classDef {status} fill:{fill},stroke:{line},color:#212529"


def label(text: object) -> str:
    """Text for Mermaid, with special characters escaped by number."""
    lines = str(text).splitlines() or [""]
    return "<br/>".join(
        "".join(char if char in PLAIN else f"#{ord(char)};" for char in line) for line in lines
    )
