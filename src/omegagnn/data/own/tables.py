"""Tables of nodes, edges and graphs: CSV, TSV, Parquet, edge lists or data frames, read so that every error has a line.

Text files are read as text, cell by cell, and typed later: an id ``007`` stays ``007``, and a cell that is no number is
named with its line. Rows of the wrong length, broken quotes and bytes that are not UTF-8 are errors, never repaired.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import pandas as pd

from omegagnn.errors import DataError, WrongUse

CHUNK = 1_000_000
HEADERLESS = (".txt", ".edgelist", ".edges", ".el")
_SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}

_listener: ContextVar[Callable[[float], None] | None] = ContextVar("listener", default=None)


@contextmanager
def telling(listener: Callable[[float], None]) -> Iterator[None]:
    """Tell `listener` how many bytes of text files were read since its last call, for as long as the block lasts."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@dataclass(frozen=True)
class Table:
    """Rows with named columns, and how to name the place of a row in an error."""

    frame: pd.DataFrame
    label: str
    start: int = 0
    line_of_row: Callable[[int], int] | None = None

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return [str(column) for column in self.frame.columns]

    def where(self, row: int) -> str:
        """Name the place of a row, counted from 0 within this table: its line in a text file, else its number."""
        row += self.start
        if self.line_of_row is None:
            return f"{self.label}, row {row} (counted from 0)"
        return f"{self.label}, line {self.line_of_row(row)}"

    def require(self, column: str, purpose: str) -> pd.Series[Any]:
        """Return a column, or raise a `WrongUse` that lists the columns there are."""
        if column not in self.columns:
            close = get_close_matches(column, self.columns, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"choose among {', '.join(self.columns[:20])}."
            raise WrongUse(f"{self.label} has no column {column!r} for {purpose}: {hint}")
        return self.frame[column]


def read_table(source: str | Path | pd.DataFrame | Table, label: str, separator: str | None = None) -> Table:
    """Read a whole table; `label` is what an error calls a data frame, a file is called by its name."""
    if isinstance(source, Table):
        return source
    if isinstance(source, pd.DataFrame):
        return Table(_named_columns(source, label), label)
    path = Path(source)
    if _suffix(path) in (".parquet", ".pq"):
        return Table(_named_columns(_read_parquet(path), path.name), path.name)
    file = TextFile(path, separator)
    pieces = [piece.frame for piece in file.pieces()]
    frame = pd.concat(pieces, ignore_index=True) if pieces else pd.DataFrame(columns=file.columns, dtype=str)
    return Table(frame, file.label, 0, file.line_of_row)


def read_pieces(
    source: str | Path | pd.DataFrame | Table, label: str, separator: str | None = None
) -> tuple[list[str], Iterator[Table]]:
    """Return the columns of a table and its rows in pieces that fit into memory."""
    if isinstance(source, (str, Path)) and _suffix(Path(source)) not in (".parquet", ".pq"):
        file = TextFile(Path(source), separator)
        return file.columns, file.pieces()
    table = read_table(source, label, separator)
    return table.columns, iter([table])


class TextFile:
    """A CSV or TSV file with a header, or a headerless edge list separated by white space, plain or gzipped."""

    def __init__(self, path: Path, separator: str | None = None) -> None:
        """Check the bytes and read the header."""
        self.path, self.label = path, path.name
        self.headerless = _suffix(path) in HEADERLESS and separator is None
        self.separator = separator or ("\t" if _suffix(path) in (".tsv", ".tab") else ",")
        if len(self.separator) != 1:
            raise WrongUse(f"The separator {separator!r} must be one character, such as ',' or ';'.")
        _check_bytes(path)
        first = next(self._rows(), None)
        if first is None:
            kind = "lines of two node ids" if self.headerless else "a header line with the column names, then the rows"
            raise DataError(f"{self.label} is empty: write into it {kind}.")
        self.columns = self._headerless_columns(first[1]) if self.headerless else self._header_columns(*first)

    def pieces(self) -> Iterator[Table]:
        """Yield the rows, a million at a time, every cell a text."""
        self._check_first_row()
        options: dict[str, Any] = {"dtype": str, "na_filter": False, "encoding": "utf-8-sig", "chunksize": CHUNK}
        if self.headerless:
            options |= {"sep": r"\s+", "header": None, "comment": "#"}
        else:
            options |= {"sep": self.separator, "header": 0, "index_col": False, "skipinitialspace": True}
        options["compression"] = "gzip" if self.path.suffix.lower() == ".gz" else None
        start = told = 0
        try:
            with self.path.open("rb") as stream, pd.read_csv(stream, **options) as reader:
                for piece in reader:
                    listener = _listener.get()
                    if listener is not None:
                        listener(stream.tell() - told)
                        told = stream.tell()
                    frame = cast("pd.DataFrame", piece)
                    # The parser fills a row that is too short: the last cell tells, and only then is the file read again.
                    short = frame.shape[1] and bool(
                        frame.iloc[:, -1].isin([""]).any() or frame.iloc[:, -1].isna().any()
                    )
                    if short or frame.shape[1] != len(self.columns):
                        self._refuse_ragged()
                    frame.columns = pd.Index(self.columns)
                    yield Table(frame, self.label, start, self.line_of_row)
                    start += len(frame)
        except pd.errors.ParserError as error:
            if "EOF inside string" in str(error):
                line = deque(self._rows(), maxlen=1)[0][0]  # the last row swallowed the rest of the file
                raise DataError(
                    f'{self.label}, line {line}: a quote (") is opened and never closed: close it.'
                ) from error
            self._refuse_ragged()
            raise DataError(f"{self.label} cannot be read ({error}): check its separator and quotes.") from error

    def line_of_row(self, row: int) -> int:
        """Return the line, counted from 1, where a row of data, counted from 0, begins."""
        number = row if self.headerless else row + 1
        return next(islice(self._rows(), number, None), (number + 1, []))[0]

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the first line and the cells of each row that is not blank, as slowly and surely as Python reads."""
        with _open_text(self.path) as stream:
            if self.headerless:
                for line, text in enumerate(stream, start=1):
                    cells = text.split("#", 1)[0].split()
                    if cells:
                        yield line, cells
                return
            reader = csv.reader(stream, delimiter=self.separator, skipinitialspace=True)
            line = 1
            try:
                for cells in reader:
                    if len(cells) > 1 or (cells and cells[0].strip()):
                        yield line, cells
                    line = reader.line_num + 1
            except csv.Error as error:
                raise DataError(f"{self.label}, line {line}: {error}; check its quotes.") from error

    def _header_columns(self, line: int, cells: list[str]) -> list[str]:
        columns = [cell.strip() for cell in cells]
        if len(columns) == 1:
            for other, name in _SEPARATORS.items():
                if other != self.separator and other in columns[0]:
                    shown = "$'\\t'" if other == "\t" else f"'{other}'"
                    raise DataError(
                        f"{self.label}, line {line}: the columns are separated by {name}, not by "
                        f"{_SEPARATORS.get(self.separator, repr(self.separator))}: pass --separator {shown}."
                    )
        for position, column in enumerate(columns, start=1):
            if not column:
                raise DataError(
                    f"{self.label}, line {line}: column {position} has no name: name it, or write the table without its index."
                )
            if column in columns[: position - 1]:
                raise DataError(
                    f"{self.label}, line {line}: the column name {column!r} appears twice: rename one of them."
                )
        return columns

    def _headerless_columns(self, cells: list[str]) -> list[str]:
        if len(cells) < 2:
            raise DataError(
                f"{self.label}, line {self.line_of_row(0)}: an edge needs two node ids, separated by white space."
            )
        return ["source", "target", "weight", *(f"column{number}" for number in range(4, len(cells) + 1))][: len(cells)]

    def _check_first_row(self) -> None:
        # The parser takes its idea of the width from the first row of data and would swallow one that is too long.
        rows = self._rows()
        for _, (line, cells) in zip(range(2), rows, strict=False):
            if len(cells) != len(self.columns):
                self._refuse_row(line, len(cells))

    def _refuse_ragged(self) -> None:
        for line, cells in self._rows():
            if len(cells) != len(self.columns):
                self._refuse_row(line, len(cells))

    def _refuse_row(self, line: int, found: int) -> None:
        cells = "1 cell" if found == 1 else f"{found} cells"
        expected = "the first line has" if self.headerless else "the header has"
        raise DataError(
            f"{self.label}, line {line}: the row has {cells} where {expected} {len(self.columns)}: "
            "add or remove cells, or quote a text that contains the separator."
        )


def _suffix(path: Path) -> str:
    return path.with_suffix("").suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


def _open_bytes(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path, "rb")) if path.suffix.lower() == ".gz" else path.open("rb")


def _open_text(path: Path) -> IO[str]:
    return io.TextIOWrapper(_open_bytes(path), encoding="utf-8-sig", newline="")


def _check_bytes(path: Path) -> None:
    """Refuse what is not UTF-8 text, naming the line."""
    if not path.exists():
        raise DataError(f"There is no file {path}: check the path.")
    if path.is_dir():
        raise DataError(f"{path} is a folder: name the file inside it.")
    decoder, line, pending = codecs.getincrementaldecoder("utf-8")(), 1, b""
    try:
        with _open_bytes(path) as stream:
            while block := stream.read(1 << 20):
                if line == 1 and not pending:
                    _check_magic(block, path)
                if b"\0" in block:
                    line += block[: block.index(b"\0")].count(b"\n")
                    raise DataError(
                        f"{path.name}, line {line}: a NUL byte, so this is no text: save the table as CSV in UTF-8."
                    )
                try:
                    decoder.decode(block)
                except UnicodeDecodeError as error:
                    line += (pending + block)[: error.start].count(b"\n")
                    raise _not_utf8(path, line) from error
                line += block.count(b"\n")
                pending = decoder.getstate()[0]
        if pending:
            raise _not_utf8(path, line)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"{path.name} is not a whole gzip file ({error}): compress it again or name the plain file."
        ) from error


def _check_magic(block: bytes, path: Path) -> None:
    if block.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise DataError(f"{path.name} is a spreadsheet or an archive, not text: export the table as CSV.")
    if block.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{path.name}, line 1: the text is in UTF-16: save it in UTF-8.")


def _not_utf8(path: Path, line: int) -> DataError:
    return DataError(f"{path.name}, line {line}: a character is not in UTF-8: save the whole file in UTF-8.")


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise WrongUse(
            "Reading Parquet needs pyarrow: run pip install 'omegagnn[parquet]', or save the table as CSV."
        ) from error
    if not path.is_file():
        raise DataError(f"There is no file {path}: check the path.")
    try:
        return cast("pd.DataFrame", parquet.read_table(path).to_pandas())
    except (ValueError, OSError) as error:
        raise DataError(
            f"{path.name} is not a whole Parquet file: write it again, or save the table as CSV."
        ) from error


def _named_columns(frame: pd.DataFrame, label: str) -> pd.DataFrame:
    names = [str(column) for column in frame.columns]
    twice = _first_repeated(names)
    if twice is not None:
        raise DataError(f"{label}: the column name {twice!r} appears twice: rename one of them.")
    frame = frame.reset_index(drop=True)
    frame.columns = pd.Index(names)
    return frame


def _first_repeated(names: Sequence[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
