#include "driver/specialisations.h"

#include <algorithm>

#include "ir/text.h"
#include "support/diag_codes.h"

namespace tilegen::driver {

namespace {

// Of an integer parameter; a number beyond i64 is the largest of these.
int64_t size_of(uint64_t slot, ir::DType type) {
  const int64_t value = ir::wrap_to(type, static_cast<int64_t>(slot));
  return ir::is_u64(type) && value < 0 ? INT64_MAX : value;
}

// How far apart in `choice` the steps of an axis are.
size_t stride_of(const std::vector<SizeAxis>& axes, size_t axis) {
  size_t stride = 1;
  for (size_t a = axis + 1; a < axes.size(); ++a) stride *= axes[a].upto.size();
  return stride;
}

bool alike(const std::vector<uint8_t>& choice, size_t steps, size_t stride, size_t step) {
  for (size_t i = 0; i < choice.size(); ++i)
    if (i / stride % steps == step && choice[i] != choice[i + stride]) return false;
  return true;
}

// Steps `first` to `last` of an axis.
std::string interval_text(const SizeAxis& axis, size_t first, size_t last) {
  const bool from_first = first == 0, to_last = last + 1 == axis.upto.size();
  if (from_first && to_last) return "any " + axis.name;
  if (from_first) return axis.name + " up to " + std::to_string(axis.upto[last]);
  if (to_last) return axis.name + " above " + std::to_string(axis.upto[first - 1]);
  return axis.name + " " + std::to_string(axis.upto[first - 1] + 1) + " .. " +
         std::to_string(axis.upto[last]);
}

// What a launch's arguments are checked against: all that is declared in front of the kernels.
std::string declarations(const ir::Program& p) {
  const std::string text = ir::print_program(p);
  std::string kept;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("kernel ")) break;
    if (!line.starts_with("param ") && !line.ends_with(" workspace")) kept += line + "\n";
  }
  return kept;
}

std::string first_difference(const std::string& a, const std::string& b) {
  size_t line = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i)
    if (a[i] == '\n') line = i + 1;
  return "'" + a.substr(line, a.find('\n', line) - line) + "' and '" +
         b.substr(line, b.find('\n', line) - line) + "'";
}

}  // namespace

size_t Specialisations::choose(std::span<const uint64_t> slots) const {
  size_t at = 0;
  for (const SizeAxis& axis : axes) {
    const ir::Param& param = artifacts.front()->program->params[axis.param];
    const int64_t size = size_of(slots[axis.param], artifacts.front()->program->var(param.var).type);
    const auto step = std::lower_bound(axis.upto.begin(), axis.upto.end() - 1, size);
    at = at * axis.upto.size() + static_cast<size_t>(step - axis.upto.begin());
  }
  return choice[at];
}

std::string Specialisations::sizes_text(size_t index) const {
  // Runs along the last axis, and the place on the others.
  std::string text;
  if (axes.empty()) return "any sizes";
  const size_t steps = axes.back().upto.size();
  for (size_t row = 0; row < choice.size(); row += steps) {
    std::string place;
    for (size_t a = 0; a + 1 < axes.size(); ++a) {
      const size_t step = row / stride_of(axes, a) % axes[a].upto.size();
      place += interval_text(axes[a], step, step) + ", ";
    }
    for (size_t first = 0; first < steps; ++first) {
      if (choice[row + first] != index) continue;
      size_t last = first;
      while (last + 1 < steps && choice[row + last + 1] == index) ++last;
      text += (text.empty() ? "" : " or ") + place + interval_text(axes.back(), first, last);
      first = last;
    }
  }
  return text;
}

void merge_steps(std::vector<SizeAxis>& axes, std::vector<uint8_t>& choice) {
  for (size_t a = 0; a < axes.size(); ++a) {
    const size_t stride = stride_of(axes, a);
    for (size_t step = axes[a].upto.size(); step-- > 1;) {
      const size_t steps = axes[a].upto.size();
      if (!alike(choice, steps, stride, step - 1)) continue;
      std::vector<uint8_t> kept;
      for (size_t i = 0; i < choice.size(); ++i)
        if (i / stride % steps != step) kept.push_back(choice[i]);
      choice = std::move(kept);
      axes[a].upto.erase(axes[a].upto.begin() + static_cast<ptrdiff_t>(step) - 1);
    }
  }
}

Expected<std::shared_ptr<const Artifact>> join(Specialisations s) {
  const Artifact& largest = *s.artifacts[s.choice.back()];
  const std::string declared = declarations(*largest.program);
  for (const auto& other : s.artifacts)
    if (const std::string theirs = declarations(*other->program); theirs != declared)
      return Error(
          DiagCode::target_unsupported, largest.program->name,
          "its parameters follow from compile-time parameters: " + first_difference(declared, theirs) +
              "; a launch could not be checked before it chooses by its sizes",
          "declare parameters without compile-time parameters, or give 'sizes' one number each");
  auto made = std::make_shared<Artifact>(largest);
  made->times.clear();
  for (const auto& each : s.artifacts)
    for (const StageTime& t : each->times) {
      const auto same = std::find_if(made->times.begin(), made->times.end(),
                                     [&](const StageTime& m) { return m.stage == t.stage; });
      if (same == made->times.end())
        made->times.push_back(t);
      else
        same->ms += t.ms;
    }
  made->specialised = std::make_shared<const Specialisations>(std::move(s));
  return std::shared_ptr<const Artifact>(std::move(made));
}

}  // namespace tilegen::driver
