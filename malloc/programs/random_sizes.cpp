// random_sizes THREADS OPERATIONS: threads replace random blocks by such of 1 to 500 bytes, each in turn those of
// another.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

static void replace(std::vector<void *> &blocks, unsigned long number, long operations) {
    for (long n = 0; n < operations; n++) {
        number = number * 6364136223846793005u + 1442695040888963407u;
        // The size is drawn from other bits than the place.
        void *&block = blocks[(number >> 48) % blocks.size()];
        free(block);
        block = malloc(1 + (number >> 24 & 0xffffff) % 500);
        *static_cast<volatile char *>(block) = 1;
    }
}

int main(int arguments, char **argument) {
    if (arguments != 3) {
        fputs("random_sizes THREADS OPERATIONS\n", stderr);
        return 2;
    }
    const int count = atoi(argument[1]);
    const long operations = atol(argument[2]);
    std::vector<std::vector<void *>> all(count, std::vector<void *>(1000));
    for (int round = 0; round < 10; round++) {
        std::vector<std::thread> threads;
        for (int n = 0; n < count; n++) {
            threads.emplace_back(replace, std::ref(all[(n + round) % count]), 77 * n + round, operations / 10);
        }
        for (auto &thread : threads) thread.join();
    }
    puts("done");
}
