// Plays sequences of builder calls, most of them legal, that follow from a source of numbers.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "scope.h"

namespace tilegen::test {

constexpr int kCalls = 60;  // of one sequence, at most

class Player {
 public:
  // `choose(n)` gives a number below n.
  Player(const Context& context, std::function<int(int)> choose)
      : choose_(std::move(choose)), builder_(make_builder(context)), b_(builder_.get()) {
    for (tl_dtype t : {TL_F32, TL_F16, TL_I64, TL_BOOL}) keep(literal(t));
    keep(tl_dim(b_, "n"));
    if (pick(4) == 0)
      tl_dim_fact(b_, exprs_.back(), pick(2), rarely() ? pick(2) : 1 << pick(20), 1 << pick(3));
    const int64_t domain[] = {8, rarely() ? 8 : 16};
    if (pick(4) == 0) keep(tl_index(b_, tl_param(b_, "T", domain, rarely() ? small() % 3 : 2)));
    const tl_expr shape[] = {tl_index(b_, 64), exprs_.back()};
    buffers_.push_back(tl_tensor(b_, "A", TL_F32, 2, shape, nullptr, 0));
    keep(tl_index(b_, 0));
    keep(tl_index(b_, 1));
    if (pick(4) == 0) {
      const uint32_t flags = rarely() ? small() : static_cast<uint32_t>(TL_TENSOR_OPTIONAL);
      optional_ = tl_tensor(b_, "O", TL_F32, 2, shape, nullptr, flags);
      keep(tl_present(b_, rarely() ? buffers_.back() : optional_));
    }
  }

  void play() {
    const int length = pick(kCalls);
    for (int i = 0; i < length && tl_builder_status(b_) == TL_OK; ++i) call();
    while (!scopes_.empty()) {
      tl_end(b_, scopes_.back());
      scopes_.pop_back();
    }
  }
  const Builder& builder() const { return builder_; }

 private:
  int pick(int n) { return choose_(n); }
  bool rarely() { return pick(400) == 399; }
  tl_expr literal(tl_dtype t) {
    return t == TL_F32 || t == TL_F16 ? tl_const_f64(b_, t, pick(5)) : tl_const_i64(b_, t, pick(2));
  }
  void keep(tl_expr e) {
    if (e.bits) exprs_.push_back(e);
  }
  tl_expr expr() {
    return rarely() ? tl_expr{static_cast<uint64_t>(pick(1 << 30)) << pick(34)}
                    : exprs_[pick(static_cast<int>(exprs_.size()))];
  }
  // Of one type, so that most calls get past the first check.
  tl_expr expr_of(tl_dtype t) {
    for (int tries = 0; tries < 20; ++tries) {
      const tl_expr e = exprs_[pick(static_cast<int>(exprs_.size()))];
      if (tl_expr_dtype(b_, e) == t) return e;
    }
    return literal(t);
  }
  tl_buffer buffer() {
    return rarely() ? tl_buffer{exprs_[0].bits} : buffers_[pick(static_cast<int>(buffers_.size()))];
  }
  uint32_t small() { return rarely() ? 0xfffffff0u + pick(16) : static_cast<uint32_t>(pick(4)); }
  int64_t extent() { return rarely() ? int64_t{1} << pick(63) : int64_t{1} << pick(6); }

