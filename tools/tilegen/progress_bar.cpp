#include "progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace tool {

namespace {

constexpr size_t kWidth = 30;  // cells

}  // namespace

ProgressBar::ProgressBar() : terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (terminal_) std::fputs("\r\033[K", stderr);
}

void ProgressBar::show(size_t done, size_t all, const std::string& what) {
  if (!terminal_) return;
  const size_t full = all == 0 ? kWidth : std::min(kWidth, kWidth * done / all);
  std::fprintf(stderr, "\r\033[K[%s%s] %zu/%zu  %.60s", std::string(full, '#').c_str(),
               std::string(kWidth - full, '.').c_str(), done, all, what.c_str());
  std::fflush(stderr);
}

}  // namespace tool
