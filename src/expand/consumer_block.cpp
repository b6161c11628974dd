// A consumer's block outside of loops that a producer feeds: statements in program order. Tiles that are
// filled once whenever the block runs are waited for before the first statement that uses them, and
// released after the last.
//
//   consumer_wait tiles
//   issue product                   goes on beside what follows
//   ...
//   await product                   where a statement needs its sums or changes an operand, or the block ends
//   consumer_release tiles
//
// Operands that threads have written are handed over before a product (written_tiles.h): a fence, and the
// threads that share the tile meet; before the next writing they meet again, with products awaited.
#include <algorithm>

#include "expand/written_tiles.h"

namespace tilegen::expand {

namespace {

class ConsumerBlock {
 public:
  ConsumerBlock(Expander& x, const ir::Block& b, Block& out) : x_(x), block_(b), out_(&out) {
    for (StmtId id : b) units_.push_back(unit_of(x, id));
    for (size_t i = 0; i < x.pipelines().size(); ++i) {
      const Pipeline& line = x.pipelines()[i];
      if (line.transport != Transport::tensor_copy || line.home != &b || line.loop.valid()) continue;
      std::vector<size_t> users;
      for (size_t u = 0; u < b.size(); ++u)
        if (!copies(b[u]) && x.touches(b[u], line.values)) users.push_back(u);
      if (users.empty())
        x.fail(x.ops().ops[line.copies.front()].path,
               "pipeline '" + line.name + "' is used by nobody after what fills it",
               "leave `pipelines` out of the schedule to have them planned");
      else
        uses_.push_back({static_cast<int>(i), users.front(), users.back()});
    }
  }

  void run() {
    const bool overwrite = x_.overwrites();
    Block& all = *out_;
    ReduceParts reduction;
    for (size_t i = 0; i < block_.size(); ++i) {
      if (x_.failed()) return;
      if (copies(block_[i])) continue;
      if (i + 1 < block_.size() && x_.elided(block_[i])) {
        x_.set_overwrite(true, block_[i]);
        ++i;
      }
      statement(i);
      x_.set_overwrite(overwrite);
      if (!x_.shared_by_blocks(block_[i])) continue;
      await(flights_.size());
      reduction = {block_[i], x_.parts(), x_.shares(), {}};
      out_ = &reduction.body;
    }
    await(flights_.size());
    out_ = &all;
    if (reduction.loop.valid()) emit(all, std::move(reduction));
  }

 private:
  struct Use {
    int pipeline = -1;
    size_t first = 0, last = 0;  // statements of the block
  };

  // A copy that the producer makes.
  bool copies(StmtId id) const { return x_.op(id) && x_.fills_pipeline(id); }
  // The `finished` oldest products are awaited.
  void await(size_t finished) {
    if (finished == 0) return;
    Await await;
    std::set<ValueId> values;
    for (size_t f = 0; f < flights_.size(); ++f)
      for (ValueId v : units_[flights_[f]].writes)
        f < finished ? void(values.insert(v)) : void(values.erase(v));
    for (size_t f = 0; f < finished; ++f)
      await.finished.push_back({units_[flights_[f]].stmt, {Iteration::From::none, 0}});
    flights_.erase(flights_.begin(), flights_.begin() + static_cast<ptrdiff_t>(finished));
    await.pending = static_cast<int64_t>(flights_.size());
    for (ValueId v : values)
      if (x_.in_registers(v)) await.values.push_back({v});
    emit(*out_, std::move(await));
  }
  template <class Concerns>
  void await_up_to(Concerns&& concerns) {
    size_t finished = 0;
    for (size_t f = 0; f < flights_.size(); ++f)
      if (concerns(units_[flights_[f]])) finished = f + 1;
    await(finished);
  }

