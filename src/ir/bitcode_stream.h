// Blocks and records of LLVM's bitstream container, of any bytes whatsoever.
//
// requires: nothing. ensures: reads nothing behind the bytes, ends, and keeps no more than one record.
// why here: LLVM's own reader ends the process on some bytes that are no bitcode.
// refuses: blocks and records that the bytes do not hold, more than 8 levels of blocks, records of more than
//   65536 numbers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tilegen::ir {

struct BitcodeRecord {
  uint64_t code = 0;
  std::vector<uint64_t> values;
  std::span<const uint8_t> blob;
};

class BitcodeStream {
 public:
  explicit BitcodeStream(std::span<const uint8_t> bytes);

  // What stands next in the open block. Of a block its number is `block`: it is entered or skipped.
  enum class Entry : uint8_t { record, block, end, wrong };
  Entry next(BitcodeRecord& record, uint64_t& block);
  bool enter();
  bool skip();
  // The records of the block that next() came to, blocks inside left out; false where something is wrong, or
  // `record` says so.
  template <class Record>
  bool each_record(const Record& record) {
    if (!enter()) return false;
    for (;;) {
      BitcodeRecord r;
      uint64_t block = 0;
      const Entry entry = next(r, block);
      if (entry == Entry::end) return true;
      if (entry == Entry::wrong || (entry == Entry::block && !skip())) return false;
      if (entry == Entry::record && !record(r)) return false;
    }
  }
  bool at_end() const { return scopes_.empty() && pos_ + 32 > size_; }
  const std::string& mistake() const { return mistake_; }  // empty: nothing was wrong

 private:
  // How an operand is written.
  struct Operand {
    enum class Kind : uint8_t { literal, fixed, vbr, array, char6, blob } kind{};
    uint64_t value = 0;
  };
  using Abbreviation = std::shared_ptr<const std::vector<Operand>>;
  struct Scope {
    unsigned width = 2;  // of what an entry begins with
    uint64_t block = 0;
    std::vector<Abbreviation> known;
  };

  bool fail(const char* what);
  uint64_t fixed(unsigned bits);
  uint64_t vbr(unsigned bits);
  bool align();
  bool define();
  bool unabbreviated(BitcodeRecord& r);
  bool abbreviated(const std::vector<Operand>& form, BitcodeRecord& r);
  bool number(const Operand& o, uint64_t& value);
  bool blob(BitcodeRecord& r);
  bool about_blocks(const BitcodeRecord& r);

  std::span<const uint8_t> bytes_;
  uint64_t pos_ = 0, size_ = 0;  // in bits
  Scope top_;
  std::vector<Scope> scopes_;
  std::map<uint64_t, std::vector<Abbreviation>> of_block_;  // that BLOCKINFO gives
  uint64_t told_ = ~uint64_t{0};                            // the block that BLOCKINFO speaks of
  uint64_t entered_ = 0;                                    // the block that next() came to
  unsigned entered_width_ = 0;
  uint64_t entered_words_ = 0;
  std::string mistake_;
};

}  // namespace tilegen::ir
