#include "codegen/llvm/nvptx/product_foldings.h"

namespace tilegen::codegen {

using namespace thread;

std::vector<ProductFolding> find_foldings(const ThreadProgram& p, const RegisterFile& registers) {
  std::vector<ProductFolding> foldings(p.stmts.size());
  auto fold = [&](const Block& block, const auto& self) -> void {
    for (size_t i = 0; i < block.size(); ++i) {
      const StmtNode& node = p.stmts[block[i].value].node;
      for (const Block* inner : blocks_inside(node)) self(*inner, self);
      if (!std::holds_alternative<WarpgroupMma>(node)) continue;
      auto neighbour = [&](size_t at, auto is) {
        if (at >= block.size() || !is(p.stmts[block[at].value].node)) return false;
        return foldings[block[at].value].contained = true;
      };
      ProductFolding& f = foldings[block[i].value];
      f.fence_first =
          neighbour(i - 1, [](const StmtNode& n) { return std::holds_alternative<WarpgroupFence>(n); });
      for (size_t next = i + 1; f.fence_first && next < block.size(); ++next) {
        const auto* mma = std::get_if<WarpgroupMma>(&p.stmts[block[next].value].node);
        if (!mma) break;
        if (registers.owns(mma->a) || mma->sparse()) f.after_fence.push_back(mma);
      }
      f.commit_last =
          neighbour(i + 1, [](const StmtNode& n) { return std::holds_alternative<WarpgroupCommit>(n); });
    }
  };
  fold(p.body, fold);
  return foldings;
}

}  // namespace tilegen::codegen
