//! Runs the binary.

use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

/// Runs the command.
pub fn nbbs(args: &[&str]) -> Output {
    Command::cargo_bin("nbbs").unwrap().args(args).output().unwrap()
}

/// Returns the error message of the command, which must end with `code`, and print nothing.
pub fn refusal(args: &[&str], code: i32) -> String {
    let output = nbbs(args);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert!(!error.contains("panicked"), "{args:?}: {error}");
    error
}

/// Returns the standard output of a command, which must succeed.
pub fn stdout(args: &[&str]) -> String {
    let output = nbbs(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the rows that it prints.
pub fn json(args: &[&str]) -> Vec<Value> {
    stdout(args).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
