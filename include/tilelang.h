/* tilelang.h: the C interface of libtilegen, a compiler of tile programs.
 *
 * A client describes what moves and what is computed over tiles (tl_builder), compiles the program for a
 * target (tl_compile), loads and launches it (tl_kernel). The language is the TileLang paper's
 * (arXiv 2504.17577). This header is the single source of truth: symbol list, raw bindings and reference
 * pages are generated from it.
 *
 * RULES THAT HOLD FOR EVERY FUNCTION
 *   Errors     A fallible call returns a tl_status (0 = TL_OK) and ends in a nullable `tl_error **out_error`.
 *              On failure *out_error receives an error that the caller releases; on success it is set to
 *              NULL. Output parameters are set to NULL / zero on failure. No call prints (but for
 *              TILEGEN_LOG, see tl_context_set_log, and tl_print), exits, aborts or throws on user input.
 *   Memory     A call that finds no memory, or no further thread that it needs, ends with
 *              TL_LIMIT_EXCEEDED and leaves every object as usable as before; a builder has failed.
 *              Calls without a status return what stands for "nothing". Code generation that ends in
 *              this way does not give all of its memory back.
 *   Ownership  tl_context, tl_target, tl_program, tl_tuning, tl_artifact, tl_kernel, tl_error and tl_blob are
 *              reference counted: the creating call hands out one reference, *_retain adds one, *_release
 *              drops one.
 *              tl_options and tl_builder have one owner and *_destroy. NULL is accepted by all of these and
 *              ignored. Objects hold references to what they need, so release order is free. Nothing is ever
 *              passed to free().
 *   Strings    Inputs are NUL-terminated UTF-8 and copied. Returned `const char *` belong to the object they
 *              came from (or to the library for ever where no object is involved) and live as long as it.
 *              Buffers are (pointer, size) pairs.
 *   Threads    An object passed by pointer to const may be used by any number of threads at once; one passed
 *              by pointer to non-const by one thread at a time. retain / release may be called from any
 *              thread. No state is thread-local.
 *   Callbacks  Run on a thread of the library or of the caller, with no lock held; they must not unwind
 *              through the library and must not use the object they are set on. `drop(user)`, if given, is
 *              called once when the callback is replaced or its owner dies.
 *   Structs    Public structs start with `struct_size`, set by the caller to sizeof. They only ever grow at
 *              the end. The library never reads or writes after struct_size.
 *   Enums      Are 32-bit integers; 0 is never a valid value unless it is listed; unknown values are errors.
 *   Sizes      Extents, offsets and strides count elements; sizes count bytes; times are milliseconds.
 *   Names      Of programs, kernels, parameters, tiles and loop variables: [A-Za-z_][A-Za-z0-9_]*, at most
 *              128 characters.
 *   Lifecycle  All functions are since 0.1 and "unstable": until 1.0 a minor version may change them.
 *              "[stable]" marks those that will not change.
 */
#ifndef TILELANG_H
#define TILELANG_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TL_API __attribute__((visibility("default")))
#else
#define TL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define TL_VERSION_MAJOR 0
#define TL_VERSION_MINOR 1
#define TL_VERSION_PATCH 0
/* major * 10000 + minor * 100 + patch of the header that a client was compiled with. */
#define TL_API_VERSION 100

/* DLPack's tensor description; include dlpack.h to fill one. */
struct DLTensor;

/* -------------------------------------------------------------------------------- objects -- */

typedef struct tl_context tl_context;   /* callbacks and limits; parent of everything a client makes */
typedef struct tl_error tl_error;       /* one or more diagnostics, the first being the cause */
typedef struct tl_blob tl_blob;         /* bytes handed to the caller */
typedef struct tl_options tl_options;   /* compile options by name */
typedef struct tl_target tl_target;     /* what a device can do */
typedef struct tl_builder tl_builder;   /* makes one program */
typedef struct tl_program tl_program;   /* an immutable tile program */
typedef struct tl_tuning tl_tuning;     /* the configurations of a program, in order of estimated time */
typedef struct tl_artifact tl_artifact; /* a compiled program and every decision taken for it */
typedef struct tl_kernel tl_kernel;     /* an artifact loaded on a device, ready to launch */

/* Things inside a builder are values of 64 bits (index, kind and builder). All bits zero is "none". They
 * may be copied and forgotten freely; a value of another builder, of another kind or none is reported,
 * never followed. */
typedef struct tl_expr {
  uint64_t bits;
} tl_expr; /* a constant, dimension, loop variable, a + b */
typedef struct tl_buffer {
  uint64_t bits;
} tl_buffer; /* a tensor parameter or an on-chip tile */
typedef struct tl_region {
  uint64_t bits;
} tl_region; /* a box of a buffer */
typedef struct tl_scope {
  uint64_t bits;
} tl_scope; /* an open kernel, loop or if */

/* -------------------------------------------------------------------------------- enums -- */

/* Result of a call. The thousands are the category, the rest the detail. */
typedef int32_t tl_status;
enum {
  TL_OK = 0,
  TL_INVALID_ARGUMENT = 1000, /* an argument of a call is wrong */
  TL_INVALID_HANDLE = 1001,   /* a handle is null, stale, foreign or of the wrong kind */
  TL_LAUNCH_ARGUMENT = 1002,  /* a launch argument does not fit the kernel's parameter */
  TL_ASSERTION = 1003,        /* an assertion of the program does not hold */
  TL_INVALID_PROGRAM = 2000,  /* the tile program is not valid */
  TL_PARSE_ERROR = 2001,      /* the text is not a valid tile program */
  TL_INVALID_SCHEDULE = 2002, /* the schedule does not fit the program or contradicts itself */
  TL_UNSUPPORTED = 3000,      /* the target cannot do what the program asks for */
  TL_UNKNOWN_TARGET = 3001,   /* no target of that name */
  TL_LIMIT_EXCEEDED = 4000,   /* a limit of the library was exceeded */
  TL_CANCELLED = 5000,        /* the caller cancelled the work */
  TL_BACKEND = 6000,          /* the code generator failed */
  TL_DRIVER = 7000,           /* the device driver reported an error or is absent */
  TL_IO = 8000,               /* a file could not be read or written */
  TL_INTERNAL = 9000          /* a defect of the library; please report it */
};

/* Element types. A bool is stored as one byte, 0 or 1. The last two are the 8-bit floats of the OCP
 * specification, to keep values in: they are cast, copied, filled, selected and multiplied by tl_gemm, while
 * other operations want a cast to TL_F32 first. */
typedef uint32_t tl_dtype;
enum {
  TL_F16 = 1,
  TL_BF16 = 2,
  TL_F32 = 3,
  TL_F64 = 4,
  TL_I8 = 5,
  TL_U8 = 6,
  TL_I32 = 7,
  TL_I64 = 8,
  TL_BOOL = 9,
  TL_E4M3 = 10,     /* E4M3FN: no infinities, NaN is 0x7f and 0xff, largest value 448 */
  TL_E5M2 = 11,     /* IEEE-like, with infinities, largest finite value 57344 */
  TL_E4M3FNUZ = 12, /* AMD's: no infinities, no negative zero, NaN is 0x80, largest value 240 */
  TL_E5M2FNUZ = 13, /* the same with two bits of mantissa, largest value 57344 */
  TL_I16 = 14,
  TL_U16 = 15,
  TL_U32 = 16,
  TL_U64 = 17, /* literals beyond 2^63 - 1: tl_cast of a literal of TL_I64 with the same bits */
  /* Packed: elements of the last dimension share a byte, the first in its low bits. Values are cast to be
     computed with; a program holds the bytes, as a tensor of TL_U8. */
  TL_I4 = 18,
  TL_U4 = 19,
  TL_I2 = 20,
  TL_U2 = 21,
  TL_E2M1 = 22, /* all codes are numbers: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives */
  TL_E8M0 = 23  /* scales: 2^(code - 127), NaN is 255; a byte each */
};

/* Where a buffer lives. Tensors are global; tiles are allocated in one of the others. */
typedef uint32_t tl_mem_scope;
enum {
  TL_SCOPE_GLOBAL = 1,
  TL_SCOPE_SHARED = 2,   /* one per block, visible to all of its threads */
  TL_SCOPE_FRAGMENT = 3, /* one per block, spread over the registers of its threads */
  TL_SCOPE_LOCAL = 4     /* one per block, replicated or private as the planner finds; small scalars */
};

typedef uint32_t tl_loop_kind;
enum {
  TL_LOOP_SERIAL = 1,
  TL_LOOP_UNROLL = 2,
  TL_LOOP_VECTORIZED = 3,
  TL_LOOP_PIPELINED = 4 /* iterations may overlap; the planner finds stages */
};

/* Operations of one operand; see tl_unary. */
typedef uint32_t tl_unary_op;
enum {
  TL_NEG = 1,
  TL_ABS = 2,
  TL_EXP = 3,
  TL_EXP2 = 4,
  TL_LOG = 5,
  TL_LOG2 = 6,
  TL_SQRT = 7,
  TL_RSQRT = 8,
  TL_TANH = 9,
  TL_ERF = 10,
  TL_SIGMOID = 11,
  TL_FLOOR = 12,
  TL_CEIL = 13,
  TL_NOT = 14,     /* bool */
  TL_BIT_NOT = 15, /* integers */
  TL_SIN = 16,     /* radians, as are those below; right for every number */
  TL_COS = 17,
  TL_TAN = 18,
  TL_ASIN = 19,
  TL_ACOS = 20,
  TL_ATAN = 21,
  TL_EXP10 = 22,
  TL_EXPM1 = 23, /* e^a - 1 */
  TL_LOG1P = 24, /* log(1 + a) */
  TL_CBRT = 25,
  TL_ERFC = 26,  /* 1 - erf(a) */
  TL_ROUND = 27, /* halves away from zero */
  TL_RINT = 28,  /* halves to even */
  TL_TRUNC = 29,
  TL_ISNAN = 30, /* gives a bool */
  TL_ISINF = 31,
  TL_POPCOUNT = 32, /* integers, as are those below: how many bits are set */
  TL_CLZ = 33,      /* zero bits from the highest; of 0 the width */
  TL_CTZ = 34       /* zero bits from the lowest; of 0 the width */
};

/* Operations of two operands; see tl_binary. */
typedef uint32_t tl_binary_op;
enum {
  TL_ADD = 101,
  TL_SUB = 102,
  TL_MUL = 103,
  TL_DIV = 104,      /* floating types */
  TL_FLOORDIV = 105, /* integers, rounds to minus infinity; by zero gives 0 */
  TL_FLOORMOD = 106, /* integers, sign of the divisor; by zero gives 0 */
  TL_MIN = 107,      /* a NaN operand is ignored */
  TL_MAX = 108,
  TL_LT = 109, /* comparisons give a bool */
  TL_LE = 110,
  TL_EQ = 111,
  TL_NE = 112,
  TL_AND = 113, /* bool */
  TL_OR = 114,
  TL_BIT_AND = 115, /* integers */
  TL_BIT_OR = 116,
  TL_BIT_XOR = 117,
  TL_SHL = 118, /* amount taken modulo the width */
  TL_SHR = 119, /* arithmetic for signed types */
  TL_GT = 120,
  TL_GE = 121,
  TL_POW = 122,   /* floating types; limits as IEEE 754 has them */
  TL_ATAN2 = 123, /* the angle of (b, a) */
  TL_FMOD = 124,  /* a - b * trunc(a / b), exact; TL_FLOORMOD for integers */
  TL_COPYSIGN = 125,
  TL_MULHI = 126 /* integers: upper half of the product of twice the width */
};

