#include <cstdio>

int main() {
  std::puts("cutaway " CUTAWAY_VERSION);
  return 0;
}
