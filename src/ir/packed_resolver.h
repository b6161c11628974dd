// Packed types become bytes (ir/packed_types.h). Not used outside of that step.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/draft.h"
#include "ir/packed_codes.h"
#include "ir/packed_index.h"
#include "ir/packed_lanes.h"
#include "support/diag_codes.h"

namespace tilegen::ir {

class PackedTypes {
 public:
  PackedTypes(Program& p, const Draft& draft) : p_(p), draft_(draft), index_(p), exprs_(p, buffers_) {}

  std::vector<Diagnostic> run();

 private:
  void error(DiagCode code, std::string message, std::string hint);

  void declare(BufferId id);
  const PackedBuffer* packed(BufferId b) const {
    const auto it = buffers_.find(b);
    return it == buffers_.end() ? nullptr : &it->second;
  }
  bool shares_bytes(BufferId b) const { return packed(b) && packed(b)->in_byte > 1; }

  bool takes(BufferId b, ExprId value);

  void statement(StmtId s);
  // A store whose element has a byte, or several, of its own.
  void plain_store(Store& store);
  void tile_op(StmtId s, TileOp op);
  void fill(StmtId s, TileOp op);
  void copy(StmtId s, TileOp op);
  void element_by_element(StmtId s, const TileOp& op);
  // A box of bytes in the place of one of elements; false where it is none.
  bool box_of_bytes(Region& r);

  // Loops whose stores share bytes.
  int shared_elements(const Block& body) const;
  void write_bytes(StmtId s);
  void merge(Block& body, std::vector<LaneExprs>& lanes);
  void merge_store(StmtId s, std::vector<LaneExprs>& lanes, Block& out);
  void join_stores(Block& body);
  Store byte_of(Store first, std::span<const ExprId> values);
  StmtId add(Store store) {
    p_.stmts.push_back({std::move(store), location_});
    return StmtId(p_.stmts.size() - 1);
  }

  Program& p_;
  const Draft& draft_;
  PackedIndex index_;
  PackedBuffers buffers_;
  PackedExprs exprs_;
  Kernel* kernel_ = nullptr;
  SourceLocation location_;
  std::vector<bool> merged_;  // by statement: in a loop that is done
  std::vector<Diagnostic> errors_;
};

}  // namespace tilegen::ir
