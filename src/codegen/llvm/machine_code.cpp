#include "codegen/llvm/machine_code.h"

#include <sys/mman.h>
#include <unistd.h>

#include <llvm/ExecutionEngine/JITSymbol.h>
#include <llvm/ExecutionEngine/RTDyldMemoryManager.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>

#include "codegen/llvm/llvm_setup.h"

namespace tilegen::codegen {
namespace {

// One anonymous mapping for the sections of one object, code pages first, so that they reach each other with
// 32-bit displacements. Becomes read-only, code executable, once relocated.
class CodeMemory final : public llvm::RuntimeDyld::MemoryManager {
 public:
  ~CodeMemory() override {
    if (base_) munmap(base_, size_);
  }
  bool needsToReserveAllocationSpace() override { return true; }
  void reserveAllocationSpace(uintptr_t code, llvm::Align code_align, uintptr_t ro, llvm::Align ro_align,
                              uintptr_t rw, llvm::Align rw_align) override {
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    auto pages = [&](size_t bytes) { return (bytes + page - 1) / page * page; };
    code_size_ = pages(code + code_align.value() + 64);
    size_ = code_size_ + pages(ro + ro_align.value() + 64) + pages(rw + rw_align.value() + 64);
    void* p = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return;  // the allocations below then fail, which the linker reports
    base_ = static_cast<uint8_t*>(p);
    code_next_ = base_;
    data_next_ = base_ + code_size_;
  }
  uint8_t* allocateCodeSection(uintptr_t size, unsigned align, unsigned, llvm::StringRef) override {
    return take(code_next_, base_ + code_size_, size, align);
  }
  uint8_t* allocateDataSection(uintptr_t size, unsigned align, unsigned, llvm::StringRef, bool) override {
    return take(data_next_, base_ + size_, size, align);
  }
  bool finalizeMemory(std::string* error) override {
    if (!base_) return false;
    bool failed = mprotect(base_, code_size_, PROT_READ | PROT_EXEC) != 0 ||
                  mprotect(base_ + code_size_, size_ - code_size_, PROT_READ) != 0;
    if (failed && error) *error = "the system refuses executable memory";
    return failed;
  }
  void registerEHFrames(uint8_t*, uint64_t, size_t) override {}
  void deregisterEHFrames() override {}
  bool mapped() const { return base_ != nullptr; }

 private:
  uint8_t* take(uint8_t*& next, uint8_t* end, uintptr_t size, unsigned align) {
    if (!base_) return nullptr;
    uintptr_t a = align ? align : 16;
    auto at = reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(next) + a - 1) / a * a);
    if (size > static_cast<uintptr_t>(end - at)) return nullptr;
    next = at + size;
    return at;
  }
  uint8_t* base_ = nullptr;
  uint8_t* code_next_ = nullptr;
  uint8_t* data_next_ = nullptr;
  size_t size_ = 0, code_size_ = 0;
};

// Kernels stand alone: whatever they ask for outside is a defect of the emitter, named in the error.
class NoSymbols final : public llvm::LegacyJITSymbolResolver {
 public:
  llvm::JITSymbol findSymbol(const std::string& name) override {
    if (!missing.empty()) missing += ", ";
    missing += name;
    return nullptr;
  }
  llvm::JITSymbol findSymbolInLogicalDylib(const std::string&) override { return nullptr; }
  std::string missing;
};

// An object of LLVM that is left behind when something is thrown through it.
template <class T>
class Abandoned {
 public:
  template <class... Args>
  explicit Abandoned(Args&&... args) : object_(new T(std::forward<Args>(args)...)) {}
  ~Abandoned() {
    if (std::uncaught_exceptions() == before_) delete object_;
  }
  Abandoned(const Abandoned&) = delete;
  Abandoned& operator=(const Abandoned&) = delete;
  T& operator*() const { return *object_; }

 private:
  int before_ = std::uncaught_exceptions();
  T* object_;
};

class LoadedCode final : public HostCode {
 public:
  CodeMemory memory;
  std::vector<HostEntry> entries;
  HostEntry entry(size_t kernel) const override { return entries[kernel]; }
};

}  // namespace

bool MachineCodeEmitter::run(llvm::TargetMachine& machine, llvm::Module& module, llvm::CodeGenFileType type) {
  stream_ = std::make_unique<llvm::raw_svector_ostream>(bytes_);
  passes_ = std::make_unique<llvm::legacy::PassManager>();
  if (machine.addPassesToEmitFile(*passes_, *stream_, nullptr, type, /*DisableVerify=*/true)) return false;
  passes_->run(module);
  return true;
}

Expected<std::shared_ptr<HostCode>> load_object(llvm::StringRef object,
                                                const std::vector<std::string>& symbols) {
  auto parsed = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(object, "kernel"));
  if (!parsed)
    return backend_error({}, "LLVM wrote an object it cannot read: " + llvm::toString(parsed.takeError()));
  auto code = std::make_shared<LoadedCode>();
  NoSymbols resolver;
  Abandoned<llvm::RuntimeDyld> owned(code->memory, resolver);
  llvm::RuntimeDyld& linker = *owned;
  linker.loadObject(**parsed);
  if (!code->memory.mapped()) return backend_error({}, "no memory for the machine code");
  linker.resolveRelocations();
  if (!resolver.missing.empty())
    return backend_error({}, "kernel code refers to outside functions: " + resolver.missing);
  if (linker.hasError())
    return backend_error({}, "machine code cannot be linked: " + linker.getErrorString().str());
  for (const std::string& s : symbols) {
    auto symbol = linker.getSymbol(s);
    if (!symbol) return backend_error({}, "entry '" + s + "' is missing from the machine code");
    code->entries.push_back(reinterpret_cast<HostEntry>(symbol.getAddress()));
  }
  std::string why;
  if (code->memory.finalizeMemory(&why)) return backend_error({}, why);
  return std::shared_ptr<HostCode>(std::move(code));
}

}  // namespace tilegen::codegen
