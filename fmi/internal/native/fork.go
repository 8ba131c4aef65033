package native

// An FMU may fork off a process of its own, to start a program in it, and let that process
// return from the call when the program cannot be started. It must not go on as if it were
// this process: it would answer, write and step a second time. So it ends when it comes back
// from C or enters Go.

// alone points to a word that is 0 in a process that was forked off, and 1 here. The
// trampolines look at it after each call.
var alone = &aloneHere

// aloneHere is the word where the system cannot tell.
var aloneHere uint32 = 1

// forkExit is the exit code of a process that comes back: that of a command which cannot be
// started.
const forkExit = 127
