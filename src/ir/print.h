// Print statements, in statements that executors have.
//
//   print "x", x[i, j], n  ->  append(printed[b * 4096 + i * 64 + j, 0], cast(f64, x[i, j]))
//                              append(printed_integers[b * 4096 + i * 64 + j, 1], n)
//
// The buffers are workspaces that no text declares: a count of records, 0 when the first kernel begins, then
// records of 16 bytes. An append takes the next record, if one is left, and leaves in it its linear index,
// the place (ir/report_place.h) and the number of the value, and the value. The launch sorts what is there.
//
// requires: a program being made; the statements that are open around the print. ensures: the block of its
//   own has a Store more for each value, outside of parallel loops in one of one point.
// why here: parser and builder make the same statements of it, and printing and the runtime read them.
#pragma once

#include "ir/report_place.h"

namespace tilegen::ir {

constexpr int64_t kMaxPrinted = 256;  // values of a program
constexpr int64_t kPrintRows = 512;   // of the buffers, kMaxPrinted words each
constexpr int64_t kPrintRecords = kPrintRows * kMaxPrinted / 2 - 1;

struct Print {
  std::string text;
  std::vector<ExprId> values;
  std::vector<StmtId> around;  // open loops and ifs, outermost first
};
// Whether the program has room for so many more values.
bool has_room_for_print(const Program& p, size_t values);
// Statements it adds, at most.
inline int64_t print_statements(size_t values) { return static_cast<int64_t>(values) + 2; }

void add_print(Program& p, const Print& what, const SourceLocation& location, Block& block);

// The number of the value that a statement prints, or -1; what it prints.
int64_t printed_at(const Program& p, StmtId stmt);
// The value as the program has it: of Program::Printed::type, where `converts` once that is cast to.
ExprId printed_value(const Program& p, const Store& store, DType type, bool& converts);

// How an executor of host memory does an append to a buffer of Report::prints: one at a time.
void append_record(void* buffer, int64_t index, uint64_t bits);

}  // namespace tilegen::ir
