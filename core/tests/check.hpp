// What a test needs and no more: CHECK counts, and prints what failed; report() ends main.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace laconic::test {

inline std::size_t passed = 0, failed = 0;  // checks run on the main thread only

inline void fail(const char* file, int line, const char* condition, const std::string& input) {
    constexpr std::size_t kPrinted = 20;  // one broken line fails thousands of checks, all alike
    if (++failed <= kPrinted) std::printf("%s:%d: failed: %s\n    for %s\n", file, line, condition, input.c_str());
    if (failed == kPrinted) std::printf("(further failures are only counted)\n");
}

// What main returns.
inline int report(const char* name) {
    std::printf("%s: %zu passed, %zu failed\n", name, passed, failed);
    return failed == 0 ? 0 : 1;
}

}  // namespace laconic::test

// `input` says what the check was made on; it is evaluated only when the check fails.
#define CHECK(condition, input)                                           \
    do {                                                                  \
        if (condition)                                                    \
            ++laconic::test::passed;                                      \
        else                                                              \
            laconic::test::fail(__FILE__, __LINE__, #condition, (input)); \
    } while (false)

// The statement must throw an Error whose message holds `words`.
#define CHECK_THROWS(statement, Error, words)                                 \
    do {                                                                      \
        std::string said = "(nothing was thrown)";                            \
        try {                                                                 \
            statement;                                                        \
        } catch (const Error& error) {                                        \
            said = error.what();                                              \
        }                                                                     \
        CHECK(said.find(words) != std::string::npos, #statement ": " + said); \
    } while (false)