  void open(tl_scope s) {
    if (s.bits) scopes_.push_back(s);
  }
  void begin() {
    const tl_expr lo = expr_of(TL_I64), hi = expr_of(TL_I64);
    tl_expr out[3] = {};
    const std::string name = "v" + std::to_string(pick(30));
    if (scopes_.empty()) {
      const int first = pick(32);
      if (first >= 16) function();
      if (first % 8 == 0) atom();
      const tl_expr grid[] = {tl_index(b_, first % 4), exprs_[4]};
      began_ = true;
      open(tl_begin_kernel(b_, ("k" + name).c_str(), 1 + pick(2), grid, pick(3) * 64, nullptr, out));
    } else if (pick(3) == 0) {
      open(tl_begin_if(b_, expr_of(TL_BOOL)));
    } else if (rarely()) {
      open(tl_begin_while(b_, expr_of(TL_BOOL)));
    } else if (pick(30) == 0) {
      begin_switch();
    } else if (pick(8) == 0) {
      const int64_t threads[] = {rarely() ? extent() : 2, 32};
      open(tl_begin_threads(b_, rarely() ? small() : 2, threads, nullptr, out));
    } else if (pick(2) == 0) {
      const int64_t extents[] = {extent(), extent()};
      open(tl_begin_parallel(b_, 1 + pick(2), extents, nullptr, out));
    } else if (rarely()) {
      open(tl_begin_counted_loop(b_, rarely() ? small() : static_cast<uint32_t>(TL_LOOP_SERIAL), lo, hi,
                                 pick(2) == 0 ? expr_of(TL_BOOL) : tl_expr{0}, 0, name.c_str(), out));
    } else {
      open(tl_begin_loop(b_, rarely() ? small() : static_cast<uint32_t>(TL_LOOP_SERIAL), lo, hi,
                         rarely() ? pick(9) : 0, name.c_str(), out));
    }
    for (tl_expr e : out) keep(e);
  }
  // Of two operands and two results, with native text in most cases.
  void function() {
    const tl_dtype type = pick(2) ? TL_I64 : TL_F32;
    const bool real = type == TL_F32;
    const std::string name = "f" + std::to_string(rarely() ? 0 : functions_.size());
    const tl_expr operands[] = {tl_operand(b_, type, "x"), tl_operand(b_, type, nullptr)};
    const tl_expr results[] = {tl_binary(b_, rarely() ? TL_SUB : TL_ADD, operands[0], operands[1]),
                               rarely() ? expr() : operands[0]};
    const std::string word = real ? "float" : "i64", pair = "{" + word + ", " + word + "}";
    const std::string llvm = "define " + pair + " @" + name + "(" + word + " %a, " + word + " %b) {\n" +
                             "  %s = " + (real ? "fadd " : "add ") + word + " %a, %b\n" +
                             "  %r = insertvalue " + pair + " undef, " + word + " %s, 0\n" +
                             "  %t = insertvalue " + pair + " %r, " + word + " %a, 1\n" + "  ret " + pair +
                             " %t\n}";
    const char* const texts[] = {
        real ? "add.rn.f32 $0, $2, $3;\nmov.b32 $1, $2;" : "add.s64 $0, $2, $3;\nmov.b64 $1, $2;",
        rarely() ? "ret;" : llvm.c_str()};
    const tl_native_form forms[] = {rarely() ? small() : static_cast<uint32_t>(TL_NATIVE_PTX),
                                    TL_NATIVE_LLVM};
    const int count = pick(4);
    tl_function(b_, name.c_str(), 2, operands, 2, results,
                static_cast<uint32_t>(began_ && !rarely() ? 0 : count % 3), forms, texts);
    if (tl_builder_status(b_) == TL_OK) functions_.emplace_back(name, type);
    if (rarely()) keep(operands[1]);
  }
  // One instruction in most cases; its layouts, types, meaning and text fit each other.
  void atom() {
    const std::string name = rarely() ? "f0" : "a" + std::to_string(pick(3));
    const int64_t shape[] = {16, rarely() ? extent() : 8, 8};
    const tl_dtype types[] = {TL_F16, rarely() ? small() : static_cast<uint32_t>(TL_F16), TL_F32};
    const char* const layouts[] = {
        "(i, k) -> (i % 8 * 4 + k // 2) * 4 + i // 8 * 2 + k % 2",
        rarely() ? "(k, j) -> j // (k - k)" : "(k, j) -> (j * 4 + k // 2) * 2 + k % 2",
        rarely() ? "threads 32 : (16,8) -> [" : "(i, j) -> (i % 8 * 4 + j // 2) * 4 + i // 8 * 2 + j % 2"};
    const tl_expr operands[] = {tl_operand(b_, TL_F16, "a"), tl_operand(b_, TL_F16, nullptr),
                                tl_operand(b_, TL_F32, "c")};
    const tl_expr product =
        tl_binary(b_, TL_MUL, tl_cast(b_, TL_F32, operands[0]), tl_cast(b_, TL_F32, operands[1]));
    const bool meant = pick(2) != 0;
    tl_matrix_atom(
        b_, name.c_str(), shape, types, layouts, static_cast<uint32_t>(pick(40)), meant ? operands : nullptr,
        !meant     ? tl_expr{0}
        : rarely() ? expr()
                   : tl_binary(b_, TL_ADD, operands[2], product),
        rarely() ? small() : static_cast<uint32_t>(TL_NATIVE_PTX),
        rarely() ? "mma.sync.aligned.m16n8k8"
                 : "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {$0, $1, $2, $3}, {$4, $5}, {$6}, "
                   "{$7, $8, $9, $10};");
  }
  // Of a kernel's own tiles, which fit the atoms.
  void product() {
    const int64_t shapes[][2] = {{16 << pick(2), 16}, {16, 8 << pick(3)}};
    const int64_t sum[] = {shapes[0][0], shapes[1][1]};
    const std::string number = std::to_string(pick(100));
    const tl_buffer a = tl_alloc(b_, ("x" + number).c_str(), TL_SCOPE_SHARED, TL_F16, 2, shapes[0]),
                    with = tl_alloc(b_, ("y" + number).c_str(), TL_SCOPE_SHARED, TL_F16, 2, shapes[1]),
                    c = tl_alloc(b_, ("z" + number).c_str(), TL_SCOPE_FRAGMENT, TL_F32, 2, sum);
    tl_fill(b_, tl_whole(b_, a), literal(TL_F16));
    tl_fill(b_, tl_whole(b_, with), literal(TL_F16));
    tl_fill(b_, tl_whole(b_, c), literal(TL_F32));
    const char* const texts[] = {"atom = a0", "atom = a1", "atom = f0", "warps = [1, 2]"};
    tl_annotate(b_, texts[rarely() ? 2 : pick(2) * 3]);
    tl_gemm(b_, tl_whole(b_, a), tl_whole(b_, with), tl_whole(b_, c), rarely() ? small() : 0,
            rarely() ? small() : static_cast<uint32_t>(TL_POLICY_DEFAULT));
  }
  void call_function() {
    if (rarely() || functions_.empty()) {  // the library's
      const tl_expr x[] = {rarely() ? expr() : expr_of(TL_F32), expr_of(TL_F32)};
      const char* const names[] = {"fast_exp", "fast_div", "byte_permute"};
      keep(tl_call(b_, names[pick(3)], static_cast<uint32_t>(1 + pick(2)), x, 0));
      return;
    }
    const auto& [name, type] = functions_[pick(static_cast<int>(functions_.size()))];
    const tl_expr args[] = {rarely() ? expr() : expr_of(type), expr_of(type)};
    keep(tl_call(b_, name.c_str(), rarely() ? small() : 2, args,
                 rarely() ? small() : static_cast<uint32_t>(pick(2))));
  }
  // With its cases but the last, which is left open.
  void begin_switch() {
    const int64_t values[] = {pick(5), pick(5)};
    const tl_scope choice = tl_begin_switch(b_, expr_of(TL_I64));
    open(choice);
    for (int cases = pick(3); cases > 0; --cases) {
      const tl_scope one = tl_begin_case(b_, choice, 1 + pick(2), values);
      tl_store(b_, buffer(), 2, exprs_.data() + exprs_.size() - 2, expr_of(TL_F32));
      tl_end(b_, one);
    }
    open(tl_begin_case(b_, choice, rarely() ? 0 : static_cast<uint32_t>(pick(3)), values));
  }
  void barriers() {
    if (regions_.empty()) return;
    const tl_region at = regions_[pick(static_cast<int>(regions_.size()))];
    const int64_t first = rarely() ? extent() : 0, threads = rarely() ? 32 * extent() : 0;
    if (pick(2))
      return tl_mbarrier_arrive(b_, at, first, threads, rarely() ? small() : static_cast<uint32_t>(pick(2)));
    if (rarely()) return (pick(2) ? tl_barrier_sync : tl_barrier_arrive)(b_, at, first, threads);
    tl_mbarrier_wait(b_, at, expr_of(TL_I64), first, threads);
  }
  void copies() {
    const int what = pick(4);
    if (what == 3) return barriers();
    if (what == 0) return tl_commit_group(b_);
    if (what == 1) return tl_wait_group(b_, rarely() ? small() : static_cast<uint32_t>(pick(3)));
    if (regions_.empty()) return;
    const tl_region from = regions_[pick(static_cast<int>(regions_.size()))];
    tl_copy_async(b_, from, regions_[pick(static_cast<int>(regions_.size()))]);
  }
  // What lanes of a block of threads give each other, wherever it stands.
  void lanes() {
    if (rarely()) return copies();
    if (pick(3) == 0) return tl_barrier(b_);
    const uint32_t kind = rarely() ? small() : 1 + static_cast<uint32_t>(pick(4));
    if (pick(3) == 0) return keep(tl_id(b_, rarely() ? small() : 1 + static_cast<uint32_t>(pick(7))));
    keep(pick(2) ? tl_vote(b_, kind, expr_of(TL_BOOL))
                 : tl_shuffle(b_, kind, expr_of(TL_F32), rarely() ? expr() : tl_index(b_, pick(33))));
  }
  void statement() {
    if (scopes_.empty()) return begin();
    const tl_expr at[4] = {expr_of(TL_I64), expr_of(TL_I64)};  // as long as any rank that is read
    const int64_t extents[] = {extent(), extent()};
    switch (pick(9)) {
      case 0:
        if (scopes_.size() == 1 || rarely()) {
          const tl_buffer t =
              tl_alloc(b_, ("t" + std::to_string(pick(100))).c_str(), 2 + pick(3), TL_F32, 2, extents);
          if (t.bits) buffers_.push_back(t);
        }
        break;
      case 1:
        regions_.push_back(tl_region_of(b_, buffer(), 2, at, extents));
        if (rarely()) view(extents);
        break;
      case 2:
        if (!regions_.empty() && scopes_.size() == 1)
          tl_fill(b_, regions_[pick(static_cast<int>(regions_.size()))], expr_of(TL_F32));
        break;
      case 3:
        if (!regions_.empty() && scopes_.size() == 1)
          tl_copy(b_, regions_[pick(static_cast<int>(regions_.size()))],
                  regions_[pick(static_cast<int>(regions_.size()))]);
        else if (!regions_.empty() && rarely())
          tl_atomic(b_, regions_[pick(static_cast<int>(regions_.size()))],
                    regions_[pick(static_cast<int>(regions_.size()))], TL_ATOMIC_ADD + pick(6));
        break;
      case 4:
        if (pick(4) != 0)
          tl_store(b_, buffer(), rarely() ? small() : 2, at, expr_of(TL_F32));
        else
          store_atomic(at);
        break;
      case 5:
        keep(rarely() ? tl_var(b_, nullptr, expr_of(TL_F32)) : tl_let(b_, nullptr, expr_of(TL_F32)));
        if (rarely()) tl_assign(b_, exprs_.back(), expr_of(TL_F32));
        if (pick(8) == 0) lanes();
        break;
      case 6:
        report();
        if (scopes_.size() == 1 && pick(16) == 0) product();
        if (scopes_.size() == 1 && pick(8) == 0) along_rows();
        break;
      default:
        if (optional_.bits && pick(3) == 0) {
          const tl_expr there = rarely() ? expr_of(TL_BOOL) : tl_present(b_, optional_);
          return keep(tl_select(b_, there, tl_load(b_, optional_, 2, at), literal(TL_F32)));
        }
        keep(tl_load(b_, buffer(), 2, at));
    }
  }
  void view(const int64_t* extents) {
    const int64_t order[] = {pick(2), rarely() ? small() : 1 - pick(2)};
    const int kind = pick(6);
    const tl_expr sizes[] = {expr_of(TL_I64), expr_of(TL_I64)};
    const tl_buffer v = kind == 4   ? tl_view_reshape_to(b_, buffer(), 1 + pick(2), sizes)
                        : kind == 5 ? tl_view_box(b_, buffer(), 2, sizes, sizes)
                        : kind == 0 ? tl_view_reshape(b_, buffer(), rarely() ? small() : 1 + pick(2), extents)
                        : kind == 1 ? tl_view_transpose(b_, buffer(), 2, order)
                        : kind == 2 ? tl_view_reinterpret(b_, buffer(), rarely() ? small() : 1 + pick(23))
                                    : tl_view_slice(b_, regions_.back());
    if (v.bits) buffers_.push_back(v);
  }
  void store_atomic(const tl_expr* at) {
    const uint32_t rank = rarely() ? small() : 2;
    const uint32_t kind =
        rarely() ? small() : static_cast<uint32_t>(TL_ATOMIC_ADD) + static_cast<uint32_t>(pick(3) * pick(4));
    if (rarely()) tl_atomic_order(b_, rarely() ? small() : 1 + pick(4));
    if (pick(3) != 0) return tl_store_atomic(b_, buffer(), rank, at, expr_of(TL_F32), kind);
    if (rarely())
      return tl_fetch_atomic_to(b_, buffer(), rank, at, expr_of(TL_F32), kind, buffer(), rank, at);
    keep(rarely()
             ? tl_compare_exchange(b_, buffer(), rank, at, expr_of(TL_F32), expr_of(TL_F32), nullptr)
             : tl_fetch_atomic(b_, buffer(), rank, at, expr_of(TL_F32), kind, rarely() ? "v1" : nullptr));
  }
  // A compression and its product, with what some of the calls may get wrong.
  void sparse_product() {
    const int64_t m = int64_t{16} << pick(3), n = 16, k = rarely() ? extent() : int64_t{32} << pick(2);
    const int size = pick(3);
    const auto tile = [&](const char* name, uint32_t scope, tl_dtype type, int64_t rows, int64_t columns) {
      const int64_t extents[] = {rows, columns};
      return tl_whole(b_, tl_alloc(b_, (name + std::to_string(pick(9))).c_str(), scope, type, 2, extents));
    };
    const tl_dtype words[] = {TL_U8, TL_U16, TL_U32};
    const tl_region x = tile("x", TL_SCOPE_SHARED, TL_F16, m, k),
                    v = tile("v", TL_SCOPE_SHARED, TL_F16, m, k / 2),
                    p = tile("p", pick(2) ? TL_SCOPE_SHARED : TL_SCOPE_FRAGMENT,
                             rarely() ? TL_F32 : words[size], m, k / (8 << size)),
                    y = tile("y", TL_SCOPE_SHARED, TL_F16, k, n),
                    c = tile("c", TL_SCOPE_FRAGMENT, TL_F32, m, n);
    tl_fill(b_, x, tl_const_f64(b_, TL_F16, 1));
    tl_fill(b_, y, tl_const_f64(b_, TL_F16, 2));
    if (!rarely()) tl_compress(b_, x, v, p);
    tl_gemm_sparse(b_, v, p, y, c, rarely() ? small() : static_cast<uint32_t>(TL_GEMM_CLEAR),
                   rarely() ? small() : static_cast<uint32_t>(TL_POLICY_DEFAULT));
  }
  // What works along the rows of a tile: of tiles that fit in most cases.
  void along_rows() {
    const tl_dtype type = pick(2) ? TL_F32 : TL_I32;
    const int64_t columns = rarely() ? extent() : int64_t{1} << pick(6);
    const auto tile = [&](const char* name, tl_dtype of, int64_t width) {
      const int64_t extents[] = {4, width};
      return tl_whole(b_, tl_alloc(b_, (name + std::to_string(pick(9))).c_str(),
                                   pick(2) ? TL_SCOPE_SHARED : TL_SCOPE_FRAGMENT, of, 2, extents));
    };
    const tl_region src = tile("s", type, columns), all = pick(2) ? src : tile("a", type, columns);
    const auto one = [&] { return tile("o", rarely() ? TL_F16 : type, 1); };
    const auto places = [&](int64_t width) {
      return tile("i", rarely() ? TL_F32 : pick(2) ? TL_I32 : TL_I64, width);
    };
    tl_fill(b_, src, type == TL_F32 ? literal(TL_F32) : tl_const_i64(b_, TL_I32, pick(5)));
    const uint32_t axis = rarely() ? small() : 1, flags = rarely() ? small() : static_cast<uint32_t>(pick(2));
    const auto kind = [&](int count) {
      return rarely() ? small() : TL_REDUCE_SUM + static_cast<uint32_t>(pick(count));
    };
    switch (pick(8)) {
      case 0:
        return tl_reduce(b_, src, one(), kind(9), axis, rarely() ? flags : 0);
      case 1:
        return pick(2) ? tl_cumsum(b_, src, all, axis, flags) : tl_scan(b_, src, all, kind(3), axis, flags);
      case 2:
        return tl_arg_reduce(b_, src, one(), places(1), kind(3), axis);
      case 3:
        return tl_sort(b_, src, all, pick(2) ? places(columns) : tl_region{0}, axis, flags);
      case 4: {
        const int64_t few = rarely() ? extent() : (columns + 1) / 2;
        return tl_top_k(b_, src, tile("t", type, few), pick(2) ? places(few) : tl_region{0}, axis, flags);
      }
      case 5: {
        const tl_region kept = one();
        tl_fill(b_, kept, type == TL_F32 ? literal(TL_F32) : tl_const_i64(b_, TL_I32, pick(5)));
        return tl_scan_carry(b_, src, all, kept, kind(3), axis, flags);
      }
      default:
        combination(src, all, type, axis, flags);
    }
  }
  // Of one value, by its sum with the other or by what may be none of its operands'.
  void combination(tl_region src, tl_region all, tl_dtype type, uint32_t axis, uint32_t flags) {
    const tl_expr left = tl_operand(b_, type, "l"), right = tl_operand(b_, type, nullptr),
                  result = rarely() ? expr() : tl_binary(b_, TL_ADD, left, right),
                  first = rarely()         ? expr()
                          : type == TL_F32 ? literal(TL_F32)
                                           : tl_const_i64(b_, TL_I32, 1);
    const uint32_t count = rarely() ? small() % 2 : 1;
    const int64_t extents[] = {4, 1};
    switch (pick(4)) {
      case 0: {
        const tl_region dst = tl_whole(
            b_, tl_alloc(b_, ("c" + std::to_string(pick(9))).c_str(), TL_SCOPE_FRAGMENT, type, 2, extents));
        return tl_reduce_by(b_, count, &src, &dst, &left, &right, &result, axis, 0);
      }
      case 1:
        return tl_scan_by(b_, count, &src, &all, &left, &right, &result, axis, rarely() ? flags : 0);
      case 2: {
        const tl_region kept = tl_whole(
            b_, tl_alloc(b_, ("c" + std::to_string(pick(9))).c_str(), TL_SCOPE_FRAGMENT, type, 2, extents));
        tl_fill(b_, kept, type == TL_F32 ? literal(TL_F32) : tl_const_i64(b_, TL_I32, pick(5)));
        return tl_scan_by_carry(b_, count, &src, &all, &kept, &left, &right, &result, axis, flags);
      }
      default:
        tl_scan_by_from(b_, count, &src, &all, &left, &right, &result, &first, axis, flags);
    }
  }
  void report() {
    const tl_expr values[] = {expr(), expr_of(TL_F32)};
    if (rarely()) {
      const char* const texts[] = {"vector = 4",
                                   "swizzle = 64",
                                   "raster = grouped",
                                   "layout = (i, j) -> i * 9 + j",
                                   "order = [x",
                                   "cache = evict_last",
                                   "warps = [2, 1]",
                                   "registers = 64",
                                   "raster = lpt, persistence = dynamic",
                                   "cache = no_allocate, vector = 4"};
      const int kind = pick(6);
      if (kind == 5 && scopes_.size() == 1) sparse_product();
      if (kind == 0) tl_break(b_);
      if (kind == 1) pick(2) == 0 ? tl_continue(b_) : tl_return(b_);
      if (kind == 2) tl_label(b_, ("l" + std::to_string(pick(20))).c_str());
      if (kind == 3) tl_annotate(b_, texts[pick(10)]);
      if (kind == 4)
        pick(2) == 0 ? tl_annotate_tile(b_, buffer(), texts[pick(10)])
                     : tl_annotate_kernel(b_, texts[pick(10)]);
    } else if (pick(2) == 0) {
      tl_assert(b_, rarely() ? expr() : expr_of(TL_BOOL), rarely() ? "no \"text\"" : "a text");
    } else if (!regions_.empty() && rarely()) {
      tl_print_tile(b_, "region", regions_[pick(static_cast<int>(regions_.size()))]);
    } else {
      tl_print(b_, "values", static_cast<uint32_t>(pick(3)), values);
    }
  }
  void call() {
    const tl_dtype type = pick(2) ? TL_I64 : TL_F32;
    switch (pick(8)) {
      case 0:
        keep(tl_binary(b_, rarely() ? small() : TL_ADD + pick(3), expr_of(type), expr_of(type)));
        break;
      case 1:
        keep(tl_binary(b_, TL_LT + pick(4), expr_of(type), expr_of(type)));
        break;
      case 2: {
        const int which = pick(8);
        if (which >= 4 && (which == 7 || !functions_.empty()))
          call_function();
        else
          keep(tl_unary(b_, rarely() ? TL_SIN + pick(19) : which % 2 ? TL_NEG : TL_ABS, expr_of(type)));
        break;
      }
      case 3:
        if (rarely())
          keep(tl_uniform(b_, tl_ternary(b_, TL_PHILOX, expr_of(TL_I64), expr_of(type), expr_of(TL_I64))));
        else if (rarely())
          keep(tl_ternary(b_, rarely() ? small() : TL_FMA, expr_of(TL_F32), expr_of(TL_F32), expr_of(type)));
        else
          keep(tl_select(b_, expr_of(TL_BOOL), expr_of(type), expr_of(type)));
        break;
      case 4:
        if (rarely())
          keep(tl_bitcast(b_, rarely() ? small() : type == TL_I64 ? TL_F64 : TL_U32, expr_of(type)));
        else if (rarely())
          keep(tl_cast_by(b_, 1 + pick(23), expr(), pick(27)));
        else
          keep(tl_cast(b_, rarely() ? small() : 1 + pick(9), expr()));
        break;
      case 5:
        begin();
        break;
      case 6:
        if (!scopes_.empty() && (scopes_.size() > 1 || pick(8) == 0)) {
          tl_end(b_, rarely() ? scopes_[0] : scopes_.back());
          scopes_.pop_back();
          break;
        }
        [[fallthrough]];
      default:
        statement();
    }
  }

  std::function<int(int)> choose_;
  Builder builder_;
  tl_builder* b_;
  std::vector<tl_expr> exprs_;
  tl_buffer optional_{};  // mostly none
  std::vector<tl_buffer> buffers_;
  std::vector<tl_region> regions_;
  std::vector<tl_scope> scopes_;
  std::vector<std::pair<std::string, tl_dtype>> functions_;
  bool began_ = false;  // its first kernel
};

}  // namespace tilegen::test
