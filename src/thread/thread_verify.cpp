// The thread program's invariants as rules. Reports, never repairs; every rule has a test that breaks it.
#include <algorithm>
#include <bit>

#include "support/checked.h"
#include "thread/cooperation_verify.h"
#include "thread/expr_verifier.h"
#include "thread/thread_expr_text.h"
#include "thread/thread_program.h"
#include "thread/warpgroup_verify.h"

namespace tilegen::thread {
namespace {

using ir::DType;
using ir::ExprId;

constexpr int kMaxNesting = 256;

class Verifier {
 public:
  explicit Verifier(const ThreadProgram& p)
      : p_(p), exprs_(p, problems_), cooperation_(p, exprs_), visited_(p.stmts.size()) {}

  std::vector<std::string> run() {
    check_header();
    for (size_t i = 0; i < p_.params.size(); ++i) check_param(p_.params[i], i);
    for (ExprId extent : p_.grid) exprs_.check_launch_expr(extent, "grid extent");
    for (ExprId divisor : p_.divisors) exprs_.check_launch_expr(divisor, "divisor");
    for (ir::VarId var : p_.block_vars) define(var, ir::VarKind::block_index, "block variable");
    if (p_.launched_var.valid()) define(p_.launched_var, ir::VarKind::block_index, "the number of blocks");
    if (p_.thread_var.valid()) define(p_.thread_var, ir::VarKind::thread, "thread variable");
    for (size_t i = 0; i < p_.memories.size(); ++i) check_memory(p_.memories[i], i);
    for (const Guard& guard : p_.guards) check_guard(guard);
    cooperation_.check_header();
    check_block(p_.body, 1);
    if (problems_.empty()) problems_ = verify_warpgroups(p_);
    return std::move(problems_);
  }

 private:
  void report(const std::string& text) { exprs_.report(text); }

  void check_header() {
    bool legal_name = !p_.name.empty();
    for (char c : p_.name)
      legal_name = legal_name &&
                   ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_');
    if (!legal_name) report("kernel name '" + p_.name + "' is not of the form [A-Za-z0-9_]+");
    if (p_.grid.empty() || p_.grid.size() > 3)
      report("the grid has " + std::to_string(p_.grid.size()) + " extents");
    if (p_.grid.size() != p_.block_vars.size()) report("the grid and the block variables differ in number");
    if (p_.threads < 1) report("a block has " + std::to_string(p_.threads) + " threads");
    if (p_.thread_var.valid() != (p_.threads > 1))
      report("a thread variable belongs to blocks of several threads only");
    if (p_.arena_bytes < 0) report("the arena has a negative size");
    if (p_.min_blocks < 1) report("a multiprocessor holds " + std::to_string(p_.min_blocks) + " blocks");
  }

  void check_guard(const Guard& guard) {
    if (guard.param < 0 || static_cast<size_t>(guard.param) >= p_.params.size())
      return report("a guard of no parameter");
    const Param& param = p_.params[static_cast<size_t>(guard.param)];
    if (param.kind == Param::Kind::scalar) report("a guard on the scalar " + param.name);
    if (guard.divisor < 1)
      report("a guard on " + param.name + " with divisor " + std::to_string(guard.divisor));
    if (guard.most_bytes == 0 && !guard.elements.valid() && !guard.reach.valid() && guard.bounds.empty())
      return;
    if (param.kind != Param::Kind::tensor || guard.most_bytes < 1 || !guard.elements.valid())
      return report("a guard on " + param.name + " of " + std::to_string(guard.most_bytes) +
                    " bytes; expected a tensor, its elements and at least a byte");
    exprs_.check_launch_expr(guard.elements, "number of elements");
    if (guard.reach.valid()) exprs_.check_launch_expr(guard.reach, "reach");
  }

  bool define(ir::VarId var, ir::VarKind kind, const std::string& what, bool fixed = false) {
    if (!exprs_.enter_scope(var, fixed)) return false;
    if (p_.vars[var.value].kind != kind)
      report(what + " " + var_text(p_, var) + " is a variable of another kind");
    return true;
  }

