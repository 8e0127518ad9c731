# neuron::curl: libcurl for agent/kube. NEURON_STATIC_CURL links Debian's archives of it and of OpenSSL into the program, which
# costs a third of the size and half of the memory of the shared libraries, and those who do not ask the API server almost
# nothing (docs/adr/0009-libcurl.md).
option(NEURON_STATIC_CURL "Link libcurl and OpenSSL statically, without the protocols that nobody speaks here" ON)

# neuron::openssl: the same OpenSSL for others (agent/metrics).
add_library(neuron_curl INTERFACE)
add_library(neuron_openssl INTERFACE)
add_library(neuron::openssl ALIAS neuron_openssl)
add_library(neuron::curl ALIAS neuron_curl)
if(NEURON_STATIC_CURL)
  foreach(library curl ssl crypto z)
    find_library(CURL_ARCHIVE_${library} lib${library}.a REQUIRED)
    list(APPEND curl_archives ${CURL_ARCHIVE_${library}})
  endforeach()
  target_include_directories(neuron_curl SYSTEM INTERFACE ${CURL_INCLUDE_DIRS})
  target_link_libraries(neuron_curl INTERFACE -Wl,--start-group ${curl_archives} neuron_curl_unused -Wl,--end-group
                                              Threads::Threads ${CMAKE_DL_LIBS})
  target_link_libraries(neuron_openssl INTERFACE ${CURL_ARCHIVE_ssl} ${CURL_ARCHIVE_crypto} Threads::Threads ${CMAKE_DL_LIBS})
else()
  find_package(OpenSSL REQUIRED)
  target_link_libraries(neuron_openssl INTERFACE OpenSSL::SSL)
  target_link_libraries(neuron_curl INTERFACE CURL::libcurl)
endif()
