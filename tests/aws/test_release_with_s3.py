"""Nothing is released whose data S3 does not hold."""

from __future__ import annotations

from aws.world import FILES, World


def _warm(world: World) -> None:
    assert world.here.fsxwarm("preload", world.here.fsx.mount, "--check-s3", "never").status == 0


def test_a_file_without_its_object_is_not_released_and_is_named(world: World) -> None:
    _warm(world)
    missing, other = world.files[3], world.files[200]
    world.s3.delete_object(Bucket="data", Key=world.key(missing))
    world.s3.put_object(Bucket="data", Key=world.key(other), Body=b"short")
    done = world.here.fsxwarm("release", world.here.fsx.mount, "--yes", "--json")
    assert done.status == 3, done
    assert done.json["released"]["files"] == FILES - 2
    left = done.json["left"]
    assert left["no_object"]["first"] == [{"path": str(missing)}]
    assert left["other_size"]["first"] == [{"path": str(other)}]


def test_auto_without_credentials_warns_and_trusts_the_flags(world: World) -> None:
    _warm(world)
    variables = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    done = world.here.fsxwarm("release", world.here.fsx.mount, "--yes", **variables)
    assert done.status == 0
    assert done.err.count("without AWS credentials") == 1


def test_making_room_releases_nothing_that_it_cannot_check(world: World) -> None:
    _warm(world)
    strict = {"FSXWARM_RELEASE_UNCHECKED": "no"}
    arguments = ("release", world.here.fsx.mount, "--yes", "--until-free", "100%", "--json")
    nobody = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    blind = world.here.fsxwarm(*arguments, **strict, **nobody)
    assert blind.status == 5
    assert "credentials" in blind.err
    assert world.here.fsxwarm(*arguments, "--check-s3", "never", **strict).status == 2
    world.account.associations[0]["FileSystemPath"] = "/imagenet"
    done = world.here.fsxwarm(*arguments, **strict)
    assert done.json["released"]["files"] == 0
    assert done.json["left"]["unchecked"]["files"] == FILES * 2 // 3
