"""AWS through boto3: which file system, what is in S3, why restores failed, release tasks."""
