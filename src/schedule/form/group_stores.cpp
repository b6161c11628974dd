#include "schedule/form/group_stores.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "analysis/loads.h"
#include "arith/prove.h"
#include "ir/annotations.h"
#include "ir/store_parts.h"
#include "schedule/form/buffer_memory.h"
#include "schedule/form/inner_blocks.h"

namespace tilegen::schedule {

using ir::BufferId;
using ir::ExprId;
using ir::StmtId;
using ir::VarId;

namespace {

// Loops ahead that one is joined with: more than a step of a sorting network has.
constexpr size_t kAhead = 16;

using Elements = std::map<BufferId, std::set<std::vector<ExprId>>>;

// What statements of a parallel loop load and store; equal indices have equal ids.
struct ElementUse {
  Elements loaded, stored;
};

class Renaming : public ir::ExprRewriter {
 public:
  Renaming(ir::ExprPool& pool, const std::vector<VarId>& from, const std::vector<VarId>& to)
      : ExprRewriter(pool, pool), own_(from), others_(to) {}

 protected:
  ExprId rewrite_var(const ir::ExprNode& n) override {
    const auto it = std::find(own_.begin(), own_.end(), n.var());
    return to_->var(it == own_.end() ? n.var() : others_[static_cast<size_t>(it - own_.begin())], n.type);
  }

 private:
  const std::vector<VarId>&own_, &others_;
};

class StoreGrouper {
 public:
  explicit StoreGrouper(ir::Program& p) : p_(p) {}

  StoreGroups run() {
    for (size_t k = 0; k < p_.kernels.size(); ++k) {
      ir::Block body = p_.kernels[k].body;
      block(body);
      p_.kernels[k].body = std::move(body);
    }
    return std::move(out_);
  }

 private:
  const ir::Loop* parallel(StmtId s) const {
    const auto* loop = p_.as<ir::Loop>(s);
    return loop && loop->kind == ir::LoopKind::parallel && !ir::fixes_threads(p_.stmt(s)) ? loop : nullptr;
  }

  void block(ir::Block& b) {
    for (StmtId s : b) change_inner_blocks(p_, s, [&](ir::Block& inner) { block(inner); });
    for (size_t i = 0; i + 1 < b.size();) {
      const size_t joined = join(b, i);
      if (joined == 0) {
        ++i;
        continue;
      }
      b.erase(b.begin() + static_cast<long>(i) + 1, b.begin() + static_cast<long>(i + joined) + 1);
      i -= std::min(i, kAhead);  // loops before may share an element with what came
    }
    for (size_t i = 0; i < b.size(); ++i) {
      const std::vector<StmtId> more = split(b[i]);
      b.insert(b.begin() + static_cast<long>(i) + 1, more.begin(), more.end());
      i += more.size();
    }
  }

  template <class Made>
  ElementUse use_of(const ir::Block& body, Made&& made) const {
    ElementUse use;
    const auto indices_of = [&](std::vector<ExprId> indices) {
      for (ExprId& index : indices) index = made(index);
      return indices;
    };
    const auto load = [&](ExprId root) {
      analysis::any_load(p_.exprs, root, [&](ExprId id, const ir::ExprNode& n) {
        const BufferId buffer = n.object;
        const auto at = p_.exprs.indices(id);
        use.loaded[buffer].insert(indices_of({at.begin(), at.end()}));
        return false;
      });
    };
    ir::for_each_statement(p_, body, [&](StmtId s, int) {
      if (const auto* branch = p_.as<ir::Branch>(s)) load(branch->condition);
      const auto* store = p_.as<ir::Store>(s);
      if (!store) return;
      ir::visit_exprs(*store, load);
      ir::visit_written(
          *store, [&](BufferId b, const std::vector<ExprId>& at) { use.stored[b].insert(indices_of(at)); });
    });
    return use;
  }
  ElementUse use_of(StmtId s) const {
    return use_of(ir::Block{s}, [](ExprId e) { return e; });
  }

  // They load the same element of memory, or one stores where the other loads or stores.
  bool share_memory(const ElementUse& a, const ElementUse& b) const {
    for (const auto& [buffer, loaded] : a.loaded) {
      const auto it = in_memory(p_, buffer) ? b.loaded.find(buffer) : b.loaded.end();
      if (it != b.loaded.end() &&
          std::any_of(loaded.begin(), loaded.end(), [&](const auto& at) { return it->second.count(at) > 0; }))
        return true;
    }
    const auto meet = [&](const ElementUse& x, const ElementUse& y) {
      return std::any_of(x.stored.begin(), x.stored.end(), [&](const auto& s) {
        return in_memory(p_, s.first) && (y.loaded.count(s.first) > 0 || y.stored.count(s.first) > 0);
      });
    };
    return meet(a, b) || meet(b, a);
  }

