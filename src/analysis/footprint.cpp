#include "analysis/footprint.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "analysis/loads.h"
#include "arith/prove.h"
#include "check/index_form.h"
#include "ir/store_parts.h"

namespace tilegen::analysis {

namespace {

// Coefficients and ranges beyond it are unknown: nothing below overflows.
constexpr int64_t kMaxNumber = int64_t{1} << 31;

struct Range {
  int64_t first = 0, count = 0;
};

class Collector {
 public:
  Collector(const ir::Program& p, const KernelOps& ops, ir::VarId variable)
      : p_(p), ops_(ops), variable_(variable), forms_(p) {
    for (OpId op : ops.ops.ids()) op_of_[ops.ops[op].stmt] = op;
  }

  Footprints run(const ir::Block& block) {
    ir::for_each_statement(p_, block, [&](ir::StmtId s, int) {
      if (const auto op = op_of_.find(s); op != op_of_.end())
        for (const OpAccess& a : ops_.ops[op->second].accesses)
          if (a.write) written_.insert(a.buffer);
    });
    walk(block);
    return std::move(out_);
  }

 private:
  // What a branch or a loop reads before its ops run.
  struct Control {
    ir::StmtId stmt;
    std::vector<ir::ExprId> reads;
    size_t position = 0, around = 0;
  };

  void walk(const ir::Block& block) {
    for (ir::StmtId s : block) statement(s);
  }

  void statement(ir::StmtId s) {
    ++position_;
    if (const auto op = op_of_.find(s); op != op_of_.end()) return visit_op(op->second);
    const bool always = always_;
    if (const auto* branch = p_.as<ir::Branch>(s)) {
      always_ = false;
      controls_.push_back({s, {branch->condition}, position_, around_index()});
      around_.push_back({s, false, false});
      walk(branch->then_body);
      around_.back().otherwise = true;
      walk(branch->else_body);
    } else if (const auto* loop = p_.as<ir::Loop>(s)) {
      const std::optional<Range> range = range_of(*loop, 0);
      always_ = always_ && range;
      always_ = always_ && !loop->condition.valid();
      controls_.push_back({s, {loop->begin, loop->extents[0]}, position_, around_index()});
      if (loop->condition.valid()) controls_.back().reads.push_back(loop->condition);
      around_.push_back({s, true, false});
      inner_[loop->vars[0]] = range;
      walk(loop->body);
      inner_.erase(loop->vars[0]);
    } else {
      return;
    }
    around_.pop_back();
    controls_.pop_back();
    always_ = always;
  }

  // Nothing where it is not known, or where the loop does not run.
  std::optional<Range> range_of(const ir::Loop& loop, size_t d) const {
    Range r;
    const bool constant = (!loop.begin.valid() || p_.exprs.is_const_int(loop.begin, &r.first)) &&
                          p_.exprs.is_const_int(loop.extents[d], &r.count);
    const bool small = r.count > 0 && std::max(std::abs(r.first), r.count) <= kMaxNumber;
    return constant && small ? std::optional(r) : std::nullopt;
  }

  size_t around_index() {
    if (out_.around.empty() || out_.around.back() != around_) out_.around.push_back(around_);
    return out_.around.size() - 1;
  }

  void visit_op(OpId id) {
    const KernelOp& op = ops_.ops[id];
    current_ = {id, {}, false, always_, position_, around_index(), {}};
    for (const Control& c : controls_) {
      const Footprint own = current_;
      current_.position = c.position;
      current_.around = c.around;
      for (ir::ExprId e : c.reads) read_scalars(c.stmt, e);
      current_ = own;
    }
    if (const auto* tile_op = p_.as<ir::TileOp>(op.stmt)) return visit_tile_op(op, *tile_op);
    const auto* loop = p_.as<ir::Loop>(op.stmt);
    for (size_t d = 0; loop && d < loop->vars.size(); ++d) inner_[loop->vars[d]] = range_of(*loop, d);
    visit_elements(op, {op.stmt});
    for (size_t d = 0; loop && d < loop->vars.size(); ++d) inner_.erase(loop->vars[d]);
  }

  void visit_tile_op(const KernelOp& op, const ir::TileOp& tile_op) {
    for (const ir::Region& r : tile_op.operands)
      for (ir::ExprId offset : r.offsets) read_scalars(op.stmt, offset);
    read_scalars(op.stmt, tile_op.value);
    for (const OpAccess& a : op.accesses) {
      const ir::Region& r = tile_op.operands[static_cast<size_t>(a.operand)];
      if (a.read) add(place(a), false, r.offsets, r.extents);
      if (a.write) add(place(a), true, r.offsets, r.extents);
    }
  }

  // A store, or a parallel loop over stores and branches.
  void visit_elements(const KernelOp& op, const ir::Block& block) {
    for (ir::StmtId s : block) {
      const bool always = current_.always;
      if (const auto* loop = p_.as<ir::Loop>(s)) {
        visit_elements(op, loop->body);
      } else if (const auto* branch = p_.as<ir::Branch>(s)) {
        read_elements(op, branch->condition);
        current_.always = false;
        visit_elements(op, branch->then_body);
        visit_elements(op, branch->else_body);
      } else if (const auto* store = p_.as<ir::Store>(s)) {
        ir::visit_exprs(*store, [&](ir::ExprId e) { read_elements(op, e); });
        ir::visit_written(*store, [&](ir::BufferId b, const std::vector<ir::ExprId>& indices) {
          for (const OpAccess& a : op.accesses)
            if (a.write && a.buffer == b) return add(place(a), true, indices, {});
        });
      }
      current_.always = always;
    }
  }

