// The instructions of inline assembly that AMD kernels have (emit_async.cpp), so that LLVM's code
// generator encodes them. LLVM's own parser for the target adds 6 MB of tables to the library.
#pragma once

namespace tilegen::codegen {

// Comes after LLVM's target is there; once.
void register_load_lds_parser();

}  // namespace tilegen::codegen
