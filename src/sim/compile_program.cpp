#include "sim/compile_program.h"

#include <map>
#include <string_view>

#include "sim/atom_tables.h"
#include "sim/expr_compiler.h"
#include "support/diag_codes.h"
#include "thread/sync_accesses.h"
#include "thread/warp_arrival.h"

namespace tilegen::sim {

using thread::AsyncCopy;
using thread::Barrier;
using thread::Branch;
using thread::Loop;
using thread::LoopForm;
using thread::StmtId;
using thread::Store;

namespace {

class ProgramCompiler {
 public:
  ProgramCompiler(const thread::ThreadProgram& p, const target::Target& t)
      : p_(p), target_(t), exprs_(p, out_) {}

  Expected<Bytecode> run() {
    for (const thread::Memory& m : p_.memories) {
      out_.register_base.push_back(out_.registers);
      if (m.in_registers) out_.registers += static_cast<uint32_t>(m.elements);
    }
    compile(p_.body);
    add(StepKind::end);
    exprs_.finish();
    if (!refusal_.diagnostics.empty()) return refusal_;
    number_atomic_uses();
    return std::move(out_);
  }

 private:
  void number_atomic_uses() {
    std::map<std::string_view, uint32_t> operations;
    for (const Access& a : out_.accesses) {
      AtomicUse& use = out_.atomic_uses.emplace_back();
      if (!a.atomic) continue;
      const auto next = static_cast<uint32_t>(operations.size()) + 1;
      use.operation = operations.try_emplace(p_.stmts[a.stmt].origin, next).first->second;
      if (!a.fetches && thread::leaves_the_same(*a.atomic)) use.kind = static_cast<uint32_t>(*a.atomic) + 1;
    }
  }
  Step& add(StepKind kind) {
    Step step;
    step.kind = kind;
    step.stmt = stmt_;
    out_.steps.push_back(step);
    return out_.steps.back();
  }
  uint32_t here() const { return static_cast<uint32_t>(out_.steps.size()); }

  void compile(const thread::Block& block) {
    for (StmtId id : block) {
      stmt_ = id.value;
      std::visit([&](const auto& node) { compile(node); }, p_.stmts[id.value].node);
    }
  }

  // Begins a statement with a segment of its own.
  Step& open(StepKind kind) {
    const uint32_t segment = exprs_.add_segment();
    exprs_.begin_statement(stmt_, segment);
    Step& step = add(kind);
    step.segment = segment;
    for (Ref* r : {&step.x, &step.y, &step.z}) r->at = kNothing;
    for (Ref& r : step.coordinates) r.at = kNothing;
    return step;
  }
  void close(Step& s) {
    Ref* const operands[] = {&s.x,
                             &s.y,
                             &s.z,
                             &s.coordinates[0],
                             &s.coordinates[1],
                             &s.coordinates[2],
                             &s.coordinates[3],
                             &s.coordinates[4],
                             &s.moved,
                             &s.moved_if,
                             &s.times_at};
    exprs_.end_statement(operands);
    if (s.segment != kNothing && out_.segments[s.segment].empty()) s.segment = kNothing;
  }

  void compile(const Loop& loop) {
    if (loop.form == LoopForm::vectorized) return compile_lanes(loop);
    const uint32_t stmt = stmt_;
    const uint32_t begin = here();
    Step& step = open(StepKind::loop_begin);
    step.x = exprs_.use(loop.extent);
    step.variable = {Ref::Space::uniform, out_.variables[loop.var.value]};
    close(step);
    const uint32_t iteration = exprs_.add_loop_segment();
    out_.steps[begin].lane_segment = iteration;
    exprs_.enter_loop(loop.var, iteration);
    const uint32_t asks = here();
    if (loop.condition.valid()) {
      Step& ask = open(StepKind::loop_while);
      ask.x = exprs_.use(loop.condition);
      close(ask);
    }
    compile(loop.body);
    exprs_.leave_loop();
    stmt_ = stmt;
    out_.steps[begin].jump = here();
    if (loop.condition.valid()) out_.steps[asks].jump = here();
    Step& end = add(StepKind::loop_end);
    end.jump = begin;
  }

  void compile_lanes(const Loop& loop) {
    int64_t extent = 1;
    p_.exprs.is_const_int(loop.extent, &extent);
    for (StmtId id : loop.body) {
      stmt_ = id.value;
      const auto& store = std::get<Store>(p_.stmts[id.value].node);
      Step& step = open(StepKind::wide_store);
      step.lane_segment = exprs_.add_segment();
      step.extent = extent;
      step.variable = {Ref::Space::uniform, out_.variables[loop.var.value]};
      exprs_.begin_lanes(loop.var, step.lane_segment, extent);
      operands(step, store, extent);
    }
  }

