#include "ir/print.h"

#include <atomic>

namespace tilegen::ir {
namespace {

bool is_printed_as_float(DType t) { return is_float(t); }

}  // namespace

bool has_room_for_print(const Program& p, size_t values) {
  return static_cast<int64_t>(p.prints.size() + std::max<size_t>(values, 1)) <= kMaxPrinted;
}

void add_print(Program& p, const Print& what, const SourceLocation& location, Block& block) {
  ReportMaker make(p, what.around, location);
  ExprPool& e = p.exprs;
  std::vector<Store> stores;
  const auto append = [&](ExprId value, DType type) {
    const bool floating = type != DType::none && is_printed_as_float(type);
    const DType kept = floating ? DType::f64 : DType::i64;
    Store store;
    store.buffer = make.buffer(Report::prints, kept, floating ? "print.floats" : "print.integers");
    p.buffers[store.buffer.value].shape = {e.const_int(kPrintRows), e.const_int(kMaxPrinted)};
    store.indices = {make.place(), e.const_int(static_cast<int64_t>(p.prints.size()))};
    store.value = value.valid() ? e.cast(kept, value) : e.const_int(0);
    store.atomic = AtomicKind::append;
    p.prints.push_back({what.text, static_cast<int64_t>(stores.size()), type});
    stores.push_back(std::move(store));
  };
  for (ExprId value : what.values) append(value, e.type(value));
  if (what.values.empty()) append(ExprId(), DType::none);
  for (StmtId s : make.placed(std::move(stores))) block.push_back(s);
}

int64_t printed_at(const Program& p, StmtId stmt) {
  const auto* store = p.as<Store>(stmt);
  int64_t number = -1;
  if (!store || store->atomic != AtomicKind::append || !p.exprs.is_const_int(store->indices[1], &number))
    return -1;
  return number;
}

ExprId printed_value(const Program& p, const Store& store, DType type, bool& converts) {
  const ExprNode& n = p.exprs[store.value];
  const bool widened = n.op == ExprOp::cast && p.exprs.type(n.a) == type;
  converts = !widened && n.type != type;
  return widened ? n.a : store.value;
}

void append_record(void* buffer, int64_t index, uint64_t bits) {
  auto* words = static_cast<uint64_t*>(buffer);
  const uint64_t at = std::atomic_ref(words[0]).fetch_add(1, std::memory_order_relaxed);
  if (at >= static_cast<uint64_t>(kPrintRecords)) return;
  words[1 + 2 * at] = static_cast<uint64_t>(index);
  words[2 + 2 * at] = bits;
}

}  // namespace tilegen::ir
