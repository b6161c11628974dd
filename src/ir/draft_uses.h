// Where a draft's names are assigned and used: positions of its statements, in program order.
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "ir/draft.h"

namespace tilegen::ir {

class DraftUses {
 public:
  DraftUses(const Program& p, const Draft& draft);

  int64_t position(StmtId s) const { return positions_[s.value]; }
  // The position up to which a value may be asked for; where a loop repeats uses, the loop's end.
  int64_t last(VarId var) const {
    const auto it = last_.find(var);
    return it == last_.end() ? -1 : it->second;
  }
  // Expressions that name it, those that loops repeat more than once, its own next value once.
  uint64_t count(VarId var) const {
    const auto it = count_.find(var);
    return it == count_.end() ? 0 : it->second;
  }
  // What statements inside `s` assign.
  const std::set<VarId>& assigned_in(StmtId s) const;
  // An if that holds nothing but assignments.
  bool is_pure(StmtId s) const { return pure_.contains(s); }
  // An if that holds an assignment.
  bool names(StmtId s) const { return naming_.contains(s); }

 private:
  struct OpenLoop {
    int64_t begin, end;
  };
  void walk(const Block& block);
  void visit(StmtId s);
  void use(ExprId root, VarId assigned = VarId());
  int64_t size(StmtId s) const;
  bool holds_only_assignments(const Block& block) const;

  const Program& p_;
  const Draft& draft_;
  std::vector<int64_t> positions_;
  std::map<VarId, int64_t> declared_, last_;
  std::map<VarId, uint64_t> count_;
  std::map<StmtId, std::set<VarId>> assigned_;
  std::set<StmtId> pure_, naming_;
  size_t assignments_ = 0;    // so far
  std::vector<StmtId> open_;  // statements around
  std::vector<OpenLoop> loops_;
  int64_t next_ = 0;
};

}  // namespace tilegen::ir
