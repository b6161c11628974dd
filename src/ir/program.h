// The tile program: the dataflow, and nothing of how it is done.
//
// A Program is built by builder/ or the .tl parser, checked by check/, and immutable from then on. Everything
// is an index into the arrays below; statements form a tree through Block (ordered list of statement ids).
//
// Paths: every kernel, loop, op and buffer has a stable name used by Schedule and diagnostics:
//   kernel "gemm" ; loop "gemm/ko" (names of its variables joined by '.') ; op "gemm/ko/copy#1" (ordinal of
//   that op kind in its enclosing block, store = "store#0", if = "if#0") ; buffer "gemm:As" ; parameter "A".
//   Inside an if: "gemm/if#0/copy#0", in its else "gemm/if#0.else/copy#0". A second loop of the same
//   variables in one block is "gemm/ko#1". A statement that has a label is "gemm/label" wherever it stands,
//   what it holds "gemm/label/copy#0"; it counts among the others as without. Paths are unique within a
//   program whose kernels are.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/expr.h"
#include "ir/tile_op.h"
#include "support/diagnostic.h"
#include "support/id.h"
#include "support/limits.h"

namespace tilegen::ir {

using BufferId = ObjectId;
using StmtId = Id<struct StmtTag>;
using Block = std::vector<StmtId>;

enum class VarKind : uint8_t { dim, scalar, block_index, loop, thread };

// A dim is a symbolic extent of the program's tensors (i64, >= 0); a scalar is a by-value parameter.
struct Var {
  std::string name;
  VarKind kind = VarKind::loop;
  DType type = DType::i64;
  // Facts, checked at launch for dims: lower <= value <= upper, value % divisor == 0.
  int64_t lower = 0;
  int64_t upper = INT64_MAX;
  int64_t divisor = 1;
  SourceLocation location;
};

// A decision that the program makes about how it is done: a row of annotations.def and what it is set to.
struct Annotation {
  std::string key;
  std::vector<std::string> values;  // numbers in decimal, words, texts; a flag's is "true" or "false"
  SourceLocation location;
};
using Annotations = std::vector<Annotation>;

enum class MemScope : uint8_t { global, shared, fragment, local };
const char* scope_name(MemScope s);

// What the launch reads of a workspace, all 0 before the first kernel, when the kernels are done.
enum class Report : uint8_t {
  none,
  assertions,  // ir/assertion.h
  prints,      // ir/print.h: records
};

// A global tensor parameter (extents and strides may use dims), or an on-chip tile of one kernel (constant
// extents).
struct Buffer {
  std::string name;
  MemScope scope = MemScope::global;
  DType type = DType::f32;
  std::vector<ExprId> shape;    // i64
  std::vector<ExprId> strides;  // global only, in elements; empty = compact row-major
  bool read_only = false;       // global only: the program may not write it
  bool constant = false;        // read_only: no kernel that a launch may run beside writes it either
  // global only: memory of the launch's own, unspecified when it begins; no argument
  bool workspace = false;
  // global only: a launch may pass null. Accesses stand where its presence, a parameter, is known to hold
  bool optional = false;
  Report report = Report::none;  // workspaces: one that no text declares
  int kernel = -1;               // on-chip: index of the kernel that owns it
  SourceLocation location;
  Annotations annotations = {};  // on-chip
  // global only: the packed type whose codes its bytes are, those of one byte behind each other in the last
  // dimension; an argument may be a tensor of that type
  DType packed = DType::none;
};

// A box of a buffer: per dimension an offset and an extent. Extents are constants; a region may hang over the
// edge of a global tensor (reads give 0, writes are dropped), never over the edge of an on-chip buffer.
struct Region {
  BufferId buffer;
  std::vector<ExprId> offsets;
  std::vector<int64_t> extents;
};

enum class LoopKind : uint8_t { serial, unroll, vectorized, parallel, pipelined };
const char* loop_kind_name(LoopKind k);

// for var in begin .. begin+extent. Parallel loops may have several variables, all starting at 0 with
// constant extents; their iterations are independent, and only stores and ifs may stand inside. The others
// have one variable.
struct Loop {
  LoopKind kind = LoopKind::serial;
  std::vector<VarId> vars;
  ExprId begin;
  std::vector<ExprId> extents;
  int64_t num_stages = 0;  // pipelined: 0 = let the planner choose
  // optional, of serial loops, the same for the block: asked before each iteration, the first that it does
  // not hold for ends the loop
  ExprId condition = {};
  Block body;
};

struct Branch {
  ExprId condition;  // block-uniform unless inside a parallel loop
  Block then_body;
  Block else_body;
};

// One element written; legal inside parallel loops and, for local buffers and uniform values, elsewhere.
// `atomic`: the element becomes what the kind makes of its old value and `value`, one such store after the
// other.
struct Store {
  BufferId buffer;
  std::vector<ExprId> indices;
  ExprId value;
  std::optional<AtomicKind> atomic = std::nullopt;
  ExprId expected = {};  // of compare_exchange
  // Of atomic ones inside a parallel loop, optional: the element of a shared tile that becomes the old value,
  // 0 where the store is outside of its tensor.
  struct OldValue {
    BufferId buffer;
    std::vector<ExprId> indices;
  };
  std::optional<OldValue> old = std::nullopt;
  AtomicOrder order = AtomicOrder::relaxed;  // of atomic ones
};

// What an atomic operation leaves in memory; of all kinds but append. `expected` is for compare_exchange.
ScalarValue eval_atomic(AtomicKind kind, ScalarValue old, ScalarValue value, ScalarValue expected = {});
// Of the kinds that combine: those before exchange.
ExprOp atomic_operation(AtomicKind kind);
// Values of the type can be combined in memory: numbers of at least 16 bits; bits of integers.
bool takes_atomic(AtomicKind kind, DType type);

struct TileOp {
  OpKind kind{};
  std::vector<Region> operands;            // in the row's order
  std::array<int64_t, kMaxAttrs> attrs{};  // in the row's order
  ExprId value;                            // when the row has one

