"""The IAM actions that fsxwarm's calls need, each with the feature that makes it. The policies allow no others."""

from __future__ import annotations

from typing import Final

DESCRIBE_FILE_SYSTEMS: Final = "fsx:DescribeFileSystems"
DESCRIBE_ASSOCIATIONS: Final = "fsx:DescribeDataRepositoryAssociations"
CREATE_TASK: Final = "fsx:CreateDataRepositoryTask"
DESCRIBE_TASKS: Final = "fsx:DescribeDataRepositoryTasks"
LIST_BUCKET: Final = "s3:ListBucket"
GET_OBJECT: Final = "s3:GetObject"
RESTORE_OBJECT: Final = "s3:RestoreObject"
FILTER_EVENTS: Final = "logs:FilterLogEvents"
WHO: Final = "sts:GetCallerIdentity"
SIMULATE: Final = "iam:SimulatePrincipalPolicy"

FEATURES: Final[dict[str, str]] = {
    DESCRIBE_FILE_SYSTEMS: "tell which file system a mount is: associations, s3:// paths, plan, doctor",
    DESCRIBE_ASSOCIATIONS: "map paths to objects: associations, s3:// paths, --check-s3, plan",
    LIST_BUCKET: "--check-s3 and plan: is each object there, of which size and class",
    GET_OBJECT: "--check-s3: archive tiers of Intelligent-Tiering; waiting for a thaw; failure reports of tasks",
    FILTER_EVENTS: "say why restores failed",
    WHO: "doctor: who you are (needs no permission)",
    SIMULATE: "doctor: which of these actions you lack",
    RESTORE_OBJECT: "--thaw",
    CREATE_TASK: "release --service",
    DESCRIBE_TASKS: "release --service",
}
