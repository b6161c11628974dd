#include "ir/program.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <set>

#include "ir/expr_nodes.h"
#include "ir/statement_paths.h"

namespace tilegen::ir {
namespace {

class PathWriter {
 public:
  // `first`: the statement whose path comes first in `paths`.
  PathWriter(const Program& p, size_t first, std::vector<std::string>& paths, bool labels = true)
      : p_(p), first_(first), paths_(paths), labels_(labels) {}

  void write_kernel(const Kernel& kernel) {
    std::map<std::string, int> used;
    kernel_ = &kernel.name;
    for_each_statement(p_, kernel.body, [&](StmtId id, int) {
      if (labels_ && !p_.stmt(id).label.empty()) used[p_.stmt(id).label] = 1;
    });
    write_block(kernel.body, kernel.name, std::move(used));
  }

 private:
  // Loops and ops share one counter per name, so that a loop variable called "copy" cannot take an op's path.
  // Recursion is bounded by Limits::nesting. `used`: labels are names of the kernel's own block.
  void write_block(const Block& block, const std::string& prefix, std::map<std::string, int> used = {}) {
    for (StmtId id : block) {
      const bool is_loop = p_.as<Loop>(id) != nullptr;
      const std::string name = base_name(id);
      const std::string& label = p_.stmt(id).label;
      const int ordinal = used[name]++;
      std::string path;
      path.reserve(prefix.size() + name.size() + 16);
      path.append(prefix).append("/").append(name);
      if (!is_loop || ordinal > 0) path.append("#").append(std::to_string(ordinal));
      if (labels_ && !label.empty()) path = *kernel_ + "/" + label;
      if (const auto* loop = p_.as<Loop>(id)) write_block(loop->body, path);
      if (const auto* branch = p_.as<Branch>(id)) {
        write_block(branch->then_body, path);
        write_block(branch->else_body, path + ".else");
      }
      paths_[id.value - first_] = std::move(path);
    }
  }

  std::string base_name(StmtId id) const {
    if (const auto* loop = p_.as<Loop>(id)) {
      std::string name;
      for (VarId v : loop->vars) name += (name.empty() ? "" : ".") + p_.var(v).name;
      return name;
    }
    if (const auto* op = p_.as<TileOp>(id)) return std::string(op_row(op->kind).text);
    return p_.as<Branch>(id) != nullptr ? "if" : "store";
  }

