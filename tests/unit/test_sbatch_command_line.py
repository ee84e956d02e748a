"""Which word of sbatch's command line is the script."""

from __future__ import annotations

import pytest

from fsxwarm.model.sbatch import parse_sbatch


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("train.sh", 0),
        ("-N 4 train.sh -N 9", 2),
        ("-N4 --exclusive train.sh a b", 2),
        ("--nodes 4 --time=2:00 -H train.sh --hold", 4),
        ("--wait --nice=5 -o log.txt train.sh", 4),
        ("--parsable -- train.sh", 1),
    ],
)
def test_the_script_is_behind_the_options(line: str, options: int) -> None:
    words = line.split()
    parsed = parse_sbatch(words)

    assert (parsed.script, len(parsed.options)) == ("train.sh", options)
    assert parsed.arguments == tuple(words[words.index("train.sh") + 1 :])


@pytest.mark.parametrize("line", ["", "-N 4", "--wait", "--"])
def test_without_a_script_it_says_so(line: str) -> None:
    with pytest.raises(ValueError, match="no batch script"):
        parse_sbatch(line.split())


def test_an_option_s_values_are_found_however_they_are_written() -> None:
    parsed = parse_sbatch(["-d", "afterok:1", "-dsingleton", "--dependency=after:2", "--dependency", "after:3", "x.sh"])

    assert parsed.values("dependency", "d") == ["afterok:1", "singleton", "after:2", "after:3"]
    assert parsed.values("comment") == []
