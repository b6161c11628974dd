#include "executors.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <sstream>

#include "check/check_program.h"
#include "codegen/host_cpu.h"
#include "fault_guard.h"
#include "guarded_memory.h"
#include "interp/interpreter.h"
#include "ir/text.h"
#include "runtime/dim_solver.h"
#include "runtime/host/host_runtime.h"
#include "runtime/sim/sim_executable.h"

namespace tilegen::differential {

using ir::DType;
using Kind = Outcome::Kind;

namespace {

constexpr int64_t kMaxTensorBytes = int64_t{1} << 24;

double epsilon(DType t) {
  switch (t) {
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    case DType::f32:
      return 0x1p-23;
    default:
      return 0x1p-52;
  }
}

// Unit in the last place of x, that of the smallest normal number at least.
double ulp(DType t, double x) {
  const int least = t == DType::f16 ? -14 : t == DType::f64 ? -1022 : -126;
  const int exponent = x == 0 ? least : std::max(std::ilogb(x), least);
  return std::ldexp(epsilon(t), exponent);
}

struct Tensor {
  ir::BufferId buffer;
  std::string name;
  DType type = DType::none;
  std::vector<int64_t> shape, strides;
  std::vector<std::byte> initial;
  int64_t elements = 1;

  int64_t offset(int64_t linear) const {
    int64_t at = 0;
    for (size_t d = shape.size(); d-- > 0; linear /= shape[d]) at += linear % shape[d] * strides[d];
    return at;
  }
  uint64_t element(std::span<const std::byte> memory, int64_t at) const {
    uint64_t bits = 0;
    std::memcpy(&bits, &memory[static_cast<size_t>(at * ir::dtype_bytes(type))],
                static_cast<size_t>(ir::dtype_bytes(type)));
    return bits;
  }
  std::string element_name(int64_t linear) const {
    std::string index;
    for (size_t d = shape.size(); d-- > 0; linear /= shape[d])
      index = std::to_string(linear % shape[d]) + (index.empty() ? "" : ", ") + index;
    return name + "[" + index + "]";
  }
};

std::string value_text(DType t, uint64_t bits) {
  std::ostringstream out;
  out.precision(17);
  if (ir::is_float(t))
    out << ir::float_from_bits(t, bits);
  else
    out << (ir::is_bool(t) ? static_cast<int64_t>(bits) : ir::wrap_to(t, static_cast<int64_t>(bits)));
  return out.str();
}

bool elements_agree(DType t, uint64_t a, uint64_t b, const Bound& bound) {
  if (a == b) return true;
  if (!ir::is_float(t)) return false;
  const double x = ir::float_from_bits(t, a), y = ir::float_from_bits(t, b);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (x == y) return true;
  if (std::isinf(x) || std::isinf(y)) return false;
  return std::fabs(x - y) <= bound.absolute + bound.ulps * ulp(t, std::max(std::fabs(x), std::fabs(y)));
}

// What a GPU's planning and lowering may refuse of a legal program, with a way out.
bool is_gpu_limit(DiagCode code) {
  return code == DiagCode::target_unsupported || code == DiagCode::no_atom || code == DiagCode::limit_unroll;
}

// Parameter slots and tensors of one launch.
class Memory {
 public:
  // An error text, or empty.
  std::string bind(const ir::Program& p, const Launch& launch);
  std::vector<GuardedMemory> fresh(bool at_end) const;
  std::vector<uint64_t> slots(const std::vector<GuardedMemory>& memory) const;
  // First difference, or empty.
  std::string compare(const std::vector<GuardedMemory>& expected, const std::vector<GuardedMemory>& got,
                      const Bound& bound) const;

