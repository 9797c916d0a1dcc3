"""Files appear whole or not at all, whatever fails or is killed in between; nothing is left."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import laconic
from laconic import files
from laconic.errors import InputError


def names(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*"))


def contents(path: Path) -> dict[str, str] | str | None:
    """Return what is at a path: a text, or those of a folder by their names; None for nothing."""
    if path.is_file():
        return path.read_text()
    return {n: (path / n).read_text() for n in names(path)} if path.exists() else None


def test_nothing_else_renames_or_syncs() -> None:
    """Path.replace takes one argument, str.replace two, dataclasses.replace names."""
    source, found = Path(laconic.__file__).parent, []
    for path in sorted(source.rglob("*.py")):
        if path == source / "files.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name, of = node.func.attr, node.func.value
                one = len(node.args) == 1 and not node.keywords
                if name in ("rename", "renames", "fsync", "mkstemp", "rmtree", "move") or (
                    name == "replace" and (one or (isinstance(of, ast.Name) and of.id == "os"))
                ):
                    found.append(f"{path.relative_to(source)}:{node.lineno}: {ast.unparse(node)}")
    assert not found, "laconic.files does that"


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "new/folders/x.csv.gz"
    with files.whole(path) as new:
        assert new.name == path.name
        new.write_text("a")
        assert not path.exists()
    with files.whole(str(path)) as new:
        new.write_text("b")
        assert path.read_text() == "a"
    assert path.read_text() == "b"
    assert names(tmp_path / "new") == ["folders", "folders/x.csv.gz"]


def write_half(path: Path) -> None:
    path.write_text("half")
    raise OSError("the disk is full")


def test_what_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path, folder = tmp_path / "x", tmp_path / "folder"
    for was in (None, "old"):
        if was:
            files.write_text(path, was)
        with pytest.raises(OSError, match="the disk is full"), files.whole(path) as new:
            write_half(new)
        assert contents(path) == was
        with pytest.raises(FileNotFoundError), files.whole(path):
            pass  # nothing was written
        assert contents(path) == was
    (folder / "within").mkdir(parents=True)
    with pytest.raises(FileExistsError, match=r"folder is a folder: choose another name"):
        files.write_text(folder, "text")
    assert names(tmp_path) == ["folder", "folder/within", "x"]


def test_folders_replace_folders(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    for number in (1, 2):
        with files.whole(path) as new:
            new.mkdir()
            (new / f"{number}").write_text("a")
    assert names(tmp_path) == ["folder", "folder/2"]
    with files.whole(tmp_path / "many") as new:
        new.mkdir()
        for number in range(100):
            (new / f"{number}").touch()
    assert len(names(tmp_path / "many")) == 100
    files.remove(path)
    files.remove(path)
    files.remove(tmp_path / "many/7")
    assert len(names(tmp_path)) == 100


def test_several_files_appear_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model"
    with files.together(path) as new:
        for name in "ab":
            (new / name).write_text("1")
        assert not path.exists()
    (path / "mine").write_text("mine")
    with pytest.raises(OSError, match="the disk is full"), files.together(path) as new:
        write_half(new / "a")
    assert contents(path) == {"a": "1", "b": "1", "mine": "mine"}
    with files.together(path) as new:
        (new / "b").write_text("2")
        (new / "c").write_text("2")
    assert contents(path) == {"a": "1", "b": "2", "c": "2", "mine": "mine"}
    monkeypatch.chdir(path)
    with files.together(".") as new:
        (new / "a").write_text("3")
    assert contents(path) == {"a": "3", "b": "2", "c": "2", "mine": "mine"}


OPERATIONS = """
import os, signal, sys
from pathlib import Path
from laconic import files

path = Path(sys.argv[1])

def file(text):
    files.write_text(path, text)

def folder(text):
    with files.whole(path) as new:
        new.mkdir()
        for name in "ab":
            (new / name).write_text(text)

def without_exchange(text):
    files._exchange = lambda *_: False
    folder(text)

