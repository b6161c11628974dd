// Printing of whole programs. Nothing here recurses: open blocks stand on a stack.
#include <algorithm>

#include "ir/annotations.h"
#include "ir/assertion.h"
#include "ir/native.h"
#include "ir/print.h"
#include "ir/store_parts.h"
#include "ir/text.h"
#include "ir/text_print_expr.h"
#include "support/checked.h"

namespace tilegen::ir {
namespace text {
namespace {

constexpr size_t kMaxExprBytes = 16 << 20;
constexpr size_t kMaxMessageBytes = 4 << 10;

class ProgramPrinter {
 public:
  explicit ProgramPrinter(const Program& p)
      : p_(p), names_(printable_names(p)), exprs_(p, &names_, kMaxExprBytes) {}

  std::string run() {
    out_ = "tl 1 program " + names_.program + "\n";
    for (size_t i = 0; i < p_.compile_params.size(); ++i) print_compile_param(i);
    for (const Param& param : p_.params) {
      if (param.kind == Param::Kind::tensor) {
        print_tensor(param.buffer);
      } else if (p_.takes_argument(param)) {
        print_variable(param.var);
      }
    }
    for (const auto& f : p_.natives) print_native(*f);
    for (size_t k = 0; k < p_.kernels.size(); ++k) print_kernel(k);
    return std::move(out_);
  }

 private:
  struct OpenBlock {
    const Block* block;
    size_t next;
    const Block* else_body;  // still to come
  };

  // What it means is printed over its own variables, whose names are none of the program's parameters.
  void print_native(const NativeFunction& f) {
    Program meaning;
    meaning.exprs = f.exprs;
    meaning.vars = f.parameters;
    const std::vector<std::string> names = parameter_names(p_, names_, f.parameters);
    for (size_t i = 0; i < names.size(); ++i) meaning.vars[i].name = names[i];
    meaning.natives = p_.natives;
    const ExprPrinter exprs(meaning, nullptr, kMaxExprBytes);
    f.atom ? print_atom_head(f, names) : print_function_head(f, names);
    for (const NativeText& t : f.texts) {
      out_ += "    " + std::string(native_form_row(t.form).words);
      for (size_t at = 0; at <= t.text.size();) {
        const size_t end = std::min(t.text.find('\n', at), t.text.size());
        out_ += (at == 0 ? " \"" : "\n    \"") + t.text.substr(at, end - at) + '"';
        at = end + 1;
      }
      out_ += '\n';
    }
    if (f.results.empty()) return;  // of an atom: the plain one
    out_ += "{ return ";
    exprs.print_list(out_, f.results);
    out_ += " }\n";
  }

  void print_function_head(const NativeFunction& f, const std::vector<std::string>& names) {
    out_ += "fn " + f.name + "(";
    for (size_t i = 0; i < f.parameters.size(); ++i)
      out_ += (i > 0 ? ", " : "") + names[i] + ": " + dtype_name(f.parameters[i].type);
    out_ += ") -> ";
    if (f.results.size() > 1) out_ += '(';
    for (size_t i = 0; i < f.results.size(); ++i)
      out_ += std::string(i > 0 ? ", " : "") + dtype_name(f.result_type(i));
    if (f.results.size() > 1) out_ += ')';
    out_ += '\n';
  }

  void print_atom_head(const NativeFunction& f, const std::vector<std::string>& names) {
    const MatrixAtom& atom = *f.atom;
    const int64_t shapes[][2] = {{atom.m, atom.k}, {atom.k, atom.n}, {atom.m, atom.n}};
    out_ += "atom " + f.name + "(";
    for (size_t i = 0; i < 3; ++i) {
      const std::string& layout = atom.layouts[i];
      const bool quoted = layout.find('[') != std::string::npos;
      out_ += (i > 0 ? ",\n    " : "") + names[i] + ": " + dtype_name(f.parameters[i].type) + "[" +
              std::to_string(shapes[i][0]) + ", " + std::to_string(shapes[i][1]) + "] at " +
              (quoted ? '"' + layout + '"' : layout);
    }
    out_ += ")";
    if (atom.cycles > 0) out_ += " cycles " + std::to_string(atom.cycles);
    out_ += '\n';
  }

