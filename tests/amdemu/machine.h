// The interpreter's machine: instructions as decoded, waves with their registers, memory, and what is on its
// way.
//
// Names are the instruction set's ("Vega", "CDNA 2" and "CDNA 3" documents): SGPRs are scalars, VGPRs
// vectors, of which 256 and up are accumulation registers.
#pragma once

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "code_object_facts.h"
#include "disassembly.h"
#include "number_formats.h"

namespace tilegen::amdemu {

constexpr int kLanes = 64, kVectors = 512, kScalars = 128;
constexpr int kVcc = 106, kM0 = 124, kExec = 126;  // scalars of their own
// High words of flat addresses of LDS and of scratch, and of the resource that scratch is reached through.
constexpr uint32_t kSharedAperture = 0x00010000u, kPrivateAperture = 0x00020000u, kScratchMark = 0x7777u;

// Ends a launch.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};
[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char* format, ...);

enum class OperandKind : uint8_t { none, vector, scalar, immediate, off, scc, vccz, execz, aperture };
struct Operand {
  OperandKind kind = OperandKind::none;
  uint8_t registers = 1;
  bool neg = false, abs = false, sign_extend = false;
  bool is_float = false, is_literal = false;  // immediates
  uint16_t first = 0;                         // register
  int64_t value = 0;
  double real = 0;
};

struct Wave;
struct Instruction;
using Handler = void (*)(Wave&, const Instruction&);

// What an instruction of memory moves.
struct MemoryForm {
  uint8_t space = 0;  // 0 global, 1 flat, 2 buffer, 3 scratch
  uint8_t kind = 0;   // 0 load, 1 store, 2 atomic
  uint8_t size = 4;   // bytes of an element
  uint8_t words = 1;  // of data
  bool sign_extend = false, lds = false, ret = false, wide = false;
  uint8_t d16 = 0;  // 1 low half, 2 high half
  uint8_t operation = 0;
  bool two_addresses = false, stride_64 = false;  // LDS
};

struct Instruction {
  Handler run = nullptr;
  uint64_t address = 0;
  uint32_t size = 4, encoding = 0, encoding_high = 0;
  uint32_t mnemonic = 0;  // number
  int operand_count = 0;
  Operand operands[7];
  int64_t offset = 0;
  int off0 = 0, off1 = 0;
  bool sc0 = false, sc1 = false, nt = false, glc = false, lds = false, offen = false, idxen = false;
  bool gds = false, clamp = false;
  float omod = 1;  // output modifier, a factor
  uint8_t op_sel = 0, op_sel_hi = 0xff, neg_lo = 0, neg_hi = 0;
  bool has_op_sel_hi = false, has_op_sel = false;
  bool source_modified = false, result_modified = false;
  // DPP: from which lane each takes its first source, -1: none
  bool dpp = false, bound_ctrl = false;
  uint8_t row_mask = 15, bank_mask = 15;
  int8_t lane_source[kLanes];
  // SDWA: bytes 0 .. 3, words 4 and 5, 6 all; the rest of the result is 0, the sign, or kept
  bool sdwa = false;
  uint8_t dst_select = 6, dst_unused = 0, src_select[2] = {6, 6};
  int cbsz = 0, abid = 0, blgp = 0;  // matrix
  uint32_t matrix[8] = {};           // m, n, k, blocks, k of a lane, types of a and b, type of d
  int wait[3] = {-1, -1, -1};        // vmcnt, expcnt, lgkmcnt
  int hardware_register = 0, hardware_first = 0, hardware_bits = 32;
  int index_operands = -1;  // s_set_gpr_idx
  bool preserve = false;    // a result of 16 bits keeps the other half
  bool is_memory = false, is_scalar_load = false, is_lds = false;
  MemoryForm memory;
  std::string text;
};

struct Region {
  std::string name;
  std::vector<uint8_t> bytes;
  uint64_t size = 0;
  bool writable = true;
};

enum class PendingKind : uint8_t { memory, scratch, lanes };
// A memory instruction that was issued and has not been waited for.
struct Pending {
  const Instruction* instruction = nullptr;
  PendingKind kind = PendingKind::memory;
  bool in_vector_queue = false, in_lds_queue = false, scalar = false, bounded = false;
  bool done = false;  // has taken effect, and has not been waited for
  uint64_t lanes = 0;
  uint64_t addresses[kLanes];
  uint32_t data[4][kLanes];
  uint8_t bytes_in_bounds[kLanes];
  uint32_t m0 = 0;
  int first_register = -1, registers = 0;  // of the result
};

struct Machine;
struct Block;
struct Wave {
  uint32_t scalars[kScalars];
  std::vector<uint32_t> vector_file;
  uint32_t* vectors = nullptr;    // register r of lane l at r * 64 + l
  std::vector<uint64_t> written;  // by register, lanes
  bool scc = false, done = false, at_barrier = false, yield = false;
  uint32_t mode = 0;
  uint64_t address = 0;  // of the instruction that runs
  int next = 0, id = 0;
  bool indexing = false;
  uint32_t index_mode = 0;
  std::deque<Pending*> vector_queue, lds_queue;
  uint16_t vectors_outstanding[2][kVectors] = {}, scalars_outstanding[kScalars] = {};  // 0 memory, 1 LDS
  int outstanding = 0;
  std::vector<uint8_t> scratch;
  uint32_t scratch_bytes = 0;  // of a lane
  Block* block = nullptr;
  Machine* machine = nullptr;

