// Packed types become bytes (ir/packed_types.h). Not used outside of that step.
#pragma once

#include <map>
#include <set>
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
  bool write_whole(StmtId s, int of);
  bool is_of_threads(StmtId s) const;
  void refuse_parts(StmtId s, const Block& written, int of);
  void merge(Block& body, std::vector<LaneExprs>& lanes);
  void merge_store(StmtId s, std::vector<LaneExprs>& lanes, Block& out);
  void join_stores(Block& body);
  Store byte_of(Store first, std::span<const ExprId> values);
  Block with_selects(const Block& body);

  // packed_parts.cpp: loops that write some elements of a byte
  struct Place {
    ExprId byte, element;  // of the byte
  };
  Place place_of(const Store& store);
  bool owns_bytes(const Loop& loop);
  Block of_lane(const Block& body, LaneExprs& lane, const std::vector<VarId>& from,
                const std::vector<VarId>& to);
  bool write_parts(StmtId s, int of);
  bool reads_written(const Block& body);
  void put_parts(const Block& body);
  void put_part(Store& store);
  void fill_parts(Kernel& kernel);

  // packed_tensor_parts.cpp: loops that write some elements of a byte of a tensor
  struct StoreRange {
    int begin, end;  // in the order of the body
    bool sets;       // the bits of a store of parts, else they are cleared
  };
  Block some_stores(const Block& body, ExprRewriter& renamed, StoreRange range, int& number);
  void change_bits(Store& store, bool sets);
  bool stores_race(const Loop& loop);
  bool write_tensor_parts(StmtId s);

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
  std::vector<bool> merged_;        // by statement: in a loop that is done
  std::set<BufferId> in_parts_;     // of the kernel: bytes of it are read and stored again
  std::map<StmtId, Block> behind_;  // loops that one has become, too
  std::vector<Diagnostic> errors_;
};

}  // namespace tilegen::ir