  void print_compile_param(size_t i) {
    const CompileParam& param = p_.compile_params[i];
    out_ += "param " + names_.compile_params[i] + " = " + std::to_string(param.value) + " in {";
    for (size_t v = 0; v < param.domain.size(); ++v)
      out_ += (v > 0 ? ", " : "") + std::to_string(param.domain[v]);
    out_ += "}\n";
  }

  void print_variable(VarId id) {
    const Var& v = p_.var(id);
    out_ += v.kind == VarKind::dim ? "dim " : "scalar ";
    out_ += names_.vars[id.value];
    if (v.kind == VarKind::dim) {
      const Var defaults;
      if (v.lower != defaults.lower) out_ += " >= " + std::to_string(v.lower);
      if (v.upper != defaults.upper) out_ += " <= " + std::to_string(v.upper);
      if (v.divisor != defaults.divisor) out_ += " divisible " + std::to_string(v.divisor);
    } else {
      out_ += std::string(": ") + dtype_name(v.type);
    }
    out_ += '\n';
  }

  void print_tensor(BufferId id) {
    const Buffer& b = p_.buffer(id);
    if (b.report != Report::none) return;
    out_ += "tensor " + names_.buffers[id.value] + ": " + dtype_name(b.type) + "[";
    exprs_.print_list(out_, b.shape);
    out_ += ']';
    if (!b.strides.empty()) {
      out_ += " strides [";
      exprs_.print_list(out_, b.strides);
      out_ += ']';
    }
    if (b.packed != DType::none) out_ += std::string(" of ") + dtype_name(b.packed);
    if (b.read_only) out_ += b.constant ? " constant" : " readonly";
    if (b.workspace) out_ += " workspace";
    if (b.optional) out_ += " optional";
    out_ += '\n';
  }

  void print_kernel(size_t k) {
    const Kernel& kernel = p_.kernels[k];
    out_ += "\nkernel " + names_.kernels[k] + " grid (";
    for (size_t i = 0; i < kernel.grid.size(); ++i) {
      if (i > 0) out_ += ", ";
      out_ +=
          (i < kernel.block_vars.size() ? names_.vars[kernel.block_vars[i].value] : std::string("?")) + ": ";
      exprs_.print(out_, kernel.grid[i]);
    }
    out_ += ')';
    if (kernel.threads != 0) out_ += " threads " + std::to_string(kernel.threads);
    print_with(kernel.annotations, AnnotationPlace::kernel);
    out_ += " {\n";
    for (size_t b = 0; b < p_.buffers.size(); ++b)
      if (p_.buffers[b].kernel == static_cast<int>(k)) print_alloc(BufferId(b));
    print_body(kernel.body);
  }

  void print_alloc(BufferId id) {
    const Buffer& b = p_.buffer(id);
    out_ +=
        "  alloc " + names_.buffers[id.value] + ": " + scope_name(b.scope) + " " + dtype_name(b.type) + "[";
    exprs_.print_list(out_, b.shape);
    out_ += ']';
    if (!b.annotations.empty()) out_ += " {" + print_annotations(b.annotations, AnnotationPlace::tile) + '}';
    out_ += '\n';
  }

  void print_with(const Annotations& list, AnnotationPlace place) {
    if (!list.empty()) out_ += " with {" + print_annotations(list, place) + '}';
  }

  // The statements of a kernel and its closing brace.
  void print_body(const Block& body) {
    open_.push_back({&body, 0, nullptr});
    while (!open_.empty()) {
      OpenBlock& top = open_.back();
      if (top.next < top.block->size()) {
        print_statement((*top.block)[top.next++]);
        continue;
      }
      out_.append(2 * (open_.size() - 1), ' ');
      if (top.else_body != nullptr) {
        out_ += "} else {\n";
        top = {top.else_body, 0, nullptr};
      } else {
        out_ += "}\n";
        open_.pop_back();
      }
    }
  }

