// The sticky builder after the C API: makes Programs, nothing else.
//
// After the first error every call is a cheap no-op that returns an invalid id; finish() reports all
// diagnostics. Every argument is checked here (ids in range, live scopes, types), so nothing a caller passes
// can crash the process. A builder serves one thread at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/annotations.h"
#include "ir/atomic_fetch.h"
#include "ir/carried_scan.h"
#include "ir/cast_modes.h"
#include "ir/compress.h"
#include "ir/draft.h"
#include "ir/lane_exchange.h"
#include "ir/native.h"
#include "ir/program.h"
#include "ir/sort.h"
#include "ir/thread_ids.h"
#include "support/cancellation.h"
#include "support/limits.h"

namespace tilegen::builder {

using ProgramCheck = std::vector<Diagnostic> (*)(const ir::Program&, const Limits&, const Cancellation*);

// What a tensor is to the launch (ir::Buffer). `constant` ones are read-only, too.
struct TensorUse {
  bool read_only = false, constant = false, workspace = false, optional = false;
};

class Builder {
 public:
  Builder(std::string_view name, const Limits& limits);

  bool failed() const { return !diagnostics_.empty(); }
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  const Limits& limits() const { return limits_; }
  void set_location(SourceLocation loc) { location_ = std::move(loc); }
  // Records an error of `call` at the current location. Those after the first are consequences.
  void fail(DiagCode code, std::string_view call, std::string message, std::string hint);

  // Compile-time parameters, before the first kernel: the value bound before, else the domain's first, also
  // where the call fails; 1 for a domain without values.
  void bind(std::string_view name, int64_t value);
  int64_t param(std::string_view name, std::span<const int64_t> domain);

  // Parameters, before the first kernel.
  ir::VarId dim(std::string_view name);
  void dim_fact(ir::VarId dim, int64_t lower, int64_t upper, int64_t divisor);
  ir::VarId scalar(std::string_view name, ir::DType type);
  ir::BufferId tensor(std::string_view name, ir::DType type, std::span<const ir::ExprId> shape,
                      std::span<const ir::ExprId> strides, TensorUse use);
  // Of an optional tensor: whether the launch passes it.
  ir::ExprId present(ir::BufferId tensor);
  // The bytes of the tensor are codes of a packed type.
  void tensor_codes(ir::BufferId tensor, ir::DType packed);

  // Expressions. Operand types must agree; integer literals adapt nothing silently.
  ir::ExprId const_int(int64_t v, ir::DType t);
  ir::ExprId const_float(double v, ir::DType t);
  ir::ExprId var(ir::VarId v);
  ir::ExprId load(ir::BufferId buffer, std::span<const ir::ExprId> indices);
  ir::ExprId unary(ir::ExprOp op, ir::ExprId a);
  ir::ExprId binary(ir::ExprOp op, ir::ExprId a, ir::ExprId b);
  ir::ExprId ternary(ir::ExprOp op, ir::ExprId a, ir::ExprId b, ir::ExprId c);
  ir::ExprId uniform(ir::ExprId word);
  ir::ExprId select(ir::ExprId cond, ir::ExprId a, ir::ExprId b);
  ir::ExprId cast(ir::DType t, ir::ExprId a);
  ir::ExprId cast_by(ir::CastMode mode, ir::DType t, ir::ExprId a);
  ir::ExprId bitcast(ir::DType t, ir::ExprId a);
  // none for an id that is not one of this builder's
  ir::DType type_of(ir::ExprId id) const;
  // The variable an expression consists of, or an invalid id.
  ir::VarId as_var(ir::ExprId id) const;