/* Operations of three operands; see tl_ternary. */
typedef uint32_t tl_ternary_op;
enum {
  TL_FMA = 201,   /* floating types: a * b + c, rounded once */
  TL_PHILOX = 202 /* random words: of integers seed, offset and lane, each taken as TL_U64, a TL_U32. Word
                     lane % 4 of Philox 4x32-10 with key seed and counter offset + 2^64 * (lane / 4) */
};

/* What an atomic operation makes of the old value and another one. */
typedef uint32_t tl_atomic_kind;
enum {
  TL_ATOMIC_ADD = 1,
  TL_ATOMIC_MIN = 2, /* a NaN is ignored */
  TL_ATOMIC_MAX = 3,
  TL_ATOMIC_AND = 4, /* integers, as are those below */
  TL_ATOMIC_OR = 5,
  TL_ATOMIC_XOR = 6,
  TL_ATOMIC_EXCHANGE = 7 /* the value itself */
};

typedef uint32_t tl_shuffle_kind; /* whose value a lane takes, of its group of `lanes` */
enum {
  TL_SHUFFLE_INDEX = 1, /* the lane of this number */
  TL_SHUFFLE_XOR = 2,   /* the own number ^ this */
  TL_SHUFFLE_UP = 3,    /* so many before the own one; the first ones keep their own */
  TL_SHUFFLE_DOWN = 4   /* so many behind; the last ones keep their own */
};

typedef uint32_t tl_vote_kind;
enum {
  TL_VOTE_ANY = 1,      /* bool: it holds for a lane of the group */
  TL_VOTE_ALL = 2,      /* bool: for all */
  TL_VOTE_BALLOT = 3,   /* u32: the lanes that it holds for, as bits */
  TL_VOTE_ELECT = 4,    /* bool: this lane is the first one that it holds for */
  TL_VOTE_MATCH_ANY = 5 /* u32: the lanes that have the own value, an integer, as bits */
};

typedef uint32_t tl_id_kind; /* numbers as the program counts them, from 0; see tl_id */
enum {
  TL_ID_THREAD = 1,        /* of the thread in its block, row-major in the extents of tl_begin_threads */
  TL_ID_LANE = 2,          /* TL_ID_THREAD % 32, on every target */
  TL_ID_WARP = 3,          /* TL_ID_THREAD // 32 */
  TL_ID_WARPGROUP = 4,     /* TL_ID_THREAD // 128 */
  TL_ID_BLOCK = 5,         /* of the block in its grid, row-major */
  TL_ID_CLUSTER_RANK = 6,  /* of the block in the cluster that the kernel is annotated with; else 0 */
  TL_ID_CLUSTER_BLOCKS = 7 /* the blocks of that cluster; else 1 */
};

/* Flags of tl_mbarrier_arrive. */
enum {
  TL_ARRIVE_COPIES = 1, /* of a thread when its asynchronous copies before are done */
  TL_ARRIVE_ELECTED = 2 /* one lane of each warp, behind what all of its lanes did */
};

/* What an atomic operation on one element of a tensor orders among the blocks of a device; see
   tl_atomic_order. */
typedef uint32_t tl_memory_order;
enum {
  TL_ORDER_RELAXED = 1, /* nothing */
  TL_ORDER_ACQUIRE = 2, /* what the block does behind it comes after what others released there */
  TL_ORDER_RELEASE = 3, /* what the block did before is done for blocks that acquire the element later */
  TL_ORDER_ACQ_REL = 4
};

typedef uint32_t tl_reduce_kind;
enum {
  TL_REDUCE_SUM = 1,
  TL_REDUCE_MAX = 2,
  TL_REDUCE_MIN = 3,
  TL_REDUCE_ABSMAX = 4, /* the largest absolute value */
  TL_REDUCE_PRODUCT = 5,
  TL_REDUCE_AND = 6, /* integers and bools, as are those below */
  TL_REDUCE_OR = 7,
  TL_REDUCE_XOR = 8,
  TL_REDUCE_ABSSUM = 9 /* the sum of absolute values */
};

/* How the warps of a block share the output tile of a gemm. 0 is the same as TL_POLICY_SQUARE. */
typedef uint32_t tl_warp_policy;
enum {
  TL_POLICY_DEFAULT = 0,
  TL_POLICY_SQUARE = 1,
  TL_POLICY_FULL_ROW = 2, /* all warps along the rows */
  TL_POLICY_FULL_COL = 3
};

/* Bits of `flags` arguments. */
enum {
  TL_TENSOR_READ_ONLY = 1,  /* tl_tensor: the program may not write it */
  TL_TENSOR_WORKSPACE = 2,  /* tl_tensor: memory of each launch's own, which no argument gives */
  TL_TENSOR_OPTIONAL = 4,   /* tl_tensor: a launch may pass a null address; tl_present asks */
  TL_TENSOR_CONSTANT = 8,   /* tl_tensor: read-only, and written by no kernel that a launch may run beside */
  TL_GEMM_TRANSPOSE_A = 1,  /* tl_gemm: A is given as k x m */
  TL_GEMM_TRANSPOSE_B = 2,  /* tl_gemm: B is given as n x k */
  TL_GEMM_CLEAR = 4,        /* tl_gemm: C = A * B, the old C is dropped */
  TL_GEMM_TF32 = 8,         /* tl_gemm of TL_F32: A and B may be reduced to tf32 (10 bits of mantissa), to
                              nearest by instructions of a warp, toward zero by those of a warpgroup */
  TL_GEMM_PROMOTE = 16,     /* tl_gemm of 8-bit floats: matrix instructions, which keep fewer bits of a sum
                              than TL_F32, sum at most 128 products; these sums are added in TL_F32 */
  TL_CAST_NEAREST = 1,      /* tl_cast_by: to nearest, halves to even */
  TL_CAST_ZERO = 2,         /* towards 0 */
  TL_CAST_DOWN = 3,         /* towards minus infinity */
  TL_CAST_UP = 4,           /* towards infinity */
  TL_CAST_SATURATE = 8,     /* what lies beyond the type's ends, infinities too, becomes the end */
  TL_CAST_OVERFLOW = 16,    /* to 8-bit floats: it becomes infinity, or NaN where the type has none */
  TL_REDUCE_ACCUMULATE = 1, /* tl_reduce, tl_reduce_by: the old destination is one more term, the first */
  TL_CUMSUM_REVERSE = 1,    /* tl_cumsum: sums begin at the end of the axis */
  TL_SCAN_REVERSE = 1,      /* tl_scan, tl_scan_by: it begins at the end of the axis */
  TL_SCAN_EXCLUSIVE = 2,    /* tl_scan: without the element itself; the first is what nothing comes to, of
                               tl_scan_by_from what is given */
  TL_SORT_DESCENDING = 1,   /* tl_sort: the greatest element is the first */
  TL_TOP_K_SMALLEST = 1     /* tl_top_k: the least elements */
};

typedef uint32_t tl_severity;
enum { TL_SEVERITY_NOTE = 1, TL_SEVERITY_WARNING = 2, TL_SEVERITY_ERROR = 3 };

typedef uint32_t tl_log_level;
enum {
  TL_LOG_OFF = 0,
  TL_LOG_ERROR = 1,
  TL_LOG_WARNING = 2,
  TL_LOG_INFO = 3,
  TL_LOG_DEBUG = 4,
  TL_LOG_TRACE = 5
};

typedef uint32_t tl_option_type;
enum { TL_OPTION_I64 = 1, TL_OPTION_BOOL = 2, TL_OPTION_STR = 3 };

/* Parts of an artifact. */
typedef uint32_t tl_section;
enum {
  TL_SECTION_TILE_IR = 1,           /* the program, canonical .tl text */
  TL_SECTION_SCHEDULE_TEXT = 2,     /* every decision with its reason, and the estimated time */
  TL_SECTION_SCHEDULE_JSON = 3,     /* the same, to edit and hand back as option "schedule_json" */
  TL_SECTION_THREAD_PROGRAM = 4,    /* what one thread does */
  TL_SECTION_LLVM_IR = 5,           /* option "keep_ir" */
  TL_SECTION_LLVM_IR_OPTIMISED = 6, /* option "keep_ir" */
  TL_SECTION_ASSEMBLY = 7,          /* option "keep_assembly"; for NVIDIA targets the PTX */
  TL_SECTION_PTX = 8,               /* NVIDIA targets: TL_SECTION_CODE, which is PTX there */
  TL_SECTION_CODE = 9,              /* what is loaded on a device, in the form of tl_artifact_code_format */
  TL_SECTION_COST = 10,             /* the cost model's estimate as a table and bars: of each kernel the time,
                                       what bounds it, and what each op takes of each pipe. Sizes by option
                                       "sizes". Targets without threads have none */
  TL_SECTION_COST_JSON = 11,        /* the same as JSON, times in microseconds */
  TL_SECTION_HSACO = 12,            /* AMD targets: TL_SECTION_CODE, a shared object for hipModuleLoadData */
  TL_SECTION_NATIVE_TEXT = 13       /* the functions of the program whose native text is in the code, a line
                                       each: name, language, target. Empty: the library wrote all of it */
};

/* Languages of a function's native text. */
typedef uint32_t tl_native_form;
enum {
  TL_NATIVE_PTX = 1,       /* instructions of PTX, for NVIDIA targets */
  TL_NATIVE_GCN = 2,       /* instructions of GCN and CDNA, for AMD targets */
  TL_NATIVE_LLVM_PTX = 3,  /* LLVM IR for NVIDIA targets */
  TL_NATIVE_LLVM_GCN = 4,  /* LLVM IR for AMD targets */
  TL_NATIVE_LLVM_HOST = 5, /* LLVM IR for the host */
  TL_NATIVE_LLVM = 6       /* LLVM IR for every target that has no other text */
};

typedef uint32_t tl_param_kind;
enum { TL_PARAM_DIM = 1, TL_PARAM_SCALAR = 2, TL_PARAM_TENSOR = 3 };

/* What a tl_arg carries; see tl_arg. */
typedef uint32_t tl_arg_kind;
enum {
  TL_ARG_AUTO = 1,    /* a dimension to be solved from the tensors */
  TL_ARG_POINTER = 2, /* a tensor by its base address; shape and strides as the program states them */
  TL_ARG_I64 = 3,     /* a dimension or an integer or bool scalar */
  TL_ARG_F64 = 4,     /* a floating scalar: payload holds the bits of a double */
  TL_ARG_TENSOR = 5   /* a tensor by `const struct DLTensor *` */
};

typedef uint32_t tl_device_kind;
enum { TL_DEVICE_HOST = 1, TL_DEVICE_CUDA = 2, TL_DEVICE_HIP = 3 };

/* -------------------------------------------------------------------------------- structs -- */

/* One message. Strings belong to the error and are never NULL ("" where there is nothing to say). */
typedef struct tl_diagnostic {
  uint32_t struct_size;
  tl_severity severity;
  tl_status status;
  int32_t consequence; /* 1: follows from an earlier error of the same object */
  uint32_t line;       /* 0: unknown */
  uint32_t column;
  const char* code;    /* stable name, e.g. "shape_mismatch" */
  const char* message; /* what is wrong and why, with the user's names and shapes */
  const char* hint;    /* a way out */
  const char* op;      /* path of the operation ("gemm/ko/copy#1") or function called ("tl_copy") */
  const char* stage;   /* who noticed, e.g. "builder", "check", "layout" */
  const char* file;
  const char* included_at; /* of a text that another includes, where: "main.tl:3:1", and where that is */
} tl_diagnostic;

