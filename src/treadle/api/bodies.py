"""What the bodies of /v1 are made of: nothing unknown, nothing bent, nothing without a bound."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

INT64 = 2**63 - 1


def _storable(text: str) -> str:
    if "\x00" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("holds a character that PostgreSQL cannot store")
    return text


def _written(value: object) -> object:
    """A number would be taken for seconds since 1970."""
    if not isinstance(value, str) or "-" not in value[1:]:
        raise ValueError("is not a moment like 2026-01-31T12:00:00Z")
    return value


Text = Annotated[str, AfterValidator(_storable)]
Name = Annotated[Text, Field(min_length=1, max_length=200)]
Id = Annotated[UUID, Field(strict=False)]
Object = dict[str, Any]
Moment = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_written)]
EventId = Annotated[int, Field(ge=0, le=INT64)]
Usd = Annotated[float, Field(ge=0, le=99_999_999, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, le=315_360_000, allow_inf_nan=False)]


class Body(BaseModel):
    """A request; "5" is no number, and a field that is not known is an error."""

    model_config = ConfigDict(extra="forbid", strict=True)

    def named(self) -> dict[str, Any]:
        """What was named, null included; what was not stays as it is."""
        return self.model_dump(exclude_unset=True, by_alias=True)


class Reason(Body):
    """Why something is done; shown to who looks."""

    reason: Text | None = Field(None, max_length=500)


class Note(Body):
    """Why something is decided; it is kept."""

    note: Text | None = Field(None, max_length=2000)
