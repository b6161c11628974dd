// The inference itself, shared by the files of this stage. Not used outside it.
#pragma once

#include <set>

#include "analysis/sum_shares.h"
#include "infer/access_cost.h"
#include "infer/candidate_iterations.h"
#include "infer/fragment_table.h"
#include "infer/in_memory.h"
#include "infer/infer_layouts.h"
#include "infer/unrolled_vars.h"

namespace tilegen::infer {

using analysis::KernelOp;
using analysis::KernelOps;
using analysis::OpAccess;
using analysis::OpForm;
using analysis::Value;

struct RootResult;
struct RootSearch;

// What is decided so far.
struct State {
  KnownLayouts known;
  IdVector<ValueId, FormId> form;  // of its fragment
  IdVector<ValueId, plan::Origin> origin;
  IdVector<ValueId, std::string> reason;
  IdVector<ValueId, std::string> pinned_by;  // op path
};

class Inference {
 public:
  Inference(const InferInput& in, const InMemory& in_memory);
  Expected<InferResult> run();
  // Values that an access keeps out of registers; run() has no result then.
  const InMemory& unheld() const { return unheld_; }
  // Values with registers in common, whose places are decided together: a name of the set.
  ValueId island(ValueId v) const { return islands_[v]; }

 private:
  bool failed() const { return !error_.diagnostics.empty(); }
  // Whose values they are; requires: there is one.
  size_t kernel() const { return static_cast<size_t>(p_.buffer(ops_.values.front().buffer).kernel); }
  void fail(DiagCode code, const std::string& op, std::string message, std::string hint, SourceLocation loc) {
    if (!failed()) error_ = Error(code, op, std::move(message), std::move(hint), std::move(loc));
  }
  bool distributed(ValueId v) const { return in_registers_.has(v); }
  bool distributed(const KernelOp& op, ValueId v) const { return in_registers_.has(op, v); }
  bool everywhere(ValueId v) const { return fragment(state_, v).replicas() == in_.threads; }
  bool pinned(const State& s, ValueId v) const { return s.known.fragments[v].has_value(); }
  const layout::Fragment& fragment(const State& s, ValueId v) const { return *s.known.fragments[v]; }
  void pin(ValueId v, const layout::Fragment& f, plan::Origin o, std::string reason, const std::string& by) {
    pin_form(v, forms_.id_of(f), o, std::move(reason), by);
  }
  void pin_form(ValueId v, FormId form, plan::Origin o, std::string reason, const std::string& by) {
    state_.known.fragments[v] = forms_.at(form);
    state_.form[v] = form;
    state_.origin[v] = o;
    state_.reason[v] = std::move(reason);
    state_.pinned_by[v] = by;
    pinned_order_.push_back(v);
  }

  static constexpr const char* kGiven = "schedule";  // has pinned what the caller fixed

  // given: what the caller fixed (infer_layouts.cpp)
  void take_given();
  void pin_memory(ValueId v, layout::Layout l, plan::Origin o, std::string reason, const std::string& by);

  // memory: values that registers cannot hold (infer_memory.cpp)
  void pin_in_memory();
  // The access makes it impossible to hold the value in registers: it goes to memory, or that is refused.
  void cannot_hold(const KernelOp& op, ValueId v, const std::string& why, const std::string& hint);
  void cannot_hold(const std::string& path, const SourceLocation& where, OpId op, ValueId v,
                   const std::string& why, const std::string& hint);
  void find_islands();
  // A value of its island is found to be unheld: the rest of the island is looked at in the next round.
  bool unsettled(ValueId v) const { return unsettled_.count(islands_[v]) > 0; }
  bool unsettled(const KernelOp& op) const;
  // The access takes a register that is told at run time only, of more than can be chosen among.
  bool too_many_choices(const KernelOp& op, const layout::Fragment& iteration, size_t access) const;
  // Conditions, bounds, offsets and fill values: every thread reads them.
  void check_scalars();
  void check_register_counts();
  void check_loops_over_k();
  bool reads_any_element(const std::vector<ir::ExprId>& roots, ir::BufferId buffer) const;
  bool works_on_registers(ValueId v) const;  // a matrix atom does

  // strict: what instructions demand (infer_layouts.cpp)
  void pin_strict();
  void pin_shares();
  void strict_fragment(OpId id, ValueId v, const layout::Fragment& want, const std::string& why);
  void strict_memory(OpId id, ValueId v, const layout::Layout& want, const std::string& why);
  // Host: the gemm cannot have its operand as the micro-kernel walks it.
  void use_loop(OpId id, ValueId v, const std::string& want, const std::string& have);

  // common: from pinned values through the ops that touch them (infer_propagate.cpp)
  // Pinned access whose layout says most about the iterations: one that names each element once, then most
  // dimensions walked, then strictness, then order.
  int root_access(OpId id);
  // The access may say where the iterations run: it is pinned, and followed from its elements. The form of
  // the iterations, or none.
  FormId root_form(OpId id, size_t access);
  bool shared_by_all_points(const KernelOp& op, const ops::ElementAccess& a) const;
  // The iteration layout that a root gives, or none.
  FormId rooted_form(OpId id);
  // Pins what the op's iteration layout says of its other values.
  void propagate(OpId id, FormId iteration, plan::Origin origin);
  void propagate_op(OpId id);
  // layout::Layout of a reduction's result when the source's iterations are `src`; nothing for parts of
  // buffers.
  std::optional<layout::Fragment> reduced(const KernelOp& op, const layout::Fragment& src) const;
  FormId reduced_form(OpId id, FormId src);
  // Lets `dirty` ops, and those that touch what they pin, pin in turn: in sweeps over the ops in their order.
  void propagate(std::set<OpId> dirty);
  std::set<OpId> users_since(size_t mark) const;  // ops that touch what was pinned since

