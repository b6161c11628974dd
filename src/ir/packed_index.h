// Places of elements that share a byte: an index is so many times the elements of a byte, and a rest.
#pragma once

#include "ir/program.h"

namespace tilegen::ir {

class PackedIndex {
 public:
  explicit PackedIndex(Program& p) : p_(p), e_(p.exprs) {}

  // It divides the value, as far as forms and facts of dims tell.
  bool divides(int64_t d, ExprId e, int depth = 12) const;
  // e / d, where d divides it.
  ExprId quotient(ExprId e, int64_t d);

  // The value is d * times + rest; a constant rest is one of 0 .. d - 1.
  struct Split {
    ExprId times, rest;
  };
  Split split(ExprId e, int64_t d) { return split(e, d, 12); }
  bool is(ExprId e, int64_t v) const;

 private:
  Split split(ExprId e, int64_t d, int depth);

  Program& p_;
  ExprPool& e_;
};

}  // namespace tilegen::ir
