"""Stores for the tests: a folder, and an S3-compatible server in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen
from uuid import uuid4

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}


class S3:
    """An S3-compatible server, and its files as an independent client sees them."""

    def __init__(self, port: int) -> None:
        import boto3  # type: ignore[import-untyped]

        self.endpoint = f"http://127.0.0.1:{port}"
        self.client: Any = boto3.client(
            "s3", endpoint_url=self.endpoint, aws_access_key_id="test",
            aws_secret_access_key="test", region_name="us-east-1",
        )  # fmt: skip

    def bucket(self) -> str:
        """A new bucket's URL, with a prefix."""
        name = f"files-{uuid4().hex[:12]}"
        self.client.create_bucket(Bucket=name)
        return f"s3://{name}/deep/down"


@contextmanager
def s3_server() -> Iterator[S3]:
    """Run the server in its own process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(f"http://127.0.0.1:{port}/moto-api/", process)
        yield S3(port)
    finally:
        process.kill()
        process.wait()


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    began = time.monotonic()
    while True:
        try:
            urlopen(url).close()
        except OSError:
            assert process.poll() is None, "moto's server has ended"
            assert time.monotonic() - began < 30, "moto's server does not answer"
            time.sleep(0.05)
        else:
            return


class StoreFixture:
    """A store for a test: its settings and its files."""

    def __init__(self, url: str, s3: S3 | None = None) -> None:
        self.url = url
        self.s3 = s3

    @property
    def settings(self) -> dict[str, str]:
        found = {"artifacts_url": self.url}
        return found if self.s3 is None else {**found, "artifacts_endpoint": self.s3.endpoint}

    @property
    def folder(self) -> Path:
        return Path(self.url.removeprefix("file://"))

    def files(self) -> dict[str, bytes]:
        """Every file with its content, including incomplete ones."""
        if self.s3 is None:
            return {
                path.relative_to(self.folder).as_posix(): path.read_bytes()
                for path in sorted(self.folder.rglob("*"))
                if path.is_file()
            }
        bucket, prefix = self.url.removeprefix("s3://").split("/", 1)
        found = self.s3.client.list_objects_v2(Bucket=bucket).get("Contents", [])
        return {
            each["Key"].removeprefix(f"{prefix}/"): self.s3.client.get_object(
                Bucket=bucket, Key=each["Key"]
            )["Body"].read()
            for each in found
        }

    def uploads(self) -> int:
        """Uploads that were neither completed nor aborted."""
        if self.s3 is None:
            return sum("#" in key for key in self.files())
        bucket = self.url.removeprefix("s3://").split("/", 1)[0]
        return len(self.s3.client.list_multipart_uploads(Bucket=bucket).get("Uploads", []))

    def write(self, key: str, content: bytes) -> None:
        """Write a file without treadle."""
        if self.s3 is None:
            (self.folder / key).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / key).write_bytes(content)
            return
        bucket, prefix = self.url.removeprefix("s3://").split("/", 1)
        self.s3.client.put_object(Bucket=bucket, Key=f"{prefix}/{key}", Body=content)

    def remove(self, key: str) -> None:
        """Delete a file without treadle."""
        if self.s3 is None:
            (self.folder / key).unlink()
            return
        bucket, prefix = self.url.removeprefix("s3://").split("/", 1)
        self.s3.client.delete_object(Bucket=bucket, Key=f"{prefix}/{key}")


def make_store_fixture(kind: str, tmp_path: Path, s3: S3 | None) -> StoreFixture:
    """A new store of a kind."""
    if kind == "folder":
        return StoreFixture(f"file://{tmp_path}/files")
    assert s3 is not None
    return StoreFixture(s3.bucket(), s3)


async def pieces(*given: bytes) -> AsyncGenerator[bytes, None]:
    for each in given:
        yield each


def peak_mib() -> float:
    """The peak memory of this process, in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"no peak for {os.getpid()}")
