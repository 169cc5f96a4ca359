// What an outside project does first: include the one header, call the library, catch an error.
#include <aloft/aloft.h>

#include <cstdio>

int main() {
  const aloft::Shape shape = aloft::parse_shape("[B<=8,4]");
  if (shape.max_numel() != 32) return 1;
  try {
    aloft::parse_shape("[4");
    return 1;
  } catch (const aloft::UserError& error) {
    std::puts(error.what());
  }
  return 0;
}