  // Scopes: begin_* returns a token, end(token) must match the innermost open one. Token 0 = none (failed
  // builder). `names` is empty or as long as the variables; an empty name stands for a made-up one.
  uint64_t begin_kernel(std::string_view name, std::span<const ir::ExprId> grid, int64_t threads,
                        std::span<ir::VarId> out_block_vars, std::span<const std::string_view> names = {});
  uint64_t begin_loop(ir::LoopKind kind, ir::ExprId begin, ir::ExprId end, int64_t num_stages,
                      std::string_view var_name, ir::VarId* out_var);
  // Of a number of iterations; a serial one outside of parallel loops may have a condition.
  uint64_t begin_counted_loop(ir::LoopKind kind, ir::ExprId begin, ir::ExprId count, ir::ExprId condition,
                              int64_t num_stages, std::string_view var_name, ir::VarId* out_var);
  uint64_t begin_parallel(std::span<const int64_t> extents, std::span<ir::VarId> out_vars,
                          std::span<const std::string_view> names = {});
  // The points are the threads of the kernel's block, in row-major order (ir/draft_threads.h).
  uint64_t begin_threads(std::span<const int64_t> extents, std::span<ir::VarId> out_vars,
                         std::span<const std::string_view> names = {});
  ir::ExprId lane_call(std::string_view call, const ir::LaneCall& what);
  ir::ExprId number_of(ir::IdOp op);
  void barrier();
  void async_copy(const ir::Region& from, const ir::Region& to, bool bulk = false);
  void copy_group(ir::OpKind kind, int64_t pending);  // commit_group, wait_group
  // mbarrier_arrive, mbarrier_wait; in a block of threads no threads are named
  void barrier_op(ir::OpKind kind, const ir::Region& barrier, ir::ExprId parity, int64_t first,
                  int64_t threads, bool copies = false, bool elected = false);
  uint64_t begin_if(ir::ExprId condition);
  void begin_else(uint64_t if_token);
  // Ifs on an integer that is taken once: cases stand in the switch and nothing else, each with constants of
  // the value's type; one without values is taken where no other is, and is the last.
  uint64_t begin_switch(ir::ExprId value);
  uint64_t begin_case(uint64_t switch_token, std::span<const int64_t> values);
  void end(uint64_t token);

  // Statements of the innermost scope.
  ir::BufferId alloc(std::string_view name, ir::MemScope scope, ir::DType type,
                     std::span<const int64_t> shape);
  // extents empty = whole buffer (offsets must be empty too)
  std::optional<ir::Region> region(ir::BufferId buffer, std::span<const ir::ExprId> offsets,
                                   std::span<const int64_t> extents);
  // The elements of a tile, or of another view, in another shape; of a slice the box's.
  ir::BufferId view(ir::BufferId of, ir::TileView::Form form, std::span<const int64_t> numbers);
  ir::BufferId view(ir::BufferId of, ir::DType type);  // reinterpreted
  ir::BufferId view(const ir::Region& box);
  // The same of extents that the launch tells, of tensors.
  ir::BufferId view_reshaped(ir::BufferId of, std::span<const ir::ExprId> extents);
  ir::BufferId view_box(ir::BufferId of, std::span<const ir::ExprId> offsets,
                        std::span<const ir::ExprId> extents);
  // Extents of a box that has none, beside the other side of a copy.
  void take_extents(std::string_view call, ir::Region& place, const ir::Region& from);
  void tile_op(ir::OpKind kind, std::span<const ir::Region> operands, std::span<const int64_t> attrs,
               ir::ExprId value);
  void arg_reduce(const ir::Region& src, const ir::Region& value, const ir::Region& index, bool largest,
                  int64_t axis);
  void sort(const ir::Sort& what);
  void compress(const ir::Compression& what);
  void atomic_fetch(const ir::AtomicFetch& what);
  // A value that stands for one of a group's in the results of a combination.
  ir::VarId operand(std::string_view name, ir::DType type);
  // A function of these operands, with native text or without, before what calls it.
  void function(std::string_view name, std::span<const ir::ExprId> operands,
                std::span<const ir::ExprId> results, std::vector<ir::NativeText> texts);
  // A matrix instruction, before the kernels that name it. Without operands its meaning is the plain one.
  struct Atom {
    std::string_view name;
    ir::MatrixAtom atom;
    std::array<ir::DType, 3> types;
    std::vector<ir::ExprId> operands;
    ir::ExprId meaning;
    ir::NativeText text;
  };
  void matrix_atom(Atom atom);
  ir::ExprId call(std::string_view function, std::span<const ir::ExprId> args, size_t result);
  // `what` without the operands of the combination, which are given beside it.
  void combine(ir::Combination what, std::span<const ir::ExprId> left, std::span<const ir::ExprId> right,
               std::vector<ir::Region> carry = {});
  void scan_carry(const ir::Region& src, const ir::Region& dst, const ir::Region& carry,
                  std::span<const int64_t> attrs);
  void store(ir::BufferId buffer, std::span<const ir::ExprId> indices, ir::ExprId value);
  void atomic_store(ir::BufferId buffer, std::span<const ir::ExprId> indices, ir::ExprId value,
                    ir::AtomicKind kind);
  void atomic_order(ir::AtomicOrder order);  // of the atomic operation ahead
  // The same, also compare_exchange with what it expects: gives a name for the old value.
  ir::VarId fetch_atomic(ir::BufferId buffer, std::span<const ir::ExprId> indices, ir::ExprId value,
                         ir::AtomicKind kind, ir::ExprId expected, std::string_view name);
  // The same into an element of a shared tile; `what` has no `old`.
  void fetch_atomic_to(ir::Store what, ir::BufferId old, std::span<const ir::ExprId> old_indices);

