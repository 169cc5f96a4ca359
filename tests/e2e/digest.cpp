// With ALOFT_E2E_DIGEST=FILE a test program writes a line for each of its tests: how many results
// the instructions and eager ops on its device had, and a hash of all their bits. same_bits.py
// compares two devices by them. The order does not count: threads take turns.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "backends/catalog.h"
#include "base/hash.h"
#include "ops/evaluate.h"
#include "runtime/device.h"
#include "runtime/observer.h"

namespace aloft::e2e {
namespace {

class Digest : public Observer {
 public:
  void after(const OpEvent& e) override {
    SymbolValues lengths;
    std::size_t at = 0;
    for (const Name symbol : e.call.symbols()) lengths[symbol] = e.lengths[at++];
    for (std::size_t i = 0; i < e.out.size(); ++i) add(e, i, lengths);
  }
  void begin() { sum_ = results_ = 0; }
  std::uint64_t sum() const { return sum_; }
  std::uint64_t results() const { return results_; }

 private:
  void add(const OpEvent& e, std::size_t i, const SymbolValues& lengths) {
    const std::size_t bytes = bind_lengths(e.call.out[i], lengths).max_bytes();
    if (bytes == 0) return;
    const auto values = e.out[i].read<char>(0, bytes);
    const std::string what = std::string(e.identity) + "#" + std::to_string(i);
    sum_ += hash64(std::string_view(values.data(), bytes), hash64(what));
    ++results_;
  }

  std::atomic<std::uint64_t> sum_ = 0, results_ = 0;
};

class Writer : public testing::EmptyTestEventListener {
 public:
  explicit Writer(const char* file) : file_(file) {}

 private:
  void OnTestStart(const testing::TestInfo&) override {
    digest_.begin();
    looking_ = std::make_unique<Observing>(chosen_device(), digest_);
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    looking_.reset();
    if (test.result()->Skipped()) return;
    file_ << test.test_suite_name() << "." << test.name() << " " << digest_.results() << " "
          << hex16(digest_.sum()) << std::endl;
  }

  std::ofstream file_;
  Digest digest_;
  std::unique_ptr<Observing> looking_;
};

const bool is_added = [] {
  if (const char* file = std::getenv("ALOFT_E2E_DIGEST"))
    testing::UnitTest::GetInstance()->listeners().Append(new Writer(file));  // gtest owns it
  return true;
}();

}  // namespace
}  // namespace aloft::e2e
