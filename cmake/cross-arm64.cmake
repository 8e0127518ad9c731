# Builds for arm64 on another architecture with Debian's cross compiler and arm64 libraries, which
# `tools/install-deps.sh --programs --arch arm64` installs. usage: cmake -DCMAKE_TOOLCHAIN_FILE=cmake/cross-arm64.cmake
# protoc and its gRPC plugin are programs of the building machine; Debian's packages for both are of one version.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(triplet aarch64-linux-gnu)
set(CMAKE_C_COMPILER ${triplet}-gcc)
set(CMAKE_CXX_COMPILER ${triplet}-g++)
set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
# Not the libraries of the building machine, which pkg-config would name otherwise.
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/${triplet}/pkgconfig:/usr/share/pkgconfig)
