"""S3, FSx's log and the simulated file system are one world: what is in S3 decides what a restore comes to."""

from __future__ import annotations

from pathlib import Path

from aws.conftest import MakeWorld
from aws.world import World, reported


def test_one_in_a_hundred_in_glacier_missing_or_denied_each_has_its_reason(
    make_world: MakeWorld, tmp_path: Path
) -> None:
    world = make_world(1000)
    files = world.files
    cold, gone, denied = files[::100], files[1::100], files[2::100]
    world.archive(cold)
    world.delete(gone)
    world.deny(denied)
    report = tmp_path / "report"
    done = world.here.fsxwarm("preload", "s3://data/base/", "--json", "--report", report, "--attempts", "1")
    assert done.status == 3, done
    expected = {str(path): ("blocked", "storage_class") for path in cold}
    expected |= {str(path): ("blocked", "object_missing") for path in gone}
    expected |= {str(path): ("failed", "access_denied") for path in denied}
    assert reported(report) == expected
    assert done.json["outcomes"]["restored"]["files"] == 970
    assert done.json["s3"]["checked"]["files"] == 1000
    assert done.json["s3"]["requests"] == 1
    assert world.here.fsx.control("counters")["requests"] <= 1000
    assert world.released() == sorted([*cold, *gone, *denied])


def test_unasked_s3_lets_restores_fail_by_itself_and_the_log_says_why(world: World) -> None:
    cold, gone, denied = world.files[:3]
    world.archive([cold], "DEEP_ARCHIVE")
    world.delete([gone])
    world.deny([denied])
    done = world.here.fsxwarm("preload", world.here.fsx.mount, "--json", "--check-s3", "never", "--attempts", "1")
    assert done.status == 3, done
    assert done.json["outcomes"]["failed"]["files"] == 3
    assert sorted(event["message"].partition("because ")[2] for event in world.account.events) == [
        f"S3 object {world.key(cold)} in bucket data was in an unsupported DEEP_ARCHIVE.",
        f"S3 object with key {world.key(gone)} was not found in S3 bucket data.",
        f"access was denied to S3 object {world.key(denied)} in S3 bucket data.",
    ]


def test_once_s3_can_give_them_the_same_files_are_restored(world: World) -> None:
    some = world.files[:2]
    world.archive(some[:1])
    world.delete(some[1:])
    assert world.here.fsxwarm("preload", world.here.fsx.mount, "--attempts", "1").status == 3
    assert world.released() == some
    world.s3.restore_object(Bucket="data", Key=world.key(some[0]), RestoreRequest={"Days": 1})
    world.put_back(some[1])
    done = world.here.fsxwarm("preload", world.here.fsx.mount, "--check-s3", "never")  # moto lists no RestoreStatus
    assert done.status == 0, done
    assert world.released() == []


def test_glacier_instant_retrieval_is_restored_as_it_is(world: World) -> None:
    world.archive(world.files[:1], "GLACIER_IR")
    done = world.here.fsxwarm("preload", world.here.fsx.mount)
    assert done.status == 0, done
    assert world.released() == []


def test_a_bucket_that_is_gone_explains_all_its_files(make_world: MakeWorld) -> None:
    world = make_world(20)
    files = world.files
    world.delete(files)
    world.s3.delete_bucket(Bucket="data")
    done = world.here.fsxwarm("preload", world.here.fsx.mount, "--json", "--attempts", "1")
    assert done.status == 3, done
    (cold,) = done.json["cold"]
    assert (cold["reason"], cold["files"]) == ("bucket_missing", len(files))
