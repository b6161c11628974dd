// Records in a folder: found by name, read with a bound, replaced by renaming.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "support/diag_codes.h"
#include "support/hash.h"
#include "tune/record.h"

namespace tilegen::tune {
namespace {

constexpr size_t kMaxRecordBytes = 1 << 20;  // a record of kMaxConfigurations takes a quarter
constexpr size_t kMaxFiles = 1 << 16;        // of a folder that are looked at
constexpr char kEnding[] = ".json";

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }
  // Whether all was well: a full disk may show here.
  bool done() { return close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_;
};

std::string name_of_key(const RecordKey& key) {
  std::string text = key.program + "\n" + key.target + "\n" + key.library + "\n" + key.schedule;
  for (const auto& [name, size] : key.bucket) text += "\n" + name + "=" + std::to_string(size);
  return stable_hash(text);
}

std::string name_of_file(const RecordKey& key, const std::string& device) {
  return name_of_key(key) + "-" + stable_hash(device).substr(0, 8) + kEnding;
}

// Null, with errno, where it cannot be read; more than kMaxRecordBytes are cut off by one.
std::optional<std::string> read_text(const std::string& path) {
  // A pipe of that name must not hold the caller.
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return std::nullopt;
  std::string text(kMaxRecordBytes + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  text.resize(size);
  return text;
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = write(descriptor, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  return true;
}

// A file beside `path` that no writer has: another machine's, or one that is gone, may have had the same
// number.
int open_new_file(const std::string& path, std::string& name) {
  static std::atomic<unsigned> number{0};
  for (int attempt = 0;; ++attempt) {
    name = path + "." + std::to_string(getpid()) + "." + std::to_string(number.fetch_add(1));
    const int file = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0 || errno != EEXIST || attempt == 1000) return file;
  }
}

// Names of files of the key, of all devices, in order.
std::vector<std::string> files_of(const std::string& folder, const RecordKey& key) {
  std::vector<std::string> names;
  const std::string begin = name_of_key(key) + "-";
  DIR* open_folder = opendir(folder.c_str());
  if (!open_folder) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> closing(open_folder, closedir);
  size_t looked_at = 0;
  while (const dirent* entry = readdir(open_folder)) {
    const std::string_view name = entry->d_name;
    if (name.substr(0, begin.size()) == begin && name.ends_with(kEnding)) names.emplace_back(name);
    if (++looked_at == kMaxFiles) break;
  }
  std::sort(names.begin(), names.end());
  return names;
}

Error not_written(const std::string& path, int why) {
  return Error(DiagCode::io_failure, "", "the record '" + path + "' cannot be written: " + std::strerror(why),
               "give a folder that can be written by the option 'tune_records', or none");
}

}  // namespace

std::optional<Record> find_record(const std::string& folder, const RecordKey& key, const std::string& device,
                                  const ir::Program& program, const Note& note) {
  std::vector<std::string> names;
  device.empty() ? void(names = files_of(folder, key)) : names.push_back(name_of_file(key, device));
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    const auto text = read_text(path);
    if (!text && errno == ENOENT) continue;
    if (!text) {
      note("the record '" + path + "' is left alone: " + std::strerror(errno));
      continue;
    }
    if (text->size() > kMaxRecordBytes) {
      note("the record '" + path + "' is left alone: it has more than " + std::to_string(kMaxRecordBytes) +
           " bytes");
      continue;
    }
    auto record = record_from_json(*text, key, program);
    if (record && (device.empty() || record->device == device)) return std::move(*record);
    note("the record '" + path + "' is left alone: " +
         (record ? "it is of device '" + record->device + "', expected '" + device + "'"
                 : record.error().diagnostics[0].message));
  }
  return std::nullopt;
}

Checked write_record(const std::string& folder, const Record& record, const ir::Program& program) {
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) return not_written(folder, errno);
  const std::string path = folder + "/" + name_of_file(record.key, record.device);
  const std::string text = record_to_json(record, program);
  std::string own;
  File file(open_new_file(path, own));
  if (file.get() < 0) return not_written(own, errno);
  const bool whole = write_all(file.get(), text) && file.done();
  if (whole && rename(own.c_str(), path.c_str()) == 0) return Unit{};
  const int why = errno;
  unlink(own.c_str());
  return not_written(path, why);
}

}  // namespace tilegen::tune