/* One row of the option table. Strings belong to the library. */
typedef struct tl_option_info {
  uint32_t struct_size;
  tl_option_type type;
  const char* name;
  const char* summary;
  const char* default_value; /* as text */
  int32_t affects_code;      /* 1: two values may give different artifacts */
  int32_t reserved;
} tl_option_info;

/* One parameter of a program, in launch order. Strings belong to the program. */
typedef struct tl_param_info {
  uint32_t struct_size;
  tl_param_kind kind;
  tl_dtype dtype;
  uint32_t rank;     /* tensors */
  int32_t read_only; /* tensors */
  tl_dtype codes;    /* tensors of TL_U8 that hold a packed type's: that type; else 0 */
  const char* name;
  int32_t optional; /* tensors: a launch may pass a null address */
  int32_t constant; /* tensors: no kernel that a launch may run beside writes it */
} tl_param_info;

/* One compile-time parameter of a program, in the order of declaration. What is pointed to belongs to the
 * program. */
typedef struct tl_compile_param_info {
  uint32_t struct_size;
  uint32_t domain_size; /* at least 1 */
  const char* name;
  const int64_t* domain; /* domain_size distinct values */
  int64_t value;         /* the one this program was made with */
} tl_compile_param_info;

/* One configuration: a value for each compile-time parameter. What is pointed to belongs to the tl_tuning. */
typedef struct tl_configuration_info {
  uint32_t struct_size;
  uint32_t value_count;
  const int64_t* values; /* value_count, in the order in which the parameters are declared */
  double microseconds;   /* estimated, of one launch; 0 where refused, and for hosts */
  const char* refusal;   /* why the target does not take it, or it could not be measured; NULL elsewhere */
  double measured_microseconds; /* of one launch; 0 where it was not measured */
} tl_configuration_info;

/* One run of one configuration, for a tl_measure_fn. What is pointed to belongs to the library and lives
 * until the function returns. */
typedef struct tl_measurement {
  uint32_t struct_size;
  uint32_t value_count;
  const int64_t* values;     /* value_count, in the order in which the parameters are declared */
  const tl_program* program; /* bound to these values */
  uint64_t step;             /* the number of this run, of `steps` at most */
  uint64_t steps;
  double microseconds; /* for the function to set: of one launch, above 0 */
  const char* refusal; /* for the function to set where there is no time: why. Copied when it returns */
} tl_measurement;

/** Measures a configuration; `user` is that of tl_tune_measured. */
typedef void (*tl_measure_fn)(void* user, tl_measurement* measurement);

/* One text that a program includes, for a tl_include_fn. What is pointed to belongs to the library and lives
 * until the function returns. What the function sets is copied when it has returned. */
typedef struct tl_included {
  uint32_t struct_size;
  uint32_t depth;       /* of texts in each other: 1 for one that the program's own text includes */
  const char* path;     /* as it stands behind `include` */
  const char* includer; /* name of the text that says so; tl_parse_options::file_name for the program's */
  uint32_t line;        /* where it says so */
  uint32_t column;
  const char* name;    /* to set: its own, which diagnostics show. Texts of one name are one, which is taken
                          once. NULL: `path` */
  const char* text;    /* to set; `size` bytes, which need not end with a zero. NULL: there is none */
  size_t size;         /* to set */
  const char* refusal; /* to set where there is no text: why */
} tl_included;

/** Gives the text that a program includes; `user` is that of tl_parse_options. */
typedef void (*tl_include_fn)(void* user, tl_included* included);

/* How a text is read. NULL in its place, and zeroes, mean all defaults. */
typedef struct tl_parse_options {
  uint32_t struct_size;
  uint32_t param_count;           /* compile-time parameters that are bound, as for tl_program_parse_bound */
  const char* const* param_names; /* param_count */
  const int64_t* param_values;    /* param_count */
  const char* file_name;          /* stands in diagnostics; NULL: none */
  tl_include_fn include;          /* NULL: a text that includes others is refused */
  void* include_user;
} tl_parse_options;

/* One device. Strings belong to the library. GPUs are those of CUDA (NVIDIA) and of HIP (AMD). */
typedef struct tl_device_info {
  uint32_t struct_size;
  tl_device_kind kind;
  uint32_t cores; /* host: threads a launch uses by default; GPUs: multiprocessors (compute units) */
  uint32_t reserved;
  const char* name;        /* e.g. "host (sapphirerapids)", "NVIDIA H200", "AMD Instinct MI300X" */
  const char* target;      /* name to hand to tl_target_parse; "" where no target fits the device */
  const char* features;    /* host: comma-separated, as LLVM spells them; CUDA: "capability 9.0"; HIP:
                              "gfx942:sramecc+:xnack-" */
  uint64_t memory_bytes;   /* GPUs; 0 for the host */
  uint32_t driver_ordinal; /* GPUs: the driver's number of the device, DLPack's device_id */
  uint32_t driver_version; /* GPUs: 1000 * major + 10 * minor of the CUDA version that the driver supports, of
                              the HIP version that the runtime is */
} tl_device_info;

/* One version of one kernel of a loaded program, a form of its code. A launch takes the first whose guards
 * hold; on GPUs fallback versions are compiled and loaded by the first launch that needs them, and listed
 * from then on. Numbers are -1 where they are not known. Strings belong to the tl_kernel. */
typedef struct tl_kernel_info {
  uint32_t struct_size;
  uint32_t kernel;     /* which kernel of the program, in launch order */
  uint32_t variant;    /* which version of it, in the order they are tried */
  uint32_t threads;    /* of a block */
  const char* name;    /* of the version, which is its symbol in the code */
  const char* guards;  /* "A % 16 == 0, m % 8 == 0": addresses in bytes, dimensions; "" for none */
  int32_t measured;    /* 1: the device's driver said so; 0: not loaded yet, from the code as far as it
                          tells (HIP) and the device's limits */
  int32_t registers;   /* 32-bit registers of a thread; HIP: vector registers of a lane, the accumulation
                          registers among them */
  int32_t max_threads; /* of a block, for this code */
  int32_t blocks_per_multiprocessor; /* that run at once */
  int64_t local_bytes;               /* of a thread: spilled registers */
  int64_t static_shared_bytes;       /* of a block; all of it on HIP */
  int64_t dynamic_shared_bytes;      /* of a block; host: working memory of a thread */
  const char* log;   /* what the driver's compiler said when the code was first loaded; "" before. Simulated
                        targets: findings and counters of the last launch, as JSON */
  double compile_ms; /* of all stages of tl_compile */
  double load_ms;    /* of the first load: the driver's compilation */
  int32_t accumulation_registers; /* HIP: of `registers`, those of matrix sums and spills (AGPRs). 0: the
                                     target has none */
  int32_t scalar_registers;       /* HIP: of a wave (SGPRs). 0: the target has none that code counts */
} tl_kernel_info;

/* How to launch. NULL in its place means all defaults. */
typedef struct tl_launch {
  uint32_t struct_size;
  uint32_t max_threads; /* host: threads to use at most, 0 = all cores */
  void* stream;         /* CUDA: a CUstream (cudaStream_t), HIP: a hipStream_t, of the kernel's device; NULL =
                           the default stream. NULL for the host */
  int64_t timeout_ms;   /* TL_CANCELLED after so long, 0 = never. On GPUs this is for launches that have
                           code compiled first: others wait for nothing, and nothing stops them. What the
                           driver compiles it compiles to the end; then the launch is left out */
  const tl_context* context; /* the same: its cancel callback is asked, its time holds; NULL for neither */
} tl_launch;

/* For tl_kernel_load: a device that the artifact is for. On CUDA the one of the context that is current on
 * this thread, on HIP the thread's current device, else the first. */
#define TL_DEVICE_ANY ((size_t)-1)

/* One launch argument. Frozen: 16 bytes for ever. `payload` is an address, an int64_t or the bits of a
 * double, by kind. `dtype` is 0 or, to have it checked, the element type the caller believes in. */
typedef struct tl_arg {
  tl_arg_kind kind;
  tl_dtype dtype;
  uint64_t payload;
} tl_arg;

/* -------------------------------------------------------------------------------- callbacks -- */

typedef void (*tl_log_fn)(void* user, tl_log_level level, const char* stage, const char* message);
/* A compiler stage and the text of its result, NUL-terminated after `size`, which lives during the call. */
typedef void (*tl_dump_fn)(void* user, const char* stage, const char* text, size_t size);
/* A line that a program prints, without its end. */
typedef void (*tl_print_fn)(void* user, const char* line);
/* Asked every few milliseconds while a call works; non-zero ends the call with TL_CANCELLED. */
typedef int32_t (*tl_cancel_fn)(void* user);
typedef void (*tl_drop_fn)(void* user);

/* -------------------------------------------------------------------------------- library -- */

/** TL_API_VERSION of the library that is loaded. Compare with the header's. [stable] */
TL_API uint32_t tilelang_api_version(void);

/** Version, build id and back end of the library as one JSON object. */
TL_API const char* tl_build_info(void);

/** Name of a status ("ok", "invalid_argument"); "unknown" for a value that is not in the table. [stable] */
TL_API const char* tl_status_name(tl_status status);

/** Name of a dtype ("f16"), "" for an unknown value. */
TL_API const char* tl_dtype_name(tl_dtype dtype);

/** Bits of one element in memory, 0 for an unknown value. */
TL_API uint32_t tl_dtype_bits(tl_dtype dtype);

/* -------------------------------------------------------------------------------- context -- */

/** Makes a context with no callbacks and default limits. It may be shared by all threads once its setters
 *  ran. */
TL_API tl_status tl_context_create(tl_context** out_context, tl_error** out_error);
TL_API void tl_context_retain(tl_context* context);
TL_API void tl_context_release(tl_context* context);

/** Sends messages of `level` and more severe ones to `fn`; NULL switches logging off. `drop` may be NULL.
 *  Not to be called while another thread uses the context. On failure `drop` is not called.
 *  What is told: TL_LOG_ERROR why a compilation failed; TL_LOG_WARNING a plan whose code was rejected,
 *  where another took its place, and the warnings of tl_artifact_warning; TL_LOG_INFO each stage with its
 *  time and what it decided, and each compilation, those that a launch with this context needs as well;
 *  TL_LOG_DEBUG parts of stages and the notes of the schedule; TL_LOG_TRACE that a stage begins. `stage`
 *  names who speaks: "plan", "expand", "accesses", "lower", "verify", "generate", "compile", "fallback",
 *  "cost", "tune". A message that finds no memory is left out.
 *  Where the environment variable TILEGEN_LOG is error, warn, info, debug or trace when the library first
 *  looks, the same is written to standard error, whatever contexts say; by default nothing is. */
TL_API tl_status tl_context_set_log(tl_context* context, tl_log_level level, tl_log_fn fn, tl_drop_fn drop,
                                    void* user, tl_error** out_error);

/** Hands the result of every compiler stage to `fn`; NULL switches it off. */
TL_API tl_status tl_context_set_dump(tl_context* context, tl_dump_fn fn, tl_drop_fn drop, void* user,
                                     tl_error** out_error);

/** Sends what programs print (tl_print) in launches and interpretations that name the context to `fn`; NULL:
 *  to standard output, as where none is named. */
