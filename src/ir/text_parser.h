// The parser after parse_program. One object reads one text.
//
// Nothing here recurses on the input: statements nest in `open_`, expressions in two stacks of parse_expr.
// After an error an invalid ExprId (a poisoned expression) or a discarded block takes the place of what was
// wrong, and parsing goes on to find more errors; poison never reaches the ExprPool and a program with an
// error is never returned.
#pragma once

#include <array>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/annotations.h"
#include "ir/carried_scan.h"
#include "ir/cast_modes.h"
#include "ir/draft.h"
#include "ir/native.h"
#include "ir/print.h"
#include "ir/program.h"
#include "ir/text_grammar.h"
#include "ir/text_included.h"
#include "ir/text_lexer.h"
#include "ir/text_parser_parts.h"
#include "ir/thread_ids.h"
#include "support/cancellation.h"

namespace tilegen::ir::text {

class Parser {
 public:
  Parser(std::string_view text, std::string_view file, const Limits& limits, const Cancellation* cancellation,
         std::span<const ParamBinding> bindings = {}, const IncludeText& include = {})
      : lexer_(text),
        file_(file),
        included_{include},
        limits_(limits),
        cancellation_(cancellation),
        stop_(cancellation, 64),
        bytes_(text.size()),
        bindings_(bindings),
        bound_(bindings.size()) {}
  Expected<Program> run();
  Checked run_part();
  // Texts of their own (ir/annotations.h).
  Expected<Annotations> run_annotations(AnnotationPlace place, std::string_view what);
  Expected<std::vector<int64_t>> run_index_function(std::span<const int64_t> shape);

  struct Pending;     // operators and brackets an expression has open
  struct ExprStacks;  // both defined in text_parse_expr.cpp

 private:
  // text_parse.cpp: program, declarations, kernels
  void resolve();
  void read_items();
  bool check_bytes(std::string_view who, const Token& at);
  void close_text();
  bool parse_header();
  void parse_top_level();
  bool parse_dim();
  bool parse_scalar();
  bool parse_tensor();
  bool parse_kernel();

  // text_parse_include.cpp: texts that this one includes
  bool parse_include();
  bool path_fits(const Token& path);
  bool enter_text(IncludedText got, const Token& path);
  bool leave_text();
  bool is_open_text(std::string_view name) const;
  std::string chain_to(std::string_view name) const;
  bool misplaced_header();

  // text_parse_function.cpp: constants and functions
  bool parse_top_level_let();
  bool parse_function();
  bool parse_parameters(Function& f);
  bool parse_result_types(std::vector<DType>& types);
  bool parse_function_body(Function& f, const std::vector<DType>& types);
  bool parse_result(ExprId& value, DType type);
  bool parse_typed_value(ExprId& value, const Token& name, DType type);
  bool parse_value_of(ExprId& value, const Token& name, DType type, const Token& at);
  void declare_constant(const Token& name, ExprId value);
  ExprId use_constant(uint32_t id, const Token& at);
  // Of several results the one chosen; none: the function has one.
  ExprId call_function(const Function& f, std::optional<size_t> result, std::span<const ExprId> args,
                       const Token& at);
  bool parse_chosen_result(const Function& f, size_t& result);
  // The program's, else the library's, which is the program's from then on.
  const Function* find_function(const Token& name);
  void unknown_function(const Token& name);
  bool parse_cast_mode(CastMode& mode);
  bool arguments_fit(const Function& f, std::span<const ExprId> args, const Token& at);
  ExprId result_of(const Function& f, size_t result, std::span<const ExprId> args, const Token& at);

  // text_parse_native.cpp: native text of functions, and calls of several results
  bool parse_native_texts(std::vector<NativeText>& texts);
  bool parse_native_form(NativeForm& form);
  void add_native(Function& f, const Token& name, std::vector<NativeText> texts);
  bool parse_let_of_results(Token first, bool assignable);

  // text_parse_atom.cpp: matrix instructions
  struct AtomOperands {
    Function of;  // parameters alone, and later the meaning
    std::array<std::array<int64_t, 2>, 3> shapes{};
    std::array<std::string, 3> layouts;
  };
  bool parse_atom();
  bool parse_atom_operands(AtomOperands& operands);
  bool parse_atom_layout(std::string& layout);

  bool parse_grid(Kernel& kernel, std::vector<Token>& names);

