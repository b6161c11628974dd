#include "ops/element_view.h"

#include "ops/op.h"

#include <algorithm>
#include <unordered_map>

#include "ir/store_parts.h"
#include "support/checked.h"

namespace tilegen::ops {

using ir::BufferId;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using ir::Program;
using ir::VarId;

namespace {

// index = sum(coefficient * iteration variable) + rest, with rest free of iteration variables.
struct LinearIndex {
  bool linear = true;
  std::vector<int64_t> coefficient;
  std::optional<int64_t> constant = 0;  // of the rest, when the rest is a constant
};

class LinearReader {
 public:
  LinearReader(const Program& p, const std::vector<VarId>& vars, const std::vector<int64_t>& extents)
      : p_(p), vars_(vars), extents_(extents) {}

  LinearIndex read(ExprId id) const {
    const ExprNode& n = p_.exprs[id];
    LinearIndex r;
    r.coefficient.assign(vars_.size(), 0);
    switch (n.op) {
      case ExprOp::const_int:
        r.constant = n.imm;
        return r;
      case ExprOp::var: {
        auto it = std::find(vars_.begin(), vars_.end(), n.var());
        if (it == vars_.end())
          r.constant.reset();
        else
          r.coefficient[static_cast<size_t>(it - vars_.begin())] = 1;
        return r;
      }
      case ExprOp::add:
      case ExprOp::sub:
        return combine(read(n.a), read(n.b), n.op == ExprOp::add ? 1 : -1);
      case ExprOp::mul: {
        LinearIndex a = read(n.a), b = read(n.b);
        if (uniform(a) && !a.constant && uniform(b)) break;
        if (uniform(b) && b.constant) return scale(std::move(a), *b.constant);
        if (uniform(a) && a.constant) return scale(std::move(b), *a.constant);
        break;
      }
      default:
        break;
    }
    r.constant.reset();
    r.linear = !mentions(id);
    return r;
  }

  // Terms whose sum the index is: multiples of variables, or a variable's quotient or remainder. Nothing for
  // another index.
  std::vector<IndexTerm> terms(ExprId id) const {
    const LinearIndex linear = read(id);
    std::vector<IndexTerm> list;
    if (linear.linear) {
      if (linear.constant != 0) return {};
      for (size_t k = 0; k < linear.coefficient.size(); ++k)
        if (linear.coefficient[k] < 0)
          return {};
        else if (linear.coefficient[k] > 0)
          list.push_back({static_cast<int>(k), 1, 0, linear.coefficient[k]});
      return list;
    }
    IndexTerm t;
    const ExprNode* n = &p_.exprs[id];
    if (n->op == ExprOp::floormod && p_.exprs.is_const_int(n->b, &t.modulus) && t.modulus > 0)
      n = &p_.exprs[n->a];
    else
      t.modulus = 0;
    if (n->op == ExprOp::floordiv && p_.exprs.is_const_int(n->b, &t.divisor) && t.divisor > 0)
      n = &p_.exprs[n->a];
    else
      t.divisor = 1;
    const auto it = n->op == ExprOp::var ? std::find(vars_.begin(), vars_.end(), n->var()) : vars_.end();
    if (it == vars_.end()) return {};
    t.dim = static_cast<int>(it - vars_.begin());
    return {t};
  }
  std::optional<IndexDigits> digits(ExprId id) const { return index_digits(p_, id, vars_, extents_); }
  // The variables that stand in it, as bits.
  uint32_t named(ExprId id) const {
    const ExprNode& n = p_.exprs[id];
    if (n.op == ExprOp::var) {
      const auto it = std::find(vars_.begin(), vars_.end(), n.var());
      return it == vars_.end() ? 0 : uint32_t{1} << (it - vars_.begin());
    }
    uint32_t all = 0;
    for (ExprId operand : {n.a, n.b, n.c})
      if (operand) all |= named(operand);
    if (n.op == ExprOp::load)
      for (ExprId index : p_.exprs.indices(id)) all |= named(index);
    return all;
  }
  // Threads hold its elements, and are told by terms which.
  bool is_fragment(BufferId b) const { return p_.buffer(b).scope == ir::MemScope::fragment; }

  bool mentions(ExprId id) const { return named(id) != 0; }

