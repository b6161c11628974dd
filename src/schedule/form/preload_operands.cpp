#include "schedule/form/preload_operands.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/loads.h"
#include "arith/prove.h"
#include "ir/annotations.h"
#include "ir/store_parts.h"
#include "ir/transaction_barriers.h"
#include "ir/written_region.h"
#include "ops/op.h"
#include "schedule/form/buffer_memory.h"

namespace tilegen::schedule {

using ir::BufferId;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using ir::StmtId;
using ir::VarId;

namespace {

// Expressions of one reader that become values in registers.
constexpr size_t kMaxPreloads = 4;

class Replacing : public ir::ExprRewriter {
 public:
  Replacing(ir::ExprPool& pool, const std::map<ExprId, ExprId>& by) : ExprRewriter(pool, pool) {
    for (const auto& [from, to] : by) replace(from, to);
  }
};

class RenamingVar : public ir::ExprRewriter {
 public:
  RenamingVar(ir::ExprPool& pool, VarId from, VarId to) : ExprRewriter(pool, pool), own_(from), other_(to) {}

 protected:
  ExprId rewrite_var(const ExprNode& n) override {
    return to_->var(n.var() == own_ ? other_ : n.var(), n.type);
  }

 private:
  const VarId own_, other_;
};

class Preloader {
 public:
  explicit Preloader(ir::Program& p) : p_(p) {}

  std::vector<Preload> run() {
    for (size_t k = 0; k < p_.kernels.size(); ++k) {
      kernel_ = static_cast<int>(k);
      const ir::Block body = p_.kernels[k].body;
      loops_in(body);
    }
    return std::move(made_);
  }

 private:
  // Statements are added meanwhile: blocks are worked on outside the program.
  void loops_in(const ir::Block& block) {
    for (StmtId s : block) {
      if (const auto* branch = p_.as<ir::Branch>(s)) {
        const ir::Block then_body = branch->then_body, else_body = branch->else_body;
        loops_in(then_body);
        loops_in(else_body);
      }
      const auto* loop = p_.as<ir::Loop>(s);
      if (!loop || loop->kind == ir::LoopKind::parallel) continue;
      ir::Block body = loop->body;
      loops_in(body);
      preload_in(body);
      std::get<ir::Loop>(p_.stmts[s.value].node).body = std::move(body);
    }
  }

  void preload_in(ir::Block& block) {
    for (size_t i = 0; i < block.size(); ++i) {
      if (!is_reader(block[i])) continue;
      const std::set<size_t> products = awaited(block, i);
      if (products.empty()) continue;
      for (const auto& [loop, place] : preloads_of(block, i, products)) {
        block.insert(block.begin() + static_cast<long>(place), loop);
        ++i;
      }
    }
  }

  bool is_reader(StmtId s) const {
    const auto* loop = p_.as<ir::Loop>(s);
    return loop && loop->kind == ir::LoopKind::parallel && loop->vars.size() == 2 &&
           !ir::fixes_threads(p_.stmt(s)) &&
           std::all_of(loop->body.begin(), loop->body.end(), [&](StmtId in) { return p_.as<ir::Store>(in); });
  }
  bool is_product(StmtId s) const {
    const auto* op = p_.as<ir::TileOp>(s);
    return op && ops::layout_rule(*op).form == ops::OpForm::contraction;
  }

  template <class Visit>
  void for_each_written(StmtId stmt, Visit&& visit) const {
    const ir::Block one = {stmt};
    ir::for_each_statement(p_, one, [&](StmtId s, int) {
      if (const auto* store = p_.as<ir::Store>(s))
        ir::visit_written(*store, [&](BufferId b, const auto&) { visit(b); });
      if (const auto* op = p_.as<ir::TileOp>(s); op && !ir::orders_threads(op->kind))
        visit(ir::written_region(*op).buffer);
    });
  }
  bool reads(StmtId stmt, const std::set<BufferId>& buffers) const {
    bool any = false;
    const auto ask = [&](ExprId e) { any = any || analysis::reads_any(p_.exprs, e, buffers); };
    const ir::Block one = {stmt};
    ir::for_each_statement(p_, one, [&](StmtId s, int) {
      if (const auto* store = p_.as<ir::Store>(s)) {
        ir::visit_exprs(*store, ask);
      } else if (const auto* op = p_.as<ir::TileOp>(s)) {
        if (op->value.valid()) ask(op->value);
        for (const ir::Region& r : op->operands) {
          any = any || buffers.count(r.buffer) > 0;
          for (ExprId offset : r.offsets) ask(offset);
        }
      } else if (const auto* branch = p_.as<ir::Branch>(s)) {
        ask(branch->condition);
      }
    });
    return any;
  }

  // Places of the products before `reader` in the block that it waits for, through what others make of them.
  std::set<size_t> awaited(const ir::Block& block, size_t reader) const {
    std::set<size_t> found;
    for (size_t i = 0; i < reader; ++i) {
      if (!is_product(block[i])) continue;
      std::set<BufferId> made = {ir::written_region(*p_.as<ir::TileOp>(block[i])).buffer};
      for (size_t s = i + 1; s < reader; ++s)
        if (reads(block[s], made)) for_each_written(block[s], [&](BufferId b) { made.insert(b); });
      if (reads(block[reader], made)) found.insert(i);
    }
    return found;
  }

