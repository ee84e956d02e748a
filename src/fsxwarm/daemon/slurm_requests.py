"""What Slurm's hooks say: checked strictly, the job's own text aside, which is read as it is."""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from fsxwarm.errors import FsxwarmError, Kind
from fsxwarm.model.directive import Directive, DirectiveError, parse_comment, parse_script

_LONGEST_TEXT: Final = 8 << 20
"""Characters of a batch script: Slurm's own limit is 4 MiB (max_script_size), in base64 a third more."""
_LONGEST_WAIT: Final = 60.0


def _base64(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("is no base64") from None
    return text


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    slurm_job_id: Annotated[str, Field(pattern="^[0-9]{1,20}$")]
    uid: Annotated[int, Field(ge=0, lt=2**32 - 1)]
    """Whose job it is."""
    source: Literal["script", "comment"] = "comment"
    text_b64: Annotated[str, Field(max_length=_LONGEST_TEXT), AfterValidator(_base64)] = ""
    """The job's batch script, or its comment, as it is."""

    @property
    def label(self) -> str:
        """What the jobs and leases of this wish are labelled with: begun with another text, a job is another one."""
        return f"slurm {self.source} {zlib.crc32(self.text_b64.encode()):08x}"

    def directive(self) -> Directive | None:
        """What the text asks for. FsxwarmError USAGE says where it is wrong."""
        text = base64.b64decode(self.text_b64).decode("utf-8", "surrogateescape")
        try:
            return parse_script(text) if self.source == "script" else parse_comment(text)
        except DirectiveError as error:
            where = error.where if self.source == "script" else f"comment, column {error.column}"
            hint = "see `fsxwarm slurm check`"
            raise FsxwarmError(Kind.USAGE, f"{where}: {error.message}", hint=hint) from None


class SlurmBegin(_Body):
    """A job of Slurm wants to begin."""

    wait: Annotated[float, Field(ge=0, le=_LONGEST_WAIT, allow_inf_nan=False)] = 0.0
    """Seconds after which to answer, ready or not."""

    job: Annotated[str, Field(max_length=200)] = ""
    """The job that an earlier answer named: it is waited for, and none is begun unless it was forgotten."""


class SlurmEnd(_Body):
    """A job of Slurm has ended, or was cancelled before it began."""

    ran: bool = True
    """Whether it has begun: only then is the space given back that it asked to give back."""
