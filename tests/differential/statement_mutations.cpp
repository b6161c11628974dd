// Edits of statements: loops, their bounds, branches, order, attributes, threads, strides.
#include <algorithm>

#include "ir/annotations.h"
#include "ir/tile_op.h"
#include "program_mutation.h"

namespace tilegen::differential {

namespace {

using Lines = std::vector<std::string>;

bool is_loop(std::string_view word) {
  return word == "serial" || word == "unroll" || word == "vectorized" || word == "pipelined";
}

std::vector<size_t> loop_lines(const ProgramText& text) {
  std::vector<size_t> list = text.statements();
  std::erase_if(list, [&](size_t l) { return !is_loop(ProgramText::first_word(text.lines()[l])); });
  return list;
}

bool has_word(const ProgramText& text, const std::string& word) {
  const std::vector<Token> tokens = text.tokens();
  return std::any_of(tokens.begin(), tokens.end(), [&](const Token& t) { return t.text == word; });
}

std::string fresh_name(const ProgramText& text, const std::string& stem) {
  for (int n = 0;; ++n)
    if (std::string name = stem + std::to_string(n); !has_word(text, name)) return name;
}

// Dims, and variables of loops and blocks, wherever they can be seen.
std::string some_name(const ProgramText& text, Random& random) {
  std::vector<std::string> names = {"0", "1"};
  const std::vector<Token> tokens = text.tokens();
  for (size_t i = 1; i + 1 < tokens.size(); ++i) {
    const bool dim = tokens[i - 1].text == "dim";
    const bool block =
        tokens[i + 1].text == ":" && ProgramText::first_word(text.lines()[tokens[i].line]) == "kernel";
    if (dim || block || tokens[i + 1].text == "in") names.push_back(tokens[i].text);
  }
  return random.pick<std::string>(names);
}

std::string some_condition(const ProgramText& text, Random& random) {
  const std::string name = some_name(text, random), c = std::to_string(random.pick({0, 1, 2, 3, 16, 64}));
  return random.pick({name + " % 2 == 0", name + " < " + c, name + " == " + c, name + " != " + c,
                      name + " < " + some_name(text, random), c + " <= " + name});
}

// ---- loops ----

// "KIND NAME in BEGIN .. END {", perhaps with stages.
struct LoopHead {
  std::string front, begin, range, end, tail;
  std::string text() const { return front + begin + range + end + tail; }
};

bool read_head(const std::string& line, LoopHead* head) {
  const size_t in = line.find(" in ");
  if (in == std::string::npos) return false;
  const size_t dots = std::min(line.find(" .. "), line.find(" :+ "));
  const size_t tail = std::min(line.find(" stages "), line.rfind(" {"));
  if (dots == std::string::npos || tail == std::string::npos || dots < in + 4 || tail < dots + 4)
    return false;
  *head = {line.substr(0, in + 4), line.substr(in + 4, dots - in - 4), line.substr(dots, 4),
           line.substr(dots + 4, tail - dots - 4), line.substr(tail)};
  return true;
}

bool change_bound(ProgramText& text, Random& random) {
  const std::vector<size_t> loops = loop_lines(text);
  LoopHead head;
  if (loops.empty()) return false;
  std::string& line = text.lines()[random.pick<size_t>(loops)];
  if (!read_head(line, &head)) return false;
  const std::string name = some_name(text, random);
  std::string& bound = random.chance(3) ? head.begin : head.end;
  bound = random.pick({std::string("0"), std::string("1"), std::string("2"), std::string("5"), head.begin,
                       "(" + bound + ") + 1", "(" + bound + ") - 1", "(" + bound + ") * 2",
                       "(" + bound + ") // 2", "min(" + bound + ", 3)", "min(" + name + ", 4)",
                       "(" + bound + ") * min(1, " + name + ")"});
  line = head.text();
  return true;
}

// Where a new line of an allocation goes: after the head of the kernel that holds `line`.
size_t top_of_kernel(const ProgramText& text, size_t line) {
  while (line > 0 && ProgramText::first_word(text.lines()[line]) != "kernel") --line;
  return line + 1;
}

// A bound read from a tile, which the body may change.
bool bound_from_a_tile(ProgramText& text, Random& random) {
  const std::vector<size_t> loops = loop_lines(text);
  LoopHead head;
  if (loops.empty()) return false;
  const size_t at = random.pick<size_t>(loops);
  Lines& lines = text.lines();
  if (!read_head(lines[at], &head)) return false;
  const std::string cell = fresh_name(text, "cell"), element = cell + "[0]";
  const bool narrow = random.chance(3);
  const auto stored = [&](const std::string& e) {
    return element + " = " + (narrow ? "cast(i32, " + e + ")" : e);
  };
  const std::string loaded = narrow ? "cast(i64, " + element + ")" : element;
  std::string& bound = random.chance(3) ? head.begin : head.end;
  const std::string old = bound;
  bound = random.chance(3) ? "min(" + loaded + ", 6)" : loaded;
  lines[at] = head.text();
  if (random.chance(2))
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                 stored(random.pick({loaded + " + 1", loaded + " - 1", std::string("0"), std::string("3")})));
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), stored(old));
  const std::string scope = random.pick({"local ", "local ", "shared ", "fragment "});
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(top_of_kernel(text, at)),
               "  alloc " + cell + ": " + scope + (narrow ? "i32" : "i64") + "[1]");
  return true;
}

