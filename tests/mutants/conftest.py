"""Skip the mutants that a change does not concern, on request."""

import pytest

from tests.drivers import mutants_since


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mutants_since.select(config, items)
