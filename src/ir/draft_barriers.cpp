// Transaction barriers in blocks of threads: which threads arrive and wait is said by the ifs around.
#include "ir/draft_resolver.h"
#include "ir/op_kinds.h"
#include "ir/transaction_barriers.h"

namespace tilegen::ir {

namespace {

// What an expression is for one thread of the block.
class OfThread : public ExprRewriter {
 public:
  OfThread(const ExprPool& from, ExprPool& to, const std::vector<VarId>& vars,
           const std::vector<int64_t>& point)
      : ExprRewriter(from, to), vars_(vars), point_(point) {}

 protected:
  ExprId rewrite_var(const ExprNode& n) override {
    const auto it = std::find(vars_.begin(), vars_.end(), n.var());
    return it == vars_.end() ? to_->var(n.var(), n.type)
                             : to_->const_int(point_[static_cast<size_t>(it - vars_.begin())]);
  }

 private:
  const std::vector<VarId>& vars_;
  const std::vector<int64_t>& point_;
};

constexpr int64_t kMaxThreads = 4096;  // that are looked at one by one
constexpr int kDepth = 32;             // of conditions, for every thread

}  // namespace

// The threads that the guard holds for, where it names nothing but threads, and these follow each other.
std::optional<ThreadRange> DraftResolver::guarded_threads() const {
  std::vector<int64_t> extents;
  int64_t threads = 1;
  for (ExprId e : threads_->head.extents) {
    p_.exprs.is_const_int(e, &extents.emplace_back(1));
    threads *= extents.back();
  }
  if (!threads_->guard.valid()) return ThreadRange{0, threads};
  if (threads > kMaxThreads || p_.exprs[threads_->guard].depth > kDepth) return std::nullopt;
  ThreadRange found;
  ExprPool pool;
  std::vector<int64_t> point(extents.size(), 0);
  for (int64_t t = 0; t < threads; ++t) {
    int64_t rest = t;
    for (size_t d = extents.size(); d-- > 0; rest /= extents[d]) point[d] = rest % extents[d];
    const ExprId here = OfThread(p_.exprs, pool, threads_->head.vars, point).rewrite(threads_->guard);
    int64_t holds = 0;
    if (!pool.is_const_int(here, &holds)) return std::nullopt;
    if (holds == 0) continue;
    if (found.count == 0) found.first = t;
    if (found.first + found.count != t) return std::nullopt;
    ++found.count;
  }
  return found;
}

void DraftResolver::run_barrier_op(StmtId s, TileOp op, Block& out) {
  using namespace mbarrier_wait_attr;
  const std::string word(op_row(op.kind).text);
  end_part(out, uses_.position(s));
  if (!errors_.empty()) return;
  std::vector<ExprId> told = op.operands.front().offsets;
  told.push_back(op.value);
  for (const ExprId e : told)
    if (e.valid() && !is_alike(resolved(e), Of::block)) return refuse_divergent(word, true);
  if (op.attrs[threads] != 0 || op.attrs[first] != 0)
    return error(DiagCode::bad_attribute,
                 word + " names threads in a block of threads, where those that come by are meant",
                 "leave the attributes out, and put it in an if on the threads' numbers");
  const std::optional<ThreadRange> range = guarded_threads();
  if (!range)
    return error(
        DiagCode::misplaced_statement,
        word +
            " stands under a condition that does not say by the threads' numbers alone which threads it "
            "is of, one behind the other",
        "let whole warps that follow each other come by: if warp == 4 { " + word + " ... }");
  if (range->count == 0) return;  // nobody comes by
  int64_t all = 1, extent = 1;
  for (ExprId e : threads_->head.extents) p_.exprs.is_const_int(e, &extent), all *= extent;
  if (range->count < all) {
    op.attrs[first] = range->first;
    op.attrs[threads] = range->count;
  }
  run_tile_op(s, std::move(op), out);
}

}  // namespace tilegen::ir
