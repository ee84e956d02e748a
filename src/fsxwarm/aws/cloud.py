"""FSx and S3 through boto3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fsxwarm.aws.calls import Calls
from fsxwarm.model import actions
from fsxwarm.model.association import Association, FileSystem, as_prefix
from fsxwarm.model.s3 import Stored, Thaw, ThawTier, parse_restore
from fsxwarm.ports.cloud import CloudError, Content, Fault, Listed, Task, TaskState

_PAGE: Final = 1000
_ASSOCIATIONS_AT_ONCE: Final = 25
_GIB: Final = 2**30
_ALREADY: Final = "RestoreAlreadyInProgress"


class AwsCloud:
    """Implements `fsxwarm.ports.cloud.Cloud`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    # ---- file systems ------------------------------------------------------------------------------------------

    async def file_systems(self, ids: Sequence[str] = ()) -> list[FileSystem]:
        """See `Cloud`."""
        fields: dict[str, Any] = {"FileSystemIds": list(ids)} if ids else {}
        found: list[FileSystem] = []
        while True:
            page = await self._calls.call("fsx", "describe_file_systems", actions.DESCRIBE_FILE_SYSTEMS, **fields)
            found += [_file_system(one) for one in page["FileSystems"] if one.get("FileSystemType") == "LUSTRE"]
            if not page.get("NextToken"):
                return found
            fields["NextToken"] = page["NextToken"]

    async def associations(self, system: str) -> list[Association]:
        """See `Cloud`. The service has no paginator for this."""
        fields: dict[str, Any] = {
            "Filters": [{"Name": "file-system-id", "Values": [system]}],
            "MaxResults": _ASSOCIATIONS_AT_ONCE,
        }
        found: list[Association] = []
        while True:
            page = await self._calls.call(
                "fsx", "describe_data_repository_associations", actions.DESCRIBE_ASSOCIATIONS, **fields
            )
            found += [_association(one) for one in page.get("Associations", []) if one.get("FileSystemPath")]
            if not page.get("NextToken"):
                return found
            fields["NextToken"] = page["NextToken"]

    # ---- objects -----------------------------------------------------------------------------------------------

    async def list_objects(self, bucket: str, prefix: str, after: str) -> Listed:
        """See `Cloud`."""
        fields: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix, "MaxKeys": _PAGE}
        if after:
            fields["StartAfter"] = after
        page = await self._calls.call(
            "s3", "list_objects_v2", actions.LIST_BUCKET, OptionalObjectAttributes=["RestoreStatus"], **fields
        )
        objects = {one["Key"]: _listed(one) for one in page.get("Contents", [])}
        return Listed(objects, next(reversed(objects), ""), bool(page.get("IsTruncated")))

    async def head(self, bucket: str, key: str) -> Stored | None:
        """See `Cloud`."""
        try:
            found = await self._calls.call("s3", "head_object", actions.GET_OBJECT, Bucket=bucket, Key=key)
        except CloudError as error:
            if error.fault is Fault.NOT_FOUND:
                return None
            raise
        return Stored(
            found["ContentLength"],
            int(found["LastModified"].timestamp()),
            found.get("StorageClass", "STANDARD"),
            parse_restore(found.get("Restore", "")),
            found.get("ArchiveStatus", ""),
        )

    async def thaw(self, bucket: str, key: str, tier: ThawTier, days: int) -> None:
        """See `Cloud`. An Intelligent-Tiering object moves back for good and takes no number of days."""
        request: dict[str, Any] = {"GlacierJobParameters": {"Tier": tier.value}}
        if days:
            request["Days"] = days
        try:
            await self._calls.call(
                "s3", "restore_object", actions.RESTORE_OBJECT, Bucket=bucket, Key=key, RestoreRequest=request
            )
        except CloudError as error:
            if error.code != _ALREADY:
                raise

    async def read_object(self, bucket: str, key: str) -> Content:
        """See `Cloud`."""
        found = await self._calls.call("s3", "get_object", actions.GET_OBJECT, Bucket=bucket, Key=key)
        body: bytes = found["Body"]
        return Content(body, whole=len(body) == found["ContentLength"])

    # ---- tasks -------------------------------------------------------------------------------------------------

    async def release_task(self, system: str, paths: Sequence[str], days: int, token: str, report: str) -> Task:
        """See `Cloud`."""
        reported: dict[str, Any] = {"Enabled": False}
        if report:
            reported = {
                "Enabled": True,
                "Path": report,
                "Format": "REPORT_CSV_20191124",
                "Scope": "FAILED_FILES_ONLY",
            }
        answer = await self._calls.call(
            "fsx",
            "create_data_repository_task",
            actions.CREATE_TASK,
            Type="RELEASE_DATA_FROM_FILESYSTEM",
            FileSystemId=system,
            Paths=list(paths),
            Report=reported,
            ClientRequestToken=token,
            ReleaseConfiguration={"DurationSinceLastAccess": {"Unit": "DAYS", "Value": days}},
        )
        return _task(answer["DataRepositoryTask"])

    async def task(self, id: str) -> Task:  # noqa: A002 - the service's word
        """See `Cloud`."""
        answer = await self._calls.call("fsx", "describe_data_repository_tasks", actions.DESCRIBE_TASKS, TaskIds=[id])
        found = answer.get("DataRepositoryTasks", [])
        if not found:
            raise CloudError(Fault.NOT_FOUND, actions.DESCRIBE_TASKS, "DataRepositoryTaskNotFound", f"no task {id}")
        return _task(found[0])

    # ---- who -----------------------------------------------------------------------------------------------

    async def who(self) -> str:
        """See `Cloud`."""
        return str((await self._calls.call("sts", "get_caller_identity", actions.WHO))["Arn"])

    async def denied(self, arn: str, action: str, resources: Sequence[str]) -> bool | None:
        """See `Cloud`. A role's session is asked about as its role."""
        fields: dict[str, Any] = {
            "PolicySourceArn": _role_of(arn),
            "ActionNames": [action],
            "ResourceArns": list(resources),
        }
        try:
            answer = await self._calls.call("iam", "simulate_principal_policy", actions.SIMULATE, **fields)
        except CloudError:
            return None
        return any(one["EvalDecision"] != "allowed" for one in answer["EvaluationResults"])


