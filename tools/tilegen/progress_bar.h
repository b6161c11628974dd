// A line on standard error that grows, where that is a terminal; nothing elsewhere.
#pragma once

#include <cstddef>
#include <string>

namespace tool {

class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();  // wipes the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  void show(size_t done, size_t all, const std::string& what);

 private:
  const bool terminal_;
};

}  // namespace tool