  // text_parse_param.cpp: compile-time parameters and constants
  bool parse_param();
  bool parse_domain(CompileParam& param, bool& types);
  bool parse_param_value(int64_t& value, bool& types, std::string_view what);
  void bind(CompileParam& param, bool types, const Token& at);
  void check_bindings();
  ExprId use_param(uint32_t id, const Token& at);
  bool begins_constant(std::string_view what);
  // `dynamic`: what to write where the value that stands there is known at launch only.
  bool parse_constant(int64_t& out, std::string_view what, std::string_view dynamic = {});
  bool parse_extent(int64_t& out, std::string_view what, std::string_view dynamic = {});
  std::optional<DType> type_named(std::string_view name) const;
  static std::string value_text(bool types, int64_t value);
  static std::string domain_text(bool types, const CompileParam& param);

  // text_parse_block.cpp: blocks and statements
  void parse_item();
  void close_block();
  bool close_dangling_blocks();
  bool parse_alloc();
  bool parse_scope(MemScope& out);
  bool room_for_rank(size_t dimensions, const Token& at);
  void check_rank(BufferId buffer, size_t given, const Token& at);
  bool parse_statement();
  bool parse_loop(LoopKind kind);
  bool parse_step(Loop& loop, const Token& name, ExprId& value);
  bool close_chain();
  bool parse_bounds(Loop& loop);
  bool parse_parallel();
  bool parse_if();
  bool in_parallel() const;
  bool parse_else(const OpenBlock& closed);
  bool open_block(BlockKind kind, StmtId stmt, size_t scope_mark);
  void check_reached(const Token& at);
  StmtId add_statement(const Token& at, std::variant<Loop, Branch, Store, TileOp> node);
  VarId add_loop_var(const Token& name, VarKind kind);
  VarId add_unseen_var(const Token& name, VarKind kind);

  // text_parse_let.cpp: named values, assignments and stores
  bool parse_let(bool assignable);
  bool parse_assignment(const Token& name);
  bool parse_store(const Token& name);
  bool add_stored(const Token& name, Store store);
  bool parse_assigned(ExprId& value, ExprId old, DType type, std::string_view what);
  bool add_assignment(const Token& at, VarId var, ExprId value);

  // text_parse_view.cpp: views of tiles and tensors
  bool begins_view() const;
  bool parse_view();
  bool parse_view_of(const Token& name, BufferId of, TileView view, std::span<const ExprId> shape);
  bool parse_view_box(BufferId& of, TileView& view, std::vector<ExprId>& shape);
  bool parse_view_extent(BufferId of, std::vector<ExprId>& out);
  bool parse_integers(std::vector<int64_t>& out, std::string_view what);

  // text_parse_atomic.cpp: atomic operations on one element
  bool parse_atomic(Store& store);
  bool parse_atomic_order(AtomicOrder& order);
  bool parse_atomic_store();
  bool parse_named_old(const Token& at, VarId& named);
  bool parse_let_of_old(const Token& name, DType type, bool assignable);
  bool parse_old_value(const Token& name, Store to);

  // text_parse_jump.cpp: while, break, continue, return
  bool parse_while();
  bool parse_loop_condition(Loop& loop);
  bool parse_jump(Draft::Jump kind);

  // text_parse_threads.cpp: blocks of threads
  bool parse_points(const Token& at, std::string_view what, std::string_view dynamic, Loop& loop,
                    std::vector<int64_t>& extents);
  bool parse_threads(const Token& at);
  bool parse_barrier(const Token& word);
  bool parse_async_copy(const Token& word);
  bool parse_thread_region(Region& region, std::string_view what);
  const Loop* threads_around() const;
  ExprId make_id_call(IdOp op, const Token& at);
  ExprId make_lane_call(std::string_view name, std::span<const ExprId> args, const Token& at);

  // text_parse_switch.cpp: switch
  bool parse_switch();
  bool parse_case(VarId chosen);
  bool parse_case_value(int64_t& number, DType type);
  bool close_case(const OpenBlock& closed);

  // text_parse_report.cpp: what a launch tells
  bool parse_assert();
  bool parse_print();
  bool parse_print_tile(std::string text, const Token& word);
  bool add_print_statement(Print what, const Token& word);
  bool parse_message(std::string& out, std::string_view what);
  bool room_for_report(int64_t statements, const Token& at);
  std::vector<StmtId> open_statements() const;

  // text_parse_annotations.cpp: labels and annotations
  bool parse_label();
  void take_label(StmtId id);
  bool parse_with(AnnotationPlace place, std::string_view what, Annotations& out);
  bool parse_annotation_list(AnnotationPlace place, std::string_view what, Annotations& out);
  bool parse_annotation(const AnnotationRow& row, const Token& name, Annotations& out);
  bool parse_annotation_value(const AnnotationRow& row, std::string& out);
  bool parse_annotation_word(const AnnotationRow& row, std::string& out);
  void unknown_annotation(AnnotationPlace place, std::string_view what, const Token& name);
  bool skip_annotation();

