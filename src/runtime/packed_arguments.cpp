#include "runtime/packed_arguments.h"

#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::runtime {

Checked describe_bytes(const Argument& a, const ir::Buffer& tensor, ByteDescription& bytes) {
  const int64_t in_byte = ir::codes_in_byte(tensor.packed);
  bytes.shape.assign(a.shape.begin(), a.shape.end());
  bytes.strides.assign(a.strides.begin(), a.strides.end());
  const std::string many = std::to_string(in_byte) + " elements of " + ir::dtype_name(tensor.packed);
  const auto refused = [&](DiagCode code, const char* what, size_t d, int64_t value, const char* hint) {
    return Error(code, tensor.name,
                 what + std::to_string(d) + " of tensor '" + tensor.name + "' is " + std::to_string(value) +
                     ", and a byte holds " + many,
                 hint);
  };
  const size_t last = bytes.shape.size() - 1;
  int64_t& extent = bytes.shape[last];
  if (floor_mod(extent, in_byte) != 0)
    return refused(DiagCode::launch_shape, "extent ", last, extent, "pad it to whole bytes");
  extent = floor_div(extent, in_byte);
  for (size_t d = 0; d < bytes.strides.size(); ++d) {
    int64_t& stride = bytes.strides[d];
    if (a.shape[d] != 1 && (d == last ? stride != 1 : floor_mod(stride, in_byte) != 0))
      return refused(DiagCode::launch_stride, "stride ", d, stride,
                     "copy the tensor: its last stride is 1, the others are whole bytes");
    if (d != last) stride = floor_div(stride, in_byte);
  }
  bytes.argument = a;
  bytes.argument.type = tensor.type;
  bytes.argument.shape = bytes.shape;
  if (!bytes.strides.empty()) bytes.argument.strides = bytes.strides;
  return Unit{};
}

std::string kept_text(const ir::Buffer& tensor) {
  const std::string own = ir::dtype_name(tensor.type);
  return tensor.packed == ir::DType::none ? own : own + " of " + ir::dtype_name(tensor.packed);
}

}  // namespace tilegen::runtime
