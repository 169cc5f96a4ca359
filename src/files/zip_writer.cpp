#include "files/zip_writer.h"

#include "files/crc32.h"
#include "files/little_endian.h"

namespace aloft {

namespace {

// What both heads of an entry have: version, flags, method, time and date (of no meaning),
// checksum, both sizes.
std::string sizes_of(std::span<const std::byte> data) {
  std::string all;
  put_little(all, 0, 2);
  put_little(all, 0, 4);
  put_little(all, 0x00210000, 4);  // 1980-01-01
  put_little(all, crc32(data), 4);
  put_little(all, data.size(), 4);
  put_little(all, data.size(), 4);
  return all;
}

}  // namespace

void ZipWriter::add(const std::string& name, std::span<const std::byte> data) {
  constexpr std::uint64_t kAlign = 64;
  const std::uint64_t at = file_.written(), fixed = 30 + name.size() + 4;
  const std::uint64_t padding = (kAlign - (at + fixed) % kAlign) % kAlign;
  const std::string sizes = sizes_of(data);
  std::string head;
  put_little(head, 0x04034b50, 4);
  head += sizes.substr(0, 22);
  put_little(head, name.size(), 2);
  put_little(head, 4 + padding, 2);
  head += name;
  put_little(head, 0x4246, 2);  // "FB", as torch pads
  put_little(head, padding, 2);
  head.append(padding, 'Z');
  file_.write(head);
  file_.write(data);
  put_little(directory_, 0x02014b50, 4);
  put_little(directory_, 0, 2);
  directory_ += sizes;
  put_little(directory_, name.size(), 2);
  directory_.append(12, '\0');  // no extra field, comment, attributes
  put_little(directory_, at, 4);
  directory_ += name;
  ++entries_;
}

void ZipWriter::add(const std::string& name, std::string_view text) {
  add(name, std::as_bytes(std::span(text.data(), text.size())));
}

void ZipWriter::finish() {
  const std::uint64_t at = file_.written();
  std::string end = std::move(directory_);
  const std::uint64_t size = end.size();
  put_little(end, 0x06054b50, 4);
  put_little(end, 0, 4);
  put_little(end, entries_, 2);
  put_little(end, entries_, 2);
  put_little(end, size, 4);
  put_little(end, at, 4);
  put_little(end, 0, 2);
  file_.write(end);
  file_.commit_unflushed();
}

}  // namespace aloft
