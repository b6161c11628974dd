#include "ir/library_functions.h"

#include <algorithm>
#include <string>

#include "ir/matrix_atom.h"

namespace tilegen::ir {
namespace {

using Operands = std::span<const ExprId>;

template <ExprOp op>
ExprId of_one(ExprPool& e, Operands x) {
  return e.unary(op, x[0]);
}
template <ExprOp op>
ExprId of_two(ExprPool& e, Operands x) {
  return e.binary(op, x[0], x[1]);
}

// Byte i of the result is the one of the eight bytes of b, a that three bits of digit i of the selector name;
// the digit's fourth bit takes its sign in the place of its bits.
ExprId byte_permute(ExprPool& e, Operands x) {
  const auto number = [&](int64_t v) { return e.const_int(v, DType::u32); };
  const auto bits = [&](ExprId v, int64_t mask) { return e.binary(ExprOp::bit_and, v, number(mask)); };
  const auto set = [&](ExprId v, int64_t mask) { return e.binary(ExprOp::ne, bits(v, mask), number(0)); };
  ExprId word;
  for (int i = 0; i < 4; ++i) {
    const ExprId digit = e.binary(ExprOp::shr, x[2], number(4 * i));
    const ExprId source = e.select(set(digit, 4), x[1], x[0]);
    const ExprId byte =
        bits(e.binary(ExprOp::shr, source, e.binary(ExprOp::shl, bits(digit, 3), number(3))), 0xff);
    const ExprId sign = e.select(set(byte, 0x80), number(0xff), number(0));
    const ExprId taken = e.binary(ExprOp::shl, e.select(set(digit, 8), sign, byte), number(8 * i));
    word = word.valid() ? e.binary(ExprOp::bit_or, word, taken) : taken;
  }
  return word;
}

constexpr LibraryFunction kFunctions[] = {
    {"fast_exp", 1, DType::f32, of_one<ExprOp::exp>,
     "{ .reg .f32 t; mul.f32 t, $1, 0f3FB8AA3B; ex2.approx.ftz.f32 $0, t; }",
     "v_mul_f32 $0, 0x3fb8aa3b, $1; v_exp_f32 $0, $0"},
    {"fast_exp2", 1, DType::f32, of_one<ExprOp::exp2>, "ex2.approx.ftz.f32 $0, $1;", "v_exp_f32 $0, $1"},
    {"fast_exp10", 1, DType::f32, of_one<ExprOp::exp10>,
     "{ .reg .f32 t; mul.f32 t, $1, 0f40549A78; ex2.approx.ftz.f32 $0, t; }",
     "v_mul_f32 $0, 0x40549a78, $1; v_exp_f32 $0, $0"},
    {"fast_log", 1, DType::f32, of_one<ExprOp::log>,
     "{ .reg .f32 t; lg2.approx.f32 t, $1; mul.f32 $0, t, 0f3F317218; }",
     "v_log_f32 $0, $1; v_mul_f32 $0, 0x3f317218, $0"},
    {"fast_log2", 1, DType::f32, of_one<ExprOp::log2>, "lg2.approx.f32 $0, $1;", "v_log_f32 $0, $1"},
    {"fast_sin", 1, DType::f32, of_one<ExprOp::sin>, "sin.approx.f32 $0, $1;", ""},
    {"fast_cos", 1, DType::f32, of_one<ExprOp::cos>, "cos.approx.f32 $0, $1;", ""},
    {"fast_tanh", 1, DType::f32, of_one<ExprOp::tanh>, "tanh.approx.f32 $0, $1;", ""},
    {"fast_sigmoid", 1, DType::f32, of_one<ExprOp::sigmoid>,
     "{ .reg .f32 t; mul.f32 t, $1, 0fBFB8AA3B; ex2.approx.ftz.f32 t, t; add.f32 t, t, 0f3F800000; "
     "rcp.approx.ftz.f32 $0, t; }",
     "v_mul_f32 $0, 0xbfb8aa3b, $1; v_exp_f32 $0, $0; v_add_f32 $0, 1.0, $0; v_rcp_f32 $0, $0"},
    {"fast_sqrt", 1, DType::f32, of_one<ExprOp::sqrt>, "sqrt.approx.f32 $0, $1;", "v_sqrt_f32 $0, $1"},
    {"fast_rsqrt", 1, DType::f32, of_one<ExprOp::rsqrt>, "rsqrt.approx.f32 $0, $1;", "v_rsq_f32 $0, $1"},
    {"fast_div", 2, DType::f32, of_two<ExprOp::div>, "div.approx.f32 $0, $1, $2;",
     "v_rcp_f32 $0, $2; v_mul_f32 $0, $1, $0"},
    {"fast_pow", 2, DType::f32, of_two<ExprOp::pow>,
     "{ .reg .f32 t; lg2.approx.f32 t, $1; mul.f32 t, t, $2; ex2.approx.ftz.f32 $0, t; }",
     "v_log_f32 $0, $1; v_mul_f32 $0, $0, $2; v_exp_f32 $0, $0"},
    {"byte_permute", 3, DType::u32, byte_permute, "prmt.b32 $0, $1, $2, $3;", ""},
};

std::vector<NativeText> texts_of(const LibraryFunction& f) {
  std::vector<NativeText> texts{{NativeForm::ptx, std::string(f.ptx)}};
  if (!f.gcn.empty()) texts.push_back({NativeForm::gcn, std::string(f.gcn)});
  return texts;
}

}  // namespace

std::span<const LibraryFunction> library_functions() { return kFunctions; }

const LibraryFunction* find_library_function(const Program& p, std::string_view name) {
  for (const LibraryFunction& f : kFunctions)
    if (f.name == name && !find_matrix_atom(p, name)) return &f;
  return nullptr;
}

LibraryCall add_library_function(Program& p, const LibraryFunction& f) {
  LibraryCall call;
  std::vector<ExprId> operands;
  for (size_t i = 0; i < f.parameters; ++i) {
    Var var;
    var.name = std::string(1, "xyz"[i]);
    var.kind = VarKind::loop;
    var.type = f.type;
    call.parameters.push_back(VarId(p.vars.size()));
    p.vars.push_back(std::move(var));
    operands.push_back(p.exprs.var(call.parameters.back(), f.type));
  }
  call.value = f.meaning(p.exprs, operands);
  add_native_function(p, std::string(f.name), call.parameters, std::span(&call.value, 1), texts_of(f), {});
  call.native = p.natives.size() - 1;
  return call;
}

bool is_library_function(const NativeFunction& f) {
  const auto same = [](const NativeText& a, const NativeText& b) {
    return a.form == b.form && a.text == b.text;
  };
  for (const LibraryFunction& own : kFunctions) {
    if (f.name != own.name || f.atom || f.parameters.size() != own.parameters || f.results.size() != 1)
      continue;
    const std::vector<NativeText> texts = texts_of(own);
    return std::equal(f.texts.begin(), f.texts.end(), texts.begin(), texts.end(), same) &&
           f.result_type(0) == own.type &&
           std::all_of(f.parameters.begin(), f.parameters.end(),
                       [&](const Var& v) { return v.type == own.type; });
  }
  return false;
}

}  // namespace tilegen::ir
