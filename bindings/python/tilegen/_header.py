"""Raw declarations of libtilegen, one to one from include/tilelang.h by scripts/gen_python.py."""
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint8,
                    c_uint16, c_uint32, c_uint64, c_void_p)


class DLDevice(Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class DLDataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(Structure):
    _fields_ = [("data", c_void_p), ("device", DLDevice), ("ndim", c_int32), ("dtype", DLDataType),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


TL_VERSION_MAJOR = 0
TL_VERSION_MINOR = 1
TL_VERSION_PATCH = 0
TL_API_VERSION = 100

TL_OK = 0
TL_INVALID_ARGUMENT = 1000
TL_INVALID_HANDLE = 1001
TL_LAUNCH_ARGUMENT = 1002
TL_ASSERTION = 1003
TL_INVALID_PROGRAM = 2000
TL_PARSE_ERROR = 2001
TL_INVALID_SCHEDULE = 2002
TL_UNSUPPORTED = 3000
TL_UNKNOWN_TARGET = 3001
TL_LIMIT_EXCEEDED = 4000
TL_CANCELLED = 5000
TL_BACKEND = 6000
TL_DRIVER = 7000
TL_IO = 8000
TL_INTERNAL = 9000

TL_F16 = 1
TL_BF16 = 2
TL_F32 = 3
TL_F64 = 4
TL_I8 = 5
TL_U8 = 6
TL_I32 = 7
TL_I64 = 8
TL_BOOL = 9
TL_E4M3 = 10
TL_E5M2 = 11
TL_E4M3FNUZ = 12
TL_E5M2FNUZ = 13
TL_I16 = 14
TL_U16 = 15
TL_U32 = 16
TL_U64 = 17
TL_I4 = 18
TL_U4 = 19
TL_I2 = 20
TL_U2 = 21
TL_E2M1 = 22
TL_E8M0 = 23

TL_SCOPE_GLOBAL = 1
TL_SCOPE_SHARED = 2
TL_SCOPE_FRAGMENT = 3
TL_SCOPE_LOCAL = 4

TL_LOOP_SERIAL = 1
TL_LOOP_UNROLL = 2
TL_LOOP_VECTORIZED = 3
TL_LOOP_PIPELINED = 4

TL_NEG = 1
TL_ABS = 2
TL_EXP = 3
TL_EXP2 = 4
TL_LOG = 5
TL_LOG2 = 6
TL_SQRT = 7
TL_RSQRT = 8
TL_TANH = 9
TL_ERF = 10
TL_SIGMOID = 11
TL_FLOOR = 12
TL_CEIL = 13
TL_NOT = 14
TL_BIT_NOT = 15
TL_SIN = 16
TL_COS = 17
TL_TAN = 18
TL_ASIN = 19
TL_ACOS = 20
TL_ATAN = 21
TL_EXP10 = 22
TL_EXPM1 = 23
TL_LOG1P = 24
TL_CBRT = 25
TL_ERFC = 26
TL_ROUND = 27
TL_RINT = 28
TL_TRUNC = 29
TL_ISNAN = 30
TL_ISINF = 31
TL_POPCOUNT = 32
TL_CLZ = 33
TL_CTZ = 34

TL_ADD = 101
TL_SUB = 102
TL_MUL = 103
TL_DIV = 104
TL_FLOORDIV = 105
TL_FLOORMOD = 106
TL_MIN = 107
TL_MAX = 108
TL_LT = 109
TL_LE = 110
TL_EQ = 111
TL_NE = 112
TL_AND = 113
TL_OR = 114
TL_BIT_AND = 115
TL_BIT_OR = 116
TL_BIT_XOR = 117
TL_SHL = 118
TL_SHR = 119
TL_GT = 120
TL_GE = 121
TL_POW = 122
TL_ATAN2 = 123
TL_FMOD = 124
TL_COPYSIGN = 125
TL_MULHI = 126

TL_FMA = 201
TL_PHILOX = 202

TL_ATOMIC_ADD = 1
TL_ATOMIC_MIN = 2
TL_ATOMIC_MAX = 3
TL_ATOMIC_AND = 4
TL_ATOMIC_OR = 5
TL_ATOMIC_XOR = 6
TL_ATOMIC_EXCHANGE = 7

TL_SHUFFLE_INDEX = 1
TL_SHUFFLE_XOR = 2
TL_SHUFFLE_UP = 3
TL_SHUFFLE_DOWN = 4

TL_VOTE_ANY = 1
TL_VOTE_ALL = 2
TL_VOTE_BALLOT = 3
TL_VOTE_ELECT = 4
TL_VOTE_MATCH_ANY = 5

TL_ID_THREAD = 1
TL_ID_LANE = 2
TL_ID_WARP = 3
TL_ID_WARPGROUP = 4
TL_ID_BLOCK = 5
TL_ID_CLUSTER_RANK = 6
TL_ID_CLUSTER_BLOCKS = 7

TL_ARRIVE_COPIES = 1
TL_ARRIVE_ELECTED = 2

TL_ORDER_RELAXED = 1
TL_ORDER_ACQUIRE = 2
TL_ORDER_RELEASE = 3
TL_ORDER_ACQ_REL = 4

TL_REDUCE_SUM = 1
TL_REDUCE_MAX = 2
TL_REDUCE_MIN = 3
TL_REDUCE_ABSMAX = 4
TL_REDUCE_PRODUCT = 5
TL_REDUCE_AND = 6
TL_REDUCE_OR = 7
TL_REDUCE_XOR = 8
TL_REDUCE_ABSSUM = 9

TL_POLICY_DEFAULT = 0
TL_POLICY_SQUARE = 1
TL_POLICY_FULL_ROW = 2
TL_POLICY_FULL_COL = 3

TL_TENSOR_READ_ONLY = 1
TL_TENSOR_WORKSPACE = 2
TL_TENSOR_OPTIONAL = 4
TL_TENSOR_CONSTANT = 8
TL_GEMM_TRANSPOSE_A = 1
TL_GEMM_TRANSPOSE_B = 2
TL_GEMM_CLEAR = 4
TL_GEMM_TF32 = 8
TL_GEMM_PROMOTE = 16
TL_CAST_NEAREST = 1
TL_CAST_ZERO = 2
TL_CAST_DOWN = 3
TL_CAST_UP = 4
TL_CAST_SATURATE = 8
TL_CAST_OVERFLOW = 16
TL_REDUCE_ACCUMULATE = 1
TL_CUMSUM_REVERSE = 1
TL_SCAN_REVERSE = 1
TL_SCAN_EXCLUSIVE = 2
TL_SORT_DESCENDING = 1
TL_TOP_K_SMALLEST = 1

TL_SEVERITY_NOTE = 1
TL_SEVERITY_WARNING = 2
TL_SEVERITY_ERROR = 3

TL_LOG_OFF = 0
TL_LOG_ERROR = 1
TL_LOG_WARNING = 2
TL_LOG_INFO = 3
TL_LOG_DEBUG = 4
TL_LOG_TRACE = 5

TL_OPTION_I64 = 1
TL_OPTION_BOOL = 2
TL_OPTION_STR = 3

TL_SECTION_TILE_IR = 1
TL_SECTION_SCHEDULE_TEXT = 2
TL_SECTION_SCHEDULE_JSON = 3
TL_SECTION_THREAD_PROGRAM = 4
TL_SECTION_LLVM_IR = 5
TL_SECTION_LLVM_IR_OPTIMISED = 6
TL_SECTION_ASSEMBLY = 7
TL_SECTION_PTX = 8
TL_SECTION_CODE = 9
TL_SECTION_COST = 10
TL_SECTION_COST_JSON = 11
TL_SECTION_HSACO = 12
TL_SECTION_NATIVE_TEXT = 13

TL_NATIVE_PTX = 1
TL_NATIVE_GCN = 2
TL_NATIVE_LLVM_PTX = 3
TL_NATIVE_LLVM_GCN = 4
TL_NATIVE_LLVM_HOST = 5
TL_NATIVE_LLVM = 6

TL_PARAM_DIM = 1
TL_PARAM_SCALAR = 2
TL_PARAM_TENSOR = 3

TL_ARG_AUTO = 1
TL_ARG_POINTER = 2
TL_ARG_I64 = 3
TL_ARG_F64 = 4
TL_ARG_TENSOR = 5

TL_DEVICE_HOST = 1
TL_DEVICE_CUDA = 2
TL_DEVICE_HIP = 3

TL_PICTURE_TEXT = 1
TL_PICTURE_SVG = 2


class tl_expr(Structure):
    _fields_ = [
        ("bits", c_uint64),
    ]


class tl_buffer(Structure):
    _fields_ = [
        ("bits", c_uint64),
    ]


class tl_region(Structure):
    _fields_ = [
        ("bits", c_uint64),
    ]


class tl_scope(Structure):
    _fields_ = [
        ("bits", c_uint64),
    ]


class tl_diagnostic(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("severity", c_uint32),
        ("status", c_int32),
        ("consequence", c_int32),
        ("line", c_uint32),
        ("column", c_uint32),
        ("code", c_char_p),
        ("message", c_char_p),
        ("hint", c_char_p),
        ("op", c_char_p),
        ("stage", c_char_p),
        ("file", c_char_p),
        ("included_at", c_char_p),
    ]


class tl_option_info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("type", c_uint32),
        ("name", c_char_p),
        ("summary", c_char_p),
        ("default_value", c_char_p),
        ("affects_code", c_int32),
        ("reserved", c_int32),
    ]


class tl_param_info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_uint32),
        ("dtype", c_uint32),
        ("rank", c_uint32),
        ("read_only", c_int32),
        ("codes", c_uint32),
        ("name", c_char_p),
        ("optional", c_int32),
        ("constant", c_int32),
    ]


