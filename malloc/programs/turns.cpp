// Threads that live side by side, and take turns: each allocates so many MiB in blocks of random sizes, writes to all of
// them, and frees them.
// Usage: turns THREADS MIB

#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

int main(int argc, char **argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: turns THREADS MIB\n");
        return 2;
    }
    unsigned const threads = std::strtoul(argv[1], nullptr, 10);
    std::size_t const bytes = std::strtoul(argv[2], nullptr, 10) << 20;
    std::mutex mutex;
    std::condition_variable changed;
    unsigned next = 0;

    auto work = [&](unsigned number) {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return next == number; });
        std::uint64_t random = number;
        std::vector<void *> blocks;
        for (std::size_t held = 0; held < bytes;) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            std::size_t const size = 1000 + (random >> 40) % 99000;
            void *const block = std::malloc(size);
            if (!block) std::abort();
            std::memset(block, 1, size);
            blocks.push_back(block);
            held += size;
        }
        for (void *block : blocks) std::free(block);
        ++next;
        changed.notify_all();
        changed.wait(lock, [&] { return next == threads; });
    };
    std::vector<std::thread> all;
    for (unsigned number = 0; number < threads; ++number) all.emplace_back(work, number);
    for (std::thread &thread : all) thread.join();
}
