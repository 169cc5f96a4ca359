// The files within a zip file, as zip programs and Python write it: as they are, or deflated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>

namespace aloft {

// What is wrong with a zip file, for a message.
struct ZipError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Every file by its name; of several of one name the last, as programs that unpack leave it. Names
// stay names: nothing is written anywhere. ZipError where it is no zip file, is damaged (each
// file's checksum is looked at), encrypted or packed in another way, or where all files together
// have more than `limit` bytes.
std::map<std::string, std::string> read_zip(std::span<const std::byte> file, std::uint64_t limit);

}  // namespace aloft
