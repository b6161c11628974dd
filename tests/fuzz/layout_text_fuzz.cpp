// Text of layouts and fragments: what is read prints as it stands, can be asked anything and drawn.
#include "fuzz_target.h"
#include "layout/fragment.h"
#include "layout/picture.h"

using namespace tilegen;

namespace {

constexpr int64_t kSmall = 4096;  // elements: asking about more takes too long for a fuzz run

void ask(const layout::Layout& l) {
  const layout::Layout canonical = l.canonical();
  fuzz::require(canonical.canonical() == canonical, "canonical twice: " + l.to_text());
  (void)layout::layout_grid(l);
  if (l.elements() > kSmall || l.replicas() > kSmall) return;
  (void)l.is_injective();
  (void)l.is_bijective();
  for (int d = 0; d < l.rank(); ++d) (void)l.contiguous_run(d);
  const std::vector<int64_t> origin(static_cast<size_t>(l.rank()), 0);
  fuzz::require(l.eval(origin) == canonical.eval(origin), "canonical maps elsewhere: " + l.to_text());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto l = layout::Layout::from_text(text)) {
    const auto again = layout::Layout::from_text(l->to_text());
    fuzz::require(again && *again == *l, "not printed as it was read: " + l->to_text());
    ask(*l);
  } else {
    fuzz::require_stated(l.error());
  }
  if (const auto f = layout::Fragment::from_text(text)) {
    const auto again = layout::Fragment::from_text(f->to_text());
    fuzz::require(again && *again == *f, "not printed as it was read: " + f->to_text());
    (void)layout::fragment_grid(*f);
  } else {
    fuzz::require_stated(f.error());
  }
  return 0;
}
