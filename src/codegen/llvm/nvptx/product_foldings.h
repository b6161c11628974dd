// Which neighbours of a warpgroup's products share their assembly.
#pragma once

#include <vector>

#include "codegen/llvm/gpu/register_file.h"
#include "thread/thread_program.h"

namespace tilegen::codegen {

struct ProductFolding {
  bool contained = false;                         // a fence or commit that the product's code contains
  bool fence_first = false, commit_last = false;  // a product
  // Those with A or places in registers that follow it.
  std::vector<const thread::WarpgroupMma*> after_fence;
};

// By StmtId.
std::vector<ProductFolding> find_foldings(const thread::ThreadProgram& p, const RegisterFile& registers);

}  // namespace tilegen::codegen
