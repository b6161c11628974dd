#include "runtime/specialised_executable.h"

#include "driver/specialisations.h"

namespace tilegen::runtime {
namespace {

class SpecialisedExecutable final : public Executable {
 public:
  SpecialisedExecutable(std::shared_ptr<const driver::Artifact> artifact,
                        std::vector<std::unique_ptr<Executable>> loaded)
      : Executable(std::move(artifact), loaded.front()->reach()),
        specialisations_(*this->artifact().specialised),
        loaded_(std::move(loaded)) {}

  Checked prepare() override {
    for (const auto& each : loaded_)
      if (Checked ok = each->prepare(); !ok) return ok;
    return Unit{};
  }

  Expected<std::vector<VersionInfo>> info() const override {
    std::vector<VersionInfo> all;
    for (size_t i = 0; i < loaded_.size(); ++i) {
      auto rows = loaded_[i]->info();
      if (!rows) return rows.error();
      for (VersionInfo& row : *rows) {
        row.guards = specialisations_.sizes_text(i) + (row.guards.empty() ? "" : "; " + row.guards);
        all.push_back(std::move(row));
      }
    }
    return all;
  }

  size_t version_count() const override {
    size_t count = 0;
    for (const auto& each : loaded_) count += each->version_count();
    return count;
  }

  std::string load_log() const override {
    std::string text;
    for (const auto& each : loaded_) text += each->load_log();
    return text;
  }

  double load_ms() const override {
    double sum = 0;
    for (const auto& each : loaded_) sum += each->load_ms();
    return sum;
  }

 protected:
  Checked run(std::span<const uint64_t> slots, const LaunchOptions& options) const override {
    return run_of(*loaded_[specialisations_.choose(slots)], slots, options);
  }
  Checked run_in_workspace(std::span<uint64_t> slots, const LaunchOptions& options) const override {
    return run_in_workspace_of(*loaded_[specialisations_.choose(slots)], slots, options);
  }

 private:
  const driver::Specialisations& specialisations_;  // of the artifact
  const std::vector<std::unique_ptr<Executable>> loaded_;
};

}  // namespace

std::unique_ptr<Executable> join_loaded(std::shared_ptr<const driver::Artifact> artifact,
                                        std::vector<std::unique_ptr<Executable>> loaded) {
  return std::make_unique<SpecialisedExecutable>(std::move(artifact), std::move(loaded));
}

}  // namespace tilegen::runtime
