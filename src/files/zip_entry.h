// Files within a zip file that nothing is compressed in, as torch.save and numpy.savez write it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace aloft {

bool is_zip(std::span<const std::byte> file);

// The bytes of the first entry whose name ends so ("/data.pkl"), within `file`. Nothing where there
// is none, it is compressed, or the zip file is cut. DataError E0832 where they are not those that
// were written; `name` is for the message.
std::optional<std::span<const std::byte>> zip_entry(std::span<const std::byte> file,
                                                    std::string_view ending,
                                                    const std::string& name);

}  // namespace aloft
