// Codes, names and sentences.

#include "support.h"

TEST(Message, EveryCodeHasANameAndASentence) {
    for (uint32_t code = 0; code <= NBBS_CODE_OTHER; code++) {
        nbbs_error error = {code, 0, 1, 2, 3};
        EXPECT_EQ(std::string(nbbs_code_name(code)).find("NBBS_CODE_"), 0u) << code;
        EXPECT_FALSE(text_of(error).empty()) << code;
    }
    nbbs_error unknown = {NBBS_CODE_OTHER + 1, 0, 0, 0, 0};
    EXPECT_STREQ(nbbs_code_name(NBBS_CODE_OTHER + 1), "unknown");
    EXPECT_EQ(text_of(unknown), std::to_string(NBBS_CODE_OTHER + 1) + " is no code of nbbs");
    nbbs_error strange = {NBBS_CODE_BROKEN, UINT32_MAX, 1, 2, 3};
    EXPECT_EQ(text_of(strange), "an invariant is broken at unit 1");
    nbbs_error unnamed = {NBBS_CODE_SETTING, 0, 9, 5, 0};
    EXPECT_EQ(text_of(unnamed), "a setting of 9: it must be at most 5");
    EXPECT_STREQ(nbbs_code_name(NBBS_CODE_OK), "NBBS_CODE_OK");
    EXPECT_STREQ(nbbs_code_name(NBBS_CODE_EXHAUSTED), "NBBS_CODE_EXHAUSTED");
}

TEST(Message, IsCutToTheBuffer) {
    nbbs_error error = {NBBS_CODE_IN_USE, 0, 46, 0, 0};
    const std::string whole = "unit 46 is in use or reserved";
    EXPECT_EQ(nbbs_message(&error, nullptr, 0), whole.size());
    for (size_t bytes = 1; bytes <= whole.size() + 2; bytes++) {
        char text[40];
        std::memset(text, '#', sizeof text);
        EXPECT_EQ(nbbs_message(&error, text, bytes), whole.size());
        EXPECT_EQ(std::string(text), whole.substr(0, bytes - 1));
        EXPECT_EQ(text[bytes], '#') << "beyond the buffer of " << bytes;
    }
    char text[40];
    EXPECT_EQ(nbbs_message(nullptr, text, sizeof text), std::strlen("no error"));
    EXPECT_STREQ(text, "no error");
}

TEST(Message, VersionsAgree) { EXPECT_STREQ(nbbs_version(), NBBS_VERSION); }