  // text_parse_index_function.cpp: layouts as functions of the indices
  bool parse_index_names(std::vector<VarId>& vars, std::vector<HiddenName>& hidden);
  bool parse_index_function(std::string& out);
  bool is_index_function(size_t first_index, const Token& at);
  std::string print_index_function(std::span<const VarId> vars) const;

  // text_parse_op.cpp: tile operations
  bool parse_tile_op(OpKind kind);
  bool finish_tile_op(const Token& at, const OpRow& row, TileOp op);
  bool parse_operands(const OpRow& row, TileOp& op, std::span<const int> slots);
  bool parse_region(Region& region, std::string_view what);
  bool parse_ranges(Region& region);
  void take_extents(const Token& at, Region& place, const Region& from, const std::vector<bool>& ranges);
  void whole_buffer(Region& region, const Token& at);
  bool parse_attributes(const OpRow& row, TileOp& op, Annotations& annotations);
  bool parse_attribute_value(const AttrRow& row, const Token& name, int64_t& value);
  void unknown_attribute(const OpRow& row, const Token& name);

  // text_parse_arg.cpp: operations that are made of other statements
  bool parse_arg_reduction(const Token& word);
  bool parse_sort(const Token& word);
  bool parse_compression(const Token& word);
  bool parse_atomic_fetch(const Token& word, const OpRow& row, TileOp op);
  bool parse_region_list(std::vector<Region>& out, std::string_view what);
  bool begins_carry();
  bool parse_carry(std::vector<Region>& carry);
  bool parse_carried_scan(const Token& word, const OpRow& row, TileOp op);
  bool add_carried(const Token& word, CarriedScan what);
  bool begins_combination();
  bool parse_combination(const Token& word, const OpRow& row, std::vector<Region> src,
                         std::vector<Region> dst);
  struct WordFlag {
    std::string_view name;
    bool* set;
  };
  bool parse_word_attributes(const Token& word, int64_t& axis, std::span<const WordFlag> flags);
  bool parse_first_group(Combination& what);
  bool begins_made(const Token& word, std::initializer_list<const Region*> regions, int64_t statements,
                   bool& usable);

  // text_parse_expr.cpp: expressions
  // Infix operators looser than `loosest` end it, unless they stand in brackets. A literal without a type
  // that is the whole of it takes the type `context`.
  bool parse_expr(ExprId& out, Level loosest = kAny, DType context = DType::none);
  bool parse_operand(ExprStacks& s, bool& complete);
  bool parse_named_operand(ExprStacks& s, bool& complete);
  bool parse_infix(ExprStacks& s, const Infix& infix);
  bool parse_present(ExprId& out);
  bool open_call(ExprStacks& s, const Token& name, std::optional<size_t> result, bool& complete);
  bool ends_cast_value(const ExprStacks& s) const;
  bool push_bracket(ExprStacks& s, Pending p);
  bool push_prefix(ExprStacks& s, Pending p);
  bool close_bracket(ExprStacks& s);
  void reduce_to_bracket(ExprStacks& s);
  void reduce(ExprStacks& s);
  bool parse_exprs(std::string_view close, std::vector<ExprId>& out, std::string_view what);
  bool parse_index(ExprId& out, std::string_view what);

  // text_parse_literals.cpp: literals without a type, inf and nan too, have one where they are used, and so
  // does what is computed of such alone: the steps that compute it, in postfix order.
  struct LiteralStep {
    Token at;
    ExprOp op = ExprOp::const_int;  // that: a literal
    bool negative = false;
    ExprId condition{};  // select
  };
  // A value, or literals that take the type of what they are combined with.
  struct Operand {
    ExprId id;
    bool untyped = false;
    std::vector<LiteralStep> steps{};
  };
  static Operand open_literal(const Token& literal, bool negative) {
    return {ExprId(), true, {{literal, ExprOp::const_int, negative}}};
  }
  static bool is_of_literals(ExprOp op, std::span<const Operand> operands);
  static Operand computed(ExprOp op, std::span<const Operand> operands, const Token& at);
  static bool is_real(const Operand& o);
  void check_fits(const LiteralStep& s, ExprId a, ExprId b, ExprId value);
  ExprId typed(const Operand& o, DType context);
  DType context_of(std::span<const Operand> operands) const;
  std::vector<ExprId> arguments(const ExprStacks& s, const Pending& open);

