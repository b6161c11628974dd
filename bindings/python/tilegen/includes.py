"""How a text is read: its name, values of compile-time parameters, and the texts that it includes."""
import contextlib
import ctypes
import os
import pathlib

from . import _header as h
from ._library import Error


def _of_folder(folder):
    """Gives the files of a folder and of those below: beside the file that includes, else from the folder on."""
    folder = pathlib.Path(folder)
    inside = folder.resolve()

    def find(path, includer):
        for place in (pathlib.Path(includer).parent, folder):
            file = (place / path).resolve()
            if file.is_relative_to(inside) and file.is_file():
                return str(folder / file.relative_to(inside)), file.read_bytes()
        raise FileNotFoundError(f"no file {path} in the folder {folder}")
    return find


class _Including:
    """`function` of a path and the includer's name as the library calls it."""

    def __init__(self, function):
        self.function, self.raised, self.kept = function, None, ()
        self.raw = h.tl_include_fn(self._find)

    def _find(self, _, at):
        asked = at.contents
        try:
            path = asked.path.decode()
            got = self.function(path, asked.includer.decode())
            if got is None:
                return
            name, text = got if isinstance(got, tuple) else (path, got)
            self.kept = name.encode(), text.encode() if isinstance(text, str) else bytes(text)  # read behind the return
            asked.name, asked.text = self.kept
            asked.size = len(self.kept[1])
        except Exception as e:  # it must not pass through the library
            self.raised = e
            self.kept = (f"{type(e).__name__}: {e}".encode(errors="replace"),)
            asked.refusal = self.kept[0]


@contextlib.contextmanager
def parse_options(file_name, names, values, count, include):
    """A tl_parse_options. What a function `include` raises is the cause of the Error that the reading ends with."""
    options = h.tl_parse_options(struct_size=ctypes.sizeof(h.tl_parse_options), param_count=count, param_names=names,
                                 param_values=values, file_name=file_name.encode() if file_name else None)
    if include is None:
        yield ctypes.byref(options)
        return
    including = _Including(_of_folder(include) if isinstance(include, (str, os.PathLike)) else include)
    options.include = including.raw
    try:
        yield ctypes.byref(options)
    except Error as e:
        raise e from including.raised
