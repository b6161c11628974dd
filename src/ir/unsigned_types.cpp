#include "ir/unsigned_types.h"

namespace tilegen::ir {

DType unsigned_of(int bits) {
  switch (bits) {
    case 2:
      return DType::u2;
    case 4:
      return DType::u4;
    case 8:
      return DType::u8;
    case 16:
      return DType::u16;
    case 32:
      return DType::u32;
    default:
      return DType::u64;
  }
}

}  // namespace tilegen::ir
