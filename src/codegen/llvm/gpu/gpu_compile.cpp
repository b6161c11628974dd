#include "codegen/llvm/gpu/gpu_compile.h"

namespace tilegen::codegen {

std::optional<Error> foreign_atom(std::span<const thread::ThreadProgram> kernels,
                                  const target::Target& target) {
  for (const thread::ThreadProgram& k : kernels)
    for (const thread::Stmt& s : k.stmts) {
      auto* mma = std::get_if<thread::WarpMma>(&s.node);
      if (mma && !target::find_mma_atom(target, mma->atom))
        return backend_error(s.origin.empty() ? k.name : s.origin,
                             target.name + " has no matrix atom '" + mma->atom + "'");
    }
  return std::nullopt;
}

}  // namespace tilegen::codegen