  bool flag(int slot) const { return attrs[slot] != 0; }
};

struct Stmt {
  std::variant<Loop, Branch, Store, TileOp> node;
  SourceLocation location;
  std::string label = {};        // one of its kernel's, or empty
  Annotations annotations = {};  // of loops and tile operations
};

struct Kernel {
  std::string name;
  std::vector<ExprId> grid;       // 1..3 extents, slowest first; an extent of 0 launches nothing
  std::vector<VarId> block_vars;  // same order
  int64_t threads = 0;            // computing threads; 0 = the planner decides
  Block body;
  SourceLocation location;
  Annotations annotations = {};

  // Blocks that share the iterations of a loop of the body, in a form that planning has given the program
  // (expand/split_form.h): `part`, the first of block_vars, tells them apart. The sums of `split` meet in a
  // cluster; those of `workspace_split` do so by statements of the form.
  struct Split {
    StmtId loop;
    VarId part;
  };
  std::optional<Split> split, workspace_split;
};

// A parameter in launch order. A workspace has a slot like any tensor, which the launch fills and no argument
// does. So has the presence of an optional tensor, a scalar of type bool behind it: its address is not null.
struct Param {
  enum class Kind : uint8_t { dim, scalar, tensor } kind = Kind::tensor;
  VarId var;        // dim, scalar
  BufferId buffer;  // tensor; scalar: the optional one whose presence it is
};

// A constant of the text that takes one value of a finite domain. The body holds the value folded in.
struct CompileParam {
  std::string name;
  std::vector<int64_t> domain;  // distinct, in the order given; the first value is the default
  int64_t value = 0;            // one of the domain
  SourceLocation location;
};

// A value chosen for the compile-time parameter of that name.
struct ParamBinding {
  std::string name;
  int64_t value = 0;
};

struct NativeFunction;  // ir/native.h

struct Program {
  std::string name;
  std::vector<CompileParam> compile_params;
  std::vector<std::shared_ptr<const NativeFunction>> natives;  // in the order of the text
  ExprPool exprs;
  std::vector<Var> vars;
  std::vector<Buffer> buffers;
  std::vector<Stmt> stmts;
  std::vector<Kernel> kernels;  // run in order
  std::vector<Param> params;
  std::vector<std::string> messages;  // of its assertions
  // A value that it prints, in the order of the text.
  struct Printed {
    std::string text;
    int64_t position = 0;  // among the values of its statement
    DType type = DType::f32;
  };
  std::vector<Printed> prints;

  // What names the program as written, in a form that planning has given it (schedule/canonical_form.h).
  struct Written {
    std::string hash;
    std::vector<std::string> paths;  // by statement
  };
  std::shared_ptr<const Written> written;

  const Var& var(VarId id) const { return vars[id.value]; }
  const Buffer& buffer(BufferId id) const { return buffers[id.value]; }
  const Stmt& stmt(StmtId id) const { return stmts[id.value]; }
  bool is_workspace(const Param& p) const {
    return p.kind == Param::Kind::tensor && buffer(p.buffer).workspace;
  }
  bool is_presence(const Param& p) const { return p.kind == Param::Kind::scalar && p.buffer.valid(); }
  bool takes_argument(const Param& p) const { return !is_workspace(p) && !is_presence(p); }
  // The parameter that says whether an optional tensor is there; invalid of others.
  VarId presence(BufferId id) const;
  template <class T>
  const T* as(StmtId id) const {
    return std::get_if<T>(&stmts[id.value].node);
  }

  // Constant extents of an on-chip buffer.
  std::vector<int64_t> tile_shape(BufferId id) const;
};

// Launches refuse dims above this that an extent or a stride of a tensor is made of, whether or not the
// tensor has elements. It is beyond every memory, and low enough for index arithmetic on such dims not to
// wrap.
constexpr int64_t kMaxExtent = int64_t{1} << 48;
// The greatest value that each variable may have by its facts and by that limit.
std::vector<int64_t> greatest_values(const Program& p);

// Adds the presence of an optional tensor, which is the last parameter.
void add_presence(Program& p, BufferId tensor);

// Path of every statement, loop and op, indexed by StmtId; and of one buffer.
std::vector<std::string> statement_paths(const Program& p);
std::string buffer_path(const Program& p, BufferId id);

// Calls visit(stmt id, depth) for every statement of a block in program order, outer before inner.
template <class Visit>
void for_each_statement(const Program& p, const Block& block, Visit&& visit, int depth = 0) {
  for (StmtId id : block) {
    visit(id, depth);
    if (const auto* loop = p.as<Loop>(id)) for_each_statement(p, loop->body, visit, depth + 1);
    if (const auto* branch = p.as<Branch>(id)) {
      for_each_statement(p, branch->then_body, visit, depth + 1);
      for_each_statement(p, branch->else_body, visit, depth + 1);
    }
  }
}

}  // namespace tilegen::ir