  // What the one stores the other touches at the same points only.
  bool is_pointwise(const ir::Loop& loop, const ElementUse& a, const ElementUse& b) const {
    for (const auto& [buffer, stored] : a.stored)
      for (const Elements* other : {&b.loaded, &b.stored})
        for (const auto& [touched, at] : *other)
          if (may_alias(p_, buffer, touched))
            for (const std::vector<ExprId>& x : stored)
              for (const std::vector<ExprId>& y : at)
                if ((buffer != touched && x != y) || !meet_at_one_point(loop, x, y)) return false;
    return true;
  }

  // Elements of the two lists of indices are the same at the same point of the loop only, or never: each
  // variable goes along with an index of both, by steps that are longer than what the two differ by.
  bool meet_at_one_point(const ir::Loop& loop, const std::vector<ExprId>& x,
                         const std::vector<ExprId>& y) const {
    std::vector<VarId> told;
    for (size_t d = 0; d < x.size() && d < y.size(); ++d) {
      const std::optional<Walk> a = walk(loop, x[d]), b = walk(loop, y[d]);
      if (a && b && a->var == b->var && a->step == b->step && a->rest == b->rest &&
          std::abs(a->first - b->first) < std::abs(a->step))
        told.push_back(a->var);
    }
    for (size_t v = 0; v < loop.vars.size(); ++v) {
      int64_t extent = 0;
      if (p_.exprs.is_const_int(loop.extents[v], &extent) && extent == 1) continue;
      if (std::count(told.begin(), told.end(), loop.vars[v]) == 0) return false;
    }
    return true;
  }

  // step * var + first + rest, of one variable of the loop and terms that are the same for all points.
  struct Walk {
    VarId var;
    int64_t step = 0, first = 0;
    std::map<ExprId, int64_t> rest;  // how often each is added
  };
  // Nothing of others, and of steps and constants that could make an index wrap.
  std::optional<Walk> walk(const ir::Loop& loop, ExprId index) const {
    constexpr int64_t kFar = int64_t{1} << 31;
    Walk w;
    std::vector<std::pair<ExprId, int64_t>> pending = {{index, 1}};
    while (!pending.empty()) {
      const auto [e, times] = pending.back();
      pending.pop_back();
      const ir::ExprNode n = p_.exprs[e];
      int64_t value = 0;
      if (std::abs(times) > kFar || std::abs(w.first) > kFar) return std::nullopt;
      const bool varies = std::any_of(loop.vars.begin(), loop.vars.end(),
                                      [&](VarId v) { return arith::depends_on(p_.exprs, e, v); });
      if (p_.exprs.is_const_int(e, &value)) {
        if (std::abs(value) > kFar) return std::nullopt;
        w.first += times * value;
      } else if (!varies) {
        if ((w.rest[e] += times) == 0) w.rest.erase(e);
      } else if (n.op == ir::ExprOp::var) {
        if (w.var.valid() && w.var != n.var()) return std::nullopt;
        w.var = n.var(), w.step += times;
      } else if (n.op == ir::ExprOp::add || n.op == ir::ExprOp::sub) {
        pending.emplace_back(n.a, times);
        pending.emplace_back(n.b, n.op == ir::ExprOp::add ? times : -times);
      } else if (n.op == ir::ExprOp::mul && p_.exprs.is_const_int(n.b, &value) && std::abs(value) <= kFar) {
        pending.emplace_back(n.a, times * value);
      } else {
        return std::nullopt;
      }
    }
    if (!w.var.valid() || w.step == 0 || std::abs(w.step) > kFar || std::abs(w.first) > kFar)
      return std::nullopt;
    return w;
  }

