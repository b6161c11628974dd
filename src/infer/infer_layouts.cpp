#include "infer/infer_layouts.h"

#include <algorithm>
#include <atomic>

#include "infer/inference.h"
#include "support/diag_codes.h"

namespace tilegen::infer {

using ir::Program;
using layout::ConversionKind;
using layout::Fragment;
using layout::Layout;
using plan::Origin;

namespace {

// Of the kernel whose values they are.
UnrolledVars unrolled_vars(const InferInput& in) {
  if (in.ops.values.empty()) return UnrolledVars(in.program);
  const int kernel = in.program.buffer(in.ops.values.front().buffer).kernel;
  return UnrolledVars(in.program, in.program.kernels[static_cast<size_t>(kernel)].body);
}

}  // namespace

Inference::Inference(const InferInput& in, const InMemory& in_memory)
    : in_(in),
      p_(in.program),
      ops_(in.ops),
      in_memory_(in_memory),
      in_registers_(in.ops, in_memory),
      unrolled_(unrolled_vars(in)),
      forms_(in.ops, in.target.has_block_threads() ? in.target.warp : 1),
      candidates_(in, in_registers_, forms_) {
  if (!ops_.values.empty()) shares_ = analysis::sum_shares(p_, static_cast<int>(kernel()), ops_);
  const size_t n = ops_.values.size();
  state_.known.fragments.resize(n);
  state_.known.memories.resize(n);
  state_.form.resize(n);
  state_.origin = IdVector<ValueId, plan::Origin>(n, plan::Origin::free);
  state_.reason.resize(n);
  state_.pinned_by.resize(n);
  result_.ops.resize(ops_.ops.size());
  iteration_.resize(ops_.ops.size());
  users_.resize(n);
  for (OpId i : ops_.ops.ids())
    for (const OpAccess& a : ops_.ops[i].accesses)
      if (a.value.valid() && (users_[a.value].empty() || users_[a.value].back() != i))
        users_[a.value].push_back(i);
}

Expected<InferResult> Inference::run() {
  find_islands();
  take_given();
  pin_in_memory();
  pin_strict();
  if (!failed()) {
    std::set<OpId> all;
    for (OpId i : ops_.ops.ids()) all.insert(all.end(), i);
    propagate(std::move(all));
    free_values();
    shared_rest();
    for (OpId i : ops_.ops.ids())
      if (!failed() && !unsettled(ops_.ops[i])) finish_op(i);
    check_scalars();
    if (!failed()) check_register_counts();
  }
  if (failed()) return std::move(error_);
  for (const auto& [access, why] : in_memory_.accesses)
    result_.notes.push_back(
        {ops_.ops[access.first].path,
         "works on a copy of '" + ops_.values[access.second].name + "' in shared memory: it " + why});
  for (const auto& [v, why] : in_memory_.values)
    result_.notes.push_back({ops_.values[v].name, "held in shared memory: " + why});
  for (ValueId v : ops_.values.ids())
    result_.values.push_back({ops_.values[v].name, state_.known.fragments[v], state_.known.memories[v], 1,
                              state_.origin[v], state_.reason[v]});
  return std::move(result_);
}

void Inference::take_given() {
  if (!in_.given) return;
  for (ValueId v : ops_.values.ids()) {
    const plan::ValuePlan* g = plan::find_value(*in_.given, ops_.values[v].name);
    if (!g) continue;
    if (g->fragment) pin(v, *g->fragment, Origin::given, g->reason, kGiven);
    if (g->memory) pin_memory(v, *g->memory, Origin::given, g->reason, kGiven);
  }
  for (OpId i : ops_.ops.ids()) {
    if (const plan::OpPlan* g = plan::find_op(*in_.given, ops_.ops[i].path)) iteration_[i] = g->iteration;
  }
}

void Inference::pin_memory(ValueId v, Layout l, Origin o, std::string reason, const std::string& by) {
  state_.known.memories[v] = std::move(l);
  state_.origin[v] = o;
  state_.reason[v] = std::move(reason);
  state_.pinned_by[v] = by;
}

void Inference::pin_strict() {
  for (ValueId v : ops_.values.ids())
    if (ops_.values[v].scope == ir::MemScope::local && distributed(v) && !pinned(state_, v))
      pin(v, Fragment::replicated(ops_.values[v].shape, in_.threads), Origin::strict,
          "a local buffer is private to each thread", "");
  for (const auto& [i, gemm] : in_.gemms) {
    const KernelOp& op = ops_.ops[i];
    const std::string why = "operand layout of " + gemm.atom;
    if (failed()) return;
    strict_fragment(i, op.accesses[2].value, gemm.c, why);
    for (int side = 0; side < 2; ++side) {
      ValueId v = op.accesses[static_cast<size_t>(side)].value;
      const auto& f = side == 0 ? gemm.a_fragment : gemm.b_fragment;
      const auto& m = side == 0 ? gemm.a_memory : gemm.b_memory;
      if (f && distributed(v)) strict_fragment(i, v, *f, why);
      if (m) strict_memory(i, v, *m, why);
    }
  }
  pin_shares();
}

// Each thread takes its share of what it holds.
void Inference::pin_shares() {
  if (shares_.empty() || failed()) return;
  for (const analysis::SumShare& s : shares_) {
    const KernelOp& op = ops_.ops[s.op];
    const std::string& sum = ops_.values[s.sum].name;
    const auto cut = distributed(s.sum) && pinned(state_, s.sum)
                         ? analysis::cut_fragment(fragment(state_, s.sum), s.dim, s.parts)
                         : std::nullopt;
    if (!cut || !distributed(s.own))
      return fail(
          DiagCode::schedule_illegal, op.path,
          "blocks cannot share what follows the loop: the " + std::to_string(s.parts) + " shares of '" + sum +
              "' along its dimension " + std::to_string(s.dim) +
              " are not the same registers of every thread" +
              (distributed(s.sum) && pinned(state_, s.sum) ? ", " + fragment(state_, s.sum).to_text() : ""),
          "give `through` cluster in the schedule's `split`", op.location);
    if (!pinned(state_, s.own)) pin(s.own, cut->own, Origin::strict, "a share of '" + sum + "'", op.path);
    if (!fragment(state_, s.own).equivalent(cut->own))
      return fail(DiagCode::schedule_illegal, op.path,
                  "the given layout of '" + ops_.values[s.own].name + "' is " +
                      fragment(state_, s.own).to_text() + ", and a share of '" + sum + "' is " +
                      cut->own.to_text(),
                  "leave the value's `fragment` out of the schedule", op.location);
    iteration_[s.op] = cut->own;
  }
}

// FragmentView otherwise, it is converted: that is seen to when the op is finished.
void Inference::strict_fragment(OpId id, ValueId v, const Fragment& want, const std::string& why) {
  const KernelOp& op = ops_.ops[id];
  if (!pinned(state_, v)) {
    pin(v, want.canonical(), Origin::strict, why, op.path);
    return;
  }
  if (fragment(state_, v).equivalent(want)) return;
  if (!in_.target.has_block_threads()) use_loop(id, v, want.to_text(), fragment(state_, v).to_text());
}

void Inference::strict_memory(OpId id, ValueId v, const Layout& want, const std::string& why) {
  const auto& have = state_.known.memories[v];
  if (!have) {
    pin_memory(v, want, Origin::strict, why, ops_.ops[id].path);
    return;
  }
  if (have->equivalent(want)) return;
  if (in_.target.has_block_threads())
    return;  // ldmatrix and plain loads read any layout; conflicts are counted, not refused
  use_loop(id, v, want.to_text(), have->to_text());
}

void Inference::use_loop(OpId id, ValueId v, const std::string& want, const std::string& have) {
  fallback_to_loop_.insert(id);
  result_.notes.push_back(
      {ops_.ops[id].path, "micro-kernel not used: it wants '" + ops_.values[v].name + "' as " + want +
                              ", but " + state_.pinned_by[v] + " pinned it as " + have +
                              "; copy the tile into a second buffer to have both at full speed"});
}

namespace {
std::atomic<int64_t> g_calls{0};

// Every layout is given. What the copy engine moves has no iteration.
bool is_complete(const plan::KernelSchedule& given, const KernelOps& ops) {
  return std::all_of(ops.values.begin(), ops.values.end(),
                     [&](const Value& v) {
                       const plan::ValuePlan* g = plan::find_value(given, v.name);
                       return g && (g->fragment || g->memory);
                     }) &&
         std::all_of(ops.ops.begin(), ops.ops.end(), [&](const KernelOp& op) {
           const plan::OpPlan* g = plan::find_op(given, op.path);
           return op.form == OpForm::contraction ||
                  (g && (g->iteration || g->engine == plan::Engine::tensor_copy));
         });
}

}  // namespace

Expected<InferResult> infer_layouts(const InferInput& input) {
  if (!input.given || !is_complete(*input.given, input.ops)) g_calls.fetch_add(1, std::memory_order_relaxed);
  InMemory in_memory = given_in_memory(input);
  for (;;) {  // every round moves a value or an op's copy of one to memory, in each island that has one
    Inference inference(input, in_memory);
    auto result = inference.run();
    if (inference.unheld().empty()) return result;
    InMemory found = inference.unheld();
    // What an op needed a copy for may be gone with the value: the plan is that of the values alone.
    for (const auto& [v, why] : found.values) {
      const auto beside = [&](const auto& access) {
        return inference.island(access.first.second) == inference.island(v);
      };
      std::erase_if(in_memory.accesses, beside);
      std::erase_if(found.accesses, beside);
    }
    in_memory.values.merge(found.values);
    in_memory.accesses.merge(found.accesses);
  }
}

int64_t infer_layouts_calls() { return g_calls.load(std::memory_order_relaxed); }

}  // namespace tilegen::infer
