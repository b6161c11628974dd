#include "codegen/backend.h"

#include <utility>

#include "codegen/gpu_code.h"

namespace tilegen::codegen {

namespace {

using target::CodeFormat;
using Kernels = std::span<const thread::ThreadProgram>;

template <class Made>
Code common(Made& made) {
  Code code;
  code.llvm_ir = std::move(made.llvm_ir);
  code.llvm_ir_optimised = std::move(made.llvm_ir_optimised);
  code.emit_ms = made.emit_ms;
  code.optimise_ms = made.optimise_ms;
  code.codegen_ms = made.codegen_ms;
  return code;
}

Expected<Code> host(Kernels kernels, const target::Target& target, const CodeOptions& options) {
  HostCodegenOptions how;
  how.keep_ir = options.keep_ir;
  how.keep_assembly = options.keep_assembly;
  how.cancellation = options.cancellation;
  auto made = compile_host(kernels, target, how);
  if (!made) return made.error();
  Code code = common(*made);
  code.bytes = std::move(made->object);
  code.in_process = std::move(made->code);
  code.assembly = std::move(made->assembly);
  return code;
}

Expected<Code> nvptx(Kernels kernels, const target::Target& target, const CodeOptions& options) {
  GpuCodegenOptions how;
  how.keep_ir = options.keep_ir;
  how.cancellation = options.cancellation;
  auto made = compile_ptx(kernels, target, how);
  if (!made) return made.error();
  Code code = common(*made);
  code.bytes = std::move(made->ptx);
  if (options.keep_assembly) code.assembly = code.bytes;
  return code;
}

Expected<Code> amdgpu(Kernels kernels, const target::Target& target, const CodeOptions& options) {
  GpuCodegenOptions how;
  how.keep_ir = options.keep_ir;
  how.keep_assembly = options.keep_assembly;
  how.cancellation = options.cancellation;
  auto made = compile_hsaco(kernels, target, how);
  if (!made) return made.error();
  Code code = common(*made);
  code.bytes = std::move(made->hsaco);
  code.assembly = std::move(made->assembly);
  return code;
}

// In the order of CodeFormat.
constexpr Backend kBackends[] = {
    {CodeFormat::object, host}, {CodeFormat::ptx, nvptx}, {CodeFormat::hsaco, amdgpu}};
static_assert([] {
  for (size_t i = 0; i < std::size(kBackends); ++i)
    if (static_cast<size_t>(kBackends[i].format) != i) return false;
  return std::size(kBackends) == target::kCodeFormats;
}());

}  // namespace

const Backend& backend_of(const target::Target& target) {
  return kBackends[static_cast<size_t>(target.code)];
}

}  // namespace tilegen::codegen
