// Tiles handed from the role that fills them to the role that uses them: a "full" and an "empty" transaction barrier a
// slot, in phases that alternate with every round through the slots.
//
// The producer waits until the slot is empty (at once in the first round), announces the bytes and issues the copies. A
// consumer waits until the slot is full, uses it, and one thread of each of its warpgroups gives it back. Both count the
// uses by themselves: with n iterations of the loop, iteration i of the block's t-th tile is number t * n + i.
//
// Where a matrix product is all that uses a channel in a loop, its instructions of one iteration are still running when
// those of the next are issued; the slot is given back when they are known to have finished, one iteration later.
#include <algorithm>

#include "lower/kernel_lowering.h"

namespace tilegen::lower {

void KernelLowering::declare_channels() {
  const int64_t warpgroups = out_.threads / kWarpgroup;
  for (const plan::ChannelPlan& plan : schedule_.channels) {
    Channel c;
    c.plan = &plan;
    for (size_t v = 0; v < ops_.values.size(); ++v)
      if (std::find(plan.values.begin(), plan.values.end(), ops_.values[v].name) != plan.values.end())
        c.values.insert(static_cast<int>(v));
    int64_t offset = -1;
    for (const plan::MemoryPlan& place : schedule_.memory)
      if (place.value == "channel:" + plan.name) {
        offset = place.offset;
        out_.arena_bytes = std::max(out_.arena_bytes, place.offset + place.bytes);
      }
    if (offset < 0 || c.values.size() != plan.values.size())
      return fail(DiagCode::schedule_illegal, kernel_.name,
                  "channel '" + plan.name + "' has no place in shared memory or names values that the kernel does not have",
                  "plan the program for this target");
    c.full = static_cast<int>(out_.barriers.size());
    out_.barriers.push_back({plan.name + ".full", plan.slots, 1, offset});
    c.empty = static_cast<int>(out_.barriers.size());
    out_.barriers.push_back({plan.name + ".empty", plan.slots, warpgroups, offset + 8 * plan.slots});
    for (int v : c.values) {
      thread::Memory& m = out_.memories[values_[static_cast<size_t>(v)].value];
      m.ordered = true;
      m.alignment = 1024;
    }
    channels_.push_back(std::move(c));
  }
}

const Channel* KernelLowering::channel_of(int value) const {
  for (const Channel& c : channels_)
    if (c.values.count(value)) return &c;
  return nullptr;
}

const Channel* KernelLowering::channel_of_loop(const std::string& path) const {
  for (const Channel& c : channels_)
    if (c.plan->loop == path) return &c;
  return nullptr;
}

ExprId KernelLowering::channel_slot(const Channel& c, ExprId count) {
  return simplified(out_.exprs.floormod(count, out_.exprs.const_int(c.plan->slots)));
}

ExprId KernelLowering::channel_parity(const Channel& c, ExprId count) {
  ir::ExprPool& e = out_.exprs;
  return simplified(e.floormod(e.floordiv(count, e.const_int(c.plan->slots)), e.const_int(2)));
}

// The copies of one iteration; in front of the first of them the wait for the slot.
void KernelLowering::fill_channel(const infer::KernelOp& op, thread::Block& out) {
  ir::ExprPool& e = out_.exprs;
  const Channel* c = nullptr;
  for (const infer::OpAccess& a : op.accesses)
    if (a.write) c = channel_of(a.value);
  const ExprId slot = channel_slot(*c, executions_);
  const infer::KernelOp* first = nullptr;
  int64_t bytes = 0;
  for (const infer::KernelOp& other : ops_.ops)
    for (const infer::OpAccess& a : other.accesses)
      if (a.write && c->values.count(a.value)) {
        if (!first) first = &other;
        bytes += tensor_load_bytes(other);
      }
  if (first == &op) {
    const ExprId parity = simplified(e.sub(e.const_int(1), channel_parity(*c, executions_)));
    out.push_back(out_.add(thread::TransactionWait{c->empty, slot, parity}, op.path));
    out.push_back(out_.add(thread::TransactionArrive{c->full, slot, bytes}, op.path));
  }
  tensor_loads(op, *c, slot, out);
}

// A consumer's loop over the fillings of a channel.
class ChannelLoop {
 public:
  ChannelLoop(KernelLowering& k, const Channel& c, const ir::Loop& loop, const std::string& origin)
      : k_(k),
        e_(k.out_.exprs),
        channel_(c),
        loop_(loop),
        origin_(origin),
        begin_(k.lower_expr(loop.begin)),
        extent_(k.simplified(k.lower_expr(loop.extents[0]))),
        before_(k.executions_),
        saved_slots_(k.slots_) {}

