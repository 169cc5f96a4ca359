// 64-bit content hashes (XXH3, whose values are fixed across versions and machines): for files,
// node identities and cache keys. They find accidents, not attackers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace aloft {

std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t seed = 0);
std::uint64_t hash64(std::string_view text, std::uint64_t seed = 0);

// The hash of bytes that arrive in pieces; equal to hash64 of the whole, however it was cut.
class Hasher {
 public:
  Hasher();
  Hasher(Hasher&&) noexcept = default;
  Hasher& operator=(Hasher&&) noexcept = default;
  Hasher& update(std::span<const std::byte> bytes);
  Hasher& update(std::string_view text);
  std::uint64_t digest() const;  // of everything so far; more may follow

 private:
  struct Free {
    void operator()(void* state) const;
  };
  std::unique_ptr<void, Free> state_;
};

// Sixteen lower-case hexadecimal digits, as manifests and headers write a hash.
std::string hex16(std::uint64_t hash);
std::optional<std::uint64_t> parse_hex16(std::string_view text);

}  // namespace aloft
