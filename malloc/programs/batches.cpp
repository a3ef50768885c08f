// batches BLOCKS BATCHES: allocates so many blocks of 64 bytes, and frees them in turn, again and again.
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int arguments, char **argument) {
    if (arguments != 3 || atol(argument[1]) < 1) {
        fputs("batches BLOCKS BATCHES\n", stderr);
        return 2;
    }
    std::vector<void *> blocks(atol(argument[1]));
    for (long batch = atol(argument[2]); batch > 0; batch--) {
        for (void *&block : blocks) {
            block = malloc(64);
            *static_cast<volatile char *>(block) = 1;
        }
        for (void *block : blocks) free(block);
    }
    puts("done");
}
