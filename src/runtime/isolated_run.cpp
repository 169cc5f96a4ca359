#include "runtime/isolated_run.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace aloft {
namespace {

// The first poison is NaN in every float type and -1 in every signed integer one; the second is a
// tiny number in f32 and bf16 and a large negative integer. What looks at them gives two answers.
constexpr std::uint8_t kPoison[] = {0xff, 0xa5};

// One buffer of the call; operands that begin at the same byte are one.
struct Block {
  std::byte* home = nullptr;
  std::size_t bytes = 0;   // at the symbols' bounds: what may be touched
  std::size_t filled = 0;  // at their values: what has a meaning
  bool is_read = false, is_written = false;
  std::string name;
};

// What the handler of a fault may look at while a kernel runs.
struct Watched {
  const char* text = nullptr;
  struct Range {
    const std::byte *from, *data, *to;
    std::size_t bytes;
    const char* name;
  };
  const Range* ranges = nullptr;
  std::size_t count = 0;
};
Watched watched;
struct sigaction before_segv, before_bus;

void say(const char* text) {
  // Nothing can be done about a stderr that takes no text.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
}

void say_number(std::ptrdiff_t v) {
  char text[24];
  char* at = text + sizeof text;
  *--at = 0;
  const bool negative = v < 0;
  auto left = negative ? -static_cast<std::size_t>(v) : static_cast<std::size_t>(v);
  do *--at = static_cast<char>('0' + left % 10);
  while (left /= 10);
  if (negative) *--at = '-';
  say(at);
}

// Only what a signal handler may call.
void on_fault(int signal, siginfo_t* info, void*) {
  if (!watched.text) {  // not ours: as if we had not been there, when the instruction repeats
    sigaction(signal, signal == SIGSEGV ? &before_segv : &before_bus, nullptr);
    return;
  }
  const auto* address = static_cast<const std::byte*>(info->si_addr);
  say(watched.text);
  const Watched::Range* found = nullptr;
  for (std::size_t i = 0; i < watched.count && !found; ++i)
    if (address >= watched.ranges[i].from && address < watched.ranges[i].to)
      found = &watched.ranges[i];
  if (found) {
    say("  buffer  ");
    say(found->name);
    say("\n  saw  byte ");
    say_number(address - found->data);
    say(" of ");
    say_number(static_cast<std::ptrdiff_t>(found->bytes));
    say(" was touched\n");
  } else {
    say("  saw  an address that is in none of its buffers\n");
  }
  _exit(static_cast<int>(ExitCode::Internal));
}

// The handlers stand while a kernel runs; the check is not for concurrent runs.
class Watch {
 public:
  Watch(const std::string& text, const std::vector<Watched::Range>& ranges) {
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &before_segv);
    sigaction(SIGBUS, &action, &before_bus);
    watched = {text.c_str(), ranges.data(), ranges.size()};
  }
  ~Watch() {
    watched = {};
    sigaction(SIGSEGV, &before_segv, nullptr);
    sigaction(SIGBUS, &before_bus, nullptr);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
};

class Closed {
 public:
  explicit Closed(std::span<GuardedMemory* const> memory) : memory_(memory) {
    try {
      for (GuardedMemory* m : memory_) m->close();
    } catch (...) {  // no destructor runs: none may stay closed
      for (GuardedMemory* m : memory_) m->open();
      throw;
    }
  }
  ~Closed() {
    for (GuardedMemory* m : memory_) m->open();
  }
  Closed(const Closed&) = delete;
  Closed& operator=(const Closed&) = delete;

 private:
  std::span<GuardedMemory* const> memory_;
};

std::size_t filled_bytes(const TensorType& type, const CallSpec& call,
                         std::span<const std::int64_t> symbols) {
  std::size_t bytes = size_of(type.dtype);
  for (const Dim& d : type.shape) bytes *= static_cast<std::size_t>(extent_of(d, call).at(symbols));
  return bytes;
}

class Isolated {
 public:
  Isolated(const Prepared& kernel, const CallSpec& call, const RunArgs& args,
           const IsolatedNames& names)
      : kernel_(kernel), call_(call), args_(args), names_(names) {
    for (std::size_t i = 0; i < args.in.size(); ++i)
      in_.push_back(block(args.in[i], call.in[i], false,
                          i < names.in.size() ? names.in[i] : "operand " + std::to_string(i)));
    for (std::size_t i = 0; i < args.out.size(); ++i)
      out_.push_back(block(args.out[i], call.out[i], true,
                           i < names.out.size() ? names.out[i] : "result " + std::to_string(i)));
    if (const std::size_t bytes = kernel.scratch_bytes()) {
      scratch_ = blocks_.size();
      blocks_.push_back(
          {static_cast<std::byte*>(args.scratch), bytes, 0, false, false, names.scratch});
    }
    refuse_overlaps();
    text_ = headline() + "\n  instr  " + names.instruction + "\n  kernel  " + names.kernel + "\n";
  }

