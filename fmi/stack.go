package fmi

// LargeStack is a stack size in bytes for FMUs that keep large arrays on the stack.
// Processes of isolated FMUs have it. Other programs must be started with it (see
// process.Options or ulimit -s).
const LargeStack = 64 << 20
