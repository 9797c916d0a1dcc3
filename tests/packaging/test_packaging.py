"""Laconic as users meet it: built from its source archive, installed where nothing else is."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

pytest.importorskip("scikit_build_core", reason="builds Laconic: pip install scikit-build-core")
pytest.importorskip("nanobind", reason="builds Laconic: pip install nanobind")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SMOKE = ROOT / "tests/packaging/smoke.py"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def run(*command: str | Path, folder: Path) -> str:
    # What is installed is tested, not this folder; cmake and ninja lie beside Python.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    build = "import sys, scikit_build_core.build as b; b.build_sdist(sys.argv[1])"
    run(sys.executable, "-c", build, folder, folder=ROOT)
    (archive,) = folder.iterdir()
    return archive


@pytest.fixture(scope="module")
def wheel(sdist: Path) -> Path:
    """The wheel that the source archive gives, compiled as one file and not optimized: sooner."""
    settings = "CXX_FLAGS_RELEASE=-O0", "UNITY_BUILD=ON", "UNITY_BUILD_BATCH_SIZE=0"
    quick = [f"--config-settings=cmake.define.CMAKE_{setting}" for setting in settings]
    pip = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation")
    run(*pip, "--no-cache-dir", *quick, "-w", ".", sdist, folder=sdist.parent)
    (wheel,) = sdist.parent.glob("*.whl")
    return wheel


class Environment:
    """An empty virtual environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        run(sys.executable, "-m", "venv", "--without-pip", folder, folder=folder)
        self.programs = folder / ("Scripts" if sys.platform == "win32" else "bin")

    def install(self, constraints: Path, *requirements: str) -> None:
        pip = (sys.executable, "-m", "pip", "--python", self.programs / "python", "install")
        options = ("--no-compile", "--only-binary", ":all:", "--constraint", constraints)
        run(*pip, *options, *requirements, folder=self.folder)

    def borrow(self, package: str) -> None:
        """Have what is installed here, too, as large as it is: pip finds it installed."""
        here = importlib.metadata.distribution(package)
        (packages,) = self.folder.glob("[lL]ib/**/site-packages")
        for name in {file.parts[0] for file in here.files or () if file.parts[0] != ".."}:
            (packages / name).symlink_to(Path(str(here.locate_file(name))))

    def works(self, *parts: str) -> None:
        printed = run(self.programs / "python", SMOKE, *parts, folder=self.folder)
        assert set(printed.splitlines()) == {f"{part}: works" for part in parts}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("environment"))


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="asks git which files there are")
def test_the_source_archive_holds_what_builds_and_tests_it(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    options = ("--cached", "--others", "--exclude-standard")
    files = run("git", "ls-files", *options, folder=ROOT).splitlines()
    left_out = re.compile(r"\.(ci|github)/|(benchmarks|experiments)/results/")
    there = {name for name in files if (ROOT / name).exists() and not left_out.match(name)}
    assert names == {*there, "PKG-INFO"}


def test_the_wheel_holds_laconic_and_licences(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (info,) = {name.partition("/")[0] for name in names if ".dist-info/" in name}
        about = message_from_bytes(archive.read(f"{info}/METADATA"))
    package = {name for name in names if name.startswith("laconic/")}
    (core,) = {name for name in package if name.startswith("laconic/_core.") and name[-1] != "i"}
    sources = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.suffix in {".py", ".pyi", ".typed", ".css", ".cu", ".js", ".md", ".xz"}
    }
    assert package == {core, *sources, "laconic/py.typed"}
    licences = ["LICENSE", "licenses/nanobind.txt", "licenses/robin_map.txt"]
    licences.append("src/laconic/samples/PROVENANCE.md")
    files = ["METADATA", "RECORD", "WHEEL", "entry_points.txt"]
    files += [f"licenses/{name}" for name in licences]
    assert names - package == {f"{info}/{name}" for name in files}
    assert about.get_all("License-File") == licences
    assert about["Name"] == "laconic"
    assert {url.partition(",")[0].lower() for url in about.get_all("Project-URL", [])} == {
        *("homepage", "documentation", "repository", "changelog", "issues")
    }


def test_licences_are_those_of_what_is_linked_in() -> None:
    nanobind = importlib.metadata.distribution("nanobind")
    theirs = nanobind.read_text("licenses/LICENSE")
    assert (ROOT / "licenses/nanobind.txt").read_text() == theirs
    header = nanobind.locate_file("nanobind/ext/robin_map/include/tsl/robin_map.h")
    comment = Path(str(header)).read_text().partition("/**")[2].partition("*/")[0]
    words = (ROOT / "licenses/robin_map.txt").read_text().split()
    assert comment.replace("\n *", "\n").split() == words


def test_installed_alone(environment: Environment, wheel: Path) -> None:
    environment.install(ROOT / "constraints.txt", str(wheel))
    environment.works("core", "alone")
    helped = run(environment.programs / "laconic", "--help", folder=environment.folder)
    assert "compress" in helped


def test_vectorizers_need_no_torch(environment: Environment, wheel: Path) -> None:
    environment.install(ROOT / "constraints.txt", f"{wheel}[sklearn]")
    environment.works("core", "sklearn")
    absent = "import importlib.util as i; assert not any(map(i.find_spec, ('torch', 'accelerate')))"
    run(environment.programs / "python", "-c", absent, folder=environment.folder)


LOWEST = ROOT / "constraints-lowest.txt"


def test_lowest_versions_are_those_of_pyproject() -> None:
    extras = PROJECT["optional-dependencies"].values()
    named = {*PROJECT["dependencies"], *(each for extra in extras for each in extra)}
    others = {each for each in named if not each.startswith("laconic[")}
    bounds = {re.sub(r"\[.*\]", "", each).replace(">=", "==") for each in others}
    assert LOWEST.read_text().splitlines() == sorted(bounds)


def test_lowest_versions_work(wheel: Path, tmp_path: Path) -> None:
    """All but Ray and Spark, which are large, and torch, of which the index may lack CPU builds."""
    environment = Environment(tmp_path / "environment")
    pinned = (ROOT / "constraints.txt").read_text().splitlines()
    (torch,) = (line for line in pinned if line.startswith("torch=="))
    constraints = tmp_path / "constraints.txt"
    constraints.write_text(re.sub("(?m)^torch==.*$", torch, LOWEST.read_text()))
    environment.borrow("torch")
    environment.install(constraints, f"{wheel}[dna,report,sklearn,url]")
    environment.works("core", "sklearn", "dna", "url", "report", "estimators")
