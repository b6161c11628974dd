#include "runtime/printed_lines.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>

#include "ir/dtype.h"
#include "ir/print.h"

namespace tilegen::runtime {
namespace {

using ir::ExprId;
using ir::PlaceDigit;

struct Site {
  size_t order = 0;  // of its statement, in the program
  std::vector<PlaceDigit> digits;
};

// By number of the first value of a statement.
std::map<int64_t, Site> find_sites(const ir::Program& p) {
  std::map<int64_t, Site> sites;
  size_t order = 0;
  ir::for_each_place(p, [&](ir::StmtId s, std::span<const PlaceDigit> digits) {
    ++order;
    const int64_t number = ir::printed_at(p, s);
    if (number >= 0) sites.try_emplace(number, Site{order, {digits.begin(), digits.end()}});
    return true;
  });
  return sites;
}

// What one statement prints at one place.
struct Line {
  const Site* site = nullptr;
  std::vector<int64_t> digits;
  int64_t first = 0;                            // number of the first value
  std::vector<std::vector<uint64_t>> values{};  // of each position, in the order in which they came
};

// In the order in which one thread would run the program: by the loops that both stand in, then by statement.
bool comes_before(const Line& a, const Line& b) {
  for (size_t d = 0; d < a.digits.size() && d < b.digits.size(); ++d) {
    if (a.site->digits[d].var != b.site->digits[d].var) break;
    if (a.digits[d] != b.digits[d]) return a.digits[d] < b.digits[d];
  }
  return a.site->order < b.site->order;
}

template <class Number>
std::string digits_text(Number v) {
  char digits[64];
  return {digits, std::to_chars(digits, digits + sizeof digits, v).ptr};
}

std::string value_text(ir::DType type, uint64_t bits) {
  if (ir::is_bool(type)) return bits != 0 ? "true" : "false";
  if (!ir::is_float(type)) return digits_text(static_cast<int64_t>(bits));
  const double v = std::bit_cast<double>(bits);
  if (std::isnan(v)) return "nan";  // whose sign differs between machines
  return type == ir::DType::f64 ? digits_text(v) : digits_text(static_cast<float>(v));
}

class LineMaker {
 public:
  LineMaker(const ir::Program& p, const DimSolver& dims) : p_(p), dims_(dims), sites_(find_sites(p)) {}

  void read(const std::byte* memory) {
    const auto word = [&](int64_t i) {
      uint64_t v = 0;
      std::memcpy(&v, memory + 8 * i, sizeof v);
      return v;
    };
    const auto count = static_cast<int64_t>(word(0));
    for (int64_t r = 0; r < std::min(count, ir::kPrintRecords); ++r) {
      const auto index = static_cast<int64_t>(word(1 + 2 * r));
      add(index / ir::kMaxPrinted, index % ir::kMaxPrinted, word(2 + 2 * r));
    }
    lost_ += std::max<int64_t>(count - ir::kPrintRecords, 0);
  }

  std::vector<std::string> run() {
    std::vector<const Line*> sorted;
    for (const auto& [key, line] : lines_) sorted.push_back(&line);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Line* a, const Line* b) { return comes_before(*a, *b); });
    std::vector<std::string> texts;
    for (const Line* line : sorted) write(*line, texts);
    if (lost_ > 0)
      texts.push_back("(" + std::to_string(lost_) + " more values were printed than a launch keeps)");
    return texts;
  }

 private:
  void add(int64_t place, int64_t number, uint64_t bits) {
    if (number >= static_cast<int64_t>(p_.prints.size())) return;
    const int64_t position = p_.prints[static_cast<size_t>(number)].position, first = number - position;
    const auto site = sites_.find(first);
    if (site == sites_.end()) return;
    auto [it, fresh] = lines_.try_emplace({place, first});
    Line& line = it->second;
    if (fresh) {
      line.site = &site->second;
      line.first = first;
      line.digits = digits_of(line.site->digits, dims_, INT64_MAX / ir::kMaxPrinted, place);
    }
    if (line.values.size() <= static_cast<size_t>(position))
      line.values.resize(static_cast<size_t>(position) + 1);
    line.values[static_cast<size_t>(position)].push_back(bits);
  }

  // A statement that is written out runs more than once at a place.
  void write(const Line& line, std::vector<std::string>& texts) const {
    const std::string where = place_text(p_, line.site->digits, line.digits);
    size_t times = 0;
    for (const auto& of_position : line.values) times = std::max(times, of_position.size());
    for (size_t t = 0; t < times; ++t) {
      const ir::Program::Printed& head = p_.prints[static_cast<size_t>(line.first)];
      std::string text = head.text;
      for (size_t v = 0; v < line.values.size() && head.type != ir::DType::none; ++v) {
        const ir::DType type = p_.prints[static_cast<size_t>(line.first) + v].type;
        text += v == 0 ? ": " : ", ";
        text += t < line.values[v].size() ? value_text(type, line.values[v][t]) : "?";
      }
      texts.push_back(text + (where.empty() ? "" : "  (" + where + ")"));
    }
  }

  const ir::Program& p_;
  const DimSolver& dims_;
  std::map<int64_t, Site> sites_;
  std::map<std::pair<int64_t, int64_t>, Line> lines_;  // by place and first number
  int64_t lost_ = 0;
};

}  // namespace

std::vector<int64_t> digits_of(std::span<const PlaceDigit> digits, const DimSolver& dims, int64_t limit,
                               int64_t place) {
  const int64_t trips = ir::counted_trips(digits);
  std::vector<int64_t> radices;
  int64_t all = 1;
  for (const PlaceDigit& digit : digits) {
    const int64_t radix = digit.extent.valid() ? dims.evaluate(digit.extent).value_or(0) : trips;
    radices.push_back(radix);
    if (radix < 1 || __builtin_mul_overflow(all, radix, &all)) return {};
  }
  if (all > limit || place < 0) return {};
  for (size_t d = radices.size(); d-- > 0;) {
    const int64_t radix = radices[d];
    radices[d] = place % radix;
    place /= radix;
  }
  return radices;
}

std::string place_text(const ir::Program& p, std::span<const PlaceDigit> digits,
                       std::span<const int64_t> values) {
  std::string text;
  for (size_t d = 0; d < values.size(); ++d) {
    const std::string value = std::to_string(values[d]), &name = p.var(digits[d].var).name;
    int64_t extent = 0;
    const bool loop = !digits[d].extent.valid();
    if (!loop && p.exprs.is_const_int(digits[d].extent, &extent) && extent == 1) continue;
    const bool more = loop && values[d] == ir::counted_trips(digits) - 1;
    text += text.empty() ? "" : ", ";
    text +=
        loop ? "iteration " + value + (more ? " or a later one" : "") + " of " + name : name + " = " + value;
  }
  return text;
}

std::vector<std::string> printed_lines(const ir::Program& p, const DimSolver& dims,
                                       std::span<const PrintBuffer> buffers) {
  LineMaker maker(p, dims);
  for (const PrintBuffer& b : buffers) maker.read(b.memory);
  return maker.run();
}

}  // namespace tilegen::runtime
