// Runs a fuzz target without libFuzzer: every file of the corpus, then mutations of them that follow from a
// seed.
//   program CORPUS [--mutations N] [--seed S]      or      program FILE...
// An input that crashes, or takes more than 20 s of a processor, is left in ./fuzz-failure and ends the
// process.
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <fcntl.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz_entry.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t*, size_t, size_t, unsigned) __attribute__((weak));

namespace {

using Input = std::vector<uint8_t>;

constexpr size_t kMaxBytes = 1 << 16;
constexpr time_t kSeconds = 20;

Input current;
std::mt19937_64 random_source;

size_t below(size_t n) { return n == 0 ? 0 : random_source() % n; }

void keep_and_end(int number) {
  const int to = open("fuzz-failure", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (to >= 0 && write(to, current.data(), current.size()) == static_cast<ssize_t>(current.size()))
    (void)!write(STDERR_FILENO, "the input is in ./fuzz-failure\n", 31);
  signal(number, SIG_DFL);
  raise(number);
}

// SIGPROF when that much more of a processor is used; 0: never.
void limit_processor(time_t seconds) {
  const itimerval limit{{0, 0}, {seconds, 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
}

void run(Input input) {
  current = std::move(input);
  limit_processor(kSeconds);
  LLVMFuzzerTestOneInput(current.data(), current.size());
  limit_processor(0);
}

Input read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Input mutated(Input input, unsigned seed) {
  const size_t size = input.size();
  input.resize(kMaxBytes);
  input.resize(LLVMFuzzerCustomMutator ? LLVMFuzzerCustomMutator(input.data(), size, kMaxBytes, seed)
                                       : LLVMFuzzerMutate(input.data(), size, kMaxBytes));
  return input;
}

}  // namespace

// Flips, numbers, and pieces removed, doubled or moved.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  static constexpr uint8_t kBytes[] = {0, 9, 32, 45, 48, 49, 57, 91, 123, 125, 127, 255};
  for (size_t edits = 1 + below(3); edits > 0; --edits) {
    const size_t at = below(size + 1), length = std::min(below(16) + 1, size - at);
    switch (below(5)) {
      case 0:
        if (at < size) data[at] ^= static_cast<uint8_t>(1u << below(8));
        break;
      case 1:
        if (at < size) data[at] = kBytes[below(std::size(kBytes))];
        break;
      case 2:
        std::memmove(data + at, data + at + length, size - at - length);
        size -= length;
        break;
      case 3:
        if (size + length > max_size) break;
        std::memmove(data + at + length, data + at, size - at);
        size += length;
        break;
      default:
        if (length > 0 && size >= length) std::memmove(data + below(size - length + 1), data + at, length);
    }
  }
  return size;
}

int main(int argc, char** argv) {
  for (int number : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS, SIGPROF, SIGTRAP})
    signal(number, keep_and_end);
  std::vector<std::filesystem::path> files;
  uint64_t mutations = 0, seed = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--mutations" && i + 1 < argc)
      mutations = std::strtoull(argv[++i], nullptr, 10);
    else if (word == "--seed" && i + 1 < argc)
      seed = std::strtoull(argv[++i], nullptr, 10);
    else if (std::filesystem::is_directory(word))
      for (const auto& entry : std::filesystem::directory_iterator(word)) files.push_back(entry.path());
    else
      files.push_back(word);
  }
  std::sort(files.begin(), files.end());
  std::vector<Input> corpus;
  for (const auto& file : files) corpus.push_back(read_file(file));
  if (corpus.empty()) {
    std::fprintf(stderr, "usage: %s CORPUS [--mutations N] [--seed S]\n", argv[0]);
    return 2;
  }
  for (const Input& input : corpus) run(input);
  random_source.seed(seed);
  for (uint64_t n = 0; n < mutations; ++n) {
    Input input = corpus[below(corpus.size())];
    run(mutated(std::move(input), static_cast<unsigned>(random_source())));
  }
  std::printf("%zu inputs, %llu mutations\n", corpus.size(), static_cast<unsigned long long>(mutations));
  return 0;
}
