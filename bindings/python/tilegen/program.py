"""Programs, targets, compiled artifacts and kernels ready to launch."""
import collections
import ctypes
import json
import operator
import warnings

from . import _header as h
from . import tuning
from ._library import Diagnostic, Error, call, error_from, lib, take_blob
from .includes import parse_options
from .tensors import GPUS, Described, describe
from .tuning import option_values
from .types import FLOATS, DType, dtype_of


_FLOATS = {t.value for t in FLOATS}
_ANY_DEVICE = ctypes.c_size_t(-1).value  # TL_DEVICE_ANY


class _Handle:
    """Owns one reference to an object of the library."""
    _release = None

    def __init__(self, handle):
        self.handle = handle

    def __del__(self):
        if getattr(self, "handle", None):
            getattr(lib, self._release)(self.handle)
            self.handle = None


class Context(_Handle):
    _release = "tl_context_release"

    def __init__(self):
        handle = ctypes.c_void_p()
        call("tl_context_create", ctypes.byref(handle))
        super().__init__(handle)


_default = None


def default_context():
    global _default
    if _default is None:
        _default = Context()
    return _default


class Target(_Handle):
    """What a device can do: Target("sm_90"), Target("host"). Without a name the best that this machine can run."""
    _release = "tl_target_release"

    def __init__(self, name=None):
        handle = ctypes.c_void_p()
        if name is None:
            call("tl_target_best", default_context().handle, ctypes.byref(handle))
        else:
            call("tl_target_parse", name.encode(), ctypes.byref(handle))
        super().__init__(handle)

    @property
    def name(self):
        return lib.tl_target_name(self.handle).decode()

    def __repr__(self):
        return f"Target({self.name!r})"

    def describe(self):
        blob = ctypes.c_void_p()
        call("tl_target_to_json", self.handle, ctypes.byref(blob))
        return json.loads(take_blob(blob))


def build_info():
    """Version, build id and back end of the library."""
    return json.loads(lib.tl_build_info())


def devices():
    """What this machine has, as dictionaries; a device's place in the list is its ordinal."""
    out = []
    for i in range(lib.tl_device_count()):
        info = h.tl_device_info(struct_size=ctypes.sizeof(h.tl_device_info))
        lib.tl_device_describe(i, ctypes.byref(info))
        out.append({"kind": info.kind, "cores": info.cores, "name": info.name.decode(), "target": info.target.decode(),
                    "features": info.features.decode()})
    return out


Param = collections.namedtuple("Param", "value domain")  # of a compile-time parameter


def int64_of(value):
    """An integer that the library takes; ctypes would cut a larger one. A type is its number."""
    value = value.value if isinstance(value, DType) else operator.index(value)
    if not -2**63 <= value < 2**63:
        raise OverflowError(f"{value} does not fit 64 bits")
    return value


def _bindings(values):
    """names, values, count of a dict, as the library takes them."""
    n = len(values)
    return ((ctypes.c_char_p * n)(*(name.encode() for name in values)),
            (ctypes.c_int64 * n)(*(int64_of(v) for v in values.values())), n)


def bitcode_text(bitcode):
    """The text of LLVM bitcode, which Builder.function takes as llvm=, llvm_ptx= and the like, and a .tl text holds."""
    blob, data = ctypes.c_void_p(), bytes(bitcode)
    call("tl_bitcode_text", data, len(data), ctypes.byref(blob))
    return take_blob(blob)


def format_text(text, file_name=None, context=None, include=None):
    """A .tl text laid out: blocks indented, spaces between tokens; comments and line breaks stay, as does the program. `include`
    as for Program.parse; a text that others include has no line `tl 1 program NAME`, and is checked by itself."""
    context, data, blob = context or default_context(), text.encode(), ctypes.c_void_p()
    with parse_options(file_name, *_bindings({}), include) as how:
        call("tl_text_format_with", context.handle, data, len(data), how, ctypes.byref(blob))
    return take_blob(blob)