 private:
  std::string bind_tensor(const ir::Program& p, const ir::Param& param, const Launch& launch,
                          const runtime::DimSolver& dims);
  std::vector<uint64_t> slots_;
  std::vector<Tensor> tensors_;
  std::vector<int> tensor_of_;  // by parameter; -1: not a tensor
};

std::string Memory::bind(const ir::Program& p, const Launch& launch) {
  runtime::DimSolver dims(p);
  for (const ir::Param& param : p.params) {
    tensor_of_.push_back(-1);
    slots_.push_back(0);
    if (param.kind == ir::Param::Kind::tensor) continue;
    const ir::Var& v = p.var(param.var);
    if (param.kind == ir::Param::Kind::scalar) {
      Random random(launch.seed, v.name);
      slots_.back() = random_element(random, v.type, launch.data, launch.magnitude);
      if (ir::is_integer(v.type))
        dims.set(param.var, ir::wrap_to(v.type, static_cast<int64_t>(slots_.back())), v.name);
      continue;
    }
    auto at = launch.dims.find(v.name);
    if (at == launch.dims.end()) return "dim " + v.name + " has no value";
    if (at->second < v.lower || at->second > v.upper || at->second % v.divisor != 0)
      return "dim " + v.name + " = " + std::to_string(at->second) + " breaks its facts";
    slots_.back() = static_cast<uint64_t>(at->second);
    dims.set(param.var, at->second, v.name);
  }
  for (size_t i = 0; i < p.params.size(); ++i) {
    if (p.params[i].kind != ir::Param::Kind::tensor) continue;
    tensor_of_[i] = static_cast<int>(tensors_.size());
    if (std::string error = bind_tensor(p, p.params[i], launch, dims); !error.empty()) return error;
  }
  return {};
}

std::string Memory::bind_tensor(const ir::Program& p, const ir::Param& param, const Launch& launch,
                                const runtime::DimSolver& dims) {
  const ir::Buffer& b = p.buffer(param.buffer);
  Tensor t;
  t.buffer = param.buffer;
  t.name = b.name;
  t.type = b.type;
  for (ir::ExprId e : b.shape) t.shape.push_back(dims.evaluate(e).value_or(-1));
  for (ir::ExprId e : b.strides) t.strides.push_back(dims.evaluate(e).value_or(-1));
  if (t.strides.empty()) {
    t.strides.resize(t.shape.size());
    int64_t stride = 1;
    for (size_t d = t.shape.size(); d-- > 0; stride *= std::max<int64_t>(t.shape[d], 1))
      t.strides[d] = stride;
  }
  int64_t span = 1;
  for (size_t d = 0; d < t.shape.size(); ++d) {
    if (t.shape[d] < 0 || t.strides[d] < 0 || t.shape[d] > kMaxTensorBytes || t.strides[d] > kMaxTensorBytes)
      return "extents or strides of " + t.name + " are not for this test";
    t.elements *= t.shape[d];
    span += (t.shape[d] - 1) * t.strides[d];
    if (t.elements > kMaxTensorBytes || span > kMaxTensorBytes) return t.name + " is too large";
  }
  if (t.elements == 0) span = 0;
  t.initial.assign(static_cast<size_t>(span * ir::dtype_bytes(t.type)), GuardedMemory::kMark);
  Random random(launch.seed, t.name);
  for (int64_t i = 0; i < t.elements; ++i) {
    const uint64_t bits = random_element(random, t.type, launch.data, launch.magnitude);
    std::memcpy(&t.initial[static_cast<size_t>(t.offset(i) * ir::dtype_bytes(t.type))], &bits,
                static_cast<size_t>(ir::dtype_bytes(t.type)));
  }
  tensors_.push_back(std::move(t));
  return {};
}

std::vector<GuardedMemory> Memory::fresh(bool at_end) const {
  std::vector<GuardedMemory> memory;
  for (const Tensor& t : tensors_) {
    memory.emplace_back(t.initial.size(), at_end);
    std::copy(t.initial.begin(), t.initial.end(), memory.back().bytes().begin());
  }
  return memory;
}

std::vector<uint64_t> Memory::slots(const std::vector<GuardedMemory>& memory) const {
  std::vector<uint64_t> slots = slots_;
  for (size_t i = 0; i < slots.size(); ++i)
    if (tensor_of_[i] >= 0) slots[i] = memory[static_cast<size_t>(tensor_of_[i])].slot();
  return slots;
}

std::string Memory::compare(const std::vector<GuardedMemory>& expected, const std::vector<GuardedMemory>& got,
                            const Bound& bound) const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& t = tensors_[i];
    if (!got[i].marks_intact()) return "memory beside tensor " + t.name + " was written";
    const auto want = expected[i].bytes(), have = got[i].bytes();
    if (want.empty() || std::memcmp(want.data(), have.data(), want.size()) == 0) continue;
    std::vector<bool> is_element(want.size(), false);
    for (int64_t k = 0; k < t.elements; ++k) {
      const int64_t at = t.offset(k), bytes = ir::dtype_bytes(t.type);
      for (int64_t b = 0; b < bytes; ++b) is_element[static_cast<size_t>(at * bytes + b)] = true;
      const uint64_t x = t.element(want, at), y = t.element(have, at);
      if (!elements_agree(t.type, x, y, bound))
        return t.element_name(k) + " is " + value_text(t.type, y) + ", expected " + value_text(t.type, x) +
               " (was " + value_text(t.type, t.element(t.initial, at)) + ")";
    }
    for (size_t k = 0; k < want.size(); ++k)
      if (!is_element[k] && want[k] != have[k]) return "padding inside tensor " + t.name + " was written";
  }
  return {};
}

}  // namespace