TL_API tl_status tl_context_set_print(tl_context* context, tl_print_fn fn, tl_drop_fn drop, void* user,
                                      tl_error** out_error);

/** Asks `fn` whether to stop, on the calling thread or one of the library, for one call by one thread at a
 *  time; NULL switches it off. Calls that are given the context ask: tl_program_parse,
 *  tl_program_parse_bound, tl_program_parse_with, tl_program_bind, tl_builder_finish of its builders,
 *  tl_tune, tl_compile, tl_artifact_fallback, and launches and interpretations whose tl_launch names it. They
 *  end with TL_CANCELLED within 50 ms of the answer, as they do when their time runs out. What a launch or
 *  interpretation wrote until then stays written. LLVM cannot be interrupted everywhere: a compilation that
 *  its caller left ends in the background, without a further callback. At most four do at a time, the next
 *  compilation that may be cancelled waits for one of them; the process's exit and the unloading of the
 *  library wait for all. */
TL_API tl_status tl_context_set_cancel(tl_context* context, tl_cancel_fn fn, tl_drop_fn drop, void* user,
                                       tl_error** out_error);

/** Gives each of those calls so many milliseconds, 0 = any number (the default). The shorter of this and a
 *  call's own "timeout_ms" holds. */
TL_API tl_status tl_context_set_timeout(tl_context* context, int64_t timeout_ms, tl_error** out_error);

/** Lowers a limit: "text_bytes", "expr_nodes", "expr_depth", "statements", "buffers", "nesting", "rank",
 *  "tile_elements", "unroll", "diagnostics", "domain_values". Raising one above its
 *  present value, or a value below 1, is refused. Holds for builders and parses begun afterwards. */
TL_API tl_status tl_context_set_limit(tl_context* context, const char* name, int64_t value,
                                      tl_error** out_error);

/** Present value of a limit. */
TL_API tl_status tl_context_get_limit(const tl_context* context, const char* name, int64_t* out_value,
                                      tl_error** out_error);

/* -------------------------------------------------------------------------------- errors -- */

/** Reference counting. */
TL_API void tl_error_retain(tl_error* error);
TL_API void tl_error_release(tl_error* error);

/** Status of the first diagnostic, which is what the failing call returned. TL_OK for NULL. [stable] */
TL_API tl_status tl_error_status(const tl_error* error);

/** All diagnostics as text, one per line; "" for NULL. [stable] */
TL_API const char* tl_error_message(const tl_error* error);

/** Number of diagnostics; 0 for NULL. */
TL_API size_t tl_error_count(const tl_error* error);

/** Fills *out_diagnostic (struct_size set by the caller) with diagnostic `index`. Its strings belong to the
 *  error. */
TL_API tl_status tl_error_diagnostic(const tl_error* error, size_t index, tl_diagnostic* out_diagnostic);

/* -------------------------------------------------------------------------------- blobs -- */

/** Reference counting. */
TL_API void tl_blob_retain(tl_blob* blob);
TL_API void tl_blob_release(tl_blob* blob);

/** The bytes, followed by a NUL that is not counted. "" for NULL. */
TL_API const char* tl_blob_data(const tl_blob* blob);
TL_API size_t tl_blob_size(const tl_blob* blob);

/* -------------------------------------------------------------------------------- options -- */

/** Compile options, all at their defaults. */
TL_API tl_status tl_options_create(tl_options** out_options, tl_error** out_error);
TL_API void tl_options_destroy(tl_options* options);

/** Sets one option. An unknown name or a wrong type is TL_INVALID_ARGUMENT; the message lists the names. */
TL_API tl_status tl_options_set_i64(tl_options* options, const char* name, int64_t value,
                                    tl_error** out_error);
TL_API tl_status tl_options_set_bool(tl_options* options, const char* name, int32_t value,
                                     tl_error** out_error);
TL_API tl_status tl_options_set_str(tl_options* options, const char* name, const char* value,
                                    tl_error** out_error);

/** The option table: number of rows, and row `index`. */
TL_API size_t tl_option_count(void);
TL_API tl_status tl_option_describe(size_t index, tl_option_info* out_info);

/* -------------------------------------------------------------------------------- targets -- */

/** Names of the targets that this library can plan for; "" after the end. */
TL_API size_t tl_target_count(void);
TL_API const char* tl_target_name_at(size_t index);

/** A target by name: "host" (this machine), "x86-64-v3", "x86-64-v4-amx", "sm_80", ... An unknown name is
 *  TL_UNKNOWN_TARGET and the message lists the known ones. No device is needed. "sim:sm_80" is sm_80 with
 *  the simulator in place of a device: launches run on the host's memory and fail with what the simulator
 *  finds. "cuda" and "cuda:1" stand for the target of this machine's first and second CUDA device, "hip"
 *  and "hip:1" for those of its HIP devices; they are TL_DRIVER where there is none. */
TL_API tl_status tl_target_parse(const char* name, tl_target** out_target, tl_error** out_error);

/** The best target that this library can compile for and run on this machine: that of the first CUDA device,
 *  else of the first HIP device, else "host". A kernel for a GPU takes tensors in its memory
 *  (tl_device_allocate). */
TL_API tl_status tl_target_best(const tl_context* context, tl_target** out_target, tl_error** out_error);
TL_API void tl_target_retain(tl_target* target);
TL_API void tl_target_release(tl_target* target);

/** Name of a target; "" for NULL. */
TL_API const char* tl_target_name(const tl_target* target);

/** The whole description as JSON. */
TL_API tl_status tl_target_to_json(const tl_target* target, tl_blob** out_json, tl_error** out_error);

/** One number of a target: "warp", "max_threads", "default_threads", "shared_bytes",
 *  "registers_per_thread", "vector_bytes", "async_copy" (0 or 1). */
TL_API tl_status tl_target_get_i64(const tl_target* target, const char* name, int64_t* out_value,
                                   tl_error** out_error);

/* -------------------------------------------------------------------------------- builder --
 * A builder is sticky: after the first mistake every call is a no-op that returns none, and tl_builder_finish
 * reports what went wrong and where. So nothing needs checking in between. */

/** Begins a program of that name. */
TL_API tl_status tl_builder_create(const tl_context* context, const char* name, tl_builder** out_builder,
                                   tl_error** out_error);
TL_API void tl_builder_destroy(tl_builder* builder);

/** Source place of what is built from now on, for diagnostics. `file` NULL or line 0: unknown. */
TL_API void tl_builder_set_location(tl_builder* builder, const char* file, uint32_t line, uint32_t column);

/** Status of the first mistake so far; TL_OK while there is none. */
TL_API tl_status tl_builder_status(const tl_builder* builder);

/** Ends the program, checks it as a whole and hands it out. The builder is spent, whatever the result;
 *  destroy it. */
TL_API tl_status tl_builder_finish(tl_builder* builder, tl_program** out_program, tl_error** out_error);

/* Compile-time parameters, before the first kernel. They are no launch arguments. */

/** Chooses the value of the compile-time parameter that tl_param will declare by this name. Mistakes, which
 *  tl_builder_finish reports: a name bound twice, or after its tl_param, or never declared
 *  (TL_INVALID_ARGUMENT). */
TL_API void tl_builder_bind(tl_builder* builder, const char* name, int64_t value);

/** Declares a compile-time parameter with a domain of `count` distinct values, which are copied, and gives
 *  the value that this build uses: the one bound by tl_builder_bind, which must be in the domain, else the
 *  first. Use it where a number is wanted: shapes, extents, threads, stages; or a type, as a tl_dtype. A
 *  builder that has failed, and NULL, give the first value too, or 1 where there is none, so that arithmetic
 *  on it stays defined. A domain that is empty or repeats a value is TL_INVALID_PROGRAM, one above the limit
 *  "domain_values" TL_LIMIT_EXCEEDED. */
TL_API int64_t tl_param(tl_builder* builder, const char* name, const int64_t* values, size_t count);

/* Parameters, in launch order, before the first kernel. */

/** A symbolic extent: i64, >= 0, known at launch. */
TL_API tl_expr tl_dim(tl_builder* builder, const char* name);

/** States what is known of a dimension: lower <= value <= upper and value % divisor == 0. Checked at
 *  launch, used to drop guards. Use 0, INT64_MAX, 1 for "nothing". */
TL_API void tl_dim_fact(tl_builder* builder, tl_expr dim, int64_t lower, int64_t upper, int64_t divisor);

/** A by-value parameter. */
TL_API tl_expr tl_scalar(tl_builder* builder, const char* name, tl_dtype dtype);

/** A tensor in global memory. `shape` holds `rank` i64 expressions over constants, dimensions and scalars,
 *  slowest first. `strides`, in elements, likewise, or NULL for compact row-major. `flags`:
 *  TL_TENSOR_READ_ONLY, TL_TENSOR_CONSTANT, TL_TENSOR_WORKSPACE, TL_TENSOR_OPTIONAL or 0. A constant tensor
 *  is read-only, and the caller promises that no kernel still under way when a launch is queued writes it, as
 *  holds for weights: blocks may read it before the kernel in front of them on the stream has ended (CUDA,
 *  programmatic dependent launch). Copies and memsets in front on the stream are waited for in any case. A
 *  workspace is what the program's kernels leave for each other: the library allocates it for each launch,
 *  its contents are unspecified when the first kernel begins, and it is no parameter. Dimensions that only
 *  its shape has are passed as TL_ARG_I64. Of a packed type the last extent is known to be whole bytes and
 *  the last stride is 1; the argument is memory of the bytes, a TL_U8 tensor whose last extent counts them,
 *  or one of the type (DLPack's codes). */
TL_API tl_buffer tl_tensor(tl_builder* builder, const char* name, tl_dtype dtype, uint32_t rank,
                           const tl_expr* shape, const tl_expr* strides, uint32_t flags);

/** Whether the launch passes an optional tensor: a TL_BOOL, false where its address is null. Every access of
 *  such a tensor stands in a tl_begin_if of it, or in that side of a tl_select. */
TL_API tl_expr tl_present(tl_builder* builder, tl_buffer tensor);

/** States that the bytes of a TL_U8 tensor, whose shape counts them, hold codes of a packed type: what a
 *  program holds of a tensor of that type. Its argument is one of either. */
TL_API void tl_tensor_codes(tl_builder* builder, tl_buffer tensor, tl_dtype packed);

/* Expressions. Operand types must agree; nothing is converted silently. Constants are folded. */

/** An integer or bool literal; `value` must fit the type. */
TL_API tl_expr tl_const_i64(tl_builder* builder, tl_dtype dtype, int64_t value);

/** A floating literal, rounded to the type. */
TL_API tl_expr tl_const_f64(tl_builder* builder, tl_dtype dtype, double value);

/** Short for tl_const_i64(builder, TL_I64, value): extents, offsets, indices. */
TL_API tl_expr tl_index(tl_builder* builder, int64_t value);

/** op(a). Arithmetic: any number; TL_EXP .. TL_CEIL, TL_SIN .. TL_ISINF: floating; TL_NOT: bool; TL_BIT_NOT,
 *  TL_POPCOUNT .. TL_CTZ: integers. The result is of the operand's type, of TL_ISNAN and TL_ISINF a bool.
 *  Errors of functions: docs/numerics.md. */
TL_API tl_expr tl_unary(tl_builder* builder, tl_unary_op op, tl_expr a);

/** a op b, both of one type, which is the result's, or bool for comparisons. */
TL_API tl_expr tl_binary(tl_builder* builder, tl_binary_op op, tl_expr a, tl_expr b);

