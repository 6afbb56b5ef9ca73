"""Claim every ready task, and break a task so that no service can update it."""

from typing import Any
from uuid import UUID

from tests.drivers.engine import Driver


def claim_all(driver: Driver, batch: int = 1000, **options: Any) -> list[UUID]:
    """Claim until nothing is left; return the ids in claim order."""
    found = []
    while claims := driver.claim("a", batch, **options):
        found += [claim.id for claim in claims]
    return found


def break_updates(driver: Driver, bad: UUID) -> None:
    """Let every update of this one task fail."""
    driver.rows(
        """
        create function public.break_one() returns trigger language plpgsql as $$
        begin
          raise exception 'this row is bad';
        end;
        $$
        """
    )
    driver.rows(
        f"""
        create trigger break_one before update on treadle.tasks for each row
        when (new.id = '{bad}') execute function public.break_one()
        """
    )
