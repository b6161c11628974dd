// The end of inference: every op gets its iteration layout, every disagreement its conversion.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/copy_groups.h"
#include "analysis/exchange.h"
#include "analysis/index_links.h"
#include "analysis/lane_reads.h"
#include "analysis/neighbour_accesses.h"
#include "analysis/projection.h"
#include "analysis/scan_exchange.h"
#include "infer/inference.h"
#include "support/diag_codes.h"

namespace tilegen::infer {

using ir::Program;
using layout::ConversionKind;
using layout::Fragment;
using layout::Layout;
using plan::Origin;

namespace {

// What a thread copies to one place after the other, as far as one copy may move it; whether it is aligned is
// for the facts of its addresses.
int64_t elements_beside(int64_t element_bytes, const Fragment& iteration, const target::Target& t) {
  const layout::Digit* digit = analysis::vector_digit(iteration);
  int64_t width = digit ? digit->extent : 1;
  while ((width & (width - 1)) != 0 || width * element_bytes > t.async_copy_bytes.back()) --width;
  return width;
}

}  // namespace

void Inference::finish_op(OpId id) {
  const KernelOp& op = ops_.ops[id];
  plan::OpPlan& plan = result_.ops[id];
  plan.op = op.path;
  for (const auto& [access, why] : in_memory_.accesses)
    if (access.first == id) plan.through_memory.push_back(ops_.values[access.second].name);
  if (op.form == OpForm::contraction) return finish_gemm(id, plan);
  const auto takes = [&](const analysis::SumShare& s) { return s.op == id; };
  if (std::any_of(shares_.begin(), shares_.end(), takes)) {
    plan.engine = plan::Engine::loop;
    plan.iteration = iteration_[id];
    plan.vector = 1;
    plan.reason = "each block takes its share of the sums where the blocks meet";
    return;
  }
  plan.engine = op.form == OpForm::reduction ? plan::Engine::lane_reduce : plan::Engine::loop;
  Fragment iteration = op.form == OpForm::reduction ? reduce_iteration(id) : element_iteration(id, plan);
  const auto transposing = transposing_copy(p_, op, in_.threads, state_.known, in_.target);
  const bool transposes = transposing && is_transposing(id, *transposing);
  if (transposes && !iteration_[id]) iteration = transposing->iteration;
  plan.iteration = iteration;
  if (op.form == OpForm::element) {
    plan.vector =
        transposes ? transposing->vector : vector_width(p_, op, iteration, state_.known, in_.target);
    if (!transposes && in_.target.has_block_threads() &&
        !(plan.vector > 1 && analysis::walks_in_vectors(p_, op, iteration, plan.vector))) {
      const auto runs = analysis::neighbour_runs(p_, op, in_.target.vector_bytes);
      if (!runs.empty()) plan.vector = 1;
      for (const analysis::NeighbourRun& run : runs) plan.vector = std::max(plan.vector, run.width());
    }
    if (transposes) {
      plan.transposing = true;
      plan.reason = "blocks along the tensor's rows, stored as the tile lies";
    }
    if (analysis::has_copy_groups(in_.target) && ir::is_asynchronous(p_.stmt(op.stmt)))
      plan.vector = std::max(
          plan.vector,
          elements_beside(ir::dtype_bytes(p_.buffer(op.accesses.back().buffer).type), iteration, in_.target));
    // Parts of the widest access, in powers of two.
    if (const plan::OpPlan* g = given(id); g && g->vector > 0 && plan.vector % g->vector == 0)
      plan.vector = g->vector;
    if (op.scan) finish_scan(op, plan);
  }
  if (in_.threads > 1) {
    if (op.form == OpForm::reduction)
      reduce_conversions(op, iteration);
    else
      element_conversions(id, iteration);
  }
}

// As planned, or as the schedule says and its iterations allow.
bool Inference::is_transposing(OpId id, const TransposingCopy& copy) const {
  const plan::OpPlan* g = given(id);
  if (g && g->transposing && !*g->transposing) return false;
  return !iteration_[id] || iteration_[id]->equivalent(copy.iteration);
}

// A scan has its elements in registers between reading and writing them.
void Inference::finish_scan(const KernelOp& op, plan::OpPlan& plan) {
  if (in_.threads == 1) return;
  if (plan.iteration->registers() > kMaxRegisters)
    return fail(DiagCode::limit_memory, op.path,
                "each thread would have " + std::to_string(plan.iteration->registers()) +
                    " registers of it, more than " + std::to_string(kMaxRegisters),
                "use a smaller tile or more threads", op.location);
  const ir::DType type = p_.buffer(op.accesses.back().buffer).type;
  const std::string levels =
      analysis::to_text(analysis::scan_exchange(*plan.iteration, op.scan->axis, type, in_.target));
  if (!levels.empty()) plan.reason += "; the axis goes by " + levels;
}

const plan::OpPlan* Inference::given(OpId id) const {
  return in_.given ? plan::find_op(*in_.given, ops_.ops[id].path) : nullptr;
}

void Inference::finish_gemm(OpId id, plan::OpPlan& plan) {
  const plan::GemmPlan& gemm = in_.gemms.at(id);
  const KernelOp& op = ops_.ops[id];
  plan.engine = fallback_to_loop_.count(id) ? plan::Engine::loop : gemm.engine;
  plan.atom = plan.engine == plan::Engine::loop ? "" : gemm.atom;
  plan.warps_m = gemm.warps_m;
  plan.warps_n = gemm.warps_n;
  if (plan.engine == plan::Engine::mma) {
    const plan::OpPlan* g = given(id);
    plan.steps_ahead = g && g->steps_ahead > 0 ? g->steps_ahead : gemm.steps_ahead;
  }
  plan.reason =
      plan.engine == plan::Engine::loop ? "operand layouts contradict another op's (see notes)" : gemm.reason;
  if (const ValueId c = op.accesses[2].value;
      in_.target.has_block_threads() && plan.engine != plan::Engine::loop) {
    const std::string& by = state_.pinned_by[c];
    if (op.accesses[2].read) convert(c, fragment(state_, c), gemm.c, by, op.path, op.location, true);
    convert(c, gemm.c, fragment(state_, c), op.path, by, op.location, true);
  }
  for (int side = 0; side < 2; ++side) {
    const auto& want = side == 0 ? gemm.a_fragment : gemm.b_fragment;
    ValueId v = op.accesses[static_cast<size_t>(side)].value;
    if (want && distributed(v))
      convert(v, fragment(state_, v), *want, state_.pinned_by[v], op.path, op.location, true);
  }
}

Fragment Inference::reduce_iteration(OpId id) {
  if (iteration_[id]) return *iteration_[id];
  const KernelOp& op = ops_.ops[id];
  ValueId src = op.accesses[0].value;
  if (distributed(op, src) && fragment(state_, src).shape() == iteration_extents(p_, op))
    return fragment(state_, src);
  return candidates_.of(op).front();
}

Fragment Inference::element_iteration(OpId id, plan::OpPlan& plan) {
  const KernelOp& op = ops_.ops[id];
  if (iteration_[id]) {
    plan.reason = "given";
    return *iteration_[id];
  }
  if (auto copies = iteration_of_copies(op)) {
    plan.reason = "every thread writes its own copy";
    return *copies;
  }
  int root = root_access(id);
  // Where elements lie otherwise than the points it is weighed whether threads follow them.
  if (root >= 0 && (forms_.keeps_order(id, static_cast<size_t>(root)) || !in_.target.has_block_threads())) {
    ValueId v = op.accesses[static_cast<size_t>(root)].value;
    plan.reason = "threads follow " + ops_.values[v].name;
    return forms_.at(root_form(id, static_cast<size_t>(root)));
  }
  // What every thread holds a copy of, every thread writes.
  const bool everywhere = std::any_of(op.accesses.begin(), op.accesses.end(), [&](const OpAccess& a) {
    return a.write && distributed(op, a.value) && pinned(state_, a.value) &&
           fragment(state_, a.value).replicas() == in_.threads;
  });
  if (everywhere && in_.threads > 1) {
    plan.reason = "every thread writes its own copy";
    return Fragment::replicated(op.view.extents, in_.threads);
  }
  std::vector<Fragment> list;
  for (FormId form : iteration_forms(id)) list.push_back(forms_.at(form));
  size_t best = 0;
  double best_cost = INFINITY;
  for (size_t i = 0; i < list.size(); ++i) {
    double cost = cost_of(id, list[i]);
    if (cost < best_cost - 1e-9) {
      best_cost = cost;
      best = i;
    }
  }
  plan.reason = std::string(op.scan ? "cheapest accesses and exchange" : "fewest memory transactions") +
                " of " + std::to_string(list.size()) + " candidates";
  return list[best];
}

bool Inference::finds_as_held(const KernelOp& op, size_t access, const Fragment& held,
                              const Fragment& iteration) const {
  const ops::ElementAccess& a = op.view.accesses[access];
  if (a.write) return false;
  const ir::DType type = p_.buffer(a.buffer).type;
  return analysis::covers(held, iteration, a) ||
         analysis::held_by_lanes(held, iteration, a, type, in_.target);
}

// Elements beside those that it names cannot be brought along or written with them.
std::optional<Fragment> Inference::form_needed(const KernelOp& op, size_t access,
                                               const Fragment& iteration) const {
  const ops::ElementAccess& a = op.view.accesses[access];
  const Fragment& held = fragment(state_, op.accesses[access].value);
  auto needed = analysis::project(iteration, a, held.shape());
  const auto links = analysis::index_links(a, op.view.extents, held.shape());
  if (!needed || !links || links->names_all()) return needed;
  std::vector<int> same(static_cast<size_t>(held.rank()));
  std::iota(same.begin(), same.end(), 0);
  const bool in_place = a.write && analysis::covers(held, iteration, a) && needed->covers(held, same);
  return in_place ? std::optional(held) : std::nullopt;
}

// Lanes exchange one element after the other.
void Inference::of_lanes(OpId id, size_t access, const Fragment& iteration, int64_t shuffles) {
  plan::OpPlan& plan = result_.ops[id];
  plan.vector = 1;
  const KernelOp& op = ops_.ops[id];
  const ValueId v = op.accesses[access].value;
  const ops::ElementAccess& a = op.view.accesses[access];
  const auto* loop = p_.as<ir::Loop>(op.stmt);
  const bool voted = loop && analysis::lanes_hold_rows(fragment(state_, v), iteration, a, in_.target) &&
                     analysis::is_voted_on(p_, *loop, a);
  const std::string words = voted ? "; lanes vote on elements of " + ops_.values[v].name
                                  : "; lanes hand over elements of " + ops_.values[v].name + ", by " +
                                        std::to_string(shuffles) +
                                        (shuffles == 1 ? " shuffle each" : " shuffles each");
  if (plan.reason.find(words) == std::string::npos) plan.reason += words;
}

// Wherever operands stand in an expression, the one that the program made first is judged first.
std::vector<size_t> Inference::accesses_by_value(const KernelOp& op) {
  std::vector<size_t> order(op.view.accesses.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return op.accesses[a].value.value < op.accesses[b].value.value;
  });
  return order;
}

