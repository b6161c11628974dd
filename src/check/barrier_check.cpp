// Transaction barriers of the program (ir/transaction_barriers.h): what such a tile is, which threads come
// by, and that phases mean the same whether the statements take effect one behind the other or the warps run
// side by side (check/barrier_phases.h). That memory is ordered by them is proven where threads are ordered
// (sync/plant_barriers.h).
//
//   serial k in 0 .. n {                             phases are walked for k = 0, 1, 2, ... until what is
//     mbarrier_wait empty[k % 3], (k // 3 + 1) % 2   known repeats itself at an iteration whose indices and
//     mbarrier_arrive full[k % 3]              ->    parities are those of an earlier one: here after six,
//     ...                                            for any n
//
// A condition or a number of trips that is not known is taken every way. refuses: barriers and parities that
// nothing but the launch, or memory, knows; what could wait for ever, or go on too early.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "check/barrier_arrays.h"
#include "check/barrier_faults.h"
#include "check/barrier_phases.h"
#include "check/context.h"
#include "check/counter_values.h"
#include "check/expr_walk.h"
#include "check/launch_facts.h"
#include "ir/op_kinds.h"
#include "ir/transaction_barriers.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::check {
namespace {

using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using ir::StmtId;
using ir::VarId;

constexpr size_t kMaxParties = 16;  // of a kernel
constexpr int64_t kMaxTrips = 4096, kMaxSteps = 400'000;
constexpr int64_t kFewTrips = 256;  // where a fact bounds them, no period is asked for
constexpr size_t kMaxChoices = 6;   // every combination is walked

using Shape = BarrierPhases::Shape;
using States = std::set<BarrierPhases>;

class KernelBarriers {
 public:
  KernelBarriers(CheckContext& ctx, int kernel, ExprWalk& walk)
      : ctx_(ctx),
        p_(ctx.program),
        kernel_(p_.kernels[static_cast<size_t>(kernel)]),
        index_(kernel),
        walk_(walk),
        values_(ctx.program) {}

  void run() {
    int64_t arrays = 0, named = 0;
    for (ir::BufferId b : ir::barriers_of(p_, index_)) declare(b, arrays);
    for (ir::BufferId b : ir::named_barriers_of(p_, index_))
      if (!failed_) declare(b, named);
    collect(kernel_.body, {}, false);
    if (failed_ || parties_.empty()) return;
    find_parties();
    find_choices();
    for (uint32_t taken = 0; taken >> choices_.size() == 0 && !failed_ && !ctx_.stop(); ++taken) {
      for (size_t c = 0; c < choices_.size(); ++c)
        for (const auto& [condition, holds] : choices_[c])
          values_.decide(condition, holds == ((taken >> c & 1) != 0));
      at_the_end(block(kernel_.body, {BarrierPhases(shape_)}));
    }
  }

 private:
  // ---- what barriers are, and what stands around them

  // `before`: barriers of its kind.
  void declare(ir::BufferId b, int64_t& before) {
    const ir::Buffer& tile = p_.buffer(b);
    if (const auto fault = array_fault(p_, b, before)) {
      failed_ = true;
      return ctx_.error(fault->code, ir::buffer_path(p_, b), tile.location, fault->why, fault->hint);
    }
    first_[b] = shape_.arrivals.size();
    const auto participants = ir::barrier_participants(tile);
    const auto count = static_cast<size_t>(p_.tile_shape(b).front());
    before += static_cast<int64_t>(count);
    shape_.arrivals.insert(shape_.arrivals.end(), count,
                           participants ? *participants : *ir::barrier_arrivals(tile));
    shape_.named.insert(shape_.named.end(), count, participants.has_value());
  }

  void refuse(StmtId s, DiagCode code, const std::string& why, const std::string& hint) {
    if (!failed_) ctx_.error(code, s, why, hint);
    failed_ = true;
  }

