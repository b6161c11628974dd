#include "ir/thread_ids.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "ir/point_loops.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

constexpr const char* kTexts[kIdOps] = {"thread_id", "lane_id",      "warp_id",       "warpgroup_id",
                                        "block_id",  "cluster_rank", "cluster_blocks"};
constexpr int64_t kWarp = 32, kWarpgroup = 128;
constexpr int64_t kMaxThreads = int64_t{1} << 20;  // more than a block has

// Of numbers that count row-major over variables.
class RowMajor {
 public:
  RowMajor(ExprPool& pool, const std::vector<VarId>& vars, const std::vector<ExprId>& extents)
      : e_(pool), vars_(vars), extents_(extents) {}

  ExprId number() {
    ExprId sum = e_.var(vars_.front());
    for (size_t d = 1; d < vars_.size(); ++d) sum = e_.add(e_.mul(sum, extents_[d]), e_.var(vars_[d]));
    return sum;
  }

  // The number divided by `by`, or what is left. Where variables count whole ones or parts of one, those
  // alone are named.
  ExprId divided(int64_t by, bool rest) {
    ExprId sum = e_.const_int(0);
    int64_t stride = 1;
    std::vector<ExprId> terms;
    for (size_t d = vars_.size(); d-- > 0;) {
      int64_t extent = 1;
      e_.is_const_int(extents_[d], &extent);
      extent = std::clamp<int64_t>(extent, 1, kMaxThreads);  // others were refused
      const ExprId v = e_.var(vars_[d]);
      if (stride % by == 0) {
        if (!rest) terms.push_back(e_.mul(v, stride / by));
      } else if (by % stride == 0) {
        const int64_t parts = by / stride;
        if (rest)
          terms.push_back(e_.mul(extent <= parts ? v : e_.floormod(v, e_.const_int(parts)), stride));
        else if (extent > parts)
          terms.push_back(e_.floordiv(v, e_.const_int(parts)));
      } else {
        return rest ? e_.floormod(number(), e_.const_int(by)) : e_.floordiv(number(), e_.const_int(by));
      }
      stride = std::min(stride * extent, kMaxThreads);
    }
    for (auto term = terms.rbegin(); term != terms.rend(); ++term)
      sum = term == terms.rbegin() ? *term : e_.add(sum, *term);
    return sum;
  }

 private:
  ExprPool& e_;
  const std::vector<VarId>& vars_;
  const std::vector<ExprId>& extents_;
};

const Annotation* annotation_of(const Kernel& kernel, std::string_view key) {
  for (const Annotation& a : kernel.annotations)
    if (a.key == key) return &a;
  return nullptr;
}

std::variant<ExprId, Diagnostic> of_cluster(Program& p, IdOp op) {
  const Kernel& kernel = p.kernels.back();
  const Annotation* blocks = annotation_of(kernel, "cluster");
  const Annotation* along = annotation_of(kernel, "cluster_along");
  int64_t count = 1;
  if (blocks) {
    const std::string& text = blocks->values.front();
    std::from_chars(text.data(), text.data() + text.size(), count);
  }
  if (op == IdOp::cluster_blocks) return p.exprs.const_int(count);
  if (count <= 1) return p.exprs.const_int(0);
  std::string known;
  for (VarId v : kernel.block_vars) {
    const std::string& name = p.var(v).name;
    if (along ? name == along->values.front() : kernel.block_vars.size() == 1)
      return p.exprs.floormod(p.exprs.var(v), p.exprs.const_int(count));
    known += (known.empty() ? "" : " or ") + name;
  }
  return diagnostic(DiagCode::bad_attribute,
                    std::string(id_op_text(op)) + " asks for a block's number in its cluster of " +
                        std::to_string(count) + ", and the kernel does not say which block index counts it" +
                        (along ? ": it has no index '" + along->values.front() + "'" : ""),
                    "annotate the kernel with cluster_along = " + known);
}

}  // namespace

const char* id_op_text(IdOp op) { return kTexts[static_cast<size_t>(op)]; }

std::optional<IdOp> id_op_from_text(std::string_view text) {
  for (int op = 0; op < kIdOps; ++op)
    if (text == kTexts[op]) return static_cast<IdOp>(op);
  return std::nullopt;
}

std::variant<ExprId, Diagnostic> make_id(Program& p, IdOp op, const Loop* threads) {
  if (is_of_cluster(op)) return of_cluster(p, op);
  if (op == IdOp::block) {
    const Kernel& kernel = p.kernels.back();
    return RowMajor(p.exprs, kernel.block_vars, kernel.grid).number();
  }
  if (!threads)
    return diagnostic(DiagCode::misplaced_statement,
                      std::string(id_op_text(op)) + " stands outside of a block of threads",
                      "write what each thread does in threads warp, lane in 4, 32 { }");
  RowMajor thread(p.exprs, threads->vars, threads->extents);
  if (op == IdOp::thread) return thread.number();
  return thread.divided(op == IdOp::warpgroup ? kWarpgroup : kWarp, op == IdOp::lane);
}

}  // namespace tilegen::ir
