"""Artifacts: the files of tasks; reached as `db.artifacts`."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from treadle.db.calls import Calls
from treadle.errors import ArtifactNotFound
from treadle.models import Artifact, ListedArtifact, RemovableArtifact


class Artifacts:
    """Reserve, store, find and remove the files of tasks."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def record(
        self,
        task_id: UUID,
        token: UUID,
        name: str,
        uri: str,
        *,
        media_type: str | None,
        size: int | None,
        sha256: str | None,
    ) -> UUID:
        rows = await self._calls.call(
            "select treadle.record_artifact(%b, %b, %b, %b, %b, %b::bigint, %b)",
            task_id,
            token,
            name,
            uri,
            media_type,
            size,
            sha256,
        )
        made: UUID = rows[0][0]
        return made

    async def reserve(
        self, task_id: UUID, token: UUID, artifact: UUID, name: str, url: str, media_type: str
    ) -> str:
        """Reserve an artifact and return the key of the file to write."""
        rows = await self._calls.call(
            "select key from treadle.reserve_artifact(%b, %b, %b, %b, %b, %b)",
            task_id,
            token,
            artifact,
            name,
            url,
            media_type,
        )
        return str(rows[0][0])

    async def store(
        self, task_id: UUID, token: UUID, artifact: UUID, size: int, sha256: str
    ) -> Artifact:
        rows = await self._calls.call(
            "select treadle.store_artifact(%b, %b, %b, %b::bigint, %b)",
            task_id,
            token,
            artifact,
            size,
            sha256,
        )
        value: Artifact = rows[0][0]
        return value

    async def drop(self, task_id: UUID, token: UUID, artifact: UUID) -> bool:
        rows = await self._calls.call(
            "select treadle.cancel_artifact(%b, %b, %b)", task_id, token, artifact
        )
        return bool(rows[0][0])

    async def read(self, reference: str, task_id: UUID | None) -> tuple[str | None, Artifact]:
        """Return the key of the file, None for a link, and the artifact."""
        rows = await self._calls.call(
            "select key, value from treadle.read_artifact(%b, %b)", reference, task_id
        )
        return rows[0][0], rows[0][1]

    async def of_task(self, task_id: UUID) -> tuple[ListedArtifact, ...]:
        rows = await self._calls.call("select treadle.list_artifacts(%b)", task_id)
        return tuple(row[0] for row in rows)

    async def folder(self) -> str | None:
        rows = await self._calls.call("select treadle.artifact_folder()")
        folder: str | None = rows[0][0]
        return folder

    async def removable(
        self, limit: int, grace_s: float, after: UUID | None, *, dry_run: bool
    ) -> list[RemovableArtifact]:
        rows = await self._calls.call(
            """
            select id, key, uri, name, task_id, reason
            from treadle.artifacts_to_delete(%b::integer, %b::float8, %b, %b)
            """,
            limit,
            grace_s,
            after,
            dry_run,
        )
        return [RemovableArtifact(*row) for row in rows]

    async def forget(self, ids: Sequence[UUID]) -> int:
        rows = await self._calls.call(
            "select treadle.remove_deleted_artifacts(%b::uuid[])", list(ids)
        )
        return int(rows[0][0])

    async def unknown(self, ids: Sequence[UUID]) -> set[UUID]:
        rows = await self._calls.call(
            "select id from treadle.unknown_artifacts(%b::uuid[]) as id", list(ids)
        )
        return {row[0] for row in rows}

    async def get(self, artifact_id: UUID) -> dict[str, Any]:
        """Get one artifact."""
        rows = await self._calls.rows(
            "select * from treadle.artifact_details where id = %(id)s", {"id": artifact_id}
        )
        if not rows:
            raise ArtifactNotFound(
                f"there is no artifact {artifact_id}",
                hint="List those of a task: treadle artifacts list --task ID",
                artifact=str(artifact_id),
            )
        return rows[0]

    async def find(self, text: str) -> dict[str, Any]:
        """Find an artifact by its id, or by a unique ending of six characters or more."""
        missing = ArtifactNotFound(
            f"no artifact id ends in {text}", hint="List them: treadle artifacts list"
        )
        query = "select id from treadle.artifact_details where id::text like %(end)s limit 2"
        artifact_id = await self._calls.find(text, query, "artifact", missing)
        rows = await self._calls.rows(
            "select * from treadle.artifact_details where id = %(id)s", {"id": artifact_id}
        )
        if not rows:
            raise missing
        return rows[0]

    async def list(self, *, task_id: UUID | None = None, limit: int = 50) -> list[dict[str, Any]]:
        """List the artifacts of a task, or the newest of all."""
        return await self._calls.rows(
            """
            select * from treadle.artifact_details
            where %(task_id)s::uuid is null or task_id = %(task_id)s
            order by created_at desc, id
            limit %(limit)s
            """,
            {"task_id": task_id, "limit": limit},
        )
