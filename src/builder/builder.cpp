#include "builder/builder.h"

#include "ir/text.h"
#include "ir/text_grammar.h"
#include "support/diag_codes.h"

namespace tilegen::builder {

Builder::Builder(std::string_view name, const Limits& limits) : limits_(limits) {
  if (check_name("tl_builder_create", name)) program_.name = name;
}

void Builder::fail(DiagCode code, std::string_view call, std::string message, std::string hint) {
  if (static_cast<int64_t>(diagnostics_.size()) >= limits_.diagnostics) return;
  Diagnostic d;
  d.code = code;
  d.op = call;
  d.message = std::move(message);
  d.hint = std::move(hint);
  d.location = location_;
  d.stage = "builder";
  d.consequence = !diagnostics_.empty();
  diagnostics_.push_back(std::move(d));
}

bool Builder::ready(std::string_view call) {
  if (failed()) return false;
  if (!spent_) return true;
  fail(DiagCode::misplaced_statement, call, "the builder has already handed its program over",
       "make a new builder for a new program");
  return false;
}

bool Builder::check_name(std::string_view call, std::string_view name) {
  if (ir::text::is_plain_name(name)) return true;
  std::string shown(name.substr(0, 32));
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  fail(DiagCode::bad_name, call, "'" + shown + (name.size() > 32 ? "..." : "") + "' cannot be a name",
       "use a letter or _ followed by letters, digits and _, at most " + std::to_string(ir::kMaxNameLength) +
           " characters");
  return false;
}

bool Builder::declare(std::string_view call, std::string_view name, std::string_view what) {
  if (!check_name(call, name)) return false;
  if (ir::text::is_reserved(name)) {
    fail(DiagCode::bad_name, call, "'" + std::string(name) + "' is a word of the language",
         "choose another name, e.g. '" + std::string(name) + "_'");
    return false;
  }
  auto [it, fresh] = visible_.emplace(std::string(name), std::string(what));
  if (!fresh) {
    fail(DiagCode::duplicate_name, call,
         "the " + std::string(what) + " '" + std::string(name) + "' would hide a " + it->second +
             " of that name",
         "give it a name that is not visible here");
    return false;
  }
  names_.emplace_back(name);
  return true;
}

ir::VarId Builder::add_var(std::string_view call, std::string_view name, ir::VarKind kind, ir::DType type) {
  static constexpr const char* kWhat[] = {"dimension", "scalar", "block index", "loop variable",
                                          "thread index"};
  if (!declare(call, name, kWhat[static_cast<size_t>(kind)])) return {};
  ir::Var v;
  v.name = name;
  v.kind = kind;
  v.type = type;
  v.location = location_;
  if (kind == ir::VarKind::scalar) v.lower = INT64_MIN;  // unlike an extent, it may be negative
  program_.vars.push_back(std::move(v));
  return ir::VarId(program_.vars.size() - 1);
}

ir::VarId Builder::add_inner_var(std::string_view call, std::string_view name, ir::VarKind kind,
                                 ir::DType type) {
  if (!name.empty()) return add_var(call, name, kind, type);
  std::string made_up;
  do made_up = "v" + std::to_string(made_up_names_++);
  while (visible_.contains(made_up));
  return add_var(call, made_up, kind, type);
}

Expected<std::shared_ptr<const ir::Program>> Builder::finish(ProgramCheck check,
                                                             const Cancellation* cancellation) {
  constexpr std::string_view kCall = "tl_builder_finish";
  if (ready(kCall)) {
    for (size_t i = frames_.size(); i-- > 0;) {
      const Frame& frame = frames_[i];
      std::string place = frame.opened.known() ? " (opened at " + frame.opened.file + ":" +
                                                     std::to_string(frame.opened.line) + ")"
                                               : "";
      fail(DiagCode::scope_mismatch, kCall, "the " + frame.what + place + " was never ended",
           "call tl_end for it");
    }
    check_bindings(kCall);
    if (frames_.empty() && program_.kernels.empty())
      fail(DiagCode::misplaced_statement, kCall, "the program '" + program_.name + "' has no kernel",
           "open one with tl_begin_kernel");
  }
  spent_ = true;
  if (!failed()) resolve_names(kCall);
  // Shared expressions are written out as trees: a small program may have an enormous text.
  if (!failed() && ir::written_nodes(program_) > static_cast<uint64_t>(limits_.expr_nodes))
    fail(DiagCode::limit_nodes, kCall,
         "the text of program '" + program_.name + "' would write more than " +
             std::to_string(limits_.expr_nodes) + " expression nodes",
         "name intermediate values with tl_let, which keeps large ones in memory");
  if (!failed())
    for (Diagnostic& d : check(program_, limits_, cancellation))
      if (d.severity == Severity::error) diagnostics_.push_back(std::move(d));
  if (failed()) {
    Error error;
    error.diagnostics = diagnostics_;
    return error;
  }
  return std::make_shared<const ir::Program>(std::move(program_));
}

}  // namespace tilegen::builder
