#include "codegen/native_text.h"

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
    if (const ir::NativeText* t = native_text(*f, format))
      list += f->name + " " + std::string(ir::native_form_row(t->form).words) + "\n";
  return list;
}

}  // namespace tilegen::codegen
