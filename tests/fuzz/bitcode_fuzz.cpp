// Bytes as LLVM bitcode: text that a program takes as it does any other, or a stated refusal.
#include "fuzz_target.h"
#include "ir/bitcode_text.h"
#include "ir/native.h"

using namespace tilegen;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto text = ir::bitcode_text({data, size});
  if (!text) {
    fuzz::require_stated(text.error());
    return 0;
  }
  fuzz::require(text->size() <= ir::kMaxNativeText, "longer than a text may be");
  for (const char c : *text)
    fuzz::require(c == '\n' || (c >= ' ' && c <= '~' && c != '"'), "a character that no text holds");
  return 0;
}
