#include "runtime/gpu/launch_parameters.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>

#include "runtime/inline_array.h"
#include "runtime/thread_end.h"

namespace tilegen::runtime::gpu {
namespace {

constexpr size_t kAlignment = alignof(TensorMap);

size_t plain_slots(const thread::ThreadProgram& program) {
  return program.params.size() + 2 * program.divisors.size();
}

constexpr size_t maps_begin(size_t plain_slots) {
  return (plain_slots * sizeof(uint64_t) + kAlignment - 1) / kAlignment * kAlignment;
}

// What a thread's last launches passed, two at each place. Larger blocks are made anew each time.
struct Remembered {
  static constexpr size_t kBytes = 768;
  alignas(kAlignment) std::byte block[kBytes] = {};  // begins with the slots
  uint64_t version = 0;                              // no version's

  bool is(const KernelVersion& other, std::span<const uint64_t> slots) const {
    return version == other.id() &&
           std::equal(slots.begin(), slots.end(), reinterpret_cast<const uint64_t*>(block));
  }
};
constexpr size_t kPlaces = 8;

struct ThreadMemory {
  std::array<std::array<Remembered, 2>, kPlaces> last{};
  std::array<uint8_t, kPlaces> older{};  // of the two, the one to forget next
  const Remembered* latest = nullptr;
  alignas(kAlignment) std::byte large[kMaxParameterBytes] = {};
};

const ThreadEnd g_thread_end([](void* memory) { delete static_cast<ThreadMemory*>(memory); });

ThreadMemory* make_thread_memory() {
  auto memory = std::make_unique<ThreadMemory>();
  if (!g_thread_end.watch(memory.get())) throw std::bad_alloc();
  return memory.release();
}

size_t place_of(const KernelVersion& version, std::span<const uint64_t> slots) {
  uint64_t hash = version.id();
  for (uint64_t s : slots) hash = (hash ^ s) * 0x9e3779b97f4a7c15u;
  return hash >> 61;
}
static_assert(kPlaces == 8);  // as many as the hash has values

bool fill(const Driver& driver, const KernelVersion& version, std::span<const uint64_t> slots,
          std::byte* block) {
  constexpr size_t kMaxMaps = kMaxParameterBytes / sizeof(TensorMap);
  const thread::ThreadProgram& program = version.program();
  const size_t count = program.tensor_maps.size();
  if (count > kMaxMaps) return false;
  InlineArray<TensorShape, kMaxMaps> shapes(count);
  if (!version.shapes(slots, shapes)) return false;
  std::memcpy(block, slots.data(), slots.size_bytes());
  if (!program.divisors.empty())
    version.divisors(slots, {reinterpret_cast<uint64_t*>(block) + slots.size(), 2 * program.divisors.size()});
  auto* maps = reinterpret_cast<TensorMap*>(block + maps_begin(plain_slots(program)));
  for (size_t i = 0; i < count; ++i)
    if (!driver.encode(program, i, shapes[i], maps + i)) return false;
  return true;
}

}  // namespace

size_t parameter_bytes(const thread::ThreadProgram& program) {
  const size_t maps = program.tensor_maps.size();
  const size_t bytes = maps == 0 ? plain_slots(program) * sizeof(uint64_t)
                                 : maps_begin(plain_slots(program)) + maps * sizeof(TensorMap);
  return bytes + (program.dynamic_tiles ? sizeof(Pointer) : 0);
}

void** point_to_parameters(const KernelVersion::Traits& traits, const void* block, void** pointers) {
  auto* bytes = static_cast<std::byte*>(const_cast<void*>(block));
  for (size_t i = 0; i < traits.plain_slots; ++i) *pointers++ = bytes + i * sizeof(uint64_t);
  std::byte* maps = bytes + maps_begin(traits.plain_slots);
  for (size_t i = 0; i < traits.maps; ++i) *pointers++ = maps + i * sizeof(TensorMap);
  return pointers;
}

[[gnu::hot]] const void* make_parameters(const Driver& driver, const KernelVersion& version,
                                         std::span<const uint64_t> slots) {
  // A pointer, so that the library's thread-local memory is small enough to be there before it is asked for.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local ThreadMemory* kept = nullptr;
  if (!kept) [[unlikely]]
    kept = make_thread_memory();
  ThreadMemory& memory = *kept;
  if (memory.latest && memory.latest->is(version, slots)) return memory.latest->block;
  if (parameter_bytes(version.program()) > Remembered::kBytes)
    return fill(driver, version, slots, memory.large) ? memory.large : nullptr;
  const size_t place = place_of(version, slots);
  std::array<Remembered, 2>& known = memory.last[place];
  const size_t found = known[0].is(version, slots)   ? 0
                       : known[1].is(version, slots) ? 1
                                                     : memory.older[place];
  memory.older[place] = static_cast<uint8_t>(1 - found);
  Remembered& taken = known[found];
  if (!taken.is(version, slots)) {
    taken.version = 0;
    if (!fill(driver, version, slots, taken.block)) return nullptr;
    taken.version = version.id();
  }
  memory.latest = &taken;
  return taken.block;
}

}  // namespace tilegen::runtime::gpu
