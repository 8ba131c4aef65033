/* A library that crashes while it is loaded. */
static int *volatile nowhere;
__attribute__((constructor)) static void early(void) { *nowhere = 1; }