  void check_param(const Param& param, size_t index) {
    if (param.kind != Param::Kind::tensor) {
      const bool is_dim = param.kind == Param::Kind::dim;
      if (!define(param.var, is_dim ? ir::VarKind::dim : ir::VarKind::scalar, "parameter")) return;
      if (p_.vars[param.var.value].type != param.type || (is_dim && param.type != DType::i64))
        report("parameter " + param.name + " differs in type from its variable");
      return;
    }
    if (!exprs_.check_memory(param.memory, "parameter " + param.name)) return;
    const Memory& m = p_.memory(param.memory);
    if (m.space != Space::global || m.param != static_cast<int>(index))
      report("parameter " + param.name + " and memory " + m.name + " do not name each other");
    if (m.type != param.type) report("parameter " + param.name + " differs in type from its memory");
  }

  void check_memory(const Memory& m, size_t index) {
    const int64_t element = ir::dtype_bytes(m.type);
    if (element == 0) return report("memory " + m.name + " has no element type");
    if (m.alignment < element || !std::has_single_bit(static_cast<uint64_t>(m.alignment)))
      report("memory " + m.name + " is aligned to " + std::to_string(m.alignment) +
             " bytes; expected a power of two of at least its element size");
    if (m.in_registers && m.space != Space::local)
      report("memory " + m.name + " is in registers but not local");
    if (m.space == Space::global) {
      const bool bound = m.param >= 0 && static_cast<size_t>(m.param) < p_.params.size() &&
                         p_.params[static_cast<size_t>(m.param)].kind == Param::Kind::tensor &&
                         p_.params[static_cast<size_t>(m.param)].memory == MemoryId(index);
      if (!bound) report("global memory " + m.name + " is no tensor parameter");
      if (m.elements != 0 || m.arena_offset >= 0)
        report("global memory " + m.name + " has a size or a place of its own");
      return;
    }
    if (m.param >= 0) report("memory " + m.name + " is a parameter but not global");
    if (m.elements <= 0) report("memory " + m.name + " has no elements");
    if (m.in_registers == (m.arena_offset >= 0))
      report("memory " + m.name + " must have either registers or a slice of the arena");
    if (m.slots < 1 || m.elements % std::max<int64_t>(m.slots, 1) != 0)
      report("memory " + m.name + " does not split into " + std::to_string(m.slots) + " slots");
    if (m.arena_offset >= 0) check_slice(m, element);
  }

  void check_slice(const Memory& m, int64_t element) {
    if (m.alignment > 0 && m.arena_offset % m.alignment != 0)
      report("memory " + m.name + " lies at " + std::to_string(m.arena_offset) +
             ", which is not aligned to " + std::to_string(m.alignment));
    const auto bytes = checked_mul(m.elements, element);
    const auto end = bytes ? checked_add(m.arena_offset, *bytes) : std::nullopt;
    if (!end || *end > p_.arena_bytes)
      report("memory " + m.name + " ends outside the arena of " + std::to_string(p_.arena_bytes) + " bytes");
  }

  void check_block(const Block& block, int nesting) {
    if (nesting > kMaxNesting && !block.empty())
      return report("statements nest deeper than " + std::to_string(kMaxNesting));
    for (StmtId id : block) {
      if (id.value >= p_.stmts.size()) {
        report("statement id out of range");
        continue;
      }
      const Stmt& stmt = p_.stmts[id.value];
      exprs_.set_origin(stmt.origin);
      if (visited_[id.value]) {
        report("a statement stands in two places");
        continue;
      }
      visited_[id.value] = true;
      std::visit([&](const auto& node) { check(node, nesting); }, stmt.node);
    }
  }

  void check(const Loop& loop, int nesting) {
    exprs_.check(loop.extent, DType::i64, "loop extent");
    if (loop.condition.valid()) {
      exprs_.check(loop.condition, DType::boolean, "loop condition");
      if (loop.form != LoopForm::serial)
        report("the unrolled or vectorized loop over " + var_text(p_, loop.var) + " has a condition");
    }
    if (loop.form != LoopForm::serial) check_constant_extent(loop);
    if (loop.form == LoopForm::vectorized)
      for (StmtId id : loop.body) {
        if (id.value >= p_.stmts.size()) continue;
        const auto* store = std::get_if<Store>(&p_.stmts[id.value].node);
        if (!store)
          report("the vectorized loop over " + var_text(p_, loop.var) + " holds something else than stores");
        else if (store->old.valid() || store->expected.valid())
          report("the vectorized loop over " + var_text(p_, loop.var) + " takes old values");
      }
    const bool defined = define(loop.var, ir::VarKind::loop, "loop variable", loop.form != LoopForm::serial);
    if (defined && p_.vars[loop.var.value].type != DType::i64)
      report("loop variable " + var_text(p_, loop.var) + " is not i64");
    check_block(loop.body, nesting + 1);
    if (defined) exprs_.leave_scope(loop.var);
  }

