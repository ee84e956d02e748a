"""What is wrong with a request, in plain words: pydantic's own tell of its types, not of what to write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.units import format_count

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_KINDS: Final = frozenset({"constrained-str", "Exact"})
"""What pydantic adds to the place of a path, which may be written in two ways: the way that it has tried."""
_A_PATH: Final = 'must be a string or {"path_b64": "…"}'
_OF_ANOTHER_KIND: Final = frozenset({"string_type", "model_type", "missing", "extra_forbidden"})

_WORDS: Final = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "enum": "must be {expected}",
    "extra_forbidden": "there is no such field",
    "finite_number": "must be a finite number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "greater_than": "must be more than {gt:,}",
    "greater_than_equal": "must be at least {ge:,}",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "is too large a number",
    "int_type": "must be a whole number",
    "json_invalid": "is no JSON: {error}",
    "less_than": "must be less than {lt:,}",
    "less_than_equal": "must be at most {le:,}",
    "list_type": "must be a list",
    "literal_error": "must be {expected}",
    "missing": "is missing",
    "model_type": "must be an object",
    "string_too_long": "is longer than {max_length:,} characters",
    "string_too_short": "is shorter than {min_length:,} characters",
    "string_type": "must be a string",
    "too_long": "has more than {max_length:,} items",
    "too_short": "has fewer than {min_length:,} items",
    "value_error": "{error}",
}
"""By the types of pydantic's errors, with what each knows in its context."""


def of_request(error: ValidationError) -> FsxwarmError:
    """The error USAGE that names the first mistake in a request, and how many more there are."""
    mistakes: dict[str, str] = {}
    for detail in error.errors(include_url=False, include_input=False):
        place = _place(detail)
        if mistakes.get(place, _A_PATH) == _A_PATH:  # of a path's two ways, what is wrong with the one that was taken
            mistakes[place] = _what(detail)
    where, what = next(iter(mistakes.items()))
    more = len(mistakes) - 1
    rest = f" (and {format_count(more, 'more mistake')})" if more else ""
    return FsxwarmError(Kind.USAGE, f"{where}: {what}{rest}", hint="see /v1/openapi.json")


def _place(detail: ErrorDetails) -> str:
    """Where it is, as one would write it: `paths[0]`, `options.ready`."""
    place = ""
    for step in detail["loc"]:
        if isinstance(step, int):
            place += f"[{step}]"
        elif step in _KINDS:
            break
        else:
            place += f".{step}" if place else step
    return place or "the request"


def _what(detail: ErrorDetails) -> str:
    if detail["type"] in _OF_ANOTHER_KIND and not _KINDS.isdisjoint(detail["loc"]):
        return _A_PATH
    context = {name: _plain(value) for name, value in detail.get("ctx", {}).items()}
    words = _WORDS.get(detail["type"])
    return detail["msg"] if words is None else words.format_map(context)


def _plain(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value
