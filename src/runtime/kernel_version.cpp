#include "runtime/kernel_version.h"

#include <algorithm>
#include <atomic>

#include "layout/tensor_tile.h"
#include "support/checked.h"
#include "support/diag_codes.h"
#include "thread/reciprocal.h"
#include "thread/tensor_coordinates.h"

namespace tilegen::runtime {
namespace {

std::atomic<uint64_t> g_next_id{1};

}  // namespace

KernelVersion::KernelVersion(const thread::ThreadProgram& program)
    : id_(g_next_id.fetch_add(1)), program_(&program) {
  traits_.threads = static_cast<uint32_t>(program.threads);
  traits_.shared_bytes = static_cast<uint32_t>(program.arena_bytes);
  traits_.cluster = static_cast<uint32_t>(program.cluster);
  traits_.rank = static_cast<uint8_t>(program.grid.size());
  traits_.persistent = program.launched_var.valid();
  traits_.dynamic_tiles = program.dynamic_tiles;
  traits_.dependent = program.dependent;
  traits_.plain_slots = static_cast<uint32_t>(program.params.size() + 2 * program.divisors.size());
  traits_.maps = static_cast<uint32_t>(program.tensor_maps.size());
  traits_.only_slots = program.divisors.empty() && program.tensor_maps.empty();
  std::vector<ir::ExprId> elements;
  for (const thread::Guard& g : program.guards) {
    const int64_t most = g.most_bytes / ir::dtype_bytes(program.params[static_cast<size_t>(g.param)].type);
    for (ir::ExprId count : {g.elements, g.reach})
      if (count.valid()) {
        sizes_.push_back({static_cast<size_t>(g.param), most, g.most_bytes});
        elements.push_back(count);
      }
    if (g.divisor == 1) continue;
    const auto divisor = static_cast<uint64_t>(g.divisor), power = divisor & (~divisor + 1);
    guards_.push_back({static_cast<size_t>(g.param), divisor, power - 1, divisor / power});
  }
  auto slot_of = [&](ir::VarId v) {
    for (size_t i = 0; i < program.params.size(); ++i)
      if (program.params[i].kind != thread::Param::Kind::tensor && program.params[i].var == v)
        return static_cast<int>(i);
    return -1;
  };
  grid_code_ = ScalarCode::compile(program.exprs, program.grid, slot_of);
  if (!sizes_.empty() && sizes_.size() <= ScalarCode::kMaxSteps)
    size_code_ = ScalarCode::compile(program.exprs, elements, slot_of);
  if (!program.divisors.empty())
    divisor_code_ = ScalarCode::compile(program.exprs, program.divisors, slot_of);
  stored_.resize(program.tensor_maps.size());
  for (const thread::Stmt& s : program.stmts)
    if (const auto* store = std::get_if<thread::TensorStore>(&s.node))
      stored_[static_cast<size_t>(store->map)] = true;
  std::vector<ir::ExprId> numbers;
  for (const thread::TensorMap& map : program.tensor_maps) {
    numbers.insert(numbers.end(), map.extents.begin(), map.extents.end());
    numbers.insert(numbers.end(), map.strides.begin(), map.strides.end());
  }
  if (!numbers.empty() && numbers.size() <= ScalarCode::kMaxSteps)
    map_code_ = ScalarCode::compile(program.exprs, numbers, slot_of);
}

bool KernelVersion::shapes(std::span<const uint64_t> slots, std::span<TensorShape> out) const {
  constexpr int64_t kUnit = layout::kTensorUnit, kStrideEnd = int64_t{1} << 40;
  if (!map_code_) return program_->tensor_maps.empty();
  int64_t numbers[ScalarCode::kMaxSteps];
  const std::span<const int64_t> values(reinterpret_cast<const int64_t*>(slots.data()), slots.size());
  if (!map_code_->run(values, numbers)) return false;
  const int64_t* next = numbers;
  for (size_t i = 0; i < program_->tensor_maps.size(); ++i) {
    const thread::TensorMap& map = program_->tensor_maps[i];
    TensorShape shape;
    shape.address = slots[static_cast<size_t>(program_->memory(map.tensor).param)];
    shape.rank = map.extents.size();
    bool legal = shape.address % kUnit == 0;
    for (size_t d = 0; d < shape.rank; ++d, ++next) {
      legal = legal && *next >= 1 && *next <= thread::kMaxTensorExtent;
      shape.extents[d] = static_cast<uint64_t>(*next);
    }
    // Stores are clipped to whole units: rows that end inside one would be overwritten after their end.
    legal = legal && (!stored_[i] || static_cast<int64_t>(shape.extents[0]) *
                                             ir::dtype_bytes(program_->memory(map.tensor).type) % kUnit ==
                                         0);
    for (size_t d = 0; d + 1 < shape.rank; ++d, ++next) {
      legal = legal && *next >= kUnit && *next < kStrideEnd && *next % kUnit == 0;
      shape.strides[d] = static_cast<uint64_t>(*next);
    }
    if (!legal) return false;
    if (!out.empty()) out[i] = shape;
  }
  return true;
}

// What is too long to be compiled counts as too large: another version takes the launch.
bool KernelVersion::sizes_hold(std::span<const uint64_t> slots) const {
  int64_t found[ScalarCode::kMaxSteps];
  const std::span<const int64_t> values(reinterpret_cast<const int64_t*>(slots.data()), slots.size());
  if (!size_code_ || !size_code_->run(values, found)) return false;
  for (size_t i = 0; i < sizes_.size(); ++i)
    if (found[i] > sizes_[i].most_elements) return false;
  return true;
}

void KernelVersion::divisors(std::span<const uint64_t> slots, std::span<uint64_t> out) const {
  int64_t found[ScalarCode::kMaxSteps];
  const std::span<const int64_t> values(reinterpret_cast<const int64_t*>(slots.data()), slots.size());
  if (divisor_code_) divisor_code_->run(values, found);  // wraps like every executor
  for (size_t i = 0; i < program_->divisors.size(); ++i) {
    const int64_t d =
        divisor_code_ ? found[i] : evaluate_launch_value(*program_, slots, program_->divisors[i]);
    out[2 * i] = static_cast<uint64_t>(d);
    out[2 * i + 1] = thread::reciprocal(d);
  }
}

std::string KernelVersion::guards_text() const {
  std::string text;
  for (const Guard& g : guards_)
    text += (text.empty() ? "" : ", ") + program_->params[g.slot].name + " % " + std::to_string(g.divisor) +
            " == 0";
  for (size_t i = 0; i < sizes_.size(); ++i)
    if (i == 0 || sizes_[i].slot != sizes_[i - 1].slot)
      text += (text.empty() ? "" : ", ") + program_->params[sizes_[i].slot].name + " of at most " +
              std::to_string(sizes_[i].most_bytes) + " bytes";
  std::string tensors;
  for (const thread::TensorMap& map : program_->tensor_maps)
    tensors += (tensors.empty() ? "" : " and ") + program_->memory(map.tensor).name;
  if (!tensors.empty())
    text += (text.empty() ? "" : ", ") + tensors +
            " with addresses and strides % 16 == 0 and extents from 1 to 2^31 - 2^21, as tensor maps need";
  for (size_t i = 0; i < stored_.size(); ++i)
    if (stored_[i])
      text += ", rows of " + program_->memory(program_->tensor_maps[i].tensor).name + " in whole 16 bytes";
  return text;
}

Expected<Grid> KernelVersion::grid(std::span<const uint64_t> slots) const {
  Grid grid;
  if (!find_extents(slots, grid.extents)) return evaluate_grid(*program_, slots);
  const auto extents = std::span(grid.extents).first(traits_.rank);
  if (std::any_of(extents.begin(), extents.end(), [](int64_t e) { return e <= 0; })) return grid;
  if (const auto blocks = checked_product(extents)) {
    grid.blocks = *blocks;
    return grid;
  }
  return Error(DiagCode::overflow, program_->name, "the number of blocks does not fit 64 bits",
               "launch with smaller dimensions");
}

std::vector<std::vector<KernelVersion>> kernel_versions(const driver::Artifact& artifact) {
  std::vector<std::vector<KernelVersion>> all;
  for (const driver::VersionRange& range : artifact.versions) {
    all.emplace_back();
    for (size_t i = 0; i < range.count; ++i) all.back().emplace_back(artifact.kernels[range.first + i]);
  }
  return all;
}

Expected<const KernelVersion*> choose_version(const std::vector<KernelVersion>& versions,
                                              const std::string& kernel, std::span<const uint64_t> slots) {
  for (const KernelVersion& version : versions)
    if (version.fits(slots)) return &version;
  return no_version(versions, kernel);
}

Error no_version(const std::vector<KernelVersion>& versions, const std::string& kernel) {
  return Error(DiagCode::launch_alignment, kernel,
               "kernel '" + kernel + "' relies on " + versions.back().guards_text() +
                   " (addresses and strides in bytes), which the arguments do not fulfil",
               "pass aligned tensors and dimensions of these multiples");
}

}  // namespace tilegen::runtime