void Inference::element_conversions(OpId id, const Fragment& iteration) {
  const KernelOp& op = ops_.ops[id];
  std::map<ValueId, Fragment> forms;                   // in which the op takes a value
  std::vector<std::pair<size_t, ValueId>> held_reads;  // accesses that find it as it is held
  const size_t conversions = result_.conversions.size();
  for (size_t i : accesses_by_value(op)) {
    if (failed()) break;
    ValueId v = op.accesses[i].value;
    if (!distributed(op, v)) continue;
    const ops::ElementAccess& a = op.view.accesses[i];
    const Fragment& held = fragment(state_, v);
    const ir::DType type = p_.buffer(ops_.values[v].buffer).type;
    if (too_many_choices(op, iteration, i))
      return cannot_hold(op, v,
                         "chooses among " + std::to_string(held.registers()) + " registers of a thread",
                         "index it by the loop's own variables");
    const auto needed = form_needed(op, i, iteration);
    if (!forms_.keeps_order(id, i) && !a.write) {
      bool as_held = analysis::covers(held, iteration, a);
      const auto shuffles = analysis::lane_shuffles(held, iteration, a, type, in_.target);
      if (!as_held && shuffles) {
        const int64_t brought =
            *shuffles * analysis::conversion_cycles(ConversionKind::shuffle, iteration, type);
        as_held = !needed ||
                  brought <= analysis::conversion_cycles(
                                 analysis::conversion_kind(held, *needed, in_.target, type), *needed, type);
      }
      if (as_held) {
        held_reads.push_back({i, v});
        if (!analysis::covers(held, iteration, a)) of_lanes(id, i, iteration, *shuffles);
        continue;
      }
    }
    if (!needed) {
      if (everywhere(v) && (!a.write || iteration.replicas() == in_.threads)) continue;
      const bool walked =
          !everywhere(v) && !op.scan && analysis::part_of_fragment(p_, op, [&](ValueId other) {
                                          return distributed(op, other);
                                        }) == static_cast<int>(i);
      if (walked) continue;
      return cannot_hold(
          op, v,
          "indexes it in a way that cannot be followed to a thread, which takes about " +
              std::to_string(analysis::conversion_cycles(ConversionKind::shared_bounce, iteration, type)) +
              " cycles",
          "index fragments by the loop's own variables over their whole extents");
    }
    // Conversions give an op one form of a value.
    const auto [form, first] = forms.try_emplace(v, *needed);
    if (!first && !form->second.equivalent(*needed) && !(analysis::covers(held, iteration, a) && !a.write))
      return cannot_hold(op, v, "takes it in two layouts at once", "copy it into a second buffer");
    if (a.write)
      convert(v, *needed, held, op.path, state_.pinned_by[v], op.location, false);
    else if (!analysis::covers(held, iteration, a))
      convert(v, held, *needed, state_.pinned_by[v], op.path, op.location, false);
  }
  for (const auto& [access, v] : held_reads) {
    const bool converted = std::any_of(
        result_.conversions.begin() + static_cast<std::ptrdiff_t>(conversions), result_.conversions.end(),
        [&, name = ops_.values[v].name](const plan::ConversionPlan& c) { return c.value == name; });
    if (converted && !finds_as_held(op, access, forms.at(v), iteration))
      return cannot_hold(op, v, "takes it in two layouts at once", "copy it into a second buffer");
  }
}

