"""Finds and opens libtilegen.so, types its functions, and turns its errors into exceptions."""
import ctypes
import os
from pathlib import Path

from . import _header as h


class Diagnostic:
    """One message of the library; see tl_diagnostic."""

    def __init__(self, raw):
        text = lambda b: (b or b"").decode()
        self.code, self.message, self.hint = text(raw.code), text(raw.message), text(raw.hint)
        self.op, self.stage, self.file = text(raw.op), text(raw.stage), text(raw.file)
        self.included_at = text(raw.included_at)
        self.status, self.severity, self.line, self.column = raw.status, raw.severity, raw.line, raw.column

    def __repr__(self):
        return f"Diagnostic({self.code}: {self.message})"


class Error(Exception):
    """A call of the library failed. `status` is its tl_status, `diagnostics` say what was wrong."""

    def __init__(self, message, status=h.TL_INVALID_ARGUMENT, diagnostics=()):
        super().__init__(message)
        self.status, self.diagnostics = status, list(diagnostics)


def _candidates():
    if "TILEGEN_LIBRARY" in os.environ:
        yield os.environ["TILEGEN_LIBRARY"]
        return
    here = Path(__file__).resolve().parent
    for up in (here, *here.parents):  # beside the package, in its lib/, or in the build folder of a checkout
        for place in (up, up / "lib", up / "build"):
            yield str(place / "libtilegen.so.0")
    yield "libtilegen.so.0"


def _open():
    tried = []
    for path in _candidates():
        if os.sep in path and not os.path.exists(path):
            continue
        try:
            return ctypes.CDLL(path)
        except OSError as e:
            tried.append(str(e))
    raise ImportError("libtilegen.so.0 was not found; set TILEGEN_LIBRARY to its path. " + "; ".join(tried))


lib = _open()
for _name, (_result, _arguments) in h.FUNCTIONS.items():
    _function = getattr(lib, _name)
    _function.restype, _function.argtypes = _result, list(_arguments)

if lib.tilelang_api_version() != h.TL_API_VERSION:
    raise ImportError(f"libtilegen has API version {lib.tilelang_api_version()}, this package was made for "
                      f"{h.TL_API_VERSION}")


def error_from(handle, status):
    """Takes over the reference to a tl_error."""
    if not handle:
        return Error(lib.tl_status_name(status).decode(), status)
    diagnostics = []
    for i in range(lib.tl_error_count(handle)):
        raw = h.tl_diagnostic(struct_size=ctypes.sizeof(h.tl_diagnostic))
        lib.tl_error_diagnostic(handle, i, ctypes.byref(raw))
        diagnostics.append(Diagnostic(raw))
    message = lib.tl_error_message(handle).decode()
    lib.tl_error_release(handle)
    return Error(message, status, diagnostics)


def call(name, *arguments):
    """Calls a function that ends in `tl_error **`; raises Error when it fails."""
    error = ctypes.c_void_p()
    status = getattr(lib, name)(*arguments, ctypes.byref(error))
    if status != h.TL_OK:
        raise error_from(error, status)


def take_blob(handle):
    """The bytes of a tl_blob as text; gives its reference back."""
    text = ctypes.string_at(lib.tl_blob_data(handle), lib.tl_blob_size(handle)).decode()
    lib.tl_blob_release(handle)
    return text
