#include "capi/launch_arguments.h"

#include <string>

#include "capi/dlpack.h"
#include "capi/guard.h"
#include "runtime/arguments.h"

namespace tilegen::capi {
namespace {

using runtime::Argument;

constexpr size_t kMaxArguments = 1u << 16;
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
             : t.bits == 32 ? ir::DType::i32
             : t.bits == 64 ? ir::DType::i64
                            : ir::DType::none;
    case dl::kUInt:
      return t.bits == 8 ? ir::DType::u8 : ir::DType::none;
    case dl::kBool:
      return t.bits == 8 ? ir::DType::boolean : ir::DType::none;
    case dl::kFloat8E4m3fn:
      return t.bits == 8 ? ir::DType::e4m3 : ir::DType::none;
    case dl::kFloat8E5m2:
      return t.bits == 8 ? ir::DType::e5m2 : ir::DType::none;
  }
  return ir::DType::none;
}

std::string argument_text(size_t index) { return "argument " + std::to_string(index); }

Checked describe(const DLTensor* t, size_t index, Argument& a) {
  if (!t) return null_argument(argument_text(index));
  if (t->ndim < 0 || t->ndim > kMaxRank)
    return Error(DiagCode::launch_rank, "",
                 argument_text(index) + " has " + std::to_string(t->ndim) + " dimensions",
                 "the description may be corrupt");
  if (t->ndim > 0 && !t->shape) return null_argument("the shape of " + argument_text(index));
  a.kind = Argument::Kind::tensor;
  a.bits = reinterpret_cast<uint64_t>(t->data);
  if (t->data) a.bits += t->byte_offset;
  a.type = dtype_of(t->dtype);
  a.shape = {t->shape, static_cast<size_t>(t->ndim)};
  if (t->strides) a.strides = {t->strides, static_cast<size_t>(t->ndim)};
  a.place = {t->device.device_type, t->device.device_id};
  return Unit{};
}

Checked convert(const tl_arg& arg, size_t index, Argument& a) {
  if (arg.dtype != 0 && !ir::dtype_valid(arg.dtype))
    return Error(DiagCode::bad_enum, "", argument_text(index) + " has no dtype " + std::to_string(arg.dtype),
                 "use a tl_dtype, or 0");
  a.bits = arg.payload;
  a.type = static_cast<ir::DType>(arg.dtype);
  switch (arg.kind) {
    case TL_ARG_AUTO:
      a.kind = Argument::Kind::automatic;
      return Unit{};
    case TL_ARG_POINTER:
      a.kind = Argument::Kind::pointer;
      return Unit{};
    case TL_ARG_I64:
      a.kind = Argument::Kind::integer;
      return Unit{};
    case TL_ARG_F64:
      a.kind = Argument::Kind::floating;
      return Unit{};
    case TL_ARG_TENSOR: {
      const ir::DType said = a.type;
      Checked described = describe(reinterpret_cast<const DLTensor*>(arg.payload), index, a);
      if (described && arg.dtype != 0 && a.type != said)
        return Error(DiagCode::launch_dtype, "",
                     argument_text(index) + " is said to be " + ir::dtype_name(said) + ", its tensor is not",
                     "set dtype to that of the tensor, or to 0");
      return described;
    }
  }
  return Error(DiagCode::launch_kind, "", argument_text(index) + " has no kind " + std::to_string(arg.kind),
               "use a tl_arg_kind");
}

}  // namespace

Checked check_argument_array(const void* array, size_t count, const char* name) {
  if (count > 0 && !array) return null_argument(name);
  if (count <= kMaxArguments) return Unit{};
  return Error(DiagCode::launch_arity, "", std::to_string(count) + " arguments were given",
               "pass one argument per parameter");
}

Checked convert_arguments(const tl_arg* args, std::span<Argument> out) {
  for (size_t i = 0; i < out.size(); ++i)
    if (Checked ok = convert(args[i], i, out[i]); !ok) return ok;
  return Unit{};
}

Checked convert_tensors(const DLTensor* const* tensors, std::span<Argument> out) {
  for (size_t i = 0; i < out.size(); ++i)
    if (Checked ok = describe(tensors[i], i, out[i]); !ok) return ok;
  return Unit{};
}

}  // namespace tilegen::capi
