// Reads into buffers of 1 MiB, and keeps of each what it needs: 33 to 133 KB.
// Usage: shrunk_buffers COUNT

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

int main(int argc, char **argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: shrunk_buffers COUNT\n");
        return 2;
    }
    std::size_t const count = std::strtoul(argv[1], nullptr, 10), size = 1 << 20;
    std::uint64_t random = 1;
    std::vector<void *> kept;
    for (std::size_t number = 0; number < count; ++number) {
        void *const buffer = std::malloc(size);
        if (!buffer) std::abort();
        std::memset(buffer, 1, size);
        random = random * 6364136223846793005u + 1442695040888963407u;
        void *const fits = std::realloc(buffer, 33000 + (random >> 40) % 100000);
        if (!fits) std::abort();
        kept.push_back(fits);
    }
    for (void *block : kept) std::free(block);
}
