// Operations of a scheduled program on the tiles that their values mean where they are issued, and the time
// between an operation's issue and its effect.
#pragma once

#include <functional>
#include <memory>

#include "interp/block_tiles.h"
#include "interp/execution.h"
#include "interp/op_sink.h"

namespace tilegen::interp {

// What a value means at a statement. `handed`: a producer fills its slots, and nobody else may.
struct Place {
  Tile* tile = nullptr;
  Use use;
  bool handed = false;
};
// Of a value that the statement touches.
using Places = std::function<Place(ValueId value)>;

// An operation that is ready to take effect: its variables and scalars have been read.
struct Operation {
  struct Access {
    ir::BufferId buffer;
    Place place;
    bool read = false, write = false;
  };
  ir::StmtId stmt;
  ir::TileOp meaning;            // of a tile operation
  std::unique_ptr<OpSink> sink;  // nullptr: a store or a parallel loop
  std::vector<Access> accesses;
  bool under_way = false;  // issued, and not in effect
};

class Operations {
 public:
  Operations(Execution& run, const ir::Program& p, const expand::ScheduledKernel& k);

  // `overwrite`: a product that does not add to its sums. A failure is seen by Execution::failed.
  std::unique_ptr<Operation> prepare(ir::StmtId stmt, bool overwrite, const Places& places);
  // Runs it now.
  void execute(Operation& o);
  // It is issued and takes effect with finish(): a copy fills slots that nobody reads any more; a product has
  // yet to read its operands. A loop of element copies reads what it copies at once.
  void issue_copy(Operation& o);
  void issue_product(Operation& o);
  void finish(Operation& o);

  // What a statement's scalars read are its values' tiles.
  void with_scalars(ir::StmtId stmt, const Places& places, const std::function<void()>& work);

  // Fails where an operand of the statement cannot be read now.
  void check_operands(const Operation& o);

  const analysis::KernelOp* op_of(ir::StmtId stmt) const;
  std::string use_text(const Use& u) const;
  void fail(ir::StmtId at, std::string message);

 private:
  void exchange(const std::vector<Operation::Access>& accesses);
  void check_read(const Operation& o, const Place& place);
  void begin_write(const Operation& o, const Place& place, bool copy);
  void run(Operation& o);

  Execution& run_;
  const ir::Program& p_;
  const expand::ScheduledKernel& k_;
};

}  // namespace tilegen::interp
