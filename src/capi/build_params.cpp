// Builder calls: compile-time parameters.
#include "capi/handles.h"

using namespace tilegen;
using namespace tilegen::capi;

extern "C" {

void tl_builder_bind(tl_builder* builder, const char* name, int64_t value) {
  on_builder(builder, "tl_builder_bind", [&](const BuilderCall& c) {
    const auto text = c.text("name", name);
    if (!c.failed()) c->bind(text, value);
  });
}

int64_t tl_param(tl_builder* builder, const char* name, const int64_t* values, size_t count) {
  // Also given where the call does nothing: callers divide by it.
  const int64_t first = values && count > 0 ? values[0] : 1;
  return on_builder(builder, "tl_param", first, [&](const BuilderCall& c) {
    const auto text = c.text("name", name);
    if (count > 0) c.given("values", values);
    if (c.failed()) return first;
    return c->param(text, {values, count});
  });
}

}  // extern "C"
