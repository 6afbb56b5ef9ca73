"""Every block of the documentation runs, in the order of its page, and prints what it shows."""

from itertools import zip_longest
from pathlib import Path

import pytest

from tests.docs.preludes import PRELUDES
from tests.drivers import transcripts, tree
from tests.drivers.databases import NewDatabase
from tests.drivers.page_runs import Page
from tests.drivers.pages import blocks, pages

# Generated, or a history.
PAGES = [
    page
    for page in pages()
    if tree.name(page) not in {"CHANGELOG.md", "docs/reference/cli.md", "docs/reference/sql.md"}
    and any(blocks(page))
]
# Pages whose blocks are not run yet. A test keeps this list from growing.
NOT_RUN_AT_MOST = 53
UNCOVERED = {
    "docs/reference/harness-protocol.md",
    "docs/reference/http-api.md",
    "docs/reference/queue-api.md",
    "docs/reference/work-api.md",
}


@pytest.mark.requirement("F28")
@pytest.mark.parametrize("page", PAGES, ids=tree.name)
def test_the_blocks_of_a_page_run_as_written(
    page: Path,
    new_database: NewDatabase,
    folder: Path,
    psql: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if tree.name(page) in UNCOVERED:
        pytest.skip("not covered yet")
    with new_database() as url:
        monkeypatch.setenv("TREADLE_DATABASE_URL", url)
        monkeypatch.setenv("TREADLE_VERIFY_CODE", "false")
        monkeypatch.syspath_prepend(str(folder))
        with Page(page, url, folder, psql) as run:
            if tree.name(page) in PRELUDES:
                PRELUDES[tree.name(page)](run)
            found = list(blocks(page))
            wrong = [run.run(block, after) for block, after in zip_longest(found, found[1:])]
    problems = "\n\n".join(text for text in wrong if text is not None)
    if problems:
        pytest.fail(problems, pytrace=False)


def test_few_blocks_are_not_run() -> None:
    found = [block.place for page in PAGES for block in blocks(page) if block.not_run]

    assert len(found) <= NOT_RUN_AT_MOST, found


def test_the_pages_that_are_not_covered_become_fewer() -> None:
    assert len(UNCOVERED) <= 4
    assert {tree.name(page) for page in PAGES} >= UNCOVERED


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("took 3.2s", "took 41ms", True),
        ("id …8f009de2", "id …1b2c3d4e", True),
        ("a   b\n...\nz", "a b\nc\nd\nz", True),
        ("Hello Ada", "Hello Bob", False),
        ("2 of 4 completed", "3 of 4 completed", False),
        ("$0.0200", "$0.0300", False),
    ],
)
def test_a_wrong_output_would_be_noticed(shown: str, printed: str, same: bool) -> None:
    assert transcripts.matches(shown, printed, transcripts.Ids()) is same


def test_an_id_stands_for_the_same_id_throughout_a_page() -> None:
    ids = transcripts.Ids()

    assert transcripts.matches("task …8f009de2", "task …1b2c3d4e", ids)
    assert ids.replace("treadle tasks show 8f009de2") == "treadle tasks show 1b2c3d4e"
    assert not transcripts.matches("task …8f009de2", "task …55555555", ids)