  // Statements that hold operations on barriers, and that these tiles are nothing else.
  bool collect(const ir::Block& b, StmtId around, bool pipelined) {
    bool any = false;
    for (StmtId s : b) {
      if (failed_ || ctx_.stop()) return any;
      const auto* op = p_.as<ir::TileOp>(s);
      const bool own = op && ir::is_barrier_op(op->kind);
      bool inside = own;
      no_other_use(s, own);
      if (own) operation(s, *op, pipelined);
      if (own) loops_.emplace_back(s, around);
      if (const auto* loop = p_.as<ir::Loop>(s))
        inside = collect(loop->body, s, pipelined || loop->kind == ir::LoopKind::pipelined);
      if (const auto* branch = p_.as<ir::Branch>(s)) {
        inside = collect(branch->then_body, around, pipelined);
        inside = collect(branch->else_body, around, pipelined) || inside;
      }
      if (inside) holds_.insert(s);
      any = any || inside;
    }
    return any;
  }

  void no_other_use(StmtId s, bool own) {
    if (first_.empty()) return;
    ir::BufferId used;
    const auto note = [&](ir::BufferId b) {
      if (first_.contains(b)) used = b;
    };
    walk_.start();
    for_each_root(p_, s, [&](ExprId root) {
      walk_.visit(root, [&](ExprId, const ExprNode& n) {
        if (n.op == ExprOp::load) note(n.object);
      });
    });
    if (const auto* store = p_.as<ir::Store>(s)) {
      note(store->buffer);
      if (store->old) note(store->old->buffer);
    }
    if (const auto* op = p_.as<ir::TileOp>(s); op && !own)
      for (const ir::Region& r : op->operands) note(r.buffer);
    if (used.valid())
      refuse(s, DiagCode::scope_not_allowed,
             words({p_.buffer(used).name, " is an array of ",
                    (ir::barrier_participants(p_.buffer(used)) ? "named" : "transaction"),
                    " barriers, and is read or written as a tile"}),
             ir::barrier_participants(p_.buffer(used))
                 ? "arrive at it and meet there with barrier_arrive and barrier_sync alone"
                 : "arrive at it and wait for it with mbarrier_arrive and mbarrier_wait alone");
  }

  void operation(StmtId s, const ir::TileOp& op, bool pipelined) {
    const bool declared = first_.contains(op.operands.front().buffer);
    if (const auto fault = use_fault(p_, kernel_, op, declared, pipelined))
      return refuse(s, fault->code, fault->why, fault->hint);
    parties_.push_back(ir::threads_of(op, kernel_));
  }

  static int64_t threads_of_arrival(const ir::TileOp& op) {
    return op.flag(ir::mbarrier_arrive_attr::elected) ? kBarrierWarp : 1;
  }

  // Threads that come by the same operations.
  void find_parties() {
    std::set<int64_t> ends;
    for (const ir::ThreadRange& t : parties_) ends.insert({t.first, t.first + t.count});
    parties_.clear();
    for (auto end = std::next(ends.begin()); end != ends.end(); ++end) {
      const int64_t from = *std::prev(end);
      parties_.push_back({from, *end - from});
      shape_.threads.push_back(*end - from);
    }
    if (parties_.size() <= kMaxParties) return;
    failed_ = true;
    ctx_.error(
        DiagCode::limit_nodes, kernel_.name, kernel_.location,
        words({"more than ", std::to_string(kMaxParties), " sets of warps come by transaction barriers"}),
        "let several warps do the same");
  }
  BarrierPhases::Parties parties_of(const ir::ThreadRange& t) const {
    BarrierPhases::Parties found;
    while (parties_[found.begin].first < t.first) ++found.begin;
    for (found.end = found.begin;
         found.end < parties_.size() && parties_[found.end].first < t.first + t.count;)
      ++found.end;
    return found;
  }

  // What is decided once is not taken both ways by each if.
  void find_choices() {
    for (StmtId s : holds_)
      if (const auto* branch = p_.as<ir::Branch>(s)) add_fixed_conditions(p_, branch->condition, choices_);
    if (choices_.size() > kMaxChoices) choices_.resize(kMaxChoices);
  }

  // ---- the walk

  States block(const ir::Block& b, States states) {
    for (StmtId s : b) {
      if (failed_ || ctx_.stop()) return {};
      if (!holds_.contains(s)) continue;
      if (const auto* op = p_.as<ir::TileOp>(s))
        states = step(s, *op, states);
      else if (const auto* loop = p_.as<ir::Loop>(s))
        states = iterate(*loop, std::move(states));
      else
        states = choose(*p_.as<ir::Branch>(s), states);
    }
    return states;
  }

