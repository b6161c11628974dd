// Builder calls: life, parameters, expressions.
#include <iterator>

#include "capi/handles.h"
#include "check/check_program.h"
#include "support/diag_codes.h"

using namespace tilegen;
using namespace tilegen::capi;

namespace {

uint32_t next_serial() {
  static std::atomic<uint32_t> last{0};
  uint32_t serial = 0;
  while (serial == 0) serial = (last.fetch_add(1, std::memory_order_relaxed) + 1) & kSerialMask;
  return serial;
}

using ir::ExprOp;
constexpr ExprOp kUnary[] = {
    ExprOp::neg,   ExprOp::abs,         ExprOp::exp,     ExprOp::exp2,  ExprOp::log,     ExprOp::log2,
    ExprOp::sqrt,  ExprOp::rsqrt,       ExprOp::tanh,    ExprOp::erf,   ExprOp::sigmoid, ExprOp::floor,
    ExprOp::ceil,  ExprOp::logical_not, ExprOp::bit_not, ExprOp::sin,   ExprOp::cos,     ExprOp::tan,
    ExprOp::asin,  ExprOp::acos,        ExprOp::atan,    ExprOp::exp10, ExprOp::expm1,   ExprOp::log1p,
    ExprOp::cbrt,  ExprOp::erfc,        ExprOp::round,   ExprOp::rint,  ExprOp::trunc,   ExprOp::isnan,
    ExprOp::isinf, ExprOp::popcount,    ExprOp::clz,     ExprOp::ctz};
constexpr ExprOp kBinary[] = {
    ExprOp::add,      ExprOp::sub,     ExprOp::mul,         ExprOp::div,        ExprOp::floordiv,
    ExprOp::floormod, ExprOp::min,     ExprOp::max,         ExprOp::lt,         ExprOp::le,
    ExprOp::eq,       ExprOp::ne,      ExprOp::logical_and, ExprOp::logical_or, ExprOp::bit_and,
    ExprOp::bit_or,   ExprOp::bit_xor, ExprOp::shl,         ExprOp::shr,        ExprOp::lt,
    ExprOp::le,  // of exchanged operands: TL_GT, TL_GE
    ExprOp::pow,      ExprOp::atan2,   ExprOp::fmod,        ExprOp::copysign,   ExprOp::mulhi};
constexpr ExprOp kTernary[] = {ExprOp::fma, ExprOp::philox};
static_assert(std::size(kUnary) == TL_CTZ && kUnary[TL_SIGMOID - 1] == ExprOp::sigmoid &&
              kUnary[TL_SIN - 1] == ExprOp::sin && kUnary[TL_ISNAN - 1] == ExprOp::isnan);
static_assert(TL_ADD + std::size(kBinary) == TL_MULHI + 1 && kBinary[TL_SHR - TL_ADD] == ExprOp::shr &&
              kBinary[TL_LT - TL_ADD] == ExprOp::lt);

}  // namespace

