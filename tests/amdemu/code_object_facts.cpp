#include "code_object_facts.h"

#include <cstring>
#include <stdexcept>

#include <llvm/BinaryFormat/MsgPackDocument.h>

#include "object/elf_object.h"

namespace tilegen::amdemu {

namespace {

constexpr uint16_t kAmdgpu = 224;
constexpr uint32_t kMetadataNote = 32;              // NT_AMDGPU_METADATA
constexpr uint32_t kGfx90a = 0x3f, kGfx942 = 0x4c;  // EF_AMDGPU_MACH

template <class T>
T value_at(std::string_view bytes, uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T))
    throw std::runtime_error("the code object ends early");
  T v;
  std::memcpy(&v, bytes.data() + at, sizeof v);
  return v;
}

std::string cpu_of(uint32_t flags) {
  switch (flags & 0xff) {
    case kGfx90a:
      return "gfx90a";
    case kGfx942:
      return "gfx942";
    default:
      throw std::runtime_error("the code object is for another machine, flags " + std::to_string(flags));
  }
}

uint64_t number(llvm::msgpack::DocNode n) {
  return n.getKind() == llvm::msgpack::Type::Int ? static_cast<uint64_t>(n.getInt()) : n.getUInt();
}

// The kernels' arguments and limits, from the note.
void read_metadata(std::string_view note, LoadedObject& out) {
  llvm::msgpack::Document document;
  if (!document.readFromBlob(llvm::StringRef(note.data(), note.size()), false))
    throw std::runtime_error("the metadata is no MessagePack");
  auto& root = document.getRoot().getMap();
  for (llvm::msgpack::DocNode& node : root["amdhsa.kernels"].getArray()) {
    auto& kernel = node.getMap();
    KernelFacts& facts = out.kernels[kernel[".name"].getString().str()];
    facts.most_threads = static_cast<uint32_t>(number(kernel[".max_flat_workgroup_size"]));
    if (kernel.find(".args") == kernel.end()) continue;
    for (llvm::msgpack::DocNode& argument : kernel[".args"].getArray()) {
      auto& a = argument.getMap();
      facts.arguments.push_back({a[".value_kind"].getString().str(),
                                 static_cast<uint32_t>(number(a[".offset"])),
                                 static_cast<uint32_t>(number(a[".size"]))});
    }
  }
}

void read_segments(std::string_view bytes, const object::ElfFile& file, LoadedObject& out) {
  for (uint16_t i = 0; i < file.header.e_phnum; ++i) {
    const auto p = value_at<Elf64_Phdr>(bytes, file.header.e_phoff + uint64_t{i} * file.header.e_phentsize);
    if (p.p_type != PT_LOAD && p.p_type != PT_NOTE) continue;
    if (p.p_offset > bytes.size() || p.p_filesz > bytes.size() - p.p_offset)
      throw std::runtime_error("a segment ends behind the file");
    const std::string_view part = bytes.substr(p.p_offset, p.p_filesz);
    if (p.p_type == PT_LOAD) {
      if (out.image.size() < p.p_vaddr + p.p_memsz) out.image.resize(p.p_vaddr + p.p_memsz, '\0');
      std::copy(part.begin(), part.end(), out.image.begin() + static_cast<ptrdiff_t>(p.p_vaddr));
      if (p.p_flags & PF_X) out.code_begin = p.p_vaddr, out.code_end = p.p_vaddr + p.p_filesz;
      continue;
    }
    for (uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= part.size();) {
      const auto note = value_at<Elf64_Nhdr>(part, at);
      const uint64_t name = at + sizeof note, text = name + (uint64_t{note.n_namesz} + 3) / 4 * 4;
      if (text > part.size() || note.n_descsz > part.size() - text)
        throw std::runtime_error("a note ends early");
      if (note.n_type == kMetadataNote) read_metadata(part.substr(text, note.n_descsz), out);
      at = text + (uint64_t{note.n_descsz} + 3) / 4 * 4;
    }
  }
}

// "Kernel Descriptor": 64 bytes.
void read_descriptor(const std::string& image, uint64_t at, KernelFacts& facts,
                     KernelDescriptor& descriptor) {
  facts.lds_bytes = value_at<uint32_t>(image, at);
  facts.scratch_bytes = value_at<uint32_t>(image, at + 4);
  facts.argument_bytes = value_at<uint32_t>(image, at + 8);
  facts.entry = at + static_cast<uint64_t>(value_at<int64_t>(image, at + 16));
  const auto rsrc3 = value_at<uint32_t>(image, at + 44);
  descriptor.rsrc1 = value_at<uint32_t>(image, at + 48);
  descriptor.rsrc2 = value_at<uint32_t>(image, at + 52);
  descriptor.properties = value_at<uint16_t>(image, at + 56);
  descriptor.preload = value_at<uint16_t>(image, at + 58);
  facts.vgprs = ((descriptor.rsrc1 & 63) + 1) * 8;
  facts.first_agpr = ((rsrc3 & 63) + 1) * 4;
}

}  // namespace

LoadedObject read_code_object(std::string_view bytes) {
  auto file = object::read_elf(bytes, kAmdgpu, SHT_DYNSYM);
  if (!file) throw std::runtime_error(file.error().to_text());
  LoadedObject out;
  out.cpu = cpu_of(file->header.e_flags);
  read_segments(bytes, *file, out);
  for (const object::ElfSection& s : file->sections)
    if (s.header.sh_type == SHT_RELA && s.header.sh_size > 0)
      throw std::runtime_error("a relocation is left to the loader");
  std::map<std::string, Elf64_Sym> symbols;
  for (const object::ElfSymbol& s : file->symbols) symbols[std::string(s.name)] = s.entry;
  for (auto& [name, facts] : out.kernels) {
    if (!symbols.contains(name) || !symbols.contains(name + ".kd"))
      throw std::runtime_error("kernel '" + name + "' has no symbols");
    read_descriptor(out.image, symbols[name + ".kd"].st_value, facts, out.descriptors[name]);
    facts.code_bytes = symbols[name].st_size;
    if (symbols[name].st_value != facts.entry) throw std::runtime_error("'" + name + "' begins elsewhere");
  }
  return out;
}

}  // namespace tilegen::amdemu
