"""Where tests find each other's generators, and how hard hypothesis tries.

`HYPOTHESIS_PROFILE=deep pytest` draws new examples, and many of them; `quick`, a few.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

# For `import strategies` and `fuzz`: pytest's importlib mode leaves sys.path alone.
REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY / folder) for folder in ("tests", "tools")]

# Before torch is loaded: test processes with a thread per processor each would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell lets what it starts in the background ignore Ctrl-C, which some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)

_common = {
    "deadline": None,  # CI machines pause.
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("fixed", derandomize=True, max_examples=300, **_common)
settings.register_profile("quick", derandomize=True, max_examples=10, **_common)
settings.register_profile("deep", max_examples=5000, **_common)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
