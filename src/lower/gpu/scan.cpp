// Scans of a block of many threads. Each thread brings its elements into registers and scans the runs of the
// axis that it holds alone; level by level (analysis/scan_exchange.h) runs then get the totals of those
// before them: from the same thread, from lanes by butterflies, from other warps through a scratch slice.
//
//   lanes, of each bit of the digit:   other = butterfly(total)
//                                      before += bit is set ? other : identity
//                                      total += other
#include <algorithm>
#include <map>

#include "analysis/scan_exchange.h"
#include "lower/addressing.h"
#include "lower/gpu/element_nest.h"
#include "lower/gpu/exchange.h"
#include "lower/gpu/iteration.h"
#include "lower/gpu/registers.h"
#include "lower/lowering_context.h"
#include "lower/op_lowering.h"
#include "lower/reduction_math.h"
#include "ops/layout_rule.h"

namespace tilegen::lower {

using analysis::ScanLevel;
using ir::DType;
using layout::Digit;

namespace {

constexpr int64_t kUnrolledRuns = 16;  // totals of other threads that are fetched without a loop

class BlockScan {
 public:
  BlockScan(LoweringContext& k, const layout::Fragment& iteration, DType type, const ops::Scan& scan,
            const std::string& path, thread::Block& out)
      : k_(k),
        e_(k.out.exprs),
        iteration_(iteration),
        type_(type),
        scan_(scan),
        path_(path),
        out_(out),
        x_(analysis::scan_exchange(iteration, scan.axis, type, k.in.target)),
        identity_(scan_identity(e_, scan.kind, type)) {
    values_ = add_registers(k_, "scanned", type, iteration.registers());
  }

  MemoryId values() const { return values_; }
  ExprId identity() const { return identity_; }

  // After the elements in `values()`, at the registers of the iteration: every one has become the sum of all
  // up to it.
  void run() {
    find_runs();
    if (scan_.exclusive) drop_own();
    for (const ScanLevel& level : x_.levels) {
      if (level.way == ScanLevel::Way::registers) {
        join_registers(level);
        continue;
      }
      if (!totals_) take_totals();
      if (level.way == ScanLevel::Way::lanes)
        join_lanes(level);
      else
        join_through_scratch(level);
    }
  }

 private:
  // Neighbouring points of the axis in registers of the thread, which are scanned; where they stand in the
  // digits that no level has joined yet.
  struct Run {
    std::vector<int64_t> place;      // per register digit
    std::vector<int64_t> registers;  // in the order of the scan
    int64_t total = 0;               // register of `totals_`
  };

  ExprId load(MemoryId m, ExprId index) { return e_.load(m, type_, std::vector<ExprId>{index}); }
  ExprId load(MemoryId m, int64_t index) { return load(m, e_.const_int(index)); }
  thread::StmtId store(MemoryId m, ExprId index, ExprId value) {
    return k_.out.add(thread::Store{m, index, value, ExprId(), false, ExprId()}, path_);
  }
  void put(MemoryId m, int64_t index, ExprId value) { out_.push_back(store(m, e_.const_int(index), value)); }
  ExprId combine(ExprId a, ExprId b) { return reduction_combine(e_, scan_.kind, a, b); }
  void add_to(const Run& run, ExprId before) {
    for (int64_t r : run.registers) put(values_, r, combine(before, load(values_, r)));
  }
  // What the elements before this one add up to, where no thread of another run has been asked yet.
  ExprId total_of(const Run& run) {
    return totals_ ? load(totals_, run.total) : load(values_, run.registers.back());
  }

  void find_runs() {
    for (const Digit& d : iteration_.map().digits())
      if (d.output == layout::kRegister && d.dim != layout::kReplica) digits_.push_back(d);
    Run run;
    run.place.assign(digits_.size(), 0);
    for (;;) {
      int64_t at = 0;
      for (size_t i = 0; i < digits_.size(); ++i) at += run.place[i] * digits_[i].stride;
      run.registers = {at};
      runs_.push_back(run);
      size_t i = digits_.size();
      while (i > 0 && ++run.place[i - 1] == digits_[i - 1].extent) run.place[--i] = 0;
      if (i == 0) return;
    }
  }

