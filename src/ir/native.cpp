#include "ir/native.h"

#include <algorithm>
#include <utility>

#include "ir/native_asm.h"
#include "ir/point_loops.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

constexpr NativeFormRow kForms[kNativeForms] = {
    {"asm ptx", "asm", "ptx"},   {"asm gcn", "asm", "gcn"},     {"llvm ptx", "llvm", "ptx"},
    {"llvm gcn", "llvm", "gcn"}, {"llvm host", "llvm", "host"}, {"llvm", "llvm", ""},
};

// Types that a register of its own holds.
bool has_register(DType t) {
  if (t == DType::none || is_storage_only(t) || is_bool(t) || is_packed(t)) return false;
  return dtype_bits(t) >= 16;
}

// The meaning, with parameters by their position.
class Meaning : public ExprRewriter {
 public:
  Meaning(const ExprPool& from, ExprPool& to, std::span<const VarId> parameters)
      : ExprRewriter(from, to), parameters_(parameters) {}
  VarId foreign;
  bool loads = false;

 protected:
  ExprId rewrite_var(const ExprNode& n) override {
    const auto at = std::find(parameters_.begin(), parameters_.end(), n.var());
    if (at == parameters_.end()) foreign = n.var();
    return to_->var(VarId(static_cast<size_t>(at - parameters_.begin())), n.type);
  }
  ExprId rewrite_load(const ExprNode& n, std::span<const ExprId> indices) override {
    loads = true;
    return to_->load(n.object, n.type, indices);
  }

 private:
  const std::span<const VarId> parameters_;
};

class Call : public ExprRewriter {
 public:
  Call(const ExprPool& from, ExprPool& to, std::span<const ExprId> args)
      : ExprRewriter(from, to), args_(args) {}

 protected:
  ExprId rewrite_var(const ExprNode& n) override { return args_[n.var().value]; }

 private:
  const std::span<const ExprId> args_;
};

std::optional<Diagnostic> signature_refusal(const NativeFunction& f) {
  const auto refused = [&](const std::string& what, DType t) {
    return diagnostic(
        DiagCode::dtype_mismatch,
        what + " of '" + f.name + "' is " + dtype_name(t) + ", which native text has no register for",
        "use types of 16, 32 or 64 bits that values are computed in, and cast around the call; "
        "several narrow values are a u32");
  };
  if (f.parameters.empty())
    return diagnostic(DiagCode::rank_mismatch, "'" + f.name + "' has native text and no parameters",
                      "what depends on nothing is a constant: let");
  if (f.parameters.size() > kMaxNativeParameters || f.results.size() > kMaxNativeResults || f.results.empty())
    return diagnostic(DiagCode::rank_mismatch,
                      "'" + f.name + "' has " + counted(f.parameters.size(), "parameter") + " and " +
                          counted(f.results.size(), "result"),
                      "a function with native text has 1 to " + std::to_string(kMaxNativeParameters) +
                          " parameters and 1 to " + std::to_string(kMaxNativeResults) + " results");
  for (const Var& v : f.parameters)
    if (!has_register(v.type)) return refused("parameter '" + v.name + "'", v.type);
  for (size_t i = 0; i < f.results.size(); ++i)
    if (!has_register(f.result_type(i))) return refused("result " + std::to_string(i + 1), f.result_type(i));
  return std::nullopt;
}

