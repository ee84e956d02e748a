"""A preload on a simulated FSx whose objects are in S3: each file that S3 cannot give has its reason."""

from __future__ import annotations

from aws.fake_endpoint import Trouble
from aws.world import FILES, World


def test_never_asks_nothing_of_aws(world: World) -> None:
    world.archive(world.files[:1])
    done = world.here.fsxwarm("preload", world.here.fsx.mount, "--json", "--check-s3", "never", "--attempts", "1")
    assert done.status == 3
    assert done.json["outcomes"]["failed"]["files"] == 1
    assert not world.account.calls


def test_without_credentials_it_says_so_once_and_goes_on(world: World) -> None:
    variables = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    done = world.here.fsxwarm("preload", world.here.fsx.mount, **variables)
    assert done.status == 0, done
    assert done.err.count("without AWS credentials") == 1
    always = world.here.fsxwarm("preload", world.here.fsx.mount, "--check-s3", "always", **variables)
    assert always.status == 0  # all is resident: nothing has to be looked up


def test_always_fails_when_s3_may_not_be_listed(world: World) -> None:
    world.account.trouble = [Trouble("DescribeDataRepositoryAssociations", code="AccessDeniedException", times=9)]
    done = world.here.fsxwarm("preload", world.here.fsx.mount, "--check-s3", "always")
    assert done.status == 5
    assert "fsx:DescribeDataRepositoryAssociations" in done.err
    assert world.here.fsx.control("calls").get("requests", 0) == 0


def test_without_its_log_a_failure_stays_unexplained_and_it_is_said(world: World) -> None:
    world.deny(world.files[:1])
    world.account.trouble = [Trouble("FilterLogEvents", code="AccessDeniedException", times=99)]
    done = world.here.fsxwarm("preload", world.here.fsx.mount, "--attempts", "1")
    assert done.status == 3
    assert "allow logs:FilterLogEvents" in done.err


def test_when_credentials_expire_in_the_middle_it_waits_and_goes_on_once_they_are_renewed(world: World) -> None:
    """The listing worked; they expire before the log is read."""
    world.deny(world.files[:1])
    world.account.trouble = [Trouble("FilterLogEvents", code="ExpiredTokenException", times=1)]
    done = world.here.fsxwarm("preload", world.here.fsx.mount, "--attempts", "1", "--progress", "lines")
    assert done.status == 3, done
    assert done.err.count("credentials have expired: waiting until they are renewed") == 1
    assert "valid again" in done.err
    assert "FSx was denied access" in done.out


def test_throttling_is_waited_out(world: World) -> None:
    for operation in ("DescribeFileSystems", "DescribeDataRepositoryAssociations"):
        world.account.trouble.append(Trouble(operation, code="ThrottlingException", times=2))
    done = world.here.fsxwarm("preload", world.here.fsx.mount, "--json")
    assert done.status == 0, done
    assert done.json["s3"]["checked"]["files"] == FILES