  // Every element is part of the totals of its run alone: what is added to it afterwards is all before it.
  void drop_own() {
    take_totals();
    const ExprId nothing = reduction_identity(e_, scan_.kind, type_);
    for (const Run& run : runs_) put(values_, run.registers.front(), nothing);
  }

  void take_totals() {
    totals_ = add_registers(k_, "total", type_, static_cast<int64_t>(runs_.size()));
    for (size_t r = 0; r < runs_.size(); ++r) {
      runs_[r].total = static_cast<int64_t>(r);
      put(totals_, runs_[r].total, load(values_, runs_[r].registers.back()));
    }
  }

  // Runs that differ in the level's digit only become one.
  void join_registers(const ScanLevel& level) {
    const auto own =
        static_cast<size_t>(std::find(digits_.begin(), digits_.end(), level.digit) - digits_.begin());
    std::map<std::vector<int64_t>, std::vector<const Run*>> rows;
    for (const Run& run : runs_) {
      std::vector<int64_t> place = run.place;
      place[own] = 0;
      rows[place].push_back(&run);
    }
    std::vector<Run> joined;
    for (auto& [place, row] : rows) {
      std::sort(row.begin(), row.end(), [&](const Run* a, const Run* b) {
        return scan_.reverse ? a->place[own] > b->place[own] : a->place[own] < b->place[own];
      });
      Run all = *row.front();
      all.place = place;
      for (size_t i = 1; i < row.size(); ++i) {
        add_to(*row[i], total_of(all));
        if (totals_ && (!level.last || i + 1 < row.size()))
          put(totals_, all.total, combine(total_of(all), total_of(*row[i])));
        all.registers.insert(all.registers.end(), row[i]->registers.begin(), row[i]->registers.end());
      }
      joined.push_back(std::move(all));
    }
    runs_ = std::move(joined);
  }

  ExprId digit_value(const Digit& d) {
    for (const auto& t : thread_digits(k_, iteration_).digits)
      if (t.digit.stride == d.stride) return t.value;
    return e_.const_int(0);
  }

  void join_lanes(const ScanLevel& level) {
    const ExprId digit = digit_value(level.digit), zero = e_.const_int(0);
    const MemoryId other = add_registers(k_, "other", type_, 1);
    const MemoryId before = add_registers(k_, "before", type_, static_cast<int64_t>(runs_.size()));
    for (size_t r = 0; r < runs_.size(); ++r) put(before, static_cast<int64_t>(r), identity_);
    for (int64_t bit = 1; bit < level.extent; bit *= 2) {
      const ExprId set = k_.simplified(
          e_.binary(ir::ExprOp::eq, e_.floormod(e_.floordiv(digit, e_.const_int(bit)), e_.const_int(2)),
                    e_.const_int(scan_.reverse ? 0 : 1)));
      for (size_t r = 0; r < runs_.size(); ++r) {
        const auto at = static_cast<int64_t>(r);
        const int64_t total = runs_[r].total;
        out_.push_back(
            k_.out.add(thread::Shuffle{thread::Shuffle::Mode::butterfly, other, zero, load(totals_, total),
                                       e_.const_int(level.digit.stride * bit)},
                       path_));
        put(before, at, combine(e_.select(set, load(other, zero), identity_), load(before, at)));
        if (!level.last || bit * 2 < level.extent)
          put(totals_, total, combine(load(totals_, total), load(other, zero)));
      }
    }
    for (size_t r = 0; r < runs_.size(); ++r) add_to(runs_[r], load(before, static_cast<int64_t>(r)));
  }

