// Arguments of packed types: tensors whose bytes hold several elements each (ir/packed_types.h), described by
// elements as DLPack does.
#pragma once

#include <string>
#include <vector>

#include "runtime/arguments.h"

namespace tilegen::runtime {

struct ByteDescription {
  Argument argument;
  std::vector<int64_t> shape, strides;  // the argument's
};
// Of an argument that has the rank of the tensor and the type that its bytes are of.
Checked describe_bytes(const Argument& by_elements, const ir::Buffer& tensor, ByteDescription& bytes);

// "u8 of i4"
std::string kept_text(const ir::Buffer& tensor);

}  // namespace tilegen::runtime
