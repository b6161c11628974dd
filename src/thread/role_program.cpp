#include "thread/role_program.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "arith/prove.h"
#include "support/checked.h"
#include "thread/sync_accesses.h"
#include "thread/walk_loads.h"

namespace tilegen::thread {

using ir::ExprId;

namespace {

class Flattener {
 public:
  Flattener(const ThreadProgram& p, RoleProgram& out)
      : p_(p),
        out_(out),
        loads_(p, out.handed_over),
        kept_(p.stmts.size()),
        orders_(p.stmts.size()),
        writes_(p.stmts.size()) {}

  void run() {
    out_.variables = loads_.variables();
    out_.data = loads_.tensors();
    out_.handed = loads_.handed();
    for (StmtId id : p_.body) note(id);
    std::vector<Role> roles;
    Block before;
    for (StmtId id : p_.body) {
      if (const auto* all = std::get_if<Roles>(&p_.stmts[id.value].node))
        roles = all->roles;
      else
        before.push_back(id);
    }
    if (roles.empty()) roles.push_back({p_.name, 0, p_.threads, 0, {}});
    for (const Role& role : roles) {
      const auto begin = static_cast<uint32_t>(out_.steps.size());
      conditions_.clear();
      block(before);
      block(role.body);
      add(RoleOp::end, StmtId(size_t{0}));
      add_processes(role, begin);
    }
  }

 private:
  // Whether a statement orders others, or touches what is judged: it, or one inside.
  void note(StmtId id) {
    const StmtNode& node = p_.stmts[id.value].node;
    bool orders = false, kept = false, writes = false;
    for (const Block* inside : blocks_inside(node))
      for (StmtId s : *inside) {
        note(s);
        orders = orders || orders_[s.value];
        writes = writes || writes_[s.value];
        kept = kept || kept_[s.value];
      }
    orders = orders || std::holds_alternative<Barrier>(node) ||
             std::holds_alternative<ClusterBarrier>(node) ||
             std::holds_alternative<TransactionArrive>(node) ||
             std::holds_alternative<TransactionWait>(node) || std::holds_alternative<TransactionTest>(node) ||
             std::holds_alternative<TensorLoad>(node) || std::holds_alternative<TensorStore>(node) ||
             std::holds_alternative<BulkCommit>(node) || std::holds_alternative<BulkWait>(node) ||
             std::holds_alternative<AsyncCommit>(node) || std::holds_alternative<AsyncWait>(node) ||
             std::holds_alternative<ProxyFence>(node) || std::holds_alternative<WarpgroupMma>(node) ||
             std::holds_alternative<WarpgroupCommit>(node) || std::holds_alternative<WarpgroupWait>(node);
    kept = kept || std::holds_alternative<ClusterLoad>(node);
    const auto* loop = std::get_if<Loop>(&node);
    if (blocks_inside(node).empty() || (loop != nullptr && loop->form == LoopForm::vectorized))
      for (const SyncAccess& a : sync_accesses(p_, id)) {
        kept = kept || out_.judges(a.memory);
        writes = writes || (a.write && out_.operands[a.memory.value]);
      }
    writes_[id.value] = writes;
    orders_[id.value] = orders;
    kept_[id.value] = kept || orders || loads_.changing(node).has_value();
  }

  RoleStep& add(RoleOp op, StmtId id) {
    RoleStep step;
    step.op = op;
    step.stmt = id;
    out_.steps.push_back(step);
    return out_.steps.back();
  }
  uint32_t here() const { return static_cast<uint32_t>(out_.steps.size()); }
  int value(ExprId e) { return value(e, numbers_, loads_.of_numbers()); }
  int place(ExprId e) { return value(e, place_numbers_, loads_.of_places()); }
  int value(ExprId e, std::map<ExprId, int>& known, const KnownLoads& loads) {
    if (!e.valid()) return -1;
    const auto [at, fresh] = known.try_emplace(e, static_cast<int>(out_.values.size()));
    if (fresh) out_.values.emplace_back(p_.exprs, e, &loads);
    return at->second;
  }

  void block(const Block& b) {
    for (StmtId id : b)
      if (kept_[id.value]) std::visit([&](const auto& node) { flatten(id, node); }, p_.stmts[id.value].node);
  }

