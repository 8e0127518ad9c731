# Writes MANIFEST, krew's, to OUTPUT with the sum of ARCHIVE.   cmake -D ARCHIVE=… -D MANIFEST=… -D OUTPUT=… -P KrewManifest.cmake
file(SHA256 "${ARCHIVE}" sum)
file(READ "${MANIFEST}" text)
string(REGEX REPLACE "sha256: \"[0-9a-f]+\"" "sha256: \"${sum}\"" text "${text}")
file(WRITE "${OUTPUT}" "${text}")
