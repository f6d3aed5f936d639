"""Downloads from a real server on this machine: resumed, checked, limited, moved in one piece."""

from __future__ import annotations

import fcntl
import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from omegagnn.data import download as module
from omegagnn.data.download import download, sha256_of
from omegagnn.errors import DataError

CONTENT = np.random.default_rng(0).bytes(900_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Shop(ThreadingHTTPServer):
    """Serves one file and does what its test tells it to."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.tag: str | None = '"one"'
        self.cuts: list[int] = []  # after how many bytes the next answers break off
        self.statuses: list[int] = []  # what the next requests are answered with instead
        self.asked: list[str | None] = []  # the Range of each request
        self.honours_ranges = True
        self.tells_length = True
        self.shift = 0  # how far beside the asked place it goes on

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/some/file.bin"


class Handler(BaseHTTPRequestHandler):
    server: Shop

    def do_GET(self) -> None:
        shop = self.server
        asked = self.headers.get("Range")
        shop.asked.append(asked)
        if shop.statuses:
            self.send_error(shop.statuses.pop(0))
            return
        start = 0
        if asked and shop.honours_ranges and self.headers.get("If-Range") == shop.tag:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(shop.content):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start + shop.shift}-{len(shop.content) - 1}/{len(shop.content)}")
        else:
            self.send_response(200)
        if shop.tag:
            self.send_header("ETag", shop.tag)
        if shop.tells_length:
            self.send_header("Content-Length", str(len(shop.content) - start))
        self.end_headers()
        end = start + shop.cuts.pop(0) if shop.cuts else None
        self.wfile.write(shop.content[start:end])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.delenv("OMEGAGNN_OFFLINE")
    monkeypatch.setattr(module, "PAUSE", 0.0)
    server = Shop()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_arrives_whole_and_alone(shop: Shop, tmp_path: Path) -> None:
    target = tmp_path / "deep" / "file.bin"
    assert download(shop.url, target, SHA256) == target
    assert target.read_bytes() == CONTENT
    assert names(target.parent) == ["file.bin"]


def test_a_transfer_that_breaks_goes_on_where_it_stopped(shop: Shop, tmp_path: Path) -> None:
    shop.cuts = [300_000, 200_000]
    download(shop.url, tmp_path / "file.bin", SHA256)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert shop.asked == [None, "bytes=300000-", "bytes=500000-"]


def test_a_later_call_goes_on_where_the_first_gave_up(shop: Shop, tmp_path: Path) -> None:
    shop.cuts = [100_000, 100_000, 100_000]
    with pytest.raises(DataError, match=r"ended after 300,000 of 900,000 bytes\): run the command again to go on"):
        download(shop.url, tmp_path / "file.bin", SHA256)
    assert not (tmp_path / "file.bin").exists()
    shop.asked.clear()
    download(shop.url, tmp_path / "file.bin", SHA256)
    assert shop.asked == ["bytes=300000-"]
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert names(tmp_path) == ["file.bin"]


def test_another_version_at_the_source_is_fetched_from_the_start(shop: Shop, tmp_path: Path) -> None:
    """Halves of two versions are never joined: the server is asked to go on only with the version it began with."""
    shop.cuts = [100_000] * 3
    with pytest.raises(DataError, match="ended after"):
        download(shop.url, tmp_path / "file.bin")
    shop.content, shop.tag = bytes(reversed(CONTENT)), '"two"'
    download(shop.url, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == shop.content


@pytest.mark.parametrize("tag", [None, 'W/"weak"'])
def test_without_a_version_nothing_is_resumed(tag: str | None, shop: Shop, tmp_path: Path) -> None:
    shop.tag, shop.cuts = tag, [100_000]
    download(shop.url, tmp_path / "file.bin", SHA256)
    assert shop.asked == [None, None]


def test_a_server_without_ranges_and_one_without_length(shop: Shop, tmp_path: Path) -> None:
    shop.honours_ranges, shop.cuts = False, [100_000]
    download(shop.url, tmp_path / "a.bin", SHA256)
    shop.tells_length = False
    download(shop.url, tmp_path / "b.bin", SHA256)
    assert (tmp_path / "a.bin").read_bytes() == (tmp_path / "b.bin").read_bytes() == CONTENT


def test_a_server_that_goes_on_elsewhere_is_not_believed(shop: Shop, tmp_path: Path) -> None:
    shop.cuts, shop.shift = [100_000], 7
    with pytest.raises(DataError, match="goes on at another place than asked"):
        download(shop.url, tmp_path / "file.bin", SHA256)


def test_a_wrong_checksum_leaves_nothing(shop: Shop, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"has SHA-256 {SHA256}, expected {'0' * 64}"):
        download(shop.url, tmp_path / "file.bin", "0" * 64)
    assert names(tmp_path) == []


def test_what_is_complete_but_unchecked_is_not_asked_for_again(shop: Shop, tmp_path: Path) -> None:
    """A part that holds everything already (a crash before the move) is answered 416 and fetched anew."""
    (tmp_path / ".file.bin.part").write_bytes(CONTENT)
    (tmp_path / ".file.bin.part.version").write_text('"one"')
    download(shop.url, tmp_path / "file.bin", SHA256)
    assert shop.asked == ["bytes=900000-", None]
    assert names(tmp_path) == ["file.bin"]


@pytest.mark.parametrize(("status", "requests"), [(404, 1), (403, 1), (500, 3), (503, 3)])
def test_statuses(status: int, requests: int, shop: Shop, tmp_path: Path) -> None:
    shop.statuses = [status] * 5
    with pytest.raises(DataError, match=rf"file\.bin cannot be fetched \(HTTP {status}, .*\): put it in place by hand"):
        download(shop.url, tmp_path / "file.bin")
    assert len(shop.asked) == requests


def test_a_server_that_recovers(shop: Shop, tmp_path: Path) -> None:
    shop.statuses = [503, 502]
    download(shop.url, tmp_path / "file.bin", SHA256)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


def test_416_without_end(shop: Shop, tmp_path: Path) -> None:
    shop.statuses = [416] * 5
    with pytest.raises(DataError, match="refuses to go on"):
        download(shop.url, tmp_path / "file.bin")


@pytest.mark.parametrize("tells_length", [True, False])
def test_an_oversized_file_is_refused(tells_length: bool, shop: Shop, tmp_path: Path) -> None:
    shop.tells_length = tells_length
    with pytest.raises(DataError, match=r"more than the 500,000 (bytes )?allowed"):
        download(shop.url, tmp_path / "file.bin", limit=500_000)
    assert names(tmp_path) == []


def test_no_server(shop: Shop, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot be fetched \(.*refused.*\)"):
        download("http://127.0.0.1:9/file.bin", tmp_path / "file.bin")


def test_offline_and_other_addresses(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("file:///etc/passwd", "ftp://127.0.0.1/x", "x"):
        with pytest.raises(DataError, match="is not an http or https address"):
            download(address, tmp_path / "file.bin")
    monkeypatch.setenv("OMEGAGNN_OFFLINE", "1")
    with pytest.raises(DataError, match="OMEGAGNN_OFFLINE is set"):
        download(shop.url, tmp_path / "file.bin")
    assert shop.asked == []


def test_two_at_once(shop: Shop, tmp_path: Path) -> None:
    with (tmp_path / ".file.bin.part.lock").open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(DataError, match=r"Another process is fetching file\.bin"):
            download(shop.url, tmp_path / "file.bin")
    download(shop.url, tmp_path / "file.bin", SHA256)


def test_a_bar_is_shown_on_a_terminal_only(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    download(shop.url, tmp_path / "a.bin")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    download(shop.url, tmp_path / "b.bin")
    out, err = capsys.readouterr()
    assert out == ""
    assert "file.bin" in err


def test_sha256_of(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(CONTENT)
    assert sha256_of(tmp_path / "x") == SHA256
