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
  }
  return ir::DType::none;
}

bool host_reaches(int32_t device_type) {
  return device_type == dl::kCpu || device_type == dl::kCudaHost || device_type == dl::kRocmHost ||
         device_type == dl::kCudaManaged;
}

std::string device_text(const DLDevice& d) {
  const std::string kind = d.device_type == dl::kCuda   ? "cuda"
                           : d.device_type == dl::kRocm ? "rocm"
                                                        : "device type " + std::to_string(d.device_type);
  return kind + ":" + std::to_string(d.device_id);
}

std::string argument_text(size_t index) { return "argument " + std::to_string(index); }

Expected<Argument> describe(const DLTensor* t, size_t index) {
  if (!t) return null_argument(argument_text(index));
  if (t->ndim < 0 || t->ndim > kMaxRank)
    return Error(DiagCode::launch_rank, "",
                 argument_text(index) + " has " + std::to_string(t->ndim) + " dimensions",
                 "the description may be corrupt");
  if (t->ndim > 0 && !t->shape) return null_argument("the shape of " + argument_text(index));
  Argument a;
  a.kind = Argument::Kind::tensor;
  a.bits = reinterpret_cast<uint64_t>(t->data);
  if (t->data) a.bits += t->byte_offset;
  a.type = dtype_of(t->dtype);
  a.shape.assign(t->shape, t->shape + t->ndim);
  if (t->strides) a.strides.assign(t->strides, t->strides + t->ndim);
  a.on_host = host_reaches(t->device.device_type);
  a.device = device_text(t->device);
  return a;
}

Expected<Argument> convert(const tl_arg& arg, size_t index) {
  if (arg.dtype != 0 && !ir::dtype_valid(arg.dtype))
    return Error(DiagCode::bad_enum, "", argument_text(index) + " has no dtype " + std::to_string(arg.dtype),
                 "use a tl_dtype, or 0");
  Argument a;
  a.bits = arg.payload;
  a.type = static_cast<ir::DType>(arg.dtype);
  switch (arg.kind) {
    case TL_ARG_AUTO:
      a.kind = Argument::Kind::automatic;
      return a;
    case TL_ARG_POINTER:
      a.kind = Argument::Kind::pointer;
      return a;
    case TL_ARG_I64:
      a.kind = Argument::Kind::integer;
      return a;
    case TL_ARG_F64:
      a.kind = Argument::Kind::floating;
      return a;
    case TL_ARG_TENSOR: {
      auto described = describe(reinterpret_cast<const DLTensor*>(arg.payload), index);
      if (described && arg.dtype != 0 && described->type != a.type)
        return Error(
            DiagCode::launch_dtype, "",
            argument_text(index) + " is said to be " + ir::dtype_name(a.type) + ", its tensor is not",
            "set dtype to that of the tensor, or to 0");
      return described;
    }
  }
  return Error(DiagCode::launch_kind, "", argument_text(index) + " has no kind " + std::to_string(arg.kind),
               "use a tl_arg_kind");
}

Checked countable(size_t count) {
  if (count <= kMaxArguments) return Unit{};
  return Error(DiagCode::launch_arity, "", std::to_string(count) + " arguments were given",
               "pass one argument per parameter");
}

}  // namespace

Expected<std::vector<uint64_t>> bind_launch_arguments(const ir::Program& program, const tl_arg* args,
                                                      size_t count) {
  if (count > 0 && !args) return null_argument("args");
  if (Checked sane = countable(count); !sane) return sane.error();
  std::vector<Argument> arguments;
  for (size_t i = 0; i < count; ++i) {
    auto a = convert(args[i], i);
    if (!a) return a.error();
    arguments.push_back(std::move(*a));
  }
  return runtime::bind_arguments(program, arguments);
}

Expected<std::vector<uint64_t>> bind_tensors(const ir::Program& program, const DLTensor* const* tensors,
                                             size_t count) {
  if (count > 0 && !tensors) return null_argument("tensors");
  if (Checked sane = countable(count); !sane) return sane.error();
  std::vector<Argument> arguments;
  for (size_t i = 0; i < count; ++i) {
    auto a = describe(tensors[i], i);
    if (!a) return a.error();
    arguments.push_back(std::move(*a));
  }
  return runtime::bind_arguments(program, arguments);
}

}  // namespace tilegen::capi
