/* Writes a number of bytes, block by block, as fast as the system takes them:
   write FILE BYTES BLOCK */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "write FILE BYTES BLOCK\n");
        return 2;
    }
    long long left = atoll(argv[2]);
    size_t block = (size_t)atoll(argv[3]);
    char *data = malloc(block);
    int f = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (data == NULL || f < 0) {
        perror(argv[1]);
        return 1;
    }
    for (size_t i = 0; i < block; i++) {
        data[i] = (char)(i * 31 >> 3);
    }
    while (left > 0) {
        size_t n = left < (long long)block ? (size_t)left : block;
        if (write(f, data, n) != (ssize_t)n) {
            perror(argv[1]);
            return 1;
        }
        left -= (long long)n;
    }
    return close(f) != 0;
}
