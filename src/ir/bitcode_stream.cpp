// "LLVM Bitcode File Format", section "Bitstream Format".
#include "ir/bitcode_stream.h"

#include <algorithm>
#include <utility>

namespace tilegen::ir {
namespace {

constexpr size_t kMaxDepth = 8, kMaxValues = size_t{1} << 16, kMaxAbbreviations = 1024;
constexpr uint64_t kBlockInfo = 0, kSetBlock = 1;
constexpr std::string_view kChar6 = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._";

}  // namespace

BitcodeStream::BitcodeStream(std::span<const uint8_t> bytes) : bytes_(bytes), size_(bytes.size() * 8) {}

bool BitcodeStream::fail(const char* what) {
  if (mistake_.empty()) mistake_ = std::string(what) + " at byte " + std::to_string(pos_ / 8);
  return false;
}

uint64_t BitcodeStream::fixed(unsigned bits) {
  if (bits > 64 || bits > size_ - pos_) {
    fail("it ends inside of a record");
    pos_ = size_;
    return 0;
  }
  uint64_t value = 0;
  for (unsigned got = 0; got < bits;) {
    const unsigned in_byte = static_cast<unsigned>(pos_ % 8), take = std::min(8 - in_byte, bits - got);
    const uint64_t part = (bytes_[pos_ / 8] >> in_byte) & ((1u << take) - 1);
    value |= part << got;
    got += take;
    pos_ += take;
  }
  return value;
}

uint64_t BitcodeStream::vbr(unsigned bits) {
  if (bits < 2 || bits > 32) return fail("a number has an impossible width"), 0;
  const uint64_t more = uint64_t{1} << (bits - 1);
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += bits - 1) {
    const uint64_t part = fixed(bits);
    if (!mistake_.empty()) return 0;
    if (shift >= 64) return fail("a number has more than 64 bits"), 0;
    value |= (part & (more - 1)) << shift;
    if ((part & more) == 0) return value;
  }
}

bool BitcodeStream::align() {
  pos_ = (pos_ + 31) / 32 * 32;
  return pos_ <= size_ || ((pos_ = size_), fail("it ends inside of a block"));
}

BitcodeStream::Entry BitcodeStream::next(BitcodeRecord& record, uint64_t& block) {
  enum : uint64_t { kEnd, kEnter, kDefine, kPlain };
  while (mistake_.empty()) {
    Scope& scope = scopes_.empty() ? top_ : scopes_.back();
    const uint64_t id = fixed(scope.width);
    if (!mistake_.empty()) break;
    if (id == kEnd) {
      if (scopes_.empty()) fail("a block ends that did not begin");
      if (!mistake_.empty() || !align()) break;
      scopes_.pop_back();
      return Entry::end;
    }
    if (id == kEnter) {
      block = entered_ = vbr(8);
      entered_width_ = static_cast<unsigned>(std::min<uint64_t>(vbr(4), 64));
      if (!mistake_.empty() || !align()) break;
      entered_words_ = fixed(32);
      if (!mistake_.empty()) break;
      return Entry::block;
    }
    if (id == kDefine) {
      if (!define()) break;
      continue;
    }
    record.values.clear();
    record.blob = {};
    if (id != kPlain && id - kPlain - 1 >= scope.known.size()) {
      fail("a record has an unknown form");
      break;
    }
    const bool read =
        id == kPlain ? unabbreviated(record) : abbreviated(*scope.known[id - kPlain - 1], record);
    if (!read || !mistake_.empty()) break;
    if (scope.block != kBlockInfo || scopes_.empty()) return Entry::record;
    if (!about_blocks(record)) break;
  }
  return Entry::wrong;
}

bool BitcodeStream::enter() {
  if (scopes_.size() >= kMaxDepth) return fail("blocks are nested too deeply");
  if (entered_width_ < 2 || entered_width_ > 16) return fail("a block has an impossible width");
  Scope scope;
  scope.width = entered_width_;
  scope.block = entered_;
  if (const auto known = of_block_.find(entered_); known != of_block_.end()) scope.known = known->second;
  if (entered_ == kBlockInfo) told_ = ~uint64_t{0};
  scopes_.push_back(std::move(scope));
  return true;
}

bool BitcodeStream::skip() {
  if (entered_words_ > (size_ - pos_) / 32) return fail("a block is longer than the bytes");
  pos_ += entered_words_ * 32;
  return true;
}

