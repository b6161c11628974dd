#include "analysis/lane_reads.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "analysis/index_links.h"
#include "ir/expr_nodes.h"
#include "ir/group_vote.h"
#include "ir/store_parts.h"

namespace tilegen::analysis {

using layout::Digit;
using layout::Fragment;
using layout::kRegister;
using layout::kReplica;
using layout::kThread;

namespace {

constexpr int kMaxBytes = 8;      // two words
constexpr int64_t kMaxAsked = 4;  // registers of a lane

bool power_of_two(int64_t v) { return v > 0 && (v & (v - 1)) == 0; }

// Every thread has an element, and none is padding.
bool fills_threads(const Fragment& f, const target::Target& t) {
  int64_t threads = 1;
  for (const Digit& d : f.map().digits()) {
    if (d.output != kThread || d.stride == 0) continue;
    if (!power_of_two(d.stride) || !power_of_two(d.extent)) return false;
    threads *= d.extent;
  }
  for (int d = 0; d < f.rank(); ++d)
    if (f.map().padded_extent(d) != f.shape()[static_cast<size_t>(d)]) return false;
  return threads == f.threads() && threads % t.warp == 0;
}

bool on_threads(const Digit& d) { return d.output == kThread && d.stride > 0 && d.extent > 1; }

// Bits of the thread number that tell its warp, with what they stand for.
using WarpBit = std::tuple<int64_t, int, int64_t>;  // stride, dim, weight

std::vector<WarpBit> warp_bits(const Fragment& f, const target::Target& t) {
  std::vector<WarpBit> bits;
  for (const Digit& d : f.map().digits())
    for (int64_t bit = 1; on_threads(d) && bit < d.extent; bit *= 2)
      if (d.stride * bit >= t.warp && d.dim != kReplica)
        bits.push_back({d.stride * bit, d.dim, d.weight * bit});
  return bits;
}

const IndexLink* link_at(const IndexLinks& links, int buffer_dim, int64_t weight) {
  for (const IndexLink& l : links.list)
    if (l.buffer == buffer_dim && l.weight <= weight && weight < l.weight * l.extent &&
        weight % l.weight == 0)
      return &l;
  return nullptr;
}

bool same_warp(const Fragment& held, const Fragment& iteration, const IndexLinks& links,
               const target::Target& t) {
  const std::vector<WarpBit> run = warp_bits(iteration, t);
  const std::set<WarpBit> readers(run.begin(), run.end());
  for (const auto& [stride, dim, weight] : warp_bits(held, t)) {
    const IndexLink* l = link_at(links, dim, weight);
    if (!l || l->permuted) return false;
    if (!readers.count({stride, l->iteration, weight / l->weight * l->divisor})) return false;
  }
  return true;
}

bool is_turned(const ops::ElementAccess& access, const IndexLink& l) {
  const auto& terms = access.terms[static_cast<size_t>(l.buffer)];
  return std::any_of(terms.begin(), terms.end(),
                     [&](const ops::IndexTerm& term) { return term.weight == l.weight && term.turn != 0; });
}

// Values that the register may have on the lanes of a warp while the readers' registers are fixed.
int64_t registers_asked(const Fragment& held, const Fragment& iteration, const IndexLinks& links,
                        const ops::ElementAccess& access) {
  int64_t asked = 1;
  for (const Digit& d : held.map().digits()) {
    if (d.output != kRegister || d.dim == kReplica || d.stride == 0) continue;
    bool differs = false;
    for (const IndexLink& l : links.list) {
      if (l.buffer != d.dim) continue;
      const int64_t from = std::max(l.weight, d.weight),
                    to = std::min(l.weight * l.extent, d.weight * d.extent);
      if (from >= to) continue;
      const bool turned = l.permuted && is_turned(access, l);
      // What a turned digit comes to follows from all below it.
      const int64_t first = (turned ? 1 : from / l.weight) * l.divisor, end = to / l.weight * l.divisor;
      for (const Digit& r : iteration.map().digits())
        differs = differs ||
                  (on_threads(r) && r.dim == l.iteration && r.weight < end && r.weight * r.extent > first);
    }
    if (differs) asked *= d.extent;
  }
  return asked;
}

}  // namespace

bool lanes_hold_rows(const Fragment& held, const Fragment& iteration, const ops::ElementAccess& access,
                     const target::Target& t) {
  if (held.rank() == 0 || held.shape() != iteration.shape() || !held.equivalent(iteration)) return false;
  int64_t points = 1;
  for (int64_t extent : held.shape()) points *= extent;
  if (points != held.threads() || held.registers() != 1 || held.replicas() != 1) return false;
  const int last = held.rank() - 1;
  const int64_t lanes = held.shape().back();
  if (lanes < 2 || t.warp % lanes != 0 || points % t.warp != 0) return false;
  for (const Digit& d : held.map().digits()) {
    if (d.output != kThread || d.extent == 1) continue;
    if (d.dim == last ? d.stride != d.weight : d.stride % lanes != 0) return false;
  }
  for (int d = 0; d < last; ++d) {
    const size_t at = static_cast<size_t>(d);
    if (held.shape()[at] != 1 && (access.dim_of[at] != d || access.offset[at] != 0)) return false;
  }
  return true;
}

std::optional<int64_t> lane_shuffles(const Fragment& held, const Fragment& iteration,
                                     const ops::ElementAccess& access, ir::DType type,
                                     const target::Target& t) {
  if (access.write || !t.has_block_threads() || ir::is_bool(type) || ir::dtype_bytes(type) > kMaxBytes)
    return std::nullopt;
  if (lanes_hold_rows(held, iteration, access, t)) return 1;
  if (access.of_region || !fills_threads(held, t) || !fills_threads(iteration, t)) return std::nullopt;
  const auto links = index_links(access, iteration.shape(), held.shape());
  // Whole tiles are converted.
  if (!links || links->keeps_order() || !same_warp(held, iteration, *links, t)) return std::nullopt;
  const int64_t asked = registers_asked(held, iteration, *links, access);
  return asked <= kMaxAsked ? std::optional(asked) : std::nullopt;
}

bool is_voted_on(const ir::Program& p, const ir::Loop& loop, const ops::ElementAccess& access) {
  std::vector<ir::ExprId> roots;
  ir::for_each_statement(p, loop.body, [&](ir::StmtId s, int) {
    if (const auto* store = p.as<ir::Store>(s))
      ir::visit_exprs(*store, [&](ir::ExprId e) { roots.push_back(e); });
    if (const auto* branch = p.as<ir::Branch>(s)) roots.push_back(branch->condition);
  });
  ir::ExprNodes nodes(p.exprs, roots);
  bool voted = false;
  while (const ir::ExprId at = nodes.next()) {
    const ir::ExprNode& n = p.exprs[at];
    if (const auto vote = ir::find_group_vote(p.exprs, at)) {
      voted = voted || p.exprs[vote->first].object == access.buffer;
      nodes.skip_operands();
    } else if (n.op == ir::ExprOp::load && n.object == access.buffer &&
               ops::loop_access(p, loop, n.object, p.exprs.indices(at), false).same_elements(access)) {
      return false;
    }
  }
  return voted;
}

}  // namespace tilegen::analysis
