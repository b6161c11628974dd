// What the parser keeps of what it has read: names, open blocks, functions.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/program.h"
#include "ir/text_lexer.h"

namespace tilegen::ir::text {

enum class SymbolKind : uint8_t { variable, buffer, kernel, compile_param, constant };
struct Symbol {
  SymbolKind kind;
  uint32_t id;
  uint32_t line, column;
  std::string_view file;
};

enum class BlockKind : uint8_t { kernel, loop, then_body, else_body, discarded };
struct OpenBlock {
  BlockKind kind;
  StmtId stmt;        // loop, then_body, else_body
  size_t scope_mark;  // names declared since are forgotten when the block closes
  Token opened;
  Block body;
  bool chained = false;  // of "else if" and "case": it ends with the if that it holds
  VarId chosen{};        // of a switch: what its cases are compared with
};

struct Function {
  std::vector<VarId> parameters;
  std::vector<ExprId> values;    // its results
  std::optional<size_t> native;  // of the program, where it has native text
};

struct IndexFunction {
  ExprPool exprs;
  std::vector<VarId> indices;
  ExprId offset;
};

struct HiddenName {
  std::string_view name;
  std::optional<Symbol> symbol;
};

}  // namespace tilegen::ir::text
