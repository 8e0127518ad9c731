# Packages of what `cmake --install` puts in place: a Debian package below /usr, and an archive for any prefix.
#   cpack --config build/release/CPackConfig.cmake -B DIRECTORY
# The Debian package depends on the libraries that dpkg-shlibdeps finds in the programs (package dpkg-dev).
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/neuron-agent RENAME copyright)

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME neuron-agent)
set(CPACK_PACKAGE_VENDOR neuron-agent)
set(CPACK_PACKAGE_CONTACT "neuron-agent maintainers <root@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Kubernetes node agent for AWS Neuron and EFA, and its tools")
set(CPACK_PACKAGE_DESCRIPTION
    "neuron-agent registers Neuron devices and EFA interfaces with the kubelet, neuron-ls and neuron-top show them, neuron-gather captures a node, and neuron-sim simulates one.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME neuron-agent-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
include(CPack)
