#include "ir/matrix_atom.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/annotations.h"
#include "ir/matrix_asm.h"
#include "ir/point_loops.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

constexpr const char* kNames[] = {"A", "B", "C"};
constexpr int64_t kMaxCycles = 1 << 20;

std::string number(int64_t v) { return std::to_string(v); }

// The meaning over parameters by their position.
class AtomMeaning : public ExprRewriter {
 public:
  AtomMeaning(const ExprPool& from, ExprPool& to, const std::array<VarId, 3>& operands)
      : ExprRewriter(from, to), operands_(operands) {}
  bool foreign = false;

 protected:
  ExprId rewrite_var(const ExprNode& n) override {
    const auto at = std::find(operands_.begin(), operands_.end(), n.var());
    foreign |= at == operands_.end();
    return to_->var(VarId(static_cast<size_t>(at - operands_.begin())), n.type);
  }
  ExprId rewrite_load(const ExprNode& n, std::span<const ExprId> indices) override {
    foreign = true;
    return to_->load(n.object, n.type, indices);
  }

 private:
  const std::array<VarId, 3>& operands_;
};

// Parameter `which`, cast or not.
bool is_operand(const ExprPool& e, ExprId id, size_t which) {
  while (e[id].op == ExprOp::cast) id = e[id].a;
  return e[id].op == ExprOp::var && e[id].var() == VarId(which);
}
bool are_factors(const ExprPool& e, ExprId x, ExprId y) {
  return (is_operand(e, x, 0) && is_operand(e, y, 1)) || (is_operand(e, x, 1) && is_operand(e, y, 0));
}
// c + a * b with casts anywhere, which is what products are made of.
bool is_product_sum(const ExprPool& e, ExprId root) {
  const auto stripped = [&](ExprId id) {
    while (e[id].op == ExprOp::cast) id = e[id].a;
    return id;
  };
  const ExprNode& sum = e[stripped(root)];
  if (sum.op == ExprOp::fma) return are_factors(e, sum.a, sum.b) && is_operand(e, sum.c, 2);
  if (sum.op != ExprOp::add) return false;
  for (const auto& [c, product] : {std::pair(sum.a, sum.b), std::pair(sum.b, sum.a)}) {
    const ExprNode& n = e[stripped(product)];
    if (is_operand(e, c, 2) && n.op == ExprOp::mul && are_factors(e, n.a, n.b)) return true;
  }
  return false;
}

struct Judge {
  const NativeFunction& f;
  const MatrixAtom& atom;
  const NativeText& text;
  const Limits& limits;
  const std::string name;

  int64_t lanes() const { return matrix_lanes(text.form); }
  DType type(size_t i) const { return f.parameters[i].type; }
  std::vector<int64_t> shape(size_t i) const {
    return i == 0   ? std::vector<int64_t>{atom.m, atom.k}
           : i == 1 ? std::vector<int64_t>{atom.k, atom.n}
                    : std::vector<int64_t>{atom.m, atom.n};
  }
  std::string shown(size_t i) const {
    return std::string(kNames[i]) + " of '" + name + "', " + dtype_name(type(i)) + extents_text(shape(i));
  }

  std::optional<Diagnostic> types() const {
    for (size_t i = 0; i < 2; ++i)
      if (is_packed(type(i)) || is_bool(type(i)) || (!is_float(type(i)) && dtype_bits(type(i)) > 32))
        return diagnostic(DiagCode::dtype_mismatch, shown(i) + ", is of a type that no product multiplies",
                          "use f16, bf16, f32, f64, 8-bit floats, i8 or u8");
    if (type(2) == DType::f32 || type(2) == DType::f64 || type(2) == DType::i32) return std::nullopt;
    return diagnostic(DiagCode::dtype_mismatch, shown(2) + ", is of a type that no product sums in",
                      "sums are f32, f64 or i32; those of a product into f16 are f32");
  }

  // Of a lane, in elements; 0: not whole registers.
  int64_t elements(size_t i) const {
    const int64_t all = shape(i)[0] * shape(i)[1];
    if (all % lanes() != 0 || all / lanes() * dtype_bytes(type(i)) % 4 != 0) return 0;
    return all / lanes();
  }
  int64_t registers(size_t i) const {
    return elements(i) * dtype_bytes(type(i)) / std::max<int64_t>(dtype_bytes(type(i)), 4);
  }