  void check_constant_extent(const Loop& loop) {
    int64_t extent = 0;
    if (loop.extent.valid() && loop.extent.value < p_.exprs.size() &&
        p_.exprs.is_const_int(loop.extent, &extent)) {
      if (extent < 1)
        report("the loop over " + var_text(p_, loop.var) + " has extent " + std::to_string(extent));
      return;
    }
    report("the extent of the unrolled or vectorized loop over " + var_text(p_, loop.var) +
           " is not a constant");
  }

  void check(const Branch& branch, int nesting) {
    exprs_.check(branch.condition, DType::boolean, "condition");
    check_block(branch.then_body, nesting + 1);
    check_block(branch.else_body, nesting + 1);
  }

  // A memory that is written, at an index.
  bool check_target(MemoryId id, ExprId index, int64_t span, const std::string& what) {
    if (!exprs_.check_memory(id, what)) return false;
    if (p_.memory(id).read_only) report(what + ": " + p_.memory(id).name + " is read-only");
    exprs_.check_index(id, index, span, what);
    return true;
  }

  bool check_source(MemoryId id, ExprId index, int64_t span, const std::string& what) {
    if (!exprs_.check_memory(id, what)) return false;
    exprs_.check_index(id, index, span, what);
    return true;
  }

  void check(const Store& store, int) {
    if (store.predicate.valid()) exprs_.check(store.predicate, DType::boolean, "store predicate");
    if (!check_target(store.memory, store.index, 1, "store")) return;
    exprs_.check(store.value, p_.memory(store.memory).type,
                 "value stored to " + p_.memory(store.memory).name);
    const Memory& m = p_.memory(store.memory);
    const bool shares = m.space == Space::global || m.space == Space::shared;
    if (store.order != ir::AtomicOrder::relaxed && (!store.atomic || !shares))
      report("a store to " + m.name + ", " + space_name(m.space) + " memory, has a memory order");
    if (!store.atomic) return;
    if (m.in_registers || !ir::takes_atomic(*store.atomic, m.type) || store.streaming)
      report("an " + std::string(ir::atomic_text(*store.atomic)) + " of " + m.name + ", " +
             space_name(m.space) + " memory of " + ir::dtype_name(m.type));
    if (store.expected.valid()) exprs_.check(store.expected, m.type, "value expected in " + m.name);
    if (store.expected.valid() != (*store.atomic == ir::AtomicKind::compare_exchange))
      report("an " + std::string(ir::atomic_text(*store.atomic)) + " of " + m.name +
             (store.expected.valid() ? " expects a value" : " expects nothing"));
    if (!store.old.valid() || !check_target(store.old, store.old_index, 1, "old value")) return;
    const Memory& old = p_.memory(store.old);
    if (old.space != Space::shared || old.type != m.type)
      report("the old value of " + m.name + " goes to " + old.name + ", " + space_name(old.space) +
             " memory of " + ir::dtype_name(old.type));
  }

  void check(const LaneReduce& r, int) {
    if (r.width < 1) return report("a reduction over " + std::to_string(r.width) + " lanes");
    const bool target = check_target(r.dst, r.dst_index, 1, "reduction target");
    const bool source = check_source(r.src, r.src_index, r.width, "reduction source");
    if (target && source && p_.memory(r.dst).type != p_.memory(r.src).type)
      report("a reduction from " + p_.memory(r.src).name + " to " + p_.memory(r.dst).name +
             " changes the type");
  }