  void statement(size_t i) {
    const ConsumerUnit& u = units_[i];
    const auto* loop = x_.program().as<ir::Loop>(u.stmt);
    const bool fed = loop && loop->kind != ir::LoopKind::parallel && x_.fed(u.stmt);
    std::vector<int> around;
    for (const Use& use : uses_) {
      if (use.first != i) continue;
      if (fed && use.last == i)
        around.push_back(use.pipeline);
      else
        emit(*out_, Wait{use.pipeline, {}});
    }
    if (u.holds_products) await(flights_.size());
    await_up_to(
        [&](const ConsumerUnit& product) { return disturbs(u, product, [](ValueId) { return true; }); });
    if (u.product) {
      hand_over(u);
      emit(*out_, Issue{u.stmt, x_.overwrites()});
      flights_.push_back(i);
      if (u.waits) await(flights_.size());
    } else {
      if (!u.holds_products) before_writing(u);
      if (x_.stages_in_shared_place(u.stmt)) before_staging();
      fed ? x_.loop(*loop, u.stmt, around, *out_) : x_.statement(u.stmt, *out_);
    }
    for (const Use& use : uses_) {
      if (use.last != i || (fed && use.first == i)) continue;
      const std::set<ValueId>& values = x_.pipelines()[static_cast<size_t>(use.pipeline)].values;
      await_up_to([&](const ConsumerUnit& product) { return x_.touches(product.stmt, values); });
      const bool fenced = read_by_threads(use);
      if (fenced) emit(*out_, Fence{});
      if (fenced || !u.product || u.waits) emit(*out_, Barrier{Scope::warpgroup});
      x_.release({use.pipeline, {}}, *out_);
    }
  }

  // The copy engine, another proxy, fills the slot again.
  bool read_by_threads(const Use& use) const {
    const std::set<ValueId>& values = x_.pipelines()[static_cast<size_t>(use.pipeline)].values;
    return std::any_of(block_.begin() + static_cast<ptrdiff_t>(use.first),
                       block_.begin() + static_cast<ptrdiff_t>(use.last) + 1,
                       [&](StmtId s) { return !copies(s) && x_.reads_by_threads(s, values); });
  }

  bool writes(StmtId id, const analysis::ThreadWrittenOperand& w) const {
    const ir::Block one = {id};
    bool found = false;
    ir::for_each_statement(x_.program(), one, [&](StmtId s, int) {
      found = found || std::any_of(w.writers.begin(), w.writers.end(),
                                   [&](OpId op) { return x_.ops().ops[op].stmt == s; });
    });
    return found;
  }

  // Tiles that threads may have written since the last meeting.
  void hand_over(const ConsumerUnit& product) {
    HandOver h;
    for (const analysis::ThreadWrittenOperand& w : x_.written())
      if (x_.touches(product.stmt, {w.value})) h.add(x_, w);
    emit_hand_over(h, *out_);
  }

  // Products of all warpgroups that read the tile are done: each has awaited its own.
  void before_writing(const ConsumerUnit& u) {
    for (const analysis::ThreadWrittenOperand& w : x_.written()) {
      if (!writes(u.stmt, w) || !multiplied_here(w)) continue;
      await_up_to([&](const ConsumerUnit& product) { return x_.touches(product.stmt, {w.value}); });
      if (!w.own_rows && read_before(u.stmt, w)) emit(*out_, Barrier{Scope::role});
      // Written again by the next iteration, with no product between.
      if (w.own_rows && !x_.tree().around(u.stmt).empty()) emit(*out_, Barrier{Scope::warpgroup});
    }
  }
  // Products of all warpgroups that read what was in the staged tile's place are done, and stores from it.
  void before_staging() {
    await(flights_.size());
    emit(*out_, Await{});
    emit(*out_, AwaitStores{});
    emit(*out_, Barrier{Scope::role});
  }
  // By a product outside of loops that a producer feeds: these see to it themselves (written_tiles.h).
  bool multiplied_here(const analysis::ThreadWrittenOperand& w) const {
    return std::any_of(w.products.begin(), w.products.end(), [&](OpId product) {
      const StmtId loop = x_.tree().loop_of(x_.ops().ops[product].stmt);
      return !loop.valid() || !x_.fed(loop);
    });
  }
  // By a product that stands in this block, or runs before the statement does again.
  bool read_before(StmtId id, const analysis::ThreadWrittenOperand& w) const {
    return std::any_of(w.products.begin(), w.products.end(), [&](OpId product) {
      const StmtId s = x_.ops().ops[product].stmt;
      return x_.persistent() || x_.tree().precedes(s, id) || !x_.tree().around(id).empty();
    });
  }

  Expander& x_;
  const ir::Block& block_;
  Block* out_;
  std::vector<ConsumerUnit> units_;  // of the block's statements
  std::vector<Use> uses_;
  std::vector<size_t> flights_;  // products, oldest first
};

}  // namespace

void consumer_block(Expander& x, const ir::Block& b, Block& out) { ConsumerBlock(x, b, out).run(); }

}  // namespace tilegen::expand
