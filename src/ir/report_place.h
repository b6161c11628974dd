// Where a statement of a launch's reports stands, as a number: blocks, iterations of loops and points of the
// parallel loop around it are its digits, the outermost first. What is told is told in their order, whoever
// runs the program.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/program.h"

namespace tilegen::ir {

struct PlaceDigit {
  VarId var;
  ExprId extent;  // over dims and scalars; none: of a loop, whose trips counted_trips() tells apart
};
int64_t counted_trips(std::span<const PlaceDigit> digits);

constexpr size_t kMaxMessage = 200;
// Printable characters of ASCII but the quotation mark, at most kMaxMessage.
bool is_message(std::string_view text);

// A statement of reports that is being made in the last kernel of a program.
class ReportMaker {
 public:
  // `around`: open loops and ifs, outermost first.
  ReportMaker(Program& p, std::span<const StmtId> around, const SourceLocation& location);

  bool in_parallel() const { return in_parallel_; }
  ExprId place() const { return place_; }
  // The program's workspace of that kind and type, made where it has none.
  BufferId buffer(Report kind, DType type, const char* name);
  StmtId add(std::variant<Loop, Branch, Store, TileOp> node);
  // The stores where they may stand: as they are inside a parallel loop, else in one of one point.
  Block placed(std::vector<Store> stores);

 private:
  ExprId number(std::span<const StmtId> around, std::span<const PlaceDigit> digits);

  Program& p_;
  const SourceLocation& location_;
  bool in_parallel_ = false;
  ExprId place_;
};

// Visits the statements of a whole program in order, each with the digits of its place, of which the first
// `blocks` are the kernel's. What a visit says no to is not entered.
using VisitPlace = std::function<bool(StmtId stmt, std::span<const PlaceDigit> digits)>;
void for_each_place(const Program& p, const VisitPlace& visit);

}  // namespace tilegen::ir
