// The free level: the cheapest root is found for what no instruction and no pinned layout decides.
//
// Every op that touches an unpinned value, with every candidate for its iterations, is a root: what it says
// of its values propagates, and the cost of all ops follows. A kernel of n ops has n times as many roots,
// most of which lead to a layout that was judged before; those are known without letting them propagate
// (RootSearch).
#include <algorithm>
#include <cmath>

#include "analysis/index_links.h"
#include "analysis/lane_reads.h"
#include "analysis/projection.h"
#include "analysis/scan_exchange.h"
#include "infer/inference.h"
#include "infer/root_search.h"

namespace tilegen::infer {

using layout::Fragment;
using layout::Layout;
using plan::Origin;

double Inference::cost_of(OpId id, const Fragment& iteration) {
  const KernelOp& op = ops_.ops[id];
  if (op.form != OpForm::element) return static_cast<double>(iteration.registers() * iteration.replicas());
  double cost = access_cost(p_, op, iteration, state_.known, in_.target);
  if (op.scan && in_.target.has_block_threads())
    cost +=
        analysis::scan_cost(iteration, op.scan->axis, p_.buffer(op.accesses.back().buffer).type, in_.target);
  if (in_.target.has_block_threads()) cost += bringing_cost(id, iteration);
  return cost * std::pow(8.0, op.depth);
}

namespace {

// Of a trip through shared memory, as accesses of each thread.
constexpr double kBarriers = 16;

}  // namespace

// In the measure of access_cost, for each thread: what is read is worked with, wherever it comes from; a
// shuffle, and a register that goes to shared memory or comes from there, are an access more. A value goes
// there once.
double Inference::bringing_cost(OpId id, const Fragment& iteration) {
  const KernelOp& op = ops_.ops[id];
  const auto points = static_cast<double>(iteration.registers());
  double each = 0;
  std::set<ValueId> through_memory;
  const FormId form = forms_.id_of(iteration);
  for (size_t i = 0; i < op.view.accesses.size(); ++i) {
    const ValueId v = op.accesses[i].value;
    if (!distributed(op, v) || !pinned(state_, v) || forms_.keeps_order(id, i)) continue;
    const ops::ElementAccess& a = op.view.accesses[i];
    const Fragment& held = fragment(state_, v);
    if (!analysis::index_links(a, op.view.extents, held.shape())) continue;
    each += points;
    if (forms_.covers(state_.form[v], form, id, i)) continue;
    const ir::DType type = p_.buffer(ops_.values[v].buffer).type;
    const auto shuffles = analysis::lane_shuffles(held, iteration, a, type, in_.target);
    each += points * static_cast<double>(shuffles.value_or(1));
    if (!shuffles && through_memory.insert(v).second)
      each += static_cast<double>(held.registers()) + kBarriers;
  }
  return each * static_cast<double>(in_.threads);
}

// Of a reduction whose result is held otherwise than it is made.
double Inference::result_cost(OpId id) {
  const KernelOp& op = ops_.ops[id];
  const ValueId src = op.accesses[0].value, dst = op.accesses[1].value;
  const bool held = distributed(op, src);
  if (!distributed(op, dst) || !pinned(state_, dst) || (held && !pinned(state_, src))) return 0;
  const FormId made = reduced_form(id, held ? state_.form[src] : candidates_.forms_of(op).front());
  if (!made.valid() || made == state_.form[dst]) return 0;
  const double registers =
      static_cast<double>(forms_.at(made).registers() + fragment(state_, dst).registers());
  return (registers + kBarriers) * static_cast<double>(in_.threads) * std::pow(8.0, op.depth);
}

double Inference::rooted_cost(OpId id) {
  if (ops_.ops[id].form == OpForm::reduction && in_.target.has_block_threads()) return result_cost(id);
  if (ops_.ops[id].form != OpForm::element) return 0;
  const int root = root_access(id);
  if (root >= 0 && forms_.keeps_order(id, static_cast<size_t>(root)))
    return cost_of(id, forms_.at(root_form(id, static_cast<size_t>(root))));
  if (!in_.target.has_block_threads() || !reads_beside(id)) return 0;
  double least = INFINITY;
  for (FormId form : iteration_forms(id)) least = std::min(least, cost_of(id, forms_.at(form)));
  return least == INFINITY ? 0 : least;
}

// It takes elements of a pinned value at places that its threads do not follow: these have to be brought.
bool Inference::reads_beside(OpId id) {
  const KernelOp& op = ops_.ops[id];
  for (size_t i = 0; i < op.view.accesses.size(); ++i) {
    const ValueId v = op.accesses[i].value;
    if (distributed(op, v) && pinned(state_, v) && !forms_.keeps_order(id, i) &&
        analysis::index_links(op.view.accesses[i], op.view.extents, ops_.values[v].shape))
      return true;
  }
  return false;
}

double Inference::total_cost(const std::set<OpId>& changed) {
  double cost = 0;
  auto next = changed.begin();
  for (OpId i : ops_.ops.ids()) {
    const bool asked = next != changed.end() && *next == i;
    if (asked) ++next;
    cost += asked ? rooted_cost(i) : costs_[i];
  }
  return cost;
}

bool Inference::seed(OpId id, FormId iteration) {
  const KernelOp& op = ops_.ops[id];
  const size_t mark = pinned_order_.size();
  if (op.form == OpForm::element) {
    propagate(id, iteration, Origin::free);
    return pinned_order_.size() > mark;
  }
  const ValueId src = op.accesses[0].value, dst = op.accesses[1].value;
  if (distributed(op, src) && !pinned(state_, src)) {
    const Fragment& f = forms_.at(iteration);
    if (f.shape() != ops_.values[src].shape) return false;
    pin(src, f.canonical(), Origin::free, "as " + op.path + " reads it", op.path);
  }
  if (distributed(op, dst) && !pinned(state_, dst))
    if (const FormId form = reduced_form(id, iteration); form.valid())
      pin_form(dst, form, Origin::free, "result of " + op.path, op.path);
  return pinned_order_.size() > mark;
}

void Inference::take_back(size_t mark) {
  for (; pinned_order_.size() > mark; pinned_order_.pop_back()) {
    const ValueId v = pinned_order_.back();
    state_.known.fragments[v].reset();
    state_.form[v] = {};
    state_.origin[v] = Origin::free;
    state_.reason[v].clear();
    state_.pinned_by[v].clear();
  }
}

// What is reduced comes first: its rows' results, and what is made of them, then follow it.
std::vector<ValueId> Inference::reduced_first() const {
  IdVector<ValueId, bool> is_reduced(ops_.values.size(), false);
  for (const KernelOp& op : ops_.ops)
    if (op.form == OpForm::reduction && op.accesses[0].value.valid()) is_reduced[op.accesses[0].value] = true;
  std::vector<ValueId> order;
  for (ValueId v : ops_.values.ids()) order.push_back(v);
  std::stable_partition(order.begin(), order.end(), [&](ValueId v) { return is_reduced[v]; });
  return order;
}

void Inference::free_values() {
  costs_.resize(ops_.ops.size());
  for (OpId i : ops_.ops.ids()) costs_[i] = rooted_cost(i);
  for (ValueId v : reduced_first()) {
    if (!distributed(v) || pinned(state_, v)) continue;
    const size_t mark = pinned_order_.size();
    free_value(v);
    for (OpId i : users_since(mark)) costs_[i] = rooted_cost(i);
  }
}

void Inference::free_value(ValueId v) {
  RootSearch search(v);
  for (OpId i : ops_leading_to(v))
    if (ops_.ops[i].form != OpForm::contraction && touches_unpinned(ops_.ops[i])) try_roots(i, search);
  if (!search.best.pins.empty()) {
    const RootResult& r = cheaper_when_whole(search);
    pin_all(r);
    state_.reason[v] += "; cheapest root: " + r.root;
    return;
  }
  // No op can propagate a layout to it (parts or irregular indices only): one thread's row-major, or a copy
  // per thread.
  const size_t mark = pinned_order_.size();
  pin(v, Fragment::replicated(ops_.values[v].shape, in_.threads), Origin::free,
      "only parts or computed indices of it are used; every thread holds a copy", "");
  propagate(users_since(mark));
}

void Inference::pin_all(const RootResult& r) {
  for (const RootResult::Pin& p : r.pins) pin_form(p.value, p.form, p.origin, p.reason, p.by);
}

// A root may leave values to others that a dearer one settles at once: both are judged with what all of these
// then take.
const RootResult& Inference::cheaper_when_whole(const RootSearch& search) {
  if (completing_ || search.fullest.pins.size() <= search.best.pins.size()) return search.best;
  std::vector<ValueId> settled;
  for (const RootResult::Pin& p : search.fullest.pins) settled.push_back(p.value);
  const double best = whole_cost(search.best, settled);
  return best > whole_cost(search.fullest, settled) + 1e-9 ? search.fullest : search.best;
}

// What all ops cost with this result and the cheapest roots of the values that it leaves open; those that are
// settled then.
double Inference::whole_cost(const RootResult& r, std::vector<ValueId>& settled) {
  const size_t mark = pinned_order_.size();
  const auto costs = costs_;
  completing_ = true;
  size_t counted = mark;
  const auto count = [&] {
    for (OpId i : users_since(counted)) costs_[i] = rooted_cost(i);
    counted = pinned_order_.size();
  };
  pin_all(r);
  count();
  for (ValueId v : settled) {
    if (pinned(state_, v)) continue;
    free_value(v);
    count();
  }
  double whole = 0;
  for (OpId i : ops_.ops.ids()) whole += costs_[i];
  settled.assign(pinned_order_.begin() + static_cast<std::ptrdiff_t>(mark), pinned_order_.end());
  completing_ = false;
  take_back(mark);
  costs_ = costs;
  return whole;
}

// The op's candidates, and what follows from values that it takes at computed indices: the threads that hold
// the elements, or others of their warps.
std::vector<FormId> Inference::iteration_forms(OpId id) {
  const KernelOp& op = ops_.ops[id];
  std::vector<FormId> forms = candidates_.forms_of(op);
  if (op.form != OpForm::element || !in_.target.has_block_threads()) return forms;
  for (size_t i : accesses_by_value(op)) {
    const ValueId v = op.accesses[i].value;
    if (!distributed(op, v) || !pinned(state_, v) || forms_.keeps_order(id, i)) continue;
    const FormId form = root_form(id, i);
    if (form.valid() && std::find(forms.begin(), forms.end(), form) == forms.end()) forms.push_back(form);
  }
  return forms;
}

void Inference::try_roots(OpId id, RootSearch& search) {
  const std::vector<FormId> forms = iteration_forms(id);
  for (FormId form : forms) {
    const size_t mark = pinned_order_.size();
    if (seed(id, form)) {
      const std::vector<RootSearch::Seed> seeds = search.seeds(pinned_order_, mark, state_.form);
      if (!search.known(seeds)) {
        propagate(users_since(mark));
        if (pinned(state_, search.value)) judge(id, mark, seeds, search);
      }
    }
    take_back(mark);
  }
}

// The layout that is pinned now, if it is cheaper; and which other roots lead to it.
void Inference::judge(OpId root, size_t mark, const std::vector<RootSearch::Seed>& seeds,
                      RootSearch& search) {
  const std::set<OpId> changed = users_since(mark);
  const double cost = total_cost(changed);
  const size_t settled = pinned_order_.size() - mark;
  const bool cheapest = cost < search.best.cost - 1e-9;
  const bool fullest = settled > search.fullest.pins.size() ||
                       (settled == search.fullest.pins.size() && cost < search.fullest.cost - 1e-9);
  if (cheapest || fullest) {
    RootResult r{{}, cost, ops_.ops[root].path};
    for (size_t i = mark; i < pinned_order_.size(); ++i) {
      const ValueId v = pinned_order_[i];
      r.pins.push_back({v, state_.form[v], state_.origin[v], state_.reason[v], state_.pinned_by[v]});
    }
    if (fullest) search.fullest = r;
    if (cheapest) search.best = std::move(r);
  }
  if (search.layouts.size() == RootSearch::kLayouts) return;
  IdVector<ValueId, bool> fresh(ops_.values.size(), false);
  for (size_t i = mark; i < pinned_order_.size(); ++i) fresh[pinned_order_[i]] = true;
  if (std::all_of(changed.begin(), changed.end(), [&](OpId i) { return coherent(i, fresh); }))
    search.layouts.push_back(sources_of(seeds, fresh));
}

std::set<OpId> Inference::ops_leading_to(ValueId v) const {
  std::set<OpId> found;
  std::vector<ValueId> pending = {v};
  IdVector<ValueId, bool> seen(ops_.values.size(), false);
  seen[v] = true;
  while (!pending.empty()) {
    const ValueId at = pending.back();
    pending.pop_back();
    for (OpId i : users_[at]) {
      if (!found.insert(i).second) continue;
      for (const OpAccess& a : ops_.ops[i].accesses) {
        if (!a.value.valid() || seen[a.value] || !distributed(ops_.ops[i], a.value) ||
            pinned(state_, a.value))
          continue;
        seen[a.value] = true;
        pending.push_back(a.value);
      }
    }
  }
  return found;
}

bool Inference::touches_unpinned(const KernelOp& op) const {
  return std::any_of(op.accesses.begin(), op.accesses.end(),
                     [&](const OpAccess& a) { return distributed(op, a.value) && !pinned(state_, a.value); });
}

void Inference::shared_rest() {
  for (ValueId v : ops_.values.ids())
    if (ops_.values[v].scope == ir::MemScope::shared && !state_.known.memories[v])
      pin_memory(v, Layout::row_major(ops_.values[v].shape), Origin::free,
                 "row-major: no instruction asks for another form", "");
}

}  // namespace tilegen::infer