  // How many loops behind loop `i` of the block go on in it: up to the next that shares memory with it, as
  // the statements of one loop up to that stay together.
  size_t join(const ir::Block& b, size_t i) {
    const ir::Loop* a = parallel(b[i]);
    if (!a) return 0;
    const auto same = [](ExprId e) { return e; };
    const auto common = [&](const Elements& l, const Elements& r) {
      return std::any_of(l.begin(), l.end(),
                         [&](const auto& u) { return in_memory(p_, u.first) && r.count(u.first); });
    };
    const ElementUse x = use_of(a->body, same);
    ElementUse all = x;
    size_t seen = i;  // loops up to it are in `all`
    for (size_t k = i + 1; k < b.size() && k <= i + kAhead; ++k) {
      const ir::Loop* other = parallel(b[k]);
      if (!other || other->extents != parallel(b[i])->extents) return 0;
      const ElementUse y = use_of(other->body, same);
      if (!common(x.loaded, y.loaded) && !common(x.stored, y.loaded) && !common(x.loaded, y.stored) &&
          !common(x.stored, y.stored))
        continue;
      ElementUse last;
      for (; seen < k; ++seen) {
        last = renamed_use(b[i], b[seen + 1]);
        const ir::Loop& loop = *parallel(b[i]);
        if (!is_pointwise(loop, all, last) || !is_pointwise(loop, last, all)) return 0;
        add(all.loaded, last.loaded);
        add(all.stored, last.stored);
      }
      if (!share_memory(x, last)) continue;
      for (size_t j = i + 1; j <= k; ++j) append(b[i], b[j]);
      return k - i;
    }
    return 0;
  }

  static void add(Elements& to, const Elements& more) {
    for (const auto& [buffer, at] : more) to[buffer].insert(at.begin(), at.end());
  }

  // What the second loop touches, by the first one's variables.
  ElementUse renamed_use(StmtId first, StmtId second) {
    const std::vector<VarId> from = parallel(second)->vars, to = parallel(first)->vars;
    Renaming rename(p_.exprs, from, to);
    return use_of(parallel(second)->body, [&](ExprId e) { return rename.rewrite(e); });
  }

  // The second loop's statements go on in the first.
  void append(StmtId first, StmtId second) {
    const std::vector<VarId> from = parallel(second)->vars, to = parallel(first)->vars;
    Renaming rename(p_.exprs, from, to);
    const auto renamed = [&](ExprId e) { return rename.rewrite(e); };
    const ir::Block more = parallel(second)->body;
    std::vector<StmtId> inside;
    ir::for_each_statement(p_, more, [&](StmtId s, int) { inside.push_back(s); });
    for (StmtId s : inside) {
      if (auto* store = std::get_if<ir::Store>(&p_.stmts[s.value].node)) {
        ir::visit_exprs(*store, [&](ExprId& e) { e = renamed(e); });
      } else if (auto* branch = std::get_if<ir::Branch>(&p_.stmts[s.value].node)) {
        branch->condition = renamed(branch->condition);
      }
    }
    ir::Block& body = std::get<ir::Loop>(p_.stmts[first.value].node).body;
    body.insert(body.end(), more.begin(), more.end());
    out_.joined = true;
  }

  // The loop keeps its first part; those after it.
  std::vector<StmtId> split(StmtId s) {
    if (!parallel(s) || parallel(s)->body.size() < 2) return {};
    const ir::Loop whole = *parallel(s);
    const std::vector<size_t> cuts = cuts_of(whole.body);
    if (cuts.empty()) return {};
    const auto part = [&](size_t begin, size_t end) {
      ir::Loop loop = whole;
      loop.body.assign(whole.body.begin() + static_cast<long>(begin),
                       whole.body.begin() + static_cast<long>(end));
      return loop;
    };
    std::vector<StmtId> more;
    for (size_t c = 0; c < cuts.size(); ++c) {
      const size_t end = c + 1 < cuts.size() ? cuts[c + 1] : whole.body.size();
      const StmtId first = whole.body[cuts[c]];
      more.push_back(StmtId(p_.stmts.size()));
      out_.parts.emplace_back(more.back(), first);
      p_.stmts.push_back({part(cuts[c], end), p_.stmt(first).location});
    }
    p_.stmts[s.value].node = part(0, cuts.front());
    out_.parts.emplace_back(s, whole.body.front());
    return more;
  }

  // Places before which the body is cut: nothing is shared across.
  std::vector<size_t> cuts_of(const ir::Block& body) const {
    std::vector<ElementUse> uses;
    for (StmtId s : body) uses.push_back(use_of(s));
    std::vector<size_t> cuts;
    size_t reach = 0;
    for (size_t i = 0; i < body.size(); ++i) {
      if (i > reach) cuts.push_back(i);
      reach = std::max(reach, i);
      for (size_t k = i + 1; k < body.size(); ++k)
        if (share_memory(uses[i], uses[k])) reach = std::max(reach, k);
    }
    return cuts;
  }

  ir::Program& p_;
  StoreGroups out_;
};

}  // namespace

StoreGroups group_stores(ir::Program& p) { return StoreGrouper(p).run(); }

}  // namespace tilegen::schedule
