// large_blocks COUNT OPERATIONS [MOST]: replaces random ones of so many blocks of 33 to 900 KB, and fills them; or of 33
// KB to so many bytes, and writes to their ends only.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

int main(int arguments, char **argument) {
    if (arguments < 3 || arguments > 4) {
        fputs("large_blocks COUNT OPERATIONS [MOST]\n", stderr);
        return 2;
    }
    std::vector<char *> blocks(atol(argument[1]));
    const bool fills = arguments == 3;
    const size_t most = fills ? 900000 : atol(argument[3]);
    unsigned long number = 7;
    for (long n = atol(argument[2]); n > 0; n--) {
        number = number * 6364136223846793005u + 1442695040888963407u;
        char *&block = blocks[(number >> 48) % blocks.size()];
        const size_t bytes = 33000 + (number >> 24 & 0xffffff) % (most - 33000);
        free(block);
        block = static_cast<char *>(malloc(bytes));
        if (fills)
            memset(block, 1, bytes);
        else
            block[0] = block[bytes - 1] = 1;
    }
    puts("done");
}