class Program(_Handle):
    """An immutable tile program; Program.parse reads the .tl text form."""
    _release = "tl_program_release"

    def __init__(self, handle, context):
        super().__init__(handle)
        self.context = context

    @classmethod
    def parse(cls, text, file_name=None, context=None, params=None, include=None):
        """`params`: {name: value} of compile-time parameters; the others have the text's values.

        `include`: where the texts come from that it includes. A folder: its files, beside the one that includes or from the
        folder on, and none outside of it. Or a function of a path and the includer's name, which gives a text, or a name and a
        text; texts of one name are one, and the name's default is the path. None, or what it raises, refuses the text."""
        context, data, handle = context or default_context(), text.encode(), ctypes.c_void_p()
        with parse_options(file_name, *_bindings(params or {}), include) as how:
            call("tl_program_parse_with", context.handle, data, len(data), how, ctypes.byref(handle))
        return cls(handle, context)

    def emit_c(self):
        """C source of a function build_NAME(context, out_program, out_error), NAME being the program's, that builds an
        equal program by calls of tilelang.h."""
        blob = ctypes.c_void_p()
        call("tl_program_emit_c", self.handle, ctypes.byref(blob))
        return take_blob(blob)

    def bind(self, **values):
        """A new program from this one's text with other values of compile-time parameters; those not named stay."""
        handle = ctypes.c_void_p()
        call("tl_program_bind", self.context.handle, self.handle, *_bindings(values), ctypes.byref(handle))
        return Program(handle, self.context)

    @property
    def params(self):
        """Compile-time parameters, {name: Param(value, domain)} in the order of declaration."""
        out = {}
        for i in range(lib.tl_program_compile_param_count(self.handle)):
            info = h.tl_compile_param_info(struct_size=ctypes.sizeof(h.tl_compile_param_info))
            lib.tl_program_compile_param(self.handle, i, ctypes.byref(info))
            out[info.name.decode()] = Param(info.value, tuple(info.domain[:info.domain_size]))
        return out

    def configurations(self, target, measure=None, **options):
        """The values of the compile-time parameters in the order of the cost model (targets of threads), which runs nothing:
        Configurations, the shortest time first; those that are refused are last, their `us` None. `options` as for compile; the
        option `sizes` says for which sizes.

        With tune="measure" the best by the model (`tune_count` of them) run on the device, on random data, and stand first, in
        the order of `measured`. `measure`, a function of a Program with these values bound, runs them instead: it returns
        microseconds; what it raises refuses the configuration. Times remembered in the folder `tune_records` are taken
        instead."""
        return tuning.configurations(self, self._target(target), measure, options)

    def measure(self, target=None, **options):
        """Microseconds of one launch of the program as it is on the device, on random data; the option `sizes` says of which
        sizes."""
        us, target = ctypes.c_double(), self._target(target)
        with option_values(options) as raw:
            call("tl_measure", self.context.handle, self.handle, target.handle, raw, ctypes.byref(us))
        return us.value

    @staticmethod
    def _target(target):
        return target if isinstance(target, Target) else Target(target)

    @property
    def name(self):
        return lib.tl_program_name(self.handle).decode()

    @property
    def hash(self):
        return lib.tl_program_hash(self.handle).decode()

    def __str__(self):
        blob = ctypes.c_void_p()
        call("tl_program_print", self.handle, ctypes.byref(blob))
        return take_blob(blob)

    def parameters(self):
        """Launch parameters in order, as tl_param_info."""
        out = []
        for i in range(lib.tl_program_param_count(self.handle)):
            info = h.tl_param_info(struct_size=ctypes.sizeof(h.tl_param_info))
            lib.tl_program_param(self.handle, i, ctypes.byref(info))
            out.append(info)
        return out

    def interpret(self, *arguments, timeout_ms=0):
        """Runs on host tensors by interpretation: slow, the reference for compiled code. An Error after `timeout_ms`
        milliseconds, 0 for any number."""
        bound, options = Arguments(self, arguments), _launch_options(timeout_ms)
        call("tl_interpret_launch", self.handle, ctypes.byref(options), bound.raw, bound.count)

    def compile(self, target=None, **options):
        """Compiles for a Target or a target's name; options as tl_option_describe lists them. A dict given as `schedule`
        becomes schedule_json. What the plan loses is a PerformanceWarning."""
        made = self._compile(self._target(target), options)
        for d in made.warnings:
            warnings.warn(f"{d.op}: {d.message} ({d.hint}) [{d.code}]", PerformanceWarning, stacklevel=2)
        return made

    def _compile(self, target, options):
        artifact = ctypes.c_void_p()
        with option_values(options) as raw:
            call("tl_compile", self.context.handle, self.handle, target.handle, raw, ctypes.byref(artifact))
        made = Artifact(artifact, self, target)
        if options.get("tune", "none") != "none":  # the artifact's program is the one chosen
            made.program = Program.parse(made.section("tile_ir"), context=self.context)
        return made


