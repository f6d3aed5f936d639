"""Write src/omegagnn/data/checksums.txt from the raw files in a data root whose contents have been verified.

    python tools/make_checksums.py DATA_ROOT

Only files of data sets in the registry are listed; those that are not in the root keep no checksum.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from omegagnn.data import available
from omegagnn.data.download import sha256_of

TARGET = Path(__file__).resolve().parent.parent / "src" / "omegagnn" / "data" / "checksums.txt"
HEADING = "# SHA-256, size in bytes and path below a data root of every raw file that is known; made by tools/make_checksums.py\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=Path)
    root = parser.parse_args().root
    paths = sorted({path for entry in available() for path in entry.checksums})
    found = [path for path in paths if (root / path).is_file()]
    lines = [f"{sha256_of(root / path)}  {(root / path).stat().st_size}  {path}\n" for path in found]
    TARGET.write_text(HEADING + "".join(lines), encoding="ascii")
    print(f"{len(lines)} checksums, {len(paths) - len(found)} files of the registry not in {root}")


if __name__ == "__main__":
    main()
