"""Fetch the browser files that the server includes; `make vendor` runs it.

vendor.lock names each npm package with its version, its licence, the checksum of its archive and
that of every file taken from it. Without an argument the files are fetched again and must be what
the lock says; `make vendor ARGS=swagger-ui-dist@5.34.1` moves the lock to that version.
"""

import base64
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

STATIC = Path(__file__).resolve().parents[1] / "src" / "treadle" / "api" / "static"
LOCK = STATIC / "vendor.lock"

Package = dict[str, Any]


def read_lock() -> dict[str, Package]:
    """The packages by their names."""
    found: dict[str, Package] = json.loads(LOCK.read_text())
    return found


def folder(name: str) -> Path:
    """Where the files of a package are."""
    return STATIC / "vendor" / name


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fetch(name: str, package: Package, *, move: bool) -> Package:
    """Take the files of a package out of its archive; the lock as it is then."""
    with tempfile.TemporaryDirectory() as place:
        words = ["npm", "pack", "--silent", "--pack-destination", place]
        subprocess.run([*words, f"{name}@{package['version']}"], check=True, capture_output=True)
        [archive] = Path(place).glob("*.tgz")
        digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        integrity = f"sha512-{digest}"
        if not move and integrity != package["integrity"]:
            raise SystemExit(f"{name}: the archive is not the one of vendor.lock")
        with tarfile.open(archive) as inside:
            inside.extractall(place, filter="data")
        source = Path(place) / "package"
        licence = json.loads((source / "package.json").read_text())["license"]
        folder(name).mkdir(parents=True, exist_ok=True)
        for file in package["files"]:
            (folder(name) / file).write_bytes((source / file).read_bytes())
    files = {file: sha256(folder(name) / file) for file in package["files"]}
    return {**package, "licence": licence, "integrity": integrity, "files": files}


def main(arguments: list[str]) -> None:
    lock = read_lock()
    wanted = dict(argument.rsplit("@", 1) for argument in arguments)
    if unknown := sorted(wanted.keys() - lock.keys()):
        raise SystemExit(f"not in vendor.lock: {', '.join(unknown)}")
    for name, package in lock.items():
        asked = {**package, "version": wanted.get(name, package["version"])}
        lock[name] = fetch(name, asked, move=name in wanted)
    LOCK.write_text(json.dumps(lock, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
