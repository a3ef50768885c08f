// Counts words on several threads, with all strings and nodes in one heap.
//
//     c++ -std=c++17 words.cpp $(pkg-config --cflags --libs nbbs) -pthread -o words

#include <nbbs.hpp>

#include <algorithm>
#include <iostream>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

constexpr std::string_view text = "a heap is a heap is memory of any size and a rose is a rose is a rose";

std::size_t count(const nbbs::heap& heap, std::string_view wanted) {
    nbbs::heap_resource resource(heap);
    std::pmr::unordered_map<std::pmr::string, std::size_t> counts(&resource);
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        counts[std::pmr::string(text.substr(at, end - at), &resource)]++;
        at = end + 1;
    }
    return counts[std::pmr::string(wanted, &resource)];
}

}  // namespace

int main() {
    try {
        const nbbs::heap heap(1 << 20);
        std::vector<std::size_t, nbbs::heap_allocator<std::size_t>> roses(4, heap);
        std::vector<std::thread> threads;
        for (std::size_t& each : roses) {
            threads.emplace_back([&heap, &each] { each = count(heap, "rose"); });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        std::cout << "roses: " << roses[0] + roses[1] + roses[2] + roses[3] << '\n';
        std::cout << "refused: " << heap.stats().refused << '\n';
    } catch (const std::exception& thrown) {
        std::cerr << thrown.what() << '\n';
        return 1;
    }
}