  States choose(const ir::Branch& branch, const States& states) {
    const auto known = values_.eval(branch.condition);
    States after;
    if (known.value_or(1) != 0) after.merge(block(branch.then_body, states));
    if (known.value_or(0) == 0) after.merge(block(branch.else_body, states));
    return after;
  }

  States step(StmtId s, const ir::TileOp& op, const States& states) {
    const ir::Region& at = op.operands.front();
    const std::string word(ir::op_row(op.kind).text), &name = p_.buffer(at.buffer).name;
    const auto index = values_.eval(at.offsets.front());
    const auto parity = op.value.valid() ? values_.eval(op.value) : std::optional<int64_t>(0);
    if (!index || !parity) {
      refuse(s, DiagCode::bad_attribute,
             words({"which barrier of ", name, (op.value.valid() ? ", or which parity, " : " "), word,
                    " means is not told by constants and counters of loops"}),
             words({"number the uses of a ring by a loop that begins at a constant: ", name,
                    "[k % 3], with parity k // 3 % 2"}));
      return {};
    }
    if (*index < 0 || *index >= p_.tile_shape(at.buffer).front() || *parity < 0 || *parity > 1) {
      refuse(s, DiagCode::index_out_of_bounds,
             words({word, " is of ", name, "[", std::to_string(*index), "]",
                    (op.value.valid() ? " and parity " + std::to_string(*parity) : ""), ", of ",
                    std::to_string(p_.tile_shape(at.buffer).front()), " barriers",
                    (op.value.valid() ? " and parities 0 and 1" : "")}),
             "take the number of a use modulo the slots, k % 3, and its parity modulo 2, k // 3 % 2");
      return {};
    }
    const size_t barrier = first_.at(at.buffer) + static_cast<size_t>(*index);
    const BarrierPhases::Parties who = parties_of(ir::threads_of(op, kernel_));
    States after;
    for (const BarrierPhases& before : states) {
      if (++steps_ > kMaxSteps) {
        refuse(s, DiagCode::limit_nodes,
               words({"the phases of ", name, " do not repeat themselves early enough to be proven"}),
               "use fewer slots, and conditions that constants and counters of loops tell");
        return {};
      }
      BarrierPhases state = before;
      size_t party = 0;
      const auto fault = op.kind == ir::OpKind::mbarrier_wait ? state.wait(barrier, *parity, who, &party)
                         : op.kind == ir::OpKind::barrier_sync
                             ? state.sync(shape_, barrier, who, &party)
                             : state.arrive(shape_, barrier, who, threads_of_arrival(op), &party);
      if (fault) {
        const auto [why, hint] =
            fault_words(*fault, {threads_text(parties_[party]),
                                 words({name, "[", std::to_string(*index), "]"}), iteration_text(), *parity,
                                 state.arrived(barrier), shape_.arrivals[barrier], shape_.is_named(barrier)});
        const bool waits = *fault == PhaseFault::never_complete || *fault == PhaseFault::meets_too_few;
        refuse(
            s, DiagCode::misplaced_statement, why,
            waits && is_met_in_another_loop(s, at.buffer)
                ? "who comes by there does so in another loop, behind this one: give the loops of both sides "
                  "the same bounds, serial k in 0 .. n, and their iterations are done beside each other"
                : hint);
        return {};
      }
      after.insert(std::move(state));
    }
    return after;
  }

  // The loops of two sides that are not woven into one (ir/weave_sides.h).
  bool is_met_in_another_loop(StmtId waiting, ir::BufferId array) const {
    const auto is_here = [&](const auto& at) { return at.first == waiting; };
    const auto here = std::find_if(loops_.begin(), loops_.end(), is_here);
    return here->second.valid() && std::any_of(here, loops_.end(), [&](const auto& at) {
             const auto& op = *p_.as<ir::TileOp>(at.first);
             return at.second.valid() && at.second != here->second && op.kind != ir::OpKind::mbarrier_wait &&
                    op.operands.front().buffer == array;
           });
  }

