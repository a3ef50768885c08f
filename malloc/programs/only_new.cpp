// only_new: a program that names no function of C. `NBBS_MALLOC_REPORT` shows whose memory it has.
#include <string>
#include <vector>

int main() {
    std::vector<std::string> words(1000, std::string(100, 'x'));
    return words.size() == 1000 ? 0 : 1;
}
