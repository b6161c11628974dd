#include "ir/program.h"
#include "ir/op_kinds.h"

#include <gtest/gtest.h>

#include <set>

namespace tilegen::ir {
namespace {

struct PathTest : ::testing::Test {
  Program p;

  VarId var(const char* name) {
    p.vars.push_back({name});
    return VarId(p.vars.size() - 1);
  }
  StmtId add(decltype(Stmt::node) node) {
    p.stmts.push_back({std::move(node), {}});
    return StmtId(p.stmts.size() - 1);
  }
  StmtId loop(std::vector<const char*> names, Block body) {
    Loop l;
    for (const char* name : names) l.vars.push_back(var(name));
    l.body = std::move(body);
    return add(l);
  }
  StmtId op(OpKind kind) {
    TileOp o;
    o.kind = kind;
    return add(o);
  }
  StmtId branch(Block then_body, Block else_body) {
    return add(Branch{{}, std::move(then_body), std::move(else_body)});
  }
  void kernel(const char* name, Block body) {
    Kernel k;
    k.name = name, k.body = std::move(body);
    p.kernels.push_back(k);
  }
};

TEST_F(PathTest, LoopsOpsStoresAndIfs) {
  const StmtId c0 = op(OpKind::copy), c1 = op(OpKind::copy), g = op(OpKind::gemm), s = add(Store{}),
               t = op(OpKind::fill);
  const StmtId e0 = op(OpKind::copy);
  const StmtId i = branch({s}, {e0});
  const StmtId ko = loop({"ko"}, {c0, c1, g}), ij = loop({"i", "j"}, {i});
  kernel("gemm", {t, ko, ij});
  const StmtId other = op(OpKind::copy);
  kernel("second", {other});
  const auto paths = statement_paths(p);
  EXPECT_EQ(paths[t.value], "gemm/fill#0");
  EXPECT_EQ(paths[ko.value], "gemm/ko");
  EXPECT_EQ(paths[c0.value], "gemm/ko/copy#0");
  EXPECT_EQ(paths[c1.value], "gemm/ko/copy#1");
  EXPECT_EQ(paths[g.value], "gemm/ko/gemm#0");
  EXPECT_EQ(paths[ij.value], "gemm/i.j");
  EXPECT_EQ(paths[i.value], "gemm/i.j/if#0");
  EXPECT_EQ(paths[s.value], "gemm/i.j/if#0/store#0");
  EXPECT_EQ(paths[e0.value], "gemm/i.j/if#0.else/copy#0");
  EXPECT_EQ(paths[other.value], "second/copy#0");
}

TEST_F(PathTest, AreUniqueWhateverVariablesAreCalled) {
  const auto mixed = [&] {
    return Block{loop({"ko"}, {op(OpKind::copy)}),
                 loop({"ko"}, {op(OpKind::copy)}),
                 loop({"copy"}, {}),
                 op(OpKind::copy),
                 loop({"copy"}, {op(OpKind::fill)}),
                 op(OpKind::copy),
                 loop({"if"}, {}),
                 loop({"if"}, {})};
  };
  Block body = mixed();
  body.push_back(branch(mixed(), mixed()));
  body.push_back(branch({loop({"else"}, {})}, {loop({"else"}, {})}));
  body.push_back(loop({"if", "else"}, mixed()));
  const StmtId first = body[0], second = body[1];
  kernel("k", body);
  const auto paths = statement_paths(p);
  EXPECT_EQ(paths[first.value], "k/ko");
  EXPECT_EQ(paths[second.value], "k/ko#1");
  std::set<std::string> seen;
  for (const std::string& path : paths) {
    EXPECT_FALSE(path.empty());
    EXPECT_TRUE(seen.insert(path).second) << path;
  }
}

TEST_F(PathTest, BuffersAndTheirShapes) {
  kernel("gemm", {});
  Buffer global, tile;
  global.name = "A";
  tile.name = "As", tile.scope = MemScope::shared, tile.kernel = 0;
  tile.shape = {p.exprs.const_int(64), p.exprs.const_int(32)};
  p.buffers = {global, tile};
  EXPECT_EQ(buffer_path(p, BufferId(size_t{0})), "A");
  EXPECT_EQ(buffer_path(p, BufferId(size_t{1})), "gemm:As");
  EXPECT_EQ(p.tile_shape(BufferId(size_t{1})), (std::vector<int64_t>{64, 32}));
}

TEST_F(PathTest, StatementsAreVisitedInOrder) {
  const StmtId a = op(OpKind::copy), b = op(OpKind::copy), c = op(OpKind::copy);
  const StmtId i = branch({b}, {c}), l = loop({"k"}, {a, i});
  std::vector<std::pair<StmtId, int>> visited;
  for_each_statement(p, {l}, [&](StmtId id, int depth) { visited.push_back({id, depth}); });
  EXPECT_EQ(visited, (std::vector<std::pair<StmtId, int>>{{l, 0}, {a, 1}, {i, 1}, {b, 2}, {c, 2}}));
}

TEST(ProgramNames, ScopesAndLoopKinds) {
  EXPECT_STREQ(scope_name(MemScope::global), "global");
  EXPECT_STREQ(scope_name(MemScope::fragment), "fragment");
  EXPECT_STREQ(loop_kind_name(LoopKind::unroll), "unroll");
  EXPECT_STREQ(loop_kind_name(LoopKind::pipelined), "pipelined");
}

}  // namespace
}  // namespace tilegen::ir