class PerformanceWarning(UserWarning):
    """A plan loses time, by the cost model, that another program would not."""


class Artifact(_Handle):
    """A compiled program and every decision taken for it."""
    _release = "tl_artifact_release"

    def __init__(self, handle, program, target):
        super().__init__(handle)
        self.program, self.target = program, target

    def section(self, name):
        """Text of a section by the end of its constant's name: "schedule_text", "thread_program", "ptx"."""
        return self._section_bytes(getattr(h, "TL_SECTION_" + name.upper())).decode()

    @property
    def code(self):
        """What is loaded on a device, as bytes in the form of `code_format`."""
        return self._section_bytes(h.TL_SECTION_CODE)

    @property
    def code_format(self):
        """ "ptx" or "object"; "" for an artifact without code (plan_only, simulated targets)."""
        return lib.tl_artifact_code_format(self.handle).decode()

    def _section_bytes(self, section):
        data, size = ctypes.c_char_p(), ctypes.c_size_t()
        call("tl_artifact_section", self.handle, section, ctypes.byref(data), ctypes.byref(size))
        return ctypes.string_at(data, size.value)

    @property
    def schedule(self):
        return json.loads(self.section("schedule_json"))

    @property
    def cost(self):
        """The cost model's estimate, times in microseconds; None for targets without threads. Sizes by the option `sizes`."""
        text = self.section("cost_json")
        return json.loads(text) if text else None

    @property
    def warnings(self):
        """What the plan loses, the costliest first: Diagnostics with the operation, the factor and a way out."""
        out = []
        for i in range(lib.tl_artifact_warning_count(self.handle)):
            d = h.tl_diagnostic(struct_size=ctypes.sizeof(h.tl_diagnostic))
            lib.tl_artifact_warning(self.handle, i, ctypes.byref(d), None)
            out.append(Diagnostic(d))
        return out

    def stages(self):
        """{stage: milliseconds} of the compilation."""
        out = {}
        for i in range(lib.tl_artifact_stage_count(self.handle)):
            name, ms = ctypes.c_char_p(), ctypes.c_double()
            lib.tl_artifact_stage(self.handle, i, ctypes.byref(name), ctypes.byref(ms))
            out[name.value.decode()] = ms.value
        return out

    def fallback(self):
        """The version for arguments that this one's guards refuse, compiled unless it is; None where there is none."""
        artifact = ctypes.c_void_p()
        call("tl_artifact_fallback", self.program.context.handle, self.handle, ctypes.byref(artifact))
        return Artifact(artifact, self.program, self.target) if artifact else None

    @property
    def specialisations(self):
        """Of an artifact compiled for a range of sizes, [(sizes, Artifact)]: for which sizes a launch takes which code. Empty for
        others."""
        out = []
        for i in range(lib.tl_artifact_specialisation_count(self.handle)):
            blob, artifact = ctypes.c_void_p(), ctypes.c_void_p()
            call("tl_artifact_specialisation", self.handle, i, ctypes.byref(blob), ctypes.byref(artifact))
            part = Artifact(artifact, self.program, self.target)
            part.program = Program.parse(part.section("tile_ir"), context=self.program.context)
            out.append((take_blob(blob), part))
        return out

    def load(self, device=None):
        """The Kernel on a device: an ordinal of devices(), or the one that fits best."""
        kernel = ctypes.c_void_p()
        call("tl_kernel_load", self.program.context.handle, self.handle, _ANY_DEVICE if device is None else device,
             ctypes.byref(kernel))
        return Kernel(kernel, self.program)