class tl_compile_param_info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("domain_size", c_uint32),
        ("name", c_char_p),
        ("domain", POINTER(c_int64)),
        ("value", c_int64),
    ]


class tl_configuration_info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("value_count", c_uint32),
        ("values", POINTER(c_int64)),
        ("microseconds", c_double),
        ("refusal", c_char_p),
        ("measured_microseconds", c_double),
    ]


class tl_measurement(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("value_count", c_uint32),
        ("values", POINTER(c_int64)),
        ("program", c_void_p),
        ("step", c_uint64),
        ("steps", c_uint64),
        ("microseconds", c_double),
        ("refusal", c_char_p),
    ]


tl_measure_fn = CFUNCTYPE(None, c_void_p, POINTER(tl_measurement))


class tl_included(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("depth", c_uint32),
        ("path", c_char_p),
        ("includer", c_char_p),
        ("line", c_uint32),
        ("column", c_uint32),
        ("name", c_char_p),
        ("text", c_char_p),
        ("size", c_size_t),
        ("refusal", c_char_p),
    ]


tl_include_fn = CFUNCTYPE(None, c_void_p, POINTER(tl_included))


class tl_parse_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("param_count", c_uint32),
        ("param_names", POINTER(c_char_p)),
        ("param_values", POINTER(c_int64)),
        ("file_name", c_char_p),
        ("include", tl_include_fn),
        ("include_user", c_void_p),
    ]


