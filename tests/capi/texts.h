// Texts that programs of the tests include, by name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scope.h"

namespace tilegen::test {

using Named = std::map<std::string, std::string>;

class Texts {
 public:
  explicit Texts(Named texts) : texts_(std::move(texts)) {}

  // Of the program "main.tl".
  tl_parse_options options() {
    tl_parse_options options{};
    options.struct_size = sizeof options;
    options.file_name = "main.tl";
    options.include = find;
    options.include_user = this;
    return options;
  }

  tl_status parse(const Context& context, const std::string& text, Program* program, Failure* failure) {
    const tl_parse_options how = options();
    tl_program* made = nullptr;
    tl_error* error = nullptr;
    const tl_status status =
        tl_program_parse_with(context.get(), text.data(), text.size(), &how, &made, &error);
    Program owned(made);
    Failure owned_error(error);
    if (program) *program = std::move(owned);
    if (failure) *failure = std::move(owned_error);
    return status;
  }
  Failure failure(const std::string& text) {
    Failure failure;
    parse(make_context(), text, nullptr, &failure);
    return failure;
  }

  std::vector<std::string> asked;  // "1 main.tl:2:9 lib/rows.tl"

 private:
  static void find(void* user, tl_included* included) {
    auto& self = *static_cast<Texts*>(user);
    self.asked.push_back(std::to_string(included->depth) + " " + included->includer + ":" +
                         std::to_string(included->line) + ":" + std::to_string(included->column) + " " +
                         included->path);
    const auto found = self.texts_.find(included->path);
    if (found == self.texts_.end()) {
      included->refusal = "the tests have no such text";
      return;
    }
    // Neither ends with a zero, and both are gone when the next text is asked for.
    self.latest_.assign(found->second.begin(), found->second.end());
    self.latest_.push_back('?');
    included->text = self.latest_.data();
    included->size = found->second.size();
  }

  Named texts_;
  std::vector<char> latest_;
};

}  // namespace tilegen::test