  // A loop that goes on while the condition, which is the same for the block, holds.
  uint64_t begin_while(ir::ExprId condition);
  void jump(ir::Draft::Jump kind);

  // The launch fails with the message where `condition` does not hold.
  void assertion(ir::ExprId condition, std::string_view message);

  // The launch prints the text and the values, or the elements of a region.
  void print(std::string_view text, std::span<const ir::ExprId> values);
  void print_tile(std::string_view text, const ir::Region& region);

  // A name for what an expression's value is here; with `assignable`, inside parallel loops, one that
  // assign() gives other values.
  ir::VarId let(std::string_view name, ir::ExprId value, bool assignable);
  void assign(ir::ExprId var, ir::ExprId value);

  // Of the next operation, loop, if or store; annotations of a tile and of the open kernel.
  void label(std::string_view name);
  void annotate(std::string_view text);
  void annotate_tile(ir::BufferId tile, std::string_view text);
  void annotate_kernel(std::string_view text);

  // Hands the program over once `check` (check::check_program, a later stage of the road) finds no error. The
  // builder is spent.
  Expected<std::shared_ptr<const ir::Program>> finish(ProgramCheck check,
                                                      const Cancellation* cancellation = nullptr);

 private:
  struct Frame {
    enum class Kind : uint8_t { kernel, loop, parallel, branch, choice } kind = Kind::kernel;
    uint64_t token = 0;
    ir::StmtId stmt;      // none for a kernel
    ir::Block body;       // of the branch being filled
    ir::Block then_body;  // branch: set once begin_else ran
    bool in_else = false;
    ir::VarId chosen;       // choice: what cases are compared with
    int64_t cases = 0;      // choice: each stands in the else of the one before; stmt is the last one's if
    bool of_case = false;   // branch: of a switch
    int64_t unroll = 1;     // copies of this body that unrolled loops make
    size_t first_name = 0;  // names_ to forget when it ends
    SourceLocation opened;
    std::string what;  // "kernel 'gemm'"
  };

  // Usable for a call that builds something; a spent builder fails here.
  bool ready(std::string_view call);
  bool check_name(std::string_view call, std::string_view name);
  // check_name + not reserved + not visible; then visible until the frame ends.
  bool declare(std::string_view call, std::string_view name, std::string_view what);
  bool check_dtype(std::string_view call, ir::DType t);
  bool check_expr(std::string_view call, std::string_view what, ir::ExprId id);
  bool check_index(std::string_view call, std::string_view what, ir::ExprId id);
  bool check_indices(std::string_view call, ir::BufferId buffer, std::span<const ir::ExprId> indices);
  bool check_buffer(std::string_view call, std::string_view what, ir::BufferId id);
  bool check_region(std::string_view call, std::string_view what, const ir::Region& r);
  bool check_rank(std::string_view call, std::string_view what, size_t rank);
  bool check_leaves(std::string_view call, std::string_view what, ir::ExprId id);
  bool check_operands(std::string_view call, std::initializer_list<ir::ExprId> operands);
  bool check_names(std::string_view call, std::span<const std::string_view> names, size_t count);
  bool check_attrs(std::string_view call, const ir::OpRow& row, std::span<const int64_t> attrs);
  bool before_kernels(std::string_view call);
  bool check_domain(std::string_view name, std::span<const int64_t> domain);
  std::string param_names() const;
  void check_bindings(std::string_view call);
  bool inside_kernel(std::string_view call);
  bool outside_parallel(std::string_view call);
  uint64_t open_loop(std::string_view call, ir::Loop loop, std::string_view var_name, ir::VarId* out_var);
  uint64_t open_points(std::string_view call, const std::string& what, std::span<const int64_t> extents,
                       std::span<ir::VarId> out_vars, std::span<const std::string_view> names);
  const ir::Loop* threads_around(std::string_view call);
  bool check_condition(std::string_view call, ir::ExprId condition);
  bool room_for_buffer(std::string_view call);
  bool room_for_scope(std::string_view call);

