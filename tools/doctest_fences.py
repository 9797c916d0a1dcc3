"""Examples in docstrings as blocks of code: for griffe, which reads docstrings for the site.

Markdown would take `>>>` for three quotations within each other.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^( *)>>> .*\n?(?:^\1\S.*\n?)*", re.MULTILINE)


def fenced(text: str) -> str:
    r"""Return a docstring with its examples fenced; each goes on to the next empty line.

    >>> fenced("Add.\n\n>>> 1 + 1\n2\n\nNo more.").splitlines()
    ['Add.', '', '```pycon', '>>> 1 + 1', '2', '```', '', 'No more.']
    """
    return EXAMPLE.sub(
        lambda found: f"{found[1]}```pycon\n{found[0].rstrip()}\n{found[1]}```\n", text
    )


class DoctestFences(Extension):
    """Fences the examples of every docstring that griffe reads."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change one object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
