#include "backends/sim/sim_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "backends/sim/sim_backend.h"
#include "base/error.h"
#include "base/text.h"

namespace aloft::sim {
namespace {

// Memory of the device's own: an address and no way to it.
class OwnBlock : public Block {
 public:
  OwnBlock(Device& device, AddressSpace& addresses, void* address, std::size_t bytes)
      : Block(device, Space::Device, address, bytes), addresses_(addresses) {}
  ~OwnBlock() override { addresses_.remove(address()); }

 private:
  AddressSpace& addresses_;
};

// Memory of the host within its reach, which the device knows it by.
class HostBlock : public Block {
 public:
  HostBlock(SimDevice& device, const Buffer& real)
      : Block(device, Space::Host, real.address(), real.bytes()), device_(device) {
    device_.add_host_block(*this, real);
  }
  ~HostBlock() override { device_.remove_host_block(*this); }

 private:
  SimDevice& device_;
};

// The SimDevices that are alive, by their addresses as devices.
struct Alive {
  std::mutex mutex;
  std::map<const Device*, const SimDevice*> devices;
};
Alive& alive() {
  static auto& all = *new Alive;  // devices may end with the process
  return all;
}

// The SimDevice's Backend outlives it: its kernels may be held for longer. All are kept, as whoever
// looks for leaks sees.
const Backend& backend_of(const Device& underneath, const Profile& profile) {
  static std::mutex mutex;
  static auto& all = *new std::vector<std::unique_ptr<const SimBackend>>;
  const std::lock_guard lock(mutex);
  return *all.emplace_back(std::make_unique<const SimBackend>(underneath.backend(), profile));
}

std::size_t parse_memory(std::string_view text, std::string_view name) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}};
  for (const auto& [unit, bytes] : kUnits)
    if (text.ends_with(unit)) {
      const auto number = parse_double(text.substr(0, text.size() - unit.size()));
      if (number && *number * bytes >= 1 && *number < 1e6)
        return static_cast<std::size_t>(*number * bytes);
    }
  throw UserError("E0332",
                  "the memory of the device " + in_quotes(std::string(name)) + " is unclear")
      .saw(in_quotes(std::string(text)))
      .need("a number above 0, a byte at least, with GiB, MiB or KiB, such as 2GiB");
}

}  // namespace

SimOptions parse_sim(std::string_view name) {
  SimOptions o;
  const auto unclear = [&](const std::string& saw, const std::string& need) {
    return UserError("E0332", "the device " + in_quotes(std::string(name)) + " is unclear")
        .saw(saw)
        .need(need);
  };
  std::optional<std::size_t> memory;  // beats the profile's, wherever it stands
  std::optional<std::uint64_t> delays;
  std::string_view rest = name.substr(std::string_view("sim").size());
  if (rest.empty()) return o;
  for (std::string_view part : split(rest.substr(1), ',')) {
    const auto twice = [&] {
      return unclear(in_quotes(std::string(part)) + ", a second one", "one of each at most");
    };
    if (part.starts_with("memory=")) {
      if (memory) throw twice();
      memory = parse_memory(part.substr(7), name);
    } else if (part.starts_with("delays=") && parse_int(part.substr(7)).value_or(-1) >= 0) {
      if (delays) throw twice();
      delays = static_cast<std::uint64_t>(*parse_int(part.substr(7)));
    } else if (part.empty() || part.find('=') != std::string_view::npos) {
      throw unclear(part.empty() ? "nothing behind a \":\" or \",\"" : in_quotes(std::string(part)),
                    "memory=2GiB, delays=SEED, or a profile: " + join(profile_names(), ", "));
    } else if (!o.profile.name.empty()) {
      throw unclear(
          "two profiles: " + in_quotes(o.profile.name) + " and " + in_quotes(std::string(part)),
          "one profile at most");
    } else {
      o.profile = load_profile(std::string(part));
    }
  }
  o.profile.memory = memory.value_or(o.profile.memory);
  o.delays = delays.value_or(0);
  return o;
}

SimDevice::SimDevice(std::string name, SimOptions options, Device& underneath)
    : Device(backend_of(underneath, options.profile)),
      name_(std::move(name)),
      options_(std::move(options)),
      underneath_(underneath),
      addresses_(options_.profile.memory) {
  for (int i = 0; i < features().streams; ++i)
    streams_.push_back(std::make_unique<SimStream>(
        *this, i, options_.delays == 0 ? 0 : (options_.delays << 32) + 1 + (i << 30)));
  const std::lock_guard lock(alive().mutex);
  alive().devices.emplace(this, this);
}

SimDevice::~SimDevice() {
  const std::lock_guard lock(alive().mutex);
  alive().devices.erase(this);
}

void SimDevice::add_host_block(const Block& block, const Buffer& real) {
  const std::lock_guard lock(mutex_);
  host_blocks_.emplace(&block, real);
}

void SimDevice::remove_host_block(const Block& block) {
  Buffer last;  // its memory goes back outside of the lock
  const std::lock_guard lock(mutex_);
  const auto it = host_blocks_.find(&block);
  last = std::move(it->second);
  host_blocks_.erase(it);
}

