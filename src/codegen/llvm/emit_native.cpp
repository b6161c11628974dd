// Calls of functions with native text: inline assembly, or a call of a function of LLVM IR.
#include <algorithm>

#include "codegen/llvm/native_functions.h"
#include "codegen/llvm/program_emitter.h"
#include "codegen/llvm/types.h"
#include "codegen/native_text.h"

namespace tilegen::codegen {

using llvm::Value;

namespace {

bool is_half(ir::DType t) { return t == ir::DType::f16 || t == ir::DType::bf16; }

// As the type's own register has it: 16-bit floats, held as f32, in 16 bits.
Value* own_form(llvm::IRBuilder<>& b, ir::DType t, Value* held, bool as_bits) {
  if (!is_half(t)) return held;
  Value* stored = to_storage(b, t, held);
  if (as_bits) return b.CreateBitCast(stored, b.getInt16Ty());
  return b.CreateBitCast(stored, t == ir::DType::bf16 ? b.getBFloatTy() : b.getHalfTy());
}

Value* held_form(llvm::IRBuilder<>& b, ir::DType t, Value* own) {
  if (!is_half(t)) return own;
  return from_storage(b, t, b.CreateBitCast(own, storage_type(b.getContext(), t)));
}

bool has_products(const thread::ThreadProgram& p) {
  return std::any_of(p.stmts.begin(), p.stmts.end(),
                     [](const thread::Stmt& s) { return std::holds_alternative<thread::WarpMma>(s.node); });
}

}  // namespace

const ir::NativeText* ProgramEmitter::native_text_of(const ir::ExprPool::NativeCall& call) const {
  const auto format = features_.nvptx    ? target::CodeFormat::ptx
                      : features_.amdgpu ? target::CodeFormat::hsaco
                                         : target::CodeFormat::object;
  return native_text(*program_.natives[call.function], format);
}

Value* ProgramEmitter::emit_native(const ir::ExprPool::NativeCall& call, const ir::NativeText& text,
                                   std::vector<Value*> args) {
  const ir::NativeFunction& f = *program_.natives[call.function];
  for (size_t i = 0; i < args.size(); ++i)
    args[i] = own_form(b_, f.parameters[i].type, args[i], ir::is_asm(text.form));
  Value* made = nullptr;
  if (ir::is_asm(text.form)) {
    made = call_instructions(b_, f, text, args, has_products(program_));
  } else {
    std::string why;
    llvm::Function* function = native_function(module_, f, text, why);
    if (!function) {
      refuse("'" + f.name + "': " + why);
      return llvm::PoisonValue::get(held_type(context_, f.result_type(call.result)));
    }
    made = b_.CreateCall(function, args);
  }
  if (f.results.size() > 1) made = b_.CreateExtractValue(made, {static_cast<unsigned>(call.result)});
  return held_form(b_, f.result_type(call.result), made);
}

}  // namespace tilegen::codegen
