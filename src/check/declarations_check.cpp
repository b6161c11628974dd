// Counts, depths, and everything declared before the first statement: dims, scalars, buffers, grids.
#include <algorithm>

#include "check/context.h"
#include "check/expr_walk.h"
#include "support/checked.h"
#include "support/diag_codes.h"
#include "target/given_atoms.h"

namespace tilegen::check {

using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using ir::VarKind;

namespace {

std::string above_limit(const char* what, int64_t got, int64_t limit) {
  return std::string(what) + ": " + std::to_string(got) + ", the limit is " + std::to_string(limit);
}

// Without recursion: this is the check that makes recursion safe.
int64_t deepest_nesting(const ir::Program& p, const ir::Kernel& kernel) {
  std::vector<std::pair<ir::StmtId, int64_t>> pending;
  for (ir::StmtId id : kernel.body) pending.emplace_back(id, 0);
  int64_t deepest = 0;
  while (!pending.empty()) {
    const auto [id, depth] = pending.back();
    pending.pop_back();
    deepest = std::max(deepest, depth);
    const auto push = [&, depth = depth](const ir::Block& body) {
      for (ir::StmtId inner : body) pending.emplace_back(inner, depth + 1);
    };
    if (const auto* loop = p.as<ir::Loop>(id)) push(loop->body);
    if (const auto* branch = p.as<ir::Branch>(id)) {
      push(branch->then_body);
      push(branch->else_body);
    }
  }
  return deepest;
}

}  // namespace

void check_sizes(CheckContext& ctx) {
  const ir::Program& p = ctx.program;
  const Limits& limits = ctx.limits;
  const auto count = [&](const char* what, size_t got, int64_t limit) {
    if (static_cast<int64_t>(got) > limit)
      ctx.error(DiagCode::limit_nodes, p.name, {}, above_limit(what, static_cast<int64_t>(got), limit),
                "split the program");
  };
  count("expressions", p.exprs.size(), limits.expr_nodes);
  count("statements", p.stmts.size(), limits.statements);
  count("buffers", p.buffers.size(), limits.buffers);
  int64_t depth = 0;
  for (size_t i = 0; i < p.exprs.size(); ++i) depth = std::max<int64_t>(depth, p.exprs[ExprId(i)].depth);
  if (depth > limits.expr_depth)
    ctx.error(DiagCode::limit_nesting, p.name, {},
              above_limit("operators nested in one expression", depth, limits.expr_depth),
              "store a part of the expression in a local buffer");
  for (const ir::Kernel& kernel : p.kernels) {
    const int64_t nesting = deepest_nesting(p, kernel);
    if (nesting > limits.nesting)
      ctx.error(DiagCode::limit_nesting, kernel.name, kernel.location,
                above_limit("loops and ifs around one statement", nesting, limits.nesting),
                "nest less deeply");
  }
}

namespace {

class DeclarationCheck {
 public:
  explicit DeclarationCheck(CheckContext& ctx) : ctx_(ctx), p_(ctx.program), walk_(ctx.program) {}

  void run() {
    for (const ir::Var& v : p_.vars)
      if (v.kind == VarKind::dim) check_dim(v);
    for (size_t b = 0; b < p_.buffers.size(); ++b) check_buffer(ir::BufferId(b));
    for (const ir::Kernel& k : p_.kernels) check_kernel(k);
  }

 private:
  void check_dim(const ir::Var& v);
  void check_buffer(ir::BufferId id);
  void check_tensor(const ir::Buffer& b);
  void check_tile(const ir::Buffer& b, const std::string& path);
  void check_kernel(const ir::Kernel& k);
  bool check_launch_value(ExprId e, const std::string& what, const std::string& path,
                          const SourceLocation& loc, bool of_tensor);

