"""Look every number of src/omegagnn/paper/published.toml up in the paper's source: ``python tools/check_published.py PAPER.txt``.

Nothing of a table's layout is parsed: the numbers of its source, in their order, must be the numbers typed, in theirs. So a wrong
digit, a number left out, one too many and two swapped ones are all found.
"""

from __future__ import annotations

import re
import sys
from itertools import zip_longest
from pathlib import Path

from omegagnn.paper.published import NOTHING, Table, published

NUMBER = re.compile(r"(?<![\w.$\\])\d[\d,]*(?:\.\d+)?(?:e-\d+)?(?![\w.]*[A-Za-z])")
LAYOUT = re.compile(
    r"\\(?:multirow|multicolumn)\{\d+\}|\\text(?:super|sub)script\{[^}]*\}|\\cite[pt]?\s*\{[^}]*\}|(?<!\\)%.*"
)


def printed(source: str, table: Table) -> list[str]:
    """Return the numbers of a table in the paper's source, in order, from its first row of numbers on."""
    first = "Layers &" if table.key == "semi-depth" else "Homophily" if "Homophily" in table.rows else "\\midrule"
    body = source[source.index(f"\\label{{{table.label}}}") :]
    body = body[body.index(first) : body.index("\\end{tabular}")]
    return NUMBER.findall(LAYOUT.sub(" ", body).replace("$", " "))


def typed(table: Table) -> list[str]:
    """Return the numbers of a table as typed, in order."""
    head = [column.rsplit("-", 1)[1] for column in table.columns] if table.key == "semi-depth" else []
    cells = [cell for row in table.rows.values() for cell in row if cell != NOTHING]
    return head + [part for cell in cells for part in cell.split("±")]


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    source, checked, wrong = Path(sys.argv[1]).read_text(encoding="utf-8"), 0, 0
    for table in published().values():
        ours, theirs = typed(table), printed(source, table)
        checked += len(ours)
        for place, (mine, paper) in enumerate(zip_longest(ours, theirs, fillvalue="nothing")):
            if mine != paper:
                print(f"table {table.number} ({table.key}): number {place + 1} is {mine}, the paper has {paper}")
                wrong += 1
                break
    print(f"{checked} numbers of {len(published())} tables looked up, {wrong} tables differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