/** op(a, b, c), all of one type, which is the result's; TL_PHILOX has types of its own. */
TL_API tl_expr tl_ternary(tl_builder* builder, tl_ternary_op op, tl_expr a, tl_expr b, tl_expr c);

/** A TL_F32 of at least 0 and below 1: the upper 24 bits of `word`, a TL_U32 such as TL_PHILOX gives, times
 *  2^-24. */
TL_API tl_expr tl_uniform(tl_builder* builder, tl_expr word);

/** a where `condition` (bool) holds, else b. */
TL_API tl_expr tl_select(tl_builder* builder, tl_expr condition, tl_expr a, tl_expr b);

/** Converts. To a narrower float: nearest even, to 8-bit floats saturating at the largest finite
 *  value, infinities too; float to integer: truncates and saturates, NaN gives 0;
 *  integers wrap; to bool: x != 0. */
TL_API tl_expr tl_cast(tl_builder* builder, tl_dtype dtype, tl_expr a);

/** The same, done otherwise: `mode` is one of the roundings, one of the ends, or both (TL_CAST_*). Refused
 *  are directed roundings to floats of 8 bits or fewer and of integers of 64 bits to floats,
 *  TL_CAST_OVERFLOW of a float to an integer, and casts to TL_BOOL and TL_E8M0. */
TL_API tl_expr tl_cast_by(tl_builder* builder, tl_dtype dtype, tl_expr a, uint32_t mode);

/** The bits of `a` as a value of another type of as many bits, no bool: a TL_U16 of a TL_F16. */
TL_API tl_expr tl_bitcast(tl_builder* builder, tl_dtype dtype, tl_expr a);

/** One element of a buffer; `rank` i64 indices. Outside a tensor it reads 0. */
TL_API tl_expr tl_load(tl_builder* builder, tl_buffer buffer, uint32_t rank, const tl_expr* indices);

/** Type of an expression; 0 for none. */
TL_API tl_dtype tl_expr_dtype(tl_builder* builder, tl_expr expr);

/* Scopes. Each begin is closed by tl_end with the scope it returned, innermost first. A begin that fails sets
 * the variables it would have handed out to none. */

/** Opens a kernel whose grid has `rank` (1 to 3) i64 extents over constants, dimensions and scalars,
 *  slowest first. `threads`: computing threads of a block, 0 = the planner decides. `names`: of the block
 *  indices, or NULL. `out_blocks` receives `rank` block indices. Kernels of a program run in order. (Paper:
 *  T.Kernel.) */
TL_API tl_scope tl_begin_kernel(tl_builder* builder, const char* name, uint32_t rank, const tl_expr* grid,
                                int64_t threads, const char* const* names, tl_expr* out_blocks);

/** Opens `for var in begin .. end` (end exclusive). `num_stages`: pipelined loops, 0 = the planner decides;
 *  0 for the other kinds. Unrolled and vectorized loops need a constant trip count. Inside parallel loops,
 *  serial and unrolled loops of constant bounds may stand; they are written out. `name` may be NULL.
 *  (Paper: T.serial, T.unroll, T.vectorized, T.Pipelined.) */
TL_API tl_scope tl_begin_loop(tl_builder* builder, tl_loop_kind kind, tl_expr begin, tl_expr end,
                              int64_t num_stages, const char* name, tl_expr* out_var);

/** The same of `count` iterations from `begin` on. A serial loop outside of parallel loops may have a
 *  `condition` (bool, the same for the block; 0 for none), which is asked before each iteration: the first
 *  that it does not hold for ends the loop. */
TL_API tl_scope tl_begin_counted_loop(tl_builder* builder, tl_loop_kind kind, tl_expr begin, tl_expr count,
                                      tl_expr condition, int64_t num_stages, const char* name,
                                      tl_expr* out_var);

/** Opens a loop nest of `rank` constant extents whose iterations are independent; the planner maps them to
 *  threads. Only stores, ifs, named values, and serial and unrolled loops may stand inside. `names` may be
 *  NULL. (Paper: T.Parallel.) */
TL_API tl_scope tl_begin_parallel(tl_builder* builder, uint32_t rank, const int64_t* extents,
                                  const char* const* names, tl_expr* out_vars);

/** Opens a block that every thread of the kernel's block runs: thread t has the variables' values of point t,
 *  in row-major order, and the extents multiply to the kernel's threads. The last one, of 2 to 32 and a power
 *  of two, counts the lanes that tl_shuffle and tl_vote exchange values between. What may stand in parallel
 *  loops may stand inside, and serial loops of any bounds that are the same for all threads. The plan leaves
 *  it as it is. `names` may be NULL. (CUDA: the kernel's own level) */
TL_API tl_scope tl_begin_threads(tl_builder* builder, uint32_t rank, const int64_t* extents,
                                 const char* const* names, tl_expr* out_vars);

/** The value, a number, that another lane of the group has here; `lane` is i64. All lanes of a group come by:
 *  it stands under conditions that are the same for all of these. (CUDA: __shfl_sync ...) */
TL_API tl_expr tl_shuffle(tl_builder* builder, tl_shuffle_kind kind, tl_expr value, tl_expr lane);

/** What the lanes of the group say of a condition, of TL_VOTE_MATCH_ANY of an integer, under the same rule.
 *  (CUDA: __any_sync ..., __match_any_sync) */
TL_API tl_expr tl_vote(tl_builder* builder, tl_vote_kind kind, tl_expr condition);

/** A number of the thread, the block or its cluster, i64; of threads in a block of these alone. A kernel is
 *  annotated with its cluster first. (CUDA: threadIdx, blockIdx, cluster_ctarank) */
TL_API tl_expr tl_id(tl_builder* builder, tl_id_kind kind);

/** All threads of the block meet, under conditions that are the same for the lanes of a group those that they
 *  hold for: what any has stored before, all see behind it. (CUDA: __syncthreads) */
TL_API void tl_barrier(tl_builder* builder);

/** An asynchronous copy of the thread, of 4, 8 or 16 bytes: elements of a tensor beside each other, to a
 *  shared tile. They are there for all threads behind a tl_wait_group that the copy's group is done by.
 *  (PTX: cp.async) */
TL_API void tl_copy_async(tl_builder* builder, tl_region from, tl_region to);

/** Closes the group of each thread's asynchronous copies since the last one, under conditions that are the
 *  same for all threads of the block. (PTX: cp.async.commit_group) */
TL_API void tl_commit_group(tl_builder* builder);

/** Of each thread's newest `pending` groups, at most 63, copies may still be under way; all others are done.
 *  (PTX: cp.async.wait_group) */
TL_API void tl_wait_group(tl_builder* builder, uint32_t pending);

/** In a block of threads: the warps that come by copy a box of a tensor to a box of a shared tile of its
 *  type together, asynchronously: regions of the same ranges, the last index of each among them, at a place
 *  that is the same for all threads. The elements are there for who waits for the phase that these warps
 *  arrive at behind it with TL_ARRIVE_COPIES, or behind a tl_wait_group. The copy engine brings the box where
 *  the machine has one and it can. (PTX: cp.async.bulk.tensor, cp.async) */
TL_API void tl_copy_bulk(tl_builder* builder, tl_region from, tl_region to);

/** The threads that come by arrive at one of an array of transaction barriers, which is a shared tile of
 *  TL_U64 annotated with the arrivals of a phase: tl_annotate_tile(b, full, "arrivals = 32"). In a block of
 *  threads `first` and `threads` are 0; outside of one they are the threads that arrive, 0 and 0 all. Whole
 *  warps of 32 come by. What they did before is there for those who wait for the phase; with
 *  TL_ARRIVE_COPIES the elements of their asynchronous copies, too: each arrives when its own are done. With
 *  TL_ARRIVE_ELECTED one lane of each warp arrives, and `arrivals` counts warps.
 *  (PTX: mbarrier.arrive, cp.async.mbarrier.arrive.noinc) */
TL_API void tl_mbarrier_arrive(tl_builder* builder, tl_region barrier, int64_t first, int64_t threads,
                               uint32_t flags);

/** They go on when the phase of this parity (i64, 0 or 1) has all its arrivals. Phases have parities in turn,
 *  the first 0; the one before it counts as complete. In the order of the statements it is: a wait that
 *  arrivals before it do not complete is refused. (PTX: mbarrier.try_wait.parity) */
TL_API void tl_mbarrier_wait(tl_builder* builder, tl_region barrier, tl_expr parity, int64_t first,
                             int64_t threads);

/** The threads that come by meet the other participants of one of an array of named barriers, which is a
 *  shared tile of TL_U64 annotated with their number: tl_annotate_tile(b, loaded, "participants = 256"). All
 *  go on when so many have come, those that arrive without waiting among them. `first` and `threads` are as
 *  for tl_mbarrier_arrive, whole warps of 32. (PTX: bar.sync; CUTLASS: NamedBarrier::sync) */
TL_API void tl_barrier_sync(tl_builder* builder, tl_region barrier, int64_t first, int64_t threads);

/** They count as participants and go on at once: what they did before is there for those that meet, and
 *  nothing is ordered for themselves. (PTX: bar.arrive; CUTLASS: NamedBarrier::arrive) */
TL_API void tl_barrier_arrive(tl_builder* builder, tl_region barrier, int64_t first, int64_t threads);

/** Opens the branch taken when `condition` (bool) holds. Outside parallel loops it must be the same for the
 *  block. */
TL_API tl_scope tl_begin_if(tl_builder* builder, tl_expr condition);

/** Opens a loop that runs while `condition` (bool) holds, which is asked before each iteration, at most
 *  2147483647 times. Outside of parallel loops it is the same for the block, inside each point has its
 *  own. */
TL_API tl_scope tl_begin_while(tl_builder* builder, tl_expr condition);

/** Leaves the innermost loop, or goes on with its next iteration; the last statement of its scope. The loop
 *  is serial, tl_begin_while's, or, inside a parallel loop, a serial or unrolled one around the statement. */
TL_API void tl_break(tl_builder* builder);
TL_API void tl_continue(tl_builder* builder);

/** Ends the kernel for the block, in or outside of serial loops; the last statement of its scope. */
TL_API void tl_return(tl_builder* builder);

/** Ends the first branch of an open if and begins the other. */
TL_API void tl_begin_else(tl_builder* builder, tl_scope if_scope);

/** Opens a switch on an integer, which is taken once; outside parallel loops it must be the same for the
 *  block. Cases stand in it and nothing else. */
TL_API tl_scope tl_begin_switch(tl_builder* builder, tl_expr value);

/** Opens the case of an open switch that is taken where its value is one of `count` `values` of its type and
 *  none of an earlier case's. One without values, the last, is taken where no other is. tl_end closes it. */
TL_API tl_scope tl_begin_case(tl_builder* builder, tl_scope switch_scope, uint32_t count,
                              const int64_t* values);

/** Closes a scope, which must be the innermost open one. */
TL_API void tl_end(tl_builder* builder, tl_scope scope);

/* Statements of the innermost scope. */

/** An on-chip tile of constant shape, alive as long as its kernel; called directly inside the kernel.
 *  (Paper: T.alloc_shared, T.alloc_fragment, T.alloc_local.) */
TL_API tl_buffer tl_alloc(tl_builder* builder, const char* name, tl_mem_scope scope, tl_dtype dtype,
                          uint32_t rank, const int64_t* shape);

