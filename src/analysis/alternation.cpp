#include "analysis/alternation.h"

#include <algorithm>

#include "analysis/run_ahead.h"
#include "ir/op_kinds.h"
#include "ir/statement_paths.h"

namespace tilegen::analysis {

namespace {

using ir::StmtId;

class Finder {
 public:
  Finder(const ir::Program& p, const KernelOps& ops, StmtId loop)
      : p_(p), ops_(ops), loop_(*p.as<ir::Loop>(loop)) {
    for (OpId i : ops.ops.ids())
      if (std::find(loop_.body.begin(), loop_.body.end(), ops.ops[i].stmt) != loop_.body.end())
        body_.push_back(i);
  }

  Alternation run() {
    if (!plain_body()) return refused("it holds loops or branches of its own");
    find_carried();
    for (OpId i : body_)
      if (is_product(i) && carried_.count(sum_of(i))) shared_sums_.insert(sum_of(i));
    sort();
    if (found_.products.empty() || shared_sums_.empty())
      return refused("it has no product whose sums an iteration begins anew, and one whose sums it carries");
    if (std::string why = why_not(); !why.empty()) return refused(std::move(why));
    put_tail_last();
    find_rows();
    return std::move(found_);
  }

 private:
  Alternation refused(std::string why) {
    Alternation none;
    none.refusal = std::move(why);
    return none;
  }
  const KernelOp& op(OpId i) const { return ops_.ops[i]; }
  bool is_product(OpId i) const { return op(i).form == OpForm::contraction; }
  ValueId sum_of(OpId i) const { return op(i).accesses[2].value; }
  bool is_fragment(ValueId v) const { return v.valid() && ops_.values[v].scope == ir::MemScope::fragment; }
  bool loads(OpId i) const { return is_tile_load(p_, op(i)); }
  bool reads(OpId i, ValueId v) const {
    const auto& list = op(i).accesses;
    return std::any_of(list.begin(), list.end(), [&](const OpAccess& a) { return a.read && a.value == v; }) ||
           std::any_of(ops_.scalar_reads.begin(), ops_.scalar_reads.end(),
                       [&](const auto& r) { return r.first.first == op(i).stmt && r.second == v; });
  }
  bool writes(OpId i, ValueId v) const {
    const auto& list = op(i).accesses;
    return std::any_of(list.begin(), list.end(), [&](const OpAccess& a) { return a.write && a.value == v; });
  }

  bool plain_body() const {
    return std::all_of(loop_.body.begin(), loop_.body.end(), [&](StmtId s) {
      return std::any_of(body_.begin(), body_.end(), [&](OpId i) { return op(i).stmt == s; });
    });
  }

  // Fragments that an iteration reads as the one before has left them.
  void find_carried() {
    std::set<ValueId> known;
    for (OpId i : body_) {
      for (const OpAccess& a : op(i).accesses)
        if (is_fragment(a.value) && a.read && !known.count(a.value)) carried_.insert(a.value);
      for (const OpAccess& a : op(i).accesses)
        if (is_fragment(a.value) && a.write) known.insert(a.value);
    }
  }

  void sort() {
    for (OpId i : body_) {
      if (loads(i)) continue;
      const bool shared =
          std::any_of(shared_sums_.begin(), shared_sums_.end(), [&](ValueId v) { return writes(i, v); });
      (shared ? found_.shared : is_product(i) ? found_.products : found_.work).push_back(i);
    }
  }

  bool before(OpId a, OpId b) const { return a.index() < b.index(); }
  // The two must keep their order.
  bool conflict(OpId a, OpId b) const {
    for (const OpAccess& x : op(a).accesses)
      if (x.value.valid() &&
          ((x.write && (reads(b, x.value) || writes(b, x.value))) || (x.read && writes(b, x.value))))
        return true;
    return false;
  }
  std::string overtakes(const std::vector<OpId>& first, const std::vector<OpId>& then) const {
    for (OpId a : first)
      for (OpId b : then)
        if (before(b, a) && conflict(a, b))
          return op(a).path + " needs what " + op(b).path + " does before it";
    return "";
  }

  std::string why_not() const {
    for (OpId i : found_.products)
      for (size_t side = 0; side < 2; ++side)
        for (OpId w : found_.work)
          if (writes(w, op(i).accesses[side].value)) return op(w).path + " makes an operand of " + op(i).path;
    for (OpId i : found_.work) {
      for (const OpAccess& a : op(i).accesses) {
        if (!a.value.valid() && a.write) return op(i).path + " writes a tensor";
        if (!a.value.valid() || is_fragment(a.value)) continue;
        if (a.read) return op(i).path + " reads a tile in shared memory";
        for (OpId other : found_.work)
          if (other != i && (reads(other, a.value) || writes(other, a.value)))
            return op(other).path + " uses what " + op(i).path + " writes to shared memory";
      }
      const auto* tile = p_.as<ir::TileOp>(op(i).stmt);
      if (tile && tile->kind != ir::OpKind::copy && tile->kind != ir::OpKind::fill &&
          tile->kind != ir::OpKind::reduce)
        return op(i).path + " is of a kind that all threads have to do";
      if (const auto* elements = p_.as<ir::Loop>(op(i).stmt))
        for (StmtId s : elements->body)
          if (!p_.as<ir::Store>(s)) return op(i).path + " does more than compute elements";
    }
    for (OpId i : found_.shared)
      for (const OpAccess& a : op(i).accesses)
        if (a.write && (!is_fragment(a.value) || !shared_sums_.count(a.value)))
          return op(i).path + " writes more than sums that the loop carries";
    for (const auto& [first, then] :
         {std::pair(&found_.products, &found_.work), std::pair(&found_.products, &found_.shared),
          std::pair(&found_.work, &found_.shared)})
      if (std::string why = overtakes(*first, *then); !why.empty()) return why;
    for (const OpAccess& a : accesses_of(found_.work))
      if (a.write && is_fragment(a.value) && wanted_outside(a.value) && ops_.values[a.value].shape.size() > 1)
        return "'" + ops_.values[a.value].name + "' would go from one warpgroup to the other";
    return "";
  }

