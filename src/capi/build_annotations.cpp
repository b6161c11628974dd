// Builder calls: labels and annotations.
#include "capi/handles.h"

using namespace tilegen;
using namespace tilegen::capi;

extern "C" {

void tl_label(tl_builder* builder, const char* name) {
  on_builder(builder, "tl_label", [&](const BuilderCall& c) {
    const auto what = c.text("name", name);
    if (!c.failed()) c->label(what);
  });
}

void tl_annotate(tl_builder* builder, const char* text) {
  on_builder(builder, "tl_annotate", [&](const BuilderCall& c) {
    const auto what = c.text("text", text);
    if (!c.failed()) c->annotate(what);
  });
}

void tl_annotate_tile(tl_builder* builder, tl_buffer tile, const char* text) {
  on_builder(builder, "tl_annotate_tile", [&](const BuilderCall& c) {
    const auto of = c.buffer("tile", tile);
    const auto what = c.text("text", text);
    if (!c.failed()) c->annotate_tile(of, what);
  });
}

void tl_annotate_kernel(tl_builder* builder, const char* text) {
  on_builder(builder, "tl_annotate_kernel", [&](const BuilderCall& c) {
    const auto what = c.text("text", text);
    if (!c.failed()) c->annotate_kernel(what);
  });
}

}  // extern "C"