  CheckContext& ctx_;
  const ir::Program& p_;
  ExprWalk walk_;
};

void DeclarationCheck::check_dim(const ir::Var& v) {
  const auto error = [&](std::string message, std::string hint) {
    ctx_.error(DiagCode::bad_shape, v.name, v.location, std::move(message), std::move(hint));
  };
  if (v.type != ir::DType::i64) error("dim " + v.name + " is " + ir::dtype_name(v.type), "a dim is i64");
  if (v.divisor < 1) {
    error("dim " + v.name + ": divisor " + std::to_string(v.divisor) + " is not positive",
          "a divisor is at least 1");
    return;
  }
  if (v.lower < 0) {
    error("dim " + v.name + ": lower bound " + std::to_string(v.lower) + " is negative",
          "an extent is at least 0");
    return;
  }
  const int64_t rest = v.lower % v.divisor;
  const auto first = rest == 0 ? std::optional(v.lower) : checked_add(v.lower, v.divisor - rest);
  if (!first || v.upper < *first)
    error("dim " + v.name + ": no value is >= " + std::to_string(v.lower) +
              ", <= " + std::to_string(v.upper) + " and divisible by " + std::to_string(v.divisor),
          "loosen one of the facts");
}

// An expression whose value is known at launch: dims, scalars and constants.
bool DeclarationCheck::check_launch_value(ExprId e, const std::string& what, const std::string& path,
                                          const SourceLocation& loc, bool of_tensor) {
  if (!e.valid() || p_.exprs.type(e) != ir::DType::i64) {
    ctx_.error(DiagCode::dtype_mismatch, path, loc,
               what + " is " + (e.valid() ? ir::dtype_name(p_.exprs.type(e)) : "missing") + ", expected i64",
               "cast it to i64");
    return false;
  }
  bool ok = true;
  walk_.start();
  walk_.visit(e, [&](ExprId, const ExprNode& n) {
    if (!ok) return;
    std::string culprit;
    if (n.op == ExprOp::load) culprit = "reads " + p_.buffer(n.object).name;
    if (n.op == ExprOp::var) {
      const ir::Var& v = p_.var(n.var());
      if (v.kind != VarKind::dim && v.kind != VarKind::scalar) culprit = "uses " + v.name;
      // What tensors an argument passes is known when their shapes have been compared.
      if (of_tensor && std::any_of(p_.params.begin(), p_.params.end(), [&](const ir::Param& param) {
            return p_.is_presence(param) && param.var == n.var();
          }))
        culprit = "uses " + v.name;
    }
    if (n.op == ExprOp::native_call) culprit = "calls a function that has native text";
    if (culprit.empty()) return;
    ok = false;
    ctx_.error(DiagCode::out_of_scope, path, loc, what + " " + culprit + ", which is not known at launch",
               "use dims, scalars and constants only");
  });
  return ok;
}

void DeclarationCheck::check_buffer(ir::BufferId id) {
  const ir::Buffer& b = p_.buffer(id);
  const bool is_global = b.scope == ir::MemScope::global;
  if (!is_global && (b.kernel < 0 || b.kernel >= static_cast<int>(p_.kernels.size()))) {
    ctx_.error(DiagCode::out_of_scope, b.name, b.location,
               std::string(ir::scope_name(b.scope)) + " buffer " + b.name + " belongs to no kernel",
               "allocate it inside a kernel");
    return;
  }
  const std::string path = is_global ? b.name : ir::buffer_path(p_, id);
  const int64_t rank = static_cast<int64_t>(b.shape.size());
  if (rank < 1 || rank > ctx_.limits.rank) {
    ctx_.error(DiagCode::bad_shape, path, b.location,
               b.name + " has " + std::to_string(rank) + " dimensions, expected 1 to " +
                   std::to_string(ctx_.limits.rank),
               "merge or drop dimensions");
    return;
  }
  if (b.type == ir::DType::none)
    ctx_.error(DiagCode::dtype_mismatch, path, b.location, b.name + " has no element type",
               "give it a dtype");
  is_global ? check_tensor(b) : check_tile(b, path);
}

void DeclarationCheck::check_tensor(const ir::Buffer& b) {
  if (!b.strides.empty() && b.strides.size() != b.shape.size())
    ctx_.error(DiagCode::rank_mismatch, b.name, b.location,
               b.name + " has " + std::to_string(b.shape.size()) + " dimensions and " +
                   std::to_string(b.strides.size()) + " strides",
               "give one stride per dimension, or none for a compact tensor");
  if (b.workspace && (b.read_only || !b.strides.empty()))
    ctx_.error(
        DiagCode::scope_not_allowed, b.name, b.location,
        "workspace " + b.name + (b.read_only ? " is read-only: nobody could write it" : " has strides"),
        b.read_only ? "let the program write it, or have it passed as a tensor"
                    : "a workspace is compact: make the shape larger");
  if (b.workspace && b.optional)
    ctx_.error(DiagCode::scope_not_allowed, b.name, b.location,
               "workspace " + b.name + " is optional: no argument gives it, so none leaves it out",
               "leave one of the two marks out");
  for (ExprId e : b.strides) check_launch_value(e, "a stride of " + b.name, b.name, b.location, true);
  int64_t bytes = ir::dtype_bytes(b.type);
  for (size_t d = 0; d < b.shape.size(); ++d) {
    int64_t extent = 0;
    if (!check_launch_value(b.shape[d], "extent " + std::to_string(d) + " of " + b.name, b.name, b.location,
                            true))
      return;
    if (!p_.exprs.is_const_int(b.shape[d], &extent)) continue;
    if (extent < 0) {
      ctx_.error(DiagCode::bad_shape, b.name, b.location,
                 "extent " + std::to_string(d) + " of " + b.name + " is " + std::to_string(extent),
                 "extents are at least 0");
      return;
    }
    const auto product = checked_mul(bytes, std::max<int64_t>(extent, 1));
    if (!product) {
      ctx_.error(DiagCode::overflow, b.name, b.location, "the size of " + b.name + " does not fit 64 bits",
                 "make the tensor smaller");
      return;
    }
    bytes = *product;
  }
}

void DeclarationCheck::check_tile(const ir::Buffer& b, const std::string& path) {
  const auto error = [&](DiagCode code, std::string message, std::string hint) {
    ctx_.error(code, path, b.location, std::move(message), std::move(hint));
  };
  if (b.read_only || b.workspace || b.optional || !b.strides.empty())
    error(DiagCode::scope_not_allowed,
          b.name + " is on-chip and has " +
              (b.read_only   ? "a readonly mark"
               : b.workspace ? "a workspace mark"
               : b.optional  ? "an optional mark"
                             : "strides"),
          "only global tensors have those");
  int64_t elements = 1;
  for (size_t d = 0; d < b.shape.size(); ++d) {
    int64_t extent = 0;
    const std::string name = "extent " + std::to_string(d) + " of " + b.name;
    if (!p_.exprs.is_const_int(b.shape[d], &extent)) {
      error(DiagCode::bad_shape, name + " is not a constant", "on-chip buffers have constant extents");
      return;
    }
    if (extent < 1) {
      error(DiagCode::bad_shape, name + " is " + std::to_string(extent), "on-chip extents are at least 1");
      return;
    }
    const auto product = checked_mul(elements, extent);
    if (!product) {
      error(DiagCode::overflow, "the number of elements of " + b.name + " does not fit 64 bits",
            "make the tile smaller");
      return;
    }
    elements = *product;
  }
  if (elements > ctx_.limits.tile_elements)
    error(DiagCode::bad_shape,
          above_limit((b.name + " is too large; elements").c_str(), elements, ctx_.limits.tile_elements),
          "make the tile smaller");
}

void DeclarationCheck::check_kernel(const ir::Kernel& k) {
  const auto error = [&](std::string message, std::string hint) {
    ctx_.error(DiagCode::bad_shape, k.name, k.location, std::move(message), std::move(hint));
  };
  if (k.grid.empty() || k.grid.size() > 3 || k.block_vars.size() != k.grid.size())
    error("the grid has " + std::to_string(k.grid.size()) + " extents and " +
              std::to_string(k.block_vars.size()) + " variables, expected 1 to 3 of each",
          "merge grid dimensions and split the index with // and %");
  for (size_t d = 0; d < k.grid.size(); ++d) {
    const std::string what = "grid extent " + std::to_string(d);
    int64_t extent = 0;
    if (check_launch_value(k.grid[d], what, k.name, k.location, false) &&
        p_.exprs.is_const_int(k.grid[d], &extent) && extent < 0)
      error(what + " is " + std::to_string(extent), "grid extents are at least 0");
  }
  if (k.threads < 0) error("threads is " + std::to_string(k.threads), "0 lets the planner choose");
}

}  // namespace

void check_declarations(CheckContext& ctx) {
  for (const auto& f : ctx.program.natives) {
    if (!f->atom) continue;
    if (const auto row = target::given_atom(f); !row)
      for (const Diagnostic& d : row.error().diagnostics) ctx.out.push_back(d);
  }
  DeclarationCheck(ctx).run();
}

}  // namespace tilegen::check
