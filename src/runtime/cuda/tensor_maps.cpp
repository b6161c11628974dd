// Tensor maps: how the copy engine is told of a tensor.
#include "runtime/cuda/driver.h"
#include "runtime/kernel_version.h"
#include "support/diag_codes.h"

namespace tilegen::runtime::cuda {

namespace {

CuTensorMapType type_of(ir::DType t) {
  switch (t) {
    case ir::DType::f16:
      return kTensorF16;
    case ir::DType::bf16:
      return kTensorBf16;
    case ir::DType::f32:
      return kTensorF32;
    case ir::DType::f64:
      return kTensorF64;
    case ir::DType::i32:
      return kTensorI32;
    case ir::DType::i64:
      return kTensorI64;
    case ir::DType::u64:
      return kTensorU64;
    default:
      return ir::dtype_bytes(t) == 1 ? kTensorU8 : ir::dtype_bytes(t) == 2 ? kTensorU16 : kTensorU32;
  }
}

CuTensorMapSwizzle swizzle_of(int bytes) {
  return bytes == 128 ? kSwizzle128 : bytes == 64 ? kSwizzle64 : bytes == 32 ? kSwizzle32 : kSwizzleNone;
}

}  // namespace

Checked Driver::takes(const driver::Artifact& artifact) const {
  if (has_tensor_maps()) return Unit{};
  for (const thread::ThreadProgram& kernel : artifact.kernels)
    if (!kernel.tensor_maps.empty())
      return Error(DiagCode::driver_absent, kernel.name,
                   "code for " + artifact.target.name +
                       " needs the driver's function cuTensorMapEncodeTiled; this one supports CUDA " +
                       version_text() + " and lacks it",
                   "update NVIDIA's driver, or compile for 'sm_90'");
  return Unit{};
}

bool Driver::encode(const thread::ThreadProgram& program, size_t index, const TensorShape& shape,
                    gpu::TensorMap* out) const {
  constexpr uint32_t kDense[TensorShape::kMaxRank] = {1, 1, 1, 1, 1};
  const thread::TensorMap& map = program.tensor_maps[index];
  uint32_t box[TensorShape::kMaxRank] = {};
  for (size_t d = 0; d < shape.rank; ++d) box[d] = static_cast<uint32_t>(map.box[d]);
  return cuda_.tensor_map(out, type_of(program.memory(map.tensor).type), static_cast<uint32_t>(shape.rank),
                          reinterpret_cast<void*>(shape.address), shape.extents, shape.strides, box, kDense,
                          kInterleaveNone, swizzle_of(map.swizzle), kPromotion128,
                          kFillZeros) == gpu::kSuccess;
}

}  // namespace tilegen::runtime::cuda
