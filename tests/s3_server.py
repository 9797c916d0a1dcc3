"""A real S3 on 127.0.0.1, by moto: for tests of corpora in S3, in this process and in others."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow.fs
import pytest

BUCKET = "bucket"


@contextmanager
def s3_server(patch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Start a server with an empty bucket, let S3 be there, and give a file system to look at."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    known = {"ACCESS_KEY_ID": "us", "SECRET_ACCESS_KEY": "none", "EC2_METADATA_DISABLED": "true"}
    for name, value in {**known, "ENDPOINT_URL": f"http://{host}:{port}"}.items():
        patch.setenv(f"AWS_{name}", value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3"):
        if name in os.environ:
            patch.delenv(name)
    try:
        files = pyarrow.fs.S3FileSystem(
            endpoint_override=f"{host}:{port}", scheme="http", allow_bucket_creation=True
        )
        files.create_dir(BUCKET)
        yield files
    finally:
        server.stop()