 private:
  static bool uniform(const LinearIndex& i) {
    return i.linear &&
           std::all_of(i.coefficient.begin(), i.coefficient.end(), [](int64_t c) { return c == 0; });
  }
  static LinearIndex combine(LinearIndex a, const LinearIndex& b, int64_t sign) {
    a.linear = a.linear && b.linear;
    for (size_t i = 0; i < a.coefficient.size(); ++i) a.coefficient[i] += sign * b.coefficient[i];
    if (a.constant && b.constant)
      a.constant = checked_add(*a.constant, sign * *b.constant);
    else
      a.constant.reset();
    return a;
  }
  static LinearIndex scale(LinearIndex a, int64_t factor) {
    for (int64_t& c : a.coefficient) c *= factor;
    if (a.constant) a.constant = checked_mul(*a.constant, factor);
    return a;
  }

  const Program& p_;
  const std::vector<VarId>& vars_;
  const std::vector<int64_t>& extents_;
};

// What the digits of a fragment's index say: a variable alone is one however it is written.
void take_digits(ElementAccess& a, size_t d, const IndexDigits& digits) {
  const bool variable = digits.terms.size() == 1 && digits.terms[0] == IndexTerm{digits.terms[0].dim};
  a.offset[d] = digits.constant;
  a.unknown[d] = ExprId();
  a.names[d] = 0;
  a.dim_of[d] = variable ? digits.terms[0].dim : digits.terms.empty() ? kUniformIndex : kIrregularIndex;
  if (a.dim_of[d] == kIrregularIndex) a.terms[d] = digits.terms;
}

ElementAccess access_of(const LinearReader& reader, BufferId buffer, std::span<const ExprId> indices,
                        bool write) {
  ElementAccess a{buffer, write, {}, {}, {}};
  for (ExprId index : indices) {
    LinearIndex linear = reader.read(index);
    int dim = kUniformIndex, used = 0;
    for (size_t k = 0; k < linear.coefficient.size(); ++k) {
      if (linear.coefficient[k] == 0) continue;
      ++used;
      dim = linear.coefficient[k] == 1 ? static_cast<int>(k) : kIrregularIndex;
    }
    if (used > 1 || !linear.linear) dim = kIrregularIndex;
    a.dim_of.push_back(dim);
    const bool constant = linear.linear && linear.constant;
    a.offset.push_back(constant ? *linear.constant : ElementAccess::kUnknownOffset);
    a.unknown.push_back(constant ? ExprId() : index);
    a.names.push_back(dim == kIrregularIndex ? reader.named(index) : 0);
  }
  if (!reader.is_fragment(buffer) || std::count(a.dim_of.begin(), a.dim_of.end(), kIrregularIndex) == 0)
    return a;
  a.terms.resize(indices.size());
  for (size_t d = 0; d < indices.size(); ++d) {
    if (a.dim_of[d] != kIrregularIndex) continue;
    if (const auto digits = reader.digits(indices[d])) {
      take_digits(a, d, *digits);
    } else if (auto terms = reader.terms(indices[d]); !terms.empty()) {
      a.terms[d] = std::move(terms);
      a.offset[d] = 0, a.unknown[d] = ExprId();
    }
  }
  if (std::all_of(a.terms.begin(), a.terms.end(), [](const auto& terms) { return terms.empty(); }))
    a.terms.clear();
  return a;
}

class ViewBuilder {
 public:
  ViewBuilder(const Program& p, const std::vector<VarId>& vars, ElementView& view)
      : p_(p), reader_(p, vars, view.extents), view_(view) {}

  void statement(ir::StmtId id) {
    if (const auto* store = p_.as<ir::Store>(id)) {
      ir::visit_exprs(*store, [&](ExprId e) { loads(e); });
      // What is combined in a tile stays there; of tensors nothing follows from that.
      if (store->atomic && p_.buffer(store->buffer).scope != ir::MemScope::global)
        add_read(access_of(reader_, store->buffer, store->indices, false));
      ir::visit_written(*store, [&](BufferId b, const std::vector<ExprId>& indices) {
        view_.accesses.push_back(access_of(reader_, b, indices, true));
      });
    } else if (const auto* branch = p_.as<ir::Branch>(id)) {
      loads(branch->condition);
      for (ir::StmtId s : branch->then_body) statement(s);
      for (ir::StmtId s : branch->else_body) statement(s);
    }
  }

