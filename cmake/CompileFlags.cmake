# Flags of every target. -ffast-math is never used: NaN, infinity and the order of sums matter.

add_library(cutaway_flags INTERFACE)
target_compile_options(cutaway_flags INTERFACE
  -Wall -Wextra -Wno-missing-field-initializers -fno-math-errno)
if(CUTAWAY_SANITIZE)
  target_compile_options(cutaway_flags INTERFACE
    -fsanitize=${CUTAWAY_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(cutaway_flags INTERFACE -fsanitize=${CUTAWAY_SANITIZE})
endif()
