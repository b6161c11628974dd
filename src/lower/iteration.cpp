// Iteration layouts -> loop nests. Register digits become loops, slowest first; the unit digit becomes the
// vector.
#include "lower/iteration.h"

#include <algorithm>

#include "lower/gpu/code_size.h"
#include "lower/lowering_context.h"
#include "support/checked.h"

namespace tilegen::lower {

using layout::Digit;

// Vectors of one pass of the innermost loop: independent work that hides latencies, and less loop overhead.
constexpr int64_t kUnroll = 4;
constexpr int64_t kCopiesTogether = 8;  // of the body of a loop that stays rolled

Nest make_nest(LoweringContext& k, const layout::Fragment& iteration, int64_t vector,
               const std::vector<int64_t>& extents) {
  ir::ExprPool& e = k.out.exprs;
  std::vector<Digit> digits;
  for (const Digit& d : iteration.map().digits())
    if (d.dim != layout::kReplica && d.output == layout::kRegister) digits.push_back(d);
  std::sort(digits.begin(), digits.end(), [](const Digit& a, const Digit& b) { return a.stride > b.stride; });

  Nest nest;
  nest.point.assign(extents.size(), e.const_int(0));
  nest.inside = e.const_int(1, ir::DType::boolean);
  auto loop = [&](int64_t extent, thread::LoopForm form, const char* name) {
    VarId var = k.out.add_var(name + std::to_string(k.out.vars.size()), ir::VarKind::loop);
    k.ctx.bind(var, 0, extent - 1);
    nest.loops.push_back({var, extent, form});
    return e.var(var);
  };
  std::vector<int64_t> reach(extents.size(), 1);  // points the digits of a dimension reach
  for (const Digit& d : digits) {
    size_t dim = static_cast<size_t>(d.dim);
    bool is_vector = vector > 1 && &d == &digits.back() && d.stride == 1 && d.weight == 1;
    int64_t extent = d.extent;
    ExprId value;
    if (is_vector) {
      int64_t chunks = ceil_div(d.extent, vector);
      ExprId chunk = e.const_int(0);
      if (chunks >= 2 * kUnroll && chunks % kUnroll == 0) {
        chunk = e.mul(loop(chunks / kUnroll, thread::LoopForm::serial, "i"), kUnroll);
        chunk = e.add(chunk, loop(kUnroll, thread::LoopForm::unrolled, "u"));
      } else if (chunks > 1) {
        chunk = loop(chunks, thread::LoopForm::serial, "i");
      }
      value = e.add(e.mul(chunk, vector), loop(vector, thread::LoopForm::vectorized, "lane"));
      extent = chunks * vector;
      if (extent != d.extent) nest.inside = e.logical_and(nest.inside, e.lt(value, e.const_int(d.extent)));
    } else {
      value = loop(d.extent, thread::LoopForm::serial, "i");
    }
    nest.point[dim] = e.add(nest.point[dim], e.mul(value, d.weight));
    reach[dim] += (d.extent - 1) * d.weight;
  }
  for (size_t d = 0; d < extents.size(); ++d) {
    nest.point[d] = k.simplified(nest.point[d]);
    if (reach[d] > extents[d])
      nest.inside = e.logical_and(nest.inside, e.lt(nest.point[d], e.const_int(extents[d])));
  }
  return nest;
}

thread::Block wrap(LoweringContext& k, const Nest& nest, size_t first, size_t last, thread::Block body,
                   const std::string& origin) {
  int64_t copies = 1;
  const std::vector<bool> rolled = rolled_loops(k, nest, first, last, body, origin, copies);
  for (size_t i = last; i-- > first;) {
    const NestLoop& l = nest.loops[i];
    if (rolled[i]) {
      body = rolled_loop(k, l, std::max<int64_t>(1, kCopiesTogether / copies), std::move(body), origin);
      copies = kCopiesTogether;  // loops around it write nothing out
    } else {
      body = {
          k.out.add(thread::Loop{l.var, k.out.exprs.const_int(l.extent), l.form, std::move(body)}, origin)};
    }
  }
  return body;
}

}  // namespace tilegen::lower