 private:
  void loads(ExprId id) {
    const ExprNode& n = p_.exprs[id];
    for (ExprId operand : {n.a, n.b, n.c})
      if (operand) loads(operand);
    if (n.op != ExprOp::load) return;
    for (ExprId index : p_.exprs.indices(id)) loads(index);
    add_read(access_of(reader_, n.object, p_.exprs.indices(id), false));
  }
  void add_read(ElementAccess a) {
    auto same = [&](const ElementAccess& o) { return !o.write && o.same_elements(a); };
    if (std::none_of(view_.accesses.begin(), view_.accesses.end(), same))
      view_.accesses.push_back(std::move(a));
  }

  const Program& p_;
  LinearReader reader_;
  ElementView& view_;
};

ElementAccess region_access(const Program& p, const ir::Region& r, const std::vector<int>& dim_of,
                            const std::vector<std::vector<IndexTerm>>& terms, bool write) {
  ElementAccess a{r.buffer, write, dim_of, {}, {}, terms};
  a.of_region = true;
  for (ExprId offset : r.offsets) {
    int64_t value = 0;
    const bool constant = p.exprs.is_const_int(offset, &value);
    a.offset.push_back(constant ? value : ElementAccess::kUnknownOffset);
    a.unknown.push_back(constant ? ExprId() : offset);
  }
  return a;
}

}  // namespace

int64_t ElementAccess::index_at(size_t d, std::span<const int64_t> point) const {
  if (dim_of[d] >= 0) return point[static_cast<size_t>(dim_of[d])];
  int64_t index = 0;
  if (!terms.empty())
    for (const IndexTerm& t : terms[d]) index += t.at(point);
  return index;
}

bool ElementAccess::any_unknown() const {
  for (size_t d = 0; d < dim_of.size(); ++d)
    if (is_unknown(d)) return true;
  return false;
}

bool ElementAccess::is_unknown_along(int iteration_dim) const {
  for (size_t d = 0; d < dim_of.size(); ++d)
    if (is_unknown(d) && (names.empty() || iteration_dim < 0 || (names[d] >> iteration_dim & 1) != 0))
      return true;
  return false;
}

std::optional<ElementAccess::Walk> ElementAccess::walk(int iteration_dim) const {
  Walk found;
  int64_t changes = INT64_MAX;  // least step at which another index does
  if (is_unknown_along(iteration_dim)) return std::nullopt;
  for (size_t d = 0; d < dim_of.size(); ++d) {
    std::vector<IndexTerm> list = {IndexTerm{dim_of[d]}};
    if (dim_of[d] == kIrregularIndex) list = terms.empty() ? std::vector<IndexTerm>() : terms[d];
    for (const IndexTerm& term : list) {
      if (term.dim != iteration_dim) continue;
      if (term.divisor > 1) {
        changes = std::min(changes, term.divisor);
        continue;
      }
      if (term.is_permuted() || term.weight != 1 || found.dim >= 0) return std::nullopt;
      found = {static_cast<int>(d), term.modulus > 0 ? term.modulus : INT64_MAX};
    }
  }
  if (found.dim < 0 || changes < found.run) return std::nullopt;
  return found;
}

int ElementAccess::along_last() const {
  if (dim_of.empty() || dim_of.back() >= 0 || terms.empty()) return dim_of.empty() ? -1 : dim_of.back();
  for (const IndexTerm& t : terms.back())
    if (t.divisor == 1 && t.weight == 1 && !t.is_permuted()) return t.dim;
  return -1;
}

bool ElementAccess::depends_on(int iteration_dim) const {
  if (is_unknown_along(iteration_dim)) return true;
  for (size_t d = 0; d < dim_of.size(); ++d) {
    if (dim_of[d] == iteration_dim) return true;
    if (!terms.empty() && std::any_of(terms[d].begin(), terms[d].end(),
                                      [&](const IndexTerm& t) { return t.dim == iteration_dim; }))
      return true;
  }
  return false;
}

namespace {

// Two regions of which one dimension of one is several of the other.
RegionMatch match_groups(const Program& p, const std::vector<ir::Region>& regions,
                         const std::vector<DimGroup>& groups) {
  RegionMatch match;
  for (const ir::Region& r : regions) {
    match.dim_of.emplace_back(r.extents.size(), kUniformIndex);
    match.terms.emplace_back(r.extents.size());
  }
  const auto held = [&](size_t side) {
    return p.buffer(regions[side].buffer).scope == ir::MemScope::fragment;
  };
  for (const DimGroup& g : groups) {
    const std::vector<int>* dims[] = {&g.a, &g.b};
    const size_t split = g.a.size() > 1 ? 0 : 1;  // the side of several
    const size_t walked = held(1 - split) && !held(split) ? 1 - split : split;
    const int first = static_cast<int>(match.extents.size());
    for (size_t i = 0; i < dims[walked]->size(); ++i) {
      const auto d = static_cast<size_t>((*dims[walked])[i]);
      match.dim_of[walked][d] = first + static_cast<int>(i);
      match.extents.push_back(regions[walked].extents[d]);
    }
    const std::vector<int>& other = *dims[1 - walked];
    if (other.size() == dims[walked]->size()) {
      match.dim_of[1 - walked][static_cast<size_t>(other[0])] = first;
      continue;
    }
    for (int d : other) match.dim_of[1 - walked][static_cast<size_t>(d)] = kIrregularIndex;
    int64_t inner = 1;
    for (size_t i = dims[split]->size(); i-- > 0;) {
      const auto d = static_cast<size_t>((*dims[split])[i]);
      const int64_t extent = regions[split].extents[d];
      if (walked == split)
        match.terms[1 - walked][static_cast<size_t>(other[0])].push_back(
            {first + static_cast<int>(i), 1, 0, inner});
      else
        match.terms[split][d].push_back({first, inner, i > 0 ? extent : 0, 1});
      inner *= extent;
    }
  }
  return match;
}

}  // namespace

RegionMatch match_regions(const Program& p, const std::vector<ir::Region>& regions) {
  if (regions.empty()) return {};
  if (regions.size() == 2)
    if (const auto groups = matched_groups(regions[0], regions[1]);
        groups && std::any_of(groups->begin(), groups->end(),
                              [](const DimGroup& g) { return g.a.size() != g.b.size(); }))
      return match_groups(p, regions, *groups);
  RegionMatch match;
  // Equal extents match dimension by dimension; otherwise the dimensions of extent 1 are left out everywhere.
  bool same = true;
  for (const ir::Region& r : regions) same = same && r.extents == regions[0].extents;
  for (int64_t e : regions[0].extents)
    if (same || e != 1) match.extents.push_back(e);
  for (const ir::Region& r : regions) {
    std::vector<int> dims;
    int next = 0;
    for (int64_t e : r.extents) dims.push_back(same || e != 1 ? next++ : kUniformIndex);
    match.dim_of.push_back(std::move(dims));
    match.terms.emplace_back();
  }
  return match;
}

namespace {

std::vector<int64_t> extents_of(const Program& p, const ir::Loop& loop) {
  std::vector<int64_t> extents;
  for (ExprId extent : loop.extents) {
    int64_t value = 0;
    p.exprs.is_const_int(extent, &value);
    extents.push_back(value);
  }
  return extents;
}

}  // namespace

ElementAccess loop_access(const Program& p, const ir::Loop& loop, BufferId buffer,
                          std::span<const ExprId> indices, bool write) {
  const std::vector<int64_t> extents = extents_of(p, loop);
  return access_of(LinearReader(p, loop.vars, extents), buffer, indices, write);
}

std::optional<ElementView> element_view(const Program& p, ir::StmtId stmt) {
  ElementView view;
  if (const auto* op = p.as<ir::TileOp>(stmt)) {
    if (layout_rule(*op).form != OpForm::element) return std::nullopt;
    RegionMatch match = match_regions(p, op->operands);
    view.extents = match.extents;
    const auto& operands = ir::op_row(op->kind).operands;
    for (size_t i = 0; i < op->operands.size(); ++i)
      view.accesses.push_back(region_access(p, op->operands[i], match.dim_of[i], match.terms[i],
                                            operands[i].access == ir::Access::write));
    return view;
  }
  if (const auto* loop = p.as<ir::Loop>(stmt)) {
    if (loop->kind != ir::LoopKind::parallel) return std::nullopt;
    view.extents = extents_of(p, *loop);
    ViewBuilder builder(p, loop->vars, view);
    for (ir::StmtId s : loop->body) builder.statement(s);
    return view;
  }
  if (p.as<ir::Store>(stmt)) {
    const std::vector<VarId> none;
    ViewBuilder(p, none, view).statement(stmt);
    return view;
  }
  return std::nullopt;
}

}  // namespace tilegen::ops
