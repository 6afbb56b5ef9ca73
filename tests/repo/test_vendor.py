"""Vendored files match their packages and name their licenses."""

import re

import pytest

from tests import vendor
from tests.drivers import tree

LOCK = vendor.read_lock()
LICENCES = {"Apache-2.0", "MIT", "BSD-3-Clause"}


@pytest.mark.parametrize("name", LOCK)
def test_the_files_are_those_of_the_lock(name: str) -> None:
    package = LOCK[name]

    found = {path.name: vendor.sha256(path) for path in vendor.folder(name).iterdir()}

    assert found == package["files"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", package["version"])
    assert package["integrity"].startswith("sha512-")


def test_every_folder_is_in_the_lock() -> None:
    assert {path.name for path in (vendor.STATIC / "vendor").iterdir()} == set(LOCK)


@pytest.mark.parametrize("name", LOCK)
def test_the_licence_comes_along(name: str) -> None:
    package = LOCK[name]
    text = (vendor.folder(name) / "LICENSE").read_text()

    assert package["licence"] in LICENCES
    assert package["licence"].split("-")[0] in text


def test_nothing_else_of_ours_is_as_large() -> None:
    large = [tree.name(path) for path in tree.files() if path.stat().st_size > 1_000_000]

    assert large == []
