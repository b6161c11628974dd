#include "schedule/form/order_variables.h"

#include <algorithm>
#include <numeric>

#include "arith/prove.h"
#include "check/index_form.h"
#include "ir/annotations.h"

namespace tilegen::schedule {

namespace {

const ir::Store* first_store(const ir::Program& p, const ir::Block& body) {
  const ir::Store* first = nullptr;
  ir::for_each_statement(p, body, [&](ir::StmtId id, int) {
    if (!first) first = p.as<ir::Store>(id);
  });
  return first;
}

// The last dimension whose index has the variable; and there, larger steps first.
struct Walked {
  int dim = -1;
  int64_t minus_step = 0;
  auto operator<=>(const Walked&) const = default;
};

}  // namespace

bool order_variables(ir::Program& p) {
  bool any = false;
  check::IndexForms forms(p);
  for (ir::Stmt& s : p.stmts) {
    auto* loop = std::get_if<ir::Loop>(&s.node);
    if (!loop || loop->kind != ir::LoopKind::parallel || loop->vars.size() < 2 || ir::fixes_threads(s))
      continue;
    const ir::Store* store = first_store(p, loop->body);
    if (!store) continue;
    std::vector<Walked> walked(loop->vars.size());
    for (size_t v = 0; v < loop->vars.size(); ++v)
      for (size_t d = 0; d < store->indices.size(); ++d)
        if (arith::depends_on(p.exprs, store->indices[d], loop->vars[v]))
          walked[v] = {static_cast<int>(d), -forms.coefficient(store->indices[d], loop->vars[v])};
    std::vector<size_t> order(loop->vars.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return walked[a] < walked[b]; });
    if (std::is_sorted(order.begin(), order.end())) continue;
    const std::vector<ir::VarId> vars = loop->vars;
    const std::vector<ir::ExprId> extents = loop->extents;
    for (size_t v = 0; v < order.size(); ++v) {
      loop->vars[v] = vars[order[v]];
      loop->extents[v] = extents[order[v]];
    }
    any = true;
  }
  return any;
}

}  // namespace tilegen::schedule