def together(text):
    with files.together(path) as new:
        for name in "ab":
            (new / name).write_text(text)

def removed(text):
    if text == "old":
        folder(text)
    else:
        files.remove(path)

write = globals()[sys.argv[2]]
"""
# Dies at the n-th call of something that changes or syncs files, for each n until none is left.
KILLED = """
import json

def deadly(real):
    def call(*arguments, **options):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)
    return call

def seen(path):
    if path.is_file():
        return path.read_text()
    found = path.iterdir() if path.exists() else ()
    return {each.name: each.read_text() for each in found if each.name[0] != "."}

write("old")
for moment in range(100):
    child = os.fork()
    if not child:
        left = moment
        for name in ("mkdir", "replace", "fsync", "unlink", "rmdir"):
            setattr(os, name, deadly(getattr(os, name)))
        write("new")
        os._exit(0)
    _, status = os.waitpid(child, 0)
    found, left_over = seen(path), len(list(path.parent.rglob(".*.partial")))
    if moment % 2 or not found:
        files.sweep(path.parent)
        assert not [*path.parent.rglob("*.partial"), *path.parent.rglob("*.lock")]
        assert seen(path) or sys.argv[2] == "removed"  # the old one, if there was none
    print(json.dumps([os.waitstatus_to_exitcode(status), found, left_over]))
    if not status:
        break
    write("old")
    assert [each.name for each in path.parent.iterdir()] == ["x"]
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.parametrize(
    ("operation", "between"),
    [
        ("file", []),
        ("folder", []),
        # Two renames replace a folder: between them there is none, rather than a mixture.
        ("without_exchange", [{}]),
        ("together", [{"a": "new", "b": "old"}]),
        ("removed", []),
    ],
)
def test_killed_at_any_moment(operation: str, between: list[object], tmp_path: Path) -> None:
    command = [sys.executable, "-c", OPERATIONS + KILLED, str(tmp_path / "x"), operation]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    old: object = "old" if operation == "file" else {"a": "old", "b": "old"}
    new: object = "new" if operation == "file" else {"a": "new", "b": "new"}
    if operation == "removed":
        new = {}
    assert told[-1] == [0, new, 0]
    assert {status for status, _, _ in told[:-1]} == {-signal.SIGKILL}
    found = [found for _, found, _ in told]
    assert found[0] == old
    assert all(each in [old, new, *between] for each in found)
    assert all(each in found for each in between)
    assert sum(left_over > 0 for _, _, left_over in told) > 2


