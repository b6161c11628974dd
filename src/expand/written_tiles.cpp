#include "expand/written_tiles.h"

#include <algorithm>

namespace tilegen::expand {

namespace {

// A unit of the loop that writes the tile, or multiplies it, where it stands among the others in time.
struct Use {
  size_t at = 0;
  int64_t lag = 0;
  bool product = false;
};

}  // namespace

WrittenTiles::WrittenTiles(const Expander& x, const std::vector<ConsumerUnit>& order)
    : x_(x), before_(order.size()), after_(order.size()) {
  for (const analysis::ThreadWrittenOperand& w : x.written()) place(w, order);
}

void WrittenTiles::place(const analysis::ThreadWrittenOperand& w, const std::vector<ConsumerUnit>& order) {
  std::vector<Use> uses;
  size_t inside = 0;  // writers
  for (size_t at = 0; at < order.size(); ++at) {
    const ir::Block one = {order[at].stmt};
    bool writes = false, multiplies = false;
    ir::for_each_statement(x_.program(), one, [&](StmtId s, int) {
      const auto is = [&](OpId op) { return x_.ops().ops[op].stmt == s; };
      if (std::any_of(w.writers.begin(), w.writers.end(), is)) writes = true, ++inside;
      multiplies = multiplies || std::any_of(w.products.begin(), w.products.end(), is);
    });
    if (writes || multiplies) uses.push_back({at, order[at].lag, multiplies});
  }
  if (std::none_of(uses.begin(), uses.end(), [](const Use& u) { return u.product; })) return;
  std::stable_sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a.lag < b.lag; });
  // Iterations follow each other: after the last use comes the first. With slots in turn the other slot's
  // products are awaited before the meeting after the writes (consumer_loop.cpp).
  for (size_t i = 0; i < uses.size(); ++i) {
    if (uses[i].product) continue;
    if (uses[(i + 1) % uses.size()].product) after_[uses[i].at].add(x_, w);
    if (uses[(i + uses.size() - 1) % uses.size()].product && !w.own_rows && !x_.has_slots(w.value))
      raise(before_[uses[i].at], Scope::role);
  }
  if (inside == w.writers.size()) return;
  enter_.add(x_, w);
  const StmtId loop = x_.tree().parent(order.front().stmt);
  const bool again =
      x_.persistent() || w.writers.back() > w.products.front() || !x_.tree().around(loop).empty();
  if (again && !w.own_rows) raise(leave_, Scope::role);
}

void WrittenTiles::meet(Meet m, Block& out) {
  if (m) emit(out, Barrier{*m});
}

void HandOver::add(const Expander& x, const analysis::ThreadWrittenOperand& w) {
  scope = std::max(scope, std::optional(w.own_rows ? Scope::warpgroup : Scope::role));
  copied = copied || std::any_of(w.writers.begin(), w.writers.end(), [&](OpId writer) {
             const plan::OpPlan* plan = x.plan_of(x.ops().ops[writer]);
             return plan && plan->engine == plan::Engine::async_copy;
           });
}

void emit_hand_over(const HandOver& h, Block& out) {
  if (!h.scope) return;
  if (h.copied) {
    // Closed already but in a loop that closes groups at the end of its iterations.
    emit(out, CommitGroup{});
    emit(out, WaitGroup{0});
  }
  emit(out, Fence{});
  emit(out, Barrier{*h.scope});
}

}  // namespace tilegen::expand