  void print_statement(StmtId id) {
    out_.append(2 * open_.size(), ' ');
    if (const std::string& label = p_.stmt(id).label; !label.empty()) out_ += "label " + label + ": ";
    const Annotations& annotations = p_.stmt(id).annotations;
    if (const auto assertion = assertion_at(p_, id)) {
      print_assertion(*assertion);
    } else if (const auto* loop = p_.as<Loop>(id)) {
      print_loop_head(*loop);
      print_with(annotations, *annotation_place(p_, id));
      out_ += " {";
      open_.push_back({&loop->body, 0, nullptr});
    } else if (const auto* branch = p_.as<Branch>(id)) {
      out_ += "if ";
      exprs_.print(out_, branch->condition);
      out_ += " {";
      open_.push_back({&branch->then_body, 0, branch->else_body.empty() ? nullptr : &branch->else_body});
    } else if (printed_at(p_, id) >= 0) {
      print_printed(id);
    } else if (const auto* store = p_.as<Store>(id)) {
      print_store(*store);
    } else {
      print_tile_op(*p_.as<TileOp>(id), annotations);
    }
    out_ += '\n';
  }

  void print_element(BufferId buffer, const std::vector<ExprId>& indices) {
    out_ += names_.buffers[buffer.value] + "[";
    exprs_.print_list(out_, indices);
    out_ += "]";
  }

  void print_store(const Store& store) {
    if (store.old) print_element(store.old->buffer, store.old->indices), out_ += " = ";
    if (store.atomic) out_ += std::string(atomic_text(*store.atomic)) + "(";
    print_element(store.buffer, store.indices);
    out_ += store.atomic ? ", " : " = ";
    if (store.expected.valid()) exprs_.print(out_, store.expected), out_ += ", ";
    exprs_.print(out_, store.value);
    if (store.atomic) out_ += ")";
    if (store.order != AtomicOrder::relaxed) out_ += " {order=" + std::string(order_text(store.order)) + "}";
  }

  void print_assertion(const AssertionText& assertion) {
    const ExprNode& failing = p_.exprs[assertion.failing];
    const bool negated = failing.op == ExprOp::logical_not;
    out_ += negated ? "assert " : "assert not(";
    exprs_.print(out_, negated ? failing.a : assertion.failing);
    out_ += (negated ? ", \"" : "), \"") + p_.messages[assertion.index] + '"';
  }

  // The values of one statement, which are stores one after the other, stand on one line.
  void print_printed(StmtId id) {
    const Program::Printed& printed = p_.prints[static_cast<size_t>(printed_at(p_, id))];
    if (printed.position == 0)
      out_ += "print \"" + printed.text + '"';
    else
      out_.resize(out_.find_last_not_of(" \n") + 1);
    if (printed.type == DType::none) return;
    bool converts = false;
    const ExprId value = printed_value(p_, *p_.as<Store>(id), printed.type, converts);
    out_ += ", ";
    if (converts) out_ += std::string("cast(") + dtype_name(printed.type) + ", ";
    exprs_.print(out_, value);
    if (converts) out_ += ')';
  }

  void print_loop_head(const Loop& loop) {
    out_ += loop_kind_name(loop.kind);
    for (size_t i = 0; i < loop.vars.size(); ++i)
      out_ += (i > 0 ? ", " : " ") + names_.vars[loop.vars[i].value];
    out_ += " in ";
    if (loop.kind == LoopKind::parallel) {
      exprs_.print_list(out_, loop.extents);
    } else {
      print_bounds(loop.begin, loop.extents.empty() ? ExprId() : loop.extents[0]);
    }
    if (loop.condition.valid()) {
      out_ += " while ";
      exprs_.print(out_, loop.condition);
    }
    if (loop.num_stages != 0) out_ += " stages " + std::to_string(loop.num_stages);
  }

  void print_bounds(ExprId begin, ExprId extent) {
    exprs_.print(out_, begin);
    int64_t first = 0, count = 0;
    bool starts_constant = begin.valid() && p_.exprs.is_const_int(begin, &first);
    std::optional<int64_t> end;
    if (starts_constant && extent.valid() && p_.exprs.is_const_int(extent, &count))
      end = checked_add(first, count);
    bool difference = extent.valid() && p_.exprs[extent].op == ExprOp::sub && p_.exprs[extent].b == begin;
    if (end) {
      out_ += " .. " + std::to_string(*end);
    } else if (starts_constant && first == 0) {
      out_ += " .. ";
      exprs_.print(out_, extent);
    } else if (difference) {
      out_ += " .. ";
      exprs_.print(out_, p_.exprs[extent].a);
    } else {
      out_ += " :+ ";
      exprs_.print(out_, extent);
    }
  }

