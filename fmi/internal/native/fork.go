package native

// An FMU may fork to start a program, and return from the call in the forked process if the
// program cannot be started. The forked process must not continue like this process, or it
// would answer, write and step a second time. So it ends when it returns from C or enters Go.

// alone points to a word that is 0 in a forked process and 1 in this one. The trampolines
// check it after each call.
var alone = &aloneHere

// aloneHere is the word on systems that cannot detect forks.
var aloneHere uint32 = 1

// forkExit is the exit code of a forked process that returns, like that of a shell for a
// command that cannot be started.
const forkExit = 127
