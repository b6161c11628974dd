// Edits of single tokens: facts, constants, operators, types, names, indices.
#include <algorithm>
#include <array>
#include <set>

#include "ir/tile_op.h"
#include "program_mutation.h"

namespace tilegen::differential {

namespace {

using Kind = Token::Kind;
using Names = std::initializer_list<std::string_view>;

constexpr auto kTypes = std::to_array<std::string_view>(
    {"f16",      "bf16", "f32", "f64", "i8",  "u8", "i32", "i64", "bool", "e4m3", "e5m2", "e4m3fnuz",
     "e5m2fnuz", "i16",  "u16", "u32", "u64", "i4", "u4",  "i2",  "u2",   "e2m1", "e8m0"});

bool is_one_of(std::string_view word, Names list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

template <class Fits>
std::vector<Token> tokens_that(const ProgramText& text, Fits&& fits) {
  std::vector<Token> list = text.tokens();
  std::erase_if(list, [&](const Token& t) { return !fits(t); });
  return list;
}

// Back to front, so that places stay what they are.
template <class With>
void replace_all(ProgramText& text, const std::vector<Token>& tokens, With&& with) {
  for (size_t i = tokens.size(); i-- > 0;) text.replace(tokens[i], with(tokens[i]));
}

bool is_whole(const Token& t) {
  return t.kind == Kind::number && t.text.size() <= 18 &&
         std::all_of(t.text.begin(), t.text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

int64_t near(Random& random, int64_t v) {
  const int64_t power = int64_t{1} << random.below(10);
  return random.pick(
      {v + 1, v - 1, v * 2, v / 2, v + 8, v - v % 8, power, power + 1, power - 1, v * 3, v / 3, v + 16});
}

std::string whole_number(Random& random, int64_t v) {
  if (random.chance(3)) return std::to_string(random.below(4));
  if (random.chance(6)) return "-" + std::to_string(random.pick({int64_t{1}, v, int64_t{7}}));
  if (random.chance(6))
    return std::to_string(
        random.pick({int64_t{127}, int64_t{128}, int64_t{255}, int64_t{256}, int64_t{32767}, int64_t{65536},
                     int64_t{INT32_MAX}, int64_t{INT32_MAX} + 1, int64_t{UINT32_MAX}, int64_t{1} << 40,
                     int64_t{1} << 62, int64_t{INT64_MAX}}));
  return std::to_string(near(random, v));
}

// ---- the edits ----

bool change_facts(ProgramText& text, Random& random) {
  const std::vector<size_t> dims = text.lines_of("dim");
  if (dims.empty()) return false;
  std::string& line = text.lines()[random.pick<size_t>(dims)];
  if (!random.chance(4)) line = line.substr(0, line.find(' ', 4));
  if (random.chance(2)) line += " >= " + std::to_string(random.pick({0, 1, 1, 2, 7, 8, 16, 64, 100, 128}));
  if (random.chance(2))
    line += " <= " +
            std::to_string(random.pick<int64_t>({1, 3, 7, 8, 15, 16, 63, 64, 100, 128, 4096, 65536, INT32_MAX,
                                                 int64_t{1} << 31, int64_t{1} << 40, int64_t{1} << 62}));
  if (random.chance(2))
    line += " divisible " + std::to_string(random.pick({2, 3, 4, 7, 8, 12, 16, 32, 48, 64, 128}));
  return true;
}

bool change_constant(ProgramText& text, Random& random) {
  const auto numbers = tokens_that(text, [](const Token& t) { return t.kind == Kind::number; });
  if (numbers.empty()) return false;
  const Token& t = random.pick<Token>(numbers);
  const std::string type(literal_type(t.text));
  if (type.empty() || type[0] == 'i' || type[0] == 'u') {
    const std::string digits = t.text.substr(0, t.text.size() - type.size());
    if (digits.size() > 18) return false;
    text.replace(t, whole_number(random, std::strtoll(digits.c_str(), nullptr, 10)) + type);
  } else {
    text.replace(
        t, random.pick({"0.0", "1.0", "-1.0", "0.5", "3.0", "-0.125", "65504.0", "448.0", "1e-30", "1e30"}) +
               type);
  }
  return true;
}

// One number wherever it stands, so that shapes go on fitting each other.
bool change_extent(ProgramText& text, Random& random) {
  std::set<std::string> values;
  for (const Token& t : text.tokens())
    if (is_whole(t) && t.text.size() >= (t.text < "4" ? 2u : 1u)) values.insert(t.text);
  if (values.empty()) return false;
  const std::string old = random.pick<std::string>(std::vector<std::string>(values.begin(), values.end()));
  const int64_t v = std::stoll(old);
  const int64_t to =
      random.chance(2)
          ? random.pick<int64_t>({1, 2, 3, 4, 7, 8, 16, 24, 32, 36, 40, 48, 64, 80, 96, 128, 192})
          : std::max<int64_t>(near(random, v), 1);
  const bool all = !random.chance(4);
  replace_all(text,
              tokens_that(text, [&](const Token& t) { return t.text == old && (all || random.chance(2)); }),
              [&](const Token&) { return std::to_string(to); });
  return true;
}

bool change_operator(ProgramText& text, Random& random) {
  static const std::vector<std::vector<std::string_view>> kClasses = {
      {"+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "/"},
      {"<", "<=", "==", "!=", ">", ">="},
      {"and", "or"},
      {"min", "max", "pow", "atan2", "fmod", "copysign", "mulhi"},
      {"exp",        "exp2",      "exp10",     "expm1",    "log",      "log2",      "log1p",
       "sqrt",       "rsqrt",     "cbrt",      "tanh",     "erf",      "erfc",      "sigmoid",
       "sin",        "cos",       "tan",       "asin",     "acos",     "atan",      "floor",
       "ceil",       "round",     "rint",      "trunc",    "abs",      "fast_exp",  "fast_exp2",
       "fast_exp10", "fast_log",  "fast_log2", "fast_sin", "fast_cos", "fast_tanh", "fast_sigmoid",
       "fast_sqrt",  "fast_rsqrt"},
      {"pow", "fast_pow", "fast_div"},
      {"bit_not", "popcount", "clz", "ctz", "neg"},
      {"isnan", "isinf"},
      {"argmax", "argmin"},
      {"sort", "topk"},
      {"nearest", "zero", "down", "up", "saturate", "overflow"},
      {"acquire", "release", "acq_rel"},
      {"shuffle", "shuffle_xor", "shuffle_up", "shuffle_down"},
      {"any", "all", "elect"},
      {"thread_id", "lane_id", "warp_id", "warpgroup_id", "block_id", "cluster_rank", "cluster_blocks"},
      {"atomic_add", "atomic_min", "atomic_max", "atomic_and", "atomic_or", "atomic_xor", "atomic_exchange"},
      {"..", ":+"}};
  const auto class_of = [&](const Token& t) -> const std::vector<std::string_view>* {
    for (const auto& c : kClasses)
      if (std::find(c.begin(), c.end(), t.text) != c.end()) return &c;
    return nullptr;
  };
  const auto operators = tokens_that(text, [&](const Token& t) { return class_of(t) != nullptr; });
  if (operators.empty()) return false;
  const Token& t = random.pick<Token>(operators);
  text.replace(t, std::string(random.pick<std::string_view>(*class_of(t))));
  return true;
}

// "1.5f32" as a literal of another type.
std::string literal(const std::string& text, std::string_view type) {
  std::string digits = text.substr(0, text.size() - literal_type(text).size());
  const bool floating = type[0] == 'f' || type[0] == 'b' || type[0] == 'e';
  if (!floating) digits = digits.substr(0, digits.find('.'));
  if (floating && digits.find_first_of(".ex") == std::string::npos) digits += ".0";
  return digits + std::string(type);
}

// One type wherever it stands, or in one place.
bool change_type(ProgramText& text, Random& random) {
  const auto is_type = [](const Token& t) {
    return std::find(kTypes.begin(), kTypes.end(), t.text) != kTypes.end();
  };
  const auto types = tokens_that(text, is_type);
  if (types.empty()) return false;
  const Token& t = random.pick<Token>(types);
  const std::string to(random.pick<std::string_view>(kTypes));
  if (random.chance(4)) {
    text.replace(t, to);
    return true;
  }
  replace_all(
      text,
      tokens_that(text, [&](const Token& x) { return x.text == t.text || literal_type(x.text) == t.text; }),
      [&](const Token& x) { return x.kind == Kind::number ? literal(x.text, to) : to; });
  return true;
}

bool is_used_name(const Token& t) {
  return t.kind == Kind::name && !ir::op_from_text(t.text) &&
         !is_one_of(t.text,
                    {"dim",       "tensor",   "scalar",   "kernel", "grid",   "threads",    "alloc",
                     "shared",    "fragment", "local",    "serial", "unroll", "vectorized", "pipelined",
                     "parallel",  "in",       "if",       "else",   "stages", "divisible",  "readonly",
                     "workspace", "strides",  "and",      "or",     "axis",   "kind",       "policy",
                     "cast",      "bitcast",  "optional", "present"}) &&
         std::find(kTypes.begin(), kTypes.end(), t.text) == kTypes.end();
}

bool change_name(ProgramText& text, Random& random) {
  const auto names = tokens_that(text, is_used_name);
  if (names.empty()) return false;
  const Token from = random.pick<Token>(names), to = random.pick<Token>(names);
  if (from.text == to.text) return false;
  text.replace(from, to.text);
  return true;
}

// "i" as "(i // 2)" and the like.
bool change_index(ProgramText& text, Random& random) {
  const auto names =
      tokens_that(text, [](const Token& t) { return is_used_name(t) || (is_whole(t) && t.text != "0"); });
  if (names.empty()) return false;
  const Token& t = random.pick<Token>(names);
  const int64_t by = random.chance(12) ? random.pick({int64_t{1} << 31, int64_t{1} << 62, int64_t{INT64_MAX}})
                                       : random.pick<int64_t>({1, 1, 2, 3, 4, 7, 8, 16, 32, 64});
  const std::string x = t.text, c = std::to_string(by);
  const std::string op(random.pick({"+", "-", "*", "//", "%", "^", "&", "|", "<<", ">>"}));
  switch (random.below(5)) {
    case 0:
      text.replace(t, "(" + c + " - " + x + ")");
      break;
    case 2:
      text.replace(t, "select(" + x + " < " + c + ", " + x + ", " + std::to_string(random.below(4)) + ")");
      break;
    case 1:
      text.replace(t, std::string(random.pick({"min", "max"})) + "(" + x + ", " + c + ")");
      break;
    default:
      text.replace(t, "(" + x + " " + op + " " + c + ")");
  }
  return true;
}

// "i" as "table[i]", a tensor of its own: indices that nothing is known of.
bool index_from_a_tensor(ProgramText& text, Random& random) {
  const auto names = tokens_that(text, is_used_name);
  const std::vector<size_t> kernels = text.lines_of("kernel");
  if (names.empty() || kernels.empty()) return false;
  const Token& t = random.pick<Token>(names);
  if (t.line <= kernels[0]) return false;
  const bool there = text.text().find("tensor table: ") != std::string::npos;
  const std::string load = "table[" + t.text + "]";
  text.replace(t, random.chance(2) ? load : "max(" + load + ", 0)");
  if (!there)
    text.lines().insert(text.lines().begin() + static_cast<std::ptrdiff_t>(kernels[0]),
                        "tensor table: i64[" + std::to_string(random.pick({8, 64, 100})) + "] readonly");
  return true;
}

bool change_offset(ProgramText& text, Random& random) {
  const auto places = tokens_that(text, [](const Token& t) { return t.text == ":+"; });
  if (places.empty()) return false;
  const Token& t = random.pick<Token>(places);
  text.replace(t, random.pick({"+ 1", "- 1", "+ 8", "- 16", "+ 3", "* 2", "* 0", "// 2", "- 64"}) +
                      std::string(" :+"));
  return true;
}

bool change_scope(ProgramText& text, Random& random) {
  const auto scopes = tokens_that(text, [](const Token& t) {
    return is_one_of(t.text, {"shared", "fragment", "local"});
  });
  if (scopes.empty()) return false;
  text.replace(random.pick<Token>(scopes), random.pick({"shared", "fragment", "local"}));
  return true;
}

constexpr Mutation kMutations[] = {change_facts,  change_constant, change_constant,     change_extent,
                                   change_extent, change_operator, change_type,         change_name,
                                   change_index,  change_index,    index_from_a_tensor, change_offset,
                                   change_scope};

}  // namespace

std::span<const Mutation> token_mutations() { return kMutations; }

}  // namespace tilegen::differential
