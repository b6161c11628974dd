#include "capi/included_texts.h"

#include <memory>
#include <set>

namespace tilegen::capi {
namespace {

ir::IncludedText ask(tl_include_fn fn, void* user, const ir::IncludeRequest& request) {
  const std::string path(request.path), includer(request.includer);
  tl_included asked{};
  asked.struct_size = sizeof asked;
  asked.depth = static_cast<uint32_t>(request.depth);
  asked.path = path.c_str();
  asked.includer = includer.c_str();
  asked.line = request.line;
  asked.column = request.column;
  fn(user, &asked);
  ir::IncludedText got;
  got.name = asked.name ? asked.name : path;
  if (asked.text)
    got.text.emplace(asked.text, asked.size);
  else if (asked.refusal)
    got.refusal = asked.refusal;
  return got;
}

}  // namespace

// The reader asks in the order of the text, which values of parameters do not change.
ir::IncludeText ProgramSource::again() const {
  if (included.empty()) return {};
  return [this, next = size_t{0}](const ir::IncludeRequest&) mutable {
    return next < included.size() ? included[next++] : ir::IncludedText();
  };
}

ir::IncludeText texts_of(tl_include_fn fn, void* user, std::vector<ir::IncludedText>& given) {
  if (!fn) return {};
  return [fn, user, &given, names = std::set<std::string>()](const ir::IncludeRequest& request) mutable {
    ir::IncludedText got = ask(fn, user, request);
    const bool known = !names.insert(got.name).second;
    given.push_back({got.name, known ? std::string() : got.text, got.refusal});
    return got;
  };
}

}  // namespace tilegen::capi
