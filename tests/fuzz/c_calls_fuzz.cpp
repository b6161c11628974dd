// Sequences of calls of the C interface, decoded from bytes: whatever is called with whatever, there is an
// answer. What the builder accepts reads back from its own text and compiles, or is refused by name.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../capi/call_player.h"
#include "fuzz_entry.h"

using namespace tilegen::test;

namespace {

void require(bool promise, const char* what) {
  if (promise) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

void require_stated(const Failure& failure) {
  const tl_diagnostic d = first(failure);
  require(std::strcmp(d.code, "internal_error") != 0, d.message);
  require(d.hint[0] != '\0', d.message);
}

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : at_(data), left_(size) {}
  // Below n, by as many bytes as that takes; 0 when all are used up.
  int below(int n) {
    uint32_t value = 0;
    for (int64_t reach = 1; reach < n && left_ > 0; reach *= 256, --left_) value = value << 8 | *at_++;
    return static_cast<int>(value % static_cast<uint32_t>(n));
  }

 private:
  const uint8_t* at_;
  size_t left_;
};

void compile(const Context& context, const Program& program, const char* name) {
  tl_target* target = nullptr;
  require(tl_target_parse(name, &target, nullptr) == TL_OK, name);
  const Target owned_target(target);
  tl_options* options = nullptr;
  require(tl_options_create(&options, nullptr) == TL_OK, "options");
  const Options owned_options(options);
  require(tl_options_set_i64(options, "timeout_ms", 1000, nullptr) == TL_OK, "timeout_ms");
  tl_artifact* artifact = nullptr;
  tl_error* error = nullptr;
  const tl_status status = tl_compile(context.get(), program.get(), target, options, &artifact, &error);
  const Artifact owned_artifact(artifact);
  const Failure failure(error);
  if (status != TL_OK) require_stated(failure);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Context context = make_context();
  Bytes bytes(data, size);
  const int target = bytes.below(8);
  Player player(context, [&](int n) { return bytes.below(n); });
  player.play();
  Program program;
  Failure failure;
  if (finish(player.builder(), &program, &failure) != TL_OK) {
    require_stated(failure);
    return 0;
  }
  tl_blob* text = nullptr;
  require(tl_program_print(program.get(), &text, nullptr) == TL_OK, "a program prints");
  const Blob blob(text);
  tl_program* made = nullptr;
  tl_error* error = nullptr;
  const tl_status status =
      tl_program_parse(context.get(), tl_blob_data(text), tl_blob_size(text), "p.tl", &made, &error);
  const Program again(made);
  const Failure parse_failure(error);
  require(status == TL_OK, tl_blob_data(text));
  tl_blob* source = nullptr;
  require(tl_program_emit_c(program.get(), &source, nullptr) == TL_OK, "a program is written as C");
  tl_blob_release(source);
  require(std::strcmp(tl_program_hash(again.get()), tl_program_hash(program.get())) == 0, tl_blob_data(text));
  compile(context, program, target == 0 ? "host" : target < 4 ? "sim:sm_80" : "sim:sm_90a");
  return 0;
}
