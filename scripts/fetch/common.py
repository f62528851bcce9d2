"""What every way of fetching a model shares: errors people can act on, hashes, a progress bar."""
import hashlib
import sys
import time

CHUNK = 1 << 20


class Failure(Exception):
    """Ends the program with one line that says what was expected and what was found."""


class Unreachable(Failure):
    """The hub did not answer at all: the registry copies may still do."""


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(CHUNK):
            digest.update(block)
    return digest.hexdigest()


def megabytes(n):
    return f"{n / 1e6:.1f} MB"


class Progress:
    """A bar on a terminal; elsewhere one line a file, so that logs stay short."""

    def __init__(self, name, total, already=0):
        self.name, self.total, self.already = name, total, already
        self.start = self.drawn = time.monotonic()
        self.live = sys.stderr.isatty()

    def update(self, done):
        now = time.monotonic()
        if self.live and now - self.drawn > 0.1:
            self.drawn = now
            self._draw(done, now)

    def _draw(self, done, now):
        share = min(1.0, done / self.total) if self.total else 1.0
        rate = (done - self.already) / max(now - self.start, 1e-3)
        bar = ("#" * round(30 * share)).ljust(30, ".")
        line = f"\r  {self.name[-32:]:32} [{bar}] {share:4.0%} {rate / 1e6:6.1f} MB/s "
        print(line, end="", file=sys.stderr, flush=True)

    def finish(self):
        if self.live:
            self._draw(self.total, time.monotonic())
            print(file=sys.stderr)
        else:
            print(f"  {self.name}  {megabytes(self.total)}", file=sys.stderr)
