// Finding what a misspelt name was meant to be.
#pragma once

#include <string>
#include <string_view>

namespace tilegen {

// Keeps the offered candidate nearest to a wanted name. A candidate counts when at most a third of the longer
// of the two names must change (at least one letter may). Of equals the one offered first stays.
class NearestName {
 public:
  explicit NearestName(std::string_view wanted) : wanted_(wanted) {}
  void offer(std::string_view candidate);

  std::string_view found() const { return best_; }     // empty: none is near
  std::string hint(std::string_view otherwise) const;  // "did you mean 'x'?" or `otherwise`

 private:
  std::string_view wanted_;
  std::string_view best_;
  size_t distance_ = ~size_t{0};
};

}  // namespace tilegen
