#include "amx_emulator.h"

#include <bit>
#include <cmath>
#include <csignal>
#include <cstring>
#include <optional>

#include "codegen/host_cpu.h"

#if defined(__x86_64__)
#include <ucontext.h>
#endif

namespace tilegen::amxemu {

#if defined(__x86_64__)
namespace {

constexpr int kTiles = 8, kRows = 16, kRowBytes = 64;

struct Tile {
  uint8_t rows = 0;
  uint16_t row_bytes = 0;
  uint8_t data[kRows][kRowBytes];
};

struct State {
  bool configured = false;
  Tile tile[kTiles];
};
thread_local State state;
thread_local int64_t count = 0;

// Registers of a context by their number in an instruction.
constexpr int kRegisters[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

enum Prefix { none, x66, xf3, xf2 };

struct Instruction {
  int length = 0;
  Prefix prefix = none;
  uint8_t opcode = 0;
  int reg = 0, second = 0, third = 0;  // of registers: ModRM.reg, ModRM.rm, VEX.vvvv
  bool memory = false;
  uint64_t base = 0, stride = 0;
};

// VEX.128.*.0F38.W0 with a ModRM byte.
std::optional<Instruction> decode(const uint8_t* at, const greg_t* registers) {
  if (at[0] != 0xc4 || (at[1] & 0x1f) != 2 || (at[2] & 0x84) != 0) return std::nullopt;
  Instruction i;
  i.prefix = static_cast<Prefix>(at[2] & 3);
  i.third = ~(at[2] >> 3) & 15;
  i.opcode = at[3];
  const int high_index = (at[1] & 0x40) ? 0 : 8, high_base = (at[1] & 0x20) ? 0 : 8;
  const uint8_t modrm = at[4];
  const int mod = modrm >> 6, rm = modrm & 7;
  i.reg = (modrm >> 3) & 7;
  i.second = rm;
  i.length = 5;
  if (mod == 3) return i;
  i.memory = true;
  const auto value = [&](int reg) { return static_cast<uint64_t>(registers[kRegisters[reg]]); };
  bool absolute = false, relative = false;
  if (rm == 4) {
    const uint8_t sib = at[i.length++];
    const int index = ((sib >> 3) & 7) + high_index, base = sib & 7;
    if (index != 4) i.stride = value(index) << (sib >> 6);
    absolute = base == 5 && mod == 0;
    if (!absolute) i.base = value(base + high_base);
  } else {
    relative = rm == 5 && mod == 0;
    if (!relative) i.base = value(rm + high_base);
  }
  if (mod == 1) {
    i.base += static_cast<uint64_t>(static_cast<int64_t>(static_cast<int8_t>(at[i.length])));
    i.length += 1;
  } else if (mod == 2 || absolute || relative) {
    int32_t displacement;
    std::memcpy(&displacement, at + i.length, 4);
    i.base += static_cast<uint64_t>(static_cast<int64_t>(displacement));
    i.length += 4;
  }
  if (relative) i.base += reinterpret_cast<uint64_t>(at) + static_cast<uint64_t>(i.length);
  return i;
}

bool configure(const uint8_t* bytes) {
  if (bytes[0] > 1) return false;
  state = {};
  state.configured = bytes[0] == 1;
  for (int t = 0; t < kTiles; ++t) {
    std::memcpy(&state.tile[t].row_bytes, bytes + 16 + 2 * t, 2);
    state.tile[t].rows = bytes[48 + t];
    if (state.tile[t].rows > kRows || state.tile[t].row_bytes > kRowBytes) return false;
  }
  return true;
}

// Rows behind the last, and bytes behind a row's, are zero after every write of a register.
void clear(Tile& t) { std::memset(t.data, 0, sizeof t.data); }

float flushed(float v) { return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v; }

float bf16_at(const uint8_t* p) {
  uint16_t half;
  std::memcpy(&half, p, 2);
  return flushed(std::bit_cast<float>(static_cast<uint32_t>(half) << 16));
}

float f16_at(const uint8_t* p) {
  uint16_t half;
  std::memcpy(&half, p, 2);
  const int exponent = (half >> 10) & 31, fraction = half & 0x3ff;
  float v = exponent == 31 ? (fraction ? NAN : INFINITY)
            : exponent > 0 ? std::ldexp(static_cast<float>(fraction + 0x400), exponent - 25)
                           : std::ldexp(static_cast<float>(fraction), -24);
  return (half & 0x8000) ? -v : v;
}

// Sums of even and of odd elements of k apart, together added to C; rounded to nearest, subnormals are zeros.
template <class Element>
bool multiply_floats(Tile& c, const Tile& a, const Tile& b, Element element) {
  for (int m = 0; m < c.rows; ++m)
    for (int n = 0; n < c.row_bytes / 4; ++n) {
      float sum, part[2] = {0, 0};
      std::memcpy(&sum, &c.data[m][4 * n], 4);
      for (int k = 0; k < a.row_bytes / 4; ++k)
        for (int half = 0; half < 2; ++half)
          part[half] = flushed(std::fma(element(&a.data[m][4 * k + 2 * half]),
                                        element(&b.data[k][4 * n + 2 * half]), part[half]));
      sum = flushed(flushed(sum) + flushed(part[0] + part[1]));
      std::memcpy(&c.data[m][4 * n], &sum, 4);
    }
  return true;
}

bool multiply_bytes(Tile& c, const Tile& a, const Tile& b, bool a_signed, bool b_signed) {
  const auto widened = [](uint8_t v, bool with_sign) {
    return with_sign ? static_cast<int32_t>(static_cast<int8_t>(v)) : static_cast<int32_t>(v);
  };
  for (int m = 0; m < c.rows; ++m)
    for (int k = 0; k < a.row_bytes / 4; ++k)
      for (int n = 0; n < c.row_bytes / 4; ++n) {
        uint32_t sum;
        std::memcpy(&sum, &c.data[m][4 * n], 4);
        for (int q = 0; q < 4; ++q)
          sum += static_cast<uint32_t>(widened(a.data[m][4 * k + q], a_signed) *
                                       widened(b.data[k][4 * n + q], b_signed));
        std::memcpy(&c.data[m][4 * n], &sum, 4);
      }
  return true;
}

bool multiply(const Instruction& i) {
  if (i.memory || i.third >= kTiles) return false;
  Tile &c = state.tile[i.reg], a = state.tile[i.second], b = state.tile[i.third];
  const bool fits = c.rows == a.rows && c.row_bytes == b.row_bytes && a.row_bytes == 4 * b.rows &&
                    c.rows > 0 && a.row_bytes > 0 && c.row_bytes > 0 && c.row_bytes % 4 == 0;
  if (!fits || i.reg == i.second || i.reg == i.third || i.second == i.third) return false;
  if (i.opcode == 0x5c && i.prefix == xf3) return multiply_floats(c, a, b, bf16_at);
  if (i.opcode == 0x5c && i.prefix == xf2) return multiply_floats(c, a, b, f16_at);
  if (i.opcode != 0x5e) return false;
  return multiply_bytes(c, a, b, i.prefix == xf2 || i.prefix == xf3, i.prefix == xf2 || i.prefix == x66);
}

bool carry_out(const Instruction& i) {
  auto* memory = reinterpret_cast<uint8_t*>(i.base);
  if (i.opcode == 0x49 && i.prefix == none) {
    if (i.memory) return configure(memory);
    state = {};  // TILERELEASE
    return true;
  }
  if (!state.configured) return false;
  Tile& t = state.tile[i.reg];
  if (i.opcode == 0x49 && i.prefix == xf2 && !i.memory) {
    clear(t);
    return true;
  }
  if (i.opcode != 0x4b || !i.memory) return multiply(i);
  if (t.rows == 0 || t.row_bytes == 0) return false;
  const bool loads = i.prefix == xf2;
  if (!loads && i.prefix != xf3) return false;
  if (loads) clear(t);
  for (int r = 0; r < t.rows; ++r, memory += i.stride)
    if (loads)
      std::memcpy(t.data[r], memory, t.row_bytes);
    else
      std::memcpy(memory, t.data[r], t.row_bytes);
  return true;
}

struct sigaction before;
bool enabled = false;

void on_illegal_instruction(int number, siginfo_t* info, void* context) {
  if (emulate_instruction(context)) return;
  if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction(number, info, context);
  signal(SIGILL, SIG_DFL);  // the instruction traps again
}

}  // namespace

bool emulate_instruction(void* context) {
  greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (!enabled) return false;
  const auto i = decode(reinterpret_cast<const uint8_t*>(registers[REG_RIP]), registers);
  if (!i || !carry_out(*i)) return false;
  registers[REG_RIP] += i->length;
  ++count;
  return true;
}

bool emulate_amx() {
  static const bool done = [] {
    if (codegen::host_cpu().amx_bf16 && codegen::host_cpu().amx_i8) return true;
    enabled = true;
    struct sigaction action {};
    action.sa_sigaction = on_illegal_instruction;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    return sigaction(SIGILL, &action, &before) == 0;
  }();
  return done;
}

#else

bool emulate_amx() { return false; }
bool emulate_instruction(void*) { return false; }

#endif

#if defined(__x86_64__)
int64_t emulated_instructions() { return count; }
#else
int64_t emulated_instructions() { return 0; }
#endif

}  // namespace tilegen::amxemu
