// Package native calls C functions without cgo, many in one crossing and without
// allocation. It is independent of the version of FMI.
//
//   - A Record is a call, a Batch a list of calls. Run makes the calls by an assembly
//     routine or, on some platforms, one by one (CallPath). RunPortable uses reflected calls
//     of purego; tests compare both.
//   - Memory, Buffer and Scratch provide memory of the C library for everything that C
//     accesses.
//   - OpenLibrary loads a shared library so that it uses its own names, Symbol finds its
//     functions, Replaced and Shared return what it cannot have for itself.
//   - Listen receives calls of a logger with variadic arguments, formatted like printf, and
//     of one with plain messages.
//   - Watch stores settings of the process that foreign code must not change, Guard.Restore
//     restores them. Floating-point modes are restored within a batch.
//   - Flush writes the streams of C, Exit ends the process with exit handlers and destructors.
//   - A parent process can read the batches (Crossings), and thus the active call at the end
//     of this process.
package native