  uint64_t pair(int r) const { return scalars[r] | static_cast<uint64_t>(scalars[r + 1]) << 32; }
  void set_pair(int r, uint64_t x) {
    scalars[r] = static_cast<uint32_t>(x);
    scalars[r + 1] = static_cast<uint32_t>(x >> 32);
  }
  uint64_t exec() const { return pair(kExec); }
  uint64_t vcc() const { return pair(kVcc); }
};

struct Block {
  std::vector<uint8_t> lds, lds_written;
  std::vector<std::unique_ptr<Wave>> waves;
  uint32_t id[3] = {};
};

struct Machine {
  std::vector<std::unique_ptr<Region>> regions;  // region i begins at address i << 32
  std::vector<Instruction> code;
  uint64_t code_base = 0;
  std::vector<int> instruction_at;  // by word from the base on; -1: none begins there
  std::vector<std::string> mnemonics;
  std::unordered_map<std::string, uint32_t> mnemonic_numbers;
  std::vector<uint64_t> profile;  // by mnemonic
  bool gfx90a = false, lazy = false, strict = false, report_unwritten = false;
  bool sramecc = true;
  uint64_t executed = 0, most_instructions = 0, misaligned = 0, clock = 0;
  std::vector<std::unique_ptr<Pending>> owned;
  std::vector<Pending*> pool;
  std::vector<std::string> warnings;
  std::map<std::string, int> warned;

  uint8_t* memory_at(uint64_t address, uint32_t bytes, bool write, const char* what);
  Pending* new_pending();
};

// A launch as the hardware sees it.
struct LaunchState {
  uint64_t entry = 0, arguments = 0, packet = 0;  // addresses
  std::array<uint32_t, 3> grid{}, block{};
  uint32_t lds = 0, scratch = 0;
  KernelDescriptor descriptor;
  uint32_t concurrent = 1;
  uint64_t seed = 0;
};

// By mnemonic without its encoding: add_*_operations fill it.
std::unordered_map<std::string, Handler>& operations();
inline void add_operation(const std::string& name, Handler h) { operations()[name] = h; }
void add_scalar_operations();                                    // scalar_operations.cpp
void add_scalar_control();                                       // scalar_control.cpp
void add_float_operations();                                     // vector_float.cpp
void add_integer_operations();                                   // vector_integer.cpp
void add_lane_operations();                                      // vector_lanes.cpp
void add_division_operations();                                  // vector_division.cpp
void add_packed_operations();                                    // vector_packed.cpp
bool bind_memory(Instruction& in, const std::string& mnemonic);  // memory_mnemonics.cpp; false: no such one
bool bind_matrix(Instruction& in, const std::string& mnemonic);  // matrix_products.cpp

void unknown_instruction(Wave& w, const Instruction& in);
void parse_instruction(Machine& machine, const std::string& text, Instruction& in);  // decode.cpp
void load_code(Machine& machine, const std::vector<ListedInstruction>& listed);
void jump(Wave& w, uint64_t address);
void launch(Machine& machine, const LaunchState& state);  // run.cpp

// memory.cpp. Everything beyond the counts takes effect; a count below 0: none of that queue.
void wait_for(Wave& w, int vector_count, int lds_count);
void wait_for_all(Wave& w);
void take_turns(Wave& w);
void issue(Wave& w, Pending* p);
void check_outstanding(Wave& w, const Instruction& in);
uint8_t* lds_at(Wave& w, const Instruction& in, uint64_t address, uint32_t bytes, bool write);
void mark_written(Wave& w, int first, int registers, uint64_t lanes);
void run_pending(Wave& w, Pending& p);                     // memory_effects.cpp
void issue_vector_memory(Wave& w, const Instruction& in);  // memory_issue.cpp
void issue_lds(Wave& w, const Instruction& in);
void issue_scalar_load(Wave& w, const Instruction& in);
enum class LaneExchange : uint8_t { swizzle, backward, forward };
void issue_lane_exchange(Wave& w, const Instruction& in, LaneExchange kind);

enum Atomic : uint8_t {
  kSwap,
  kCompareSwap,
  kAdd,
  kSub,
  kSignedMin,
  kUnsignedMin,
  kSignedMax,
  kUnsignedMax,
  kAnd,
  kOr,
  kXor,
  kIncrement,
  kDecrement,
  kAddF32,
  kMinF32,
  kMaxF32,
  kAddHalves,
  kAddBf16,
  kReverseSub,
  kMaskedOr,
  kAddF64,
  kMinF64,
  kMaxF64
};
uint64_t atomic_result(int operation, uint64_t old, uint64_t data, uint64_t compare, bool wide);

void warn(Wave& w, const Instruction& in, const std::string& what);
void unwritten_read(Wave& w, const Instruction& in, int reg, uint64_t lanes);

}  // namespace tilegen::amdemu