  void check(const HostMma& m, int) {
    if (m.mr < 1 || m.nr < 1 || m.pack < 1 || m.k < m.step() || m.k % m.pack != 0 || m.k % m.step() != 0)
      return report("an mma of " + std::to_string(m.mr) + "x" + std::to_string(m.nr) + "x" +
                    std::to_string(m.k) + " with pack " + std::to_string(m.pack));
    if (m.a_row < 0 || m.a_k < 0 || m.b_k < 0 || m.c_row < 0) return report("an mma with a negative stride");
    if (m.tile.k != 0 && (m.tile.k < 0 || m.tile.k % m.pack != 0 || m.tile.rows < 1 ||
                          m.mr % m.tile.rows != 0 || m.tile.columns < 1 || m.nr % m.tile.columns != 0))
      return report("an mma by matrix registers of " + std::to_string(m.tile.rows) + "x" +
                    std::to_string(m.tile.columns) + "x" + std::to_string(m.tile.k) +
                    " that do not divide it");
    const int64_t steps = m.k / m.step() - 1, sums = m.k / m.pack - 1;
    const bool a = check_source(m.a, m.a_index, span(m.mr - 1, m.a_row, steps, m.a_k, m.step()), "mma A");
    const bool b = check_source(m.b, m.b_index, span(sums, m.b_k, 0, 0, int64_t{m.nr} * m.pack), "mma B");
    const bool c = check_target(m.c, m.c_index, span(m.mr - 1, m.c_row, 0, 0, m.nr), "mma C");
    if (!a || !b || !c) return;
    const bool floating = ir::is_float(p_.memory(m.c).type);
    if (ir::is_float(p_.memory(m.a).type) != floating || ir::is_float(p_.memory(m.b).type) != floating)
      report("an mma mixes floats and integers");
  }

  // Elements from the first to the last touched; INT64_MAX, which fits no memory, when that overflows.
  static int64_t span(int64_t n, int64_t stride, int64_t n2, int64_t stride2, int64_t run) {
    const auto x = checked_mul(n, stride), y = checked_mul(n2, stride2);
    const auto sum = x && y ? checked_add(*x, *y) : std::nullopt;
    const auto end = sum ? checked_add(*sum, run) : std::nullopt;
    return end ? *end : INT64_MAX;
  }

  void check(const Prefetch& prefetch, int) {
    if (prefetch.locality < 0 || prefetch.locality > 3)
      report("a prefetch with locality " + std::to_string(prefetch.locality));
    if (!exprs_.check_memory(prefetch.memory, "prefetch")) return;
    exprs_.check(prefetch.index, DType::i64, "prefetch index");
    if (p_.memory(prefetch.memory).in_registers)
      report("a prefetch of registers " + p_.memory(prefetch.memory).name);
  }

  void check(const Barrier& barrier, int) {
    // Number 0 is that of all threads, of a machine without barriers too.
    if (barrier.id < 0 || barrier.id >= std::max(p_.machine.named_barriers, 1))
      report("barrier " + std::to_string(barrier.id) + " does not exist");
    if (barrier.threads < 0 || barrier.threads > p_.threads || barrier.threads % p_.machine.warp != 0)
      report("a barrier of " + std::to_string(barrier.threads) + " threads");
  }

  void check(const AsyncCopy& copy, int) {
    if (copy.bytes != 4 && copy.bytes != 8 && copy.bytes != 16)
      return report("an async copy of " + std::to_string(copy.bytes) + " bytes");
    if (copy.predicate.valid()) exprs_.check(copy.predicate, DType::boolean, "async copy predicate");
    if (!exprs_.check_memory(copy.src, "async copy source") ||
        !exprs_.check_memory(copy.dst, "async copy target"))
      return;
    const Memory &src = p_.memory(copy.src), &dst = p_.memory(copy.dst);
    if (src.space != Space::global || dst.space != Space::shared || src.type != dst.type)
      return report("an async copy from " + src.name + " to " + dst.name +
                    "; expected global to shared memory of one type");
    const int64_t element = ir::dtype_bytes(src.type);
    if (element == 0 || copy.bytes % element != 0)
      return report("an async copy of part of an element of " + src.name);
    check_target(copy.dst, copy.dst_index, copy.bytes / element, "async copy target");
    check_source(copy.src, copy.src_index, copy.bytes / element, "async copy source");
  }

  void check(const AsyncCommit&, int) {}
  void check(const AsyncWait& wait, int) {
    if (wait.pending < 0) report("a wait for " + std::to_string(wait.pending) + " pending groups");
  }

  void check_warp_level(const std::string& what) {
    if (p_.threads % p_.machine.warp != 0)
      report(what + " in a block of " + std::to_string(p_.threads) + " threads");
  }

