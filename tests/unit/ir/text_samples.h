// The sample programs under tests/files/text.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace tilegen::ir {

struct TextSample {
  std::string name;  // file name without ".tl"
  std::string text;
};

inline std::vector<TextSample> text_samples() {
  std::vector<TextSample> samples;
  for (const auto& entry : std::filesystem::directory_iterator(TILEGEN_SOURCE_DIR "/tests/files/text")) {
    if (entry.path().extension() != ".tl") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    samples.push_back({entry.path().stem().string(),
                       std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>())});
  }
  std::sort(samples.begin(), samples.end(),
            [](const TextSample& a, const TextSample& b) { return a.name < b.name; });
  return samples;
}

inline std::string text_sample(const std::string& name) {
  for (const TextSample& s : text_samples())
    if (s.name == name) return s.text;
  return {};
}

}  // namespace tilegen::ir