  ir::VarId add_var(std::string_view call, std::string_view name, ir::VarKind kind, ir::DType type);
  ir::VarId add_inner_var(std::string_view call, std::string_view name, ir::VarKind kind,
                          ir::DType type = ir::DType::i64);
  bool reached(std::string_view call);  // no jump stands in front, no switch without a case around
  bool check_statements(std::string_view call);
  ir::StmtId add_statement(std::string_view call,
                           std::variant<ir::Loop, ir::Branch, ir::Store, ir::TileOp> node);
  ir::StmtId add_store(std::string_view call, ir::Store store);
  // What was said of the statement ahead is said of `s`.
  ir::StmtId marked(std::string_view call, ir::StmtId s);
  // Nothing was said of the statement ahead, which has no path.
  bool unmarked(std::string_view call);
  bool check_no_order(std::string_view call);
  void add_annotations(std::string_view call, ir::Annotations& to, ir::AnnotationPlace place,
                       std::string_view what, std::string_view text);
  bool begins_made(std::string_view call, int64_t statements);
  void made(std::string_view call, const std::optional<Diagnostic>& wrong);
  bool check_operand_list(std::string_view call, std::span<const ir::ExprId> given,
                          std::vector<ir::VarId>& out);
  bool check_report(std::string_view call, std::string_view text, int64_t statements);
  std::vector<ir::StmtId> open_statements() const;
  uint64_t open(Frame frame);
  void close_frame();
  int current_kernel() const { return static_cast<int>(program_.kernels.size()) - 1; }
  bool in_parallel() const;
  ir::BufferId add_view(std::string_view call, ir::TileView view, std::span<const ir::ExprId> shape);
  std::vector<ir::ExprId> constants(std::span<const int64_t> numbers);
  void resolve_names(std::string_view call);
  std::string buffer_text(ir::BufferId id) const;

  Limits limits_;
  ir::Program program_;
  ir::Draft draft_;
  ir::AtomicOrder order_ = ir::AtomicOrder::relaxed;  // of the statement ahead
  std::vector<Diagnostic> diagnostics_;
  SourceLocation location_;
  std::vector<Frame> frames_;
  std::vector<std::string> names_;                           // visible ones, in order of declaration
  std::map<std::string, std::string, std::less<>> visible_;  // name -> what it names
  std::set<std::string, std::less<>> kernels_;               // names inside a kernel may be those of kernels
  std::map<std::string, int64_t, std::less<>> bindings_;     // by parameter, those not declared yet
  uint64_t next_token_ = 1;
  uint64_t made_up_names_ = 0;
  std::string label_;        // of the statement ahead
  std::string annotations_;  // the same
  bool annotated_ = false;
  bool asked_for_cluster_ = false;             // by expressions of the kernel
  std::set<std::string, std::less<>> labels_;  // of the kernel
  std::set<ir::VarId> operands_;               // of combinations and functions
  struct Function {
    std::vector<ir::VarId> operands;
    std::vector<ir::ExprId> results;
    std::optional<size_t> native;  // of the program
  };
  std::map<std::string, Function, std::less<>> functions_;
  bool spent_ = false;
};

}  // namespace tilegen::builder
