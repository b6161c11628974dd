// Nothing here recurses: open blocks stand on a stack. A scope is a block of C, so that variables of loops
// beside each other may have one name.
#include "emit/c_kernels.h"

#include <algorithm>

#include "ir/annotations.h"
#include "ir/op_kinds.h"
#include "ir/print.h"
#include "support/checked.h"

namespace tilegen::emit {

using ir::AnnotationPlace;
using ir::Block;
using ir::BufferId;
using ir::ExprId;
using ir::StmtId;
using ir::VarId;

std::string flags(const std::vector<std::pair<bool, const char*>>& all) {
  std::vector<std::string> set;
  for (const auto& [is_set, name] : all)
    if (is_set) set.emplace_back(name);
  return set.empty() ? "0" : joined(set, " | ");
}

void CKernels::call(const std::string& function, const std::vector<std::string>& arguments) {
  source_.line(function + (arguments.empty() ? "(t" : "(t, ") + joined(arguments) + ");");
}

std::vector<std::string> CKernels::written_names(const std::vector<VarId>& vars) const {
  std::vector<std::string> names;
  for (VarId v : vars) names.push_back(names_.written().vars[v.value]);
  return names;
}

void CKernels::write(size_t k) {
  const ir::Kernel& kernel = p_.kernels[k];
  source_.blank();
  source_.open("kernel " + names_.written().kernels[k]);
  exprs_.begin_scope();
  const std::string number = std::to_string(scopes_++), scope = "scope" + number, blocks = "blocks" + number;
  const std::string grid = exprs_.list(kernel.grid), rank = std::to_string(kernel.grid.size());
  source_.line("tl_expr " + blocks + "[" + rank + "];");
  call("const tl_scope " + scope + " = tl_begin_kernel",
       {quoted(names_.written().kernels[k]), rank, grid, std::to_string(kernel.threads),
        exprs_.strings(written_names(kernel.block_vars)), blocks});
  open(kernel.body, scope);
  open_vars(kernel.block_vars, blocks);
  if (!kernel.annotations.empty())
    call("tl_annotate_kernel", {quoted(print_annotations(kernel.annotations, AnnotationPlace::kernel))});
  std::vector<std::pair<BufferId, size_t>> tiles;
  for (size_t b = 0; b < p_.buffers.size(); ++b)
    if (p_.buffers[b].kernel == static_cast<int>(k)) {
      tiles.emplace_back(BufferId(b), source_.reserve());
      if (const auto& list = p_.buffers[b].annotations; !list.empty())
        call("tl_annotate_tile",
             {names_.use(BufferId(b)), quoted(print_annotations(list, AnnotationPlace::tile))});
    }
  while (!open_.empty()) {
    OpenBlock& top = open_.back();
    if (top.next < top.block->size()) {
      statement((*top.block)[top.next++]);
    } else if (top.else_body) {
      call("tl_begin_else", {top.scope});
      top.block = std::exchange(top.else_body, nullptr);
      top.next = 0;
    } else {
      close();
    }
  }
  for (const auto& [id, place] : tiles) {
    const ir::Buffer& b = p_.buffer(id);
    const std::string made =
        "tl_alloc(t, " +
        joined({quoted(names_.written().buffers[id.value]), "TL_SCOPE_" + upper(ir::scope_name(b.scope)),
                dtype_constant(b.type), std::to_string(b.shape.size()), exprs_.numbers(p_.tile_shape(id))}) +
        ");";
    source_.fill(place,
                 names_.is_used(id) ? "const tl_buffer " + names_.identifier(id) + " = " + made : made);
  }
}

void CKernels::open(const Block& body, std::string scope, const Block* else_body) {
  open_.push_back({&body, 0, else_body, std::move(scope), 0, {}, {}});
}

void CKernels::open_vars(const std::vector<VarId>& vars, const std::string& array) {
  open_.back().declaration = source_.reserve();
  open_.back().vars = vars;
  open_.back().array = array;
}

void CKernels::close() {
  const OpenBlock done = std::move(open_.back());
  open_.pop_back();
  call("tl_end", {done.scope});
  std::vector<std::string> used;
  for (size_t i = 0; i < done.vars.size(); ++i)
    if (names_.is_used(done.vars[i]))
      used.push_back(names_.identifier(done.vars[i]) + " = " + done.array + "[" + std::to_string(i) + "]");
  if (!used.empty()) source_.fill(done.declaration, "const tl_expr " + joined(used) + ";");
  exprs_.end_scope();
  source_.close();
}

void CKernels::marks(StmtId id) {
  const ir::Stmt& s = p_.stmt(id);
  if (!s.label.empty()) call("tl_label", {quoted(s.label)});
  if (!s.annotations.empty())
    call("tl_annotate", {quoted(print_annotations(s.annotations, *annotation_place(p_, id)))});
}

void CKernels::statement(StmtId id) {
  if (const auto asserted = assertion_at(p_, id)) return assertion(*asserted);
  if (const auto* of = p_.as<ir::Loop>(id))
    return of->kind == ir::LoopKind::parallel ? parallel(*of, id) : loop(*of, id);
  if (const auto* of = p_.as<ir::Branch>(id)) return branch(*of, id);
  if (printed_at(p_, id) >= 0) return print(id);
  if (const auto* of = p_.as<ir::Store>(id)) {
    marks(id);
    return store(*of);
  }
  marks(id);
  tile_op(*p_.as<ir::TileOp>(id));
}

void CKernels::parallel(const ir::Loop& of, StmtId id) {
  const std::string number = std::to_string(scopes_++), scope = "scope" + number, at = "at" + number;
  std::vector<int64_t> extents(of.extents.size());
  for (size_t d = 0; d < extents.size(); ++d) p_.exprs.is_const_int(of.extents[d], &extents[d]);
  const std::string rank = std::to_string(extents.size());
  source_.open();
  exprs_.begin_scope();
  marks(id);
  source_.line("tl_expr " + at + "[" + rank + "];");
  call("const tl_scope " + scope + " = tl_begin_parallel",
       {rank, exprs_.numbers(extents), exprs_.strings(written_names(of.vars)), at});
  open(of.body, scope);
  open_vars(of.vars, at);
}

// By its end where that is what the canonical text has, else by the number of iterations.
void CKernels::loop(const ir::Loop& of, StmtId id) {
  const std::string scope = "scope" + std::to_string(scopes_++);
  source_.open();
  exprs_.begin_scope();
  marks(id);
  const std::string var = names_.use(of.vars[0]), written = quoted(names_.written().vars[of.vars[0].value]);
  const std::string kind = "TL_LOOP_" + upper(ir::loop_kind_name(of.kind));
  const std::string begin = exprs_.value(of.begin), stages = std::to_string(of.num_stages);
  const ExprId extent = of.extents[0];
  int64_t first = 0, count = 0;
  const bool from_constant = p_.exprs.is_const_int(of.begin, &first);
  std::optional<int64_t> last;
  if (from_constant && p_.exprs.is_const_int(extent, &count)) last = checked_add(first, count);
  const ir::ExprNode& n = p_.exprs[extent];
  const bool difference = n.op == ir::ExprOp::sub && n.b == of.begin;
  std::string end;
  if (of.condition.valid())
    end.clear();
  else if (last)
    end = source_.macro("INDEX", "(value)", "tl_index(t, value)") + "(" + number(*last) + ")";
  else if (from_constant && first == 0)
    end = exprs_.value(extent);
  else if (difference)
    end = exprs_.value(n.a);
  const bool counted = end.empty();
  std::vector<std::string> arguments{kind, begin, counted ? exprs_.value(extent) : end};
  if (counted) arguments.push_back(of.condition.valid() ? exprs_.value(of.condition) : "(tl_expr){0}");
  arguments.insert(arguments.end(), {stages, written, "&" + var});
  source_.line("tl_expr " + var + ";");
  call("const tl_scope " + scope + (counted ? " = tl_begin_counted_loop" : " = tl_begin_loop"), arguments);
  open(of.body, scope);
}

void CKernels::branch(const ir::Branch& of, StmtId id) {
  const std::string scope = "scope" + std::to_string(scopes_++);
  source_.open();
  exprs_.begin_scope();
  marks(id);
  call("const tl_scope " + scope + " = tl_begin_if", {exprs_.value(of.condition)});
  open(of.then_body, scope, of.else_body.empty() ? nullptr : &of.else_body);
}

void CKernels::assertion(const ir::AssertionText& of) {
  const ir::ExprNode& failing = p_.exprs[of.failing];
  std::string holds;
  if (failing.op == ir::ExprOp::logical_not)
    holds = exprs_.value(failing.a);
  else
    holds = source_.macro("NOT", "(a)", "tl_unary(t, TL_NOT, a)") + "(" + exprs_.value(of.failing) + ")";
  call("tl_assert", {holds, quoted(p_.messages[of.index])});
}

// The values of one statement are stores, one after the other.
void CKernels::print(StmtId id) {
  const auto printed = [&](StmtId s) -> const ir::Program::Printed& {
    return p_.prints[static_cast<size_t>(printed_at(p_, s))];
  };
  std::vector<std::string> values;
  const std::string text = quoted(printed(id).text);
  const auto add = [&](StmtId s) {
    const ir::DType type = printed(s).type;
    if (type == ir::DType::none) return;
    bool converts = false;
    const ExprId value = printed_value(p_, *p_.as<ir::Store>(s), type, converts);
    values.push_back(exprs_.value(value));
    if (converts)
      values.back() = source_.macro("CAST", "(dtype, a)", "tl_cast(t, dtype, a)") + "(" +
                      dtype_constant(type) + ", " + values.back() + ")";
  };
  add(id);
  OpenBlock& top = open_.back();
  while (top.next < top.block->size()) {
    const StmtId s = (*top.block)[top.next];
    if (printed_at(p_, s) < 0 || printed(s).position == 0) break;
    add(s);
    ++top.next;
  }
  const std::string given =
      values.empty()
          ? "NULL"
          : source_.macro("EXPRS", "(...)", "(const tl_expr[]){__VA_ARGS__}") + "(" + joined(values) + ")";
  call("tl_print", {text, std::to_string(values.size()), given});
}

// "x, 2, EXPRS(i, j)"
std::string CKernels::element(BufferId buffer, const std::vector<ExprId>& indices) {
  const std::string at = exprs_.list(indices);
  return joined({names_.use(buffer), std::to_string(indices.size()), at});
}

void CKernels::store(const ir::Store& of) {
  const std::string to = element(of.buffer, of.indices), value = exprs_.value(of.value);
  if (!of.atomic) return call("tl_store", {to, value});
  if (of.order != ir::AtomicOrder::relaxed)
    call("tl_atomic_order", {"TL_ORDER_" + upper(ir::order_text(of.order))});
  const bool compares = *of.atomic == ir::AtomicKind::compare_exchange;
  const std::string kind = compares ? "" : "TL_" + upper(atomic_text(*of.atomic));
  const std::string expected = compares ? exprs_.value(of.expected) : "";
  std::vector<std::string> arguments{to};
  if (compares) arguments.push_back(expected);
  arguments.push_back(value);
  if (!compares) arguments.push_back(kind);
  if (of.old) {
    arguments.push_back(element(of.old->buffer, of.old->indices));
    return call(compares ? "tl_compare_exchange_to" : "tl_fetch_atomic_to", arguments);
  }
  if (!compares) return call("tl_store_atomic", arguments);
  arguments.push_back(quoted(names_.unwritten("old")));  // a name that the call declares
  call("tl_compare_exchange", arguments);
}

void CKernels::tile_op(const ir::TileOp& op) {
  const ir::OpRow& row = op_row(op.kind);
  std::vector<std::string> arguments;
  const bool moves = op.kind == ir::OpKind::copy || op.kind == ir::OpKind::atomic;
  for (size_t i = 0; i < op.operands.size(); ++i)
    arguments.push_back(moves ? exprs_.region_beside(op.operands[i], op.operands[1 - i])
                              : exprs_.region(op.operands[i]));
  const auto word = [&](const char* prefix, int slot) {
    return prefix +
           upper(attr_value_name(row.attrs[static_cast<size_t>(slot)], op.attrs[static_cast<size_t>(slot)]));
  };
  const auto digits = [&](int slot) { return std::to_string(op.attrs[static_cast<size_t>(slot)]); };
  switch (op.kind) {
    case ir::OpKind::copy:
    case ir::OpKind::commit_group:
      break;
    case ir::OpKind::wait_group: {
      int64_t pending = 0;
      p_.exprs.is_const_int(op.value, &pending);
      arguments.push_back(std::to_string(pending));
      break;
    }
    case ir::OpKind::mbarrier_arrive:
    case ir::OpKind::mbarrier_wait:
    case ir::OpKind::barrier_arrive:
    case ir::OpKind::barrier_sync: {
      using namespace ir::mbarrier_wait_attr;
      if (op.value.valid()) arguments.push_back(exprs_.value(op.value));
      arguments.push_back(digits(first));
      arguments.push_back(digits(threads));
      if (op.kind == ir::OpKind::mbarrier_arrive)
        arguments.push_back(flags({{op.flag(ir::mbarrier_arrive_attr::copies), "TL_ARRIVE_COPIES"},
                                   {op.flag(ir::mbarrier_arrive_attr::elected), "TL_ARRIVE_ELECTED"}}));
      break;
    }
    case ir::OpKind::fill:
      arguments.push_back(exprs_.value(op.value));
      break;
    case ir::OpKind::gemm: {
      using namespace ir::gemm_attr;
      arguments.push_back(flags({{op.flag(transpose_a), "TL_GEMM_TRANSPOSE_A"},
                                 {op.flag(transpose_b), "TL_GEMM_TRANSPOSE_B"},
                                 {op.flag(clear), "TL_GEMM_CLEAR"},
                                 {op.flag(tf32), "TL_GEMM_TF32"},
                                 {op.flag(promote), "TL_GEMM_PROMOTE"}}));
      arguments.push_back(op.attrs[policy] == 0 ? "TL_POLICY_DEFAULT" : word("TL_POLICY_", policy));
      break;
    }
    case ir::OpKind::gemm_sparse: {
      using namespace ir::gemm_sparse_attr;
      std::rotate(arguments.begin() + 1, arguments.begin() + 3, arguments.end());  // a, meta, b, c
      arguments.push_back(flags({{op.flag(transpose_a), "TL_GEMM_TRANSPOSE_A"},
                                 {op.flag(transpose_b), "TL_GEMM_TRANSPOSE_B"},
                                 {op.flag(clear), "TL_GEMM_CLEAR"}}));
      arguments.push_back(op.attrs[policy] == 0 ? "TL_POLICY_DEFAULT" : word("TL_POLICY_", policy));
      break;
    }
    case ir::OpKind::reduce: {
      using namespace ir::reduce_attr;
      arguments.push_back(word("TL_REDUCE_", kind));
      arguments.push_back(digits(axis));
      arguments.push_back(flags({{op.flag(accumulate), "TL_REDUCE_ACCUMULATE"}}));
      break;
    }
    case ir::OpKind::atomic:
      arguments.push_back(word("TL_ATOMIC_", ir::atomic_attr::kind));
      break;
    case ir::OpKind::cumsum: {
      using namespace ir::cumsum_attr;
      arguments.push_back(digits(axis));
      arguments.push_back(flags({{op.flag(reverse), "TL_CUMSUM_REVERSE"}}));
      break;
    }
    case ir::OpKind::scan: {
      using namespace ir::scan_attr;
      arguments.push_back(word("TL_REDUCE_", kind));
      arguments.push_back(digits(axis));
      arguments.push_back(
          flags({{op.flag(reverse), "TL_SCAN_REVERSE"}, {op.flag(exclusive), "TL_SCAN_EXCLUSIVE"}}));
      break;
    }
  }
  call("tl_" + std::string(row.text), arguments);
}

}  // namespace tilegen::emit
