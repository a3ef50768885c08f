//! The command line of a checker.

/// Returns the arguments of this program, without its name. What is not UTF-8 in them becomes U+FFFD, which no argument
/// contains: the program refuses it as it refuses any other word that it does not know.
pub fn arguments() -> Vec<String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
}