  void run(thread::Block& out) {
    if (int64_t trips = 0; e_.is_const_int(extent_, &trips) && trips <= 0) {
      if (k_.products_overwrite_) k_.statement(k_.cleared_by_, out);
      return;
    }
    product_ = lone_product();
    if (product_ && k_.products_overwrite_) return without_clearing(out);
    thread::Loop lowered = loop(extent_);
    const ExprId i = e_.var(lowered.var);
    const bool promotes = product_ && k_.p_.as<ir::TileOp>(*product_)->flag(ir::gemm_attr::promote);
    in_range(lowered.var, extent_, [&] {
      promotes   ? promoted_product(i, lowered.body)
      : product_ ? product(i, lowered.body, true)
                 : one_behind_the_other(i, lowered.body);
    });
    emit(std::move(lowered), out);
    if (product_ && !promotes) finish(out, e_.lt(e_.const_int(0), extent_));
  }

 private:
  template <class Node>
  void emit(Node node, thread::Block& to) {
    to.push_back(k_.out_.add(std::move(node), origin_));
  }
  thread::Loop loop(ExprId extent) {
    const VarId var = k_.out_.add_var(k_.p_.var(loop_.vars[0]).name, ir::VarKind::loop);
    return {var, extent, thread::LoopForm::serial, {}};
  }
  template <class Body>
  void in_range(VarId var, ExprId extent, Body&& body) {
    auto mark = k_.ctx_.mark();
    const arith::Interval range = arith::range_of(k_.ctx_, extent);
    k_.ctx_.bind(var, 0, range.hi == arith::Interval::kMax ? range.hi : range.hi - 1);
    k_.ctx_.assume(e_.lt(e_.var(var), extent));
    body();
    k_.ctx_.rollback(mark);
    k_.slots_ = saved_slots_;
    k_.executions_ = before_;
  }
  ExprId count(ExprId i) { return k_.simplified(e_.add(e_.mul(before_, extent_), i)); }

  // Statements lowered from here on belong to iteration `i`.
  void enter(ExprId i) {
    k_.vars_[loop_.vars[0]] = k_.simplified(e_.add(begin_, i));
    k_.executions_ = count(i);
    for (int v : channel_.values) k_.slots_[v] = k_.channel_slot(channel_, k_.executions_);
  }
  void wait_full(thread::Block& to) {
    emit(thread::TransactionWait{channel_.full, k_.channel_slot(channel_, k_.executions_),
                                 k_.channel_parity(channel_, k_.executions_)},
         to);
  }
  // One thread of each warpgroup gives the slot of use `number` back.
  void give_back(ExprId number, thread::Block& to, ExprId condition = ExprId()) {
    thread::Block arrive;
    emit(thread::TransactionArrive{channel_.empty, k_.channel_slot(channel_, number), 0}, arrive);
    to.push_back(k_.only_first_of_warpgroup(std::move(arrive), origin_, condition));
  }

  bool uses_channel(ir::StmtId id) const {
    bool uses = false;
    const ir::Block one = {id};
    ir::for_each_statement(k_.p_, one, [&](ir::StmtId s, int) {
      if (auto it = k_.op_of_.find(s); it != k_.op_of_.end())
        for (const infer::OpAccess& a : it->second->accesses) uses = uses || channel_.values.count(a.value);
      for (const auto& [where, value] : k_.ops_.scalar_reads)
        uses = uses || (where.first == s && channel_.values.count(value));
    });
    return uses;
  }

  // The product by warpgroups that is all the loop does beside filling the channel.
  std::optional<ir::StmtId> lone_product() const {
    std::optional<ir::StmtId> rest;
    for (ir::StmtId id : loop_.body) {
      if (k_.fills_channel(id)) continue;
      if (rest) return std::nullopt;
      rest = id;
    }
    const auto it = rest ? k_.op_of_.find(*rest) : k_.op_of_.end();
    if (it == k_.op_of_.end()) return std::nullopt;
    const plan::OpPlan* plan = plan::find_op(k_.schedule_, it->second->path);
    return plan && plan->engine == plan::Engine::warpgroup_mma ? rest : std::nullopt;
  }

  void product(ExprId i, thread::Block& body, bool give_back_previous) {
    enter(i);
    wait_full(body);
    k_.product_in_flight_ = true;
    k_.statement(*product_, body);
    k_.product_in_flight_ = false;
    if (!give_back_previous) return;
    emit(thread::WarpgroupWait{1, {}}, body);
    const ExprId first = e_.le(i, e_.const_int(0));
    const ExprId condition = arith::prove(k_.ctx_, e_.lt(e_.const_int(0), i)) ? ExprId()
                                                                              : e_.unary(ir::ExprOp::logical_not, first);
    give_back(k_.simplified(e_.sub(k_.executions_, e_.const_int(1))), body, condition);
  }

  // It has waited for its instructions.
  void promoted_product(ExprId i, thread::Block& body) {
    enter(i);
    wait_full(body);
    const ExprId executions = k_.executions_;
    k_.statement(*product_, body);
    give_back(executions, body);
  }