std::optional<Diagnostic> text_refusal(const NativeFunction& f, const NativeText& t) {
  const std::string what = std::string(native_form_row(t.form).words) + " of '" + f.name + "'";
  if (t.text.size() > kMaxNativeText)
    return diagnostic(DiagCode::limit_bytes,
                      what + " has " + std::to_string(t.text.size()) + " characters; at most " +
                          std::to_string(kMaxNativeText) + " are allowed",
                      "split the function");
  for (const char c : t.text)
    if (c != '\n' && (c < ' ' || c > '~' || c == '"'))
      return diagnostic(
          DiagCode::bad_native_text,
          what + " has a quotation mark, a tab or another character that is not printable ASCII",
          "a program's text holds it between quotation marks, a line each; leave such lines out");
  if (!is_asm(t.form)) {
    if (t.text.find("define") == t.text.npos || t.text.find("@" + f.name) == t.text.npos)
      return diagnostic(
          DiagCode::bad_native_text, what + " defines no function @" + f.name,
          "give LLVM IR with a function of that name: define float @" + f.name + "(float %x) { ... }");
    return std::nullopt;
  }
  const NativeAsmRead read = read_native_asm(t.form, t.text, f.results.size(), f.parameters.size());
  if (!read.error) return std::nullopt;
  return diagnostic(DiagCode::bad_native_text, what + ": " + read.error->message, read.error->hint);
}

}  // namespace

const NativeFormRow& native_form_row(NativeForm form) { return kForms[static_cast<size_t>(form)]; }

const NativeText* NativeFunction::text(NativeForm form) const {
  const auto at =
      std::find_if(texts.begin(), texts.end(), [&](const NativeText& t) { return t.form == form; });
  return at == texts.end() ? nullptr : &*at;
}

std::string NativeFunction::forms() const {
  std::string words;
  for (const NativeText& t : texts)
    words += (words.empty() ? "" : ", ") + std::string(native_form_row(t.form).words);
  return words;
}

std::optional<Diagnostic> add_native_function(Program& p, std::string name, std::span<const VarId> parameters,
                                              std::span<const ExprId> results, std::vector<NativeText> texts,
                                              const SourceLocation& location) {
  auto f = std::make_shared<NativeFunction>();
  f->name = std::move(name);
  f->location = location;
  for (const VarId v : parameters) f->parameters.push_back(p.var(v));
  Meaning meaning(p.exprs, f->exprs, parameters);
  for (const ExprId e : results) f->results.push_back(meaning.rewrite(e));
  if (meaning.loads)
    return diagnostic(DiagCode::scope_not_allowed, "the meaning of '" + f->name + "' reads memory",
                      "pass the element as an argument");
  if (meaning.foreign)
    return diagnostic(DiagCode::out_of_scope,
                      "the meaning of '" + f->name + "' uses '" + p.var(meaning.foreign).name +
                          "', which is none of its parameters",
                      "its native text sees its parameters alone: pass it as an argument");
  if (auto refused = signature_refusal(*f)) return refused;
  std::stable_sort(texts.begin(), texts.end(),
                   [](const NativeText& a, const NativeText& b) { return a.form < b.form; });
  f->texts = std::move(texts);
  for (size_t i = 0; i < f->texts.size(); ++i) {
    if (i > 0 && f->texts[i].form == f->texts[i - 1].form)
      return diagnostic(
          DiagCode::duplicate_name,
          "'" + f->name + "' has two texts " + std::string(native_form_row(f->texts[i].form).words),
          "give each once");
    if (auto refused = text_refusal(*f, f->texts[i])) return refused;
  }
  p.natives.push_back(std::move(f));
  return std::nullopt;
}

ExprId call_native(Program& p, size_t function, std::span<const ExprId> args, size_t result) {
  const NativeFunction& f = *p.natives[function];
  const ExprId meaning = Call(f.exprs, p.exprs, args).rewrite(f.results[result]);
  return p.exprs.native_call(meaning, args, function, result);
}

bool calls_native(const ExprPool& pool, ExprId root) {
  std::vector<ExprId> todo{root};
  std::vector<bool> seen(pool.size());
  while (!todo.empty()) {
    const ExprId id = todo.back();
    todo.pop_back();
    if (!id.valid() || seen[id.value]) continue;
    seen[id.value] = true;
    const ExprNode& n = pool[id];
    if (n.op == ExprOp::native_call) return true;
    todo.insert(todo.end(), {n.a, n.b, n.c});
    if (n.op == ExprOp::load)
      for (const ExprId index : pool.indices(id)) todo.push_back(index);
  }
  return false;
}

}  // namespace tilegen::ir