/** The box at `offsets` (i64 expressions, the same for the block) of constant `extents`. It may hang over
 *  the edge of a tensor: reads give 0 there, writes are dropped. */
TL_API tl_region tl_region_of(tl_builder* builder, tl_buffer buffer, uint32_t rank, const tl_expr* offsets,
                              const int64_t* extents);

/** Where a box begins. tl_copy and tl_atomic take its extents from the other side, for the last dimensions;
 *  dimensions in front, and a box that is used elsewhere or beside another of these, are of one element. */
TL_API tl_region tl_region_at(tl_builder* builder, tl_buffer buffer, uint32_t rank, const tl_expr* offsets);

/** The whole of an on-chip tile, or of a tensor of constant shape. */
TL_API tl_region tl_whole(tl_builder* builder, tl_buffer buffer);

/** The elements of a tile, a tensor or another view in another shape, without a copy: in row-major order, as
 *  many as it has. The view is used as a buffer is: elements and regions of it are those of the tile or the
 *  tensor; beyond a view of a tensor reads give 0 and writes are dropped. It stands outside of parallel
 *  loops. */
TL_API tl_buffer tl_view_reshape(tl_builder* builder, tl_buffer tile, uint32_t rank, const int64_t* shape);

/** The same of a tensor, with extents (i64) that are products and quotients of its dims; the facts of dims
 *  show that there are as many elements. */
TL_API tl_buffer tl_view_reshape_to(tl_builder* builder, tl_buffer tensor, uint32_t rank,
                                    const tl_expr* extents);

/** The same of a tile whose dimensions change places: dimension d of the view is dimension order[d]. */
TL_API tl_buffer tl_view_transpose(tl_builder* builder, tl_buffer tile, uint32_t rank, const int64_t* order);

/** The box of a tile, a tensor or another view, as a buffer of its own, whose indices begin at 0. Its offsets
 *  read no memory. */
TL_API tl_buffer tl_view_slice(tl_builder* builder, tl_region box);

/** The same of a tensor, or of a view of one, with extents (i64) that the launch or the block tells. They
 *  read no memory either. */
TL_API tl_buffer tl_view_box(tl_builder* builder, tl_buffer tensor, uint32_t rank, const tl_expr* offsets,
                             const tl_expr* extents);

/** The elements of a tile, a tensor or another view, read and written as values of another type of as many
 *  bits, as tl_bitcast has it. It stands in elements, copies and fills. Of a type of more bits an element is
 *  neighbours of the last dimension, the first in its lowest bits, and the last extent, which is known to be
 *  a multiple, counts these; of a type of fewer bits it is the other way, and tensors are written whole. */
TL_API tl_buffer tl_view_reinterpret(tl_builder* builder, tl_buffer tile, tl_dtype dtype);

/** dst = src, converted where types differ. Of shapes of different rank, dimensions of extent 1 may be left
 *  out, and neighbouring dimensions of one may be one of the other, whose extent is their product: elements
 *  follow each other in row-major order. (Paper: T.copy.) */
TL_API void tl_copy(tl_builder* builder, tl_region src, tl_region dst);

/** dst = value, of dst's type. (Paper: T.fill, T.clear.) */
TL_API void tl_fill(tl_builder* builder, tl_region dst, tl_expr value);

/** C += A * B, A being m x k, B k x n, C m x n, accumulated in C's type. `flags`: TL_GEMM_* bits. (Paper:
 *  T.gemm.) */
TL_API void tl_gemm(tl_builder* builder, tl_region a, tl_region b, tl_region c, uint32_t flags,
                    tl_warp_policy policy);

/** C += A * B of an A, m x k, of which two of each four neighbours along k are kept: `values`, m x k / 2,
 *  holds these, and `meta`, m x k / w of TL_U8, TL_U16 or TL_U32, words of w bits, their places. Of each
 *  four the place of the first value, 0 to 3, takes two bits, the greater one of the second the next two;
 *  groups of four follow each other from the lowest bits of a word on. `flags`: TL_GEMM_TRANSPOSE_A
 *  (values are k / 2 x m), TL_GEMM_TRANSPOSE_B, TL_GEMM_CLEAR. (tilelang: T.gemm_sp.) */
TL_API void tl_gemm_sparse(tl_builder* builder, tl_region values, tl_region meta, tl_region b, tl_region c,
                           uint32_t flags, tl_warp_policy policy);

/** values, meta = src, m x k, as tl_gemm_sparse takes it: of each four neighbours along k the two of greatest
 *  magnitude, of equal ones the earlier, NaN as the greatest. All three are on chip. */
TL_API void tl_compress(tl_builder* builder, tl_region src, tl_region values, tl_region meta);

/** dst = kind over dimension `axis` of src; dst has src's shape without that dimension, or with extent 1
 *  there. `flags`: TL_REDUCE_ACCUMULATE or 0. (Paper: T.reduce_*.) */
TL_API void tl_reduce(tl_builder* builder, tl_region src, tl_region dst, tl_reduce_kind kind, uint32_t axis,
                      uint32_t flags);

/** dst = the sums of src's elements along dimension `axis`, each up to and with its own; dst has src's shape
 *  and may be the same region. `flags`: TL_CUMSUM_REVERSE or 0. (TileLang: T.cumsum.) */
TL_API void tl_cumsum(tl_builder* builder, tl_region src, tl_region dst, uint32_t axis, uint32_t flags);

/** dst = the sum, product, largest or smallest (`kind`) of the elements of src along `axis` up to each one,
 *  or from each one on; without the element itself with TL_SCAN_EXCLUSIVE: 0, 1, -inf or +inf (of integers
 *  the least or greatest) where there is no other. dst has src's shape and may be src. `flags`: TL_SCAN_* or
 *  0. */
TL_API void tl_scan(tl_builder* builder, tl_region src, tl_region dst, tl_reduce_kind kind, uint32_t axis,
                    uint32_t flags);

/** The same of an axis that goes on from tile to tile, in a loop: `carry`, of dst's type and src's shape
 *  without the axis, or with extent 1 there, stands in front of the elements, with TL_SCAN_REVERSE behind
 *  them, and becomes what all of these come to. It is none of the tiles of src and dst. */
TL_API void tl_scan_carry(tl_builder* builder, tl_region src, tl_region dst, tl_region carry,
                          tl_reduce_kind kind, uint32_t axis, uint32_t flags);

/** value = the largest (TL_REDUCE_MAX) or smallest (TL_REDUCE_MIN) element of src along `axis`, index (of
 *  TL_I32 or TL_I64) = where the first of these stands, from 0; the axis's extent where no element is a
 *  number. Both have src's shape without the axis, or with extent 1 there. */
TL_API void tl_arg_reduce(tl_builder* builder, tl_region src, tl_region value, tl_region index,
                          tl_reduce_kind kind, uint32_t axis);

/** A value of that type which stands for an operand in the results of a combination, of tl_reduce_by and
 *  tl_scan_by, or of a function, of tl_function, and nowhere else. `name`, for diagnostics, may be NULL. */
TL_API tl_expr tl_operand(tl_builder* builder, tl_dtype dtype, const char* name);

/** A function of the program: `results`, of the operands (tl_operand), constants, dims and scalars. tl_call
 *  gives one result for arguments. With `text_count` texts, of different `forms`, it has native text: before
 *  the first kernel, of the operands alone, of types of 16, 32 and 64 bits, at most 16 of each. Code for a
 *  target that takes one of the forms is that text; the interpreter, the simulator and other targets compute
 *  `results`, with which the text must agree. Instructions name their operands $0, $1, ...: the results, then
 *  the operands; each result is written, operands are only read. LLVM IR defines a function of that name.
 *  Lines of a text are separated by newlines; it has no quotation marks. tl_call also takes the names of the
 *  library's functions, fast_exp and others, which the program makes none of. docs/language.md. */
TL_API void tl_function(tl_builder* builder, const char* name, uint32_t operand_count,
                        const tl_expr* operands, uint32_t result_count, const tl_expr* results,
                        uint32_t text_count, const tl_native_form* forms, const char* const* texts);
TL_API tl_expr tl_call(tl_builder* builder, const char* function, uint32_t count, const tl_expr* args,
                       uint32_t result);

/** A matrix instruction of the program's own, before the first kernel: C[m x n] += A[m x k] * B[k x n] by the
 *  32 lanes of a warp (text of TL_NATIVE_PTX) or the 64 of a wave (TL_NATIVE_GCN). Products whose annotation
 *  `atom` names it are made of it, on targets that take its text; elsewhere of what the target has. `shape`
 *  is m, n and k; `types` and `layouts` are those of A, B and C. A layout tells where an element is: a
 *  function of its indices that gives lane * registers + register, "(i, k) -> ...", or the text of a
 *  fragment. The text is one instruction; $0, $1, ... are the registers of the sum, of A, of B, and of C. It
 *  issues in `cycles`; 0: as the target's of that shape, or as an estimate. `operands`, an element of A, of B
 *  and of C (tl_operand), and `meaning`, what C's becomes of each k, may be NULL and 0: c + a * b.
 *  docs/language.md. */
TL_API void tl_matrix_atom(tl_builder* builder, const char* name, const int64_t* shape, const tl_dtype* types,
                           const char* const* layouts, uint32_t cycles, const tl_expr* operands,
                           tl_expr meaning, tl_native_form form, const char* text);

/** Reduces `count` (at most 8) tiles of the same extents together along `axis`: neighbouring groups, of one
 *  element of each, are combined until one is left, which dst, one for each source, get. The combination of
 *  two groups is `results`, of the operands `left` and `right` (tl_operand), constants, dims and scalars; it
 *  is associative, and needs neither be commutative nor have an identity. Elements, operands, results and dst
 *  are of one type for each of `count`. dst have the sources' shape without the axis, or with extent 1 there.
 *  `flags`: TL_REDUCE_ACCUMULATE or 0. The order of combining is the extent's alone. */
TL_API void tl_reduce_by(tl_builder* builder, uint32_t count, const tl_region* src, const tl_region* dst,
                         const tl_expr* left, const tl_expr* right, const tl_expr* results, uint32_t axis,
                         uint32_t flags);

/** The same of all groups up to each one, or from each one on: dst have the sources' shape and may be the
 *  sources. `flags`: TL_SCAN_REVERSE or 0. */
TL_API void tl_scan_by(tl_builder* builder, uint32_t count, const tl_region* src, const tl_region* dst,
                       const tl_expr* left, const tl_expr* right, const tl_expr* results, uint32_t axis,
                       uint32_t flags);

/** The same with a group `first`, of constants, dims and scalars, in front of all others, or behind them with
 *  TL_SCAN_REVERSE; with TL_SCAN_EXCLUSIVE without the group itself, so that the first results are `first`.
 *  `flags`: TL_SCAN_* or 0. */
TL_API void tl_scan_by_from(tl_builder* builder, uint32_t count, const tl_region* src, const tl_region* dst,
                            const tl_expr* left, const tl_expr* right, const tl_expr* results,
                            const tl_expr* first, uint32_t axis, uint32_t flags);

/** The same of an axis that goes on from tile to tile, as tl_scan_carry has it: the group `carry`, a region
 *  of each value, stands in front of all others and becomes what all come to. `flags`: TL_SCAN_* or 0. */
TL_API void tl_scan_by_carry(tl_builder* builder, uint32_t count, const tl_region* src, const tl_region* dst,
                             const tl_region* carry, const tl_expr* left, const tl_expr* right,
                             const tl_expr* results, uint32_t axis, uint32_t flags);

