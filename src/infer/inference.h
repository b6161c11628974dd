// The inference itself, shared by the files of this stage. Not used outside it.
#pragma once

#include <set>
#include <span>

#include "infer/access_cost.h"
#include "infer/infer_layouts.h"

namespace tilegen::infer {

// Values of register scopes that are held in shared memory instead, and why.
struct InMemory {
  std::map<int, std::string> values;
  // Those that must stay in registers: an op works on a copy in memory.
  std::map<std::pair<size_t, int>, std::string> accesses;  // index of the op, value
  bool empty() const { return values.empty() && accesses.empty(); }
};
// What the given schedule places there.
InMemory given_in_memory(const InferInput& in);

// What is decided so far; copied to try a root.
struct State {
  KnownLayouts known;
  std::vector<plan::Origin> origin;    // by value
  std::vector<std::string> reason;     // by value
  std::vector<std::string> pinned_by;  // by value: op path
};

class Inference {
 public:
  Inference(const InferInput& in, const InMemory& in_memory)
      : in_(in), p_(in.program), ops_(in.ops), in_memory_(in_memory) {
    size_t n = ops_.values.size();
    state_.known.fragments.resize(n);
    state_.known.memories.resize(n);
    state_.origin.resize(n, plan::Origin::free);
    state_.reason.resize(n);
    state_.pinned_by.resize(n);
    result_.ops.resize(ops_.ops.size());
    iteration_.resize(ops_.ops.size());
    for (const ir::Kernel& k : p_.kernels) find_unrolled(k.body);
  }
  Expected<InferResult> run();
  // Values that an access keeps out of registers; run() has no result then.
  const InMemory& unheld() const { return unheld_; }

 private:
  bool failed() const { return !error_.diagnostics.empty(); }
  void fail(DiagCode code, const std::string& op, std::string message, std::string hint, SourceLocation loc) {
    if (!failed()) error_ = Error(code, op, std::move(message), std::move(hint), std::move(loc));
  }
  bool distributed(int v) const {
    if (v < 0 || in_memory_.values.count(v)) return false;
    ir::MemScope s = ops_.values[static_cast<size_t>(v)].scope;
    return s == ir::MemScope::fragment || s == ir::MemScope::local;
  }
  // The op works on registers of the value.
  bool distributed(const KernelOp& op, int v) const {
    return distributed(v) && !in_memory_.accesses.count({static_cast<size_t>(&op - ops_.ops.data()), v});
  }
  bool everywhere(int v) const { return fragment(state_, v).replicas() == in_.threads; }
  bool pinned(const State& s, int v) const { return s.known.fragments[static_cast<size_t>(v)].has_value(); }
  const layout::Fragment& fragment(const State& s, int v) const {
    return *s.known.fragments[static_cast<size_t>(v)];
  }
  void pin(State& s, int v, layout::Fragment f, plan::Origin o, std::string reason, const std::string& by) {
    s.known.fragments[static_cast<size_t>(v)] = std::move(f);
    s.origin[static_cast<size_t>(v)] = o;
    s.reason[static_cast<size_t>(v)] = std::move(reason);
    s.pinned_by[static_cast<size_t>(v)] = by;
  }

  static constexpr const char* kGiven = "schedule";  // has pinned what the caller fixed

  // given: what the caller fixed (infer_layouts.cpp)
  void take_given();
  void pin_memory(int v, layout::Layout l, plan::Origin o, std::string reason, const std::string& by);

  // memory: values that registers cannot hold (infer_memory.cpp)
  void pin_in_memory();
  // The access makes it impossible to hold the value in registers: it goes to memory, or that is refused.
  void cannot_hold(const KernelOp& op, int v, const std::string& why, const std::string& hint);
  void cannot_hold(const std::string& path, const SourceLocation& where, std::optional<size_t> op, int v,
                   const std::string& why, const std::string& hint);
  // The access takes a register that is told at run time only, of more than can be chosen among.
  bool too_many_choices(const KernelOp& op, const layout::Fragment& iteration, size_t access) const;
  // Conditions, bounds, offsets and fill values: every thread reads them.
  void check_scalars();
  void check_register_counts();
  void find_unrolled(const ir::Block& block);
  bool told(ir::ExprId index, std::span<const ir::VarId> walked) const;
  bool reads_any_element(std::vector<ir::ExprId> todo, ir::BufferId buffer) const;
  bool works_on_registers(int v) const;  // a matrix atom does

