// What a store reads, and what it writes.
#pragma once

#include "ir/program.h"

namespace tilegen::ir {

// visit(ExprId) of each expression; of a store that is no constant, visit(ExprId&).
template <class AnyStore, class Visit>
void visit_exprs(AnyStore& store, Visit&& visit) {
  for (auto& index : store.indices) visit(index);
  visit(store.value);
  if (store.expected.valid()) visit(store.expected);
  if (store.old)
    for (auto& index : store.old->indices) visit(index);
}

// visit(BufferId, indices) of each element that it writes.
template <class Visit>
void visit_written(const Store& store, Visit&& visit) {
  visit(store.buffer, store.indices);
  if (store.old) visit(store.old->buffer, store.old->indices);
}

inline bool writes(const Store& store, BufferId buffer) {
  return store.buffer == buffer || (store.old && store.old->buffer == buffer);
}

}  // namespace tilegen::ir