  // Who has arrived at a named barrier is met there.
  void at_the_end(const States& states) {
    for (const auto& [array, first] : first_)
      for (int64_t i = 0; ir::barrier_participants(p_.buffer(array)) && i < p_.tile_shape(array).front(); ++i)
        for (const BarrierPhases& state : states) {
          const size_t barrier = first + static_cast<size_t>(i);
          if (failed_ || state.arrived(barrier) == 0) continue;
          failed_ = true;
          ctx_.error(
              DiagCode::misplaced_statement, ir::buffer_path(p_, array), p_.buffer(array).location,
              words({std::to_string(state.arrived(barrier)), " of ", std::to_string(shape_.arrivals[barrier]),
                     " participants of ", p_.buffer(array).name, "[", std::to_string(i),
                     "] have come when the kernel ends, and nobody meets them"}),
              "let as many threads come by as participants says, the last of them by barrier_sync");
        }
  }

  std::string iteration_text() const {
    std::string text;
    for (const auto& [var, value] : values_.known())
      text += words({(text.empty() ? " where " : ", "), p_.var(var).name, " = ", std::to_string(value)});
    return text;
  }

  States iterate(const ir::Loop& loop, States states) {
    const auto begin = values_.eval(loop.begin), extent = values_.eval(loop.extents.front());
    const VarId var = loop.vars.front();
    States after;
    if (extent && *extent <= kMaxTrips) {
      for (int64_t i = 0; i < *extent && !failed_ && !ctx_.stop(); ++i) {
        if (loop.condition.valid()) after.insert(states.begin(), states.end());
        if (begin) values_.set(var, *begin + i);
        states = block(loop.body, std::move(states));
      }
      after.merge(states);
    } else if (const int64_t most = most_trips(loop, var); begin && most >= 0) {
      for (int64_t i = 0; i < most && !failed_ && !ctx_.stop(); ++i) {
        after.insert(states.begin(), states.end());
        values_.set(var, *begin + i);
        states = block(loop.body, std::move(states));
      }
      after.merge(states);
    } else {
      const int64_t period = begin ? values_.period(asked_in(loop.body), var) : 1;
      std::vector<States> seen(static_cast<size_t>(period));
      after = states;
      for (int64_t i = 0; !failed_ && !ctx_.stop(); ++i) {
        States& known = seen[static_cast<size_t>(i % period)];
        std::erase_if(states, [&](const BarrierPhases& state) { return known.contains(state); });
        if (states.empty()) break;
        known.insert(states.begin(), states.end());
        if (begin) values_.set(var, *begin + i);
        states = block(loop.body, std::move(states));
        after.insert(states.begin(), states.end());
      }
    }
    values_.forget(var);
    return failed_ ? States() : after;
  }

  int64_t most_trips(const ir::Loop& loop, VarId var) {
    const auto [known, fresh] = most_.try_emplace(var, -1);
    if (fresh) known->second = greatest_value(p_, loop.extents.front());
    return known->second <= kFewTrips ? known->second : -1;
  }

  // What the walk evaluates in an iteration.
  std::vector<ExprId> asked_in(const ir::Block& body) const {
    std::vector<ExprId> asked;
    ir::for_each_statement(p_, body, [&](StmtId s, int) {
      if (!holds_.contains(s)) return;
      if (const auto* op = p_.as<ir::TileOp>(s))
        asked.insert(asked.end(), {op->operands.front().offsets.front(), op->value});
      if (const auto* branch = p_.as<ir::Branch>(s)) asked.push_back(branch->condition);
      if (const auto* loop = p_.as<ir::Loop>(s))
        asked.insert(asked.end(), {loop->begin, loop->extents.front()});
    });
    return asked;
  }

  CheckContext& ctx_;
  const ir::Program& p_;
  const ir::Kernel& kernel_;
  const int index_;
  ExprWalk& walk_;
  bool failed_ = false;
  Shape shape_;
  std::map<ir::BufferId, size_t> first_;  // number of each array's first barrier
  std::vector<ir::ThreadRange> parties_;
  std::set<StmtId> holds_;
  std::vector<std::pair<StmtId, StmtId>> loops_;  // operations on barriers, and the loop around each
  CounterValues values_;
  std::vector<FixedCondition> choices_;
  std::map<VarId, int64_t> most_;  // trips, by loop; -1: not known
  int64_t steps_ = 0;
};

}  // namespace

void check_barriers(CheckContext& ctx) {
  ExprWalk walk(ctx.program);
  for (size_t k = 0; k < ctx.program.kernels.size(); ++k)
    KernelBarriers(ctx, static_cast<int>(k), walk).run();
}

}  // namespace tilegen::check