  void read_elements(const KernelOp& op, ir::ExprId root) {
    any_load(p_.exprs, root, [&](ir::ExprId load, const ir::ExprNode& n) {
      for (const OpAccess& a : op.accesses)
        if (a.read && a.buffer == n.object) {
          add(place(a), false, p_.exprs.indices(load), {});
          break;
        }
      return false;
    });
  }

  void read_scalars(ir::StmtId where, ir::ExprId root) {
    any_load(p_.exprs, root, [&](ir::ExprId load, const ir::ExprNode& n) {
      const auto value = ops_.scalar_reads.find({where, n.object});
      const bool on_chip = p_.buffer(n.object).scope != ir::MemScope::global;
      const OpAccess a{n.object, value == ops_.scalar_reads.end() ? ValueId() : value->second, true, false};
      if (!on_chip || a.value.valid()) add(place(a), false, p_.exprs.indices(load), {});
      return false;  // no op touches an on-chip buffer without a value
    });
  }

  static Place place(const OpAccess& a) { return a.value.valid() ? Place{a.value, {}} : Place{{}, a.buffer}; }

  // `extents`: one each where there are none.
  void add(const Place& place, bool write, std::span<const ir::ExprId> offsets,
           std::span<const int64_t> extents) {
    Footprint f = current_;
    f.place = place;
    f.write = write;
    std::map<ir::VarId, int> used;  // inside the block, by how many dimensions
    for (size_t d = 0; d < offsets.size(); ++d)
      f.dims.push_back(index_range(offsets[d], extents.empty() ? 1 : extents[d], used));
    const bool diagonal = std::any_of(used.begin(), used.end(), [](const auto& u) { return u.second > 1; });
    for (IndexRange& r : f.dims) r.dense = r.dense && !diagonal;
    out_.list.push_back(std::move(f));
  }

  IndexRange index_range(ir::ExprId index, int64_t extent, std::map<ir::VarId, int>& used) {
    IndexRange r;
    const arith::Sum& sum = forms_.linear(index);
    if (extent > kMaxNumber || std::abs(sum.constant) > kMaxNumber || sum.constant == INT64_MIN) return r;
    r.low = sum.constant;
    r.high = sum.constant + extent - 1;
    std::vector<std::pair<int64_t, int64_t>> digits;  // |coefficient|, count
    for (const arith::Term& t : sum.terms) {
      const ir::ExprNode& n = p_.exprs[t.atom];
      const bool small = t.coeff >= -kMaxNumber && t.coeff <= kMaxNumber;
      const auto inner = n.op == ir::ExprOp::var ? inner_.find(n.var()) : inner_.end();
      if (n.op == ir::ExprOp::var && n.var() == variable_) {
        if (!small) return r;
        r.coefficient = t.coeff;
      } else if (inner != inner_.end()) {
        if (!small || !inner->second) return r;
        const auto [first, count] = *inner->second;
        if (std::abs(t.coeff) * std::max(std::abs(first), count) > kMaxNumber) return r;
        const int64_t a = t.coeff * first, b = t.coeff * (first + count - 1);
        r.low += std::min(a, b);
        r.high += std::max(a, b);
        digits.emplace_back(std::abs(t.coeff), count);
        ++used[n.var()];
      } else if (varies(t.atom)) {
        return r;
      } else {
        r.invariant.terms.push_back(t);
      }
    }
    r.known = r.dense = true;
    std::ranges::sort(digits);
    int64_t reach = extent;
    for (const auto& [coefficient, count] : digits) {
      r.dense = r.dense && coefficient <= reach;
      reach += coefficient * (count - 1);
    }
    return r;
  }

  // From iteration to iteration of the block's loop, or inside one.
  bool varies(ir::ExprId e) const {
    if (variable_.valid() && arith::depends_on(p_.exprs, e, variable_)) return true;
    for (const auto& [v, range] : inner_)
      if (arith::depends_on(p_.exprs, e, v)) return true;
    return reads_any(p_.exprs, e, written_);
  }

  const ir::Program& p_;
  const KernelOps& ops_;
  const ir::VarId variable_;
  check::IndexForms forms_;
  std::map<ir::StmtId, OpId> op_of_;
  std::set<ir::BufferId> written_;  // in the block
  std::map<ir::VarId, std::optional<Range>> inner_;
  std::vector<Enclosing> around_;
  std::vector<Control> controls_;
  bool always_ = true;
  size_t position_ = 0;
  Footprint current_;
  Footprints out_;
};

}  // namespace

Footprints collect_footprints(const ir::Program& p, const KernelOps& ops, const ir::Block& block,
                              ir::VarId variable) {
  return Collector(p, ops, variable).run(block);
}

}  // namespace tilegen::analysis