/** dst = the elements of src along `axis` in ascending order, equal ones in the order of their places; -0 is
 *  before 0, and NaN, which is one value, behind all others. index, TL_I32 or TL_I64, or a tl_region of 0:
 *  where each stood. Of numbers that are computed in, at most 4096 along the axis; dst and index have src's
 *  shape, dst its type, and may be src. `flags`: TL_SORT_DESCENDING or 0. */
TL_API void tl_sort(tl_builder* builder, tl_region src, tl_region dst, tl_region index, uint32_t axis,
                    uint32_t flags);

/** value, index = the first elements of src in descending order, or in ascending order with
 *  TL_TOP_K_SMALLEST, as many as value has along `axis`. */
TL_API void tl_top_k(tl_builder* builder, tl_region src, tl_region value, tl_region index, uint32_t axis,
                     uint32_t flags);

/** dst = kind of the old dst and src, element by element, on a tensor: blocks and threads that do so to one
 *  element at once are done one after the other, in any order, and nothing else is ordered by it. Both have
 *  one type, an integer or a float of at least 16 bits; what lies outside the tensor is dropped, and so are
 *  old values. (TileLang: T.atomic_add, T.atomic_max, T.atomic_min.) */
TL_API void tl_atomic(tl_builder* builder, tl_region src, tl_region dst, tl_atomic_kind kind);

/** The same, and old, a tile of the same type and extents on chip, becomes what the elements were before, 0
 *  outside the tensor. dst may be a shared tile, too. (CUDA: the result of atomicAdd, atomicExch ...) */
TL_API void tl_atomic_fetch(tl_builder* builder, tl_region src, tl_region dst, tl_region old,
                            tl_atomic_kind kind);

/** The same of one element, inside a parallel loop, whose iterations may name one element together. */
TL_API void tl_store_atomic(tl_builder* builder, tl_buffer buffer, uint32_t rank, const tl_expr* indices,
                            tl_expr value, tl_atomic_kind kind);

/** The same; gives a name, which may be NULL, for the value that the element had before. Inside parallel
 *  loops, until the scope ends; 0 where the element is outside of its tensor. (CUDA: atomicAdd ...) */
TL_API tl_expr tl_fetch_atomic(tl_builder* builder, tl_buffer buffer, uint32_t rank, const tl_expr* indices,
                               tl_expr value, tl_atomic_kind kind, const char* name);

/** Stores `desired` in the element, an integer, where it is `expected`; gives a name for
 *  the value that it had before, as tl_fetch_atomic does. (CUDA: atomicCAS) */
TL_API tl_expr tl_compare_exchange(tl_builder* builder, tl_buffer buffer, uint32_t rank,
                                   const tl_expr* indices, tl_expr expected, tl_expr desired,
                                   const char* name);

/** The same two; an element of a shared tile of the buffer's type, no other iteration's, becomes the value
 *  that was there before. */
TL_API void tl_fetch_atomic_to(tl_builder* builder, tl_buffer buffer, uint32_t rank, const tl_expr* indices,
                               tl_expr value, tl_atomic_kind kind, tl_buffer old, uint32_t old_rank,
                               const tl_expr* old_indices);
TL_API void tl_compare_exchange_to(tl_builder* builder, tl_buffer buffer, uint32_t rank,
                                   const tl_expr* indices, tl_expr expected, tl_expr desired, tl_buffer old,
                                   uint32_t old_rank, const tl_expr* old_indices);

/** The memory order of the atomic operation on an element that is the next statement; without it operations
 *  are relaxed. Of a tensor a block is one party: what all of its threads wrote to tensors before a releasing
 *  operation, all threads of a block that acquires the element afterwards find. Not in pipelined loops. Of a
 *  shared tile it is a thread's. (CUDA: cuda::atomic_ref, of thread_scope_device between barriers) */
TL_API void tl_atomic_order(tl_builder* builder, tl_memory_order order);

/** buffer[indices] = value, of the buffer's type. Inside parallel loops, or elsewhere to local tiles. A
 *  write outside a tensor is dropped. */
TL_API void tl_store(tl_builder* builder, tl_buffer buffer, uint32_t rank, const tl_expr* indices,
                     tl_expr value);

/** Asserts that `condition` (bool) holds, for each iteration of a parallel loop around it, else once for the
 *  block, where it must be the same for all of it. A launch that finds it false runs to its end and is then
 *  TL_ASSERTION, with `message` (at most 200 printable characters of ASCII without '"') and the first place,
 *  in the order of blocks and iterations. On GPUs a launch of such a program waits for its work, and one that
 *  is captured tells nothing. */
TL_API void tl_assert(tl_builder* builder, tl_expr condition, const char* message);

/** Prints `text`, as of tl_assert, and `count` values, for each iteration of a parallel loop around it, else
 *  once for the block. A launch prints when it is done, a line for each: in the order of blocks, iterations
 *  and statements, with the place; through tl_context_set_print of the tl_launch's context, else to standard
 *  output. A launch has room for 65535 numbers that are floats and as many others; it tells how many more
 *  there were. On GPUs as tl_assert. */
TL_API void tl_print(tl_builder* builder, const char* text, uint32_t count, const tl_expr* values);

/** Prints each element of the region; outside of parallel loops. */
TL_API void tl_print_tile(tl_builder* builder, const char* text, tl_region region);

/** A name for what the value of an expression is at this place: later stores do not change it. An expression
 *  without a name is evaluated where it is used. Until the innermost open scope ends. `name` may be NULL. */
TL_API tl_expr tl_let(tl_builder* builder, const char* name, tl_expr value);

/** The same inside a parallel loop, for a name that tl_assign gives other values. Each iteration has its
 *  own. */
TL_API tl_expr tl_var(tl_builder* builder, const char* name, tl_expr value);

/** From here on `var`, which tl_var returned, is `value`, of its type. */
TL_API void tl_assign(tl_builder* builder, tl_expr var, tl_expr value);

/** Names the next operation, loop, if or store in schedules, costs and diagnostics: its path is then
 *  "kernel/name", wherever it stands. Once in a kernel, outside of parallel loops. */
TL_API void tl_label(tl_builder* builder, const char* name);

/** Decides how the next operation or loop is done: fields of the schedule (docs/language.md, Annotations), as
 *  the text form has them between braces: "vector = 8, engine = async_copy". What cannot be had is refused by
 *  tl_compile. */
TL_API void tl_annotate(tl_builder* builder, const char* text);

/** The same for a tile, "swizzle = 128", and for the kernel that is open, "raster = grouped, group = 8". */
TL_API void tl_annotate_tile(tl_builder* builder, tl_buffer tile, const char* text);
TL_API void tl_annotate_kernel(tl_builder* builder, const char* text);

/* --------------------------------------------------------------------------------- layouts -- */

/** Forms of a layout's picture. */
typedef uint32_t tl_picture;
enum {
  TL_PICTURE_TEXT = 1, /* a grid of cells */
  TL_PICTURE_SVG = 2   /* the same, coloured by bank or by thread */
};

/** Draws a layout for people. `layout` is its text as it stands in a schedule: a memory layout shows the
 *  offset in every cell, a fragment the thread and register ("T5:R2", "+n" for n further holders). Ranks
 *  above 2 show their last two dimensions. Errors: TL_PARSE_ERROR, TL_INVALID_ARGUMENT. (Paper figures 6
 *  and 7.) */
TL_API tl_status tl_layout_draw(const char* layout, tl_picture form, tl_blob** out_picture,
                                tl_error** out_error);

/* -------------------------------------------------------------------------------- programs -- */

/** Reads the .tl text form and checks the program. `file_name` (may be NULL) stands in diagnostics; no file
 *  is read. */
TL_API tl_status tl_program_parse(const tl_context* context, const char* text, size_t size,
                                  const char* file_name, tl_program** out_program, tl_error** out_error);

/** The same with values for `count` compile-time parameters, by name; the others have the text's. A name that
 *  the program does not declare, or a value outside its domain, is TL_INVALID_ARGUMENT. */
TL_API tl_status tl_program_parse_bound(const tl_context* context, const char* text, size_t size,
                                        const char* file_name, const char* const* names,
                                        const int64_t* values, size_t count, tl_program** out_program,
                                        tl_error** out_error);

/** The same with further options. `include` is called on the caller's thread for each line `include "path"`,
 *  in the order of the texts; it may read files or what it likes, which the library does not. The program
 *  keeps the texts: tl_program_bind and tl_tune do not call it. A text that it does not give is TL_IO, one
 *  that includes itself TL_INVALID_PROGRAM, more than 64 in each other or, together, more bytes than limit
 *  "text_bytes" TL_LIMIT_EXCEEDED; without a function `include` is TL_PARSE_ERROR. */
TL_API tl_status tl_program_parse_with(const tl_context* context, const char* text, size_t size,
                                       const tl_parse_options* options, tl_program** out_program,
                                       tl_error** out_error);

/** A new program from the text of `program`, read and checked again with `count` compile-time parameters
 *  bound to other values; those not named keep the values of `program`, which stays as it is. Errors: those
 *  of tl_program_parse_bound. A program made by a builder has no text and is TL_INVALID_ARGUMENT: build it
 *  again after tl_builder_bind. A printed program has its values folded in, so other values are refused. */
TL_API tl_status tl_program_bind(const tl_context* context, const tl_program* program,
                                 const char* const* names, const int64_t* values, size_t count,
                                 tl_program** out_program, tl_error** out_error);
TL_API void tl_program_retain(tl_program* program);
TL_API void tl_program_release(tl_program* program);

/** The canonical text; parsing it gives an equal program. */
TL_API tl_status tl_program_print(const tl_program* program, tl_blob** out_text, tl_error** out_error);

/** C source (C11, includes this header) of a function that builds an equal program, of the same hash, by the
 *  calls above: `tl_status build_NAME(const tl_context *, tl_program **, tl_error **)`, NAME being the
 *  program's. It compiles without warnings. As in the canonical text, values of compile-time parameters and
 *  functions without native text are folded in, operations that are made of other statements are these, and
 *  places in a source are not kept. */
TL_API tl_status tl_program_emit_c(const tl_program* program, tl_blob** out_source, tl_error** out_error);

/** The text laid out, as people keep it: blocks indented, spaces between tokens; comments and line breaks
 *  stay, and so does the program. Errors: those of tl_program_parse. */
TL_API tl_status tl_text_format(const tl_context* context, const char* text, size_t size,
                                const char* file_name, tl_blob** out_text, tl_error** out_error);

/** The same with further options. Lines with `include` stay as they are. A text without the line `tl 1
 *  program NAME`, as others include it, is checked by itself: what it names it must declare or include. */
TL_API tl_status tl_text_format_with(const tl_context* context, const char* text, size_t size,
                                     const tl_parse_options* options, tl_blob** out_text,
                                     tl_error** out_error);

/** The text of LLVM bitcode, which tl_function takes for the forms of LLVM IR. What such a text may hold is
 *  taken: functions that compute of their arguments; attributes and debug information are left out. Any bytes
 *  may be given, up to 1 MiB: no code of LLVM reads them. Data of the blob ends with a zero byte. */
TL_API tl_status tl_bitcode_text(const void* bytes, size_t size, tl_blob** out_text, tl_error** out_error);

/** 32 hex digits that identify the canonical text, on every machine; "" for NULL. */
TL_API const char* tl_program_hash(const tl_program* program);

/** Name of the program; "" for NULL. */
TL_API const char* tl_program_name(const tl_program* program);

