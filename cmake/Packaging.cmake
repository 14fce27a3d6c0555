# The .deb that ./dev package makes: the program, its licence and its documents.
if(NOT TARGET hopwise)
  return()
endif()

install(TARGETS hopwise RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT hopwise)
install(FILES LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT hopwise)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT hopwise
  FILES_MATCHING PATTERN "*.md")
if(EXISTS ${PROJECT_SOURCE_DIR}/README.md)
  install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT hopwise)
endif()

# Packing needs the program only, not the tests and benchmarks of the build.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL hopwise)
set(CPACK_PACKAGE_NAME hopwise)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGE_VENDOR "The Hopwise authors")
set(CPACK_PACKAGE_CONTACT "The Hopwise authors <maintainers@hopwise.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_SOURCE_DIR}/build/package)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
  "Places whole jobs so that their traffic takes the shortest path through the
network, or says in plain words why a job waits.")
include(CPack)