  const Program& p_;
  const size_t first_;
  std::vector<std::string>& paths_;
  const bool labels_;
  const std::string* kernel_ = nullptr;
};

}  // namespace

std::vector<int64_t> greatest_values(const Program& p) {
  std::vector<ExprId> todo;
  for (const Buffer& b : p.buffers) {
    if (b.scope != MemScope::global) continue;
    todo.insert(todo.end(), b.shape.begin(), b.shape.end());
    todo.insert(todo.end(), b.strides.begin(), b.strides.end());
  }
  std::vector<int64_t> greatest;
  for (const Var& v : p.vars) greatest.push_back(v.upper);
  ExprNodes nodes(p.exprs, std::move(todo));
  while (const ExprId id = nodes.next()) {
    const ExprNode& n = p.exprs[id];
    if (n.op == ExprOp::var && p.var(n.var()).kind == VarKind::dim)
      greatest[n.var().value] = std::min(greatest[n.var().value], kMaxExtent);
  }
  return greatest;
}

const char* scope_name(MemScope s) {
  switch (s) {
    case MemScope::global:
      return "global";
    case MemScope::shared:
      return "shared";
    case MemScope::fragment:
      return "fragment";
    case MemScope::local:
      return "local";
  }
  return "unknown";
}

const char* loop_kind_name(LoopKind k) {
  switch (k) {
    case LoopKind::serial:
      return "serial";
    case LoopKind::unroll:
      return "unroll";
    case LoopKind::vectorized:
      return "vectorized";
    case LoopKind::parallel:
      return "parallel";
    case LoopKind::pipelined:
      return "pipelined";
  }
  return "unknown";
}

VarId Program::presence(BufferId id) const {
  for (const Param& p : params)
    if (is_presence(p) && p.buffer == id) return p.var;
  return {};
}

void add_presence(Program& p, BufferId tensor) {
  const Buffer& b = p.buffer(tensor);
  Var v;
  v.name = "present(" + b.name + ")";
  v.kind = VarKind::scalar;
  v.type = DType::boolean;
  v.upper = 1;
  v.location = b.location;
  p.vars.push_back(std::move(v));
  p.params.push_back({Param::Kind::scalar, VarId(p.vars.size() - 1), tensor});
}

std::vector<int64_t> Program::tile_shape(BufferId id) const {
  std::vector<int64_t> shape;
  for (ExprId extent : buffer(id).shape) {
    int64_t value = 0;
    [[maybe_unused]] const bool constant = exprs.is_const_int(extent, &value);
    assert(constant && "an on-chip buffer has constant extents");
    shape.push_back(value);
  }
  return shape;
}

std::vector<std::string> statement_paths(const Program& p) {
  if (p.written) return p.written->paths;
  std::vector<std::string> paths(p.stmts.size());
  PathWriter writer(p, 0, paths);
  for (const Kernel& kernel : p.kernels) writer.write_kernel(kernel);
  return paths;
}

std::vector<std::string> paths_without_labels(const Program& p) {
  std::vector<std::string> paths(p.stmts.size());
  PathWriter writer(p, 0, paths, false);
  for (const Kernel& kernel : p.kernels) writer.write_kernel(kernel);
  return paths;
}

KernelPaths::KernelPaths(const Program& p, int kernel) {
  const Kernel& k = p.kernels[static_cast<size_t>(kernel)];
  size_t first = SIZE_MAX, end = 0;
  for_each_statement(p, k.body, [&](StmtId id, int) {
    first = std::min<size_t>(first, id.value);
    end = std::max<size_t>(end, id.value + size_t{1});
  });
  if (end == 0) return;
  first_ = first;
  if (p.written) {
    paths_.assign(p.written->paths.begin() + static_cast<long>(first),
                  p.written->paths.begin() + static_cast<long>(end));
    return;
  }
  paths_.resize(end - first);
  PathWriter(p, first, paths_).write_kernel(k);
}

std::string buffer_path(const Program& p, BufferId id) {
  const Buffer& buffer = p.buffer(id);
  if (buffer.kernel < 0) return buffer.name;
  return p.kernels[static_cast<size_t>(buffer.kernel)].name + ":" + buffer.name;
}

ExprOp atomic_operation(AtomicKind kind) {
  switch (kind) {
    case AtomicKind::add:
      return ExprOp::add;
    case AtomicKind::min:
      return ExprOp::min;
    case AtomicKind::max:
      return ExprOp::max;
    case AtomicKind::bit_and:
      return ExprOp::bit_and;
    case AtomicKind::bit_or:
      return ExprOp::bit_or;
    case AtomicKind::bit_xor:
    case AtomicKind::exchange:
    case AtomicKind::compare_exchange:
    case AtomicKind::append:
      break;
  }
  return ExprOp::bit_xor;
}

ScalarValue eval_atomic(AtomicKind kind, ScalarValue old, ScalarValue value, ScalarValue expected) {
  if (kind == AtomicKind::compare_exchange) return old.i == expected.i ? value : old;
  return kind == AtomicKind::exchange ? value : eval_binary(atomic_operation(kind), value.type, old, value);
}

bool takes_atomic(AtomicKind kind, DType type) {
  if (is_bool(type) || dtype_bits(type) < (is_integer(type) ? 8 : 16)) return false;
  return kind < AtomicKind::bit_and || kind == AtomicKind::exchange || kind == AtomicKind::append ||
         is_integer(type);
}

}  // namespace tilegen::ir
