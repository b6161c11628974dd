// The simulator of the thread program: runs a GPU kernel on the host, block by block, and judges it.
//
// Warps run in lock-step with active masks; shared memory, registers, barriers, async copies and matrix
// instructions follow src/thread/thread_program.h and the atom table. Host memory stands for global memory.
//
// The checks do not compare values. Two accesses to one element by different threads, one of them a write,
// must be ordered by barriers (of one block); else they race, whatever they wrote and in whatever order they
// ran. Lanes of a warp are threads like any others: nothing orders them but a barrier.
//
// requires: a program that verify_thread_program accepts, of warps of up to 64 lanes, params as a
// launch passes them, and memory that nobody else touches meanwhile. ensures: no access outside the extents
// given, whatever the program does; with findings, the values in memory are those of one legal order of
// execution as far as that exists.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/element_places.h"
#include "support/cancellation.h"
#include "support/diagnostic.h"
#include "target/target.h"
#include "thread/thread_program.h"

namespace tilegen::sim {

enum class FindingKind : uint8_t {
#define TILEGEN_FINDING(name, summary, hint) name,
#include "sim/findings.def"
#undef TILEGEN_FINDING
};
const char* finding_name(FindingKind k);     // "data_race"
const char* finding_summary(FindingKind k);  // one line for the reference docs
const char* finding_hint(FindingKind k);     // a way out
size_t finding_kind_count();

// A place in the program: the user's operation, and what it did there.
struct Site {
  std::string op;      // path, e.g. "gemm/ko/copy#1"
  std::string action;  // "write of As", "barrier 1"
  SourceLocation location;
};

struct Finding {
  FindingKind kind = FindingKind::data_race;
  std::string kernel;
  Site site;
  Site other;  // the other access of a race; else empty
  int64_t block = 0, warp = 0, thread = 0;
  int64_t other_block = -1, other_thread = -1;
  std::string memory;    // empty: none is concerned
  int64_t element = -1;  // index within the memory
  std::string message;   // what is wrong, with these names
  int64_t count = 1;     // how often it happened at these sites

  std::string to_text() const;  // "file:line:col: data_race: op: message (3 times)"
};

// What one access of the program cost, summed over all warps. `least` is what the same bytes cost at best.
struct AccessCount {
  std::string op, memory;
  thread::Space space = thread::Space::global;
  // "load", "store", "async copy", "matrix load", "matrix store", "tensor copy", "product"
  std::string action;
  int64_t requests = 0;      // warp-wide accesses
  int64_t bytes = 0;         // of all lanes
  int64_t transactions = 0;  // shared: wavefronts; global: sectors of 32 bytes
  int64_t least = 0;
  // Of a load to registers that counters keep account of: matrix instructions of the warp, at least, between
  // its issue and the use that waits for it, or for a later one; -1: not counted.
  int64_t ahead = -1;
  SourceLocation location;
};

struct Counters {
  std::vector<AccessCount> accesses;  // in program order
  int64_t statements = 0;             // executed, per warp
  int64_t matrix_instructions = 0, barriers = 0, shuffles = 0, votes = 0;
  int64_t shared_bytes = 0, global_bytes = 0, async_bytes = 0;
  int64_t tensor_bytes = 0;  // by the copy engine, into shared memory and out of it
  int64_t load_waits = 0;    // for loads to registers, where they are counted
  int64_t most_loads = 0;    // of a warp, on their way at once
};

enum class WarpOrder : uint8_t { round_robin, reversed, random };

// Of one kernel: more would not end within anybody's lifetime.
inline constexpr int64_t kMaxBlocks = int64_t{1} << 31;

struct SimOptions {
  WarpOrder order = WarpOrder::round_robin;
  uint64_t seed = 1;          // of the random order
  int64_t switch_every = 16;  // statements a warp runs before another may
  bool async_latest = true;   // async work is done when it is waited for; else when issued
  // Blocks that a persistent program is launched with at most; 0: two or three, or as many clusters, so that
  // each walks several points.
  int64_t resident_blocks = 0;
  bool check_races = true;
  bool count = true;  // fill Counters::accesses
  int workers = 0;    // threads to run blocks on; 0: all cores
  int64_t max_findings = 64;
  // the run, soon; further ones may be missing, and the values are unfinished
  bool first_finding_ends = false;
  int64_t max_statements = 0;                  // per warp; 0: no bound. Passing it is the finding `too_long`
  const Cancellation* cancellation = nullptr;  // asked while blocks run; nobody to ask without one
  const ElementPlaces* places = nullptr;  // of this program; without them `wrong_element` is not looked for
  std::function<SourceLocation(const std::string& path)> locate;  // optional: where an operation stands
};

// What a tensor parameter may touch: bytes [begin, end) relative to its address.
struct TensorExtent {
  int64_t begin = 0, end = 0;
};

struct SimResult {
  std::vector<Finding> findings;  // in a fixed order, duplicates collapsed
  int64_t dropped = 0;            // kinds of findings beyond max_findings
  Counters counters;
};

// `params` one 8-byte slot per ThreadProgram::params; `extents` the same length, read for tensors. Refuses
// (target_unsupported) statements that no target with warps has, atoms that the target lacks, and a guard
// that does not hold (launch_fact).
Expected<SimResult> simulate(const thread::ThreadProgram& program, const target::Target& target,
                             std::span<const uint64_t> params, std::span<const TensorExtent> extents,
                             const SimOptions& options);

// True when the guards of this variant hold for a launch with these parameters.
bool guards_hold(const thread::ThreadProgram& program, std::span<const uint64_t> params);

}  // namespace tilegen::sim
