// A module is read twice: for the table of names, which stands behind it, then for its functions. Values have
// numbers: functions, constants of the module, then in each function its parameters, constants and what its
// instructions compute; operands count back from the next number.
#include "ir/bitcode_text.h"

#include <algorithm>
#include <utility>

#include "ir/bitcode_function.h"
#include "ir/native.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

constexpr size_t kMaxBitcode = size_t{1} << 20;
constexpr uint64_t kModule = 8, kConstants = 11, kFunction = 12, kTypes = 17, kNames = 23;
constexpr uint64_t kNamesBlob = 1, kVersion = 1, kModuleAsm = 4, kGlobal = 7, kFunctionRecord = 8;
constexpr uint64_t kAlias = 14, kIfunc = 15, kAliasOld = 9;

// Letters and marks that need no quotation marks in LLVM IR.
bool is_plain(std::string_view name) {
  if (name.empty() || name.size() > 256 || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '$' || c == '-';
  });
}

// Bitcode within a wrapper, as of some systems: where it begins and how long it is stand in front.
std::span<const uint8_t> unwrapped(std::span<const uint8_t> bytes) {
  const auto word = [&](size_t i) {
    return uint32_t{bytes[i]} | uint32_t{bytes[i + 1]} << 8 | uint32_t{bytes[i + 2]} << 16 |
           uint32_t{bytes[i + 3]} << 24;
  };
  if (bytes.size() < 20 || word(0) != 0x0b17c0de) return bytes;
  const size_t from = word(8), size = word(12);
  return from <= bytes.size() && size <= bytes.size() - from ? bytes.subspan(from, size)
                                                             : std::span<const uint8_t>();
}

