#include "exec/launch.h"

#include <cstring>
#include <string>
#include <vector>

#include "runtime/isolated_run.h"

namespace aloft {
namespace {

std::vector<void*> addresses(std::span<const Buffer> buffers) {
  std::vector<void*> all;
  all.reserve(buffers.size());
  for (const Buffer& b : buffers) all.push_back(b.address());
  return all;
}

void run(Device& device, const PreparedKernel& kernel, const CallSpec& call,
         std::span<void* const> in, std::span<void* const> out,
         std::span<const std::int64_t> symbols, std::string_view name) {
  Buffer scratch;
  if (const std::size_t bytes = kernel.prepared->scratch_bytes()) scratch = device.allocate(bytes);
  const RunArgs args{in,  out, scratch ? scratch.address() : nullptr, symbols, &device.stream(),
                     name};
  if (is_memory_check_wanted())
    run_isolated(*kernel.prepared, call, args,
                 {std::string(name), std::string(kernel.kernel->name)});
  else
    kernel.prepared->run(args);
}

}  // namespace

void launch(Device& device, const PreparedKernel& kernel, const CallSpec& call,
            std::span<const Buffer> in, std::span<const Buffer> out,
            std::span<const std::int64_t> symbols, const LaunchPlace& place) {
  const auto observers = device.observers().list();
  // On the host nothing asks for the name of an eager call: it is not put together for each.
  const bool is_named = observers || device.features().is_asynchronous || is_memory_check_wanted();
  const std::string name = is_named ? std::string(place.path) + "/" + call.op.str() : "";
  const auto run_it = [&] {
    run(device, kernel, call, addresses(in), addresses(out), symbols, name);
  };
  if (!observers) return run_it();
  OpEvent e{.call = call,
            .kernel = kernel.kernel->name,
            .path = place.path,
            .identity = name,
            .phase = place.phase,
            .in = in,
            .out = out,
            .lengths = symbols,
            .at = place.loop ? place.loop() : LoopPlace{}};
  Telling telling(*observers);
  telling.tell([&](Observer& o) { o.before(e); });
  e.begin = device.stream().record();
  run_it();
  e.end = device.stream().record();
  telling.tell([&](Observer& o) { o.after(e); });
  if (telling.failure()) std::rethrow_exception(telling.failure());
}

void launch_on_host(Device& device, const PreparedKernel& kernel, const CallSpec& call,
                    std::span<const std::span<const std::byte>> in,
                    std::span<const std::span<std::byte>> out, std::string_view name) {
  std::vector<void*> operands, results;
  if (device.features().shares_host_memory) {
    for (const auto& bytes : in) operands.push_back(const_cast<std::byte*>(bytes.data()));
    for (const auto& bytes : out) results.push_back(bytes.data());
    return run(device, kernel, call, operands, results, {}, name);
  }
  std::vector<Buffer> there;
  for (const auto& bytes : in) {
    there.push_back(device.allocate(bytes.size()));
    device.stream().upload(there.back(), bytes.data());
  }
  for (const auto& bytes : out) there.push_back(device.allocate(bytes.size()));
  const std::span all(there);
  run(device, kernel, call, addresses(all.first(in.size())), addresses(all.subspan(in.size())), {},
      name);
  for (std::size_t i = 0; i < out.size(); ++i)
    device.stream().download(out[i].data(), there[in.size() + i]);
}

}  // namespace aloft
