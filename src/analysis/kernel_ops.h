// A kernel as layout inference sees it: its ops in program order, and for every access to an on-chip buffer
// the value it reads or writes.
//
// A value is a web: definitions and uses of one buffer that must live in the same place because some use may
// see any of those definitions. A definition that overwrites the whole buffer starts a new web, so a buffer
// reused for something else may be laid out anew, and a conversion has a place to stand.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/program.h"
#include "ops/element_view.h"
#include "ops/op.h"
#include "plan/schedule.h"
#include "support/id_vector.h"

namespace tilegen::analysis {

using ValueId = Id<struct ValueTag>;  // of KernelOps::values
using OpId = Id<struct OpTag>;        // of KernelOps::ops

struct Value {
  ir::BufferId buffer;
  std::string name;  // "kernel:buffer", "kernel:buffer@1", ...
  ir::MemScope scope = ir::MemScope::shared;
  std::vector<int64_t> shape;
};

using ops::OpForm;

struct OpAccess {
  ir::BufferId buffer;
  ValueId value;  // invalid: a global tensor
  bool read = false, write = false;
  int operand = -1;  // tile ops: operand number
};

struct KernelOp {
  ir::StmtId stmt;
  OpForm form = OpForm::element;
  std::string path;
  SourceLocation location;
  ops::ElementView view;          // element form; accesses parallel to `accesses`
  std::optional<ops::Scan> scan;  // element form: points along an axis follow each other
  std::vector<OpAccess> accesses;
  int depth = 0;  // loops around it
};

struct KernelOps {
  IdVector<ValueId, Value> values;
  IdVector<OpId, KernelOp> ops;  // program order
  // Which value of a buffer the scalars of a statement read: conditions, loop bounds, region offsets, fill
  // values.
  std::map<std::pair<ir::StmtId, ir::BufferId>, ValueId> scalar_reads;

  // Of which some use may see what an earlier iteration of a loop left, with nothing written before the loop.
  std::set<ValueId> exposed;

  // Value an op's access to `buffer` means; where reads and writes of one buffer by one op are different
  // values (never: they are joined), the first.
  ValueId value_of(const KernelOp& op, ir::BufferId buffer) const;
  OpId id_of(const KernelOp& op) const { return ops.id_of(op); }
};

// Of a schedule or of what is planned so far, parallel to KernelOps::values and KernelOps::ops.
using ValuePlans = IdSpan<ValueId, const plan::ValuePlan>;
using OpPlans = IdSpan<OpId, const plan::OpPlan>;

KernelOps collect_kernel_ops(const ir::Program& p, int kernel);

}  // namespace tilegen::analysis
