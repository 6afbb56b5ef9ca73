"""Compare what a page says a command prints with what it prints.

What differs from run to run matches anything of its kind: ids, times, durations, process ids,
agents, paths, versions, the width of columns and where lines are broken. `...` matches anything.
Ids are bound: an id of the page stands for one id of the run, from where it first appears.
"""

import re
from dataclasses import dataclass, field

HEX = "[0-9a-f]"
UUID = rf"{HEX}{{8}}(?:-{HEX}{{4}}){{3}}-{HEX}{{12}}"
DURATION = r"\d+(?:\.\d+)?(?:ms|s|m|h|d)(?: \d+(?:\.\d+)?[smh])*|\d+ s"
# What a page shows, and what matches it; the names of those with an id begin with `id`.
KINDS = {
    "any": (r"[ ]*\.\.\.", r".*?"),
    "id_full": (UUID, rf"({UUID})"),
    "id_short": (rf"…{HEX}{{8}}\b", rf"…({HEX}{{8}})"),
    "id_group": (rf"\b(?=\w*[a-f])(?=\w*\d){HEX}{{12}}\b", rf"({HEX}{{12}})"),
    "size": (r"\b\d+ B\b", r"\d+ B"),
    "time": (
        r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|\+\d\d\b)?",
        r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|\+\d\d\b)?",
    ),
    "zone": (r"\bCES?T\b", r"CES?T"),
    "interval": (r"\d\d:\d\d:\d\d(?:\.\d+)?", r"\d\d:\d\d:\d\d(?:\.\d+)?"),
    "duration": (rf"(?<![\w.])(?:{DURATION})(?!\w)", rf"(?:{DURATION})"),
    "moment": (r"\b1\d{9}\.\d+", r"1\d{9}\.\d+"),
    "pid": (r"(?<=pid.)\d+|(?<=pid..)\d+", r"\d+"),
    "agent": (r"\bvm\.\d+\.[0-9a-f]+", r"\S+?\.\d+\.[0-9a-f]+"),
    "file": (r'File ".+?"', r'File ".+?"'),
    "path": (r"~/\S+", r"\S+"),
    "server": (r"PostgreSQL \d+\.\d+", r"PostgreSQL \d+(?:\.\d+)?"),
    "strip": (r"[░█·]{2,}", r"[░█·◌]+"),
    "rule": (r"-{2,}(?:\+-{2,})*", r"-+(?:\+-+)*"),
    "bar": (r"\s*\|\s*", r"\s*\|\s*"),
    "space": (r"\s+", r"\s+"),
}
TOKEN = re.compile("|".join(f"(?P<{name}>{shown})" for name, (shown, _) in KINDS.items()))
PROGRESS = re.compile(r"\w+ [━╸╺ ]*\d+/\d+")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def last(text: str) -> str:
    """The characters of an id that people type."""
    return text[-8:]


@dataclass
class Ids:
    """The ids of a page, by their last characters, and those of the run that they stand for."""

    known: dict[str, str] = field(default_factory=dict)

    def bind(self, shown: str, found: str) -> None:
        """Let an id of the page stand for one of the run."""
        if len(found) > len(self.known.get(last(shown), "")):
            self.known[last(shown)] = found

    def replace(self, text: str) -> str:
        """The text with the ids of the run, as long as those of the page."""
        for shown, found in self.known.items():
            if len(found) == 36:
                text = re.sub(rf"{HEX}{{8}}(?:-{HEX}{{4}}){{3}}-{HEX}{{4}}{shown}", found, text)
            if len(found) == 12:
                text = re.sub(rf"\b{HEX}{{4}}{shown}\b", found, text)
            text = re.sub(rf"(?<![\w-]){shown}\b", last(found), text)
        return text


def pattern(shown: str, ids: Ids) -> tuple[str, list[str]]:
    """A pattern for what a page shows, and the ids that its groups bind."""
    shown = ids.replace(shown)
    known = {last(found) for found in ids.known.values()}
    parts, bound, at = [], [], 0
    for token in TOKEN.finditer(shown):
        parts.append(re.escape(shown[at : token.start()]))
        at = token.end()
        kind = str(token.lastgroup)
        if kind.startswith("id") and last(token[0]) in known:
            # Of one whose first characters were never printed, only the last are the run's.
            parts.append(rf"[0-9a-f-]*{last(token[0])}" if kind == "id_full" else token[0])
        else:
            parts.append(KINDS[kind][1])
            if kind.startswith("id"):
                bound.append(token[0].removeprefix("…"))
    return "".join([*parts, re.escape(shown[at:])]), bound


def plain(printed: str) -> str:
    """What stays on the screen: without escape codes, progress bars and trailing space."""
    lines = [line.rstrip() for line in ESCAPES.sub("", printed).splitlines()]
    return "\n".join(line for line in lines if not PROGRESS.match(line)).strip()


def matches(shown: str, printed: str, ids: Ids, *, whole: bool = True) -> bool:
    """Whether a command printed what the page shows; binds the ids."""
    wanted, bound = pattern(shown.strip(), ids)
    find = (
        re.compile(wanted, re.DOTALL).fullmatch if whole else re.compile(wanted, re.DOTALL).search
    )
    found = find(plain(printed))
    if found is None:
        return False
    for shown_id, found_id in zip(bound, found.groups(), strict=True):
        ids.bind(shown_id, found_id)
    return True
