#include "codegen/native_text.h"

#include <algorithm>

#include "ir/library_functions.h"

namespace tilegen::codegen {

const ir::NativeText* native_text(const ir::NativeFunction& f, target::CodeFormat format) {
  using ir::NativeForm;
  static constexpr struct {
    NativeForm instructions, llvm;
  } kForms[target::kCodeFormats] = {{NativeForm::llvm_host, NativeForm::llvm_host},
                                    {NativeForm::ptx, NativeForm::llvm_ptx},
                                    {NativeForm::gcn, NativeForm::llvm_gcn}};
  const auto& own = kForms[static_cast<size_t>(format)];
  for (const NativeForm form : {own.instructions, own.llvm, NativeForm::llvm})
    if (const ir::NativeText* t = f.text(form)) return t;
  return nullptr;
}

std::string native_text_list(Natives natives, target::CodeFormat format) {
  std::string list;
  for (const auto& f : natives)
    if (const ir::NativeText* t = native_text(*f, format); t != nullptr && !ir::is_library_function(*f))
      list += f->name + " " + std::string(ir::native_form_row(t->form).words) + "\n";
  return list;
}

// Between the marks that LLVM puts around inline assembly; a comment with the name is its first line.
std::string native_function_at(std::string_view ptx, size_t line) {
  constexpr std::string_view kBegin = "// begin inline asm", kEnd = "// end inline asm", kComment = "// ";
  std::string name;
  bool inside = false, named = false;
  for (size_t at = 0, number = 1; at < ptx.size() && number <= line; ++number) {
    const size_t end = std::min(ptx.find('\n', at), ptx.size());
    std::string_view text = ptx.substr(at, end - at);
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    if (text.starts_with(kEnd)) inside = named = false;
    if (inside && !named) {
      named = true;
      name = text.starts_with(kComment) ? text.substr(kComment.size()) : std::string_view();
    }
    if (text.starts_with(kBegin)) {
      inside = true;
      named = false;
      name.clear();
    }
    at = end + 1;
  }
  return inside ? name : std::string();
}

}  // namespace tilegen::codegen
