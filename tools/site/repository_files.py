"""Makes the site whole: its first page is the README, and files of the repository that pages link to are copied into it.

Pages link to files outside docs/ as they lie in the repository, such as ``../results/depth_cora.json``, so that they
can be read there too; in the site these links lead to copies, and ``../README.md`` to the first page.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

REPOSITORY = Path(__file__).resolve().parents[2]
_COPIES = "repository"
_FOLDERS = "results|benchmarks|examples|tools|src|tests"
_PATH = rf"(?:{_FOLDERS})/[^)#\s]+|[A-Z][A-Za-z]+\.(?:md|cff)"
_LINK = re.compile(rf"\]\((?:\.\./)+(?P<path>{_PATH})(?P<anchor>#[^)]*)?\)")


def first_page() -> str:
    """Return the README with its links as seen from docs/."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    return re.sub(rf"\]\((?={_PATH})", "](../", text.replace("](docs/", "]("))


def on_files(files: Files, config: Any) -> Files:
    """Add the first page and every file that some page links to."""
    files.append(File.generated(config, "index.md", content=first_page()))
    for page in files.documentation_pages():
        for match in _LINK.finditer(page.content_string):
            path, copy = REPOSITORY / match["path"], _copy(match["path"])
            if path.is_file() and files.get_file_from_path(copy) is None:
                files.append(File.generated(config, copy, content=path.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point the links at the copies; a link to a file that is not there stays as it is, for mkdocs to complain about."""
    here = posixpath.dirname(page.file.src_uri) or "."

    def follow(match: re.Match[str]) -> str:
        target = posixpath.relpath(_copy(match["path"]), here)
        return f"]({target}{match['anchor'] or ''})" if (REPOSITORY / match["path"]).is_file() else match[0]

    return _LINK.sub(follow, markdown)


def _copy(path: str) -> str:
    """Where a file lies in the site: a browser shows JSON and pictures, and what else is text as ``.txt``."""
    if path == "README.md":
        return "index.md"
    return f"{_COPIES}/{path}" + ("" if path.endswith((".json", ".svg", ".png")) else ".txt")
