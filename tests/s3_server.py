"""A real S3 on 127.0.0.1, by moto: for tests and tools, in this process and in others."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow.fs
import pytest

BUCKET = "bucket"


KEYS = {"ACCESS_KEY_ID": "us", "SECRET_ACCESS_KEY": "none", "EC2_METADATA_DISABLED": "true"}


class Server(NamedTuple):
    """Where S3 is, and a file system to look at it."""

    host: str
    port: int
    files: Any


@contextmanager
def server() -> Iterator[Server]:
    """Start a server with an empty bucket."""
    from moto.server import ThreadedMotoServer

    started = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    started.start()
    try:
        host, port = started.get_host_and_port()
        files = pyarrow.fs.S3FileSystem(
            access_key=KEYS["ACCESS_KEY_ID"],
            secret_key=KEYS["SECRET_ACCESS_KEY"],
            endpoint_override=f"{host}:{port}",
            scheme="http",
            allow_bucket_creation=True,
        )
        files.create_dir(BUCKET)
        yield Server(host, port, files)
    finally:
        started.stop()


def environment(endpoint: str) -> dict[str, str]:
    """Return the variables by which programs find S3 at an endpoint, such as 127.0.0.1:5000."""
    return {f"AWS_{name}": value for name, value in KEYS.items()} | {
        "AWS_ENDPOINT_URL": f"http://{endpoint}"
    }


@contextmanager
def s3_server(patch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Start a server, let S3 be there, and give a file system to look at."""
    with server() as found:
        for name, value in environment(f"{found.host}:{found.port}").items():
            patch.setenv(name, value)
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3"):
            patch.delenv(name, raising=False)
        yield found.files