  std::optional<Diagnostic> extents() const {
    for (size_t i = 0; i < 3; ++i) {
      const auto all = checked_product(shape(i));
      const auto at = shape(i);
      if (at[0] < 1 || at[1] < 1 || !all || *all > kMaxAtomElements)
        return diagnostic(DiagCode::bad_shape,
                          shown(i) + ", has no 1 to " + number(kMaxAtomElements) + " elements",
                          "an atom is one instruction of a warp: products are made of many");
      if (elements(i) == 0)
        return diagnostic(
            DiagCode::bad_shape,
            shown(i) + ", is not of whole registers of 4 bytes in each of " + number(lanes()) + " lanes",
            std::string("text of ") + native_form_row(text.form).target.data() + " is of " + number(lanes()) +
                " lanes: give the shape of the whole instruction");
    }
    if (atom.cycles >= 0 && atom.cycles <= kMaxCycles) return std::nullopt;
    return diagnostic(
        DiagCode::bad_shape,
        "'" + name + "' issues in " + number(atom.cycles) + " cycles, expected 1 to " + number(kMaxCycles),
        "leave the number out where it is not known");
  }

  // As the text form prints it.
  std::optional<Diagnostic> canonical(size_t i, std::string& layout) const {
    const bool of_fragment = layout.find('[') != std::string::npos;
    const auto list = parse_annotations("layout = " + (of_fragment ? '"' + layout + '"' : layout),
                                        AnnotationPlace::tile, "an operand of an atom", limits);
    if (list && list->size() == 1) {
      layout = list->front().values.front();
      return std::nullopt;
    }
    Diagnostic d = diagnostic(DiagCode::syntax_error, "more than a layout",
                              "write (i, k) -> lane * registers + register");
    if (!list) d = list.error().diagnostics.front();
    d.message = "the layout of " + shown(i) + ": " + d.message;
    d.location = {};
    return d;
  }

  // Each place once.
  std::optional<Diagnostic> layout(size_t i) const {
    if (atom.layouts[i].find('[') != std::string::npos) return std::nullopt;
    const auto places = index_function_values(atom.layouts[i], shape(i), limits);
    if (!places) {
      Diagnostic d = places.error().diagnostics.front();
      d.message = "the layout of " + shown(i) + ": " + d.message;
      d.location = {};
      return d;
    }
    std::vector<int64_t> first(places->size(), -1);
    const auto element = [&](int64_t at) {
      return "[" + number(at / shape(i)[1]) + ", " + number(at % shape(i)[1]) + "]";
    };
    for (size_t at = 0; at < places->size(); ++at) {
      const int64_t place = (*places)[at];
      const std::string begin =
          "the layout of " + shown(i) + ", puts element " + element(static_cast<int64_t>(at));
      const std::string hint = "a place is lane * " + number(elements(i)) +
                               " + register: each of these once, of " + number(lanes()) + " lanes";
      if (place < 0 || place >= static_cast<int64_t>(places->size()))
        return diagnostic(DiagCode::schedule_illegal,
                          begin + " at " + number(place) + ", beyond 0 to " +
                              number(static_cast<int64_t>(places->size()) - 1),
                          hint);
      int64_t& other = first[static_cast<size_t>(place)];
      if (other >= 0)
        return diagnostic(DiagCode::schedule_illegal,
                          begin + " at " + number(place) + ", where element " + element(other) + " is", hint);
      other = static_cast<int64_t>(at);
    }
    return std::nullopt;
  }

