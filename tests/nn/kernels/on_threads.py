"""Simple kernels on the CPU: the same source, compiled as C++ (cuda_on_threads.hpp)."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any

import torch

from laconic.nn.kernels import cuda

SHIM = Path(__file__).with_name("cuda_on_threads.hpp")


class OnThreads:
    """Stands in for cuda.Module, and for cuda.Kernels, which have one for each device."""

    def __init__(self, folder: Path, source: Path, **defines: int) -> None:
        text = source.read_text("utf-8")
        self.names = re.findall(r"__global__[^{;]*?^(\w+)\(", text, re.MULTILINE)
        launches = "".join(f"LAUNCH({name})\n" for name in self.names)
        main = f'extern "C" int launch(const char* name, int blocks, void** given) {{\n{launches}'
        code, made = folder / "kernels.cpp", folder / "kernels.so"
        start = "".join(f"#define {name} {value}\n" for name, value in defines.items())
        code.write_text(f'{start}#include "{SHIM}"\n{text}\n{main}return 0; }}\n')
        command = ["c++", "-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", "-w"]
        subprocess.run([*command, code, "-o", made], check=True)
        self._library = ctypes.CDLL(str(made))

    def obstacle(self, device: torch.device) -> None:
        """Return that there is none."""

    def on(self, device: torch.device) -> OnThreads:
        """Return the kernels of any device."""
        return self

    def launch(self, name: str, blocks: int, threads: int, shared: int, *arguments: Any) -> None:
        """Run a kernel, block after block."""
        assert (threads, shared) == (256, 0)
        assert all(a.is_contiguous() for a in arguments if hasattr(a, "is_contiguous"))
        values = cuda.as_values(arguments)
        pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        assert self._library.launch(name.encode(), blocks, pointers) == 1
