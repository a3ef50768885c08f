// Counts words on four threads, in maps of strings.
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

int main() {
    std::vector<std::map<std::string, std::vector<int>>> counted(4);
    std::vector<std::thread> threads;
    for (auto &words : counted) {
        threads.emplace_back([&words] {
            for (int n = 0; n < 100000; n++) words[std::to_string(n * 7919L % 20011) + " is a word"].push_back(n);
        });
    }
    for (auto &thread : threads) thread.join();
    size_t sum = 0;
    for (auto &words : counted) {
        for (auto &[word, places] : words) sum += word.size() * places.size();
    }
    std::cout << sum << "\n";
}