  // Memory is read, nothing in registers, and the column is of no account.
  bool may_preload(ExprId e, VarId column) const {
    const ir::DType type = p_.exprs.type(e);
    if (ir::is_bool(type) || ir::is_storage_only(type) || arith::depends_on(p_.exprs, e, column))
      return false;
    bool any = false;
    const bool other = analysis::any_load(p_.exprs, e, [&](ExprId, const ExprNode& n) {
      any = true;
      return !in_memory(p_, n.object);
    });
    return any && !other;
  }

  // The largest such parts of an expression that are computed for every element. Conditions are left as they
  // are: those that are the same for a whole tile choose a version of the loop.
  void find(ExprId e, VarId column, std::set<ExprId>& found) const {
    if (!e.valid()) return;
    if (may_preload(e, column)) return void(found.insert(e));
    const ExprNode n = p_.exprs[e];
    const ir::ExprClass kind = ir::expr_class(n.op);
    if (n.op == ExprOp::load || kind == ir::ExprClass::select || kind == ir::ExprClass::compare ||
        kind == ir::ExprClass::logic)
      return;
    find(n.a, column, found);
    find(n.b, column, found);
    find(n.c, column, found);
  }

  // The first place that `e` may be computed at: what it reads is written before.
  size_t first_place(const ir::Block& block, size_t reader, ExprId e) const {
    std::set<BufferId> read;
    analysis::any_load(p_.exprs, e, [&](ExprId, const ExprNode& n) {
      read.insert(n.object);
      return false;
    });
    size_t place = 0;
    const auto note = [&](StmtId s, size_t after) {
      for_each_written(s, [&](BufferId b) {
        if (std::any_of(read.begin(), read.end(), [&](BufferId r) { return may_alias(p_, r, b); }))
          place = after;
      });
    };
    for (size_t i = 0; i <= reader; ++i) note(block[i], i + 1);
    return place;
  }

  std::vector<std::pair<StmtId, size_t>> preloads_of(const ir::Block& block, size_t reader,
                                                     const std::set<size_t>& products) {
    const ir::Loop loop = *p_.as<ir::Loop>(block[reader]);
    const VarId row = loop.vars[0], column = loop.vars[1];
    std::set<ExprId> found;
    for (StmtId s : loop.body) find(p_.as<ir::Store>(s)->value, column, found);
    std::map<ExprId, ExprId> by;
    std::vector<std::pair<StmtId, size_t>> loops;
    for (ExprId e : found) {
      if (by.size() == kMaxPreloads) break;
      // Beside the first product that is issued after what is read has been written.
      const size_t first = first_place(block, reader, e);
      const auto product =
          std::find_if(products.begin(), products.end(), [&](size_t at) { return at + 1 >= first; });
      if (product == products.end()) continue;
      const auto [made, value] = preload(block[reader], loop.extents[0], row, e);
      by[e] = value;
      loops.emplace_back(made, *product + 1);
    }
    if (by.empty()) return loops;
    Replacing replacing(p_.exprs, by);
    for (StmtId s : loop.body) {
      ir::Store store = *p_.as<ir::Store>(s);
      store.value = replacing.rewrite(store.value);
      p_.stmts[s.value].node = std::move(store);
    }
    // The last place first: those before keep theirs.
    std::reverse(loops.begin(), loops.end());
    std::stable_sort(loops.begin(), loops.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    return loops;
  }

  // The loop that computes `e` for each row, and what it has stored for `row`.
  std::pair<StmtId, ExprId> preload(StmtId reader, ExprId rows, VarId row, ExprId e) {
    const SourceLocation location = p_.stmt(reader).location;
    ir::Buffer buffer;
    buffer.name = "preload#" + std::to_string(made_.size());
    buffer.scope = ir::MemScope::fragment;
    buffer.type = p_.exprs.type(e);
    buffer.shape = {rows};
    buffer.kernel = kernel_;
    buffer.location = location;
    const BufferId tile(p_.buffers.size());
    p_.buffers.push_back(std::move(buffer));
    const VarId own(p_.vars.size());
    p_.vars.push_back(p_.var(row));
    RenamingVar rename(p_.exprs, row, own);
    const ir::Store store{tile, {p_.exprs.var(own)}, rename.rewrite(e)};
    const StmtId inner(p_.stmts.size());
    p_.stmts.push_back({store, location});
    ir::Loop loop;
    loop.kind = ir::LoopKind::parallel;
    loop.vars = {own};
    loop.begin = p_.exprs.const_int(0);
    loop.extents = {rows};
    loop.body = {inner};
    const StmtId made(p_.stmts.size());
    p_.stmts.push_back({std::move(loop), location});
    made_.push_back({made, reader});
    const std::vector<ExprId> at = {p_.exprs.var(row)};
    return {made, p_.exprs.load(tile, p_.exprs.type(e), at)};
  }

  ir::Program& p_;
  int kernel_ = 0;
  std::vector<Preload> made_;
};

}  // namespace

std::vector<Preload> preload_operands(ir::Program& p) { return Preloader(p).run(); }

}  // namespace tilegen::schedule
