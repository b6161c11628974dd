// Mistakes that the builder notices at the call.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>

#include "golden.h"

namespace tilegen::test {
namespace {

// Things most cases need; made before the mistake, at line 1.
struct Scene {
  tl_builder* b;
  tl_expr n, one, f, yes, block;
  tl_buffer A, R, tile;
  tl_scope kernel;
};

using Mistake = std::function<void(Scene&)>;

void expect_mistake(const std::string& golden, bool inside_kernel, const Mistake& mistake) {
  const Context context = make_context();
  const Builder builder = make_builder(context, "p");
  tl_builder* b = builder.get();
  Scene s{};
  s.b = b;
  tl_builder_set_location(b, "scene.c", 1, 0);
  s.n = tl_dim(b, "n");
  s.one = tl_index(b, 1);
  s.f = tl_const_f64(b, TL_F32, 1.5);
  s.yes = tl_binary(b, TL_LT, s.one, s.n);
  const tl_expr shape[] = {s.n, tl_index(b, 32)};
  s.A = tl_tensor(b, "A", TL_F32, 2, shape, nullptr, 0);
  s.R = tl_tensor(b, "R", TL_F32, 2, shape, nullptr, TL_TENSOR_READ_ONLY);
  if (inside_kernel) {
    const tl_expr grid[] = {s.n};
    s.kernel = tl_begin_kernel(b, "k", 1, grid, 128, nullptr, &s.block);
    const int64_t extents[] = {16, 32};
    s.tile = tl_alloc(b, "t", TL_SCOPE_SHARED, TL_F32, 2, extents);
  }
  ASSERT_EQ(tl_builder_status(b), TL_OK) << golden;
  tl_builder_set_location(b, "user.c", 42, 7);
  mistake(s);
  Failure failure;
  finish(builder, nullptr, &failure);
  expect_golden(golden, failure);
}

void outside(const std::string& golden, const Mistake& mistake) { expect_mistake(golden, false, mistake); }
void inside(const std::string& golden, const Mistake& mistake) { expect_mistake(golden, true, mistake); }

TEST(BuilderErrors, NamedValues) {
  const auto in_loop = [](Scene& s, const std::function<void(tl_expr i)>& body) {
    const int64_t extent = 32;
    tl_expr i;
    const tl_scope loop = tl_begin_parallel(s.b, 1, &extent, nullptr, &i);
    body(i);
    tl_end(s.b, loop);
  };
  inside("misplaced_statement.assigned_name",
         [&](Scene& s) { in_loop(s, [&](tl_expr) { tl_assign(s.b, tl_let(s.b, "x", s.f), s.f); }); });
  inside("misplaced_statement.var_outside", [](Scene& s) { tl_var(s.b, "x", s.f); });
  inside("dtype_mismatch.assignment",
         [&](Scene& s) { in_loop(s, [&](tl_expr i) { tl_assign(s.b, tl_var(s.b, "x", s.f), i); }); });
  inside("out_of_scope.name", [&](Scene& s) {
    tl_expr x{};
    in_loop(s, [&](tl_expr) { x = tl_let(s.b, "x", s.f); });
    in_loop(s, [&](tl_expr i) {
      const tl_expr at[] = {s.block, i};
      tl_store(s.b, s.A, 2, at, x);
    });
    tl_end(s.b, s.kernel);
  });
  inside("bad_shape.inner_loop", [&](Scene& s) {
    in_loop(s, [&](tl_expr i) {
      tl_expr k;
      const tl_scope inner = tl_begin_loop(s.b, TL_LOOP_UNROLL, s.one, s.n, 0, "r", &k);
      const tl_expr at[] = {s.block, i};
      tl_store(s.b, s.A, 2, at, s.f);
      tl_end(s.b, inner);
    });
    tl_end(s.b, s.kernel);
  });
}

TEST(BuilderErrors, Names) {
  outside("bad_name.empty", [](Scene& s) { tl_dim(s.b, ""); });
  outside("bad_name.characters", [](Scene& s) { tl_scalar(s.b, "my scale\n", TL_F32); });
  outside("bad_name.reserved", [](Scene& s) { tl_dim(s.b, "parallel"); });
  outside("bad_name.long", [](Scene& s) { tl_dim(s.b, std::string(200, 'x').c_str()); });
  outside("duplicate_name.tensor", [](Scene& s) { tl_tensor(s.b, "A", TL_F32, 1, &s.n, nullptr, 0); });
  inside("duplicate_name.kernel", [](Scene& s) {
    tl_end(s.b, s.kernel);
    tl_begin_kernel(s.b, "k", 1, &s.n, 0, nullptr, &s.block);
  });
  inside("duplicate_name.loop_variable", [](Scene& s) {
    tl_expr i;
    tl_begin_loop(s.b, TL_LOOP_SERIAL, s.one, s.n, 0, "i", &i);
    tl_begin_loop(s.b, TL_LOOP_SERIAL, s.one, s.n, 0, "i", &i);
  });
}

TEST(BuilderErrors, Handles) {
  outside("stale_handle.none", [](Scene& s) { tl_unary(s.b, TL_NEG, tl_expr{0}); });
  outside("stale_handle.kind", [](Scene& s) { tl_unary(s.b, TL_NEG, tl_expr{s.A.bits}); });
  outside("stale_handle.foreign", [](Scene& s) {
    const Context context = make_context();
    const Builder other = make_builder(context);
    tl_binary(s.b, TL_ADD, s.n, tl_index(other.get(), 1));
  });
  outside("stale_handle.not_a_dim", [](Scene& s) { tl_dim_fact(s.b, s.one, 0, 10, 1); });
  outside("null_argument.shape", [](Scene& s) { tl_tensor(s.b, "B", TL_F32, 2, nullptr, nullptr, 0); });
  outside("bad_enum.dtype", [](Scene& s) { tl_scalar(s.b, "s", 77); });
  inside("bad_enum.loop_kind", [](Scene& s) { tl_begin_loop(s.b, 9, s.one, s.n, 0, "i", &s.block); });
  inside("bad_enum.flags", [](Scene& s) {
    const tl_region t = tl_whole(s.b, s.tile);
    tl_gemm(s.b, t, t, t, 64, 0);
  });
}

TEST(BuilderErrors, Placement) {
  outside("misplaced_statement.no_kernel", [](Scene& s) {
    const int64_t extent = 8;
    tl_alloc(s.b, "u", TL_SCOPE_SHARED, TL_F32, 1, &extent);
  });
  outside("misplaced_statement.empty_program", [](Scene&) {});
  inside("misplaced_statement.present", [](Scene& s) { tl_present(s.b, s.A); });
  outside("unguarded_access.element", [](Scene& s) {
    const tl_expr at[] = {s.one, s.one};
    const tl_expr shape[] = {s.n, tl_index(s.b, 32)};
    const tl_buffer bias = tl_tensor(s.b, "bias", TL_F32, 2, shape, nullptr, TL_TENSOR_OPTIONAL);
    const tl_scope kernel = tl_begin_kernel(s.b, "k", 1, &s.n, 0, nullptr, &s.block);
    const tl_scope asked = tl_begin_if(s.b, s.yes);
    tl_store(s.b, s.A, 2, at, tl_load(s.b, bias, 2, at));
    tl_end(s.b, asked);
    tl_end(s.b, kernel);
  });
  outside("scope_not_allowed.optional_workspace", [](Scene& s) {
    tl_tensor(s.b, "W", TL_F32, 1, &s.n, nullptr, TL_TENSOR_WORKSPACE | TL_TENSOR_OPTIONAL);
    const tl_scope kernel = tl_begin_kernel(s.b, "k", 1, &s.n, 0, nullptr, &s.block);
    tl_store(s.b, s.A, 2, std::array{s.one, s.one}.data(), s.f);
    tl_end(s.b, kernel);
  });
  inside("misplaced_statement.late_parameter", [](Scene& s) { tl_dim(s.b, "m"); });
  inside("misplaced_statement.nested_kernel",
         [](Scene& s) { tl_begin_kernel(s.b, "l", 1, &s.n, 0, nullptr, &s.block); });
  inside("misplaced_statement.op_in_parallel", [](Scene& s) {
    const int64_t extent = 16;
    tl_expr i;
    tl_begin_parallel(s.b, 1, &extent, nullptr, &i);
    tl_fill(s.b, tl_whole(s.b, s.tile), s.f);
  });
  inside("misplaced_statement.alloc_in_loop", [](Scene& s) {
    const int64_t extent = 16;
    tl_expr i;
    tl_begin_loop(s.b, TL_LOOP_SERIAL, s.one, s.n, 0, "i", &i);
    tl_alloc(s.b, "u", TL_SCOPE_SHARED, TL_F32, 1, &extent);
  });
  inside("scope_mismatch.order", [](Scene& s) {
    tl_expr i;
    tl_begin_loop(s.b, TL_LOOP_SERIAL, s.one, s.n, 0, "i", &i);
    tl_end(s.b, s.kernel);
  });
  inside("scope_mismatch.open", [](Scene& s) { tl_begin_if(s.b, s.yes); });
  inside("scope_mismatch.second_else", [](Scene& s) {
    const tl_scope branch = tl_begin_if(s.b, s.yes);
    tl_begin_else(s.b, branch);
    tl_begin_else(s.b, branch);
  });
  inside("scope_mismatch.twice", [](Scene& s) {
    const tl_scope branch = tl_begin_if(s.b, s.yes);
    tl_end(s.b, branch);
    tl_end(s.b, branch);
  });
  inside("out_of_scope.tile_of_other_kernel", [](Scene& s) {
    tl_end(s.b, s.kernel);
    tl_begin_kernel(s.b, "l", 1, &s.n, 0, nullptr, &s.block);
    tl_whole(s.b, s.tile);
  });
}

TEST(BuilderErrors, Shapes) {
  outside("bad_shape.negative", [](Scene& s) {
    const tl_expr extent = tl_index(s.b, -4);
    tl_tensor(s.b, "B", TL_F32, 1, &extent, nullptr, 0);
  });
  inside("bad_shape.not_known_at_launch", [](Scene& s) {
    tl_end(s.b, s.kernel);
    tl_begin_kernel(s.b, "l", 1, &s.block, 0, nullptr, &s.block);
  });
  inside("bad_shape.symbolic_whole", [](Scene& s) { tl_whole(s.b, s.A); });
  inside("bad_shape.unroll", [](Scene& s) {
    tl_expr i;
    tl_begin_loop(s.b, TL_LOOP_UNROLL, s.one, s.n, 0, "i", &i);
  });
  outside("rank_mismatch.no_dimensions",
          [](Scene& s) { tl_tensor(s.b, "B", TL_F32, 0, nullptr, nullptr, 0); });
  outside("rank_mismatch.grid", [](Scene& s) {
    const tl_expr grid[] = {s.n, s.n, s.n, s.n};
    tl_expr blocks[4];
    tl_begin_kernel(s.b, "k", 4, grid, 0, nullptr, blocks);
  });
  inside("rank_mismatch.load", [](Scene& s) { tl_load(s.b, s.A, 1, &s.one); });
  inside("rank_mismatch.region", [](Scene& s) {
    const int64_t extent = 4;
    tl_region_of(s.b, s.A, 1, &s.one, &extent);
  });
  inside("overflow.region", [](Scene& s) {
    const int64_t extents[] = {int64_t{1} << 40, int64_t{1} << 40};
    const tl_expr offsets[] = {s.one, s.one};
    tl_region_of(s.b, s.A, 2, offsets, extents);
  });
}

TEST(BuilderErrors, Types) {
  outside("dtype_mismatch.operands", [](Scene& s) { tl_binary(s.b, TL_ADD, s.n, s.f); });
  outside("dtype_mismatch.integer_division", [](Scene& s) { tl_binary(s.b, TL_DIV, s.n, s.n); });
  outside("dtype_mismatch.literal", [](Scene& s) { tl_const_i64(s.b, TL_I8, 300); });
  outside("dtype_mismatch.condition", [](Scene& s) { tl_select(s.b, s.n, s.f, s.f); });
  outside("dtype_mismatch.extent", [](Scene& s) { tl_tensor(s.b, "B", TL_F32, 1, &s.f, nullptr, 0); });
  inside("dtype_mismatch.store", [](Scene& s) {
    const tl_expr at[] = {s.one, s.one};
    tl_store(s.b, s.A, 2, at, s.n);
  });
  inside("scope_not_allowed.global_tile", [](Scene& s) {
    const int64_t extent = 4;
    tl_alloc(s.b, "u", TL_SCOPE_GLOBAL, TL_F32, 1, &extent);
  });
  inside("write_to_input.copy", [](Scene& s) {
    const tl_expr offsets[] = {s.one, s.one};
    const int64_t extents[] = {16, 32};
    tl_copy(s.b, tl_whole(s.b, s.tile), tl_region_of(s.b, s.R, 2, offsets, extents));
  });
  inside("bad_attribute.stages", [](Scene& s) {
    tl_expr i;
    tl_begin_loop(s.b, TL_LOOP_SERIAL, s.one, s.n, 3, "i", &i);
  });
  outside("bad_attribute.threads",
          [](Scene& s) { tl_begin_kernel(s.b, "k", 1, &s.n, 1 << 20, nullptr, &s.block); });
  outside("bad_attribute.divisor", [](Scene& s) { tl_dim_fact(s.b, s.n, 0, 100, 0); });
}

}  // namespace
}  // namespace tilegen::test
