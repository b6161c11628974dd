// The state after random_case: what is declared, what is in scope, how much work was spent.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "random_program.h"

namespace tilegen::differential {

using ir::DType;
using ir::MemScope;

double tile_cap(DType t);     // largest magnitude a tile or tensor of a floating type keeps
double exact_limit(DType t);  // whole numbers up to here are exact
std::string number_text(DType t, int64_t v);
bool converts(DType from,
              DType to);  // may an element become `to` without leaving what a buffer of `to` keeps?
int64_t product(const std::vector<int64_t>& shape);

struct Expr {
  std::string text;
  double bound = 0;  // floating: largest magnitude
};

struct Extent {
  std::string text;
  int64_t value = 0;
};

struct Tile {
  std::string name;
  MemScope scope = MemScope::shared;
  DType type = DType::f32;
  std::vector<int64_t> shape;
  bool written = false;  // every element, on every path to here
};

struct RandomTensor {
  std::string name;
  DType type = DType::f32;
  std::vector<Extent> shape;
  std::vector<int> grid_of;  // output of this kernel: grid variable that walks the dimension, or -1
  bool readable = true;      // inputs, and outputs of kernels before
  size_t innermost = 0;      // the dimension whose elements lie beside each other
  bool workspace = false;    // written by a copy behind it alone
};

// A variable an index may use: its values are 0 .. extent-1 when extent > 0, anything when 0.
struct IndexVar {
  std::string name;
  int64_t extent = 0;
};

struct GridVar {
  std::string name;
  Extent extent;
  int64_t tile = 1;
  std::string dim;  // after ceildiv, else empty
  int64_t dim_value = 0;
};

class Generator {
 public:
  Generator(uint64_t seed, const RandomProgramOptions& options) : r_(seed), options_(options) {}
  Case run(uint64_t seed);
  Case run_integers(uint64_t seed);

 private:
  // random_program.cpp: declarations and kernels
  void declare_params();
  std::string constant_text(int64_t value);
  void declare_dims();
  void declare_inputs();
  Extent random_extent();
  std::string declare_tensor(RandomTensor t, bool read_only);
  void kernel(int index);
  void grid();
  void make_output(DType type, bool extra_dimension);
  void observe_tiles();
  Tile* tile_of(std::vector<int64_t> shape, DType type, MemScope scope);
  Tile* any_tile(bool (*fits)(const Tile&), bool needs_written);
  void ensure_written(Tile& t);
  std::string fresh(const char* prefix) { return prefix + std::to_string(names_++); }
  DType random_type() {
    return r_.pick({DType::f32, DType::f32, DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32,
                    DType::i32, DType::i8, DType::u8, DType::i64, DType::i16, DType::u16, DType::u32,
                    DType::u64, DType::boolean});
  }
  int64_t random_tile_extent() {
    return r_.pick<int64_t>({1, 2, 3, 4, 5, 7, 8, 8, 9, 12, 16, 16, 17, 24, 31, 32, 33});
  }

  // random_statements.cpp
  void statements(int count, int depth);
  void statement(int depth);
  void copy_in();
  void copy_out();
  void copy_tiles();
  void fill();
  void gemm();
  std::array<int64_t, 3> gemm_extents(int64_t max_k);
  void gemm_loop();
  std::string declare_atom(DType a, DType b, DType c);
  void sparse_gemm();
  void reduce();
  // A part of the tile, as text; the tile's shape becomes the part's.
  std::string part_of(Tile& tile);
  // The type that elements are combined in.
  DType combined_type(DType from);
  void cumsum();
  void scan(const Tile& from, const std::string& region, size_t axis);
  std::string carry_of(const Tile& from, size_t axis, int count, std::vector<std::string> others);
  void chain();
  void parallel();
  void parallel_store(Tile* target, RandomTensor* output);
  std::string named_value(const std::string& value, DType t);
  void uniform_store();
  void branch(int depth);
  void switch_cases(int depth);
  void loop(int depth);
  void clamp(const Tile& t);
  bool affordable(int64_t elements);
  std::string own_region(const RandomTensor& o, const std::vector<int64_t>& extents, bool as_indices,
                         const std::vector<std::string>& points);
  std::vector<int64_t> own_extents(const RandomTensor& o);
  void line(const std::string& text) {
    body_ += std::string(static_cast<size_t>(indent_) * 2, ' ') + annotated(text) + "\n";
  }

  // random_words.cpp
  void declare_functions();
  std::string call(const std::string& a, const std::string& b);
  void while_loop(int depth);
  void update_shared();
  std::string order();
  void arg_reduce();
  void sort_rows();
  std::string first_group(DType type, bool two);
  void combine_rows();
  void view_of_tile();
  Tile random_view(const Tile& of);
  Tile view_as_operand(const Tile& of);
  std::string reshaped(const Tile& of, const std::vector<int64_t>& shape);
  bool view_of_other_width(Tile& view);
  std::vector<int64_t> random_factors(int64_t elements);

  // random_accesses.cpp
  std::vector<std::string> begin_points(const std::vector<int64_t>& extents);
  void end_points(size_t outer_vars);
  std::string fetch(DType t, const std::string& element);
  void old_values();
  void taken_places();
  void assertion();
  std::string unpacked(DType packed, const std::string& element, DType to);
  void packed_elements();
  void leave_in_workspace(const Tile& t);

