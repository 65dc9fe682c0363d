# build/include/cutaway/: links to the source folders, so that the tree is used under the public
# prefix (`#include <cutaway/core/tensor.h>`) before and after installation alike.

set(CUTAWAY_INCLUDE_DIR ${CMAKE_CURRENT_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${CUTAWAY_INCLUDE_DIR}/cutaway)
foreach(entry core autograd nn datasets models cuda cutaway.h)
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/${entry} ${CUTAWAY_INCLUDE_DIR}/cutaway/${entry}
       SYMBOLIC)
endforeach()
