// Looking into folders without mistaking an error for an empty one.
#pragma once

#include <vector>

#include "base/file.h"

namespace aloft {

// What lies directly in a folder, by name; nothing where there is no such folder. EnvironmentError
// E0604 where the system does not say: an error is never mistaken for an empty folder.
std::vector<Path> list_folder(const Path& folder);

// Whether something has this name, a broken link too. EnvironmentError E0604 as above.
bool has_name(const Path& path);

}  // namespace aloft
