// Texts that a text includes. Each is read where it stands, by a lexer of its own, until its end.
#include <algorithm>

#include "ir/text_parser.h"
#include "support/diag_codes.h"
#include "support/included_place.h"

namespace tilegen::ir::text {
namespace {

constexpr size_t kShownTexts = 8;  // of a chain

std::string_view name_of(std::string_view file) { return file.substr(0, file.find('\0')); }

std::string shown(std::string_view name) { return name.empty() ? "the program's text" : std::string(name); }

}  // namespace

// include "path"
bool Parser::parse_include() {
  const Token path = token_;
  if (path.kind != TokenKind::string)
    return expected("the path of the text to include",
                    "write it between quotation marks: include \"lib/rows.tl\"");
  if (!path_fits(path)) return false;
  if (!included_.ask)
    return limit(
        DiagCode::syntax_error, path,
        "include " + std::string(path.text) + " needs another text, and whoever reads this one gives none",
        "set tl_parse_options::include, in Python give include=, a function or a folder; the tool reads "
        "files");
  if (included_.around.size() >= static_cast<size_t>(kMaxIncludeDepth))
    return limit(DiagCode::limit_nesting, path,
                 "texts include each other " + std::to_string(kMaxIncludeDepth + 1) + " deep, at most " +
                     std::to_string(kMaxIncludeDepth) + " are read: " + chain_to({}),
                 "include fewer texts from texts that are included");
  IncludedText got = included_.ask(
      {path.body, name_of(file_), path.line, path.column, static_cast<int>(included_.around.size()) + 1});
  if (cancellation_ != nullptr && cancellation_->requested()) {
    cancelled_ = true;
    limit_reached();
    return false;
  }
  if (!got.text)
    return limit(DiagCode::io_failure, path,
                 "there is no text for include " + std::string(path.text) +
                     (got.refusal.empty() ? "" : ": " + got.refusal),
                 "correct the path, or give the text under it");
  if (got.name.empty()) got.name = path.body;
  if (got.name.size() > kMaxTextName || got.name.find('\0') != std::string::npos)
    return limit(DiagCode::bad_name, path,
                 "the text of include " + std::string(path.text) + " is given a name of " +
                     std::to_string(got.name.size()) + " bytes; at most " + std::to_string(kMaxTextName) +
                     " are allowed",
                 "give it a shorter name");
  if (is_open_text(got.name))
    return limit(DiagCode::misplaced_statement, path, got.name + " includes itself: " + chain_to(got.name),
                 "take one of these includes out; what both need stands in a text of its own");
  if (included_.read.insert(got.name).second) return enter_text(std::move(got), path);
  advance();
  return true;
}

bool Parser::path_fits(const Token& path) {
  if (!path.body.empty() && path.body.size() <= kMaxIncludePath) return true;
  return limit(DiagCode::bad_name, path,
               "the path of an include has " + std::to_string(path.body.size()) +
                   " characters, expected 1 to " + std::to_string(kMaxIncludePath),
               "write the path of a text: include \"lib/rows.tl\"");
}

bool Parser::enter_text(IncludedText got, const Token& path) {
  bytes_ += got.text->size();
  if (!check_bytes("with this one, the program's texts have ", path)) return false;
  const std::string& text = included_.texts.emplace_back(std::move(*got.text));
  const std::string& file = included_.files.emplace_back(included_file(got.name, location(path)));
  included_.around.push_back({lexer_, file_});
  lexer_ = Lexer(text);
  file_ = file;
  advance();
  return true;
}

// At the end of a text: goes on in the one that includes it. False at the end of the program's.
bool Parser::leave_text() {
  if (included_.around.empty() || stopped_) return false;
  if (!open_.empty()) {
    close_text();
    limit_reached();
    return false;
  }
  lexer_ = included_.around.back().lexer;
  file_ = included_.around.back().file;
  included_.around.pop_back();
  advance();
  return true;
}

bool Parser::is_open_text(std::string_view name) const {
  return name_of(file_) == name ||
         std::any_of(included_.around.begin(), included_.around.end(),
                     [&](const IncludedTexts::Open& t) { return name_of(t.file) == name; });
}

// "main.tl, rows.tl, sums.tl, rows.tl": the texts that are open, from the one of that name, and it again. An
// empty name: all that are open.
std::string Parser::chain_to(std::string_view name) const {
  std::vector<std::string_view> chain;
  for (const IncludedTexts::Open& t : included_.around) chain.push_back(name_of(t.file));
  chain.push_back(name_of(file_));
  if (!name.empty()) {
    chain.erase(chain.begin(), std::find(chain.begin(), chain.end(), name));
    chain.push_back(name);
  }
  std::string text;
  for (size_t i = 0; i < chain.size(); ++i) {
    const bool cut = chain.size() > kShownTexts && i == kShownTexts / 2;
    if (cut) i = chain.size() - kShownTexts / 2;
    text += (i == 0 ? "" : cut ? ", ..., " : ", ") + shown(chain[i]);
  }
  return text;
}

// tl 1 program NAME, where declarations stand
bool Parser::misplaced_header() {
  const bool included = !included_.around.empty();
  error(DiagCode::misplaced_statement, token_,
        included ? "an included text begins a program of its own" : "the text begins a second program",
        included ? "leave out its line 'tl 1 program NAME': what it declares is part of the program that "
                   "includes it"
                 : "a text holds one program: write the other one in a text of its own");
  return false;
}

}  // namespace tilegen::ir::text