bool change_loop_kind(ProgramText& text, Random& random) {
  const std::vector<size_t> loops = loop_lines(text);
  LoopHead head;
  if (loops.empty()) return false;
  std::string& line = text.lines()[random.pick<size_t>(loops)];
  if (!read_head(line, &head)) return false;
  const std::string old(ProgramText::first_word(line));
  const std::string kind =
      random.chance(2) ? "pipelined" : random.pick({"serial", "unroll", "vectorized", "pipelined"});
  head.front.replace(head.front.find(old), old.size(), kind);
  head.tail = " {";
  if (kind == "pipelined" && !random.chance(3))
    head.tail = " stages " + std::to_string(random.pick({1, 2, 2, 3, 3, 4, 5, 6, 8})) + " {";
  line = head.text();
  return true;
}

bool change_threads(ProgramText& text, Random& random) {
  const std::vector<size_t> kernels = text.lines_of("kernel");
  if (kernels.empty()) return false;
  std::string& line = text.lines()[random.pick<size_t>(kernels)];
  line = line.substr(0, std::min(line.find(" threads "), line.rfind(" {")));
  if (!random.chance(4))
    line += " threads " + std::to_string(random.pick({32, 64, 96, 128, 128, 160, 192, 256, 256, 384, 512}));
  line += " {";
  return true;
}

// ---- statements ----

// A statement's lines, taken out or copied.
Lines lines_between(const Lines& lines, size_t first, size_t last) {
  return {lines.begin() + static_cast<std::ptrdiff_t>(first),
          lines.begin() + static_cast<std::ptrdiff_t>(last) + 1};
}
void insert(Lines& lines, size_t at, const Lines& more) {
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), more.begin(), more.end());
}
void erase(Lines& lines, size_t first, size_t last) {
  lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(first),
              lines.begin() + static_cast<std::ptrdiff_t>(last) + 1);
}

bool delete_statement(ProgramText& text, Random& random) {
  const std::vector<size_t> list = text.statements();
  if (list.empty()) return false;
  const size_t at = random.pick<size_t>(list);
  erase(text.lines(), at, text.end_of(at));
  return true;
}

// A copy of a statement before another, or the statement itself.
bool move_statement(ProgramText& text, Random& random) {
  const std::vector<size_t> list = text.statements();
  if (list.empty()) return false;
  const size_t first = random.pick<size_t>(list), last = text.end_of(first);
  const size_t to = random.chance(2) ? last + 1 : random.pick<size_t>(list);
  const Lines statement = lines_between(text.lines(), first, last);
  const bool keeps = random.chance(2);
  if (to > first && to <= last) return false;
  if (to == last + 1 && !keeps) {  // after the statement that follows
    if (std::find(list.begin(), list.end(), to) == list.end()) return false;
    insert(text.lines(), text.end_of(to) + 1, statement);
    erase(text.lines(), first, last);
    return true;
  }
  insert(text.lines(), to, statement);
  const size_t shift = to <= first ? statement.size() : 0;
  if (!keeps) erase(text.lines(), first + shift, last + shift);
  return true;
}

// Neighbours from `first` on, up to three.
size_t end_of_some(const ProgramText& text, size_t first, Random& random) {
  const std::vector<size_t> list = text.statements();
  size_t last = text.end_of(first);
  const auto indent = ProgramText::indent_of(text.lines()[first]);
  for (int more = static_cast<int>(random.below(3)); more > 0; --more)
    if (std::find(list.begin(), list.end(), last + 1) != list.end() &&
        ProgramText::indent_of(text.lines()[last + 1]) == indent)
      last = text.end_of(last + 1);
  return last;
}

