"""Settings from the environment."""

from __future__ import annotations

import pytest

from fsxwarm.config import Settings
from fsxwarm.errors import Exit, FsxwarmError
from fsxwarm.model.units import Amount


def test_without_variables_the_defaults_hold() -> None:
    assert Settings.from_environ({"HOME": "/", "FSXWARM_ATTEMPTS": ""}) == Settings()


def test_each_kind_of_field_is_read_in_its_unit() -> None:
    settings = Settings.from_environ(
        {
            "FSXWARM_LFS": "/opt/lfs",
            "FSXWARM_ATTEMPTS": "7",
            "FSXWARM_CALL_DEADLINE": "2m",
            "FSXWARM_RESERVE": "1TB",
        }
    )
    assert (settings.lfs, settings.attempts, settings.call_deadline) == ("/opt/lfs", 7, 120.0)
    assert settings.reserve == Amount(bytes=10**12)


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("FSXWARM_ATTEMPTS", "many"),
        ("FSXWARM_ATTEMPTS", "0"),
        ("FSXWARM_CALL_DEADLINE", "5 parsecs"),
        ("FSXWARM_CALL_DEADLINE", "0s"),
        ("FSXWARM_RESERVE", "110%"),
        ("FSXWARM_WINDOW_START", "6000"),
    ],
)
def test_a_bad_variable_is_named(variable: str, text: str) -> None:
    with pytest.raises(FsxwarmError, match=variable) as caught:
        Settings.from_environ({variable: text})
    assert caught.value.exit is Exit.USAGE
