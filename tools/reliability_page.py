"""Writes docs/reliability.md from tools/results: what torture.py did, and what it found.

python tools/reliability_page.py            # write it; --check only says whether it is up to date
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE, RESULTS = ROOT / "docs/reliability.md", ROOT / "tools/results"
REST = "\n## Memory of the readers\n"  # from here on, benchmarks.report writes
HEAD = """# Reliability

Written by `make docs` from `tools/results`, which has every seed.

Tools disturb Laconic as machines and people do, again and again, at moments and in ways that seeds
choose, and compare what comes out with what must. `make torture MINUTES=60` lets all of them take
turns; each runs alone, too, and a finding names the seed that brings it back. A message without a
cure is a finding, and so is a file that is left over.
"""


def merged(results: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the parts of all results together, by name."""
    parts: dict[str, dict[str, Any]] = {}
    for result in results:
        for name, part in result["parts"].items():
            known = parts.setdefault(
                name, {"cases": 0, "seconds": 0.0, "counts": {}, "findings": []}
            )
            known |= {"what": part["what"], "least": part["least"]}
            for key in ("cases", "seconds", "findings"):
                known[key] = known[key] + part[key]
            known["counts"] = Counter(known["counts"]) + Counter(part["counts"])
    return parts


def page(results: list[dict[str, Any]]) -> str:
    """Return the page; the results in the order in which they were kept."""
    if not results:
        return f"{HEAD}\nNothing was kept yet.\n"
    parts = merged(results)
    lines = [
        HEAD,
        "| tool | what it does, and what must hold | cases | wanted | minutes | findings |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for name, part in parts.items():
        lines.append(
            f"| `{name}` | {part['what']} | {part['cases']:,} | {part['least']:,} "
            f"| {part['seconds'] / 60:,.0f} | {len(part['findings']) or 'none'} |"
        )
    if few := [name for name, part in parts.items() if part["cases"] < part["least"]]:
        lines += ["", f"Not yet run as often as wanted: {', '.join(f'`{name}`' for name in few)}."]
    lines += ["", "## What happened", ""]
    for name, part in parts.items():
        if part["counts"]:
            told = ", ".join(f"{what} {n:,}" for what, n in sorted(part["counts"].items()))
            lines.append(f"- `{name}`: {told}")
    if findings := [(name, each) for name, part in parts.items() for each in part["findings"]]:
        lines += ["", "## What was found", ""]
        lines += [f"- `{name}`: {' '.join(each.split())[-400:]}" for name, each in findings]
    lines += ["", "## Where", ""]
    for result in results:
        about = result["about"]
        versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
        at = f"commit {about['commit']}, {about['date']}, {about['machine']}"
        note = f" ({about['note']})" if "note" in about else ""
        lines.append(f"- `{about['command']}`, {at}; {versions}{note}")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page, or with --check only compare."""
    found = [json.loads(path.read_text("utf-8")) for path in sorted(RESULTS.glob("*.json"))]
    new = page(sorted(found, key=lambda result: str(result["about"]["date"])))
    old = PAGE.read_text("utf-8") if PAGE.exists() else ""
    _, rest, readers = old.partition(REST)
    new += rest + readers
    if "--check" in sys.argv:
        sys.exit(0 if new == old else f"{PAGE} is not up to date: run `make docs`")
    PAGE.write_text(new, "utf-8")


if __name__ == "__main__":
    main()
