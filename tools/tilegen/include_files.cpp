#include "include_files.h"

#include <filesystem>

#include "files.h"

namespace tool {

namespace fs = std::filesystem;

namespace {

std::string without_links(const fs::path& file) {
  std::error_code failed;
  const fs::path path = fs::weakly_canonical(file, failed);
  return failed ? file.string() : path.string();
}

bool is_file(const fs::path& path) {
  std::error_code failed;
  return fs::exists(path, failed) && !fs::is_directory(path, failed);
}

}  // namespace

IncludeFiles::IncludeFiles(std::vector<std::string> folders, const std::string& shown, size_t most)
    : folders_(std::move(folders)), most_(most), names_({{without_links(shown), shown}}) {}

void IncludeFiles::find(void* self, tl_included* included) {
  static_cast<IncludeFiles*>(self)->find(*included);
}

void IncludeFiles::find(tl_included& included) {
  std::vector<fs::path> places = {fs::path(included.includer).parent_path()};
  places.insert(places.end(), folders_.begin(), folders_.end());
  refusal_ = "no file " + std::string(included.path);
  for (size_t i = 0; i < places.size(); ++i) {
    const fs::path file = (places[i] / included.path).lexically_normal();
    if (!is_file(file)) {
      refusal_ += i == 0 ? " beside " + std::string(included.includer) : ", nor in " + places[i].string();
      continue;
    }
    name_ = names_.emplace(without_links(file), file.string()).first->second;
    text_ = read_file(file.string(), most_);
    included.name = name_.c_str();
    included.text = text_.data();
    included.size = text_.size();
    return;
  }
  refusal_ += "; -I FOLDER names further folders";
  included.refusal = refusal_.c_str();
}

}  // namespace tool