bool wrap_in_a_loop(ProgramText& text, Random& random) {
  const std::vector<size_t> list = text.statements();
  if (list.empty()) return false;
  const size_t first = random.pick<size_t>(list), last = end_of_some(text, first, random);
  const std::string trips =
      random.pick({std::string("0"), std::string("1"), std::string("2"), std::string("3"), std::string("4"),
                   "min(" + some_name(text, random) + ", 3)"});
  const std::string kind = random.pick({"serial ", "serial ", "unroll ", "pipelined "});
  text.lines().insert(text.lines().begin() + static_cast<std::ptrdiff_t>(last) + 1, "}");
  insert(text.lines(), first, {kind + fresh_name(text, "turn") + " in 0 .. " + trips + " {"});
  return true;
}

bool wrap_in_a_branch(ProgramText& text, Random& random) {
  const std::vector<size_t> list = text.statements();
  if (list.empty()) return false;
  const size_t first = random.pick<size_t>(list), last = end_of_some(text, first, random);
  Lines tail = {"}"};
  if (random.chance(4)) {
    const size_t other = random.pick<size_t>(list);
    tail = lines_between(text.lines(), other, text.end_of(other));
    tail.insert(tail.begin(), "} else {");
    tail.push_back("}");
  }
  insert(text.lines(), last + 1, tail);
  insert(text.lines(), first, {"if " + some_condition(text, random) + " {"});
  return true;
}

bool unwrap(ProgramText& text, Random& random) {
  std::vector<size_t> list = text.statements();
  std::erase_if(list, [&](size_t l) { return text.end_of(l) == l; });
  if (list.empty()) return false;
  const size_t first = random.pick<size_t>(list), last = text.end_of(first);
  erase(text.lines(), last, last);
  erase(text.lines(), first, first);
  return true;
}

// The block leaves, or tells something, in front of a statement.
bool leave_early(ProgramText& text, Random& random) {
  const std::vector<size_t> list = text.statements();
  if (list.empty()) return false;
  insert(text.lines(), random.pick<size_t>(list),
         {"if " + some_condition(text, random) + " {", "return", "}"});
  return true;
}

bool print_something(ProgramText& text, Random& random) {
  const std::vector<size_t> list = text.statements();
  if (list.empty()) return false;
  const std::string name = some_name(text, random);
  insert(text.lines(), random.pick<size_t>(list),
         {random.pick({"print \"here\", " + name, std::string("print \"here\""),
                       "assert " + some_condition(text, random) + ", \"so far\""})});
  return true;
}

// ---- attributes, annotations, strides ----

// One of "first|second".
std::string some_word(std::string_view words, Random& random) {
  std::vector<std::string> list;
  for (size_t at = 0; at <= words.size();) {
    const size_t end = std::min(words.find('|', at), words.size());
    list.emplace_back(words.substr(at, end - at));
    at = end + 1;
  }
  return random.pick<std::string>(list);
}

// Adds to what stands in braces behind an operation, or behind the head of a loop or a kernel.
void add_in_braces(std::string& line, const std::string& words) {
  if (line.ends_with("}"))
    line.insert(line.size() - 1, ", " + words);
  else if (line.ends_with("} {"))
    line.insert(line.size() - 3, ", " + words);
  else if (line.ends_with(" {"))
    line.insert(line.size() - 2, " with {" + words + "}");
  else
    line += " {" + words + "}";
}

// A value that an annotation of the row may have; empty: none is made up.
std::string some_value(const ir::AnnotationRow& row, const ProgramText& text, Random& random) {
  const auto number = [&] {
    return std::to_string(
        std::max(row.least, random.pick<int64_t>({0, 1, 1, 2, 2, 3, 4, 8, 16, 32, 64, 128, 240})));
  };
  switch (row.kind) {
    case ir::AnnotationKind::flag:
      return random.pick({"true", "false"});
    case ir::AnnotationKind::number:
      return number();
    case ir::AnnotationKind::numbers:
      return "[" + number() + ", " + number() + "]";
    case ir::AnnotationKind::word:
      return some_word(row.values, random);
    case ir::AnnotationKind::name:
      return some_name(text, random);
    case ir::AnnotationKind::names:
      return "[" + some_name(text, random) + "]";
    case ir::AnnotationKind::layout:
      return random.pick({"(i, j) -> i * 64 + j", "(i, j) -> i * 32 + (j ^ i % 8 * 4)", "(i) -> i",
                          "(i, j) -> (i // 8 * 32 + j) * 8 + i % 8"});
    case ir::AnnotationKind::text:
      return random.pick({"\"mma.m16n8k16.f32.f16\"", "\"wgmma.m64n64k16.f32.f16\""});
  }
  return {};
}

