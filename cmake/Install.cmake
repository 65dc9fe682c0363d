# `make install` (PREFIX=…): the command, both libraries, the headers under the public prefix, and
# what find_package(Cutaway) and pkg-config need. The folder may be moved afterwards.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Cutaway)
install(TARGETS cutaway cutaway_shared Cutaway_openblas Cutaway_minizip Cutaway_lz4
        Cutaway_utf8proc Cutaway_pcre2 EXPORT CutawayTargets)
if(TARGET cutaway_command)
  install(TARGETS cutaway_command)
endif()
install(EXPORT CutawayTargets NAMESPACE Cutaway:: DESTINATION ${package_dir})
install(FILES cutaway.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/cutaway)
install(DIRECTORY core autograd nn datasets models DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/cutaway
        FILES_MATCHING PATTERN "*.h" PATTERN "core/cpu" EXCLUDE PATTERN "samples" EXCLUDE)

configure_package_config_file(cmake/CutawayConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/generated/CutawayConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(
  ${CMAKE_CURRENT_BINARY_DIR}/generated/CutawayConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/generated/CutawayConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/generated/CutawayConfigVersion.cmake
        DESTINATION ${package_dir})

# Static linking needs what the library was built with; `pkg-config --static` gives it.
set(CUTAWAY_PRIVATE_LIBRARIES "${CUTAWAY_OPENBLAS_LIBRARY} ${CUTAWAY_MINIZIP_LIBRARY} \
${CUTAWAY_LZ4_LIBRARY} ${CUTAWAY_UTF8PROC_LIBRARY} ${CUTAWAY_PCRE2_LIBRARY} \
-lz -lfmt ${OpenMP_CXX_FLAGS} -ldl -pthread")
file(RELATIVE_PATH CUTAWAY_PREFIX_OF_PC
     ${CMAKE_CURRENT_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR}/pkgconfig ${CMAKE_CURRENT_BINARY_DIR})
configure_file(cmake/cutaway.pc.in ${CMAKE_CURRENT_BINARY_DIR}/generated/cutaway.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/generated/cutaway.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
