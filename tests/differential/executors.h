// Runs one program on every executor this machine has and compares what is in memory afterwards.
//
// Executors: the interpreter (the oracle); machine code for "host" and for "x86-64-v3", both through the
// whole pipeline with verification between its stages; NVIDIA code on the first CUDA device when
// TILEGEN_TARGETS names its target; AMD code on the interpreter of its instructions (tests/amdemu). Compared
// is all memory of every tensor: elements by a bound, everything that is no element (padding between strides,
// the zones around the tensor) for not being touched.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_run.h"
#include "data.h"
#include "driver/compile.h"
#include "ir/program.h"

namespace tilegen::differential {

class HsacoRun;
class LaunchMemory;

// How far floating elements may be apart: absolute + ulps * (unit in the last place of the larger, in the
// tensor's type). Integers and bools are always compared exactly, -0 equals +0, a NaN equals a NaN, an
// infinity only itself.
struct Bound {
  double absolute = 0;
  double ulps = 0;

  static Bound exact() { return {}; }
  static Bound of_ulps(double n) { return {0, n}; }
  // Two sums of `terms` products or elements of at most `largest` each in any order, accumulated in `type`:
  // each is within terms * eps * (sum of magnitudes) of the exact one. And a rounding of the result to the
  // tensor's type.
  static Bound of_sum(ir::DType type, int64_t terms, double largest);
};

struct Launch {
  std::map<std::string, int64_t> dims;  // and i64 scalars that shall not be random
  uint64_t seed = 1;
  Data data = Data::integers;
  double magnitude = 0;  // of floating data, 0 = by type
  Bound bound;
  std::map<std::string, Bound> bounds;  // of these tensors, in the place of `bound`
  int max_threads = 1;                  // more than 1 and a fault in a kernel kills the process
  // elements of tensors of whole numbers, in place of random ones
  std::map<std::string, std::vector<int64_t>> whole;
};

// Text, so that a failure prints itself.
struct Case {
  std::string text;
  Launch launch;
  std::vector<std::string> targets = {};  // empty: all this machine runs
};
std::string to_text(const Case& c);

struct Outcome {
  enum class Kind : uint8_t {
    agree,
    invalid,  // not a program that may run: parse, check or interpreter error, or a size this test will not
              // run
    refused,  // a target has a stated limit (limit_memory)
    differ,   // everything below is a defect
    // compilation of a checked program failed, or took another plan since a check after planning said no
    rejected,
    crashed
  } kind = Kind::agree;
  std::string text;
  bool may_refuse = false;  // refused: by a target that need not serve the program (see is_fine)
  bool is_defect() const { return kind >= Kind::differ; }
  // All executors agree, but for a simulated GPU's that says why it does not serve the program, and for AMD
  // code of a program whose threads are no whole waves, or whose tiles leave no memory on chip.
  bool is_fine() const { return kind == Kind::agree || (kind == Kind::refused && may_refuse); }
};
const char* kind_name(Outcome::Kind k);
// What failed, without names and numbers: the diagnostic, and the simulator's finding.
std::string way_of_failing(const Outcome& o);

// A program compiled once for each executor and run on any number of launches.
class Subject {
 public:
  explicit Subject(std::string text, std::vector<std::string> targets = {});

  // Parse or check errors; empty when there are none.
  const std::string& invalid() const { return invalid_; }
  const ir::Program& program() const { return *program_; }
  // Decisions that every target takes as given.
  void give(plan::Schedule schedule) { given_ = std::move(schedule); }
  // What GPU targets begin with.
  void begin_with(schedule::PlanForm form) { form_ = form; }
  // Compiles for every target, once. The first defect, else a refusal, else agree.
  Outcome compile();
  Outcome compare(const Launch& launch);
  // The same, with `differ` to say what is wrong in memory; an empty text: nothing is.
  using Differ =
      std::function<std::string(const LaunchMemory& memory, const std::vector<GuardedMemory>& expected,
                                const std::vector<GuardedMemory>& got)>;
  Outcome compare(const Launch& launch, const Differ& differ);

 private:
  struct Executable {
    std::string target;
    std::shared_ptr<const driver::Artifact> artifact;
    std::shared_ptr<CudaRun> cuda;    // NVIDIA targets
    std::shared_ptr<HsacoRun> hsaco;  // AMD targets
    Outcome failed;                   // kind agree: compiled
  };
  void compile_for(const std::string& name);
  Outcome run(Executable& e, const LaunchMemory& memory, std::vector<GuardedMemory>& got,
              const Launch& launch);

  std::string text_, invalid_;
  std::vector<std::string> targets_;
  std::shared_ptr<const ir::Program> program_;
  std::optional<plan::Schedule> given_;
  schedule::PlanForm form_ = schedule::PlanForm::full;
  std::vector<Executable> executables_;
};

Outcome compare_executors(const Case& c);

// Targets whose code this machine runs. "host" always; more when TILEGEN_TARGETS lists them, separated by
// commas.
const std::vector<std::string>& executable_targets();

// Simulators that programs take in turn, each by its weight; one whose warps do not divide the threads that
// the text names is passed over.
struct SimulatorTurn {
  const char* name;
  uint64_t weight;
};
inline constexpr SimulatorTurn kSimulators[] = {
    {"sim:sm_80", 4}, {"sim:gfx942", 2}, {"sim:sm_90", 1}, {"sim:gfx90a", 1}};
std::string simulator_in_turn(uint64_t number, std::string_view text);

// The same as executable_targets() and, last, those of kSimulators, which may refuse what their planning or
// lowering does not serve. Not where TILEGEN_TARGETS says what to run.
const std::vector<std::string>& targets_with_simulators();

// Of `targets` those that one program of a table runs on. The text chooses one of kSimulators, and one of
// those whose code LLVM makes, which takes most of the time; other simulators stay. Where TILEGEN_TARGETS
// names what to run that, with the host's code only where it is named too; all of them in the long form.
std::vector<std::string> covering(std::vector<std::string> targets, std::string_view text);

// TILEGEN_LONG=1 asks for the long form of a test.
bool long_run();

}  // namespace tilegen::differential
