"""The grammar of #FSXWARM lines and of --comment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.model.directive import MARK, Directive, DirectiveError, overlooked, parse_comment, parse_script
from fsxwarm.model.order import Order

_HEAD = "#!/bin/bash\n#SBATCH -N 4\n"


def _wrong(script: str) -> DirectiveError:
    with pytest.raises(DirectiveError) as caught:
        parse_script(script)
    return caught.value


def test_a_script_s_lines_count_as_one() -> None:
    script = (
        f"{_HEAD}#FSXWARM preload=/fsx/imagenet ready=0.2 deadline=30m\n\n"
        "#FSXWARM\tpreload=s3://bucket/val list=/fsx/epoch0.txt release=after lease=2d\n"
        "#FSXWARM include=*.tar exclude=tmp/** order=largest fit=yes\nsrun train\n"
    )

    assert parse_script(script) == Directive(
        paths=("/fsx/imagenet", "s3://bucket/val"),
        lists=("/fsx/epoch0.txt",),
        include=("*.tar",),
        exclude=("tmp/**",),
        ready=0.2,
        deadline=1800.0,
        order=Order.LARGEST,
        fit=True,
        release=True,
        lease=2 * 86400.0,
    )


@pytest.mark.parametrize(
    "script",
    ["", "#!/bin/sh\nsrun x\n", "#FSXWARMING preload=/a\n", "# FSXWARM preload=/a\n", "srun x\n#FSXWARM preload=/a\n"],
)
def test_a_script_without_directives_says_nothing(script: str) -> None:
    assert parse_script(script) is None


@pytest.mark.parametrize(
    ("comment", "paths"),
    [
        ("fsxwarm:preload=/a", ("/a",)),
        ("project x; fsxwarm: preload=/a preload=/b", ("/a", "/b")),
        ("team=a,fsxwarm:preload='/a b'", ("/a b",)),
    ],
)
def test_a_comment_may_say_other_things_first(comment: str, paths: tuple[str, ...]) -> None:
    directive = parse_comment(comment)

    assert directive is not None
    assert directive.paths == paths


@pytest.mark.parametrize("comment", ["", "nothing", "notfsxwarm:preload=/a", "FSXWARM preload=/a"])
def test_a_comment_about_other_things_says_nothing(comment: str) -> None:
    assert parse_comment(comment) is None


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("#FSXWARM perload=/a", 10, "unknown key 'perload' (did you mean preload?)"),
        ("#FSXWARM preload=/a readdy", 21, "'readdy' is no key=value"),
        ("#FSXWARM preload=/a =3", 21, "'=' is no key=value"),
        ("#FSXWARM preload=", 18, "preload= has no value"),
        ("#FSXWARM preload=''", 18, "preload= has no value"),
        ("#FSXWARM preload=imagenet", 18, "preload: 'imagenet' is no absolute path"),
        ("#FSXWARM preload=~/x", 18, "nothing is expanded"),
        ("#FSXWARM preload=s3://", 18, "preload: "),
        ("#FSXWARM preload=/a ready=2", 27, "ready: '2' is no share"),
        ("#FSXWARM preload=/a deadline=soon", 30, "deadline: 'soon' is no duration"),
        ("#FSXWARM preload=/a deadline=0s", 30, "deadline: '0s' is no time at all"),
        ("#FSXWARM preload=/a lease=40d", 27, "lease: '40d' is more than 30 days"),
        ("#FSXWARM preload=/a ready=0.1 ready=0.2", 31, "ready is given twice"),
        ("#FSXWARM preload=/a order=random", 27, "order: 'random' is no order: one of listed"),
        ("#FSXWARM preload=/a fit=1", 25, "fit: '1' is neither yes nor no"),
        ("#FSXWARM preload=/a release=before", 29, "release=after gives"),
        ("#FSXWARM preload=/a include=[", 29, "include: "),
        ("#FSXWARM preload='/a", 18, "this quote is never closed"),
        ('#FSXWARM preload="/a\\"', 18, "this quote is never closed"),
        ("#FSXWARM preload='/a'/b", 22, "a blank must follow the closing quote"),
        ("#FSXWARM list=s3://bucket/list", 15, "list: "),
        ("#FSXWARM ready=0.2", 19, "nothing is asked for"),
        ("#FSXWARM", 9, "nothing is asked for"),
    ],
)
def test_an_error_points_at_its_column(line: str, column: int, message: str) -> None:
    error = _wrong(f"{_HEAD}{line}\nsrun x\n")

    assert message in error.message
    assert (error.line, error.column, error.source) == (3, column, line)


def test_an_error_shows_the_place() -> None:
    assert _wrong("#FSXWARM\tperload=/a").pointed() == "#FSXWARM\tperload=/a\n        \t^"


def test_what_slurm_overlooks_is_told() -> None:
    script = "#!/bin/sh\n#fsxwarm preload=/a\n # FSXWARM preload=/a\nsrun x\n#FSXWARM preload=/b\n#FSXWARMING\n"

    assert [number for number, _ in overlooked(script)] == [2, 3, 5]


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


_paths = st.text(st.characters(exclude_characters="\0\n", exclude_categories=()), max_size=30).map(
    lambda text: f"/{text}"
)


@given(st.lists(_paths, min_size=1, max_size=5))
def test_any_path_can_be_named_in_quotes(paths: list[str]) -> None:
    directive = parse_script(f"{MARK} " + " ".join(f"preload={_quoted(path)}" for path in paths) + " ")

    assert directive is not None
    assert directive.paths == tuple(paths)


def _read(line: str) -> Directive | DirectiveError | None:
    try:
        return parse_script(line)
    except DirectiveError as error:
        return error


@given(st.text())
def test_whatever_is_written_is_read_or_pointed_at(text: str) -> None:
    line = f"{MARK} {text}".split("\n")[0]

    found = _read(line)

    if isinstance(found, DirectiveError):
        assert found.line == 1
        assert 1 <= found.column <= len(line) + 1
    else:
        assert found is not None
        assert found.paths or found.lists
