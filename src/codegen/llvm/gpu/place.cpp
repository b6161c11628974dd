#include "codegen/llvm/gpu/place.h"

namespace tilegen::codegen {

using llvm::Value;

Value* pointer(llvm::IRBuilder<>& b, const Place& at) {
  if (at.offset == 0) return at.pointer;
  bool shared = at.pointer->getType()->getPointerAddressSpace() == 3;
  Value* offset =
      shared ? b.getInt32(static_cast<uint32_t>(at.offset)) : b.getInt64(static_cast<uint64_t>(at.offset));
  return b.CreateGEP(b.getInt8Ty(), at.pointer, offset);
}

}  // namespace tilegen::codegen
