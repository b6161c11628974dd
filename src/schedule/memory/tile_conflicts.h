// Transactions of a tile's accesses in one layout after the other.
//
// requires: the requests of a tile (tile_accesses.h), and layouts of its shape.
// ensures: what layout::wavefronts says of each request, weighed by how often it is made.
// why here: the layouts of a tile are judged by the same requests, most of which differ by a constant that
//   moves all lanes alike: banks see nothing of it, and one request is counted for all of them.
// refuses: nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "layout/bank_model.h"
#include "layout/layout.h"
#include "schedule/memory/tile_accesses.h"

namespace tilegen::schedule {

struct TileTransactions {
  double weighed = 0;      // by the loops around the ops
  bool conflicts = false;  // some request takes more than it has to
};

class TileConflicts {
 public:
  // `accesses` and `shape` must outlive it.
  TileConflicts(const TileAccesses& accesses, const std::vector<int64_t>& shape, int element_bytes,
                const layout::BankModel& banks);

  // Of as many as are fewer than `most`.
  TileTransactions count(const layout::Layout& l, double most);

 private:
  // What requests of a class differ by, and keep the banks apart under:
  enum class Alike : uint8_t {
    bits,   // bits of row-major addresses, which swizzles move by themselves
    place,  // the place in the tile
    none    // nothing
  };
  struct Found {
    int64_t taken = 0;
    bool conflicts = false;
  };

  Alike alike_in(const layout::Layout& l) const;
  const std::vector<size_t>& classes(Alike alike);
  std::vector<int64_t> key(const TileRequest& r, Alike alike) const;
  Found found(const TileRequest& r, const layout::Layout& l);
  int bytes_of(const TileRequest& r) const { return static_cast<int>(r.elements) * bytes_; }

  const TileAccesses& accesses_;
  const std::vector<int64_t>& shape_;
  const int bytes_;
  const layout::BankModel banks_;
  const layout::Layout row_major_;
  std::array<std::optional<std::vector<size_t>>, 3> classes_;  // by Alike, of every request
  std::vector<int64_t> addresses_;                             // of the lanes of one request
};

}  // namespace tilegen::schedule
