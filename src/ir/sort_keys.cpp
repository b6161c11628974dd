#include "ir/sort_keys.h"

namespace tilegen::ir {

Tiles SortStatements::take_keys(MemScope scope) {
  const int64_t padded = padded_extent();
  const Tiles keys = tiles("keys", scope, padded);
  const Exprs point = loops_.begin(what_.src.extents);
  loops_.store(keys, point,
               keys_.of(loops_.load(what_.src.buffer, element_of(e_, what_.src, point)), point[axis_]));
  if (padded > extent()) {
    const Exprs behind = loops_.begin(with_axis(padded - extent()));
    loops_.store(keys, at(behind, e_.add(behind[axis_], extent())), keys_.padding());
  }
  return keys;
}

void SortStatements::put_results(const Tiles& keys) {
  const Exprs point = loops_.begin(what_.dst.extents);
  const Exprs key = loops_.load(keys, point);
  loops_.store(what_.dst.buffer, element_of(e_, what_.dst, point), keys_.element(key));
  if (what_.index)
    loops_.store(what_.index->buffer, element_of(e_, *what_.index, point),
                 keys_.place(key, p_.buffer(what_.index->buffer).type));
}

}  // namespace tilegen::ir
