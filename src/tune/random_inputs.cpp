#include "tune/random_inputs.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/device_memory.h"
#include "runtime/devices.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::tune {
namespace {

using runtime::Argument;

constexpr int64_t kPatternElements = (1 << 20) + 7;  // repeated; no tile's rows repeat with it

uint64_t next_random(uint64_t& state) {  // splitmix64
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

uint64_t random_element(ir::DType type, uint64_t bits) {
  if (ir::is_float(type))
    return ir::float_to_bits(type, static_cast<double>(bits >> 11) * 0x1p-52 - 1 + 0x1p-53);
  if (ir::is_bool(type)) return bits >> 63;
  return (bits >> 60) - (type == ir::DType::i8 || type == ir::DType::i16 ? 8 : 0);
}

std::vector<char> pattern(ir::DType type, int64_t elements, uint64_t seed) {
  const auto size = static_cast<size_t>(ir::dtype_bytes(type));
  std::vector<char> out(static_cast<size_t>(std::min(elements, kPatternElements)) * size);
  for (size_t at = 0; at < out.size(); at += size) {
    const uint64_t element = random_element(type, next_random(seed));
    std::memcpy(out.data() + at, &element, size);  // the low bytes: this is a little-endian library
  }
  return out;
}
static_assert(std::endian::native == std::endian::little);

// From the first element to the last.
Expected<int64_t> tensor_bytes(const ir::Buffer& b, const cost::SizedProgram& sizes) {
  const auto refuse = [&](const char* what) {
    return Error(DiagCode::launch_shape, b.name, "tensor '" + b.name + "' " + what + " for these sizes",
                 "give other sizes by the option 'sizes'", b.location);
  };
  std::optional<int64_t> last = 0, compact = 1;
  for (size_t d = b.shape.size(); d-- > 0;) {
    const auto extent = sizes.value(b.shape[d]);
    const auto stride = b.strides.empty() ? compact : sizes.value(b.strides[d]);
    if (!extent || !stride || *extent < 0) return refuse("has no shape");
    if (*extent == 0) return 0;
    const auto reach = checked_mul(*extent - 1, *stride);
    last = reach ? checked_add(*last, *reach) : std::nullopt;
    compact = checked_mul(*stride, *extent);
    if (!last || !compact) return refuse("overflows 64 bits");
  }
  const auto bytes = checked_mul(*last + 1, ir::dtype_bytes(b.type));
  if (!bytes) return refuse("overflows 64 bits");
  return *bytes;
}

// What the last cache of the device holds.
int64_t cache_bytes(const target::Target& target) {
  if (target.has_block_threads()) return target.l2_bytes;
  constexpr int64_t kUsual = 32 << 20;
#ifdef _SC_LEVEL3_CACHE_SIZE
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (bytes > 0) return bytes;
#endif
  return kUsual;
}

int64_t memory_bytes(const runtime::DeviceInfo& device) {
  if (device.kind != runtime::DeviceKind::host) return device.memory_bytes;
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

Argument scalar_argument(const ir::Var& v, const cost::SizedProgram& sizes, ir::VarId id) {
  Argument a;
  a.kind = ir::is_float(v.type) ? Argument::Kind::floating : Argument::Kind::integer;
  a.bits = ir::is_float(v.type) ? std::bit_cast<uint64_t>(RandomInputs::kScalar)
                                : static_cast<uint64_t>(sizes.of(id).value_or(RandomInputs::kIntegerScalar));
  return a;
}

Error sizes_differ(const ir::Program& program, const std::string& dim) {
  return Error(
      DiagCode::launch_fact, program.name,
      "the size of dim '" + dim + "' is not given, and its facts allow configurations different ones",
      "give it by the option 'sizes', as \"" + dim + "=4096\"");
}

}  // namespace

RandomInputs::Memory::Memory(Memory&& other) noexcept
    : device(other.device), address(std::exchange(other.address, nullptr)) {}

RandomInputs::Memory::~Memory() {
  if (!address) return;
  try {
    (void)runtime::free_memory(device, address);
  } catch (...) {  // no memory for the words of a driver that failed
  }
}

Checked RandomInputs::fill(size_t tensor, void* memory) const {
  const ir::DType type = types_[tensor];
  const std::vector<char> data = pattern(type, bytes_[tensor] / ir::dtype_bytes(type), 1 + tensor);
  const auto bytes = static_cast<size_t>(bytes_[tensor]);
  for (size_t at = 0; at < bytes; at += data.size()) {
    Checked ok = runtime::copy_memory(device_, static_cast<char*>(memory) + at, data.data(),
                                      std::min(data.size(), bytes - at), nullptr);
    if (!ok) return ok;
  }
  return Unit{};
}

Checked RandomInputs::allocate(size_t device, size_t sets) {
  device_ = device;
  for (size_t set = 0; set < sets; ++set) {
    std::vector<Memory> pieces;
    pieces.reserve(bytes_.size());
    for (size_t t = 0; t < bytes_.size(); ++t) {
      auto memory = runtime::allocate_memory(device, static_cast<size_t>(bytes_[t]));
      if (!memory && set > 0) return Unit{};  // those that there are do
      if (!memory) return memory.error();
      pieces.emplace_back(device, *memory);
      if (Checked ok = fill(t, *memory); !ok) return ok;
    }
    sets_.push_back(std::move(pieces));
  }
  return Unit{};
}

Expected<std::unique_ptr<RandomInputs>> RandomInputs::make(Programs programs, const target::Target& target,
                                                           const cost::Sizes& sizes, size_t device) {
  auto made = std::make_unique<RandomInputs>();
  std::vector<std::optional<int64_t>> dims;
  for (const auto& program : programs) {
    const cost::SizedProgram sized(*program, sizes);
    std::vector<Argument> arguments;
    size_t tensor = 0, dim = 0;
    for (const ir::Param& p : program->params) {
      if (!program->takes_argument(p)) continue;
      if (p.kind == ir::Param::Kind::scalar) {
        arguments.push_back(scalar_argument(program->var(p.var), sized, p.var));
        continue;
      }
      Argument a;
      if (p.kind == ir::Param::Kind::dim) {
        a.kind = Argument::Kind::integer;
        a.bits = static_cast<uint64_t>(*sized.of(p.var));
        if (dim == dims.size()) dims.push_back(sized.of(p.var));
        if (dims[dim++] != sized.of(p.var)) return sizes_differ(*program, program->var(p.var).name);
      } else {
        const ir::Buffer& b = program->buffer(p.buffer);
        auto bytes = tensor_bytes(b, sized);
        if (!bytes) return bytes.error();
        a.kind = Argument::Kind::pointer;
        if (tensor == made->bytes_.size()) made->bytes_.push_back(0), made->types_.push_back(b.type);
        made->bytes_[tensor] = std::max(made->bytes_[tensor], *bytes);
        ++tensor;
      }
      arguments.push_back(a);
    }
    made->arguments_.push_back(std::move(arguments));
  }
  int64_t all = 0;
  for (int64_t bytes : made->bytes_)
    if (__builtin_add_overflow(all, bytes, &all)) all = INT64_MAX;
  const int64_t room = memory_bytes(runtime::devices()[device]) / 2;
  const int64_t wanted =
      std::min<int64_t>(kMaxSets, ceil_div(2 * cache_bytes(target), std::max<int64_t>(all, 1)));
  const int64_t sets = std::max<int64_t>(1, std::min(wanted, room / std::max<int64_t>(all, 1)));
  if (Checked ok = made->allocate(device, static_cast<size_t>(sets)); !ok) return ok.error();
  return made;
}

std::span<const Argument> RandomInputs::arguments(size_t number, size_t set) {
  size_t tensor = 0;
  for (Argument& a : arguments_[number])
    if (a.kind == Argument::Kind::pointer) a.bits = reinterpret_cast<uintptr_t>(sets_[set][tensor++].address);
  return arguments_[number];
}

}  // namespace tilegen::tune
