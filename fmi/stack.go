package fmi

// LargeStack is the size of the C stack on which OnLargeStack calls, in bytes. It is
// that of a process of an FMU of its own, too.
const LargeStack = 64 << 20
