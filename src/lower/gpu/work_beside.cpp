#include "lower/gpu/work_beside.h"

#include <algorithm>
#include <set>

#include "lower/statement_exprs.h"
#include "thread/index_program.h"
#include "thread/perfect_nest.h"

namespace tilegen::lower {

namespace {

using thread::StmtId;

// Of the places, those with work: by bench/amd/loop_model.py matrix units are busy for 0.93 (B stored `[n,
// k]`) and 0.81 (`[k, n]`) of the time so, in loops on tiles of 128x128x64, for 0.90 and 0.78 where all have.
constexpr int64_t kTaken = 2, kPlaces = 3;

// Elements of registers.
using Registers = std::set<std::pair<MemoryId, int64_t>>;

struct Piece {
  StmtId stmt;
  bool known = true;  // loops and plain stores, whose registers are known
  bool deposits = false;
  Registers read, written;
};

class Pieces {
 public:
  explicit Pieces(LoweringContext& k) : k_(k), p_(k.out), e_(k.out.exprs) {}

  std::vector<StmtId> of(const thread::Block& work) {
    for (StmtId id : work) take_apart(id);
    for (Piece& piece : pieces_) {
      thread::PointValues at(p_.vars.size());
      look_into(piece, {piece.stmt}, at);
    }
    return in_order();
  }

 private:
  void take_apart(StmtId id) {
    const auto* loop = std::get_if<thread::Loop>(&p_.stmts[id.value].node);
    int64_t extent = 0;
    if (!loop || loop->form != thread::LoopForm::unrolled || !e_.is_const_int(loop->extent, &extent)) {
      pieces_.push_back({id});
      return;
    }
    const thread::Loop whole = *loop;  // the program grows
    for (int64_t i = 0; i < extent; ++i) {
      const ExprId value = e_.const_int(i);
      thread::VarSubstitution here(e_, {{whole.var, value}});
      for (StmtId s : whole.body) pieces_.push_back({copy(s, here)});
    }
  }

  StmtId copy(StmtId id, thread::VarSubstitution& here) {
    const std::string origin = p_.stmts[id.value].origin;
    thread::StmtNode node = p_.stmts[id.value].node;
    for_each_expr(node, [&](ExprId& e) {
      if (e) e = k_.simplified(here(e));
    });
    for (thread::Block* inside : thread::blocks_inside(node))
      for (StmtId& s : *inside) s = copy(s, here);
    return p_.add(std::move(node), origin);
  }

  void look_into(Piece& piece, const thread::Block& block, thread::PointValues& at) {
    for (StmtId id : block) {
      const thread::StmtNode& node = p_.stmts[id.value].node;
      if (const auto* loop = std::get_if<thread::Loop>(&node)) {
        int64_t extent = 0;
        piece.known = piece.known && e_.is_const_int(loop->extent, &extent);
        for (int64_t i = 0; i < extent && piece.known; ++i) {
          at.set(loop->var, i);
          look_into(piece, loop->body, at);
        }
      } else if (const auto* store = std::get_if<thread::Store>(&node); store && !store->atomic) {
        if (p_.memory(store->memory).space == thread::Space::local)
          add(piece, piece.written, store->memory, store->index, at);
        piece.deposits = piece.deposits || p_.memory(store->memory).space == thread::Space::shared;
        for (ExprId e : {store->index, store->value, store->predicate}) add_reads(piece, e, at);
      } else {
        piece.known = false;
      }
    }
  }

  void add(Piece& piece, Registers& to, MemoryId memory, ExprId index, const thread::PointValues& at) {
    const auto place = thread::IndexProgram(e_, index).eval(at);
    if (place)
      to.insert({memory, *place});
    else
      piece.known = false;
  }
  void add_reads(Piece& piece, ExprId root, const thread::PointValues& at) {
    std::vector<ExprId> todo = {root};
    std::set<ExprId> seen;
    while (!todo.empty()) {
      const ExprId id = todo.back();
      todo.pop_back();
      if (!id || !seen.insert(id).second) continue;
      const ir::ExprNode& n = e_[id];
      if (n.op == ir::ExprOp::load) {
        if (p_.memory(n.object).space == thread::Space::local)
          add(piece, piece.read, n.object, e_.indices(id)[0], at);
        for (ExprId index : e_.indices(id)) todo.push_back(index);
      } else if (n.op != ir::ExprOp::var) {
        todo.insert(todo.end(), {n.a, n.b, n.c});
      }
    }
  }

  static bool meet(const Registers& a, const Registers& b) {
    return std::any_of(a.begin(), a.end(), [&](const auto& place) { return b.count(place) > 0; });
  }
  // The later piece may not stand in front of the earlier one.
  static bool ordered(const Piece& earlier, const Piece& later) {
    return !earlier.known || !later.known || earlier.deposits == later.deposits ||
           meet(earlier.read, later.written) || meet(earlier.written, later.read) ||
           meet(earlier.written, later.written);
  }

  // Each directly behind the last one that it may not pass.
  std::vector<StmtId> in_order() const {
    std::vector<size_t> order;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      size_t place = order.size();
      while (place > 0 && !ordered(pieces_[order[place - 1]], pieces_[i])) --place;
      order.insert(order.begin() + static_cast<ptrdiff_t>(place), i);
    }
    std::vector<StmtId> out;
    for (size_t i : order) out.push_back(pieces_[i].stmt);
    return out;
  }

  LoweringContext& k_;
  thread::ThreadProgram& p_;
  ir::ExprPool& e_;
  std::vector<Piece> pieces_;
};

}  // namespace

WorkBeside::WorkBeside(LoweringContext& k, const thread::Block& work) : pieces_(Pieces(k).of(work)) {}

void WorkBeside::deal(int64_t places, thread::Block& out) {
  const auto all = static_cast<int64_t>(pieces_.size());
  const int64_t taken = std::max<int64_t>(1, places * kTaken / kPlaces);
  dealt_ = std::min(dealt_ + 1, taken);
  for (const int64_t until = all * dealt_ / taken; next_ < until; ++next_)
    out.push_back(pieces_[static_cast<size_t>(next_)]);
}

}  // namespace tilegen::lower