  void check(const Shuffle& shuffle, int) {
    check_warp_level("a shuffle");
    exprs_.check(shuffle.lane, DType::i64, "shuffle lane");
    if (!check_target(shuffle.dst, shuffle.dst_index, 1, "shuffle target")) return;
    const Memory& dst = p_.memory(shuffle.dst);
    if (!dst.in_registers) report("a shuffle into " + dst.name + ", which is not in registers");
    if (ir::dtype_bytes(dst.type) > 4) report("a shuffle of " + std::string(ir::dtype_name(dst.type)));
    exprs_.check(shuffle.value, dst.type, "shuffled value");
  }

  // Rows of a matrix in shared memory and the registers they come from or go to.
  void check_matrix(MemoryId rows, ExprId row, MemoryId registers, ExprId reg, int matrices, bool transpose,
                    bool load) {
    const std::string what = load ? "matrix load" : "matrix store";
    check_warp_level("a " + what);
    if (matrices != 1 && matrices != 2 && matrices != 4)
      return report("a " + what + " of " + std::to_string(matrices));
    if (!exprs_.check_memory(rows, what) || !exprs_.check_memory(registers, what)) return;
    const Memory &shared = p_.memory(rows), &local = p_.memory(registers);
    const bool bytes = ir::dtype_bytes(shared.type) == 1 && ir::dtype_bytes(local.type) == 1;
    if (shared.space != Space::shared || !local.in_registers || (shared.type != local.type && !bytes))
      return report("a " + what + " between " + shared.name + " and " + local.name +
                    "; expected shared memory and registers of one type");
    const int64_t element = ir::dtype_bytes(shared.type);
    if (element < 1 || element > 4 || ((transpose || !load) && element > 2))
      return report("a " + what + " of " + ir::dtype_name(shared.type));
    const int64_t span = matrices * 4 / element, row_elements = 16 / element;
    if (load ? check_target(registers, reg, span, what) : check_source(registers, reg, span, what))
      load ? check_source(rows, row, row_elements, what) : check_target(rows, row, row_elements, what);
  }
  void check(const LoadMatrix& m, int) {
    check_matrix(m.src, m.src_index, m.dst, m.dst_index, m.matrices, m.transpose, true);
  }
  void check(const StoreMatrix& m, int) {
    check_matrix(m.dst, m.dst_index, m.src, m.src_index, m.matrices, m.transpose, false);
  }

  void check(const WarpMma& m, int) {
    check_warp_level("a matrix instruction");
    if (m.a_registers < 1 || m.b_registers < 1 || m.c_registers < 1)
      return report(m.atom + " without registers");
    const bool a = check_source(m.a, m.a_index, m.a_registers, m.atom + " A");
    const bool b = check_source(m.b, m.b_index, m.b_registers, m.atom + " B");
    const bool c = check_target(m.c, m.c_index, m.c_registers, m.atom + " C");
    if (!a || !b || !c) return;
    const auto in_registers = [&](MemoryId id) {
      if (!p_.memory(id).in_registers)
        report(m.atom + " on " + p_.memory(id).name + ", which is not in registers");
    };
    for (MemoryId id : {m.a, m.b, m.c}) in_registers(id);
    if (!m.places.valid() || !check_source(m.places, m.places_index, 1, m.atom + " places")) return;
    in_registers(m.places);
    if (p_.memory(m.places).type != ir::DType::u32)
      report(m.atom + " with places in " + p_.memory(m.places).name + ", expected words of u32");
  }

  void check(const Roles& roles, int nesting) {
    const bool last = !p_.body.empty() && p_.body.back().value < p_.stmts.size() &&
                      std::get_if<Roles>(&p_.stmts[p_.body.back().value].node) == &roles;
    cooperation_.check_roles(roles, last);
    for (const Role& role : roles.roles) {
      cooperation_.enter(role);
      check_block(role.body, nesting + 1);
    }
    cooperation_.leave();
  }
  void check(const OneThread& one, int nesting) {
    cooperation_.check(one);
    check_block(one.body, nesting + 1);
  }
  void check(const auto& statement, int) { cooperation_.check(statement); }

  const ThreadProgram& p_;
  std::vector<std::string> problems_;
  ExprVerifier exprs_;
  CooperationVerifier cooperation_;
  std::vector<bool> visited_;
};

}  // namespace

std::vector<std::string> verify_thread_program(const ThreadProgram& p) { return Verifier(p).run(); }

}  // namespace tilegen::thread