def _role_of(arn: str) -> str:
    """`arn:aws:sts::1:assumed-role/NAME/SESSION` is a session of `arn:aws:iam::1:role/NAME`."""
    head, _, tail = arn.partition(":assumed-role/")
    return f"{head.replace(':sts:', ':iam:')}:role/{tail.split('/')[0]}" if tail else arn


def _file_system(one: Mapping[str, Any]) -> FileSystem:
    lustre = one.get("LustreConfiguration", {})
    link = lustre.get("DataRepositoryConfiguration", {})
    squash = lustre.get("RootSquashConfiguration", {})
    metadata = lustre.get("MetadataConfiguration", {})
    return FileSystem(
        id=one["FileSystemId"],
        dns_name=one.get("DNSName", ""),
        mount_name=lustre.get("MountName", ""),
        lifecycle=one.get("Lifecycle", ""),
        version=one.get("FileSystemTypeVersion", "2.10"),
        deployment=lustre.get("DeploymentType", ""),
        storage=one.get("StorageType", "SSD"),
        capacity=one.get("StorageCapacity", 0) * _GIB,
        throughput=lustre.get("PerUnitStorageThroughput", 0),
        compression=lustre.get("DataCompressionType", "NONE"),
        log_group=_group(lustre.get("LogConfiguration", {})),
        root_squash=squash.get("RootSquash", ""),
        metadata=metadata.get("Mode", ""),
        metadata_iops=metadata.get("Iops", 0),
        import_path=link.get("ImportPath", ""),
        import_lifecycle=link.get("Lifecycle", ""),
        import_policy=link.get("AutoImportPolicy", ""),
        import_failure=link.get("FailureDetails", {}).get("Message", ""),
        arn=one.get("ResourceARN", ""),
        log_level=lustre.get("LogConfiguration", {}).get("Level", ""),
    )


def _group(log: Mapping[str, Any]) -> str:
    """The name in a log group's ARN; empty when errors are not logged there."""
    if log.get("Level", "DISABLED") == "DISABLED":
        return ""
    destination: str = log.get("Destination", "")
    _, _, name = destination.partition(":log-group:")
    return name.removesuffix(":*") or "/aws/fsx/lustre"


def _association(one: Mapping[str, Any]) -> Association:
    s3 = one.get("S3", {})
    return Association(
        id=one.get("AssociationId", ""),
        folder="/" + one["FileSystemPath"].strip("/"),
        uri=as_prefix(one.get("DataRepositoryPath", "")),
        lifecycle=one.get("Lifecycle", ""),
        failure=one.get("FailureDetails", {}).get("Message", ""),
        imports=tuple(s3.get("AutoImportPolicy", {}).get("Events", [])),
        exports=tuple(s3.get("AutoExportPolicy", {}).get("Events", [])),
    )


def _listed(one: Mapping[str, Any]) -> Stored:
    status = one.get("RestoreStatus", {})
    thaw = Thaw.NONE
    if status.get("IsRestoreInProgress"):
        thaw = Thaw.ONGOING
    elif status.get("RestoreExpiryDate") is not None:
        thaw = Thaw.LIVE
    return Stored(one["Size"], int(one["LastModified"].timestamp()), one.get("StorageClass", "STANDARD"), thaw)


def _task(one: Mapping[str, Any]) -> Task:
    status = one.get("Status", {})
    return Task(
        id=one["TaskId"],
        state=TaskState(one["Lifecycle"]),
        total=status.get("TotalCount", 0),
        released=status.get("SucceededCount", 0),
        failed=status.get("FailedCount", 0),
        failure=one.get("FailureDetails", {}).get("Message", ""),
    )