  // random_reports.cpp
  void begin_reports(uint64_t seed);
  void report();
  void report_points(int64_t points);
  bool has_room_for_print(int64_t values, int64_t times);
  void print_values(int64_t points);
  void print_tile();
  void leave_early();
  void annotate_caches();

  // random_optionals.cpp
  void begin_optionals(uint64_t seed);
  void use_optional();
  void optional_statements();

  // random_calls.cpp
  void begin_calls(uint64_t seed);
  void use_call();
  std::string argument(DType t, double low, double high, bool anything);
  void inexact_call();

  // random_orders.cpp
  void begin_orders(uint64_t seed);
  void use_order();
  void ordered_update();
  void ordered_kernels();
  std::string some_blocks(int64_t rows);
  void last_block();
  void chained_blocks();

  // random_boxes.cpp
  struct Boxes {
    DType type = DType::f32;
    int64_t rows = 0, columns = 0;
    std::string source, result, slots;  // names
    std::string place, column;          // the block's of the result, that a box begins at
  };
  void begin_boxes(uint64_t seed);
  void use_box();
  Boxes declare_boxes();
  std::string added(const Boxes& b, const std::string& slot, const std::string& thread);
  std::string joined(const Boxes& b, const std::string& sum, const std::string& element);
  void ring_of_boxes();
  void grouped_boxes();

  // random_meetings.cpp
  void begin_meetings(uint64_t seed);
  void use_meeting();
  void two_sides(bool ring);

  // random_narrow_products.cpp
  void begin_narrow_products(uint64_t seed);
  void use_narrow_product();
  void narrow_elements(const std::string& tile, DType type, const std::vector<int64_t>& shape);
  void narrow_product();

  // random_annotations.cpp
  std::string annotated(std::string text);
  std::string tile_annotation(MemScope scope, DType type, const std::vector<int64_t>& shape);
  std::string kernel_annotation();

  // random_threads.cpp
  void thread_block();
  void thread_ring();
  void thread_copies();
  std::string begin_threads(const std::vector<int64_t>& extents);
  void end_threads(size_t outer_vars);
  std::string exchanged(DType type, const std::string& value, const std::string& lane, int64_t lanes);

  // random_expr.cpp
  Expr expr(DType t, int depth);
  Expr leaf(DType t);
  DType type_at_hand();
  Expr float_expr(DType t, int depth);
  Expr int_expr(DType t, int depth);
  Expr bool_expr(int depth);
  std::string words_of(const std::string& seed, const std::string& offset);
  Expr converted(DType t, int depth);
  Expr by_bits(DType t, int depth);
  Expr bounded(Expr e, DType t, double bound);
  Expr load_tile(const Tile& t);
  Expr load_plainly(const Tile& t);  // by loop variables over whole extents; no text where there are none
  Expr load_tensor(const RandomTensor& t);
  std::string index(int depth);              // any i64
  std::string offset(int64_t step);          // any uniform i64, mostly a multiple of step
  std::string index_within(int64_t extent);  // 0 .. extent-1

  // random_integers.cpp
  int64_t edge();
  std::string integer(int depth);  // of variables in vars_, dims and scalars
  std::string integer_constant();
  std::string integer_condition(int depth);
  void integer_statement(int number, const std::string& place);
  void integer_copy(int number);

  Random r_;
  Random others_{0};        // the series of random_reports.cpp
  Random of_optionals_{0};  // the series of random_optionals.cpp
  Random of_calls_{0}, of_orders_{0}, of_boxes_{0}, of_products_{0},
      of_meetings_{0};  // each of the file of that name
  bool prints_ = false, returns_ = false, has_optionals_ = false;
  bool has_calls_ = false, has_orders_ = false, has_boxes_ = false, has_products_ = false,
       has_meetings_ = false;
  std::map<std::string, Bound> bounds_;  // of tensors whose elements are not exact
  int64_t printed_values_ = 0, printed_records_ = 0;
  int other_loops_ = 0;  // around the statement, which are not serial
  RandomProgramOptions options_;
  int names_ = 0;
  int indent_ = 1;
  std::string declarations_, kernels_, allocs_, body_;
  std::map<std::string, int64_t> dim_values_;
  std::vector<std::string> dims_;
  std::vector<std::pair<std::string, DType>> scalars_;
  std::vector<std::string> functions_;
  std::vector<std::pair<std::string, int64_t>> params_;
  std::vector<RandomTensor> tensors_;
  std::vector<Tile> tiles_;
  std::vector<GridVar> grid_;
  std::vector<IndexVar> vars_;
  bool states_threads_ = false;               // the kernel: 128
  bool asserts_ = false, annotates_ = false;  // the program
  bool in_parallel_ = false;
  bool chaining_ = false;            // tiles are mostly read at the loop's own point
  std::vector<std::string> hidden_;  // tiles and tensors the running parallel loop stores
  std::vector<Expr> same_element_;   // of them, what may be read (with its type in same_type_)
  std::vector<DType> same_type_;
  int64_t multiplier_ = 1;  // how often a statement here runs
  int64_t spent_ = 0;
};

}  // namespace tilegen::differential