  ir::ExprId uncast(ir::ExprId value) const {
    while (p_.exprs[value].op == ir::ExprOp::cast) value = p_.exprs[value].a;
    return value;
  }
  bool is_register(ir::ExprId value) const {
    return p_.exprs[value].op == ir::ExprOp::load && p_.memory(p_.exprs[value].object).in_registers;
  }

  void note_move(Step& step, ir::ExprId value) {
    step.moved.at = step.moved_if.at = step.times_at.at = kNothing;
    value = uncast(value);
    if (const ir::ExprNode& n = p_.exprs[value]; n.op == ir::ExprOp::add) {
      const ir::ExprNode& product = p_.exprs[n.b];
      if (product.op != ir::ExprOp::mul || p_.exprs[n.a].op != ir::ExprOp::load) return;
      const ir::ExprId a = uncast(product.a), b = uncast(product.b);
      if (!is_register(a) || !is_register(b)) return;
      step.moved_from = p_.exprs[a].object.value;
      step.moved = exprs_.use(p_.exprs.indices(a)[0]);
      step.times = p_.exprs[b].object.value;
      step.times_at = exprs_.use(p_.exprs.indices(b)[0]);
      return;
    }
    if (p_.exprs[value].op != ir::ExprOp::load) return;
    const auto indices = p_.exprs.indices(value);
    step.moved_from = p_.exprs[value].object.value;
    step.moved = exprs_.use(indices[0]);
    if (indices.size() > 1) step.moved_if = exprs_.use(indices[1]);
  }

  void operands(Step& step, const Store& store, int64_t extent) {
    step.y = exprs_.use(store.value);
    step.x = exprs_.use(store.index);
    step.z = exprs_.use(store.predicate);
    step.coordinates[0] = exprs_.use(store.expected);
    if (store.old.valid()) {
      step.coordinates[1] = exprs_.use(store.old_index);
      step.access2 = exprs_.add_access(store.old, "old value", true, 1);
    }
    note_move(step, store.value);
    const ir::ExprNode& value = p_.exprs[store.value];
    step.keeps_load = value.op == ir::ExprOp::load && p_.memory(store.memory).in_registers &&
                      p_.memory(value.object).space == thread::Space::global;
    const bool wide = extent > 1 && exprs_.runs_along_lanes(store.index) &&
                      (!store.predicate.valid() || !exprs_.depends_on_lanes(store.predicate));
    step.width = wide ? extent : 1;
    step.access =
        exprs_.add_access(store.memory, store.atomic ? "atomic operation" : "store", true, step.width);
    out_.accesses[step.access].atomic = store.atomic;
    out_.accesses[step.access].order = store.order;
    out_.accesses[step.access].fetches = store.old.valid();
    close(step);
  }
  void compile(const Store& store) { operands(open(StepKind::store), store, 1); }

  void compile(const Branch& branch) {
    const uint32_t stmt = stmt_;
    const uint32_t begin = here();
    Step& step = open(StepKind::branch);
    step.x = exprs_.use(branch.condition);
    step.extent = branch.together ? 1 : 0;
    close(step);
    compile(branch.then_body);
    stmt_ = stmt;
    const uint32_t middle = here();
    out_.steps[begin].jump = middle;
    add(StepKind::branch_else);
    compile(branch.else_body);
    stmt_ = stmt;
    out_.steps[middle].jump = here();
    add(StepKind::branch_end);
  }

  void compile(const thread::LaneReduce& r) {
    if (!p_.memory(r.dst).in_registers || !p_.memory(r.src).in_registers)
      return refuse("a lane reduction outside registers", "reduce in registers");
    Step& step = open(StepKind::lane_reduce);
    step.x = exprs_.use(r.dst_index);
    step.y = exprs_.use(r.src_index);
    step.access = exprs_.add_access(r.dst, "store", true, 1);
    step.access2 = exprs_.add_access(r.src, "load", false, r.width);
    close(step);
  }

  void compile(const thread::HostMma&) {
    refuse("a host micro-kernel", "simulate a program lowered for a GPU target");
  }
  void compile(const thread::Prefetch&) {}  // changes nothing
  void compile(const Barrier&) { add(StepKind::barrier); }
  void compile(const thread::AsyncCommit&) { add(StepKind::async_commit); }
  void compile(const thread::AsyncWait&) { add(StepKind::async_wait); }