  std::optional<Diagnostic> instruction() const {
    const std::string what = std::string(native_form_row(text.form).words) + " of '" + name + "'";
    if (!is_asm(text.form))
      return diagnostic(DiagCode::bad_native_text, what + " is no instruction",
                        "an atom has one text, asm ptx \"mma.sync...\" or asm gcn \"v_mfma_...\"");
    if (text.text.size() > kMaxNativeText)
      return diagnostic(DiagCode::limit_bytes,
                        what + " has " + number(static_cast<int64_t>(text.text.size())) +
                            " characters; at most " + number(kMaxNativeText) + " are allowed",
                        "an atom's text is one instruction");
    for (const char c : text.text)
      if (c != '\n' && (c < ' ' || c > '~' || c == '"'))
        return diagnostic(
            DiagCode::bad_native_text,
            what + " has a quotation mark, a tab or another character that is not printable ASCII",
            "write the instruction and its operands");
    const auto wrong = matrix_asm_refusal(text.form, text.text,
                                          {atom.m, atom.n, atom.k, registers(0), registers(1), registers(2)});
    if (!wrong) return std::nullopt;
    return diagnostic(DiagCode::bad_native_text, what + ": " + wrong->message, wrong->hint);
  }
};

std::optional<Diagnostic> meaning_refusal(const NativeFunction& f, bool foreign) {
  if (f.results.empty()) return std::nullopt;
  if (!foreign && f.result_type(0) != f.parameters[2].type)
    return diagnostic(DiagCode::dtype_mismatch,
                      "the meaning of '" + f.name + "' is " + dtype_name(f.result_type(0)) + ", C is " +
                          dtype_name(f.parameters[2].type),
                      "cast it to C's type");
  if (!foreign && is_product_sum(f.exprs, f.results[0])) return std::nullopt;
  return diagnostic(
      DiagCode::bad_native_text,
      "the meaning of '" + f.name + "' is not its third operand plus the product of the first two",
      "gemm is a sum of products whatever computes it: write return c + a * b, with casts where "
      "the instruction rounds; other functions of elements are parallel loops");
}

}  // namespace

std::optional<Diagnostic> add_matrix_atom(Program& p, AtomRequest request, const Limits& limits) {
  if (static_cast<int64_t>(p.natives.size()) >= limits.buffers)
    return diagnostic(
        DiagCode::limit_nodes,
        "a program has at most " + number(limits.buffers) + " functions and atoms with native text",
        "declare fewer");
  auto f = std::make_shared<NativeFunction>();
  f->name = request.name;
  f->location = request.location;
  for (const VarId v : request.operands) f->parameters.push_back(p.var(v));
  bool foreign = false;
  if (request.meaning.valid()) {
    AtomMeaning meaning(p.exprs, f->exprs, request.operands);
    f->results.push_back(meaning.rewrite(request.meaning));
    foreign = meaning.foreign;
  }
  f->texts.push_back(std::move(request.text));
  MatrixAtom& atom = f->atom.emplace(std::move(request.atom));
  const Judge judge{*f, atom, f->texts.front(), limits, f->name};
  if (!is_asm(judge.text.form)) return judge.instruction();
  if (auto refused = judge.types()) return refused;
  if (auto refused = judge.extents()) return refused;
  for (size_t i = 0; i < 3; ++i) {
    if (auto refused = judge.canonical(i, atom.layouts[i])) return refused;
    if (auto refused = judge.layout(i)) return refused;
  }
  if (auto refused = judge.instruction()) return refused;
  if (auto refused = meaning_refusal(*f, foreign)) return refused;
  p.natives.push_back(std::move(f));
  return std::nullopt;
}

ScalarValue atom_step(const NativeFunction& f, ScalarValue a, ScalarValue b, ScalarValue c) {
  const ExprPool& e = f.exprs;
  const ScalarValue operands[] = {a, b, c};
  const ExprId root = f.results[0];
  std::vector<ScalarValue> values(root.value + 1);
  for (size_t i = 0; i <= root.value; ++i) {
    const ExprNode& n = e[ExprId(i)];
    const auto of = [&](ExprId id) { return id.valid() ? values[id.value] : ScalarValue(); };
    if (n.op == ExprOp::var)
      values[i] = operands[n.var().value];
    else if (e.is_const(ExprId(i)))
      values[i] = is_float(n.type) ? ScalarValue{n.type, 0, n.float_value()} : ScalarValue{n.type, n.imm, 0};
    else
      values[i] = eval_operation(n.op, n.type, of(n.a), of(n.b), of(n.c));
  }
  return values[root.value];
}

const NativeFunction* find_matrix_atom(const Program& p, std::string_view name) {
  for (const auto& f : p.natives)
    if (f->atom && f->name == name) return f.get();
  return nullptr;
}

}  // namespace tilegen::ir
