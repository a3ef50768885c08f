// random_sizes THREADS OPERATIONS: threads replace random blocks of up to 500 bytes, each in turn those of another (larson).
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

static void replace(std::vector<void *> &blocks, unsigned number, long operations) {
    for (long n = 0; n < operations; n++) {
        number = number * 1664525u + 1013904223u;
        void *&block = blocks[(number >> 8) % blocks.size()];
        free(block);
        block = malloc(8 + (number >> 4) % 500);
        *static_cast<volatile char *>(block) = 1;
    }
}

int main(int, char **argument) {
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
