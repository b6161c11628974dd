// A tile of 128 x 64 that threads write row by row: 64 requests, each a row below the one before.
//
//   padded rows      a request's banks are the first one's, moved by as many: the place of the first lane
//                    within a row of the banks tells all of it
//   swizzled rows    a swizzle is linear over XOR, and XOR with a constant renames banks: requests whose
//                    addresses differ by one constant take the same in every swizzle
//
// What is refused: nothing; where neither holds, requests are one that are equal.
#include "schedule/memory/tile_conflicts.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "support/checked.h"

namespace tilegen::schedule {

using layout::Layout;

namespace {

bool is_power_of_two(int64_t n) { return n > 0 && std::has_single_bit(static_cast<uint64_t>(n)); }

// An index moves its element by a constant, wherever it is.
bool is_affine(const Layout& l) {
  return l.swizzle().none() && std::all_of(l.digits().begin(), l.digits().end(), [&](const layout::Digit& d) {
           return d.dim != layout::kReplica && d.weight == 1 &&
                  d.extent >= l.shape()[static_cast<size_t>(d.dim)];
         });
}

}  // namespace

TileConflicts::TileConflicts(const TileAccesses& accesses, const std::vector<int64_t>& shape,
                             int element_bytes, const layout::BankModel& banks)
    : accesses_(accesses),
      shape_(shape),
      bytes_(element_bytes),
      banks_(banks),
      row_major_(Layout::row_major(shape)) {}

TileTransactions TileConflicts::count(const Layout& l, double most) {
  const Alike alike = alike_in(l);
  const std::vector<size_t>& of_request = classes(alike);
  std::map<std::pair<size_t, int64_t>, Found> known;
  TileTransactions c;
  for (size_t i = 0; i < accesses_.requests.size(); ++i) {
    const TileRequest& r = accesses_.requests[i];
    const int64_t place =
        alike == Alike::place
            ? floor_mod(l.offset({r.indices.data(), shape_.size()}) * bytes_, banks_.row_bytes())
            : 0;
    const auto [it, fresh] = known.try_emplace({of_request[i], place});
    if (fresh) it->second = found(r, l);
    c.weighed += r.weight * static_cast<double>(it->second.taken);
    c.conflicts = c.conflicts || it->second.conflicts;
    if (c.weighed >= most) break;
  }
  return c;
}

TileConflicts::Found TileConflicts::found(const TileRequest& r, const Layout& l) {
  addresses_.clear();
  for (size_t at = 0; at < r.indices.size(); at += shape_.size())
    addresses_.push_back(l.offset({r.indices.data() + at, shape_.size()}) * bytes_);
  const int64_t taken = layout::wavefronts(addresses_, bytes_of(r), banks_);
  return {taken, taken > layout::least_wavefronts(addresses_, bytes_of(r), banks_)};
}

TileConflicts::Alike TileConflicts::alike_in(const Layout& l) const {
  if (shape_.empty() || banks_.row_bytes() <= 0) return Alike::none;
  // Swizzled rows lie where plain ones do before the swizzle moves them, in units of what a lane accesses.
  const auto moves_whole = [&](const TileRequest& r) {
    return l.swizzle().none() || bytes_of(r) <= int64_t{1} << l.swizzle().base;
  };
  if (is_power_of_two(banks_.banks) && is_power_of_two(banks_.bank_bytes) &&
      l.digits() == row_major_.digits() && (l.swizzle().none() || l.element_bytes() == bytes_) &&
      std::all_of(accesses_.requests.begin(), accesses_.requests.end(), moves_whole))
    return Alike::bits;
  return is_affine(l) ? Alike::place : Alike::none;
}

const std::vector<size_t>& TileConflicts::classes(Alike alike) {
  std::optional<std::vector<size_t>>& list = classes_[static_cast<size_t>(alike)];
  if (!list) {
    std::map<std::vector<int64_t>, size_t> numbers;
    list.emplace();
    for (const TileRequest& r : accesses_.requests)
      list->push_back(numbers.emplace(key(r, alike), numbers.size()).first->second);
  }
  return *list;
}

// Equal for requests of one class.
std::vector<int64_t> TileConflicts::key(const TileRequest& r, Alike alike) const {
  const size_t rank = shape_.size();
  const int bytes = bytes_of(r);
  std::vector<int64_t> key = {bytes};
  key.reserve(1 + r.indices.size());
  if (alike != Alike::bits) {
    for (size_t i = 0; i < r.indices.size(); ++i)
      key.push_back(r.indices[i] - (alike == Alike::place ? r.indices[i % rank] : 0));
    return key;
  }
  bool aligned = is_power_of_two(bytes);
  for (size_t at = 0; at < r.indices.size(); at += rank) {
    key.push_back(row_major_.offset({r.indices.data() + at, rank}) * bytes_);
    aligned = aligned && key.back() % bytes == 0;
  }
  if (!aligned) return key;
  for (size_t i = key.size(); i-- > 1;) key[i] ^= key[1];
  key.push_back(-1);  // not the addresses themselves
  return key;
}

}  // namespace tilegen::schedule