Bound Bound::of_sum(DType type, int64_t terms, double largest) {
  const double n = static_cast<double>(terms);
  return {2 * n * epsilon(type) * n * largest, 1};
}

std::string to_text(const Case& c) {
  std::string text = c.text + "; launched with";
  for (const auto& [name, value] : c.launch.dims) text += " " + name + "=" + std::to_string(value);
  return text + " seed=" + std::to_string(c.launch.seed) +
         " data=" + std::to_string(static_cast<int>(c.launch.data)) + "\n";
}

const char* kind_name(Kind k) {
  switch (k) {
    case Kind::agree:
      return "agree";
    case Kind::invalid:
      return "invalid";
    case Kind::refused:
      return "refused";
    case Kind::differ:
      return "differ";
    case Kind::rejected:
      return "rejected";
    case Kind::crashed:
      return "crashed";
  }
  return "?";
}

const std::vector<std::string>& executable_targets() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list = {"host"};
    const codegen::HostCpu& cpu = codegen::host_cpu();
    if (const char* asked = std::getenv("TILEGEN_TARGETS")) {
      std::istringstream in(asked);
      for (std::string name; std::getline(in, name, ',');)
        if (name != "host") list.push_back(name);
    } else if (cpu.avx2 && cpu.fma && cpu.f16c) {
      list.push_back("x86-64-v3");
    }
    return list;
  }();
  return names;
}

const std::vector<std::string>& targets_with_simulator() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list = executable_targets();
    if (!std::getenv("TILEGEN_TARGETS")) list.push_back("sim:sm_80");
    return list;
  }();
  return names;
}

bool long_run() {
  const char* value = std::getenv("TILEGEN_LONG");
  return value && std::string(value) == "1";
}

namespace {

// Each seed is another order of warps and another time at which async copies land.
Outcome simulate(const driver::Artifact& artifact, const std::vector<uint64_t>& slots, uint64_t seed) {
  sim::SimOptions options;
  options.order = static_cast<sim::WarpOrder>(seed % 3);
  options.async_latest = seed / 3 % 2 == 0;
  options.seed = seed;
  options.workers = 1;
  auto results = runtime::simulate_artifact(artifact, slots, options);
  if (!results) return {Kind::rejected, results.error().to_text()};
  if (Checked clean = runtime::findings_error(*results); !clean) return {Kind::rejected, clean.error().to_text()};
  return {};
}

}  // namespace

