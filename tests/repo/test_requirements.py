"""Every requirement marked as shown has a test."""

from pathlib import Path

import pytest

from tests import requirements

DOCUMENT = """
## Shown
- A1 works
- A2 works
  too
## Not yet
- B1 later
"""

TESTS = """
import pytest

@pytest.mark.requirement("A1")
def test_one(): ...

class TestMany:
    @pytest.mark.requirement("A1", "B1")
    async def test_two(self): ...
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project with two items to show and one for later."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "requirements.md").write_text(DOCUMENT)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text(TESTS)
    return tmp_path


def test_every_shown_requirement_has_a_test() -> None:
    items, problems = requirements.collect()

    assert problems == []
    assert any(item.shown for item in items.values())


def test_an_item_without_a_test_is_a_problem_unless_it_is_not_yet(project: Path) -> None:
    items, problems = requirements.collect(project)

    assert problems == ["A2 has no test: works too"]
    assert items["A1"].tests == ["tests/test_a.py::test_one", "tests/test_a.py::test_two"]


def test_a_mark_that_names_no_item_is_a_problem(project: Path) -> None:
    (project / "tests" / "test_b.py").write_text(
        "pytestmark = [pytest.mark.requirement('A2'), pytest.mark.requirement('Z9')]\n"
        "def test_three(): ...\n"
    )

    _, problems = requirements.collect(project)

    assert problems == ["tests/test_b.py::test_three names Z9, which is not a requirement"]


def test_an_item_listed_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="A1 is listed twice"):
        requirements.read_items("- A1 works\n- A1 again\n")
