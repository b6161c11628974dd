#include "capi/launch_arguments.h"

#include <string>

#include "capi/dlpack.h"
#include "capi/guard.h"
#include "runtime/arguments.h"
#include "support/diag_codes.h"

namespace tilegen::capi {
namespace {

using runtime::Argument;

constexpr int kMaxRank = 64;

ir::DType dtype_of(const DLDataType& t) {
  if (t.lanes != 1) return ir::DType::none;
  switch (t.code) {
    case dl::kFloat:
      return t.bits == 16   ? ir::DType::f16
             : t.bits == 32 ? ir::DType::f32
             : t.bits == 64 ? ir::DType::f64
                            : ir::DType::none;
    case dl::kBfloat:
      return t.bits == 16 ? ir::DType::bf16 : ir::DType::none;
    case dl::kInt:
      return t.bits == 8    ? ir::DType::i8
             : t.bits == 4  ? ir::DType::i4
             : t.bits == 2  ? ir::DType::i2
             : t.bits == 16 ? ir::DType::i16
             : t.bits == 32 ? ir::DType::i32
             : t.bits == 64 ? ir::DType::i64
                            : ir::DType::none;
    case dl::kUInt:
      return t.bits == 8    ? ir::DType::u8
             : t.bits == 4  ? ir::DType::u4
             : t.bits == 2  ? ir::DType::u2
             : t.bits == 16 ? ir::DType::u16
             : t.bits == 32 ? ir::DType::u32
             : t.bits == 64 ? ir::DType::u64
                            : ir::DType::none;
    case dl::kBool:
      return t.bits == 8 ? ir::DType::boolean : ir::DType::none;
    case dl::kFloat8E4m3fn:
      return t.bits == 8 ? ir::DType::e4m3 : ir::DType::none;
    case dl::kFloat8E5m2:
      return t.bits == 8 ? ir::DType::e5m2 : ir::DType::none;
    case dl::kFloat8E4m3fnuz:
      return t.bits == 8 ? ir::DType::e4m3fnuz : ir::DType::none;
    case dl::kFloat8E5m2fnuz:
      return t.bits == 8 ? ir::DType::e5m2fnuz : ir::DType::none;
    case dl::kFloat8E8m0fnu:
      return t.bits == 8 ? ir::DType::e8m0 : ir::DType::none;
    case dl::kFloat4E2m1fn:
      return t.bits == 4 ? ir::DType::e2m1 : ir::DType::none;
  }
  return ir::DType::none;
}

std::string argument_text(size_t index) { return "argument " + std::to_string(index); }

// Whether a description can be read at all.
bool sane(const DLTensor* t) {
  return t && t->ndim >= 0 && t->ndim <= kMaxRank && (t->ndim == 0 || t->shape);
}

Argument describe(const DLTensor& t) {
  const auto rank = static_cast<size_t>(t.ndim);
  Argument a;
  a.kind = Argument::Kind::tensor;
  a.bits = reinterpret_cast<uint64_t>(t.data);
  if (t.data) a.bits += t.byte_offset;
  a.type = dtype_of(t.dtype);
  a.shape = {t.shape, rank};
  if (t.strides) a.strides = {t.strides, rank};
  a.place = {t.device.device_type, t.device.device_id};
  return a;
}

// Of TL_ARG_AUTO, TL_ARG_POINTER, TL_ARG_I64 and TL_ARG_F64.
constexpr Argument::Kind kValueKinds[] = {Argument::Kind::automatic, Argument::Kind::pointer,
                                          Argument::Kind::integer, Argument::Kind::floating};
static_assert(TL_ARG_AUTO + 1 == TL_ARG_POINTER && TL_ARG_POINTER + 1 == TL_ARG_I64 &&
              TL_ARG_I64 + 1 == TL_ARG_F64);

// False: `refusal` says why. Inlined: it is most of what a launch converts.
[[gnu::always_inline]] inline bool convert(const tl_arg& arg, Argument& a) {
  if (arg.dtype != 0 && !ir::dtype_valid(arg.dtype)) return false;
  if (arg.kind == TL_ARG_TENSOR) {
    const auto* t = reinterpret_cast<const DLTensor*>(arg.payload);
    if (!sane(t)) return false;
    a = describe(*t);
    return arg.dtype == 0 || a.type == static_cast<ir::DType>(arg.dtype);
  }
  if (arg.kind < TL_ARG_AUTO || arg.kind > TL_ARG_F64) return false;
  a.kind = kValueKinds[arg.kind - TL_ARG_AUTO];
  a.bits = arg.payload;
  a.type = static_cast<ir::DType>(arg.dtype);
  return true;
}

[[gnu::cold]] Error refusal(const DLTensor* t, size_t index) {
  if (!t) return null_argument(argument_text(index));
  if (t->ndim < 0 || t->ndim > kMaxRank)
    return Error(DiagCode::launch_rank, "",
                 argument_text(index) + " has " + std::to_string(t->ndim) + " dimensions",
                 "the description may be corrupt");
  return null_argument("the shape of " + argument_text(index));
}

[[gnu::cold]] Error refusal(const tl_arg& arg, size_t index) {
  if (arg.dtype != 0 && !ir::dtype_valid(arg.dtype))
    return Error(DiagCode::bad_enum, "", argument_text(index) + " has no dtype " + std::to_string(arg.dtype),
                 "use a tl_dtype, or 0");
  if (arg.kind != TL_ARG_TENSOR)
    return Error(DiagCode::launch_kind, "", argument_text(index) + " has no kind " + std::to_string(arg.kind),
                 "use a tl_arg_kind");
  const auto* t = reinterpret_cast<const DLTensor*>(arg.payload);
  if (!sane(t)) return refusal(t, index);
  return Error(DiagCode::launch_dtype, "",
               argument_text(index) + " is said to be " + ir::dtype_name(static_cast<ir::DType>(arg.dtype)) +
                   ", its tensor is not",
               "set dtype to that of the tensor, or to 0");
}

}  // namespace

[[gnu::cold]] Error absurd_argument_array(const void* array, size_t count, const char* name) {
  if (!array) return null_argument(name);
  return Error(DiagCode::launch_arity, "", std::to_string(count) + " arguments were given",
               "pass one argument per parameter");
}

[[gnu::hot]] bool convert_arguments(const tl_arg* args, std::span<Argument> out) {
  for (size_t i = 0; i < out.size(); ++i)
    if (!convert(args[i], out[i])) return false;
  return true;
}

[[gnu::hot]] bool convert_tensors(const DLTensor* const* tensors, std::span<Argument> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    if (!sane(tensors[i])) return false;
    out[i] = describe(*tensors[i]);
  }
  return true;
}

[[gnu::cold]] Error unconverted(std::span<const tl_arg> args) {
  Argument converted;
  size_t i = 0;
  while (i + 1 < args.size() && convert(args[i], converted)) ++i;
  return refusal(args[i], i);
}

[[gnu::cold]] Error unconverted(std::span<const DLTensor* const> tensors) {
  size_t i = 0;
  while (i + 1 < tensors.size() && sane(tensors[i])) ++i;
  return refusal(tensors[i], i);
}

}  // namespace tilegen::capi