// A decision that the program asks for: any that the language has, where it may stand.
bool ask_for(ProgramText& text, Random& random) {
  Lines& lines = text.lines();
  const ir::AnnotationRow& row = random.pick<ir::AnnotationRow>(ir::annotation_rows());
  std::vector<size_t> places;
  for (size_t l = 0; l < lines.size(); ++l) {
    const auto word = ProgramText::first_word(lines[l]);
    const bool op = ir::op_from_text(word).has_value();
    const bool stands = row.place == ir::AnnotationPlace::kernel ? word == "kernel"
                        : row.place == ir::AnnotationPlace::loop ? is_loop(word)
                        : row.place == ir::AnnotationPlace::tile ? word == "alloc"
                                                                 : op || word == "parallel";
    if (stands && lines[l].find(row.key) == std::string::npos) places.push_back(l);
  }
  if (places.empty()) return false;
  std::string& line = lines[random.pick<size_t>(places)];
  add_in_braces(line, std::string(row.key) + " = " + some_value(row, text, random));
  return true;
}

// An attribute of an operation is set, or left out.
bool change_attribute(ProgramText& text, Random& random) {
  const auto row_of = [&](size_t l) {
    const auto kind = ir::op_from_text(ProgramText::first_word(text.lines()[l]));
    return kind && !ir::op_row(*kind).attrs.empty() ? &ir::op_row(*kind) : nullptr;
  };
  std::vector<size_t> list = text.statements();
  std::erase_if(list, [&](size_t l) { return !row_of(l); });
  if (list.empty()) return false;
  const size_t at = random.pick<size_t>(list);
  const ir::AttrRow& attribute = random.pick<ir::AttrRow>(row_of(at)->attrs);
  std::string& line = text.lines()[at];
  if (const size_t open = line.find('{'); open != std::string::npos) {
    const std::string name(attribute.name);
    const size_t there = std::min(line.find("{" + name, open), line.find(" " + name, open));
    if (there != std::string::npos) {
      const size_t end = std::min(line.find(',', there), line.find('}', there));
      const bool last = line[end] == '}';
      line.erase(there + 1, end - there - (last ? 1 : 0));
      if (last && line[there] == ' ' && line[there - 1] == ',') line.erase(there - 1, 2);
      if (line.ends_with(" {}")) line.resize(line.size() - 3);
      if (attribute.type == ir::AttrType::boolean) return true;
    }
  }
  const std::string value = attribute.type == ir::AttrType::boolean   ? "true"
                            : attribute.type == ir::AttrType::integer ? std::to_string(random.below(3))
                                                                      : some_word(attribute.values, random);
  add_in_braces(line, std::string(attribute.name) + " = " + value);
  return true;
}

bool change_strides(ProgramText& text, Random& random) {
  const std::vector<size_t> tensors = text.lines_of("tensor");
  if (tensors.empty()) return false;
  std::string& line = text.lines()[random.pick<size_t>(tensors)];
  const size_t open = line.find('['), close = line.find(']'), comma = line.find(", ");
  if (comma == std::string::npos || comma > close || line.find(',', comma + 1) < close) return false;
  if (line.find(" strides ") != std::string::npos) return false;
  const std::string rows = line.substr(open + 1, comma - open - 1),
                    columns = line.substr(comma + 2, close - comma - 2);
  line.insert(close + 1, " strides " + random.pick({"[1, " + rows + "]", "[" + columns + " + 8, 1]",
                                                    "[" + columns + " + 1, 1]", "[(" + columns + ") * 2, 2]",
                                                    "[" + columns + ", 1]"}));
  return true;
}

constexpr Mutation kMutations[] = {
    change_bound,     change_bound,   bound_from_a_tile, change_loop_kind, change_loop_kind, change_threads,
    delete_statement, move_statement, move_statement,    wrap_in_a_loop,   wrap_in_a_branch, unwrap,
    change_attribute, change_strides, leave_early,       print_something,  ask_for};

}  // namespace

std::span<const Mutation> statement_mutations() { return kMutations; }

}  // namespace tilegen::differential