void SimDevice::refuse_block(std::size_t bytes) const {
  throw EnvironmentError("E0401", "not enough memory on " + name_)
      .need(human_bytes(bytes) + " in one block")
      .saw(fmt::format("{} in all, {} of it in use", human_bytes(addresses_.capacity()),
                       human_bytes(addresses_.used())))
      .advice(
          "a smaller batch or model, a lower precision, or more memory: memory=2GiB behind its "
          "name");
}

// Before any memory of the host is taken and touched for it.
void SimDevice::ask_for_room(std::size_t bytes, Space space) const {
  if (space != Space::Host && !addresses_.has_room(bytes)) refuse_block(bytes);
}

Buffer SimDevice::block(Buffer real, Space space) {
  if (space == Space::Host) return Buffer(std::make_shared<HostBlock>(*this, real));
  const std::size_t bytes = real.bytes();
  void* address = nullptr;
  if (!addresses_.add(real, &address)) refuse_block(bytes);
  return Buffer(std::make_shared<OwnBlock>(*this, addresses_, address, bytes));
}

Buffer SimDevice::allocate(std::size_t bytes, Space space) {
  ask_for_room(bytes, space);
  Buffer real = underneath_.allocate(bytes);
  std::memset(real.address(), 0xff, bytes);  // NaN: nobody may count on what lay there before
  return block(std::move(real), space);
}

Buffer SimDevice::allocate_zeroed(std::size_t bytes, Space space) {
  ask_for_room(bytes, space);
  return block(underneath_.allocate_zeroed(bytes), space);
}

void SimDevice::need_memory(double bytes, std::string_view what, std::string_view advice,
                            double given_back) const {
  const auto limit = static_cast<double>(addresses_.limit());
  const double used = std::max(0.0, static_cast<double>(addresses_.used()) - given_back);
  const auto text = [](double b) { return human_bytes(static_cast<std::uint64_t>(b)); };
  if (limit > 0 && bytes > limit - used)
    throw EnvironmentError("E0401", "not enough memory on " + name_)
        .need(fmt::format("{} for {}", text(bytes), what))
        .saw(fmt::format("{} in all, {} of it in use", text(limit), text(used)))
        .advice(std::string(advice) + "; or more memory: memory=2GiB behind its name");
  underneath_.need_memory(bytes, what, advice, given_back);
}

std::byte* SimDevice::map(const Block& block) {
  if (block.space() != Space::Host) return nullptr;
  synchronize();
  return static_cast<std::byte*>(block.address());
}

Stream& SimDevice::stream(int index) { return *streams_.at(static_cast<std::size_t>(index)); }

void SimDevice::synchronize() {
  std::exception_ptr first;  // a stream that waited for another has its error, too
  for (const auto& s : streams_) try {
      s->synchronize();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  if (first) std::rethrow_exception(first);
}

Buffer SimDevice::real(const Buffer& buffer) const {
  ensure(&buffer.device() == this, "a buffer of this device");
  const Block& block = *buffer.block();
  const auto begin = static_cast<std::size_t>(static_cast<std::byte*>(buffer.address()) -
                                              static_cast<std::byte*>(block.address()));
  {
    const std::lock_guard lock(mutex_);
    if (const auto host = host_blocks_.find(&block); host != host_blocks_.end())
      return host->second.part(begin, buffer.bytes());
  }
  return real(buffer.address(), buffer.bytes());
}

Buffer SimDevice::real(const void* address, std::size_t bytes) const {
  if (Buffer found = addresses_.find(address, bytes)) return found;
  throw InternalError("an instruction is given memory that " + name_ + " does not have there")
      .saw(fmt::format("{} bytes at {}", bytes, address))
      .need("bytes inside a block that is allocated");
}

double SimDevice::copy_seconds(std::size_t bytes, bool stays) const {
  const Profile& p = options_.profile;
  return p.launch_seconds +
         static_cast<double>(bytes) / (stays ? p.memory_bandwidth / 2 : p.host_bandwidth);
}

double SimDevice::host_time() const {
  const std::lock_guard lock(mutex_);
  return host_time_;
}

void SimDevice::note_told(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  told_.push_back(std::move(failure));
}

std::size_t SimDevice::tellings() const {
  const std::lock_guard lock(mutex_);
  return told_.size();
}

bool SimDevice::is_told(const std::exception_ptr& failure, std::size_t tellings) const {
  const std::lock_guard lock(mutex_);
  const auto end = told_.begin() + static_cast<std::ptrdiff_t>(tellings);
  return std::find(told_.begin(), end, failure) != end;
}

void SimDevice::host_reaches(double time) {
  const std::lock_guard lock(mutex_);
  host_time_ = std::max(host_time_, time);
}

void SimDevice::note(Span span) {
  constexpr std::size_t kMost = 1 << 20;  // what nobody takes must not fill the machine
  const std::lock_guard lock(mutex_);
  if (timeline_.size() < kMost) timeline_.push_back(std::move(span));
}

std::vector<Span> SimDevice::take_timeline() {
  const std::lock_guard lock(mutex_);
  return std::exchange(timeline_, {});
}

Buffer real_of(const Buffer& buffer) {
  const SimDevice* sim = nullptr;
  {
    Alive& all = alive();
    const std::lock_guard lock(all.mutex);
    if (const auto it = all.devices.find(&buffer.device()); it != all.devices.end())
      sim = it->second;
  }
  return sim ? sim->real(buffer) : buffer;
}

}  // namespace aloft::sim
