#include "varied_case.h"

#include <map>

#include "files.h"
#include "ir/text.h"
#include "program_text.h"

namespace tilegen::differential {

namespace {

struct Source {
  std::string name, text;
};

const std::vector<Source>& sources() {
  static const std::vector<Source> list = [] {
    std::vector<Source> found;
    for (const auto& file : program_files()) {
      const Subject subject(text_of(file));
      if (subject.invalid().empty())
        found.push_back({file.filename().string(), ir::print_program(subject.program())});
    }
    return found;
  }();
  return list;
}

// A dim whose facts leave some size.
std::string dim_with_facts(const std::string& name, Random& random) {
  const int64_t divisor = random.pick<int64_t>({1, 1, 1, 2, 4, 8, 16, 64, 96});
  const int64_t lower = random.pick<int64_t>({0, 0, 0, 1, 3, 17, 64});
  const int64_t first = (lower + divisor - 1) / divisor * divisor;
  const int64_t upper = random.pick<int64_t>({0, 0, 0, 7, 15, 64, 100, 1000});
  std::string line = "dim " + name;
  if (lower > 0) line += " >= " + std::to_string(lower);
  if (upper >= std::max<int64_t>(first, 1)) line += " <= " + std::to_string(upper);
  if (divisor > 1) line += " divisible " + std::to_string(divisor);
  return line;
}

void vary_facts(ProgramText& text, Random& random) {
  for (size_t line : text.lines_of("dim")) {
    if (random.chance(3)) continue;
    std::string& dim = text.lines()[line];
    const size_t end = dim.find(' ', 4);
    dim = dim_with_facts(dim.substr(4, end == dim.npos ? end : end - 4), random);
  }
}

bool is_extent(const Token& t) {
  return t.kind == Token::Kind::number && literal_type(t.text).empty() && t.text.find('.') == t.text.npos &&
         t.text.size() < 4 && std::stoll(t.text) >= 8;
}

// Numbers that were the same stay the same: extents of tiles stand in allocations, regions, loops and grids.
void vary_tiles(ProgramText& text, Random& random) {
  std::map<std::string, std::string> to;
  std::vector<Token> tokens = text.tokens();
  std::erase_if(tokens, [&](const Token& t) {
    return !is_extent(t) || ProgramText::first_word(text.lines()[t.line]) == "dim";
  });
  for (const Token& t : tokens)
    if (!to.count(t.text))
      to[t.text] = random.chance(2)
                       ? t.text
                       : std::to_string(random.pick({8, 16, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256}));
  for (size_t i = tokens.size(); i-- > 0;) text.replace(tokens[i], to[tokens[i].text]);
}

// The number after the word, which is put before the "{" where the line has none.
void set_number(std::string& line, const std::string& word, int64_t to) {
  const size_t at = line.find(" " + word + " "), brace = line.rfind(" {");
  if (brace == line.npos) return;
  const std::string put = " " + word + " " + std::to_string(to);
  if (at == line.npos) return void(line.insert(brace, put));
  const size_t end = line.find(' ', at + word.size() + 2);
  line.replace(at, end - at, put);
}

void vary_blocks(ProgramText& text, Random& random) {
  for (size_t line : text.lines_of("kernel"))
    if (random.chance(2))
      set_number(text.lines()[line], "threads", random.pick<int64_t>({32, 64, 128, 128, 256, 384}));
  for (size_t line = 0; line < text.lines().size(); ++line)
    if (ProgramText::first_word(text.lines()[line]) == "pipelined" && random.chance(2))
      set_number(text.lines()[line], "stages", random.between(1, 6));
}

}  // namespace

MutatedCase varied_case(uint64_t seed) {
  Random random(seed, "varied");
  const Source& source = random.pick<Source>(sources());
  MutatedCase c{source.name, source.text, {}};
  // Extents that contradict each other, or facts, make no program: facts and blocks alone always do.
  for (int attempt = 0; attempt < 12; ++attempt) {
    ProgramText text(source.text);
    vary_facts(text, random);
    vary_blocks(text, random);
    if (attempt < 10) vary_tiles(text, random);
    c.text = text.text();
    if (Subject(c.text).invalid().empty()) break;
    c.text = source.text;
  }
  const Subject subject(c.text);
  for (int n = 0; n < 2; ++n) {
    c.launches.push_back(some_launch(subject.program(), random));
    // Sums of any bits overflow in one order and not in another.
    if (c.launches.back().data == Data::bit_patterns) c.launches.back().data = Data::reals;
  }
  return c;
}

}  // namespace tilegen::differential
