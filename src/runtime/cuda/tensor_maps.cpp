#include "runtime/cuda/tensor_maps.h"

#include <array>
#include <cstring>

namespace tilegen::runtime::cuda {
namespace {

constexpr size_t kAlignment = alignof(CuTensorMap);

size_t plain_slots(const thread::ThreadProgram& program) { return program.params.size() + 2 * program.divisors.size(); }

size_t maps_begin(const thread::ThreadProgram& program) {
  return (plain_slots(program) * sizeof(uint64_t) + kAlignment - 1) / kAlignment * kAlignment;
}

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
    default:
      return ir::dtype_bytes(t) == 1 ? kTensorU8 : ir::dtype_bytes(t) == 2 ? kTensorU16 : kTensorU32;
  }
}

CuTensorMapSwizzle swizzle_of(int bytes) {
  return bytes == 128 ? kSwizzle128 : bytes == 64 ? kSwizzle64 : bytes == 32 ? kSwizzle32 : kSwizzleNone;
}

bool encode(const Driver& driver, const thread::ThreadProgram& program, size_t index,
            const TensorShape& shape, CuTensorMap* out) {
  constexpr uint32_t kDense[TensorShape::kMaxRank] = {1, 1, 1, 1, 1};
  const thread::TensorMap& map = program.tensor_maps[index];
  uint32_t box[TensorShape::kMaxRank] = {};
  for (size_t d = 0; d < shape.rank; ++d) box[d] = static_cast<uint32_t>(map.box[d]);
  return driver.api().tensor_map(out, type_of(program.memory(map.tensor).type),
                                 static_cast<uint32_t>(shape.rank), reinterpret_cast<void*>(shape.address),
                                 shape.extents, shape.strides, box, kDense, kInterleaveNone,
                                 swizzle_of(map.swizzle), kPromotion128, kFillZeros) == kCuSuccess;
}

// What a thread's last launches passed. Larger blocks are made anew each time.
struct Remembered {
  static constexpr size_t kBytes = 768;
  uint64_t form = 0;  // no form's
  alignas(kAlignment) std::byte block[kBytes];
};
constexpr size_t kRemembered = 16;

Remembered& place_of(const KernelForm& form, std::span<const uint64_t> slots) {
  thread_local std::array<Remembered, kRemembered> last;
  uint64_t hash = form.id();
  for (uint64_t s : slots) hash = (hash ^ s) * 0x9e3779b97f4a7c15u;
  return last[hash >> 60];
}
static_assert(kRemembered == 16);  // as many as the hash has values

bool fill(const Driver& driver, const KernelForm& form, std::span<const uint64_t> slots, std::byte* block) {
  constexpr size_t kMostMaps = kMaxParameterBytes / sizeof(CuTensorMap);
  TensorShape shapes[kMostMaps];
  const thread::ThreadProgram& program = form.program();
  const size_t count = program.tensor_maps.size();
  if (count > kMostMaps || !form.shapes(slots, {shapes, count})) return false;
  std::memcpy(block, slots.data(), slots.size_bytes());
  if (!program.divisors.empty())
    form.divisors(slots, {reinterpret_cast<uint64_t*>(block) + slots.size(), 2 * program.divisors.size()});
  auto* maps = reinterpret_cast<CuTensorMap*>(block + maps_begin(program));
  for (size_t i = 0; i < count; ++i)
    if (!encode(driver, program, i, shapes[i], maps + i)) return false;
  return true;
}

}  // namespace

size_t parameter_bytes(const thread::ThreadProgram& program) {
  const size_t maps = program.tensor_maps.size();
  return maps == 0 ? plain_slots(program) * sizeof(uint64_t) : maps_begin(program) + maps * sizeof(CuTensorMap);
}

void point_to_parameters(const thread::ThreadProgram& program, const void* block, void** pointers) {
  auto* bytes = static_cast<std::byte*>(const_cast<void*>(block));
  for (size_t i = 0; i < plain_slots(program); ++i) *pointers++ = bytes + i * sizeof(uint64_t);
  std::byte* maps = bytes + maps_begin(program);
  for (size_t i = 0; i < program.tensor_maps.size(); ++i) *pointers++ = maps + i * sizeof(CuTensorMap);
}

const void* make_parameters(const Driver& driver, const KernelForm& form,
                                 std::span<const uint64_t> slots, ParameterBlock& room) {
  const size_t bytes = parameter_bytes(form.program());
  if (bytes > Remembered::kBytes) return fill(driver, form, slots, room.bytes) ? room.bytes : nullptr;
  Remembered& known = place_of(form, slots);
  if (known.form == form.id() && std::memcmp(known.block, slots.data(), slots.size_bytes()) == 0)
    return known.block;
  known.form = 0;
  if (!fill(driver, form, slots, known.block)) return nullptr;
  known.form = form.id();
  return known.block;
}

}  // namespace tilegen::runtime::cuda
