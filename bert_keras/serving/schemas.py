"""JSON bodies: unknown fields are refused, and reading stops at the first mistake.

Otherwise the errors of a body of two megabytes of mistakes take half a minute and two gigabytes.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from starlette.exceptions import HTTPException

MOST_FIELDS = 16
Texts = Annotated[list[str], Field(fail_fast=True)]
Rows = Annotated[list[Texts], Field(fail_fast=True)]
Sequences = Annotated[list[str | Texts], Field(fail_fast=True)]
Ids = Annotated[list[int], Field(fail_fast=True)]
ManyIds = Annotated[list[Ids], Field(fail_fast=True)]


class Body(BaseModel):
    """An object without unknown fields."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _is_small(cls, fields):
        if isinstance(fields, dict) and len(fields) > MOST_FIELDS:
            raise ValueError(f"At most {MOST_FIELDS} fields are allowed. Received: {len(fields)}.")
        return fields


class Parameters(Body):
    """Parameters of an answer, of exactly the types that a subclass says."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @classmethod
    def read(cls, values):
        """Returns parameters of a dict; raises `HTTPException`, 422, for one that does not fit."""
        try:
            return cls.model_validate({k: x for k, x in values.items() if x is not None})
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(["parameters", *map(str, first["loc"])])
            known = ", ".join(cls.model_fields)
            raise HTTPException(422, f"{name}: {first['msg']}. This task takes {known}.") from error