class tl_device_info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_uint32),
        ("cores", c_uint32),
        ("reserved", c_uint32),
        ("name", c_char_p),
        ("target", c_char_p),
        ("features", c_char_p),
        ("memory_bytes", c_uint64),
        ("driver_ordinal", c_uint32),
        ("driver_version", c_uint32),
    ]


class tl_kernel_info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("kernel", c_uint32),
        ("variant", c_uint32),
        ("threads", c_uint32),
        ("name", c_char_p),
        ("guards", c_char_p),
        ("measured", c_int32),
        ("registers", c_int32),
        ("max_threads", c_int32),
        ("blocks_per_multiprocessor", c_int32),
        ("local_bytes", c_int64),
        ("static_shared_bytes", c_int64),
        ("dynamic_shared_bytes", c_int64),
        ("log", c_char_p),
        ("compile_ms", c_double),
        ("load_ms", c_double),
        ("accumulation_registers", c_int32),
        ("scalar_registers", c_int32),
    ]


class tl_launch(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("max_threads", c_uint32),
        ("stream", c_void_p),
        ("timeout_ms", c_int64),
        ("context", c_void_p),
    ]


class tl_arg(Structure):
    _fields_ = [
        ("kind", c_uint32),
        ("dtype", c_uint32),
        ("payload", c_uint64),
    ]


