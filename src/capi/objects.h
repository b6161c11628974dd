// What the opaque types of tilelang.h are. Reference counts start at one, the creator's.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "builder/builder.h"
#include "capi/included_texts.h"
#include "cost/cliffs.h"
#include "driver/compile.h"
#include "ir/program.h"
#include "runtime/executable.h"
#include "support/cancellation.h"
#include "support/diagnostic.h"
#include "support/limits.h"
#include "support/once.h"
#include "target/target.h"
#include "tilelang.h"

namespace tilegen::capi {

struct RefCounted {
  std::atomic<uint64_t> references{1};
};

template <class T>
void retain(T* object) noexcept {
  if (object) object->references.fetch_add(1, std::memory_order_relaxed);
}
template <class T>
void release(T* object) noexcept {
  if (object && object->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete object;
}

// A function of the host with its user pointer; dropped once, when replaced or with its owner.
template <class Fn>
class Callback {
 public:
  Callback() = default;
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  ~Callback() { drop(); }
  void set(Fn fn, tl_drop_fn drop_fn, void* user) {
    drop();
    fn_ = fn;
    drop_ = drop_fn;
    user_ = user;
  }
  explicit operator bool() const { return fn_ != nullptr; }
  template <class... Args>
  auto operator()(Args... args) const {
    return fn_(user_, args...);
  }

 private:
  void drop() {
    if (drop_) drop_(user_);
    drop_ = nullptr;
  }
  Fn fn_ = nullptr;
  tl_drop_fn drop_ = nullptr;
  void* user_ = nullptr;
};

// Values of the option table; the rows are in options.cpp.
struct OptionValues {
  std::string schedule_json;
  bool conversions = true;
  bool keep_ir = false;
  bool keep_assembly = false;
  bool plan_only = false;
  bool verify = false;
  bool native_text = true;
  std::string sizes;
  std::string tune = "none";
  int64_t specialisations = 0;
  int64_t tune_count = 0;
  std::string tune_records;
  std::string simulator_order = "round_robin";
  std::string simulator_async = "latest";
  int64_t simulator_seed = 1;
  int64_t timeout_ms = 0;
};

}  // namespace tilegen::capi

struct tl_context : tilegen::capi::RefCounted {
  tilegen::Limits limits;
  tl_log_level log_level = TL_LOG_OFF;
  tilegen::capi::Callback<tl_log_fn> log_to;
  tilegen::capi::Callback<tl_dump_fn> dump_to;
  tilegen::capi::Callback<tl_print_fn> print_to;
  tilegen::capi::Callback<tl_cancel_fn> ask_cancel;
  int64_t timeout_ms = 0;
};

namespace tilegen::capi {

// Who may stop a call that works for `context` (null: for none) and has `timeout_ms` of its own; 0: any time.
class CallLimits : public Cancellation {
 public:
  explicit CallLimits(const tl_context* context, int64_t timeout_ms = 0)
      : Cancellation(asker(context),
                     std::min(deadline_in(context ? context->timeout_ms : 0), deadline_in(timeout_ms))),
        any_((context && (context->ask_cancel || context->timeout_ms > 0)) || timeout_ms > 0) {}
  // Null where nobody may.
  const Cancellation* get() const { return any_ ? this : nullptr; }

 private:
  static std::function<bool()> asker(const tl_context* context) {
    if (!context || !context->ask_cancel) return {};
    return [context] { return context->ask_cancel() != 0; };
  }
  const bool any_;
};

}  // namespace tilegen::capi

struct tl_error : tilegen::capi::RefCounted {
  tilegen::Error error;
  std::string text;
};

struct tl_blob : tilegen::capi::RefCounted {
  std::string bytes;
};

struct tl_options {
  tilegen::capi::OptionValues values;
};

struct tl_target : tilegen::capi::RefCounted {
  tilegen::target::Target target;
};

struct tl_program : tilegen::capi::RefCounted {
  std::shared_ptr<const tilegen::ir::Program> program;
  mutable tilegen::Once hashed;
  mutable std::string hash;
  // What tl_program_bind reads anew; none for a program without compile-time parameters or of a builder.
  std::shared_ptr<const tilegen::capi::ProgramSource> source;
};

struct tl_artifact : tilegen::capi::RefCounted {
  static constexpr int kSections = TL_SECTION_NATIVE_TEXT + 1;
  std::shared_ptr<const tilegen::driver::Artifact> artifact;
  mutable tilegen::Once made[kSections];
  mutable std::string text[kSections];
  mutable tilegen::Once warned;
  mutable std::vector<tilegen::cost::Cliff> warnings;
};

struct tl_kernel : tilegen::capi::RefCounted {
  std::unique_ptr<tilegen::runtime::Executable> executable;
  mutable std::mutex describing;                 // of what stands below
  mutable std::deque<std::string> descriptions;  // strings handed out by tl_kernel_describe
};

struct tl_builder {
  tl_builder(std::string_view name, const tl_context* for_context, uint32_t serial_number)
      : context(const_cast<tl_context*>(for_context)), builder(name, context->limits), serial(serial_number) {
    tilegen::capi::retain(context);
  }
  ~tl_builder() { tilegen::capi::release(context); }
  tl_builder(const tl_builder&) = delete;
  tl_builder& operator=(const tl_builder&) = delete;

  tl_context* context;  // held

  tilegen::builder::Builder builder;
  uint32_t serial;                           // 1 .. 2^24-1, part of every value handed out
  std::vector<tilegen::ir::Region> regions;  // what tl_region indexes
  std::set<size_t> places;                   // of these, those without extents
  std::vector<uint64_t> scopes;              // what tl_scope indexes: the builder's tokens
  bool out_of_memory = false;
};
