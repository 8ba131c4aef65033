package fmi

// LargeStack is the size of the stack, in bytes, that FMUs which solve large systems on it
// may want: that of processes of FMUs of their own. A program that calls FMUs itself gets
// it from whoever starts the program (see process.Options); a thread has as much as
// ulimit -s says when the program starts.
const LargeStack = 64 << 20
