// What memory instructions do when they take effect.
#include <algorithm>
#include <utility>

#include "machine.h"

namespace tilegen::amdemu {

namespace {

uint32_t access_bytes(const MemoryForm& f) { return f.size < 4 ? f.size : 4u * f.words; }

// One or two bytes of memory as a word.
uint32_t extended(const MemoryForm& f, const uint8_t* from) {
  if (f.size == 1) return f.sign_extend ? static_cast<uint32_t>(static_cast<int8_t>(from[0])) : from[0];
  uint16_t half = 0;
  std::memcpy(&half, from, 2);
  return f.sign_extend ? static_cast<uint32_t>(static_cast<int16_t>(half)) : half;
}

// What was loaded, to the registers of a lane.
void put_loaded(Wave& w, const MemoryForm& f, int first, int lane, const uint8_t* from) {
  uint32_t* to = w.vectors + first * kLanes + lane;
  if (f.size >= 4) {
    for (int i = 0; i < f.words; ++i) std::memcpy(to + kLanes * i, from + 4 * i, 4);
    return;
  }
  uint32_t x = extended(f, from);
  if (f.d16) {
    const uint32_t old = w.machine->sramecc ? 0 : *to;
    x &= 0xffff;
    x = f.d16 == 2 ? (old & 0xffff) | x << 16 : (old & 0xffff0000u) | x;
  }
  *to = x;
}

void put_old(Wave& w, const Pending& p, int lane, uint64_t old) {
  if (p.first_register < 0) return;
  w.vectors[p.first_register * kLanes + lane] = static_cast<uint32_t>(old);
  if (p.instruction->memory.wide)
    w.vectors[(p.first_register + 1) * kLanes + lane] = static_cast<uint32_t>(old >> 32);
}

void store_words(const Pending& p, int lane, uint8_t* to) {
  const MemoryForm& f = p.instruction->memory;
  if (f.size < 4) {
    const uint32_t x = f.d16 == 2 ? p.data[0][lane] >> 16 : p.data[0][lane];
    std::memcpy(to, &x, f.size);
    return;
  }
  for (int i = 0; i < f.words; ++i) std::memcpy(to + 4 * i, &p.data[i][lane], 4);
}

// Operand `i` of an atomic operation.
uint64_t atomic_operand(const Pending& p, int lane, int i) {
  if (!p.instruction->memory.wide) return p.data[i][lane];
  return p.data[2 * i][lane] | static_cast<uint64_t>(p.data[2 * i + 1][lane]) << 32;
}

void run_atomic(Wave& w, const Pending& p, int lane, uint64_t address, uint8_t* at) {
  const MemoryForm& f = p.instruction->memory;
  const uint32_t bytes = f.wide ? 8 : 4;
  if (address & (bytes - 1)) fail("misaligned atomic: %s", p.instruction->text.c_str());
  uint64_t old = 0, data = atomic_operand(p, lane, 0), compare = 0;
  std::memcpy(&old, at, bytes);
  const bool two = f.operation == kCompareSwap || f.operation == kMaskedOr;
  if (two) compare = atomic_operand(p, lane, 1);
  // In LDS the first operand is what is compared.
  if (f.operation == kCompareSwap && p.instruction->is_lds) std::swap(data, compare);
  const uint64_t result = atomic_result(f.operation, old, data, compare, f.wide);
  std::memcpy(at, &result, bytes);
  put_old(w, p, lane, old);
}

uint8_t* scratch_at(Wave& w, int lane, uint64_t offset, uint32_t bytes) {
  if (offset + bytes > w.scratch_bytes)
    fail("scratch access at offset 0x%llx outside %u bytes", static_cast<unsigned long long>(offset),
         w.scratch_bytes);
  return &w.scratch[static_cast<uint64_t>(lane) * w.scratch_bytes + offset];
}

uint8_t* place_of(Wave& w, const Pending& p, int lane, uint64_t address, uint32_t bytes) {
  const Instruction& in = *p.instruction;
  const MemoryForm& f = in.memory;
  const auto low = static_cast<uint32_t>(address);
  try {
    if (f.space == 3 || p.kind == PendingKind::scratch) return scratch_at(w, lane, address, bytes);
    if (f.space == 1 && address >> 32 == kSharedAperture) return lds_at(w, in, low, bytes, f.kind != 0);
    if (f.space == 1 && address >> 32 == kPrivateAperture) return scratch_at(w, lane, low, bytes);
    return w.machine->memory_at(address, bytes, f.kind != 0,
                                f.kind == 0   ? "load"
                                : f.kind == 1 ? "store"
                                              : "atomic");
  } catch (const Fault& fault) {
    fail("%s (lane %d, issued by %s at 0x%llx)", fault.what(), lane, in.text.c_str(),
         static_cast<unsigned long long>(in.address));
  }
}

// To LDS, the lanes' words beside each other.
void load_to_lds(Wave& w, const Pending& p, int lane, const uint8_t* from) {
  const Instruction& in = *p.instruction;
  const uint32_t bytes = std::max<uint32_t>(access_bytes(in.memory), 4);
  const uint32_t small = in.memory.size < 4 ? extended(in.memory, from) : 0;
  std::memcpy(lds_at(w, in, p.m0 + bytes * static_cast<uint32_t>(lane), bytes, true),
              in.memory.size < 4 ? reinterpret_cast<const uint8_t*>(&small) : from, bytes);
}

// A buffer access part of which lies beyond the buffer: words beyond it read as zero and are not written.
void run_beyond_buffer(Wave& w, const Pending& p, int lane) {
  static constexpr uint8_t kZeros[16] = {};
  const MemoryForm& f = p.instruction->memory;
  const uint32_t inside = p.bytes_in_bounds[lane] & ~3u;
  if (f.kind == 2) return put_old(w, p, lane, 0);
  if (inside == 0) {
    if (f.kind == 0)
      f.lds ? load_to_lds(w, p, lane, kZeros) : put_loaded(w, f, p.first_register, lane, kZeros);
    return;
  }
  uint8_t* at = w.machine->memory_at(p.addresses[lane], inside, f.kind != 0, "buffer access");
  uint8_t words[16] = {};
  if (f.kind == 0) {
    std::memcpy(words, at, inside);
    put_loaded(w, f, p.first_register, lane, words);
  } else {
    store_words(p, lane, words);
    std::memcpy(at, words, inside);
  }
}

void run_vector_memory(Wave& w, const Pending& p, int lane) {
  const MemoryForm& f = p.instruction->memory;
  const uint32_t bytes = f.kind == 2 ? (f.wide ? 8 : 4) : access_bytes(f);
  if (p.bounded && p.bytes_in_bounds[lane] < bytes) return run_beyond_buffer(w, p, lane);
  const uint64_t address = p.addresses[lane];
  uint8_t* at = place_of(w, p, lane, address, bytes);
  if (f.kind == 0)
    f.lds ? load_to_lds(w, p, lane, at) : put_loaded(w, f, p.first_register, lane, at);
  else if (f.kind == 1)
    store_words(p, lane, at);
  else
    run_atomic(w, p, lane, address, at);
}

// Two places, in units of the access, or of 64 of them.
void run_lds_pair(Wave& w, const Pending& p, int lane) {
  const Instruction& in = *p.instruction;
  const uint32_t bytes = access_bytes(in.memory), unit = bytes * (in.memory.stride_64 ? 64 : 1);
  const int words = in.memory.words;
  for (int part = 0; part < 2; ++part) {
    const auto offset = static_cast<uint32_t>(part == 0 ? in.off0 : in.off1) * unit;
    const uint64_t address = (p.addresses[lane] + offset) & 0xffffffff;
    uint8_t* at = lds_at(w, in, address, bytes, in.memory.kind != 0);
    for (int i = 0; i < words; ++i) {
      uint32_t* word = nullptr;
      uint32_t data = p.data[part * words + i][lane];
      word = in.memory.kind == 0 ? w.vectors + (p.first_register + part * words + i) * kLanes + lane : &data;
      if (in.memory.kind == 0)
        std::memcpy(word, at + 4 * i, 4);
      else
        std::memcpy(at + 4 * i, word, 4);
    }
  }
}

void run_lds(Wave& w, const Pending& p, int lane) {
  const Instruction& in = *p.instruction;
  const MemoryForm& f = in.memory;
  if (p.kind == PendingKind::lanes) {  // computed when it was issued
    w.vectors[p.first_register * kLanes + lane] = p.data[0][lane];
    return;
  }
  if (f.two_addresses) return run_lds_pair(w, p, lane);
  const uint64_t address = (p.addresses[lane] + static_cast<uint64_t>(in.offset)) & 0xffffffff;
  const uint32_t bytes = f.kind == 2 ? (f.wide ? 8 : 4) : access_bytes(f);
  if (f.kind != 1) lds_at(w, in, address, bytes, false);
  uint8_t* at = lds_at(w, in, address, bytes, f.kind != 0);
  if (f.kind == 0)
    put_loaded(w, f, p.first_register, lane, at);
  else if (f.kind == 1)
    store_words(p, lane, at);
  else
    run_atomic(w, p, lane, address, at);
}

void run_scalar_load(Wave& w, const Pending& p) {
  for (int i = 0; i < p.registers; ++i) {
    uint32_t x = 0;
    const uint64_t address = p.addresses[0] + 4 * static_cast<uint64_t>(i);
    if (!p.bounded || static_cast<uint32_t>(4 * i) < p.data[0][0]) {
      try {
        std::memcpy(&x, w.machine->memory_at(address, 4, false, "scalar load"), 4);
      } catch (const Fault& fault) {
        fail("%s (issued by %s at 0x%llx)", fault.what(), p.instruction->text.c_str(),
             static_cast<unsigned long long>(p.instruction->address));
      }
    }
    w.scalars[p.first_register + i] = x;
  }
}

}  // namespace

void run_pending(Wave& w, Pending& p) {
  if (p.scalar) return run_scalar_load(w, p);
  for (uint64_t left = p.lanes; left; left &= left - 1) {
    const int lane = __builtin_ctzll(left);
    p.instruction->is_lds ? run_lds(w, p, lane) : run_vector_memory(w, p, lane);
  }
  if (p.first_register >= 0) mark_written(w, p.first_register, p.registers, p.lanes);
}

}  // namespace tilegen::amdemu
