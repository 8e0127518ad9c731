#pragma once

namespace neuron {

// Opens /dev/null in the place of each of the descriptors 0, 1 and 2 that this program was started without, so that no
// file it opens later becomes its standard output. Reading from or writing to such a stand-in fails with EBADF, as it
// would have without. The first thing in main(): before any thread and any other file.
void open_standard_streams();

}  // namespace neuron
