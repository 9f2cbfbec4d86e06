"""Create an object of S3 in one conditional put, and find out how it ended: done, conflict, or unknown.

A request that timed out may have been carried out. So the object is looked up before anything is said: if it has our
content, the put is done; if it is not there, the put is repeated, which cannot overwrite anything.
"""

from __future__ import annotations

import logging
import os
import time
from typing import Any, Literal

from pyarrow import fs

from schemas.errors import ConfigurationError

logger = logging.getLogger(__name__)

PutOutcome = Literal["done", "conflict", "unknown"]
ATTEMPTS = 4
WAIT = 1.0  # seconds between attempts
_EXISTS, _BUSY, _MISSING = 412, 409, 404  # HTTP status
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


def open_s3(location: str) -> tuple[fs.FileSystem, str]:
    """Open a URI as a file system of Arrow and the path in it; AWS_ENDPOINT_URL names another server than Amazon's."""
    uri = location.replace("s3a://", "s3://", 1)  # Spark says s3a where Arrow says s3
    endpoint = next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), None)
    if endpoint is None:
        files, root = fs.FileSystem.from_uri(uri)
        return files, str(root)
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    scheme, _, host = endpoint.rstrip("/").rpartition("://")
    return fs.S3FileSystem(endpoint_override=host, scheme=scheme or "https", region=region), uri.removeprefix("s3://")


def create_object(path: str, content: bytes) -> PutOutcome:
    """Create the object `bucket/key` if there is none, and say how that ended."""
    bucket, _, key = path.partition("/")
    client = _open_client()
    for attempt in range(1, ATTEMPTS + 1):
        status = _try_put(client, bucket, key, content)
        if status == "done":
            return "done"
        outcome = _look_up(client, bucket, key, content)
        if outcome in ("done", "conflict"):
            return outcome
        logger.debug("attempt %d to create %s: %s, then %s", attempt, path, status, outcome)
        time.sleep(WAIT)
    return "unknown"


def _try_put(client: Any, bucket: str, key: str, content: bytes) -> Literal["done", "exists", "unknown"]:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        client.put_object(Bucket=bucket, Key=key, Body=content, IfNoneMatch="*")
    except ClientError as error:
        status = _read_status(error)
        if status < 500 and status not in (_EXISTS, _BUSY):
            raise OSError(str(error)) from error  # refused: nothing was written
        return "exists" if status == _EXISTS else "unknown"
    except BotoCoreError:  # timed out, or the connection broke
        return "unknown"
    return "done"


def _look_up(client: Any, bucket: str, key: str, content: bytes) -> Literal["done", "conflict", "absent", "unknown"]:
    """Whose object is there; `unknown` if the store does not answer."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        present = client.get_object(Bucket=bucket, Key=key)["Body"].read()
    except ClientError as error:
        return "absent" if _read_status(error) == _MISSING else "unknown"
    except (BotoCoreError, OSError):
        return "unknown"
    return "done" if present == content else "conflict"


def _read_status(error: Any) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _open_client() -> Any:
    try:
        import boto3
        from botocore.config import Config
    except ImportError:
        raise ConfigurationError(
            "a warehouse on S3 needs boto3, for the conditional put that commits a run",
            where="warehouse",
            hint="pip install 'assay[s3]'",
        ) from None
    return boto3.client("s3", config=Config(connect_timeout=10, read_timeout=30, retries={"total_max_attempts": 1}))