  // strict: what instructions demand (infer_layouts.cpp)
  void pin_strict();
  void strict_fragment(size_t op_index, int v, const layout::Fragment& want, const std::string& why);
  void strict_memory(size_t op_index, int v, const layout::Layout& want, const std::string& why);
  // Host: the gemm cannot have its operand as the micro-kernel walks it.
  void use_loop(size_t op_index, int v, const std::string& want, const std::string& have);

  // common: from pinned values through the ops that touch them (infer_spread.cpp)
  std::vector<int64_t> iteration_extents(const KernelOp& op) const;
  // Pinned access whose layout says most about the iterations: most dimensions walked, then strictness, then
  // order.
  int root_access(const State& s, const KernelOp& op) const;
  // Pins what the op's iteration layout says of its other values; true when something was pinned.
  bool spread(State& s, const KernelOp& op, const layout::Fragment& iteration, plan::Origin origin);
  bool propagate_op(State& s, size_t index);
  // layout::Layout of a reduction's result when the source's iterations are `src`; nothing for parts of
  // buffers.
  std::optional<layout::Fragment> reduced(const KernelOp& op, const layout::Fragment& src) const;
  void propagate(State& s);

  // free: roots for what is left (infer_spread.cpp)
  // Row-major iteration with the vector along `dim`.
  std::optional<layout::Fragment> vectors_along(const std::vector<int64_t>& extents, int dim,
                                                int64_t vector) const;
  std::vector<layout::Fragment> candidates(const KernelOp& op) const;
  double cost_of(const State& s, size_t index, const layout::Fragment& iteration) const;
  // Cost of every op whose iteration layout follows from `s`.
  double total_cost(const State& s) const;
  // Tries `iteration` at op `index`; the state it leads to.
  std::optional<State> try_root(size_t index, const layout::Fragment& iteration);
  std::vector<size_t> reduced_first() const;
  void free_values();
  bool touches_unpinned(const KernelOp& op) const;
  void shared_rest();

  // finish: iteration layouts and conversions (infer_finish.cpp)
  void finish_op(size_t index);
  const plan::OpPlan* given(size_t index) const;
  void finish_gemm(size_t index, plan::OpPlan& plan);
  layout::Fragment reduce_iteration(size_t index);
  layout::Fragment element_iteration(size_t index, plan::OpPlan& plan);
  // Every thread runs every point: writes to private copies at places that no layout of the points follows.
  std::optional<layout::Fragment> iteration_of_copies(const KernelOp& op) const;
  void element_conversions(const KernelOp& op, const layout::Fragment& iteration);
  void reduce_conversions(const KernelOp& op, const layout::Fragment& iteration);
  // Element-wise code addresses registers freely, so only movement between threads counts there; a matrix
  // atom takes its registers in one order (`registers_matter`).
  // An op that holds the value, for the name that it was pinned by.
  std::string holder(int v, const std::string& pinned_by, const std::string& other) const;
  void convert(int v, const layout::Fragment& from, const layout::Fragment& to, const std::string& producer,
               const std::string& consumer, const SourceLocation& loc, bool registers_matter);
  // Cycles of a block: a move per register, a shuffle per register, or a trip through shared memory with two
  // barriers.
  static int64_t conversion_cost(layout::ConversionKind kind, const layout::Fragment& to, int bytes);

  const InferInput& in_;
  const ir::Program& p_;
  const KernelOps& ops_;
  const InMemory& in_memory_;
  InMemory unheld_;
  std::set<ir::VarId> unrolled_;  // variables of loops that are unrolled
  State state_;
  std::vector<std::optional<layout::Fragment>> iteration_;  // given, by op
  std::set<size_t> fallback_to_loop_;
  InferResult result_;
  Error error_;
};

}  // namespace tilegen::infer