bool BitcodeStream::about_blocks(const BitcodeRecord& r) {
  if (r.code != kSetBlock) return true;  // names
  if (r.values.empty()) return fail("a block's number is missing");
  told_ = r.values[0];
  return true;
}

bool BitcodeStream::define() {
  std::vector<Operand> form;
  for (uint64_t left = vbr(5); left > 0 && mistake_.empty(); --left) {
    if (form.size() >= 64) return fail("a form has too many operands");
    Operand o;
    if (fixed(1) != 0) {
      o.value = vbr(8);
    } else {
      const uint64_t kind = fixed(3);
      if (kind < 1 || kind > 5) return fail("a form has an unknown encoding");
      o.kind = static_cast<Operand::Kind>(kind);
      if (kind <= 2) {
        o.value = vbr(5);
        if (o.value > 32) return fail("a form has an impossible width");
        if (o.value == 0) o.kind = Operand::Kind::literal;  // a number of no bits
      }
    }
    form.push_back(o);
  }
  const auto ends_with = [&](Operand::Kind k, size_t behind) {
    for (size_t i = 0; i < form.size(); ++i)
      if (form[i].kind == k && i + 1 + behind != form.size()) return false;
    return true;
  };
  const bool whole = !form.empty() && ends_with(Operand::Kind::array, 1) &&
                     ends_with(Operand::Kind::blob, 0) && form[0].kind != Operand::Kind::array &&
                     form[0].kind != Operand::Kind::blob;
  if (!mistake_.empty() || !whole) return fail("a form has no such operands");
  auto made = std::make_shared<const std::vector<Operand>>(std::move(form));
  Scope& scope = scopes_.empty() ? top_ : scopes_.back();
  std::vector<Abbreviation>& list =
      !scopes_.empty() && scope.block == kBlockInfo ? of_block_[told_] : scope.known;
  if (list.size() >= kMaxAbbreviations || of_block_.size() > kMaxAbbreviations) return fail("too many forms");
  list.push_back(std::move(made));
  return true;
}

bool BitcodeStream::unabbreviated(BitcodeRecord& r) {
  r.code = vbr(6);
  const uint64_t count = vbr(6);
  if (count > kMaxValues) return fail("a record has too many numbers");
  for (uint64_t i = 0; i < count && mistake_.empty(); ++i) r.values.push_back(vbr(6));
  return mistake_.empty();
}

bool BitcodeStream::number(const Operand& o, uint64_t& value) {
  if (o.kind == Operand::Kind::literal) value = o.value;
  if (o.kind == Operand::Kind::fixed) value = fixed(static_cast<unsigned>(o.value));
  if (o.kind == Operand::Kind::vbr) value = vbr(static_cast<unsigned>(o.value));
  if (o.kind == Operand::Kind::char6) value = static_cast<uint8_t>(kChar6[fixed(6)]);
  return mistake_.empty();
}

bool BitcodeStream::blob(BitcodeRecord& r) {
  const uint64_t bytes = vbr(6);
  if (!mistake_.empty() || !align()) return false;
  if (bytes > (size_ - pos_) / 8) return fail("a blob is longer than the bytes");
  r.blob = bytes_.subspan(pos_ / 8, bytes);
  pos_ += bytes * 8;
  return align();
}

bool BitcodeStream::abbreviated(const std::vector<Operand>& form, BitcodeRecord& r) {
  if (!number(form[0], r.code)) return false;
  for (size_t i = 1; i < form.size(); ++i) {
    uint64_t value = 0;
    if (form[i].kind == Operand::Kind::blob) return blob(r);
    if (form[i].kind == Operand::Kind::array) {
      const Operand& element = form[i + 1];
      if (element.kind == Operand::Kind::array || element.kind == Operand::Kind::blob)
        return fail("an array has no such elements");
      const uint64_t count = vbr(6);
      if (count > kMaxValues) return fail("a record has too many numbers");
      for (uint64_t k = 0; k < count; ++k) {
        if (!number(element, value)) return false;
        r.values.push_back(value);
      }
      return mistake_.empty();
    }
    if (!number(form[i], value)) return false;
    r.values.push_back(value);
  }
  return mistake_.empty();
}

}  // namespace tilegen::ir
