#pragma once

namespace neuron {

// Opens /dev/null in the place of each of the descriptors 0, 1 and 2 that this program was started without, so that no
// file it opens later becomes its standard output. Reading from or writing to such a stand-in fails with EBADF, as it
// would have without. SIGCHLD is as by default from then on: who starts a program may have ignored it, and then nobody
// can say how a child ended. The first thing in main(): before any thread and any other file.
void open_standard_streams();

}  // namespace neuron