/** Parameters in launch order, without workspaces: how many, and number `index`. */
TL_API size_t tl_program_param_count(const tl_program* program);
TL_API tl_status tl_program_param(const tl_program* program, size_t index, tl_param_info* out_info);

/** Compile-time parameters in the order of declaration: how many, and number `index`. */
TL_API size_t tl_program_compile_param_count(const tl_program* program);
TL_API tl_status tl_program_compile_param(const tl_program* program, size_t index,
                                          tl_compile_param_info* out_info);

/** Runs the program by interpretation, slowly, on host tensors: the reference for compiled code. Arguments
 *  as for tl_kernel_launch. Also reports reads of on-chip elements that nobody wrote and indices outside
 *  on-chip tiles. */
TL_API tl_status tl_interpret(const tl_program* program, const tl_arg* args, size_t count,
                              tl_error** out_error);

/** The same with a tl_launch, of which `timeout_ms` and `context` count. */
TL_API tl_status tl_interpret_launch(const tl_program* program, const tl_launch* launch, const tl_arg* args,
                                     size_t count, tl_error** out_error);

/* ---------------------------------------------------------------------------------- tuning -- */

/** Plans every configuration of `program` for `target`, a value of its domain for each compile-time
 *  parameter, on up to 16 threads, and puts them in the order of the cost model's estimates, the shortest
 *  first; those that the target does not take are last. Nothing is lowered or run. `options` (NULL for none)
 *  are those of tl_compile; "sizes" says for which sizes. Option "tune" = "model" of tl_compile takes the
 *  first at once. Errors: TL_INVALID_ARGUMENT for a program with compile-time parameters that a builder made;
 *  TL_LIMIT_EXCEEDED for more than 1024 configurations; TL_UNSUPPORTED for a target without threads; those of
 *  the first configuration where all are refused.
 *  With option "tune" = "measure" the best by the model, "tune_count" of them, run on the device of this
 *  process that takes the target's code, on random data, and stand first in the order of their times; for
 *  hosts, which have no estimates, these are all that there are. Times remembered in the folder
 *  "tune_records" are taken instead. Further errors: TL_DRIVER where there is no such device,
 *  TL_UNSUPPORTED for simulated targets. A kernel of a GPU that never ends, or breaks its context, does so to
 *  the caller: `tilegen tune --measure` runs each in a process of its own. */
TL_API tl_status tl_tune(const tl_context* context, const tl_program* program, const tl_target* target,
                         const tl_options* options, tl_tuning** out_tuning, tl_error** out_error);
TL_API void tl_tuning_retain(tl_tuning* tuning);
TL_API void tl_tuning_release(tl_tuning* tuning);

/** The same with option "tune" = "measure", where `measure` runs the configurations: with data of its own, or
 *  in other processes. It is called by the caller's thread, several times for each configuration, in shuffled
 *  order. `user` is handed through. */
TL_API tl_status tl_tune_measured(const tl_context* context, const tl_program* program,
                                  const tl_target* target, const tl_options* options, tl_measure_fn measure,
                                  void* user, tl_tuning** out_tuning, tl_error** out_error);

/** Microseconds of one launch of `program` as it is, on the device of this process that takes the target's
 *  code, on random data, by the method of option "tune" = "measure". */
TL_API tl_status tl_measure(const tl_context* context, const tl_program* program, const tl_target* target,
                            const tl_options* options, double* out_microseconds, tl_error** out_error);

/** Configurations: how many, number `index`, and its program, for those that are not refused. */
TL_API size_t tl_tuning_count(const tl_tuning* tuning);
TL_API tl_status tl_tuning_configuration(const tl_tuning* tuning, size_t index,
                                         tl_configuration_info* out_info);
TL_API tl_status tl_tuning_program(const tl_tuning* tuning, size_t index, tl_program** out_program,
                                   tl_error** out_error);

/* -------------------------------------------------------------------------------- compiling -- */

/** Compiles. `options` may be NULL. Re-entrant. A program that the target cannot run is TL_UNSUPPORTED or,
 *  where it needs too much memory, TL_LIMIT_EXCEEDED. Where option "sizes" has a range ("m=1..8192") launches
 *  of any size are served by up to "specialisations" plans, of configurations that "tune" chooses for parts
 *  of the range; docs/tuning.md. */
TL_API tl_status tl_compile(const tl_context* context, const tl_program* program, const tl_target* target,
                            const tl_options* options, tl_artifact** out_artifact, tl_error** out_error);
TL_API void tl_artifact_retain(tl_artifact* artifact);
TL_API void tl_artifact_release(tl_artifact* artifact);

/** Text of one section, NUL-terminated after *out_size, owned by the artifact. A section that was not
 *  asked for by the options is empty. TL_SECTION_CODE and TL_SECTION_HSACO may be binary: only *out_size
 *  tells their end. */
TL_API tl_status tl_artifact_section(const tl_artifact* artifact, tl_section section, const char** out_data,
                                     size_t* out_size, tl_error** out_error);

/** Form of TL_SECTION_CODE: "ptx" (NVIDIA targets), text that the driver compiles when it is loaded,
 *  "object" (hosts), a relocatable ELF file with a function for each version of a kernel, or "hsaco" (AMD
 *  targets), a shared object for the loader of the HIP runtime. More forms may come. "" where there is no
 *  code: for simulated targets, with option "plan_only", and for NULL. */
TL_API const char* tl_artifact_code_format(const tl_artifact* artifact);

/** The version of the code for arguments that this one's guards refuse, with its own schedule and code, and
 *  maybe a fallback of its own; NULL where the code relies on nothing that the program does not promise, and
 *  for targets that need none or hold all versions in one artifact (host, simulator). It is compiled once, by
 *  the options of tl_compile, by this call or by the first launch that needs it. `context` (NULL for none) is
 *  whom to ask whether to stop. Versions compiled so far are loaded by tl_kernel_prepare. */
TL_API tl_status tl_artifact_fallback(const tl_context* context, const tl_artifact* artifact,
                                      tl_artifact** out_fallback, tl_error** out_error);

/** Code for parts of the sizes, of an artifact compiled with a range in option "sizes": how many parts, 0 for
 *  other artifacts, and number `index`: for which sizes a launch takes it, for people ("m up to 64"), and the
 *  artifact of it alone; either may be NULL. All are right for all sizes. Sections, warnings and the fallback
 *  of the whole artifact are those of the largest sizes; stages are of all. A kernel of the whole artifact
 *  takes no lock and a few comparisons to choose. */
TL_API size_t tl_artifact_specialisation_count(const tl_artifact* artifact);
TL_API tl_status tl_artifact_specialisation(const tl_artifact* artifact, size_t index, tl_blob** out_sizes,
                                            tl_artifact** out_artifact, tl_error** out_error);

/** What the plan loses, by the cost model, beside one without the fault that a warning tells: products that
 *  the fastest instructions do not do, loads that nothing hides, scattered or conflicting accesses, repeated
 *  work, spilled registers. How many warnings, and number `index`, the costliest first; its strings belong to
 *  the artifact. `out_factor` (may be NULL): the kernel's time to that without it, 1.25 or more. They are
 *  found on the first call, for the sizes of option "sizes"; 0 where no memory is left for them. */
TL_API size_t tl_artifact_warning_count(const tl_artifact* artifact);
TL_API tl_status tl_artifact_warning(const tl_artifact* artifact, size_t index, tl_diagnostic* out_diagnostic,
                                     double* out_factor);

/** Compiler stages that ran: how many, and name and milliseconds of number `index`. */
TL_API size_t tl_artifact_stage_count(const tl_artifact* artifact);
TL_API tl_status tl_artifact_stage(const tl_artifact* artifact, size_t index, const char** out_name,
                                   double* out_ms);

/* -------------------------------------------------------------------------------- running -- */

/** Devices of this machine: how many, and number `ordinal`. Device 0 is the host, then come the CUDA devices
 *  and the HIP devices, in the order of their drivers. The drivers are looked for once, on the first call
 *  that needs them. */
TL_API size_t tl_device_count(void);
TL_API tl_status tl_device_describe(size_t ordinal, tl_device_info* out_info);

/** Memory of a device: allocated (NULL for 0 bytes), freed (NULL is ignored), copied between host and device
 *  in either direction. A copy runs after the work of `stream` and returns when the bytes are there;
 *  tl_device_wait returns when the work of `stream` is done. Device 0 is the host, whose `stream` is
 *  ignored. Meant for tools and small clients: tensors of any origin can be launched on. */
TL_API tl_status tl_device_allocate(size_t ordinal, size_t bytes, void** out_memory, tl_error** out_error);
TL_API tl_status tl_device_free(size_t ordinal, void* memory, tl_error** out_error);
TL_API tl_status tl_device_copy(size_t ordinal, void* to, const void* from, size_t bytes, void* stream,
                                tl_error** out_error);
TL_API tl_status tl_device_wait(size_t ordinal, void* stream, tl_error** out_error);

/** Makes an artifact ready for device `ordinal`, or for TL_DEVICE_ANY. A device that the artifact is not for
 *  is TL_DRIVER. On GPUs the code itself is loaded later, by tl_kernel_prepare or the first launch. */
TL_API tl_status tl_kernel_load(const tl_context* context, const tl_artifact* artifact, size_t ordinal,
                                tl_kernel** out_kernel, tl_error** out_error);
TL_API void tl_kernel_retain(tl_kernel* kernel);

/** On GPUs a kernel must live until its work, and the graphs it was captured in, are done. */
TL_API void tl_kernel_release(tl_kernel* kernel);

/** Brings everything a launch needs in place. On CUDA: loads the code in the context that is current on this
 *  thread if that is one of the kernel's device, else in the device's primary context; on HIP: for the
 *  kernel's device, whichever is current; of the fallback
 *  versions those that are compiled (tl_artifact_fallback). A launch does the same when it is the first; call
 *  this to choose the moment, and before the capture of a graph. */
TL_API tl_status tl_kernel_prepare(const tl_kernel* kernel, tl_error** out_error);

/** What the code needs of the device: number of versions over all kernels, and number `index`. */
TL_API size_t tl_kernel_form_count(const tl_kernel* kernel);
TL_API tl_status tl_kernel_describe(const tl_kernel* kernel, size_t index, tl_kernel_info* out_info,
                                    tl_error** out_error);

/** Runs all kernels of the program in order. `args`: one per parameter in launch order, where dimensions
 *  may be TL_ARG_AUTO; or one per tensor and scalar, with every dimension solved from the tensors.
 *  Everything the program states is checked first (rank, dtype, device, extents, strides, alignment,
 *  facts); overlap of tensors is not. On the host the call returns when the work is done, on GPUs when it
 *  stands in the stream: nothing is allocated (but workspaces, in the order of the stream), locked or
 *  waited for once the kernel is prepared, so launches can be captured in a graph. Tensors are borrowed
 *  for the time of the work. `launch` may be NULL. A kernel that fails on the device shows in a later
 *  call, and its context is lost. */
TL_API tl_status tl_kernel_launch(const tl_kernel* kernel, const tl_launch* launch, const tl_arg* args,
                                  size_t count, tl_error** out_error);

/** The same for a program whose parameters are tensors and dimensions solved from them. */
TL_API tl_status tl_kernel_launch_dlpack(const tl_kernel* kernel, const tl_launch* launch,
                                         const struct DLTensor* const* tensors, size_t count,
                                         tl_error** out_error);

#ifdef __cplusplus
}
#endif

#endif /* TILELANG_H */
