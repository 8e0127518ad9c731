# gRPC without TLS, linked statically: every user of it talks over unix sockets only, and a static lite build keeps the
# resident size of the agent small (docs/adr/0002-static-linking.md).
pkg_check_modules(GRPC REQUIRED grpc++_unsecure)
find_library(PROTOBUF_LITE_STATIC libprotobuf-lite.a REQUIRED)

add_library(neuron_grpc INTERFACE)
add_library(neuron::grpc ALIAS neuron_grpc)
target_compile_definitions(neuron_grpc INTERFACE GRPC_USE_PROTO_LITE=1)
set(grpc_archives)
# What the archives need beyond pkg-config's list.
foreach(library IN LISTS GRPC_STATIC_LIBRARIES ITEMS upb address_sorting cares re2 z)
  find_library(GRPC_ARCHIVE_${library} NAMES lib${library}.a)
  if(GRPC_ARCHIVE_${library})
    list(APPEND grpc_archives ${GRPC_ARCHIVE_${library}})
  elseif(NOT library MATCHES "^(protobuf|dl|rt|m|pthread|c)$")
    list(APPEND grpc_archives ${library})
  endif()
endforeach()
target_link_libraries(neuron_grpc INTERFACE -Wl,--start-group ${grpc_archives} -Wl,--end-group ${PROTOBUF_LITE_STATIC}
                                            Threads::Threads ${CMAKE_DL_LIBS} rt)

# neuron_proto(TARGET path/below/proto.proto): messages and services of one package, built without our warnings.
function(neuron_proto target proto)
  get_filename_component(directory ${proto} DIRECTORY)
  get_filename_component(stem ${proto} NAME_WE)
  set(out ${PROJECT_BINARY_DIR}/generated/proto)
  set(generated)
  foreach(suffix pb.h pb.cc grpc.pb.h grpc.pb.cc)
    list(APPEND generated ${out}/${directory}/${stem}.${suffix})
  endforeach()
  add_custom_command(
    OUTPUT ${generated}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${out}
    COMMAND protobuf::protoc -I ${PROJECT_SOURCE_DIR}/proto --cpp_out=${out} --grpc_out=${out}
            --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN} ${PROJECT_SOURCE_DIR}/proto/${proto}
    DEPENDS ${PROJECT_SOURCE_DIR}/proto/${proto}
    VERBATIM)
  add_library(neuron_${target} STATIC ${generated})
  add_library(neuron::${target} ALIAS neuron_${target})
  target_compile_features(neuron_${target} PUBLIC cxx_std_20)
  target_include_directories(neuron_${target} SYSTEM PUBLIC ${out})
  target_link_libraries(neuron_${target} PUBLIC neuron::grpc PRIVATE neuron_shipped)
endfunction()
