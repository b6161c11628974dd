// The files that a program includes: beside the file that says so, then in the folders of -I.
#pragma once

#include <tilelang.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace tool {

class IncludeFiles {
 public:
  // `shown`: the program's name in diagnostics. A file is read up to `most` bytes.
  IncludeFiles(std::vector<std::string> folders, const std::string& shown, size_t most);

  static void find(void* self, tl_included* included);  // a tl_include_fn

 private:
  void find(tl_included& included);

  const std::vector<std::string> folders_;
  const size_t most_;
  std::map<std::string, std::string> names_;  // by path without links: one file has one name
  std::string name_, text_, refusal_;         // of the latest
};

}  // namespace tool
