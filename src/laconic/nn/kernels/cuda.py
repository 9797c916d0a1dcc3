"""CUDA C++ compiled at run time by the NVRTC that comes with torch; results are kept on disk."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor

from laconic.files import caches, whole

_MOST_DYNAMIC_SHARED_BYTES = 8  # the driver's numbers of what can be set
_RELAXED = 2
_CLUSTER = 4
Argument: TypeAlias = "Tensor | int | ctypes.Array[Any] | ctypes.Structure | None"


class _Attribute(ctypes.Structure):
    """The driver's CUlaunchAttribute, of a cluster's size."""

    _fields_ = (
        ("id", ctypes.c_int),
        ("padding", ctypes.c_int),
        ("sizes", ctypes.c_uint * 3),
        ("rest", ctypes.c_char * 52),
    )


class _Config(ctypes.Structure):
    """The driver's CUlaunchConfig: sizes of grid and blocks, shared memory, stream, attributes."""

    _fields_ = (
        *((name, ctypes.c_uint) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared")),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    )


class CudaError(RuntimeError):
    """A kernel could not be compiled, loaded or launched."""


def missing(device: torch.device) -> str | None:
    """Return what keeps kernels that round products, in one sentence, from a device, or None."""
    if why := _not_ours(device):
        return why
    if not torch.backends.cudnn.allow_tf32:
        return "they round products, which torch.backends.cudnn.allow_tf32 = False forbids"
    return None


def too_old(device: int, needed: tuple[int, int]) -> str | None:
    """Return that a GPU has not the compute capability that kernels need, or None."""
    if (has := torch.cuda.get_device_capability(device)) >= needed:
        return None
    return "they need compute capability {}.{}, and this GPU has {}.{}".format(*needed, *has)


def _not_ours(device: torch.device) -> str | None:
    other = device.type != "cuda" or torch.version.hip
    return "they are for GPUs of NVIDIA" if other else None


def cannot_compile(error: CudaError) -> str:
    """Return what is told of an error of the compiler."""
    return f"they cannot be compiled: {str(error).splitlines()[0]}"


class Kernels:
    """The kernels of one source, for any GPU of NVIDIA; compiled for each when it is first used."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self._on: dict[int, Module | CudaError] = {}

    def obstacle(self, device: torch.device) -> str | None:
        """Return why they cannot run on a device, in one sentence, or None if they can."""
        if why := _not_ours(device):
            return why
        try:
            self.on(device)
        except CudaError as error:
            return cannot_compile(error)
        return None

    def on(self, device: torch.device) -> Module:
        """Return them for a device; raises CudaError, each time if once."""
        index = torch.cuda.current_device() if device.index is None else device.index
        if index not in self._on:
            with torch.cuda.device(index):
                try:
                    self._on[index] = Module({}, self.source)
                except CudaError as error:
                    self._on[index] = error
        found = self._on[index]
        if isinstance(found, CudaError):
            raise found
        return found


class Module:
    """The kernels of sources, put together, on the present device; launched on its present stream.

    Nothing waits for the device, and a first use within a CUDA graph's capture is no harm.
    """

    def __init__(self, defines: Mapping[str, int], *sources: Path) -> None:
        self._functions: dict[tuple[str, int], ctypes.c_void_p] = {}
        self._module, self._device = ctypes.c_void_p(), torch.cuda.current_device()
        text = "".join(source.read_text("utf-8") for source in sources)
        code = compiled(text, defines, torch.cuda.get_device_capability())
        with _relaxed():
            _check(_driver().cuModuleLoadData(ctypes.byref(self._module), code))

    def launch(
        self,
        name: str,
        blocks: int,
        threads: int,
        shared_bytes: int,
        *arguments: Argument,
    ) -> None:
        """Start a kernel; see as_values for what it is given."""
        values, sizes = as_values(arguments), (blocks, 1, 1, threads, 1, 1, shared_bytes)
        pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        with torch.cuda.device(self._device):
            function = self._function(name, shared_bytes)
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            _check(_driver().cuLaunchKernel(function, *sizes, stream, pointers, None))

    def most_clusters(self, name: str, blocks: int, threads: int, shared_bytes: int) -> int | None:
        """Return how many clusters of so many blocks can run at once, None if nobody knows."""
        sizes = (blocks, 1, 1, threads, 1, 1, shared_bytes)
        attribute, most = _Attribute(_CLUSTER, 0, (blocks, 1, 1)), ctypes.c_int()
        config = _Config(*sizes, None, ctypes.pointer(attribute), 1)
        with torch.cuda.device(self._device):
            function = self._function(name, shared_bytes)
            told = ctypes.byref(most), function, ctypes.byref(config)
            failed = _driver().cuOccupancyMaxActiveClusters(*told)
        return None if failed else most.value

    def _function(self, name: str, shared_bytes: int) -> ctypes.c_void_p:
        key = name, shared_bytes
        if key not in self._functions:
            function = ctypes.c_void_p()
            with _relaxed():
                _check(
                    _driver().cuModuleGetFunction(
                        ctypes.byref(function), self._module, name.encode()
                    )
                )
                most = _MOST_DYNAMIC_SHARED_BYTES
                _check(_driver().cuFuncSetAttribute(function, most, shared_bytes))
            self._functions[key] = function
        return self._functions[key]


def as_values(arguments: Sequence[Argument]) -> list[Any]:
    """Return what a kernel is given: 32 bits for integers, pointers for tensors and None.

    Arrays and structures of ctypes are given whole, 4,096 bytes at most together.
    """
    return [
        each
        if isinstance(each, ctypes.Array | ctypes.Structure)
        else ctypes.c_int(each)
        if isinstance(each, int)
        else ctypes.c_void_p(None if each is None else each.data_ptr())
        for each in arguments
    ]


def compiled(source: str, defines: Mapping[str, int], capability: tuple[int, int]) -> bytes:
    """Return machine code, compiled unless it was before; about 1.5 s.

    Raises CudaError with what the compiler says.
    """
    options = [
        f"--gpu-architecture=sm_{capability[0]}{capability[1]}",
        "--std=c++17",
        *(f"-D{name}={value}" for name, value in defines.items()),
    ]
    told = "\0".join([source, *options, torch.__version__])
    kept = caches() / "kernels" / f"{sha256(told.encode()).hexdigest()}.cubin"
    with suppress(OSError):
        return kept.read_bytes()
    code = _compile(source, options)
    with suppress(OSError), whole(kept) as new:  # A disk that is full costs time, nothing else.
        new.write_bytes(code)
    return code


def _compile(source: str, options: list[str]) -> bytes:
    nvrtc, program = _nvrtc(), ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
    try:
        given = (ctypes.c_char_p * len(options))(*(each.encode() for each in options))
        if nvrtc.nvrtcCompileProgram(program, len(options), given):
            said = _result(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
            raise CudaError(f"NVRTC: {said.rstrip(bytes(1)).decode('utf-8', 'replace').strip()}")
        return _result(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _result(program: ctypes.c_void_p, size: Any, get: Any) -> bytes:
    count = ctypes.c_size_t()
    size(program, ctypes.byref(count))
    buffer = ctypes.create_string_buffer(count.value)
    get(program, buffer)
    return buffer.raw


@cache
def _nvrtc() -> ctypes.CDLL:
    major = str(torch.version.cuda).split(".", maxsplit=1)[0]
    windows = sys.platform == "win32"
    return _library(f"nvrtc64_{major}0_0.dll" if windows else f"libnvrtc.so.{major}")


@cache
def _driver() -> ctypes.CDLL:
    return _library("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


def _library(name: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(name)  # torch has loaded it already, wherever it lies.
    except OSError as error:
        raise CudaError(f"there is no {name}") from error


def _check(status: int) -> None:
    if status:
        said = ctypes.c_char_p()
        _driver().cuGetErrorString(status, ctypes.byref(said))
        raise CudaError(f"CUDA error: {(said.value or b'unknown').decode()}")


@contextmanager
def _relaxed() -> Iterator[None]:
    """Let a kernel be loaded while a graph is captured: it is no part of the graph."""
    mode = ctypes.c_int(_RELAXED)
    _check(_driver().cuThreadExchangeStreamCaptureMode(ctypes.byref(mode)))
    try:
        yield
    finally:
        _check(_driver().cuThreadExchangeStreamCaptureMode(ctypes.byref(mode)))
