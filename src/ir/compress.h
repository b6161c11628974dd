// 2:4 sparse matrices: two values of each four neighbours along k, and words that tell their places; and the
// pruning that makes both, in statements that executors have.
//
//   compress x -> v, m  ->  parallel i, g in 32, 16 {   ; a group of four a point
//                             magnitudes of x[i, g * 4] ... x[i, g * 4 + 3]
//                             places = the places of the two greatest, of equal ones the earlier
//                             v[i, g * 2] = ..., v[i, g * 2 + 1] = ...
//                           }
//                           parallel i, q in 32, 4 { m[i, q] = places of the groups that the word tells of }
//
// A group's places take four bits: the lower one in the first two, the greater one in the next two. Groups
// follow each other from the lowest bits of a word on, so that the bytes of a row are the same in words of
// any size.
//
// requires: regions of a program being made, in a block outside of parallel loops.
// why here: parser and builder make the same statements of it.
// refuses: shapes that do not fit, tensors, types that have no product.
#pragma once

#include <optional>

#include "ir/program.h"
#include "support/limits.h"

namespace tilegen::ir {

constexpr int64_t kSparseGroup = 4, kSparseKept = 2;
constexpr int64_t kSparsePlaceBits = 2;  // of one value; so many bits as neighbours tell of a group

constexpr bool is_sparse_word(DType t) { return t == DType::u8 || t == DType::u16 || t == DType::u32; }

struct SparsePlaces {
  int64_t first = 0, second = 0;
};
// Of the group that element `k` of those that the word tells of is one of.
inline SparsePlaces sparse_places(int64_t word, int64_t k) {
  const int64_t bits = word >> (k / kSparseGroup * kSparseGroup);
  return {bits % kSparseGroup, (bits >> kSparsePlaceBits) % kSparseGroup};
}

struct Compression {
  Region src, values, meta;
};
// Appends the statements to `block`; what is wrong otherwise, without a place.
std::optional<Diagnostic> add_compression(Program& p, const Compression& what, const SourceLocation& location,
                                          Block& block, const Limits& limits);

}  // namespace tilegen::ir