  void compile(const AsyncCopy& copy) {
    Step& step = open(StepKind::async_copy);
    step.x = exprs_.use(copy.dst_index);
    step.y = exprs_.use(copy.src_index);
    step.z = exprs_.use(copy.predicate);
    const int64_t width = copy.bytes / ir::dtype_bytes(p_.memory(copy.dst).type);
    step.access = exprs_.add_access(copy.dst, "async copy", true, width);
    step.access2 = exprs_.add_access(copy.src, "async copy", false, width);
    close(step);
  }

  void compile(const thread::Shuffle& shuffle) {
    Step& step = open(StepKind::shuffle);
    step.x = exprs_.use(shuffle.dst_index);
    step.y = exprs_.use(shuffle.value);
    step.z = exprs_.use(shuffle.lane);
    step.access = exprs_.add_access(shuffle.dst, "shuffle", true, 1);
    close(step);
  }

  void compile(const thread::Vote& vote) {
    Step& step = open(StepKind::vote);
    step.x = exprs_.use(vote.dst_index);
    step.y = exprs_.use(vote.value);
    step.access = exprs_.add_access(vote.dst, "vote", true, 1);
    close(step);
  }

  void matrices(StepKind kind, thread::MemoryId registers, ir::ExprId reg, thread::MemoryId rows,
                ir::ExprId row, int count) {
    const bool load = kind == StepKind::load_matrix;
    const int64_t element = ir::dtype_bytes(p_.memory(rows).type);
    Step& step = open(kind);
    step.x = exprs_.use(reg);
    step.y = exprs_.use(row);
    step.access =
        exprs_.add_access(registers, load ? "matrix load" : "matrix store", load, count * 4 / element);
    step.access2 = exprs_.add_access(rows, load ? "matrix load" : "matrix store", !load, 16 / element);
    close(step);
  }
  void compile(const thread::LoadMatrix& m) {
    matrices(StepKind::load_matrix, m.dst, m.dst_index, m.src, m.src_index, m.matrices);
  }
  void compile(const thread::StoreMatrix& m) {
    matrices(StepKind::store_matrix, m.src, m.src_index, m.dst, m.dst_index, m.matrices);
  }

  void compile(const thread::WarpMma& m) {
    const uint32_t atom = find_atom(out_, p_, target_, m, refuse_);
    Step& step = open(StepKind::mma);
    step.x = exprs_.use(m.a_index);
    step.y = exprs_.use(m.b_index);
    step.z = exprs_.use(m.c_index);
    step.atom = atom;
    step.access_a = exprs_.add_access(m.a, "matrix instruction", false, m.a_registers);
    step.access_b = exprs_.add_access(m.b, "matrix instruction", false, m.b_registers);
    step.access = exprs_.add_access(m.c, "matrix instruction", true, m.c_registers);
    if (m.places.valid()) {
      step.coordinates[0] = exprs_.use(m.places_index);
      step.access_places = exprs_.add_access(m.places, "matrix instruction", false, 1);
    }
    close(step);
  }

  // Each role's warps run its body, and go on after the last.
  void compile(const thread::Roles& roles) {
    const uint32_t stmt = stmt_;
    std::vector<uint32_t> ends;
    for (uint32_t r = 0; r < roles.roles.size(); ++r) {
      const uint32_t begin = here();
      add(StepKind::role).atom = r;
      compile(roles.roles[r].body);
      stmt_ = stmt;
      ends.push_back(here());
      add(StepKind::role_end);
      out_.steps[begin].jump = here();
    }
    for (uint32_t end : ends) out_.steps[end].jump = here();
  }

  void compile(const thread::OneThread& one) {
    const uint32_t stmt = stmt_;
    add(StepKind::one_thread).extent = thread::warp_arrival(p_, one) ? 1 : 0;
    compile(one.body);
    stmt_ = stmt;
    add(StepKind::branch_end);
  }

  void compile(const thread::TransactionArrive& a) {
    Step& step = open(StepKind::transaction_arrive);
    step.x = exprs_.use(a.index);
    if (a.block.valid()) step.y = exprs_.use(a.block);
    close(step);
  }
  void compile(const thread::TransactionWait& wait) {
    Step& step = open(StepKind::transaction_wait);
    step.x = exprs_.use(wait.index);
    step.y = exprs_.use(wait.parity);
    if (wait.unless.valid()) step.z = exprs_.use(wait.unless);
    close(step);
  }
  void compile(const thread::TransactionTest& test) {
    Step& step = open(StepKind::transaction_test);
    step.x = exprs_.use(test.index);
    step.y = exprs_.use(test.parity);
    step.z = exprs_.use(test.dst_index);
    step.access = exprs_.add_access(test.dst, "answer", true, 1);
    close(step);
  }