void Inference::reduce_conversions(const KernelOp& op, const Fragment& iteration) {
  const ValueId src = op.accesses[0].value, dst = op.accesses[1].value;
  if (distributed(op, src)) {
    const Fragment& held = fragment(state_, src);
    std::vector<int> same(static_cast<size_t>(held.rank()));
    std::iota(same.begin(), same.end(), 0);
    const bool whole = held.shape() == iteration_extents(p_, op);
    if (whole ? !held.covers(iteration, same) : !everywhere(src) || held.registers() > kMaxRegisterChoices)
      return cannot_hold(op, src,
                         whole ? "reduces elements that its threads do not hold" : "reduces a part of it",
                         "copy the part into a fragment of its own");
  }
  if (!distributed(op, dst)) return;
  auto made = reduced(op, iteration);
  if (!made) {
    if (everywhere(dst)) return;
    return cannot_hold(op, dst, "reduces to a part of it", "reduce into a whole fragment and copy it");
  }
  convert(dst, *made, fragment(state_, dst), op.path, state_.pinned_by[dst], op.location, false);
}

void Inference::convert(ValueId v, const Fragment& from, const Fragment& to, const std::string& producer,
                        const std::string& consumer, const SourceLocation& loc, bool registers_matter) {
  if (from.equivalent(to) || in_.threads == 1) return;
  const Value& value = ops_.values[v];
  const ir::DType type = p_.buffer(value.buffer).type;
  const ConversionKind kind = analysis::conversion_kind(from, to, in_.target, type);
  if (kind == ConversionKind::none || (kind == ConversionKind::register_permute && !registers_matter)) return;
  if (!in_.conversions) {
    fail(DiagCode::conversion_refused, consumer,
         "value '" + value.name + "' is made by " + producer + " as " + from.to_text() + " but " + consumer +
             " needs it as " + to.to_text() + " (a " + layout::conversion_name(kind) + ")",
         "allow layout conversions, or give both ops the same warp policy", loc);
    return;
  }
  plan::ConversionPlan c;
  c.value = value.name;
  c.producer = holder(v, producer, consumer);
  c.consumer = holder(v, consumer, producer);
  c.kind = kind;
  c.from = from.canonical();
  c.to = to.canonical();
  c.cost = analysis::conversion_cycles(kind, to, type);
  c.reason = std::string(layout::conversion_name(kind)) + ": the two ops hold the value on different " +
             (kind == ConversionKind::register_permute ? "registers" : "threads");
  result_.conversions.push_back(std::move(c));
}

std::string Inference::holder(ValueId v, const std::string& pinned_by, const std::string& other) const {
  if (pinned_by != kGiven) return pinned_by;
  for (const KernelOp& op : ops_.ops)
    if (op.path != other &&
        std::any_of(op.accesses.begin(), op.accesses.end(), [&](const OpAccess& a) { return a.value == v; }))
      return op.path;
  return "";
}

}  // namespace tilegen::infer
