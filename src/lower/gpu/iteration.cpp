// Iteration layouts of a block of many threads -> loops over what one thread does, and the thread digits that
// say which part is its own.
#include "lower/gpu/iteration.h"

#include <algorithm>

#include "lower/addressing.h"
#include "lower/lowering_context.h"
#include "lower/statement_exprs.h"
#include "support/checked.h"
#include "support/diag_codes.h"
#include "thread/perfect_nest.h"

namespace tilegen::lower {

using layout::Digit;

// The thread coordinate taken apart, digit by digit from the largest stride. Threads in the gaps that the
// digits leave wrap around into the digits, so that what they compute is inside the tile; `reached` tells
// them from the others.
ThreadDigits thread_digits(LoweringContext& k, const layout::Fragment& f) {
  ir::ExprPool& e = k.out.exprs;
  std::vector<Digit> digits;
  for (const Digit& d : f.map().digits())
    if (d.output == layout::kThread && d.stride > 0) digits.push_back(d);
  std::sort(digits.begin(), digits.end(), [](const Digit& a, const Digit& b) { return a.stride > b.stride; });

  int64_t below = 0;  // largest thread that the digits below reach
  for (size_t i = digits.size(); i-- > 0;) {
    if (digits[i].stride <= below)
      k.fail(
          DiagCode::target_unsupported, k.at.origin,
          "the thread digits of " + f.to_text() + " overlap: a thread does not tell which elements it holds",
          "use strides that are multiples of what the smaller digits reach");
    below += digits[i].stride * (digits[i].extent - 1);
  }

  ThreadDigits result;
  const ExprId tid = k.out.thread_var.valid() ? e.var(k.out.thread_var) : e.const_int(0);
  ExprId rest = tid;
  int64_t span = k.out.threads;  // values of `rest`
  for (const Digit& d : digits) {
    ExprId value = e.floordiv(rest, e.const_int(d.stride));
    const int64_t values = ceil_div(span, d.stride);
    if (values > d.extent) {
      result.reached = both(k, result.reached, k.simplified(e.lt(value, e.const_int(d.extent))));
      value = e.floormod(value, e.const_int(d.extent));
    }
    result.digits.push_back({d, k.simplified(value)});
    rest = e.floormod(rest, e.const_int(d.stride));
    span = std::min(span, d.stride);
  }
  if (span > 1) {
    rest = k.simplified(rest);
    result.reached = both(k, result.reached, k.simplified(e.binary(ir::ExprOp::eq, rest, e.const_int(0))));
  }
  return result;
}

Nest make_thread_nest(LoweringContext& k, const layout::Fragment& iteration, int64_t vector,
                      const std::vector<int64_t>& extents, bool serial, int64_t parts) {
  ir::ExprPool& e = k.out.exprs;
  Nest nest;
  nest.point.assign(extents.size(), e.const_int(0));
  nest.inside = e.const_int(1, ir::DType::boolean);
  std::vector<int64_t> reach(extents.size(), 1);
  auto add = [&](const Digit& d, ExprId value) {
    const size_t dim = static_cast<size_t>(d.dim);
    nest.point[dim] = e.add(nest.point[dim], e.mul(value, d.weight));
    reach[dim] += (d.extent - 1) * d.weight;
  };

  const ThreadDigits threads = thread_digits(k, iteration);
  nest.writer = threads.reached;
  for (const ThreadDigit& t : threads.digits) {
    if (t.digit.dim == layout::kReplica) {
      // Of a warpgroup that works alone, its own first.
      const int64_t first = k.role.warpgroup.value_or(0) * k.in.target.warpgroup;
      const ExprId holder = e.const_int(first / t.digit.stride % t.digit.extent);
      nest.writer = both(k, nest.writer, k.simplified(e.binary(ir::ExprOp::eq, t.value, holder)));
      continue;
    }
    const VarId var = k.out.add_var("t" + std::to_string(k.out.vars.size()), ir::VarKind::loop);
    k.ctx.bind(var, 0, t.digit.extent - 1);
    nest.thread_digits[var] = t.value;
    if (t.digit.stride % k.in.target.warp == 0) nest.warp_digits[var] = t.digit;
    add(t.digit, e.var(var));
  }

  auto loop = [&](int64_t extent, thread::LoopForm form, const char* name) {
    const VarId var = k.out.add_var(name + std::to_string(k.out.vars.size()), ir::VarKind::loop);
    k.ctx.bind(var, 0, extent - 1);
    if (form != thread::LoopForm::serial) k.walk.fixed_vars.insert(var);
    if (form == thread::LoopForm::vectorized) k.walk.lanes[var] = extent;
    nest.loops.push_back({var, extent, form});
    return e.var(var);
  };
  const thread::LoopForm form = serial ? thread::LoopForm::serial : thread::LoopForm::unrolled;
  std::vector<Digit> digits;  // a thread digit of stride 0 is walked by the one thread that holds its points
  for (const Digit& d : iteration.map().digits())
    if (d.dim != layout::kReplica && (d.output == layout::kRegister || d.stride == 0)) digits.push_back(d);
  std::stable_sort(digits.begin(), digits.end(),
                   [](const Digit& a, const Digit& b) { return a.stride > b.stride; });
  for (const Digit& d : digits) {
    const bool is_vector = vector > 1 && d.output == layout::kRegister && d.stride == 1 && d.weight == 1 &&
                           d.extent % vector == 0;
    if (!is_vector && nest.loops.empty() && parts > 0 && parts < d.extent) {
      const ExprId part = loop(parts, form, "p");
      add(d, e.add(e.mul(part, d.extent / parts), loop(d.extent / parts, form, "i")));
      continue;
    }
    if (!is_vector) {
      add(d, loop(d.extent, form, "i"));
      continue;
    }
    const ExprId chunk = d.extent > vector ? loop(d.extent / vector, form, "i") : e.const_int(0);
    add(d, e.add(e.mul(chunk, vector), loop(vector, thread::LoopForm::vectorized, "lane")));
  }
  for (size_t d = 0; d < extents.size(); ++d) {
    nest.point[d] = k.simplified(nest.point[d]);
    nest.extents.push_back(reach[d] > extents[d] ? extents[d] : 0);
    if (reach[d] > extents[d])
      nest.inside = e.logical_and(nest.inside, e.lt(nest.point[d], e.const_int(extents[d])));
  }
  return nest;
}

void finish_thread_nest(LoweringContext& k, const Nest& nest, const thread::Block& body) {
  if (nest.thread_digits.empty()) return;
  thread::VarSubstitution replace(k.out.exprs, nest.thread_digits);
  for_each_expr_below(k.out, body, [&](ExprId& e) {
    if (e) e = k.simplified(replace(e));
  });
  for (thread::Guard& g : k.out.guards)
    for (ExprId& bound : g.bounds) bound = k.simplified(replace(bound));
}

}  // namespace tilegen::lower