  // Of all threads each has its own place. A thread after the digits has the values of another, whose place
  // is told by the digits alone.
  void join_through_scratch(const ScanLevel& level) {
    const int64_t threads = iteration_.threads(), at_once = x_.runs_at_once;
    const MemoryId scratch = scratch_memory(k_, path_, type_, x_.scratch_elements);
    const ExprId own = k_.out.thread_var.valid() ? e_.var(k_.out.thread_var) : e_.const_int(0);
    ExprId first = e_.const_int(0);  // thread of the digit's first run
    for (const auto& t : thread_digits(k_, iteration_).digits) {
      const ExprId value =
          t.digit.stride == level.digit.stride ? e_.floormod(t.value, e_.const_int(level.first)) : t.value;
      first = e_.add(first, e_.mul(value, t.digit.stride));
    }
    first = k_.simplified(first);
    const ExprId part = k_.simplified(e_.floordiv(digit_value(level.digit), e_.const_int(level.first)));
    const int64_t stride = level.digit.stride * level.first;
    const MemoryId before = add_registers(k_, "before", type_, 1),
                   fetched = add_registers(k_, "fetched", type_, 1);
    const ExprId zero = e_.const_int(0);
    for (size_t begin = 0; begin < runs_.size(); begin += static_cast<size_t>(at_once)) {
      const size_t end = std::min(runs_.size(), begin + static_cast<size_t>(at_once));
      for (size_t r = begin; r < end; ++r)
        out_.push_back(store(scratch, k_.simplified(e_.add(own, static_cast<int64_t>(r - begin) * threads)),
                             load(totals_, runs_[r].total)));
      for (size_t r = begin; r < end; ++r) {
        const int64_t total = runs_[r].total, slice = static_cast<int64_t>(r - begin) * threads;
        put(before, 0, identity_);
        put(totals_, total, identity_);
        const VarId var = k_.out.add_var("p" + std::to_string(k_.out.vars.size()), ir::VarKind::loop);
        k_.ctx.bind(var, 0, level.extent - 1);
        ExprId number = e_.var(var);  // from the first run of the scan to its last
        if (scan_.reverse) number = e_.sub(e_.const_int(level.extent - 1), number);
        const ExprId at = k_.simplified(e_.add(e_.add(first, slice), e_.mul(number, stride)));
        const ExprId ahead = scan_.reverse ? e_.lt(part, number) : e_.lt(number, part);
        thread::Block body = {
            store(fetched, zero, load(scratch, at)),
            store(before, zero,
                  e_.select(ahead, combine(load(before, zero), load(fetched, zero)), load(before, zero))),
            store(totals_, e_.const_int(total), combine(load(totals_, total), load(fetched, zero)))};
        const thread::LoopForm form =
            level.extent <= kUnrolledRuns ? thread::LoopForm::unrolled : thread::LoopForm::serial;
        out_.push_back(
            k_.out.add(thread::Loop{var, e_.const_int(level.extent), form, std::move(body)}, path_));
        add_to(runs_[r], load(before, zero));
      }
    }
  }

  LoweringContext& k_;
  ir::ExprPool& e_;
  const layout::Fragment& iteration_;
  const DType type_;
  const ops::Scan scan_;
  const std::string& path_;
  thread::Block& out_;
  const analysis::ScanExchange x_;
  const ExprId identity_;
  MemoryId values_, totals_;
  std::vector<Digit> digits_;  // of registers
  std::vector<Run> runs_;
};

}  // namespace

void OpLowering::scan_in_block(int src, int dst, const ops::Scan& scan) {
  const layout::Fragment& iteration = *plan_.iteration;
  check_holders(iteration);
  if (k_.failed()) return;
  const DType to = type(dst);
  BlockScan block(k_, iteration, to, scan, op_.path, out_);
  const auto element = [&](const Nest& nest) {
    return layout_index(k_, iteration.map(), layout::kRegister, nest.point);
  };
  emit_walk(
      k_, {iteration, plan_.vector, op_.path, &plan_},
      [&](const Nest& nest, thread::Block& body) {
        ir::ExprPool& e = k_.out.exprs;
        ExprId value = e.cast(to, load(src, nest.point));
        // A NaN is no number that anything could be larger or smaller than.
        if (scan.kind != ir::ReduceKind::sum && ir::is_float(to))
          value = reduction_combine(e, scan.kind, block.identity(), value);
        if (const ExprId inside = both(k_, ExprId(), nest.inside))
          value = e.select(inside, value, block.identity());
        body.push_back(k_.out.add(
            thread::Store{block.values(), element(nest), value, ExprId(), false, ExprId()}, op_.path));
      },
      out_);
  if (!k_.facts) block.run();
  const ir::BufferId buffer = tile_op_->operands[static_cast<size_t>(dst)].buffer;
  emit_walk(
      k_, {iteration, plan_.vector, op_.path, &plan_},
      [&](const Nest& nest, thread::Block& body) {
        written_.clear();
        const ExprId value = k_.out.exprs.load(block.values(), to, std::vector<ExprId>{element(nest)});
        store_from_thread(nest, buffer, element_at(dst, nest.point), value, ExprId(), body);
      },
      out_);
}

}  // namespace tilegen::lower