  // Behind the loop: the last product, and its slot.
  void finish(thread::Block& out, ExprId any) {
    const infer::KernelOp& op = *k_.op_of_.at(*product_);
    thread::WarpgroupWait wait{0, {}};
    for (const infer::OpAccess& a : op.accesses)
      if (a.write) wait.registers.push_back(k_.values_[static_cast<size_t>(a.value)]);
    emit(std::move(wait), out);
    const ExprId last = k_.simplified(e_.sub(e_.add(e_.mul(before_, extent_), extent_), e_.const_int(1)));
    give_back(last, out, arith::prove(k_.ctx_, any) ? ExprId() : k_.simplified(any));
  }

  // The accumulators are zero in front of the loop: the first product overwrites them, and they are cleared only where
  // there is none.
  void without_clearing(thread::Block& out) {
    const ExprId any = k_.simplified(e_.lt(e_.const_int(0), extent_));
    thread::Block some, none;
    auto mark = k_.ctx_.mark();
    k_.ctx_.assume(any);
    product(e_.const_int(0), some, false);
    k_.products_overwrite_ = false;
    thread::Loop rest = loop(k_.simplified(e_.sub(extent_, e_.const_int(1))));
    in_range(rest.var, rest.extent, [&] { product(e_.add(e_.var(rest.var), 1), rest.body, true); });
    emit(std::move(rest), some);
    finish(some, any);
    k_.ctx_.rollback(mark);
    if (arith::prove(k_.ctx_, any)) {
      out.insert(out.end(), some.begin(), some.end());
      return;
    }
    k_.statement(k_.cleared_by_, none);
    emit(thread::Branch{any, std::move(some), std::move(none)}, out);
  }

  // Everything in order, on slots that are given back behind their last use.
  void one_behind_the_other(ExprId i, thread::Block& body) {
    enter(i);
    std::vector<ir::StmtId> rest;
    for (ir::StmtId id : loop_.body)
      if (!k_.fills_channel(id)) rest.push_back(id);
    size_t uses = static_cast<size_t>(std::count_if(rest.begin(), rest.end(), [&](ir::StmtId s) { return uses_channel(s); }));
    bool waited = false;
    if (uses == 0) {
      wait_full(body);
      give_back(k_.executions_, body);
    }
    for (ir::StmtId id : rest) {
      if (k_.failed()) return;
      const bool use = uses_channel(id);
      if (use && !waited) wait_full(body);
      waited = waited || use;
      const ExprId executions = k_.executions_;
      k_.statement(id, body);
      k_.executions_ = executions;
      if (!use || --uses > 0) continue;
      k_.warpgroup_barrier(body, origin_);  // all of the warpgroup have read
      give_back(k_.executions_, body);
    }
  }

  KernelLowering& k_;
  ir::ExprPool& e_;
  const Channel& channel_;
  const ir::Loop& loop_;
  const std::string& origin_;
  const ExprId begin_, extent_;
  const ExprId before_;
  const std::map<int, ExprId> saved_slots_;
  std::optional<ir::StmtId> product_;
};

void KernelLowering::channel_loop(const Channel& c, const ir::Loop& loop, thread::Block& out, const std::string& origin) {
  ChannelLoop(*this, c, loop, origin).run(out);
}

bool KernelLowering::clears_for(ir::StmtId fill, ir::StmtId loop) {
  const auto* op = p_.as<ir::TileOp>(fill);
  const auto* pipeline = p_.as<ir::Loop>(loop);
  if (!op || op->kind != ir::OpKind::fill || !pipeline || !channel_of_loop(paths_[loop.value])) return false;
  const ir::ExprNode& value = p_.exprs[op->value];
  const bool zero = value.op == ir::ExprOp::const_int ? value.imm == 0
                                                      : value.op == ir::ExprOp::const_float && value.float_value() == 0;
  if (!zero || op_of_.at(fill)->accesses.empty()) return false;
  const infer::KernelOp* product = nullptr;
  for (ir::StmtId id : pipeline->body) {
    if (fills_channel(id)) continue;
    const auto it = op_of_.find(id);
    if (product || it == op_of_.end() || it->second->form != infer::OpForm::gemm) return false;
    product = it->second;
  }
  const plan::OpPlan* plan = product ? plan::find_op(schedule_, product->path) : nullptr;
  if (!plan || plan->engine != plan::Engine::warpgroup_mma) return false;
  if (p_.as<ir::TileOp>(product->stmt)->flag(ir::gemm_attr::promote)) return false;
  const ir::Region& cleared = op->operands[0];
  const ir::Region& sum = p_.as<ir::TileOp>(product->stmt)->operands[2];
  return cleared.buffer == sum.buffer && cleared.extents == sum.extents &&
         cleared.extents == ops_.values[static_cast<size_t>(op_of_.at(fill)->accesses[0].value)].shape;
}

}  // namespace tilegen::lower
