// With ALOFT_E2E_DIGEST=FILE a test program writes a line for each of its tests: how many results
// the instructions and eager ops on its device had, and a hash of all their bits. same_bits.py
// compares two devices by them. The order does not count: threads take turns.
//
// Reading a result waits for it, so that such a run has one instruction on its way at a time. With
// ALOFT_E2E_DIGEST_AT=end a program is handed over as a whole, and what its update phase left in
// variables is read behind it. (Between programs the device is waited for in both: an event says
// where the loop stands, which is read from the random state.)
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/catalog.h"
#include "base/hash.h"
#include "ops/evaluate.h"
#include "runtime/device.h"
#include "runtime/observer.h"

namespace aloft::e2e {
namespace {

class Digest : public Observer {
 public:
  void begin() { sum_ = results_ = 0; }
  std::uint64_t sum() const { return sum_; }
  std::uint64_t results() const { return results_; }

 protected:
  void add(std::string_view identity, std::size_t i, const Buffer& buffer, std::size_t bytes) {
    if (bytes == 0) return;
    const auto values = buffer.read<char>(0, bytes);
    const std::string what = std::string(identity) + "#" + std::to_string(i);
    sum_ += hash64(std::string_view(values.data(), bytes), hash64(what));
    ++results_;
  }
  // Of result i, with the lengths of this run.
  static std::size_t bytes_of(const OpEvent& e, std::size_t i) {
    SymbolValues lengths;
    std::size_t at = 0;
    for (const Name symbol : e.call.symbols()) lengths[symbol] = e.lengths[at++];
    return bind_lengths(e.call.out[i], lengths).max_bytes();
  }

 private:
  std::atomic<std::uint64_t> sum_ = 0, results_ = 0;
};

class EachResult : public Digest {
 public:
  void after(const OpEvent& e) override {
    for (std::size_t i = 0; i < e.out.size(); ++i) add(e.identity, i, e.out[i], bytes_of(e, i));
  }
};

// Results lie where others did and will. Those that stay to the end of their program are told by
// what is read before anything was written there: variables, which the program did not make.
class WhatUpdatesLeft : public Digest {
 public:
  void program_begins(const ProgramEvent&) override { run() = {}; }
  void after(const OpEvent& e) override {
    if (e.program.empty()) return;
    Run& r = run();
    for (const Buffer& b : e.in)
      if (b && b.bytes() > 0 && !r.made.contains(b.address())) r.found.insert(b.address());
    for (std::size_t i = 0; i < e.out.size(); ++i) {
      const Buffer& b = e.out[i];
      if (!b || b.bytes() == 0) continue;
      if (!r.found.contains(b.address()))
        r.made.insert(b.address());
      else if (e.phase == Phase::Update)
        r.left[b.address()] = {std::string(e.identity), i, b, bytes_of(e, i)};
      else
        r.left.erase(b.address());
    }
  }
  void program_ends(const ProgramEvent&) override {
    for (const auto& [address, result] : std::exchange(run(), {}).left)
      add(result.identity, result.index, result.buffer, result.bytes);
  }

 private:
  struct Result {
    std::string identity;
    std::size_t index = 0;
    Buffer buffer;
    std::size_t bytes = 0;
  };
  struct Run {
    std::set<const void*> found, made;
    std::map<const void*, Result> left;
  };
  // A thread runs one program at a time.
  static Run& run() {
    thread_local Run run;
    return run;
  }
};

class Writer : public testing::EmptyTestEventListener {
 public:
  Writer(const char* file, std::unique_ptr<Digest> digest)
      : file_(file), digest_(std::move(digest)) {}

 private:
  void OnTestStart(const testing::TestInfo&) override {
    digest_->begin();
    looking_ = std::make_unique<Observing>(chosen_device(), *digest_);
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    looking_.reset();
    if (test.result()->Skipped()) return;
    file_ << test.test_suite_name() << "." << test.name() << " " << digest_->results() << " "
          << hex16(digest_->sum()) << std::endl;
  }

  std::ofstream file_;
  std::unique_ptr<Digest> digest_;
  std::unique_ptr<Observing> looking_;
};

std::unique_ptr<Digest> chosen_digest() {
  const char* at = std::getenv("ALOFT_E2E_DIGEST_AT");
  if (at && std::string_view(at) == "end") return std::make_unique<WhatUpdatesLeft>();
  return std::make_unique<EachResult>();
}

const bool is_added = [] {
  if (const char* file = std::getenv("ALOFT_E2E_DIGEST"))
    testing::UnitTest::GetInstance()->listeners().Append(
        new Writer(file, chosen_digest()));  // gtest owns it
  return true;
}();

}  // namespace
}  // namespace aloft::e2e
