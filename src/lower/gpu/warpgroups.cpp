#include "lower/gpu/warpgroups.h"

#include "lower/addressing.h"
#include "lower/lowering_context.h"

namespace tilegen::lower {

thread::StmtId only_first_of_warpgroup(LoweringContext& k, thread::Block body, const std::string& origin,
                                       ExprId also, int64_t threads) {
  ir::ExprPool& e = k.out.exprs;
  const ExprId within = k.simplified(e.floormod(e.var(k.out.thread_var), e.const_int(k.in.target.warpgroup)));
  const ExprId first =
      threads == 1 ? e.binary(ir::ExprOp::eq, within, e.const_int(0)) : e.lt(within, e.const_int(threads));
  return k.out.add(thread::Branch{both(k, k.simplified(first), also), std::move(body), {}}, origin);
}

void for_each_warpgroup(LoweringContext& k, const std::function<thread::Block(int64_t)>& own,
                        thread::Block& out, const std::string& origin) {
  ir::ExprPool& e = k.out.exprs;
  const int64_t warpgroups = *k.in.schedule.threads / k.in.target.warpgroup;
  thread::Block rest = own(k.role.warpgroup.value_or(warpgroups - 1));
  if (k.role.warpgroup) {
    out.insert(out.end(), rest.begin(), rest.end());
    return;
  }
  for (int64_t w = warpgroups - 2; w >= 0; --w) {
    const ExprId mine =
        e.binary(ir::ExprOp::eq, e.floordiv(e.var(k.out.thread_var), e.const_int(k.in.target.warpgroup)),
                 e.const_int(w));
    rest = {k.out.add(thread::Branch{k.simplified(mine), own(w), std::move(rest)}, origin)};
  }
  out.insert(out.end(), rest.begin(), rest.end());
}

void warpgroup_barrier(LoweringContext& k, thread::Block& out, const std::string& origin) {
  for_each_warpgroup(
      k,
      [&](int64_t w) {
        const int number = k.out.named_barrier({thread::BarrierUse::warpgroup, w});
        return thread::Block{k.out.add(thread::Barrier{number, k.in.target.warpgroup, false}, origin)};
      },
      out, origin);
}

thread::Barrier order_barrier(LoweringContext& k, int64_t warpgroup, bool arrive_only) {
  return {k.out.named_barrier({thread::BarrierUse::order, warpgroup}), 2 * k.in.target.warpgroup,
          arrive_only};
}

void role_barrier(LoweringContext& k, thread::Block& out, const std::string& origin) {
  const int number = k.out.named_barrier({thread::BarrierUse::role});
  out.push_back(k.out.add(thread::Barrier{number, *k.in.schedule.threads, false}, origin));
}

}  // namespace tilegen::lower
