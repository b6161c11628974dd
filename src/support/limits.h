// Bounds on what one program may ask of the compiler. A caller may only lower them.
#pragma once

#include <cstdint>

namespace tilegen {

struct Limits {
  int64_t text_bytes = 8 << 20;  // .tl or JSON text
  int64_t expr_nodes = 1 << 20;  // expressions in one program
  int64_t expr_depth = 256;      // longest operand chain of one expression
  int64_t statements = 1 << 16;
  int64_t buffers = 1 << 12;
  int64_t nesting = 64;             // loops and ifs around a statement
  int64_t rank = 8;                 // dimensions of a buffer or parallel loop
  int64_t tile_elements = 1 << 24;  // elements of one on-chip buffer
  int64_t unroll = 1 << 14;         // product of the extents of nested unrolled loops
  int64_t diagnostics = 64;         // kept by one builder or parse
  int64_t domain_values = 256;      // of one compile-time parameter
};

}  // namespace tilegen