  // free: roots for what is left (infer_free.cpp)
  double cost_of(OpId id, const layout::Fragment& iteration);
  // Of bringing threads what they read at computed indices.
  double bringing_cost(OpId id, const layout::Fragment& iteration);
  // Of an op as it follows from what is pinned; 0 where nothing follows, but for what has to be brought.
  double rooted_cost(OpId id);
  bool reads_beside(OpId id);
  double result_cost(OpId id);
  // Cost of every op whose iteration layout follows from what is pinned; `changed`: ops whose values were
  // pinned since costs_ was made.
  double total_cost(const std::set<OpId>& changed);
  // Pins what `iteration` of the op says of its values; false: nothing.
  bool seed(OpId id, FormId iteration);
  void take_back(size_t mark);  // what was pinned since
  std::vector<ValueId> reduced_first() const;
  void free_values();
  void free_value(ValueId v);
  void pin_all(const RootResult& r);
  const RootResult& cheaper_when_whole(const RootSearch& search);
  double whole_cost(const RootResult& r, std::vector<ValueId>& settled);
  void try_roots(OpId id, RootSearch& search);
  std::vector<FormId> iteration_forms(OpId id);
  static std::vector<size_t> accesses_by_value(const KernelOp& op);
  // Ops whose values may, once pinned, lead to a layout of `v`, in their order.
  std::set<OpId> ops_leading_to(ValueId v) const;
  bool touches_unpinned(const KernelOp& op) const;
  void shared_rest();
  void judge(OpId root, size_t mark, const std::vector<std::pair<ValueId, FormId>>& seeds,
             RootSearch& search);
  // What is pinned since a root was tried, `fresh` by value (infer_roots.cpp): the op says the same of its
  // values, whichever of them it is asked by.
  bool coherent(OpId id, const IdVector<ValueId, bool>& fresh);
  bool coherent_loop(OpId id, const IdVector<ValueId, bool>& fresh);
  // By value: the form of each fresh one that, pinned alone, propagates to all of `seeds`; else none.
  // requires: coherent ops.
  IdVector<ValueId, FormId> sources_of(const std::vector<std::pair<ValueId, FormId>>& seeds,
                                       const IdVector<ValueId, bool>& fresh);
  std::vector<ValueId> propagated_to(ValueId v, const IdVector<ValueId, bool>& fresh);

  // finish: iteration layouts and conversions (infer_finish.cpp)
  void finish_op(OpId id);
  const plan::OpPlan* given(OpId id) const;
  void finish_gemm(OpId id, plan::OpPlan& plan);
  bool is_transposing(OpId id, const TransposingCopy& copy) const;
  void finish_scan(const KernelOp& op, plan::OpPlan& plan);
  layout::Fragment reduce_iteration(OpId id);
  layout::Fragment element_iteration(OpId id, plan::OpPlan& plan);
  // Every thread runs every point: writes to private copies at places that no layout of the points follows.
  std::optional<layout::Fragment> iteration_of_copies(const KernelOp& op) const;
  void element_conversions(OpId id, const layout::Fragment& iteration);
  // The access finds its elements where the value is held: in the thread's registers or a lane's.
  bool finds_as_held(const KernelOp& op, size_t access, const layout::Fragment& held,
                     const layout::Fragment& iteration) const;
  void of_lanes(OpId id, size_t access, const layout::Fragment& iteration, int64_t shuffles);
  // What an access at a computed index is given a conversion for; nothing where none helps.
  std::optional<layout::Fragment> form_needed(const KernelOp& op, size_t access,
                                              const layout::Fragment& iteration) const;
  void reduce_conversions(const KernelOp& op, const layout::Fragment& iteration);
  // Element-wise code addresses registers freely, so only movement between threads counts there; a matrix
  // atom takes its registers in one order (`registers_matter`).
  // An op that holds the value, for the name that it was pinned by.
  std::string holder(ValueId v, const std::string& pinned_by, const std::string& other) const;
  void convert(ValueId v, const layout::Fragment& from, const layout::Fragment& to,
               const std::string& producer, const std::string& consumer, const SourceLocation& loc,
               bool registers_matter);

  const InferInput& in_;
  const ir::Program& p_;
  const KernelOps& ops_;
  const InMemory& in_memory_;
  const RegisterValues in_registers_;
  const UnrolledVars unrolled_;
  std::vector<analysis::SumShare> shares_;  // of a split loop's sums
  InMemory unheld_;
  IdVector<ValueId, ValueId> islands_;  // one value of those that ops join
  std::set<ValueId> unsettled_;         // islands
  State state_;
  FragmentTable forms_;
  CandidateIterations candidates_;
  IdVector<ValueId, std::vector<OpId>> users_;                 // the ops that touch it, in their order
  std::vector<ValueId> pinned_order_;                          // values, as they were pinned
  std::map<std::pair<OpId, FormId>, FormId> reduced_forms_;    // by op and form of its source
  IdVector<OpId, double> costs_;                               // of what was pinned when a search began
  bool completing_ = false;                                    // what a root leaves open is looked for
  IdVector<OpId, std::optional<layout::Fragment>> iteration_;  // given
  std::set<OpId> fallback_to_loop_;
  InferResult result_;
  Error error_;
};

}  // namespace tilegen::infer