  void flatten(StmtId id, const Loop& loop) {
    if (loop.form == LoopForm::vectorized) return touches(id);
    const uint32_t begin = here();
    const int extent = value(loop.extent), condition = value(loop.condition);
    RoleStep& step = add(RoleOp::loop, id);
    step.value = extent;
    step.second = condition;
    step.gathers = !orders_[id.value] && writes_[id.value];
    block(loop.body);
    out_.steps[begin].sampled = !orders_[id.value] && !writes_[id.value] && !decides(loop.var, begin);
    add(RoleOp::loop_end, id).jump = begin;
    out_.steps[begin].jump = here();
  }
  // Whether what stands after step `begin` touches anything, in some iteration of the loop.
  bool decides(ir::VarId loop, size_t begin) const {
    const auto on = [&](int v) { return v >= 0 && out_.values[static_cast<size_t>(v)].depends_on(loop); };
    for (size_t s = begin + 1; s < out_.steps.size(); ++s) {
      const RoleStep& step = out_.steps[s];
      if (step.op == RoleOp::branch && on(step.value)) return true;
      for (size_t t = step.first; step.op == RoleOp::touch && t < step.last; ++t)
        if (on(out_.touches[t].predicate)) return true;
    }
    return false;
  }
  void flatten(StmtId id, const Branch& branch) {
    const uint32_t begin = here();
    const int condition = value(branch.condition);
    note_conditions(branch.condition);
    add(RoleOp::branch, id).value = condition;
    block(branch.then_body);
    const uint32_t middle = here();
    add(RoleOp::jump, id);
    out_.steps[begin].jump = here();
    block(branch.else_body);
    out_.steps[middle].jump = here();
  }
  // The parts of a conjunction tell threads apart, too.
  void note_conditions(ExprId e) {
    conditions_.push_back(value(e));
    const ir::ExprNode n = p_.exprs[e];
    if (n.op != ir::ExprOp::logical_and) return;
    note_conditions(n.a);
    note_conditions(n.b);
  }
  void flatten(StmtId id, const OneThread& one) {
    const uint32_t begin = here();
    add(RoleOp::one_thread, id);
    block(one.body);
    add(RoleOp::one_thread_end, id);
    out_.steps[begin].jump = here();
  }
  void two(RoleOp op, StmtId id, ExprId first, ExprId second) {
    const int a = value(first), b = value(second);
    RoleStep& step = add(op, id);
    step.value = a;
    step.second = b;
  }
  void flatten(StmtId, const Roles&) {}
  void flatten(StmtId id, const Barrier&) { add(RoleOp::barrier, id); }
  void flatten(StmtId id, const ClusterBarrier&) { add(RoleOp::cluster_barrier, id); }
  void flatten(StmtId id, const TransactionArrive& a) { two(RoleOp::arrive, id, a.index, a.block); }
  void flatten(StmtId id, const TransactionWait& w) { two(RoleOp::wait, id, w.index, w.parity); }
  void flatten(StmtId id, const TransactionTest& t) { two(RoleOp::test, id, t.index, t.parity); }
  void flatten(StmtId id, const ClusterLoad& l) { two(RoleOp::cluster_load, id, l.src_index, l.block); }
  void flatten(StmtId id, const TensorLoad& l) { two(RoleOp::load, id, l.dst_index, l.barrier_index); }
  void flatten(StmtId id, const TensorStore& s) { two(RoleOp::store, id, s.src_index, ExprId()); }
  void flatten(StmtId id, const BulkCommit&) { add(RoleOp::bulk_commit, id); }
  void flatten(StmtId id, const BulkWait&) { add(RoleOp::bulk_wait, id); }
  void flatten(StmtId id, const AsyncCommit&) { add(RoleOp::copy_commit, id); }
  void flatten(StmtId id, const AsyncWait&) { add(RoleOp::copy_wait, id); }
  void flatten(StmtId id, const ProxyFence&) { add(RoleOp::proxy_fence, id); }
  void flatten(StmtId id, const WarpgroupMma& m) {
    const bool a_in_registers = p_.memory(m.a).in_registers;
    two(RoleOp::product, id, a_in_registers ? ExprId() : m.a_index, m.b_index);
  }
  void flatten(StmtId id, const WarpgroupCommit&) { add(RoleOp::product_commit, id); }
  void flatten(StmtId id, const WarpgroupWait&) { add(RoleOp::product_wait, id); }
  void flatten(StmtId id, const Store& store) {
    const auto variable = loads_.changing(p_.stmts[id.value].node);
    if (variable) return set(id, store.value, *variable);
    if (out_.handed.count(store.memory)) two(RoleOp::hand, id, store.value, store.index);
    touches(id);
  }
  void flatten(StmtId id, const Shuffle& shuffle) {
    touches(id);
    if (const auto variable = loads_.changing(p_.stmts[id.value].node)) set(id, shuffle.value, *variable);
  }
  void flatten(StmtId id, const FetchTile&) {
    if (const auto variable = loads_.changing(p_.stmts[id.value].node))
      add(RoleOp::fetch_tile, id).first = variable->value;
  }
  void set(StmtId id, ExprId to, ir::VarId variable) {
    const int number = value(to);
    RoleStep& step = add(RoleOp::set, id);
    step.value = number;
    step.first = variable.value;
  }
  void flatten(StmtId id, const auto&) { touches(id); }

