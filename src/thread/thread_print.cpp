#include "thread/thread_expr_text.h"
#include "thread/thread_program.h"

namespace tilegen::thread {
namespace {

constexpr int kMaxNesting = 256;

const char* form_name(LoopForm f) {
  switch (f) {
    case LoopForm::serial:
      return "serial";
    case LoopForm::unrolled:
      return "unrolled";
    case LoopForm::vectorized:
      return "vectorized";
  }
  return "unknown";
}

const char* combine_name(Combine c) {
  switch (c) {
    case Combine::sum:
      return "sum";
    case Combine::max:
      return "max";
    case Combine::min:
      return "min";
  }
  return "unknown";
}

class Printer {
 public:
  explicit Printer(const ThreadProgram& p) : p_(p) {}

  std::string print() {
    out_ += "thread_program " + p_.name + " threads " + std::to_string(p_.threads);
    if (p_.thread_var.valid()) out_ += " (" + var_text(p_, p_.thread_var) + ")";
    out_ += " arena " + std::to_string(p_.arena_bytes) + "\ngrid";
    for (size_t i = 0; i < p_.grid.size(); ++i) {
      const auto var = i < p_.block_vars.size() ? p_.block_vars[i] : ir::VarId();
      out_ += (i > 0 ? ", " : " ") + var_text(p_, var) + ": " + expr_text(p_, p_.grid[i]);
    }
    out_ += "\nparams\n";
    for (const Param& param : p_.params) print_param(param);
    out_ += "memories\n";
    for (const Memory& memory : p_.memories) print_memory(memory);
    out_ += "body\n";
    print_block(p_.body, 1);
    return std::move(out_);
  }

 private:
  void print_param(const Param& param) {
    const char* kind = param.kind == Param::Kind::dim      ? "dim "
                       : param.kind == Param::Kind::scalar ? "scalar "
                                                           : "tensor ";
    out_ += std::string("  ") + kind + param.name + ": " + ir::dtype_name(param.type) + " = ";
    out_ += param.kind == Param::Kind::tensor ? memory_text(p_, param.memory) : var_text(p_, param.var);
    out_ += "\n";
  }

  void print_memory(const Memory& m) {
    out_ += std::string("  ") + space_name(m.space) + " " + m.name + ": " + ir::dtype_name(m.type);
    if (m.elements > 0) out_ += "[" + std::to_string(m.elements) + "]";
    out_ += " align " + std::to_string(m.alignment);
    if (m.arena_offset >= 0) out_ += " arena@" + std::to_string(m.arena_offset);
    if (m.in_registers) out_ += " registers";
    if (m.read_only) out_ += " readonly";
    if (m.param >= 0) out_ += " param " + std::to_string(m.param);
    out_ += "\n";
  }

  void line(int indent, const std::string& text, const std::string& origin = {}) {
    out_ += std::string(2 * static_cast<size_t>(indent), ' ') + text;
    if (!origin.empty()) out_ += "  ; " + origin;
    out_ += "\n";
  }

  std::string at(MemoryId memory, ir::ExprId index) const {
    return memory_text(p_, memory) + "[" + expr_text(p_, index) + "]";
  }

  void print_block(const Block& block, int indent) {
    if (indent > kMaxNesting) return line(indent, "...");
    for (StmtId id : block) {
      if (id.value >= p_.stmts.size()) {
        line(indent, "?");
        continue;
      }
      const Stmt& stmt = p_.stmts[id.value];
      std::visit([&](const auto& node) { print(node, indent, stmt.origin); }, stmt.node);
    }
  }

  void print(const Loop& loop, int indent, const std::string& origin) {
    line(indent,
         std::string(form_name(loop.form)) + " " + var_text(p_, loop.var) + " in 0.." + expr_text(p_, loop.extent) + " {",
         origin);
    print_block(loop.body, indent + 1);
    line(indent, "}");
  }

  void print(const Branch& branch, int indent, const std::string& origin) {
    line(indent, "if " + expr_text(p_, branch.condition) + " {", origin);
    print_block(branch.then_body, indent + 1);
    if (!branch.else_body.empty()) {
      line(indent, "} else {");
      print_block(branch.else_body, indent + 1);
    }
    line(indent, "}");
  }

  void print(const Store& store, int indent, const std::string& origin) {
    std::string text = at(store.memory, store.index) + " = " + expr_text(p_, store.value);
    if (store.predicate.valid()) text += " if " + expr_text(p_, store.predicate);
    if (store.streaming) text += " streaming";
    if (store.streaming && store.streaming_if.valid()) text += " if " + expr_text(p_, store.streaming_if);
    line(indent, text, origin);
  }

  void print(const LaneReduce& r, int indent, const std::string& origin) {
    line(indent,
         at(r.dst, r.dst_index) + " = " + combine_name(r.combine) + " of " + std::to_string(r.width) + " lanes from " +
             at(r.src, r.src_index) + (r.accumulate ? " accumulate" : ""),
         origin);
  }

  void print(const HostMma& m, int indent, const std::string& origin) {
    const auto number = [](int64_t v) { return std::to_string(v); };
    line(indent,
         "mma " + number(m.mr) + "x" + number(m.nr) + "x" + number(m.k) + " pack " + number(m.pack) + " " +
             at(m.c, m.c_index) + " row " + number(m.c_row) + (m.clear ? " = " : " += ") + at(m.a, m.a_index) + " row " +
             number(m.a_row) + " k " + number(m.a_k) + " * " + at(m.b, m.b_index) + " k " + number(m.b_k),
         origin);
  }

  void print(const Prefetch& prefetch, int indent, const std::string& origin) {
    line(indent, "prefetch " + at(prefetch.memory, prefetch.index) + " locality " + std::to_string(prefetch.locality),
         origin);
  }

  void print(const Barrier&, int indent, const std::string& origin) { line(indent, "barrier", origin); }

  const ThreadProgram& p_;
  std::string out_;
};

}  // namespace

std::string print_thread_program(const ThreadProgram& p) { return Printer(p).print(); }

}  // namespace tilegen::thread
