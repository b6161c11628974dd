// What random programs tell beside results, where they end early, and the caches that their copies name. The
// numbers are of a series of their own: what else a seed makes is the same with and without.
#include <algorithm>
#include <cctype>

#include "random_generator.h"

namespace tilegen::differential {

namespace {

constexpr int64_t kPrintedValues = 200;    // of a program: fewer than the language has room for
constexpr int64_t kPrintedRecords = 3000;  // of a launch: all are kept

bool names(const std::string& line, const std::string& name) {
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = line.find(name); at != std::string::npos; at = line.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !is_part(line[at - 1])) && (end == line.size() || !is_part(line[end]))) return true;
  }
  return false;
}

}  // namespace

void Generator::begin_reports(uint64_t seed) {
  others_ = Random(seed, "reports");
  prints_ = others_.chance(8);
  returns_ = others_.chance(8);
}

// In front of a statement outside of parallel loops.
void Generator::report() {
  use_optional();
  use_call();
  use_order();
  use_box();
  use_meeting();
  use_narrow_product();
  std::swap(r_, others_);
  if (prints_ && r_.chance(5)) r_.chance(3) ? print_tile() : print_values(1);
  // A return leaves serial loops alone.
  if (returns_ && other_loops_ == 0 && r_.chance(8)) leave_early();
  std::swap(r_, others_);
}

// In a parallel loop of so many points.
void Generator::report_points(int64_t points) {
  std::swap(r_, others_);
  if (prints_ && r_.chance(2)) {
    const bool some = r_.chance(2);
    if (some) line("if " + bool_expr(1).text + " {");
    print_values(points);
    if (some) line("}");
  }
  std::swap(r_, others_);
}

bool Generator::has_room_for_print(int64_t values, int64_t times) {
  if (multiplier_ > kPrintedRecords || printed_values_ + values > kPrintedValues) return false;
  if (printed_records_ + values * times * multiplier_ > kPrintedRecords) return false;
  printed_values_ += values;
  printed_records_ += values * times * multiplier_;
  return true;
}

void Generator::print_values(int64_t points) {
  const int64_t values = r_.below(4);
  if (!has_room_for_print(std::max<int64_t>(values, 1), points)) return;
  std::string text = "print \"" + fresh("told ") + "\"";
  for (int64_t i = 0; i < values; ++i) text += ", " + expr(random_type(), 1).text;
  line(text);
}

void Generator::print_tile() {
  Tile* tile = any_tile([](const Tile&) { return true; }, true);
  if (!tile) return;
  Tile part = *tile;
  const std::string region = part_of(part);
  if (has_room_for_print(1, product(part.shape)))
    line("print \"" + tile->name + "\" of " + tile->name + region);
}

void Generator::leave_early() {
  line("if " + bool_expr(1).text + " {");
  ++indent_;
  std::vector<bool> before;
  for (const Tile& t : tiles_) before.push_back(t.written);
  if (r_.chance(2)) uniform_store();
  for (size_t i = 0; i < tiles_.size(); ++i) tiles_[i].written = i < before.size() && before[i];
  line("return");
  --indent_;
  line("}");
}

// Lines of one tensor's tiles are the first or the last to leave a cache, where copies alone bring and leave
// these.
void Generator::annotate_caches() {
  if (!annotates_ || options_.for_amd) return;
  std::swap(r_, others_);
  for (const RandomTensor& t : tensors_) {
    const std::string policy = r_.pick({"evict_first", "evict_last", "no_allocate"});
    if (!r_.chance(2)) continue;
    std::string made;
    bool copies = true;
    for (size_t at = 0; at < body_.size() && copies;) {
      const size_t end = body_.find('\n', at);
      std::string one = body_.substr(at, end - at);
      at = end + 1;
      if (names(one, t.name)) {
        const size_t word = one.find("copy " + t.name + "["), to = one.find("] -> " + t.name + "[");
        copies = (word != std::string::npos ||
                  (one.find("copy ") != std::string::npos && to != std::string::npos)) &&
                 one.find('{') == std::string::npos;
        one += " {cache = " + policy + "}";
      }
      made += one + "\n";
    }
    if (copies) body_ = made;
  }
  std::swap(r_, others_);
}

}  // namespace tilegen::differential
