"""What the documentation site needs beyond docs/: other pages, one of all commands, links to them.

mkdocs.yml names this file. The same Markdown is read on the site and in the repository, where links
lead to files; so links are translated here, and nothing has to be written twice.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("FORMAT.md", "CONTRIBUTING.md", "CHANGELOG.md")  # those that lie beside docs/
LINK = re.compile(r"(\]\()([^)\s:#]+)(#[^)\s]*)?(\))")
COMMANDS = "commands.md"
# Usages, which are fenced already; or examples, which are lines of prose to cyclopts.
EXAMPLES = re.compile(r"(?s:```console.*?```)|^((?:laconic|torchrun) .*\n\n?)+", re.MULTILINE)
PART = re.compile(r"^<!-- README: (.+) -->$", re.MULTILINE)
MARK = re.compile(r"^ *<!--.*-->\n", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie beside docs/, and the one that the command line tells of itself."""
    for name in PAGES:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    files.append(File.generated(config, COMMANDS, content=commands()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put in what a page takes from README, and let links lead to pages, or to the repository."""
    here = page.file.src_uri
    folder = posixpath.dirname(here if here in PAGES else f"docs/{here}")
    text = PART.sub(lambda found: translated(readme(found[1]), "", here, config), markdown)
    return translated(text, folder, here, config)


def commands() -> str:
    """Return every command with its flags, as `--help` has them."""
    from laconic.cli import _commands

    def fenced(found: re.Match[str]) -> str:
        lines = "\n".join(filter(None, found[0].splitlines()))
        return f"```\n{lines}\n```\n\n" if found[1] else found[0]

    text = _commands.generate_docs(recursive=True).replace("# laconic\n", "# Commands\n", 1)
    # The site has a table of contents beside every page.
    text = re.sub(r"^## Table of Contents\n.*?(?=^\*\*)", "", text, flags=re.DOTALL | re.MULTILINE)
    return EXAMPLES.sub(fenced, text)


def readme(title: str) -> str:
    """Return what README says under a heading; KeyError if there is none."""
    # Marks of what is generated would end a list here, unlike in the repository.
    text = MARK.sub("", (ROOT / "README.md").read_text("utf-8"))
    sections = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return dict(zip(sections[1::2], sections[2::2], strict=True))[title].strip()


def translated(text: str, folder: str, here: str, config: MkDocsConfig) -> str:
    """Return Markdown of a folder of the repository with links as the page `here` needs them.

    What is no file stays as it is: the strict build then says so.
    """

    def link(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, found[2]))
        if not (ROOT / path).exists():
            return found[0]
        if path in PAGES or path.startswith("docs/"):
            to = posixpath.relpath(path.removeprefix("docs/"), posixpath.dirname(here) or ".")
        else:
            to = f"{config.extra['repository']}/{path}"
        return f"{found[1]}{to}{found[3] or ''}{found[4]}"

    return LINK.sub(link, text)
