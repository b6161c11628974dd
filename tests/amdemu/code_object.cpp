#include "code_object.h"

#include <algorithm>

#include "machine.h"

namespace tilegen::amdemu {

namespace {

// Regions of memory: the code object, arguments, the dispatch packet, then what the caller brings, a gap
// between each two.
constexpr uint64_t kCode = 1, kArguments = 3, kPacket = 5, kFirstMemory = 16;
constexpr uint64_t address_of(uint64_t region) { return region << 32; }
constexpr uint32_t kMaxLds = 64 << 10;

void add_operations() {
  [[maybe_unused]] static const bool once = [] {
    add_scalar_operations();
    add_scalar_control();
    add_float_operations();
    add_integer_operations();
    add_lane_operations();
    add_division_operations();
    add_packed_operations();
    return true;
  }();
}

void set_region(Machine& machine, uint64_t number, std::string name, const void* data, size_t bytes,
                bool writable) {
  if (machine.regions.size() <= number) machine.regions.resize(number + 1);
  auto region = std::make_unique<Region>();
  region->name = std::move(name);
  region->size = bytes;
  region->writable = writable;
  region->bytes.resize((bytes + 3) / 4 * 4 + 16);
  if (bytes) std::memcpy(region->bytes.data(), data, bytes);
  machine.regions[number] = std::move(region);
}

// "Kernel argument segment": the caller's slots, and the runtime's own arguments.
std::vector<std::byte> argument_segment(const KernelFacts& kernel, std::span<const Argument> arguments,
                                        const LaunchOptions& o) {
  std::vector<std::byte> bytes(kernel.argument_bytes);
  size_t next = 0;
  for (const KernelFacts::Field& f : kernel.arguments) {
    uint64_t value = 0;
    if (!f.kind.starts_with("hidden_")) {
      if (next >= arguments.size()) fail("the kernel takes more arguments than %zu", arguments.size());
      const Argument& a = arguments[next++];
      value = a.memory < 0 ? a.bits : address_of(kFirstMemory + 2 * static_cast<uint64_t>(a.memory)) + a.bits;
    } else if (f.kind.starts_with("hidden_block_count_")) {
      value = o.grid[static_cast<size_t>(f.kind.back() - 'x')];
    } else if (f.kind.starts_with("hidden_group_size_")) {
      value = o.block[static_cast<size_t>(f.kind.back() - 'x')];
    } else if (f.kind == "hidden_grid_dims") {
      value = o.grid[2] > 1 ? 3 : o.grid[1] > 1 ? 2 : 1;
    } else if (f.kind == "hidden_private_base") {
      value = kPrivateAperture;
    } else if (f.kind == "hidden_shared_base") {
      value = kSharedAperture;
    }
    if (f.offset + f.size > bytes.size()) fail("an argument lies behind the segment");
    std::memcpy(bytes.data() + f.offset, &value, std::min<size_t>(f.size, sizeof value));
  }
  if (next != arguments.size()) fail("the kernel takes %zu arguments, %zu are given", next, arguments.size());
  return bytes;
}

// "hsa_kernel_dispatch_packet"
std::vector<std::byte> dispatch_packet(const KernelFacts& kernel, const LaunchOptions& o) {
  std::vector<std::byte> packet(64);
  const auto put = [&](size_t at, auto value) { std::memcpy(packet.data() + at, &value, sizeof value); };
  put(2, uint16_t{3});
  for (size_t d = 0; d < 3; ++d) {
    put(4 + 2 * d, static_cast<uint16_t>(o.block[d]));
    put(12 + 4 * d, o.grid[d] * o.block[d]);
  }
  put(24, kernel.scratch_bytes);
  put(28, kernel.lds_bytes);
  put(40, address_of(kArguments));
  return packet;
}

// What the code names against what the descriptor grants.
void check_registers(const Machine& machine, const std::string& name, const KernelFacts& kernel) {
  uint32_t vectors = 0, accumulators = 0;
  for (const Instruction& in : machine.code) {
    const uint64_t at = in.address - address_of(kCode);
    if (at < kernel.entry || at >= kernel.entry + kernel.code_bytes) continue;
    for (int i = 0; i < in.operand_count; ++i) {
      if (in.operands[i].kind != OperandKind::vector) continue;
      const uint32_t end = in.operands[i].first + uint32_t{in.operands[i].registers};
      (end > 256 ? accumulators : vectors) =
          std::max(end > 256 ? accumulators : vectors, end > 256 ? end - 256 : end);
    }
  }
  if (vectors > std::min(kernel.first_agpr, kernel.vgprs) ||
      accumulators > kernel.vgprs - std::min(kernel.vgprs, kernel.first_agpr))
    fail("'%s' names %u VGPRs and %u AGPRs, its descriptor grants %u, AGPRs from %u on", name.c_str(),
         vectors, accumulators, kernel.vgprs, kernel.first_agpr);
}

}  // namespace

struct CodeObject::Machine : amdemu::Machine {
  LoadedObject object;
};

CodeObject::CodeObject(std::string_view bytes) : machine_(std::make_unique<Machine>()) {
  add_operations();
  Machine& m = *machine_;
  m.object = read_code_object(bytes);
  cpu_ = m.object.cpu;
  kernels_ = m.object.kernels;
  m.gfx90a = cpu_ == "gfx90a";
  set_region(m, kCode, "the code object", m.object.image.data(), m.object.image.size(), false);
  const std::string_view code =
      std::string_view(m.object.image).substr(m.object.code_begin, m.object.code_end - m.object.code_begin);
  load_code(m, disassemble(code, address_of(kCode) + m.object.code_begin, cpu_));
}

CodeObject::~CodeObject() = default;

std::vector<std::string> CodeObject::unknown() const {
  std::vector<std::string> all;
  for (const Instruction& in : machine_->code) {
    const uint64_t at = in.address - address_of(kCode);
    const bool reached = std::any_of(kernels_.begin(), kernels_.end(), [&](const auto& k) {
      return at >= k.second.entry && at < k.second.entry + k.second.code_bytes;
    });
    if (reached && in.run == unknown_instruction) all.push_back(in.text);
  }
  return all;
}

std::string CodeObject::listing() const {
  std::string text;
  for (const Instruction& in : machine_->code) text += in.text + "\n";
  return text;
}

LaunchResult CodeObject::launch(const std::string& name, std::span<const Memory> memories,
                                std::span<const Argument> arguments, const LaunchOptions& o) {
  Machine& m = *machine_;
  LaunchResult result;
  try {
    const auto found = kernels_.find(name);
    if (found == kernels_.end()) fail("there is no kernel '%s'", name.c_str());
    const KernelFacts& kernel = found->second;
    const uint64_t threads = uint64_t{o.block[0]} * o.block[1] * o.block[2];
    if (threads > kernel.most_threads)
      fail("a block of %llu threads, '%s' was made for %u", static_cast<unsigned long long>(threads),
           name.c_str(), kernel.most_threads);
    if (kernel.lds_bytes > kMaxLds) fail("%u bytes of LDS", kernel.lds_bytes);
    check_registers(m, name, kernel);
    for (size_t i = 0; i < memories.size(); ++i)
      set_region(m, kFirstMemory + 2 * i, memories[i].name, memories[i].bytes.data(),
                 memories[i].bytes.size(), memories[i].writable);
    const std::vector<std::byte> segment = argument_segment(kernel, arguments, o),
                                 packet = dispatch_packet(kernel, o);
    set_region(m, kArguments, "the arguments", segment.data(), segment.size(), false);
    set_region(m, kPacket, "the dispatch packet", packet.data(), packet.size(), false);
    m.lazy = m.strict = o.strict;
    m.report_unwritten = o.report_unwritten;
    m.most_instructions = o.most_instructions;
    m.executed = m.misaligned = 0;
    m.warnings.clear(), m.warned.clear();
    m.profile.assign(m.mnemonics.size() + 1, 0);
    LaunchState l;
    l.descriptor = m.object.descriptors.at(name);
    // Code that takes preloaded arguments begins behind the loads that stand in for them.
    l.entry = address_of(kCode) + kernel.entry + (l.descriptor.preload & 127 ? 256 : 0);
    l.arguments = address_of(kArguments), l.packet = address_of(kPacket);
    l.grid = o.grid, l.block = o.block;
    l.lds = kernel.lds_bytes;
    l.scratch = (kernel.scratch_bytes + 15) / 16 * 16;
    l.concurrent = o.concurrent, l.seed = o.seed;
    amdemu::launch(m, l);
  } catch (const std::runtime_error& fault) {
    result.error = fault.what();
  }
  for (size_t i = 0; i < memories.size(); ++i) {
    const uint64_t region = kFirstMemory + 2 * i;
    if (region >= m.regions.size() || !m.regions[region]) continue;
    if (memories[i].writable && !memories[i].bytes.empty())
      std::memcpy(memories[i].bytes.data(), m.regions[region]->bytes.data(), memories[i].bytes.size());
    m.regions[region].reset();
  }
  result.instructions = m.executed;
  result.warnings = m.warnings;
  for (size_t i = 0; i < m.mnemonics.size() && i < m.profile.size(); ++i)
    if (m.profile[i]) result.profile[m.mnemonics[i]] = m.profile[i];
  return result;
}

}  // namespace tilegen::amdemu