  // text_build.cpp: literals and checked construction of nodes; an invalid id is poison
  ExprId make_literal(const Token& t, bool negative, DType context = DType::none);
  ExprId make_integer(const Token& t, bool negative, DType type);
  ExprId make_float(const Token& t, bool negative, DType type);
  bool parse_special_float(ExprId& out, const Token& word, bool negative);
  bool parse_bits(ExprId& out, const Token& number);
  ExprId make_variable(const Token& name);
  ExprId make_load(BufferId buffer, std::span<const ExprId> indices, const Token& at);
  ExprId make_unary(ExprOp op, ExprId a, const Token& at);
  ExprId make_binary(ExprOp op, ExprId a, ExprId b, const Token& at);
  ExprId make_ternary(ExprOp op, ExprId a, ExprId b, ExprId c, const Token& at);
  ExprId make_random(ExprOp op, std::array<ExprId, 3> operands, const Token& at);
  ExprId make_uniform(ExprId word, const Token& at);
  ExprId make_select(ExprId c, ExprId a, ExprId b, const Token& at);
  ExprId make_cast(DType type, ExprId a, CastMode mode, const Token& at);
  ExprId make_bitcast(DType type, ExprId a, const Token& at);
  ExprId make_ceildiv(ExprId a, ExprId b, const Token& at);
  bool require_index(ExprId& id, std::string_view what, const Token& at);
  bool operand_fits(ExprOp op, DType t, const Token& at);
  bool types_agree(DType a, DType b, const Token& at);
  bool room_for_node(int depth, const Token& at);
  ExprId constant(int64_t v, const Token& at);

  // text_parser.cpp: tokens, names, errors
  void advance();
  bool accept(std::string_view symbol_or_word);
  bool expect(std::string_view symbol_or_word, std::string_view where);
  enum class NameUse : uint8_t { value, other };  // variables and buffers cannot have reserved names
  bool parse_name(Token& out, std::string_view what, NameUse use = NameUse::value);
  bool parse_int(int64_t& out, std::string_view what);
  bool parse_dtype(DType& out);
  bool declare(const Token& name, SymbolKind kind, uint32_t id);
  const Symbol* find(std::string_view name) const;
  BufferId find_buffer(const Token& name);
  void forget_since(size_t scope_mark);
  bool expected(std::string_view what, std::string_view hint);
  void unknown_name(const Token& name, std::string_view what, bool buffers, bool variables);
  void error(DiagCode code, const Token& at, std::string message, std::string hint);
  void error(DiagCode code, SourceLocation at, std::string message, std::string hint);
  bool limit(DiagCode code, const Token& at, std::string message, std::string hint);
  void limit_reached();
  static bool starts_declaration(const Token& t);
  void recover(const Token& start, size_t scope_mark);
  SourceLocation location(const Token& at) const { return {std::string(file_), at.line, at.column}; }
  bool stopped() const { return stopped_; }

  Lexer lexer_;
  std::string_view file_;  // as locations have it
  IncludedTexts included_;
  Limits limits_;
  const Cancellation* cancellation_;
  StopCheck stop_;  // of statements and declarations
  size_t bytes_;
  Token token_;
  bool stopped_ = false;
  bool cancelled_ = false;
  std::vector<Diagnostic> diagnostics_;
  Program program_;
  std::unordered_map<std::string_view, Symbol> symbols_;
  std::unordered_map<std::string_view, Symbol> kernels_;
  std::vector<std::string_view> declared_;  // keys of symbols_, in order of declaration
  std::vector<OpenBlock> open_;
  bool statement_seen_ = false;               // in the current kernel
  static constexpr size_t kShownName = 32;    // characters of a name and
  static constexpr size_t kShownValues = 16;  // values of a domain in a message
  std::span<const ParamBinding> bindings_;
  std::vector<bool> bound_;            // by binding
  std::vector<bool> overridden_;       // by parameter: bound to another value than the text's
  std::vector<bool> param_used_;       // by parameter: the text names it
  std::vector<bool> param_of_types_;   // by parameter: its values are types
  std::vector<uint32_t> in_constant_;  // parameters that the latest constant names
  bool in_attributes_ = false;         // the "}" ahead closes an attribute list
  Draft draft_;
  std::vector<ExprId> constants_;          // by symbol
  const ExprPool* outer_exprs_ = nullptr;  // the program's, while a constant has a pool of its own
  std::unordered_map<std::string_view, Function> functions_;
  std::vector<bool> ranges_;                   // which dimensions of the latest region have an extent
  Token label_;                                // of the statement ahead
  std::set<std::string, std::less<>> labels_;  // of the kernel
  IndexFunction index_function_;               // the latest
  static constexpr size_t kMostValues = 64;    // of an annotation
  static constexpr int64_t kMostNumber = INT64_C(1) << 31;
  static constexpr size_t kMostIndexNodes = 256;
};

}  // namespace tilegen::ir::text
