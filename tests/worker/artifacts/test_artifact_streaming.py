"""Large files are streamed and never held in memory."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.drivers.stores import StoreFixture

pytestmark = pytest.mark.requirement("F21")
SIZE = 64 * 1024 * 1024

# In a process of its own, whose peak nothing else has raised.
PROGRAM = """
import asyncio, sys
from pathlib import Path
from tests.drivers.stores import peak_mib
from treadle.settings import load_settings
from treadle.artifacts.store import make_store
from treadle.worker.artifacts import ArtifactReader
from treadle.worker.artifacts import iter_chunks

async def main():
    store = make_store(load_settings())
    await store.check()
    before = peak_mib()
    source, target = map(Path, sys.argv[1:])
    written = await store.write(
        "a/b/c", iter_chunks(source), media_type="x/y", max_bytes=2**30
    )
    middle = peak_mib()
    await ArtifactReader(None, store.read("a/b/c", written.bytes, written.sha256)).save(target)
    print(written.bytes, written.sha256, middle - before, peak_mib() - before)

asyncio.run(main())
"""


def test_a_file_of_64_mb_is_stored_and_read_in_little_memory(
    file_store: StoreFixture, tmp_path: Path
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    with source.open("wb") as file:
        for number in range(64):
            file.write(number.to_bytes(4, "big") * (SIZE // 256))
    variables = {f"TREADLE_{name.upper()}": value for name, value in file_store.settings.items()}

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(source), str(target)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), **variables},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )

    size, digest, while_writing, in_all = done.stdout.split()
    assert int(size) == SIZE
    assert digest == hashlib.sha256(source.read_bytes()).hexdigest()
    assert target.read_bytes() == source.read_bytes()
    # A few parts of 8 MiB are under way at once; the file is eight times as large.
    assert float(while_writing) < 48, done.stdout
    assert float(in_all) < 56, done.stdout