extern "C" {

tl_status tl_builder_create(const tl_context* context, const char* name, tl_builder** out_builder,
                            tl_error** out_error) {
  return guard("tl_builder_create", out_error, [&]() -> Checked {
    if (out_builder) *out_builder = nullptr;
    if (!context || !out_builder) return null_argument(context ? "out_builder" : "context");
    if (!name) return null_argument("name");
    auto made = std::make_unique<tl_builder>(name, context, next_serial());
    if (made->builder.failed()) {
      Error error;
      error.diagnostics = made->builder.diagnostics();
      return error;
    }
    *out_builder = made.release();
    return Unit{};
  });
}

void tl_builder_destroy(tl_builder* builder) { delete builder; }

void tl_builder_set_location(tl_builder* builder, const char* file, uint32_t line, uint32_t column) {
  on_builder(builder, "tl_builder_set_location", [&](const BuilderCall& c) {
    SourceLocation place;
    if (file && line != 0) place = {file, line, column};
    c->set_location(std::move(place));
  });
}

tl_status tl_builder_status(const tl_builder* builder) {
  if (!builder) return TL_INVALID_HANDLE;
  if (builder->builder.failed())
    return static_cast<tl_status>(diag_status(builder->builder.diagnostics()[0].code));
  return builder->out_of_memory ? TL_LIMIT_EXCEEDED : TL_OK;
}

tl_status tl_builder_finish(tl_builder* builder, tl_program** out_program, tl_error** out_error) {
  return guard("tl_builder_finish", out_error, [&]() -> Checked {
    if (out_program) *out_program = nullptr;
    if (!builder || !out_program) return null_argument(builder ? "out_program" : "builder");
    if (builder->out_of_memory && !builder->builder.failed()) throw std::bad_alloc();
    const CallLimits call(builder->context);
    auto finished = builder->builder.finish(check::check_program, call.get());
    if (!finished) return finished.error();
    auto made = std::make_unique<tl_program>();
    made->program = std::move(*finished);
    *out_program = made.release();
    return Unit{};
  });
}

tl_expr tl_dim(tl_builder* builder, const char* name) {
  return on_builder(builder, "tl_dim", tl_expr{0}, [&](const BuilderCall& c) -> tl_expr {
    const auto text = c.text("name", name);
    return c.failed() ? tl_expr{0} : c.give_var(c->dim(text));
  });
}

void tl_dim_fact(tl_builder* builder, tl_expr dim, int64_t lower, int64_t upper, int64_t divisor) {
  on_builder(builder, "tl_dim_fact", [&](const BuilderCall& c) {
    const auto id = c.expr("dim", dim);
    if (!c.failed()) c->dim_fact(c->as_var(id), lower, upper, divisor);
  });
}

tl_expr tl_scalar(tl_builder* builder, const char* name, tl_dtype dtype) {
  return on_builder(builder, "tl_scalar", tl_expr{0}, [&](const BuilderCall& c) -> tl_expr {
    const auto text = c.text("name", name);
    const auto type = c.dtype(dtype);
    return c.failed() ? tl_expr{0} : c.give_var(c->scalar(text, type));
  });
}

tl_buffer tl_tensor(tl_builder* builder, const char* name, tl_dtype dtype, uint32_t rank,
                    const tl_expr* shape, const tl_expr* strides, uint32_t flags) {
  return on_builder(builder, "tl_tensor", tl_buffer{0}, [&](const BuilderCall& c) -> tl_buffer {
    const auto text = c.text("name", name);
    const auto type = c.dtype(dtype);
    const auto extents = c.exprs("shape", rank, shape);
    const auto steps = strides ? c.exprs("strides", rank, strides) : std::vector<ir::ExprId>();
    constexpr uint32_t kFlags =
        TL_TENSOR_READ_ONLY | TL_TENSOR_CONSTANT | TL_TENSOR_WORKSPACE | TL_TENSOR_OPTIONAL;
    if (!c.known_flags(flags, kFlags)) return {0};
    return c.give(c->tensor(text, type, extents, steps,
                            {.read_only = (flags & TL_TENSOR_READ_ONLY) != 0,
                             .constant = (flags & TL_TENSOR_CONSTANT) != 0,
                             .workspace = (flags & TL_TENSOR_WORKSPACE) != 0,
                             .optional = (flags & TL_TENSOR_OPTIONAL) != 0}));
  });
}

tl_expr tl_present(tl_builder* builder, tl_buffer tensor) {
  return on_builder(builder, "tl_present", tl_expr{0}, [&](const BuilderCall& c) -> tl_expr {
    const auto of = c.buffer("tensor", tensor);
    return c.failed() ? tl_expr{0} : c.give(c->present(of));
  });
}

void tl_tensor_codes(tl_builder* builder, tl_buffer tensor, tl_dtype packed) {
  on_builder(builder, "tl_tensor_codes", [&](const BuilderCall& c) {
    const auto of = c.buffer("tensor", tensor);
    const auto type = c.dtype(packed);
    if (!c.failed()) c->tensor_codes(of, type);
  });
}

tl_expr tl_const_i64(tl_builder* builder, tl_dtype dtype, int64_t value) {
  return on_builder(builder, "tl_const_i64", tl_expr{0}, [&](const BuilderCall& c) -> tl_expr {
    const auto type = c.dtype(dtype);
    return c.failed() ? tl_expr{0} : c.give(c->const_int(value, type));
  });
}

tl_expr tl_const_f64(tl_builder* builder, tl_dtype dtype, double value) {
  return on_builder(builder, "tl_const_f64", tl_expr{0}, [&](const BuilderCall& c) -> tl_expr {
    const auto type = c.dtype(dtype);
    return c.failed() ? tl_expr{0} : c.give(c->const_float(value, type));
  });
}

tl_expr tl_index(tl_builder* builder, int64_t value) {
  return on_builder(builder, "tl_index", tl_expr{0},
                    [&](const BuilderCall& c) { return c.give(c->const_int(value, ir::DType::i64)); });
}

tl_expr tl_unary(tl_builder* builder, tl_unary_op op, tl_expr a) {
  return on_builder(builder, "tl_unary", tl_expr{0}, [&](const BuilderCall& c) -> tl_expr {
    if (op < TL_NEG || op > TL_CTZ) {
      c.fail(DiagCode::bad_enum, "there is no unary operation " + std::to_string(op), "use a tl_unary_op");
      return {0};
    }
    const auto x = c.expr("a", a);
    return c.failed() ? tl_expr{0} : c.give(c->unary(kUnary[op - TL_NEG], x));
  });
}

tl_expr tl_binary(tl_builder* builder, tl_binary_op op, tl_expr a, tl_expr b) {
  return on_builder(builder, "tl_binary", tl_expr{0}, [&](const BuilderCall& c) -> tl_expr {
    if (op < TL_ADD || op > TL_MULHI) {
      c.fail(DiagCode::bad_enum, "there is no binary operation " + std::to_string(op), "use a tl_binary_op");
      return {0};
    }
    const auto x = c.expr("a", a), y = c.expr("b", b);
    if (c.failed()) return {0};
    const bool exchanged = op == TL_GT || op == TL_GE;
    return c.give(c->binary(kBinary[op - TL_ADD], exchanged ? y : x, exchanged ? x : y));
  });
}

tl_expr tl_ternary(tl_builder* builder, tl_ternary_op op, tl_expr a, tl_expr b, tl_expr c) {
  return on_builder(builder, "tl_ternary", tl_expr{0}, [&](const BuilderCall& call) -> tl_expr {
    if (op < TL_FMA || op - TL_FMA >= std::size(kTernary)) {
      call.fail(DiagCode::bad_enum, "there is no ternary operation " + std::to_string(op),
                "use a tl_ternary_op");
      return {0};
    }
    const auto x = call.expr("a", a), y = call.expr("b", b), z = call.expr("c", c);
    return call.failed() ? tl_expr{0} : call.give(call->ternary(kTernary[op - TL_FMA], x, y, z));
  });
}

tl_expr tl_uniform(tl_builder* builder, tl_expr word) {
  return on_builder(builder, "tl_uniform", tl_expr{0}, [&](const BuilderCall& c) -> tl_expr {
    const auto x = c.expr("word", word);
    return c.failed() ? tl_expr{0} : c.give(c->uniform(x));
  });
}

tl_expr tl_select(tl_builder* builder, tl_expr condition, tl_expr a, tl_expr b) {
  return on_builder(builder, "tl_select", tl_expr{0}, [&](const BuilderCall& c) -> tl_expr {
    const auto cond = c.expr("condition", condition), x = c.expr("a", a), y = c.expr("b", b);
    return c.failed() ? tl_expr{0} : c.give(c->select(cond, x, y));
  });
}

tl_expr tl_cast(tl_builder* builder, tl_dtype dtype, tl_expr a) {
  return on_builder(builder, "tl_cast", tl_expr{0}, [&](const BuilderCall& c) -> tl_expr {
    const auto type = c.dtype(dtype);
    const auto x = c.expr("a", a);
    return c.failed() ? tl_expr{0} : c.give(c->cast(type, x));
  });
}

tl_expr tl_cast_by(tl_builder* builder, tl_dtype dtype, tl_expr a, uint32_t mode) {
  return on_builder(builder, "tl_cast_by", tl_expr{0}, [&](const BuilderCall& c) -> tl_expr {
    const auto type = c.dtype(dtype);
    const auto x = c.expr("a", a);
    const uint32_t rounding = mode % TL_CAST_SATURATE, end = mode / TL_CAST_SATURATE;
    if (mode == 0 || rounding > TL_CAST_UP || end > TL_CAST_OVERFLOW / TL_CAST_SATURATE) {
      c.fail(
          DiagCode::bad_enum, "there is no way to cast " + std::to_string(mode),
          "use one rounding of TL_CAST_NEAREST to TL_CAST_UP, TL_CAST_SATURATE or TL_CAST_OVERFLOW, or one "
          "of each");
      return {0};
    }
    const ir::CastMode how{static_cast<ir::CastRounding>(rounding), static_cast<ir::CastEnd>(end)};
    return c.failed() ? tl_expr{0} : c.give(c->cast_by(how, type, x));
  });
}

tl_expr tl_bitcast(tl_builder* builder, tl_dtype dtype, tl_expr a) {
  return on_builder(builder, "tl_bitcast", tl_expr{0}, [&](const BuilderCall& c) -> tl_expr {
    const auto type = c.dtype(dtype);
    const auto x = c.expr("a", a);
    return c.failed() ? tl_expr{0} : c.give(c->bitcast(type, x));
  });
}

tl_expr tl_load(tl_builder* builder, tl_buffer buffer, uint32_t rank, const tl_expr* indices) {
  return on_builder(builder, "tl_load", tl_expr{0}, [&](const BuilderCall& c) -> tl_expr {
    const auto from = c.buffer("buffer", buffer);
    const auto at = c.exprs("indices", rank, indices);
    return c.failed() ? tl_expr{0} : c.give(c->load(from, at));
  });
}

tl_dtype tl_expr_dtype(tl_builder* builder, tl_expr expr) {
  return on_builder(builder, "tl_expr_dtype", tl_dtype{0}, [&](const BuilderCall& c) -> tl_dtype {
    const auto id = c.expr("expr", expr);
    return c.failed() ? 0 : static_cast<tl_dtype>(c->type_of(id));
  });
}

}  // extern "C"
