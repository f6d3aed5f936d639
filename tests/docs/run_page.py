"""Runs the code of one page from top to bottom, as its reader would: ``python run_page.py PAGE`` in an empty folder.

Blocks of Python share their names, blocks of ``bash`` run in between, and a block with ``title="some/file"`` is that file. Blocks
of other languages are only read.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BLOCK = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
READ_ONLY = {"text", "bibtex", "yaml", "json"}


@dataclass(frozen=True)
class Block:
    """A block of code: its language, the file it is (or None), its text and its line in the page."""

    language: str
    file: str | None
    text: str
    line: int

    @property
    def runs(self) -> bool:
        """Whether something is to be done with it; `make` is left out, since it is how the tests were started."""
        if self.file is not None:
            return True
        return self.language not in READ_ONLY and re.search(r"^make ", self.text, re.MULTILINE) is None


def blocks_of(page: str) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    found = []
    for match in _BLOCK.finditer(page):
        language, _, rest = match["info"].strip().partition(" ")
        title = re.search(r'title="([^"]+)"', rest)
        text = re.sub(rf"^{match['indent']}", "", match["text"], flags=re.MULTILINE)
        line = page.count("\n", 0, match.start()) + 2
        found.append(Block(language, title[1] if title else None, text, line))
    return found


def run(page: Path) -> None:
    """Run every block that can be run."""
    names: dict[str, Any] = {"__name__": "__main__"}
    sys.path.insert(0, "")  # a page's Python may import the files that the page wrote, as in an interactive session
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if not block.runs:
            continue
        if block.file is not None:
            Path(block.file).parent.mkdir(parents=True, exist_ok=True)
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)
        elif block.language == "bash":
            subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], check=True)
        else:
            raise SystemExit(f"{page.name}:{block.line}: blocks of {block.language!r} are not known to this test.")


if __name__ == "__main__":
    run(Path(sys.argv[1]))