@contextmanager
def somebody_writing(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Give a process that has begun to write a file, and is alive."""
    code = "with files.whole(path) as new: new.write_text('half'); print(flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", OPERATIONS.rpartition("write =")[0] + code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="has no such locks")
def test_two_do_not_write_the_same(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    with somebody_writing(path) as process:
        told = f"x is in use: process {process.pid} on .+ writes it; wait until that ends, or cho"
        with pytest.raises(BlockingIOError, match=told):
            files.write_text(path, "mine")
        files.sweep(tmp_path)  # leaves what is alive
        files.write_text(tmp_path / "y", "mine")
        process.communicate(b"\n")
        assert process.returncode == 0
    assert path.read_text() == "half"
    with somebody_writing(path):
        pass
    assert names(tmp_path) == [".x.lock", ".x.partial", ".x.partial/x", "x", "y"]
    files.write_text(path, "mine")
    assert path.read_text() == "mine"
    assert names(tmp_path) == ["x", "y"]


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "disk/old").mkdir(parents=True)
    for name, target in (("file", "disk/x"), ("folder", "disk/old"), ("new", "disk/new")):
        (tmp_path / name).symlink_to(tmp_path / target)
    files.write_text(tmp_path / "file", "text")
    for name in ("folder", "new"):
        with files.whole(tmp_path / name) as new:
            new.mkdir()
            (new / "a").touch()
    assert names(tmp_path / "disk") == ["new", "new/a", "old", "old/a", "x"]
    assert all((tmp_path / name).is_symlink() for name in ("file", "folder", "new"))


def test_sweeping(tmp_path: Path) -> None:
    (tmp_path / "run/checkpoints/.step-1.partial/step-1").mkdir(parents=True)
    (tmp_path / "run/.report.html.0123abcd.part").touch()
    (tmp_path / "run/config.json.partial").touch()
    (tmp_path / "run/.metrics.jsonl.lock").touch()
    (tmp_path / "run/config.json").touch()
    (tmp_path / "c.parquet.partial").mkdir()
    (tmp_path / ".c.parquet.partial.partial/shards").mkdir(parents=True)
    (tmp_path / ".d.parquet.partial").mkdir()
    files.sweep(tmp_path / "run")
    files.sweep(tmp_path, "c.parquet.partial")
    files.sweep(tmp_path, "none")
    assert names(tmp_path) == [
        ".d.parquet.partial",
        "c.parquet.partial",
        "run",
        "run/checkpoints",
        "run/config.json",
    ]


def test_lines_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    for line in ("a", "é"):
        files.append_line(path, line)
    assert path.read_bytes() == "a\né\n".encode()


def test_small_json(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    files.write_json(path, {"a": ["é"]})
    assert path.read_bytes() == '{\n  "a": [\n    "é"\n  ]\n}\n'.encode()
    assert files.read_json(path) == json.loads(path.read_text("utf-8"))
    assert files.read_json(path, path.stat().st_size) == {"a": ["é"]}
    for data, most, told in (
        (b"[1, 2]", 5, "it is too large: more than 5 bytes"),
        (b"[" * 100_000, 1 << 20, "nested too deeply"),
        (b"[1", 100, "Expecting"),
        (b'["\xff"]', 100, "can't decode"),
        (b"", 100, "Expecting value"),
    ):
        path.write_bytes(data)
        with pytest.raises(InputError, match=told):
            files.read_json(path, most)


@pytest.mark.parametrize("kind", [str, Path])
@pytest.mark.parametrize("url", ["s3://b/c.parquet", "gs://b/c", "file:///tmp/c", "hf://x/y"])
def test_urls_are_no_outputs(
    kind: Callable[[str], str | Path], url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for write in (
        lambda: files.write_text(kind(url), "a"),
        lambda: files.together(kind(url)).__enter__(),
        lambda: files.check_output(kind(url), force=True),
    ):
        with pytest.raises(InputError, match=f"^{url.replace(':///', '://')}: .* give a path here"):
            write()
    assert not names(tmp_path)
    for path in ("/a/b", "C:/a", "a:b", "./s3:/b", "a/s3://b"):
        assert files.local_path(path) == Path(path)


def test_what_outputs_must_not_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "x").touch()
    for path, inputs, told in (
        ("folder", [], "folder is a folder: choose another name"),
        ("x", [], "x exists: choose another name, or use --force"),
        ("x", ["y", "x"], "x is the input itself: choose another name"),
        ("folder", ["folder/a/b.csv"], "folder holds the input folder/a/b.csv: choose"),
        ("no/y", [], "no does not exist: make the folder first"),
    ):
        with pytest.raises((FileExistsError, FileNotFoundError), match=told):
            files.check_output(path, inputs=inputs)
    files.check_output("x", force=True)
    files.check_output("y", inputs=["x", "s3://b/y"])
    files.check_output("no/y", makes_folders=True)
    assert names(tmp_path) == ["folder", "x"]


def test_what_is_written_is_synced_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rename that reaches the disk before the data would leave an empty file after a crash."""
    calls: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *a, real=real, name=name: (calls.append(name), real(*a))[1]
        )
    files.write_text(tmp_path / "x", "a")
    assert calls == ["fsync", "replace", "fsync"]
    calls.clear()
    with files.whole(tmp_path / "folder") as new:
        new.mkdir()
        (new / "a").touch()
    assert calls == ["fsync", "fsync", "replace", "fsync"]
