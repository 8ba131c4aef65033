// Package native calls C functions without cgo: many in one crossing, without allocation. It
// knows no version of FMI.
//
//   - A Record is one call, a Batch a row of them. Run carries a batch out: by an assembly
//     routine where there is one, else call by call (CallPath). RunPortable does the same by
//     purego's reflected calls; tests compare with it.
//   - Memory, Buffer and Scratch are memory of the C library: what C sees is there.
//   - OpenLibrary loads a shared library, Symbol finds its functions.
//   - Listen receives the calls of a logger with variadic arguments, formatted as printf does.
//   - Watch remembers what foreign code must not change in the process, Guard.Restore puts it
//     back. Floating-point modes are put back within a batch.
//   - Batches lie in memory that a parent process can read (Crossings): it sees which call was
//     under way when this process ended.
package native