  void compile(const thread::FetchTile& c) {
    Step& step = open(StepKind::fetch_tile);
    step.x = exprs_.use(c.dst_index);
    step.access = exprs_.add_access(c.dst, "fetch_tile", true, 1);
    close(step);
  }

  Step& tensor_copy(StepKind kind, int map, const std::vector<ir::ExprId>& coordinates,
                    thread::MemoryId shared, ir::ExprId place) {
    const thread::TensorMap& m = p_.tensor_maps[static_cast<size_t>(map)];
    int64_t elements = 1;
    for (int64_t b : m.box) elements *= b;
    Step& step = open(kind);
    step.x = exprs_.use(place);
    for (size_t d = 0; d < coordinates.size() && d < step.coordinates.size(); ++d)
      step.coordinates[d] = exprs_.use(coordinates[d]);
    const bool load = kind == StepKind::tensor_load;
    step.access = exprs_.add_access(shared, "tensor copy", load, elements);
    step.access2 = exprs_.add_access(m.tensor, "tensor copy", !load, elements);
    return step;
  }
  void compile(const thread::TensorLoad& l) {
    Step& step = tensor_copy(StepKind::tensor_load, l.map, l.coordinates, l.dst, l.dst_index);
    step.y = exprs_.use(l.barrier_index);
    close(step);
  }
  void compile(const thread::TensorStore& s) {
    Step& step = tensor_copy(StepKind::tensor_store, s.map, s.coordinates, s.src, s.src_index);
    out_.accesses[step.access2].atomic = s.reduction;
    close(step);
  }
  void compile(const thread::BulkCommit&) { add(StepKind::bulk_commit); }
  void compile(const thread::BulkWait&) { add(StepKind::bulk_wait); }
  void compile(const thread::ProxyFence&) { add(StepKind::proxy_fence); }
  void compile(const thread::ClusterLoad& load) {
    Step& step = open(StepKind::cluster_load);
    step.x = exprs_.use(load.dst_index);
    step.y = exprs_.use(load.src_index);
    step.z = exprs_.use(load.block);
    step.access = exprs_.add_access(load.dst, "cluster load", true, load.elements);
    step.access2 = exprs_.add_access(load.src, "cluster load", false, load.elements);
    close(step);
  }
  void compile(const thread::ClusterBarrier&) { add(StepKind::cluster_barrier); }
  void compile(const thread::GridDependencyWait&) {}  // launches follow each other
  void compile(const thread::WarpgroupFence&) { add(StepKind::warpgroup_fence); }
  void compile(const thread::WarpgroupCommit&) { add(StepKind::warpgroup_commit); }
  void compile(const thread::WarpgroupWait&) { add(StepKind::warpgroup_wait); }

  void compile(const thread::WarpgroupMma& m) {
    const uint32_t atom = find_warpgroup_atom(out_, p_, target_, m, refuse_);
    Step& step = open(StepKind::warpgroup_mma);
    step.x = exprs_.use(m.a_index);
    step.y = exprs_.use(m.b_index);
    step.z = exprs_.use(m.c_index);
    step.coordinates[0] = exprs_.use(m.accumulate);
    step.atom = atom;
    step.access_a = exprs_.add_access(m.a, "product", false, 1);
    step.access_b = exprs_.add_access(m.b, "product", false, 1);
    step.access = exprs_.add_access(m.c, "product", true, 1);
    if (m.sparse()) {
      step.coordinates[1] = exprs_.use(m.places_index);
      step.access_places = exprs_.add_access(m.places, "product", false, 1);
    }
    close(step);
  }

  void refuse(const std::string& what, const std::string& hint) {
    if (refusal_.diagnostics.empty())
      refusal_ = Error(DiagCode::target_unsupported, p_.stmts[stmt_].origin,
                       "the simulator cannot run " + what, hint);
  }

  const thread::ThreadProgram& p_;
  const target::Target& target_;
  Bytecode out_;
  ExprCompiler exprs_;
  uint32_t stmt_ = 0;
  const RefuseAtom refuse_ = [this](const std::string& what, const std::string& hint) { refuse(what, hint); };
  Error refusal_;
};

}  // namespace

Expected<Bytecode> compile_program(const thread::ThreadProgram& program, const target::Target& target) {
  return ProgramCompiler(program, target).run();
}

}  // namespace tilegen::sim
