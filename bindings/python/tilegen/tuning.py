"""The options of a call, and the configurations of a program."""
import collections
import contextlib
import ctypes
import json

from . import _header as h
from ._library import call, lib

# Values of a program's compile-time parameters, the estimated time in microseconds, why there is none, and the measured time
# in microseconds; None for times that there are not.
Configuration = collections.namedtuple("Configuration", "values us refused measured", defaults=(None,))


@contextlib.contextmanager
def option_values(options):
    """A tl_options of keyword arguments."""
    options = dict(options)
    if "schedule" in options:
        options["schedule_json"] = json.dumps(options.pop("schedule"))
    raw = ctypes.c_void_p()
    call("tl_options_create", ctypes.byref(raw))
    try:
        for name, value in options.items():
            kind = "bool" if isinstance(value, bool) else "i64" if isinstance(value, int) else "str"
            value = value.encode() if kind == "str" else int(value)
            call("tl_options_set_" + kind, raw, name.encode(), value)
        yield raw
    finally:
        lib.tl_options_destroy(raw)


def _measuring(program, function):
    """`function` of a Program as the library calls it."""
    last = []  # what the library reads when the function has returned

    def measure(_, at):
        try:
            lib.tl_program_retain(at.contents.program)
            at.contents.microseconds = float(function(type(program)(at.contents.program, program.context)))
        except Exception as e:  # it must not pass through the library
            last[:] = [f"{type(e).__name__}: {e}".encode(errors="replace")]
            at.contents.refusal = last[0]
    return h.tl_measure_fn(measure)


def configurations(program, target, measure, options):
    tuning = ctypes.c_void_p()
    with option_values(options) as raw:
        if measure is None:
            call("tl_tune", program.context.handle, program.handle, target.handle, raw, ctypes.byref(tuning))
        else:
            call("tl_tune_measured", program.context.handle, program.handle, target.handle, raw,
                 _measuring(program, measure), None, ctypes.byref(tuning))
    try:
        found, names = [], list(program.params)
        for i in range(lib.tl_tuning_count(tuning)):
            info = h.tl_configuration_info(struct_size=ctypes.sizeof(h.tl_configuration_info))
            lib.tl_tuning_configuration(tuning, i, ctypes.byref(info))
            values = dict(zip(names, info.values[:info.value_count]))
            refused = info.refusal.decode() if info.refusal else ""
            found.append(Configuration(values, info.microseconds or None, refused, info.measured_microseconds or None))
        return found
    finally:
        lib.tl_tuning_release(tuning)
