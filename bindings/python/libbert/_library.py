"""The library that the wheel carries, and how its objects and errors look in Python."""
import ctypes as c
import functools
import pathlib

from . import _c


class BertError(Exception):
    """A call that failed. `code` is a Status; the text says what, where, what was expected and what was found."""

    def __init__(self, code: _c.Status, text: str):
        super().__init__(code, text)
        self.code, self.text = code, text

    def __str__(self):
        return self.text


class BertWarning(UserWarning):
    """Something that was done, but not as the caller may think: texts that were cut, files that disagree."""


@functools.cache
def library():
    return _c.load(str(pathlib.Path(__file__).with_name("libbert.so")))


def call(name, *arguments):
    """Calls a function whose last argument is the error."""
    err = _c.Error()
    if getattr(library(), name)(*arguments, err):
        raise BertError(_c.Status(err.code), err.text.decode())


class Owned:
    """A pointer to something of the library's, NULL at first. What it points to is closed when nothing refers to this
    any more, and what it needs is kept until then: its pipeline by a session, its tokens by an array."""
    __slots__ = ("pointer", "keep", "_close")

    def __init__(self, kind, *keep):
        self.pointer, self.keep = c.c_void_p(), keep
        self._close = getattr(library(), f"bert_{kind}_close")

    def __del__(self):
        self._close(self.pointer)


def version() -> str:
    """Of the library: "0.1.0"."""
    number = library().bert_version()
    return f"{number >> 16}.{number >> 8 & 255}.{number & 255}"


def numerics() -> int:
    """Revision of the arithmetic: equal revisions give equal bits, so keep it beside vectors that you store."""
    return library().bert_numerics()