class Module {
 public:
  explicit Module(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  std::optional<std::string> text(std::string& why) {
    const bool done = read_names() && read_module();
    why = !values_.mistake().empty() ? values_.mistake() : mistake_;
    if (!done) return std::nullopt;
    std::string all;
    for (const BitcodeFunction& f : functions_) {
      if (f.defined != f.has_body) return why = "the body of a function is missing", std::nullopt;
      all += f.text;
    }
    return all;
  }

 private:
  bool fail(std::string what) { return values_.fail(std::move(what)); }
  bool of_stream(const BitcodeStream& s) { return mistake_ = s.mistake(), false; }

  // Blocks of the file, which `block` enters or skips; false where it does.
  template <class Block>
  bool each_block(const Block& block) {
    BitcodeStream s(bytes_);
    BitcodeRecord r;
    uint64_t number = 0;
    while (!s.at_end()) {
      const auto entry = s.next(r, number);
      if (entry == BitcodeStream::Entry::record) return fail("it has a record outside of blocks");
      if (entry != BitcodeStream::Entry::block || !block(s, number)) return of_stream(s);
    }
    return true;
  }

  bool read_names() {
    return each_block([&](BitcodeStream& s, uint64_t number) {
      if (number != kNames) return s.skip();
      return s.each_record([&](const BitcodeRecord& r) {
        if (r.code == kNamesBlob) names_ = r.blob;
        return true;
      });
    });
  }

  bool read_module() {
    bool found = false;
    const bool read = each_block([&](BitcodeStream& s, uint64_t number) {
      if (number != kModule) return number == 0 ? s.enter() && read_forms(s) : s.skip();
      if (std::exchange(found, true)) return fail("it has several modules");
      return s.enter() && module_block(s);
    });
    return read && (found || fail("it has no module"));
  }

  static bool read_forms(BitcodeStream& s) {
    BitcodeRecord r;
    uint64_t number = 0;
    return s.next(r, number) == BitcodeStream::Entry::end;
  }

  bool module_block(BitcodeStream& s) {
    BitcodeRecord r;
    uint64_t number = 0;
    for (;;) switch (s.next(r, number)) {
        case BitcodeStream::Entry::end:
          return true;
        case BitcodeStream::Entry::wrong:
          return false;
        case BitcodeStream::Entry::block:
          if (!block_of_module(s, number)) return false;
          break;
        case BitcodeStream::Entry::record:
          if (!record_of_module(r)) return false;
      }
  }

  bool block_of_module(BitcodeStream& s, uint64_t number) {
    if (number == 0) return s.enter() && read_forms(s);
    if (number == kTypes)
      return std::exchange(typed_, true) ? fail("it has two tables of types") : values_.read_types(s);
    if (number == kConstants) return values_.read_constants(s);
    if (number != kFunction) return s.skip();
    while (body_ < functions_.size() && !functions_[body_].defined) ++body_;
    if (body_ == functions_.size()) return fail("it has a body of no function");
    return read_bitcode_body(s, values_, functions_, body_++);
  }

  bool record_of_module(const BitcodeRecord& r) {
    switch (r.code) {
      case kVersion:
        version_ = r.values.empty() ? 0 : r.values[0];
        return version_ == 2 || fail("it is of an LLVM before 5, or of one that is not known");
      case kModuleAsm:
        return fail("it has inline assembly");
      case kGlobal:
        return fail("it has globals");
      case kAlias:
      case kIfunc:
      case kAliasOld:
        return fail("it has aliases");
      case kFunctionRecord:
        return function_record(r);
      default:
        return true;
    }
  }

  // [name's place, name's length, type, calling convention, is declared only, linkage, ...]
  bool function_record(const BitcodeRecord& r) {
    if (version_ != 2) return fail("it tells no version");
    if (r.values.size() < 6) return fail("a function is described in part");
    if (r.values[0] > names_.size() || r.values[1] > names_.size() - r.values[0])
      return fail("a function has no name");
    BitcodeFunction f;
    const auto name = names_.subspan(r.values[0], r.values[1]);
    f.name.assign(name.begin(), name.end());
    if (!is_plain(f.name)) return fail("a function's name is none of letters, digits and . _ $ -");
    const auto type = values_.type_of_number(r.values[2]);
    if (!type) return false;
    if (values_.type(*type).kind != BitcodeType::Kind::function)
      return fail("@" + f.name + " has parameters or results that are none of numbers, as pointers");
    f.type = *type;
    f.defined = r.values[4] == 0;
    if (!f.defined) f.text = "declare " + bitcode_signature(values_, f, {}) + "\n";
    BitcodeValues::Value v;
    v.kind = BitcodeValues::Value::Kind::function;
    v.type = f.type;
    v.function = functions_.size();
    functions_.push_back(std::move(f));
    return values_.add(std::move(v));
  }

  const std::span<const uint8_t> bytes_;
  std::span<const uint8_t> names_;
  BitcodeValues values_;
  std::vector<BitcodeFunction> functions_;
  size_t body_ = 0;  // the next function that has one
  uint64_t version_ = 0;
  bool typed_ = false;
  std::string mistake_;
};

Error refusal(DiagCode code, const std::string& why) {
  return Error(code, "", "the bitcode cannot be text of LLVM IR: " + why,
               "give bitcode of LLVM 5 to 19 whose functions compute of their arguments alone, as clang -c "
               "-emit-llvm -O2 makes of such a function");
}

}  // namespace

Expected<std::string> bitcode_text(std::span<const uint8_t> bytes) {
  if (bytes.size() > kMaxBitcode)
    return refusal(DiagCode::limit_bytes, "it has " + std::to_string(bytes.size()) + " bytes; at most " +
                                              std::to_string(kMaxBitcode) + " are read");
  const std::span<const uint8_t> code = unwrapped(bytes);
  constexpr uint8_t kMagic[] = {'B', 'C', 0xc0, 0xde};
  if (code.size() < 8 || !std::equal(std::begin(kMagic), std::end(kMagic), code.begin()))
    return refusal(DiagCode::bad_native_text, "it does not begin with the bytes of bitcode");
  std::string why;
  auto text = Module(code.subspan(4)).text(why);
  if (!text) return refusal(DiagCode::bad_native_text, why);
  if (text->size() > kMaxNativeText)
    return refusal(DiagCode::limit_bytes, "it would have " + std::to_string(text->size()) +
                                              " characters; at most " + std::to_string(kMaxNativeText) +
                                              " are allowed");
  return *text;
}

}  // namespace tilegen::ir
