#include "object/hsaco_resources.h"

#include "object/elf_object.h"
#include "support/diag_codes.h"

namespace tilegen::object {

namespace {

constexpr uint16_t kAmdgpu = 224;   // EM_AMDGPU
constexpr uint32_t kMetadata = 32;  // NT_AMDGPU_METADATA
constexpr std::string_view kNames[] = {".vgpr_count", ".agpr_count", ".sgpr_count",
                                       ".private_segment_fixed_size", ".group_segment_fixed_size"};
constexpr int64_t KernelResources::*kNumbers[] = {
    &KernelResources::vector_registers, &KernelResources::accumulation_registers,
    &KernelResources::scalar_registers, &KernelResources::scratch_bytes, &KernelResources::shared_bytes};

Error refused(const std::string& what) {
  return Error(DiagCode::backend_failure, {}, "what the kernels need cannot be read from their code: " + what,
               "compile the program again with this library");
}

// A value of MessagePack ("MessagePack specification", "Formats").
struct Value {
  enum Kind : uint8_t { other, integer, text, array, map } kind = other;
  uint64_t number = 0;     // integer; array, map: values that follow, two for each pair of a map
  std::string_view bytes;  // text
};

// Values one after another. Past the end, and of a byte that begins none, it has failed: what follows is
// `other`.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  bool failed() const { return failed_; }

  Value next() {
    const auto head = static_cast<uint8_t>(big_endian(1));
    if (failed_) return {};
    if (head < 0x80 || head >= 0xe0)
      return {Value::integer, static_cast<uint64_t>(static_cast<int8_t>(head)), {}};
    if (head < 0x90) return {Value::map, 2 * (head & 15U), {}};
    if (head < 0xa0) return {Value::array, head & 15U, {}};
    if (head < 0xc0) return {Value::text, 0, take(head & 31U)};
    const auto sized = [&](uint8_t first) { return big_endian(size_t{1} << (head - first)); };
    if (head >= 0xc4 && head <= 0xc6) return take(sized(0xc4)), Value();
    if (head >= 0xc7 && head <= 0xc9) return take(sized(0xc7) + 1), Value();
    if (head == 0xca || head == 0xcb) return sized(0xca - 2), Value();
    if (head >= 0xcc && head <= 0xcf) return {Value::integer, sized(0xcc), {}};
    if (head >= 0xd0 && head <= 0xd3) return {Value::integer, sized(0xd0), {}};
    if (head >= 0xd4 && head <= 0xd8) return take((size_t{1} << (head - 0xd4)) + 1), Value();
    if (head >= 0xd9 && head <= 0xdb) return {Value::text, 0, take(sized(0xd9))};
    if (head == 0xdc || head == 0xdd) return {Value::array, sized(0xdc - 1), {}};
    if (head == 0xde || head == 0xdf) return {Value::map, 2 * sized(0xde - 1), {}};
    failed_ = failed_ || head == 0xc1;  // else nil, false, true
    return {};
  }

  // What follows a value that is not looked at.
  void pass(const Value& v) {
    uint64_t left = inside(v);
    while (left > 0 && !failed_) left += inside(next()) - 1;
  }

 private:
  static uint64_t inside(const Value& v) {
    return v.kind == Value::array || v.kind == Value::map ? v.number : 0;
  }
  std::string_view take(uint64_t size) {
    failed_ = failed_ || size > bytes_.size();
    if (failed_) return {};
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  uint64_t big_endian(size_t size) {
    uint64_t v = 0;
    for (const char c : take(size)) v = v << 8 | static_cast<unsigned char>(c);
    return v;
  }

  std::string_view bytes_;
  bool failed_ = false;
};

// The pairs of a map, by `take(name, value)`, which passes over what it does not take.
template <class Take>
void pairs(Reader& in, const Value& map, Take take) {
  if (map.kind != Value::map) return in.pass(map);
  for (uint64_t left = map.number / 2; left > 0 && !in.failed(); --left) {
    const Value name = in.next();
    in.pass(name);
    take(name.bytes, in.next());
  }
}

KernelResources kernel(Reader& in, const Value& map) {
  KernelResources found;
  pairs(in, map, [&](std::string_view name, const Value& v) {
    if (name == ".name") found.name = v.bytes;
    for (size_t i = 0; i < std::size(kNames); ++i)
      if (name == kNames[i] && v.kind == Value::integer) found.*kNumbers[i] = static_cast<int64_t>(v.number);
    in.pass(v);
  });
  return found;
}

// The description of the note with the metadata; empty: there is none.
std::string_view metadata(const ElfFile& file) {
  for (const ElfSection& s : file.sections) {
    if (s.header.sh_type != SHT_NOTE) continue;
    std::string_view left = s.bytes;
    while (left.size() >= sizeof(Elf64_Nhdr)) {
      Elf64_Nhdr h;
      std::memcpy(&h, left.data(), sizeof h);
      const uint64_t begin = sizeof h + (uint64_t{h.n_namesz} + 3) / 4 * 4;
      const uint64_t end = begin + (uint64_t{h.n_descsz} + 3) / 4 * 4;
      if (begin + h.n_descsz > left.size()) break;
      if (h.n_type == kMetadata) return left.substr(begin, h.n_descsz);
      left.remove_prefix(std::min<uint64_t>(end, left.size()));
    }
  }
  return {};
}

}  // namespace

Expected<std::vector<KernelResources>> hsaco_resources(std::string_view hsaco) {
  auto file = read_elf(hsaco, kAmdgpu, SHT_DYNSYM);
  if (!file) return file.error();
  const std::string_view note = metadata(*file);
  if (note.empty()) return refused("it has no note with metadata");
  Reader in(note);
  std::vector<KernelResources> kernels;
  pairs(in, in.next(), [&](std::string_view name, const Value& v) {
    if (name != "amdhsa.kernels" || v.kind != Value::array) return in.pass(v);
    for (uint64_t left = v.number; left > 0 && !in.failed(); --left) kernels.push_back(kernel(in, in.next()));
  });
  if (in.failed()) return refused("its metadata ends early");
  return kernels;
}

}  // namespace tilegen::object
