// The part of the thread-program verifier that looks at what warps do together: roles, transaction barriers,
// the copy engine, products of a warpgroup. One statement at a time; registers in flight: warpgroup_verify.h.
#pragma once

#include <string>

#include "layout/tensor_tile.h"
#include "thread/expr_verifier.h"
#include "thread/thread_program.h"

namespace tilegen::thread {

// Bytes to which a box's place in shared memory is aligned: eight rows of its swizzle.
inline int64_t box_alignment(const TensorMap& map) {
  return map.swizzle == 0 ? layout::kBoxAlignment : layout::kSwizzleRows * map.swizzle;
}

class CooperationVerifier {
 public:
  CooperationVerifier(const ThreadProgram& p, ExprVerifier& exprs) : p_(p), exprs_(exprs) {}

  void check_header();  // barriers, tensor maps, the variable of a persistent program
  // `last_of_body`: it stands where roles may.
  void check_roles(const Roles& roles, bool last_of_body);
  void enter(const Role& role) { first_ = role.first_thread, threads_ = role.threads; }
  void leave() { first_ = 0, threads_ = p_.threads; }

  void check(const OneThread& one);
  void check(const TransactionArrive& arrive);
  void check(const TransactionWait& wait);
  void check(const TransactionTest& test);
  void check(const FetchTile& fetch);
  void check(const Vote& vote);
  void check(const TensorLoad& load);
  void check(const TensorStore& store);
  void check(const BulkCommit&) {}
  void check(const BulkWait& wait);
  void check(const ProxyFence&) {}
  void check(const ClusterBarrier&);
  void check(const GridDependencyWait&);
  void check(const ClusterLoad& load);
  void check(const WarpgroupMma& mma);
  void check_places(const WarpgroupMma& mma, bool sparse);
  void check(const WarpgroupFence&) { check_warpgroup("a warpgroup fence"); }
  void check(const WarpgroupCommit&) { check_warpgroup("a warpgroup commit"); }
  void check(const WarpgroupWait& wait);

 private:
  void report(const std::string& text) { exprs_.report(text); }
  void check_cluster();
  void check_barriers(const TransactionBarriers& barriers);
  void check_counter();
  void check_map(const TensorMap& map);
  bool check_barrier(int barriers, ir::ExprId index, const std::string& what);
  void check_parity(ir::ExprId parity, const std::string& what);
  void check_box(int map, const std::vector<ir::ExprId>& coordinates, MemoryId memory, ir::ExprId index,
                 bool load);
  void check_warpgroup(const std::string& what);
  void check_shared_operand(const std::string& what, MemoryId memory, ir::ExprId index,
                            const MatrixForm& form, const std::vector<int64_t>& steps, int64_t rows,
                            int64_t k);
  bool check_registers(const std::string& what, MemoryId memory, ir::ExprId index, int64_t elements);

  const ThreadProgram& p_;
  ExprVerifier& exprs_;
  int64_t first_ = 0, threads_ = p_.threads;  // of the role the statements stand in
};

}  // namespace tilegen::thread