tl_log_fn = CFUNCTYPE(None, c_void_p, c_uint32, c_char_p, c_char_p)


tl_dump_fn = CFUNCTYPE(None, c_void_p, c_char_p, c_char_p, c_size_t)


tl_print_fn = CFUNCTYPE(None, c_void_p, c_char_p)


tl_cancel_fn = CFUNCTYPE(c_int32, c_void_p)


tl_drop_fn = CFUNCTYPE(None, c_void_p)


# name: (result, (argument types...))
FUNCTIONS = {
    "tilelang_api_version": (c_uint32, ()),
    "tl_build_info": (c_char_p, ()),
    "tl_status_name": (c_char_p, (c_int32,)),
    "tl_dtype_name": (c_char_p, (c_uint32,)),
    "tl_dtype_bits": (c_uint32, (c_uint32,)),
    "tl_context_create": (c_int32, (POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_context_retain": (None, (c_void_p,)),
    "tl_context_release": (None, (c_void_p,)),
    "tl_context_set_log": (c_int32, (c_void_p, c_uint32, tl_log_fn, tl_drop_fn, c_void_p, POINTER(c_void_p),)),
    "tl_context_set_dump": (c_int32, (c_void_p, tl_dump_fn, tl_drop_fn, c_void_p, POINTER(c_void_p),)),
    "tl_context_set_print": (c_int32, (c_void_p, tl_print_fn, tl_drop_fn, c_void_p, POINTER(c_void_p),)),
    "tl_context_set_cancel": (c_int32, (c_void_p, tl_cancel_fn, tl_drop_fn, c_void_p, POINTER(c_void_p),)),
    "tl_context_set_timeout": (c_int32, (c_void_p, c_int64, POINTER(c_void_p),)),
    "tl_context_set_limit": (c_int32, (c_void_p, c_char_p, c_int64, POINTER(c_void_p),)),
    "tl_context_get_limit": (c_int32, (c_void_p, c_char_p, POINTER(c_int64), POINTER(c_void_p),)),
    "tl_error_retain": (None, (c_void_p,)),
    "tl_error_release": (None, (c_void_p,)),
    "tl_error_status": (c_int32, (c_void_p,)),
    "tl_error_message": (c_char_p, (c_void_p,)),
    "tl_error_count": (c_size_t, (c_void_p,)),
    "tl_error_diagnostic": (c_int32, (c_void_p, c_size_t, POINTER(tl_diagnostic),)),
    "tl_blob_retain": (None, (c_void_p,)),
    "tl_blob_release": (None, (c_void_p,)),
    "tl_blob_data": (c_char_p, (c_void_p,)),
    "tl_blob_size": (c_size_t, (c_void_p,)),
    "tl_options_create": (c_int32, (POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_options_destroy": (None, (c_void_p,)),
    "tl_options_set_i64": (c_int32, (c_void_p, c_char_p, c_int64, POINTER(c_void_p),)),
    "tl_options_set_bool": (c_int32, (c_void_p, c_char_p, c_int32, POINTER(c_void_p),)),
    "tl_options_set_str": (c_int32, (c_void_p, c_char_p, c_char_p, POINTER(c_void_p),)),
    "tl_option_count": (c_size_t, ()),
    "tl_option_describe": (c_int32, (c_size_t, POINTER(tl_option_info),)),
    "tl_target_count": (c_size_t, ()),
    "tl_target_name_at": (c_char_p, (c_size_t,)),
    "tl_target_parse": (c_int32, (c_char_p, POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_target_best": (c_int32, (c_void_p, POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_target_retain": (None, (c_void_p,)),
    "tl_target_release": (None, (c_void_p,)),
    "tl_target_name": (c_char_p, (c_void_p,)),
    "tl_target_to_json": (c_int32, (c_void_p, POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_target_get_i64": (c_int32, (c_void_p, c_char_p, POINTER(c_int64), POINTER(c_void_p),)),
    "tl_builder_create": (c_int32, (c_void_p, c_char_p, POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_builder_destroy": (None, (c_void_p,)),
    "tl_builder_set_location": (None, (c_void_p, c_char_p, c_uint32, c_uint32,)),
    "tl_builder_status": (c_int32, (c_void_p,)),
    "tl_builder_finish": (c_int32, (c_void_p, POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_builder_bind": (None, (c_void_p, c_char_p, c_int64,)),
    "tl_param": (c_int64, (c_void_p, c_char_p, POINTER(c_int64), c_size_t,)),
    "tl_dim": (tl_expr, (c_void_p, c_char_p,)),
    "tl_dim_fact": (None, (c_void_p, tl_expr, c_int64, c_int64, c_int64,)),
    "tl_scalar": (tl_expr, (c_void_p, c_char_p, c_uint32,)),
    "tl_tensor": (tl_buffer, (c_void_p, c_char_p, c_uint32, c_uint32, POINTER(tl_expr), POINTER(tl_expr), c_uint32,)),
    "tl_present": (tl_expr, (c_void_p, tl_buffer,)),
    "tl_tensor_codes": (None, (c_void_p, tl_buffer, c_uint32,)),
    "tl_const_i64": (tl_expr, (c_void_p, c_uint32, c_int64,)),
    "tl_const_f64": (tl_expr, (c_void_p, c_uint32, c_double,)),
    "tl_index": (tl_expr, (c_void_p, c_int64,)),
    "tl_unary": (tl_expr, (c_void_p, c_uint32, tl_expr,)),
    "tl_binary": (tl_expr, (c_void_p, c_uint32, tl_expr, tl_expr,)),
    "tl_ternary": (tl_expr, (c_void_p, c_uint32, tl_expr, tl_expr, tl_expr,)),
    "tl_uniform": (tl_expr, (c_void_p, tl_expr,)),
    "tl_select": (tl_expr, (c_void_p, tl_expr, tl_expr, tl_expr,)),
    "tl_cast": (tl_expr, (c_void_p, c_uint32, tl_expr,)),
    "tl_cast_by": (tl_expr, (c_void_p, c_uint32, tl_expr, c_uint32,)),
    "tl_bitcast": (tl_expr, (c_void_p, c_uint32, tl_expr,)),
    "tl_load": (tl_expr, (c_void_p, tl_buffer, c_uint32, POINTER(tl_expr),)),
    "tl_expr_dtype": (c_uint32, (c_void_p, tl_expr,)),
    "tl_begin_kernel": (tl_scope, (c_void_p, c_char_p, c_uint32, POINTER(tl_expr), c_int64, POINTER(c_char_p), POINTER(tl_expr),)),
    "tl_begin_loop": (tl_scope, (c_void_p, c_uint32, tl_expr, tl_expr, c_int64, c_char_p, POINTER(tl_expr),)),
    "tl_begin_counted_loop": (tl_scope, (c_void_p, c_uint32, tl_expr, tl_expr, tl_expr, c_int64, c_char_p, POINTER(tl_expr),)),
    "tl_begin_parallel": (tl_scope, (c_void_p, c_uint32, POINTER(c_int64), POINTER(c_char_p), POINTER(tl_expr),)),
    "tl_begin_threads": (tl_scope, (c_void_p, c_uint32, POINTER(c_int64), POINTER(c_char_p), POINTER(tl_expr),)),
    "tl_shuffle": (tl_expr, (c_void_p, c_uint32, tl_expr, tl_expr,)),
    "tl_vote": (tl_expr, (c_void_p, c_uint32, tl_expr,)),
    "tl_id": (tl_expr, (c_void_p, c_uint32,)),
    "tl_barrier": (None, (c_void_p,)),
    "tl_copy_async": (None, (c_void_p, tl_region, tl_region,)),
    "tl_commit_group": (None, (c_void_p,)),
    "tl_wait_group": (None, (c_void_p, c_uint32,)),
    "tl_copy_bulk": (None, (c_void_p, tl_region, tl_region,)),
    "tl_mbarrier_arrive": (None, (c_void_p, tl_region, c_int64, c_int64, c_uint32,)),
    "tl_mbarrier_wait": (None, (c_void_p, tl_region, tl_expr, c_int64, c_int64,)),
    "tl_barrier_sync": (None, (c_void_p, tl_region, c_int64, c_int64,)),
    "tl_barrier_arrive": (None, (c_void_p, tl_region, c_int64, c_int64,)),
    "tl_begin_if": (tl_scope, (c_void_p, tl_expr,)),
    "tl_begin_while": (tl_scope, (c_void_p, tl_expr,)),
    "tl_break": (None, (c_void_p,)),
    "tl_continue": (None, (c_void_p,)),
    "tl_return": (None, (c_void_p,)),
    "tl_begin_else": (None, (c_void_p, tl_scope,)),
    "tl_begin_switch": (tl_scope, (c_void_p, tl_expr,)),
    "tl_begin_case": (tl_scope, (c_void_p, tl_scope, c_uint32, POINTER(c_int64),)),
    "tl_end": (None, (c_void_p, tl_scope,)),
    "tl_alloc": (tl_buffer, (c_void_p, c_char_p, c_uint32, c_uint32, c_uint32, POINTER(c_int64),)),
    "tl_region_of": (tl_region, (c_void_p, tl_buffer, c_uint32, POINTER(tl_expr), POINTER(c_int64),)),
    "tl_region_at": (tl_region, (c_void_p, tl_buffer, c_uint32, POINTER(tl_expr),)),
    "tl_whole": (tl_region, (c_void_p, tl_buffer,)),
    "tl_view_reshape": (tl_buffer, (c_void_p, tl_buffer, c_uint32, POINTER(c_int64),)),
    "tl_view_reshape_to": (tl_buffer, (c_void_p, tl_buffer, c_uint32, POINTER(tl_expr),)),
    "tl_view_transpose": (tl_buffer, (c_void_p, tl_buffer, c_uint32, POINTER(c_int64),)),
    "tl_view_slice": (tl_buffer, (c_void_p, tl_region,)),
    "tl_view_box": (tl_buffer, (c_void_p, tl_buffer, c_uint32, POINTER(tl_expr), POINTER(tl_expr),)),
    "tl_view_reinterpret": (tl_buffer, (c_void_p, tl_buffer, c_uint32,)),
    "tl_copy": (None, (c_void_p, tl_region, tl_region,)),
    "tl_fill": (None, (c_void_p, tl_region, tl_expr,)),
    "tl_gemm": (None, (c_void_p, tl_region, tl_region, tl_region, c_uint32, c_uint32,)),
    "tl_gemm_sparse": (None, (c_void_p, tl_region, tl_region, tl_region, tl_region, c_uint32, c_uint32,)),
    "tl_compress": (None, (c_void_p, tl_region, tl_region, tl_region,)),
    "tl_reduce": (None, (c_void_p, tl_region, tl_region, c_uint32, c_uint32, c_uint32,)),
    "tl_cumsum": (None, (c_void_p, tl_region, tl_region, c_uint32, c_uint32,)),
    "tl_scan": (None, (c_void_p, tl_region, tl_region, c_uint32, c_uint32, c_uint32,)),
    "tl_scan_carry": (None, (c_void_p, tl_region, tl_region, tl_region, c_uint32, c_uint32, c_uint32,)),
    "tl_arg_reduce": (None, (c_void_p, tl_region, tl_region, tl_region, c_uint32, c_uint32,)),
    "tl_operand": (tl_expr, (c_void_p, c_uint32, c_char_p,)),
    "tl_function": (None, (c_void_p, c_char_p, c_uint32, POINTER(tl_expr), c_uint32, POINTER(tl_expr), c_uint32, POINTER(c_uint32), POINTER(c_char_p),)),
    "tl_call": (tl_expr, (c_void_p, c_char_p, c_uint32, POINTER(tl_expr), c_uint32,)),
    "tl_matrix_atom": (None, (c_void_p, c_char_p, POINTER(c_int64), POINTER(c_uint32), POINTER(c_char_p), c_uint32, POINTER(tl_expr), tl_expr, c_uint32, c_char_p,)),
    "tl_reduce_by": (None, (c_void_p, c_uint32, POINTER(tl_region), POINTER(tl_region), POINTER(tl_expr), POINTER(tl_expr), POINTER(tl_expr), c_uint32, c_uint32,)),
    "tl_scan_by": (None, (c_void_p, c_uint32, POINTER(tl_region), POINTER(tl_region), POINTER(tl_expr), POINTER(tl_expr), POINTER(tl_expr), c_uint32, c_uint32,)),
    "tl_scan_by_from": (None, (c_void_p, c_uint32, POINTER(tl_region), POINTER(tl_region), POINTER(tl_expr), POINTER(tl_expr), POINTER(tl_expr), POINTER(tl_expr), c_uint32, c_uint32,)),
    "tl_scan_by_carry": (None, (c_void_p, c_uint32, POINTER(tl_region), POINTER(tl_region), POINTER(tl_region), POINTER(tl_expr), POINTER(tl_expr), POINTER(tl_expr), c_uint32, c_uint32,)),
    "tl_sort": (None, (c_void_p, tl_region, tl_region, tl_region, c_uint32, c_uint32,)),
    "tl_top_k": (None, (c_void_p, tl_region, tl_region, tl_region, c_uint32, c_uint32,)),
    "tl_atomic": (None, (c_void_p, tl_region, tl_region, c_uint32,)),
    "tl_atomic_fetch": (None, (c_void_p, tl_region, tl_region, tl_region, c_uint32,)),
    "tl_store_atomic": (None, (c_void_p, tl_buffer, c_uint32, POINTER(tl_expr), tl_expr, c_uint32,)),
    "tl_fetch_atomic": (tl_expr, (c_void_p, tl_buffer, c_uint32, POINTER(tl_expr), tl_expr, c_uint32, c_char_p,)),
    "tl_compare_exchange": (tl_expr, (c_void_p, tl_buffer, c_uint32, POINTER(tl_expr), tl_expr, tl_expr, c_char_p,)),
    "tl_fetch_atomic_to": (None, (c_void_p, tl_buffer, c_uint32, POINTER(tl_expr), tl_expr, c_uint32, tl_buffer, c_uint32, POINTER(tl_expr),)),
    "tl_compare_exchange_to": (None, (c_void_p, tl_buffer, c_uint32, POINTER(tl_expr), tl_expr, tl_expr, tl_buffer, c_uint32, POINTER(tl_expr),)),
    "tl_atomic_order": (None, (c_void_p, c_uint32,)),
    "tl_store": (None, (c_void_p, tl_buffer, c_uint32, POINTER(tl_expr), tl_expr,)),
    "tl_assert": (None, (c_void_p, tl_expr, c_char_p,)),
    "tl_print": (None, (c_void_p, c_char_p, c_uint32, POINTER(tl_expr),)),
    "tl_print_tile": (None, (c_void_p, c_char_p, tl_region,)),
    "tl_let": (tl_expr, (c_void_p, c_char_p, tl_expr,)),
    "tl_var": (tl_expr, (c_void_p, c_char_p, tl_expr,)),
    "tl_assign": (None, (c_void_p, tl_expr, tl_expr,)),
    "tl_label": (None, (c_void_p, c_char_p,)),
    "tl_annotate": (None, (c_void_p, c_char_p,)),
    "tl_annotate_tile": (None, (c_void_p, tl_buffer, c_char_p,)),
    "tl_annotate_kernel": (None, (c_void_p, c_char_p,)),
    "tl_layout_draw": (c_int32, (c_char_p, c_uint32, POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_program_parse": (c_int32, (c_void_p, c_char_p, c_size_t, c_char_p, POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_program_parse_bound": (c_int32, (c_void_p, c_char_p, c_size_t, c_char_p, POINTER(c_char_p), POINTER(c_int64), c_size_t, POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_program_parse_with": (c_int32, (c_void_p, c_char_p, c_size_t, POINTER(tl_parse_options), POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_program_bind": (c_int32, (c_void_p, c_void_p, POINTER(c_char_p), POINTER(c_int64), c_size_t, POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_program_retain": (None, (c_void_p,)),
    "tl_program_release": (None, (c_void_p,)),
    "tl_program_print": (c_int32, (c_void_p, POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_program_emit_c": (c_int32, (c_void_p, POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_text_format": (c_int32, (c_void_p, c_char_p, c_size_t, c_char_p, POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_text_format_with": (c_int32, (c_void_p, c_char_p, c_size_t, POINTER(tl_parse_options), POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_bitcode_text": (c_int32, (c_void_p, c_size_t, POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_program_hash": (c_char_p, (c_void_p,)),
    "tl_program_name": (c_char_p, (c_void_p,)),
    "tl_program_param_count": (c_size_t, (c_void_p,)),
    "tl_program_param": (c_int32, (c_void_p, c_size_t, POINTER(tl_param_info),)),
    "tl_program_compile_param_count": (c_size_t, (c_void_p,)),
    "tl_program_compile_param": (c_int32, (c_void_p, c_size_t, POINTER(tl_compile_param_info),)),
    "tl_interpret": (c_int32, (c_void_p, POINTER(tl_arg), c_size_t, POINTER(c_void_p),)),
    "tl_interpret_launch": (c_int32, (c_void_p, POINTER(tl_launch), POINTER(tl_arg), c_size_t, POINTER(c_void_p),)),
    "tl_tune": (c_int32, (c_void_p, c_void_p, c_void_p, c_void_p, POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_tuning_retain": (None, (c_void_p,)),
    "tl_tuning_release": (None, (c_void_p,)),
    "tl_tune_measured": (c_int32, (c_void_p, c_void_p, c_void_p, c_void_p, tl_measure_fn, c_void_p, POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_measure": (c_int32, (c_void_p, c_void_p, c_void_p, c_void_p, POINTER(c_double), POINTER(c_void_p),)),
    "tl_tuning_count": (c_size_t, (c_void_p,)),
    "tl_tuning_configuration": (c_int32, (c_void_p, c_size_t, POINTER(tl_configuration_info),)),
    "tl_tuning_program": (c_int32, (c_void_p, c_size_t, POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_compile": (c_int32, (c_void_p, c_void_p, c_void_p, c_void_p, POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_artifact_retain": (None, (c_void_p,)),
    "tl_artifact_release": (None, (c_void_p,)),
    "tl_artifact_section": (c_int32, (c_void_p, c_uint32, POINTER(c_char_p), POINTER(c_size_t), POINTER(c_void_p),)),
    "tl_artifact_code_format": (c_char_p, (c_void_p,)),
    "tl_artifact_fallback": (c_int32, (c_void_p, c_void_p, POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_artifact_specialisation_count": (c_size_t, (c_void_p,)),
    "tl_artifact_specialisation": (c_int32, (c_void_p, c_size_t, POINTER(c_void_p), POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_artifact_warning_count": (c_size_t, (c_void_p,)),
    "tl_artifact_warning": (c_int32, (c_void_p, c_size_t, POINTER(tl_diagnostic), POINTER(c_double),)),
    "tl_artifact_stage_count": (c_size_t, (c_void_p,)),
    "tl_artifact_stage": (c_int32, (c_void_p, c_size_t, POINTER(c_char_p), POINTER(c_double),)),
    "tl_device_count": (c_size_t, ()),
    "tl_device_describe": (c_int32, (c_size_t, POINTER(tl_device_info),)),
    "tl_device_allocate": (c_int32, (c_size_t, c_size_t, POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_device_free": (c_int32, (c_size_t, c_void_p, POINTER(c_void_p),)),
    "tl_device_copy": (c_int32, (c_size_t, c_void_p, c_void_p, c_size_t, c_void_p, POINTER(c_void_p),)),
    "tl_device_wait": (c_int32, (c_size_t, c_void_p, POINTER(c_void_p),)),
    "tl_kernel_load": (c_int32, (c_void_p, c_void_p, c_size_t, POINTER(c_void_p), POINTER(c_void_p),)),
    "tl_kernel_retain": (None, (c_void_p,)),
    "tl_kernel_release": (None, (c_void_p,)),
    "tl_kernel_prepare": (c_int32, (c_void_p, POINTER(c_void_p),)),
    "tl_kernel_form_count": (c_size_t, (c_void_p,)),
    "tl_kernel_describe": (c_int32, (c_void_p, c_size_t, POINTER(tl_kernel_info), POINTER(c_void_p),)),
    "tl_kernel_launch": (c_int32, (c_void_p, POINTER(tl_launch), POINTER(tl_arg), c_size_t, POINTER(c_void_p),)),
    "tl_kernel_launch_dlpack": (c_int32, (c_void_p, POINTER(tl_launch), POINTER(POINTER(DLTensor)), c_size_t, POINTER(c_void_p),)),
}
