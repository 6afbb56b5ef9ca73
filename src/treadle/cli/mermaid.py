"""A DAG as a Mermaid flowchart, for pages that can show one."""

from collections.abc import Iterator, Sequence

from treadle.cli import out
from treadle.cli.out import Record

# State: fill and line; the text stays dark.
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


def flowchart(tasks: Sequence[Record]) -> Iterator[str]:
    """The lines of the chart; a dotted arrow is an optional edge."""
    yield "flowchart TD"
    numbers = {str(task["id"]): f"t{number}" for number, task in enumerate(tasks, start=1)}
    for task in tasks:
        words = [label(task["name"] or task["type"]), label(task["status"])]
        if task["run_s"] is not None:
            words[1] += f", {label(out.length(task['run_s']))}"
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
    """Text in which nothing means anything to Mermaid: the rest is written by number."""
    lines = str(text).splitlines() or [""]
    return "<br/>".join(
        "".join(char if char in PLAIN else f"#{ord(char)};" for char in line) for line in lines
    )