  std::vector<OpAccess> accesses_of(const std::vector<OpId>& list) const {
    std::vector<OpAccess> all;
    for (OpId i : list) all.insert(all.end(), op(i).accesses.begin(), op(i).accesses.end());
    for (OpId i : found_.products) all.push_back(op(i).accesses[2]);
    return all;
  }
  // By the products' part, by the next iteration or after the loop.
  bool wanted_outside(ValueId v) const {
    if (carried_.count(v)) return true;
    for (OpId i : ops_.ops.ids()) {
      const bool inside = std::find(body_.begin(), body_.end(), i) != body_.end();
      const bool shared = std::find(found_.shared.begin(), found_.shared.end(), i) != found_.shared.end();
      if ((!inside || shared) && reads(i, v)) return true;
    }
    return false;
  }
  // What neither `shared` nor the work of the next iteration waits for, and what may be done behind the rest.
  void put_tail_last() {
    std::set<OpId> needed;
    const auto is_needed = [&](OpId i) {
      const auto feeds = [&](OpId reader) {
        return std::any_of(op(i).accesses.begin(), op(i).accesses.end(), [&](const OpAccess& a) {
          return a.write && a.value.valid() && reads(reader, a.value);
        });
      };
      return std::any_of(found_.shared.begin(), found_.shared.end(), feeds) ||
             std::any_of(needed.begin(), needed.end(),
                         [&](OpId n) { return feeds(n) || (before(i, n) && conflict(i, n)); });
    };
    for (size_t known = needed.size() + 1; known != needed.size();) {
      known = needed.size();
      for (OpId i : found_.work)
        if (is_needed(i)) needed.insert(i);
    }
    const auto tail = std::stable_partition(found_.work.begin(), found_.work.end(),
                                            [&](OpId i) { return needed.count(i) > 0; });
    found_.tail = static_cast<size_t>(tail - found_.work.begin());
  }
  void find_rows() {
    std::set<ValueId> rows;
    for (const OpAccess& a : accesses_of(found_.work))
      if (a.write && is_fragment(a.value) && wanted_outside(a.value)) rows.insert(a.value);
    for (ValueId v : rows) {
      const bool late = std::any_of(found_.work.begin() + static_cast<ptrdiff_t>(found_.tail),
                                    found_.work.end(), [&](OpId i) { return writes(i, v); });
      found_.rows.push_back(
          {v, carried_.count(v) > 0, late ? Alternation::Part::tail : Alternation::Part::middle});
    }
    for (size_t head = 1; head < found_.tail && found_.head == 0; ++head) split_behind(head);
  }
  void split_behind(size_t head) {
    const auto any = [&](size_t from, size_t to, const auto& what) {
      return std::any_of(found_.work.begin() + static_cast<ptrdiff_t>(from),
                         found_.work.begin() + static_cast<ptrdiff_t>(to), what);
    };
    std::vector<Alternation::Row> rows = found_.rows;
    bool some = false;
    for (Alternation::Row& r : rows) {
      if (r.part == Alternation::Part::tail) continue;
      const auto touches = [&](OpId i) { return reads(i, r.value) || writes(i, r.value); };
      const auto changes = [&](OpId i) { return writes(i, r.value); };
      const bool final = r.carried && any(0, head, changes) && !any(head, found_.work.size(), changes);
      if (r.carried && !final && any(0, head, touches)) return;
      if (final) r.part = Alternation::Part::head;
      some = some || final;
    }
    if (!some) return;
    found_.head = head;
    found_.rows = std::move(rows);
  }

  const ir::Program& p_;
  const KernelOps& ops_;
  const ir::Loop& loop_;
  std::vector<OpId> body_;
  std::set<ValueId> carried_, shared_sums_;
  Alternation found_;
};

}  // namespace

Alternation find_alternation(const ir::Program& p, const KernelOps& ops, ir::StmtId loop) {
  return Finder(p, ops, loop).run();
}

bool has_turns(const plan::KernelSchedule& k, const std::string& op) {
  return std::any_of(k.loops.begin(), k.loops.end(), [&](const plan::LoopPlan& l) {
    return l.alternating.value_or(false) && op.rfind(l.loop + "/", 0) == 0;
  });
}

}  // namespace tilegen::analysis
