#include "emit/c_names.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace tilegen::emit {
namespace {

// Words of C, GNU C and C23, macros of the headers that are included, and what the source itself declares.
constexpr std::string_view kTaken[] = {"alignas",
                                       "alignof",
                                       "asm",
                                       "auto",
                                       "bool",
                                       "break",
                                       "case",
                                       "char",
                                       "const",
                                       "constexpr",
                                       "continue",
                                       "default",
                                       "do",
                                       "double",
                                       "else",
                                       "enum",
                                       "extern",
                                       "false",
                                       "float",
                                       "for",
                                       "goto",
                                       "if",
                                       "inline",
                                       "int",
                                       "long",
                                       "nullptr",
                                       "register",
                                       "restrict",
                                       "return",
                                       "short",
                                       "signed",
                                       "sizeof",
                                       "static",
                                       "static_assert",
                                       "struct",
                                       "switch",
                                       "thread_local",
                                       "true",
                                       "typedef",
                                       "typeof",
                                       "typeof_unqual",
                                       "union",
                                       "unsigned",
                                       "void",
                                       "volatile",
                                       "while",
                                       "i386",
                                       "linux",
                                       "unix",
                                       "NULL",
                                       "NAN",
                                       "INFINITY",
                                       "HUGE_VAL",
                                       "HUGE_VALF",
                                       "HUGE_VALL",
                                       "int64_t",
                                       "t",
                                       "context",
                                       "status",
                                       "out_program",
                                       "out_error",
                                       "asm_ptx",
                                       "asm_gcn",
                                       "llvm_ptx",
                                       "llvm_gcn",
                                       "llvm_host",
                                       "llvm"};

bool begins(std::string_view name, std::string_view with) { return name.substr(0, with.size()) == with; }
bool ends(std::string_view name, std::string_view with) {
  return name.size() >= with.size() && name.substr(name.size() - with.size()) == with;
}
// "e7": a name that the source gives to parts and scopes.
bool is_numbered(std::string_view name, std::string_view word) {
  return begins(name, word) && name.size() > word.size() &&
         std::all_of(name.begin() + static_cast<ptrdiff_t>(word.size()), name.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

bool is_taken(std::string_view name) {
  if (std::find(std::begin(kTaken), std::end(kTaken), name) != std::end(kTaken)) return true;
  for (std::string_view word : {"e", "scope", "blocks", "at"})
    if (is_numbered(name, word)) return true;
  for (std::string_view prefix : {"tl_", "TL_", "tilelang_", "M_", "FP_", "MATH_"})
    if (begins(name, prefix)) return true;
  for (std::string_view suffix : {"_MAX", "_MIN", "_WIDTH"})
    if (ends(name, suffix)) return true;
  // reserved for implementations
  return name.size() > 1 && name[0] == '_' && (name[1] == '_' || (name[1] >= 'A' && name[1] <= 'Z'));
}

}  // namespace

CNames::CNames(const ir::Program& p) : written_(ir::text::printable_names(p)) {
  std::set<std::string> names;
  for (const auto* list : {&written_.vars, &written_.buffers, &written_.kernels, &written_.compile_params})
    names.insert(list->begin(), list->end());
  for (const auto& f : p.natives)
    for (std::string& name : written_operands(p, *f)) names.insert(std::move(name));
  std::set<std::string> given;
  for (const std::string& name : names) {
    std::string identifier = name;
    for (size_t n = 0; is_taken(identifier) || given.contains(identifier) ||
                       (identifier != name && names.contains(identifier));
         ++n)
      identifier = "the_" + name + (n == 0 ? "" : "_" + std::to_string(n));
    given.insert(identifier);
    identifiers_[name] = identifier;
  }
}

const std::string& CNames::use(ir::VarId v) {
  used_vars_.insert(v.value);
  return identifier(v);
}

const std::string& CNames::use(ir::BufferId b) {
  used_buffers_.insert(b.value);
  return identifier(b);
}

std::string CNames::unwritten(const std::string& like) {
  std::string name;
  do name = like + "_" + std::to_string(++unwritten_);
  while (identifiers_.contains(name));
  return name;
}

}  // namespace tilegen::emit
