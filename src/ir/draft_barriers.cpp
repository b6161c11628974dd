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
constexpr int64_t kWarp = 32;

// The part of the list from its first true to its last one, where all of it is.
std::optional<ThreadRange> run_of(const std::vector<bool>& list) {
  const auto first = std::find(list.begin(), list.end(), true);
  const auto end = std::find(first, list.end(), false);
  if (std::find(end, list.end(), true) != list.end()) return std::nullopt;
  return ThreadRange{first == list.end() ? 0 : first - list.begin(), end - first};
}

}  // namespace

// The threads that the guard holds for, where it names nothing but threads, and these follow each other; or
// the warps of which it holds for one lane each.
std::optional<DraftResolver::ComingBy> DraftResolver::guarded_threads() const {
  std::vector<int64_t> extents;
  int64_t threads = 1;
  for (ExprId e : threads_->head.extents) {
    p_.exprs.is_const_int(e, &extents.emplace_back(1));
    threads *= extents.back();
  }
  if (!threads_->guard.valid()) return ComingBy{{0, threads}};
  if (threads > kMaxThreads || p_.exprs[threads_->guard].depth > kDepth) return std::nullopt;
  std::vector<bool> here, warps;
  bool elected = true;
  ExprPool pool;
  std::vector<int64_t> point(extents.size(), 0);
  for (int64_t t = 0; t < threads; ++t) {
    int64_t rest = t;
    for (size_t d = extents.size(); d-- > 0; rest /= extents[d]) point[d] = rest % extents[d];
    const ExprId value = OfThread(p_.exprs, pool, threads_->head.vars, point).rewrite(threads_->guard);
    int64_t holds = 0;
    if (!pool.is_const_int(value, &holds)) return std::nullopt;
    here.push_back(holds != 0);
    if (t % kWarp == 0) warps.push_back(false);
    if (holds == 0) continue;
    elected = elected && !warps.back();
    warps.back() = true;
  }
  const auto of_warps = run_of(warps);
  if (elected && of_warps && of_warps->count > 0)
    return ComingBy{{of_warps->first * kWarp, of_warps->count * kWarp}, true};
  const auto range = run_of(here);
  return range ? std::optional(ComingBy{*range}) : std::nullopt;
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
  const std::optional<ComingBy> by = guarded_threads();
  if (!by)
    return error(
        DiagCode::misplaced_statement,
        word +
            " stands under a condition that does not say by the threads' numbers alone which threads it "
            "is of, warps behind each other or one lane of each",
        "let whole warps that follow each other come by: if warp == 4 { " + word + " ... }");
  const auto& [range, elected] = *by;
  if (range.count == 0) return;  // nobody comes by
  if (elected && is_named_barrier_op(op.kind))
    return error(DiagCode::misplaced_statement,
                 word + " is of one lane of a warp, and warps come by named barriers as a whole",
                 "put it outside of the if on the lane");
  if (elected && op.flag(mbarrier_arrive_attr::copies))
    return error(DiagCode::misplaced_statement,
                 word + " with copies is of one lane of a warp, whose own copies it waits for alone",
                 "let all lanes of the warp arrive with copies, and count each of them in arrivals");
  if (elected) op.attrs[mbarrier_arrive_attr::elected] = 1;
  int64_t all = 1, extent = 1;
  for (ExprId e : threads_->head.extents) p_.exprs.is_const_int(e, &extent), all *= extent;
  if (range.count < all) {
    op.attrs[first] = range.first;
    op.attrs[threads] = range.count;
  }
  run_tile_op(s, std::move(op), out);
}

}  // namespace tilegen::ir