  void touches(StmtId id) {
    const size_t first = out_.touches.size();
    for (const SyncAccess& a : sync_accesses(p_, id))
      if (out_.judges(a.memory)) {
        const int index = place(a.index), predicate = place(a.predicate);
        const auto varies = [&](int v) {
          return v >= 0 && out_.values[static_cast<size_t>(v)].depends_on(a.lane);
        };
        RoleTouch touch{id, a.memory, index,   a.count,     predicate, a.lane,
                        1,  a.write,  a.async, a.row_lanes, {},        0};
        if (a.lane.valid() && !varies(predicate) && counts_lanes(a.index, a.lane))
          touch.count += a.lanes - 1;
        else if (a.lane.valid() && (varies(index) || varies(predicate)))
          touch.lanes = a.lanes;
        if (out_.values[static_cast<size_t>(index)].reads_memory()) find_slot(a.index, touch);
        out_.touches.push_back(std::move(touch));
      }
    RoleStep& step = add(RoleOp::touch, id);
    step.first = first;
    step.last = out_.touches.size();
  }

  // index = lane + what is the same for all lanes: these are neighbours.
  bool counts_lanes(ExprId index, ir::VarId lane) const {
    int lanes = 0;
    std::vector<ExprId> open = {index};
    while (!open.empty()) {
      const ExprId e = open.back();
      open.pop_back();
      const ir::ExprNode& n = p_.exprs[e];
      if (n.op == ir::ExprOp::add)
        open.insert(open.end(), {n.a, n.b});
      else if (n.op == ir::ExprOp::var && n.var() == lane)
        ++lanes;
      else if (arith::depends_on(p_.exprs, e, lane))
        return false;
    }
    return lanes == 1;
  }

  // index = slot * (elements of a slot) + what is less than that: the addends that are multiples are the
  // slot's. A constant is where no other is: it may be part of both.
  void find_slot(ExprId index, RoleTouch& touch) {
    const Memory& m = p_.memory(touch.memory);
    const int64_t size = m.elements / m.slots;
    if (m.slots == 1) return;
    std::vector<ExprId> open = {index};
    while (!open.empty()) {
      const ExprId e = open.back();
      open.pop_back();
      const ir::ExprNode n = p_.exprs[e];
      int64_t constant = 0;
      if (n.op == ir::ExprOp::add) {
        open.insert(open.end(), {n.a, n.b});
      } else if (n.op == ir::ExprOp::sub) {
        open.push_back(n.a);
      } else if (p_.exprs.is_const_int(e, &constant)) {
        touch.slot_constant = std::max<int64_t>(0, floor_div(constant, size)) * size;
      } else if (n.op == ir::ExprOp::mul &&
                 (p_.exprs.is_const_int(n.a, &constant) || p_.exprs.is_const_int(n.b, &constant)) &&
                 constant % size == 0) {
        touch.slot_terms.push_back(value(e));
      }
    }
    if (!touch.slot_terms.empty()) touch.slot_constant = 0;
  }

  // Threads of one warpgroup for which the conditions of the thread alone are the same.
  void add_processes(const Role& role, uint32_t begin) {
    std::vector<int> by_thread;
    for (int c : conditions_) {
      const IndexProgram& condition = out_.values[static_cast<size_t>(c)];
      if (p_.thread_var.valid() && condition.vars() == std::vector<ir::VarId>{p_.thread_var} &&
          !condition.reads_memory())
        by_thread.push_back(c);
    }
    std::map<std::vector<int64_t>, size_t> known;
    std::vector<std::vector<int64_t>> members;
    const size_t first = out_.processes.size();
    PointValues at(out_.variables);
    const int64_t warp = p_.machine.warp, warpgroup = p_.machine.warpgroup;
    for (int64_t t = role.first_thread; t < role.first_thread + role.threads; ++t) {
      if (p_.thread_var.valid()) at.set(p_.thread_var, t);
      std::vector<int64_t> key = {t / warpgroup};
      for (int c : by_thread) key.push_back(out_.values[static_cast<size_t>(c)].eval(at).value_or(1));
      const auto [place, fresh] = known.try_emplace(key, members.size());
      if (fresh) {
        members.emplace_back();
        RoleProcess process;
        process.begin = begin;
        process.group = static_cast<int>(t / warpgroup);
        out_.processes.push_back(process);
      }
      members[place->second].push_back(t);
      RoleProcess& process = out_.processes[first + place->second];
      ++process.threads;
      process.warps += t % warp == 0;
      process.leads = process.leads || t % warpgroup == 0;
    }
    for (size_t i = 0; i < members.size(); ++i) {
      const std::vector<int64_t>& m = members[i];
      std::vector<int64_t>& samples = out_.processes[first + i].samples;
      for (size_t at_quarter : {size_t{0}, m.size() / 3, m.size() * 2 / 3, m.size() - 1})
        if (samples.empty() || samples.back() != m[at_quarter]) samples.push_back(m[at_quarter]);
      out_.processes[first + i].members = m;
    }
  }

  const ThreadProgram& p_;
  RoleProgram& out_;
  const WalkLoads loads_;
  std::vector<bool> kept_, orders_, writes_;  // by statement; writes_: an operand
  std::map<ExprId, int> numbers_, place_numbers_;
  std::vector<int> conditions_;  // of the role
};

}  // namespace

RoleProgram::RoleProgram(const ThreadProgram& p)
    : program(&p), handed_over(handed_over_memories(p)), operands(written_operands(p)) {
  Flattener(p, *this).run();
}

}  // namespace tilegen::thread
