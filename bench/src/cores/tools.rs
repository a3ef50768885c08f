//! Installs the simulator and builds the program, in folders of their own, or says what is missing.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, ensure};

use crate::output::warn;

/// The target that the program is built for.
const TARGET: &str = "riscv64gc-unknown-none-elf";

/// The simulator's name and version on PyPI. `requirements.txt` has it, too, with the packages that it imports.
const SIMULATOR: &str = "rvsim-2.1.0";

/// The tools that a simulation needs.
pub struct Tools {
    pub python: PathBuf,
    pub script: PathBuf,
    pub image: PathBuf,
}

impl Tools {
    /// Builds the program, and installs the simulator unless it is there.
    ///
    /// # Errors
    /// Something is missing; the error says what, and how to get it.
    pub fn bring() -> anyhow::Result<Self> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("cores");
        ensure!(
            sources.is_dir(),
            "{} is missing: the simulated program is built from its sources, so run this in a checkout",
            sources.display()
        );
        let target = env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| sources.join("../../target"), PathBuf::from);
        let target = std::path::absolute(target)?;
        Ok(Self {
            image: build(&sources, &target.join("cores"))?,
            python: simulator(&sources, &target.join(SIMULATOR))?,
            script: sources.join("simulate.py"),
        })
    }
}

/// Builds the program.
fn build(sources: &Path, target: &Path) -> anyhow::Result<PathBuf> {
    let libraries = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", TARGET])
        .current_dir(sources)
        .output()
        .context("rustc is missing: install Rust")?;
    let libraries = PathBuf::from(String::from_utf8_lossy(&libraries.stdout).trim());
    ensure!(libraries.is_dir(), "Rust has no {TARGET} here: rustup target add {TARGET}");
    // The program's own flags are in its folder, and these would replace them.
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .args(["build", "--release", "--locked", "--quiet", "--target-dir"])
        .arg(target)
        .current_dir(sources)
        .output()
        .context("cargo is missing: install Rust")?;
    ensure!(output.status.success(), "{} cannot be built: {}", sources.display(), said(&output));
    Ok(target.join(TARGET).join("release/cores"))
}

/// Returns a Python that has the simulator, in a folder of its own.
fn simulator(sources: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let python = folder.join("bin/python");
    // Created at the very end of an installation.
    let done = folder.join("installed");
    if done.is_file() {
        return Ok(python);
    }
    warn(&format!("installing {SIMULATOR} from PyPI into {}", folder.display()));
    let output = Command::new("python3")
        .args(["-m", "venv", "--clear"])
        .arg(folder)
        .output()
        .context("python3 is missing, and the simulator needs it: install 3.10 or later, as in Debian's python3-venv")?;
    ensure!(
        output.status.success(),
        "python3 cannot make an environment: install its module venv, which is Debian's python3-venv: {}",
        said(&output)
    );
    let output = Command::new(&python)
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--requirement",
        ])
        .arg(sources.join("requirements.txt"))
        .output()
        .context("the environment has no Python")?;
    ensure!(
        output.status.success(),
        "{SIMULATOR} cannot be installed: this needs PyPI, or a mirror that pip knows, and a wheel for this machine \
         (Linux or macOS, Python 3.10 or later): {}",
        said(&output)
    );
    std::fs::write(&done, SIMULATOR).with_context(|| crate::report::keep::refused(&done))?;
    Ok(python)
}

/// Returns the last lines that a command printed.
pub fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}
