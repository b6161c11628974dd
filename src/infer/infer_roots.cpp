// Which roots lead to one layout.
//
// A trial root pins values, its seeds, and these pin others. Where every op then agrees with all of its
// values (from whichever of them its iterations are followed, it says of the others what they are pinned as),
// order does not matter: whoever begins with some of these layouts can only pin more of them. So a root whose
// seeds are part of the layout, and propagate to the seeds of the root that was tried, leads to all of it, at
// the same cost.
#include <algorithm>

#include "infer/inference.h"

namespace tilegen::infer {

bool Inference::coherent(OpId id, const IdVector<ValueId, bool>& fresh) {
  const KernelOp& op = ops_.ops[id];
  if (op.form == OpForm::element) return coherent_loop(id, fresh);
  if (op.form != OpForm::reduction) return true;
  const ValueId src = op.accesses[0].value, dst = op.accesses[1].value;
  if (!distributed(op, src) || !distributed(op, dst) || !pinned(state_, src)) return true;
  const FormId form = reduced_form(id, state_.form[src]);
  return !form.valid() || (fresh[dst] ? state_.form[dst] == form : pinned(state_, dst));
}

bool Inference::coherent_loop(OpId id, const IdVector<ValueId, bool>& fresh) {
  const KernelOp& op = ops_.ops[id];
  std::vector<FormId> iterations;
  std::map<int, FormId> by_dims;  // where the choice among roots must not matter
  for (size_t i = 0; i < op.view.accesses.size(); ++i) {
    const FormId form = root_form(id, i);
    if (!form.valid()) continue;
    const int walked = walked_dims(op.view.accesses[i]);
    if (by_dims.try_emplace(walked, form).first->second != form) return false;
    iterations.push_back(form);
  }
  std::sort(iterations.begin(), iterations.end());
  iterations.erase(std::unique(iterations.begin(), iterations.end()), iterations.end());
  if (iterations.empty()) return true;
  for (size_t i = 0; i < op.view.accesses.size(); ++i) {
    const ValueId v = op.accesses[i].value;
    if (!distributed(op, v)) continue;
    const bool propagates = forms_.projected(iterations.front(), id, i).valid();
    for (FormId iteration : iterations) {
      const FormId form = forms_.projected(iteration, id, i);
      if (form.valid() != propagates) return false;
      if (propagates && (fresh[v] ? form != state_.form[v] : !pinned(state_, v))) return false;
    }
  }
  return true;
}

std::vector<ValueId> Inference::propagated_to(ValueId v, const IdVector<ValueId, bool>& fresh) {
  std::vector<ValueId> found;
  for (OpId id : users_[v]) {
    const KernelOp& op = ops_.ops[id];
    if (op.form == OpForm::reduction && op.accesses[1].value == v && distributed(op, v)) {
      const ValueId src = op.accesses[0].value;
      if (distributed(op, src) && fresh[src] && reduced_form(id, state_.form[src]).valid())
        found.push_back(src);
    }
    if (op.form != OpForm::element) continue;
    for (size_t i = 0; i < op.view.accesses.size(); ++i) {
      const FormId iteration = root_form(id, i);
      if (!iteration.valid() || !fresh[op.accesses[i].value]) continue;
      for (size_t k = 0; k < op.view.accesses.size(); ++k)
        if (op.accesses[k].value == v && distributed(op, v) && forms_.projected(iteration, id, k).valid()) {
          found.push_back(op.accesses[i].value);
          break;
        }
    }
  }
  return found;
}

IdVector<ValueId, FormId> Inference::sources_of(const std::vector<std::pair<ValueId, FormId>>& seeds,
                                                const IdVector<ValueId, bool>& fresh) {
  IdVector<ValueId, size_t> reaches(ops_.values.size(), 0);  // how many of the seeds
  for (size_t s = 0; s < seeds.size(); ++s) {
    std::vector<ValueId> pending = {seeds[s].first};
    while (!pending.empty()) {
      const ValueId v = pending.back();
      pending.pop_back();
      if (reaches[v] != s) continue;  // seen, or short of an earlier one
      ++reaches[v];
      for (ValueId from : propagated_to(v, fresh)) pending.push_back(from);
    }
  }
  IdVector<ValueId, FormId> forms(ops_.values.size());
  for (ValueId v : forms.ids())
    if (fresh[v] && reaches[v] == seeds.size()) forms[v] = state_.form[v];
  return forms;
}

}  // namespace tilegen::infer