  void run(std::span<GuardedMemory* const> closed) {
    const auto first = copy(GuardedMemory::Side::Front, kPoison[0]);
    run_in(first, closed);
    const auto second = copy(GuardedMemory::Side::Back, kPoison[1]);
    run_in(second, closed);
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const Block& block = blocks_[b];
      if (!block.is_written) continue;
      if (const auto at = difference(first[b].data(), second[b].data(), block.filled))
        fail(block.name, "byte " + std::to_string(*at) + " of " + std::to_string(block.filled) +
                             " depends on memory that was never written");
      if (block.bytes > 0) std::memcpy(block.home, second[b].data(), block.bytes);
    }
  }

 private:
  static std::string headline() {
    return "error E9000: a kernel touches memory that is not its own";
  }

  std::size_t block(void* data, const TensorType& type, bool is_written, const std::string& name) {
    const std::size_t bytes = type.max_bytes();
    const std::size_t filled = filled_bytes(type, call_, args_.symbols);
    auto* home = static_cast<std::byte*>(data);
    if (bytes > 0)  // an empty operand's address means nothing
      for (std::size_t b = 0; b < blocks_.size(); ++b)
        if (blocks_[b].home == home && blocks_[b].bytes > 0) {
          Block& same = blocks_[b];
          same.bytes = std::max(same.bytes, bytes);
          same.filled = std::max(same.filled, filled);
          same.is_read |= !is_written;
          same.is_written |= is_written;
          return b;
        }
    blocks_.push_back({home, bytes, filled, !is_written, is_written, name});
    return blocks_.size() - 1;
  }

  // In place means the same first byte. What is written half over another buffer is a mistake of
  // the plan, which memories apart would hide. Operands that are only read may lie as they like.
  void refuse_overlaps() const {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const Block& a = blocks_[i];
      if (!(a.is_written || i == scratch_) || a.bytes == 0) continue;
      for (const Block& b : blocks_)
        if (&a != &b && b.bytes > 0 && a.home < b.home + b.bytes && b.home < a.home + a.bytes)
          fail(a.name, "its bytes overlap those of " + b.name);
    }
  }

  // Operands with their values, all else poison: what lies past the values of a partial batch too.
  std::vector<GuardedMemory> copy(GuardedMemory::Side side, std::uint8_t poison) const {
    std::vector<GuardedMemory> copies;
    copies.reserve(blocks_.size());
    for (const Block& b : blocks_) {
      copies.emplace_back(b.bytes, side, poison);
      if (b.is_read && b.filled > 0) std::memcpy(copies.back().data(), b.home, b.filled);
    }
    return copies;
  }

  void run_in(const std::vector<GuardedMemory>& memory, std::span<GuardedMemory* const> closed) {
    std::vector<void*> in, out;
    for (std::size_t b : in_) in.push_back(memory[b].data());
    for (std::size_t b : out_) out.push_back(memory[b].data());
    void* scratch = scratch_ < memory.size() ? memory[scratch_].data() : nullptr;
    std::vector<Watched::Range> ranges;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const auto [from, to] = memory[b].range();
      ranges.push_back({from, memory[b].data(), to, blocks_[b].bytes, blocks_[b].name.c_str()});
    }
    for (const GuardedMemory* m : closed) {
      const auto [from, to] = m->range();
      ranges.push_back({from, m->data(), to, m->bytes(), "an arena, by its own address"});
    }
    {
      const Closed shut(closed);
      const Watch watch(text_, ranges);
      kernel_.run({in, out, scratch, args_.symbols});
    }
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const Block& block = blocks_[b];
      if (const auto at = memory[b].damage())
        fail(block.name,
             "byte " + std::to_string(*at) + " of " + std::to_string(block.bytes) + " was written");
      if (block.is_read && !block.is_written)
        if (const auto at = difference(memory[b].data(), block.home, block.filled))
          fail(block.name, "byte " + std::to_string(*at) + " of an operand was written");
    }
  }

  static std::optional<std::size_t> difference(const std::byte* a, const std::byte* b,
                                               std::size_t bytes) {
    if (bytes == 0 || std::memcmp(a, b, bytes) == 0) return std::nullopt;
    return std::mismatch(a, a + bytes, b).first - a;
  }

  [[noreturn]] void fail(const std::string& buffer, const std::string& saw) const {
    throw InternalError("a kernel touches memory that is not its own")
        .line("instr", names_.instruction)
        .line("kernel", names_.kernel)
        .line("buffer", buffer)
        .saw(saw);
  }

  const Prepared& kernel_;
  const CallSpec& call_;
  const RunArgs& args_;
  const IsolatedNames& names_;
  std::vector<Block> blocks_;
  std::vector<std::size_t> in_, out_;
  std::size_t scratch_ = SIZE_MAX;
  std::string text_;
};

}  // namespace

bool is_memory_check_wanted() {
  const char* text = std::getenv("ALOFT_CHECK_MEMORY");
  return text && *text && std::strcmp(text, "0") != 0;
}

void run_isolated(const Prepared& kernel, const CallSpec& call, const RunArgs& args,
                  const IsolatedNames& names, std::span<GuardedMemory* const> closed) {
  Isolated(kernel, call, args, names).run(closed);
}

}  // namespace aloft