  void print_tile_op(const TileOp& op, const Annotations& annotations) {
    const OpRow& row = op_row(op.kind);
    const OperandOrder order = operand_order(row);
    out_ += row.text;
    for (int i = 0; i < order.front_count; ++i) print_operand(i == 0 ? " " : ", ", op, order.front[i]);
    if (row.has_value) {
      out_ += order.front_count > 0 ? ", " : " ";
      exprs_.print(out_, op.value);
    }
    for (int i = 0; i < order.back_count; ++i) print_operand(i == 0 ? " -> " : ", ", op, order.back[i]);
    bool any = false;
    for (size_t i = 0; i < row.attrs.size(); ++i) {
      if (op.attrs[i] == 0) continue;
      out_ += any ? ", " : " {";
      any = true;
      print_attribute(row.attrs[i], op.attrs[i]);
    }
    if (!annotations.empty())
      out_ += (any ? ", " : " {") + print_annotations(annotations, AnnotationPlace::op);
    if (any || !annotations.empty()) out_ += '}';
  }

  void print_operand(const char* before, const TileOp& op, int slot) {
    out_ += before;
    exprs_.print_region(out_, slot < static_cast<int>(op.operands.size()) ? op.operands[slot] : Region());
  }

  void print_attribute(const AttrRow& row, int64_t value) {
    out_ += row.name;
    if (row.type == AttrType::boolean) return;
    out_ += '=';
    std::string_view named =
        row.type == AttrType::enumeration ? attr_value_name(row, value) : std::string_view();
    out_ += named.empty() ? std::to_string(value) : std::string(named);
  }

  const Program& p_;
  NameTable names_;
  ExprPrinter exprs_;
  std::string out_;
  std::vector<OpenBlock> open_;
};

// Sizes of all expressions as trees: operands come before their users, so one sweep does.
std::vector<uint64_t> tree_sizes(const ExprPool& pool) {
  constexpr uint64_t kMax = uint64_t{1} << 48;  // sums of a few of these cannot overflow
  std::vector<uint64_t> sizes(pool.size());
  for (size_t i = 0; i < pool.size(); ++i) {
    const ExprNode& n = pool[ExprId(i)];
    uint64_t size = 1;
    auto add = [&](ExprId id) {
      if (id.valid()) size = std::min(kMax, size + sizes[id.value]);
    };
    if (n.op != ExprOp::native_call) add(n.a);
    add(n.b), add(n.c);
    if (n.op == ExprOp::load)
      for (ExprId id : pool.indices(ExprId(i))) add(id);
    sizes[i] = size;
  }
  return sizes;
}

}  // namespace
}  // namespace text

std::string print_program(const Program& p) { return text::ProgramPrinter(p).run(); }

std::string print_expr(const Program& p, ExprId id) {
  std::string out;
  text::ExprPrinter(p, nullptr, text::kMaxMessageBytes).print(out, id);
  return out;
}

std::string print_region(const Program& p, const Region& r) {
  std::string out;
  text::ExprPrinter(p, nullptr, text::kMaxMessageBytes).print_region(out, r);
  return out;
}

uint64_t written_nodes(const Program& p) {
  const std::vector<uint64_t> sizes = text::tree_sizes(p.exprs);
  uint64_t total = 0;
  auto add = [&](ExprId id) {
    if (id.valid() && __builtin_add_overflow(total, sizes[id.value], &total)) total = UINT64_MAX;
  };
  auto add_all = [&](const std::vector<ExprId>& ids) {
    for (ExprId id : ids) add(id);
  };
  for (const Buffer& b : p.buffers) add_all(b.shape), add_all(b.strides);
  for (const Kernel& k : p.kernels) add_all(k.grid);
  for (const Stmt& s : p.stmts) {
    if (const auto* loop = std::get_if<Loop>(&s.node))
      add(loop->begin), add_all(loop->extents), add(loop->condition);
    if (const auto* branch = std::get_if<Branch>(&s.node)) add(branch->condition);
    if (const auto* store = std::get_if<Store>(&s.node)) visit_exprs(*store, add);
    if (const auto* op = std::get_if<TileOp>(&s.node)) {
      add(op->value);
      for (const Region& r : op->operands) add_all(r.offsets);
    }
  }
  return total;
}

}  // namespace tilegen::ir