Subject::Subject(std::string text, std::vector<std::string> targets)
    : text_(std::move(text)), targets_(targets.empty() ? executable_targets() : std::move(targets)) {
  const Limits limits;
  auto parsed = ir::parse_program(text_, "case.tl", limits);
  if (!parsed) {
    invalid_ = parsed.error().to_text();
    return;
  }
  for (const Diagnostic& d : check::check_program(*parsed, limits)) invalid_ += d.to_text() + "\n";
  program_ = std::make_shared<const ir::Program>(std::move(*parsed));
}

void Subject::compile() {
  compiled_ = true;
  driver::CompileOptions options;
  options.verify = true;
  for (const std::string& name : targets_) {
    Executable e;
    e.target = name;
    const auto crash = crash_of([&] {
      auto target = target::find_target(name);
      if (!target) {
        e.failed = {Kind::rejected, target.error().to_text()};
        return;
      }
      auto artifact = driver::compile(program_, *target, options);
      if (!artifact) {
        const DiagCode code = artifact.error().diagnostics[0].code;
        const bool refused = code == DiagCode::limit_memory || (!target->is_host() && is_gpu_limit(code));
        e.failed = {refused ? Kind::refused : Kind::rejected, name + ": " + artifact.error().to_text()};
        return;
      }
      e.artifact = *artifact;
      if (target->kind == target::Kind::nvidia && !target->simulated) e.cuda = std::make_shared<CudaRun>(e.artifact);
    });
    if (crash) e.failed = {Kind::crashed, name + ": compiling ends in " + *crash};
    executables_.push_back(std::move(e));
  }
}

Outcome Subject::compare(const Launch& launch) {
  if (!invalid_.empty()) return {Kind::invalid, invalid_};
  Memory memory;
  if (std::string error = memory.bind(*program_, launch); !error.empty()) return {Kind::invalid, error};
  const bool at_end = launch.seed % 2 == 0;
  const std::vector<GuardedMemory> expected = memory.fresh(at_end);
  Outcome outcome;
  const auto crash = crash_of([&] {
    if (Checked ran = interp::interpret(*program_, memory.slots(expected)); !ran)
      outcome = {Kind::invalid, ran.error().to_text()};
  });
  if (crash) return {Kind::crashed, "the interpreter ends in " + *crash};
  if (outcome.kind != Kind::agree) return outcome;
  if (!compiled_) compile();
  for (const Executable& e : executables_) {
    if (e.failed.kind != Kind::agree) return e.failed;
    std::vector<GuardedMemory> got = memory.fresh(at_end);
    const auto run = [&] {
      if (e.cuda) {
        // Every third launch on addresses that are aligned to elements only.
        const std::string error = e.cuda->launch(memory.slots(got), got, launch.seed % 3 == 0);
        if (!error.empty()) outcome = {Kind::rejected, e.target + ": " + error};
        return;
      }
      if (e.artifact->target.simulated) {
        outcome = simulate(*e.artifact, memory.slots(got), launch.seed);
        if (outcome.kind != Kind::agree) outcome.text = e.target + ": " + outcome.text;
        return;
      }
      if (Checked ran = runtime::run_host(*e.artifact, memory.slots(got), launch.max_threads); !ran)
        outcome = {Kind::rejected, e.target + ": " + ran.error().to_text()};
    };
    if (launch.max_threads != 1)
      run();
    else if (const auto fault = crash_of(run))
      return {Kind::crashed, e.target + ": the kernel ends in " + *fault};
    if (outcome.kind != Kind::agree) return outcome;
    if (std::string d = memory.compare(expected, got, launch.bound); !d.empty())
      return {Kind::differ, e.target + ": " + d};
  }
  return outcome;
}

Outcome compare_executors(const Case& c) { return Subject(c.text, c.targets).compare(c.launch); }

}  // namespace tilegen::differential
