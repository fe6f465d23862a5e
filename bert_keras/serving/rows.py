"""JSON bodies and rows of texts, and their checks before anything is computed.

Unknown fields are refused, and reading stops at the first mistake. Otherwise the errors of a body
of two megabytes of mistakes take half a minute and two gigabytes.
"""

import contextlib
from typing import Annotated, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from starlette.exceptions import HTTPException

from bert_keras.answers.answerer import Field

MOST_FIELDS = 16
_FAIL_FAST = pydantic.Field(fail_fast=True)
Texts = Annotated[list[str], _FAIL_FAST]
Sequences = Annotated[list[str | Texts], _FAIL_FAST]
# A client may state where long texts are cut; there is no other place.
Direction = Literal["right", "Right"]


class Body(BaseModel):
    """An object without unknown fields. A field with the value null is one that is not sent."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _sent(cls, fields):
        if not isinstance(fields, dict):
            return fields
        if len(fields) > MOST_FIELDS:
            raise ValueError(f"At most {MOST_FIELDS} fields are allowed. Received: {len(fields)}.")
        known = cls.model_fields
        return {k: value for k, value in fields.items() if value is not None or k not in known}


class Parameters(Body):
    """Parameters of an answer, of exactly the types that a subclass says."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @classmethod
    def read(cls, values):
        """Returns parameters of a dict; raises `HTTPException`, 422, for one that does not fit."""
        try:
            return cls.model_validate({k: x for k, x in values.items() if x is not None})
        except ValidationError as error:
            place, rule = mistake_of(error.errors())
            advice = f"This task takes {', '.join(cls.model_fields)}."
            raise HTTPException(422, f"parameters.{place}: {rule}. {advice}") from error


# Instruments take a text or a pair.
_TEXT_OR_PAIR = (Field("text"), Field("pair", "optional"))
# Limits for short requests with long answers: the answers to one mask or question, and the
# characters of all candidates for masks with their sentences.
MOST_ANSWERS, MOST_CANDIDATES = 100, 2**22


def mistake_of(errors):
    """Returns the place and the rule of a mistake in a body.

    Of a list with a wrong item, pydantic says that it is no text, and then what is wrong with the
    item. The longest place is that of the item. Pydantic adds the types of a union to places.

    Args:
        errors: the `errors()` of a `ValidationError` or a `RequestValidationError`.
    """
    first = max(errors, key=lambda error: len(error["loc"]))
    return ".".join(x for x in map(str, first["loc"]) if x != "str" and "[" not in x), first["msg"]


def rows_of(inputs):
    """Returns a text, or a list of texts or of lists of them, as rows: tuples of texts."""
    rows = inputs if isinstance(inputs, list) else [inputs]
    return [tuple(row) if isinstance(row, (list, tuple)) else (row,) for row in rows]


def check(holds, message, status=422):
    """Raises `HTTPException` with the message unless a condition holds."""
    if not holds:
        raise HTTPException(status, message)


@contextlib.contextmanager
def refusing(where=""):
    """Turns an error of the answers into an `HTTPException`, 422."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise HTTPException(422, f"{where}{error}") from error


def check_num_rows(rows, settings):
    """Raises `HTTPException`, 422 or 413, if there are no rows, or more than may wait."""
    check(rows, "At least one text is needed. Received: none.")
    limit, count = settings.max_waiting, len(rows)
    check(count <= limit, f"At most {limit} texts at once are allowed. Received: {count}.", 413)


def check_rows(served, method, rows, settings, top_k=5, **options):
    """Raises if rows do not fit a method, or if they are too many or too long for a server.

    Args:
        served: `Served`.
        method: str, an answer of the model, or the name of an instrument.
        rows: list of tuples of str.
        settings: `Settings`.
        top_k: the number of answers to each mask or question.
        **options: options that are checked elsewhere.

    Raises:
        HTTPException: 422, the rows or `top_k` do not fit; 413, there are too many, or they are
            too long.
    """
    check_num_rows(rows, settings)
    kinds = served.fields(method) or _TEXT_OR_PAIR
    fields = [field.name for field in kinds if field.kind != "optional"]
    # Several texts of a field are examples of one batch.
    has_list = kinds[-1].kind == "texts"
    most = len(kinds) - 1 + settings.max_batch if has_list else len(kinds)
    counts = most if most == len(fields) else f"{len(fields)} to {most}"
    names = ", ".join(f'"{field}"' for field in fields)
    advice = f" Write each row as a list: [[{names}]]." if len(fields) > 1 else ""
    for place, row in enumerate(rows):
        check(
            len(fields) <= len(row) <= most and (not has_list or len(row) == len(rows[0])),
            f"rows[{place}]: {method} takes {', '.join(fields)}, {counts} texts"
            f"{', as many in every row' * has_list}. Received: {len(row)}.{advice}",
        )
        length, limit = sum(map(len, row)), settings.max_text
        check(
            length <= limit, f"rows[{place}]: at most {limit} characters. Received: {length}.", 413
        )
    with refusing("inputs: texts must be whole characters. Received: "):
        "".join(text for row in rows for text in row).encode()
    is_valid = type(top_k) is int and 1 <= top_k <= MOST_ANSWERS
    check(is_valid, f"top_k: an int from 1 to {MOST_ANSWERS} is needed. Received: {top_k!r:.60}.")
    if method in ("fill_mask", "mask_ids"):
        mask = served.model.tokenizer.mask_token
        size = sum(text.count(mask) * top_k * (len(text) + 64) for (text,) in rows)
        message = f"inputs: fewer {mask}, shorter texts or a smaller top_k are needed."
        check(size <= MOST_CANDIDATES, message, 413)