class Arguments:
    """Launch arguments in the library's form, with what they point to."""

    def __init__(self, program, values):
        parameters = program.parameters()
        solved = [p for p in parameters if p.kind != h.TL_PARAM_DIM]
        if len(values) == len(solved):
            parameters = solved
        elif len(values) != len(parameters):
            raise TypeError(f"{program.name} takes {len(solved)} tensors and scalars, or all {len(parameters)} parameters; "
                            f"got {len(values)}")
        self.count, self.kept = len(values), []
        self.raw = (h.tl_arg * max(self.count, 1))()
        for slot, parameter, value in zip(self.raw, parameters, values):
            self._set(slot, parameter, value)

    @staticmethod
    def _described(parameter, value):
        name = parameter.name.decode()
        try:
            described = describe(value)
        except (TypeError, ValueError) as e:
            raise (TypeError if isinstance(e, TypeError) else ValueError)(f"tensor '{name}': {e}") from None
        if described.read_only and not parameter.read_only:
            raise ValueError(f"tensor '{name}' is given read-only memory, and the program may write it; pass a writable "
                             "copy, or declare the tensor read-only in the program if it is only read")
        return described

    def _set(self, slot, parameter, value):
        if parameter.kind == h.TL_PARAM_TENSOR and value is None and parameter.optional:
            slot.kind = h.TL_ARG_POINTER  # null
        elif parameter.kind == h.TL_PARAM_TENSOR:
            described = self._described(parameter, value)
            self.kept.append(described)
            slot.kind, slot.payload = h.TL_ARG_TENSOR, ctypes.addressof(described.raw)
        elif value is None:
            slot.kind = h.TL_ARG_AUTO
        elif isinstance(value, float) or parameter.dtype in _FLOATS:
            slot.kind = h.TL_ARG_F64
            slot.payload = ctypes.c_uint64.from_buffer_copy(ctypes.c_double(float(value))).value
        else:
            slot.kind, slot.payload = h.TL_ARG_I64, int(value) & (2**64 - 1)


def _current_stream(bound):
    """PyTorch's current stream when the tensors are its own on a GPU; else the default stream."""
    for described in bound.kept:
        if described.raw.device.device_type in GPUS and hasattr(described.owner, "data_ptr"):
            import torch
            return torch.cuda.current_stream(described.owner.device).cuda_stream
    return None


def _launch_options(timeout_ms):
    return h.tl_launch(struct_size=ctypes.sizeof(h.tl_launch), timeout_ms=timeout_ms)


class Launch:
    """A kernel with its arguments bound: calling it only launches."""

    def __init__(self, kernel, arguments, stream, timeout_ms=0):
        self.kernel, self.arguments, self.stream = kernel, Arguments(kernel.program, arguments), stream
        self.options = _launch_options(timeout_ms)

    def __call__(self):
        stream = self.stream if self.stream is not None else _current_stream(self.arguments)
        self.options.stream = stream
        error = ctypes.c_void_p()
        status = lib.tl_kernel_launch(self.kernel.handle, ctypes.byref(self.options), self.arguments.raw,
                                      self.arguments.count, ctypes.byref(error))
        if status != h.TL_OK:
            raise error_from(error, status)


class Kernel(_Handle):
    """Ready to launch. kernel(X, Y, 2.0) takes one argument per tensor and scalar, or per parameter; on a GPU the call
    returns at once, the work is done on `stream`, by default PyTorch's current one. On the host it ends with an Error after
    `timeout_ms` milliseconds, 0 for any number."""
    _release = "tl_kernel_release"

    def __init__(self, handle, program):
        super().__init__(handle)
        self.program = program

    def prepare(self):
        """Loads the code now rather than at the first launch; needed before the capture of a graph."""
        call("tl_kernel_prepare", self.handle)
        return self

    def forms(self):
        """What the code needs of the device, one dictionary for each form of each kernel; see tl_kernel_info."""
        out = []
        for i in range(lib.tl_kernel_form_count(self.handle)):
            info = h.tl_kernel_info(struct_size=ctypes.sizeof(h.tl_kernel_info))
            call("tl_kernel_describe", self.handle, i, ctypes.byref(info))
            fields = {name: getattr(info, name) for name, _ in info._fields_ if name != "struct_size"}
            out.append({name: v.decode() if isinstance(v, bytes) else v for name, v in fields.items()})
        return out

    def bind(self, *arguments, stream=None, timeout_ms=0):
        return Launch(self, arguments, stream, timeout_ms)

    def __call__(self, *arguments, stream=None, timeout_ms=0):
        Launch(self, arguments, stream, timeout_ms)()
