// large_blocks COUNT OPERATIONS: replaces random ones of so many blocks of 33 to 900 KB, and fills them.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

int main(int arguments, char **argument) {
    if (arguments != 3) {
        fputs("large_blocks COUNT OPERATIONS\n", stderr);
        return 2;
    }
    std::vector<char *> blocks(atol(argument[1]));
    unsigned long number = 7;
    for (long n = atol(argument[2]); n > 0; n--) {
        number = number * 6364136223846793005u + 1442695040888963407u;
        char *&block = blocks[(number >> 48) % blocks.size()];
        const size_t bytes = 33000 + (number >> 24 & 0xffffff) % 867000;
        free(block);
        block = static_cast<char *>(malloc(bytes));
        memset(block, 1, bytes);
    }
    puts("done");
}
