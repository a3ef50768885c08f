//! Guest and host as processes of this program.

use std::env::current_exe;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Child, Command, id};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::Args;
use super::shared::Shared;

/// Guest and host. When this is dropped, those that still run are killed.
#[derive(Debug)]
pub struct Processes {
    options: Vec<String>,
    files: [PathBuf; 2],
    guest: Option<Child>,
    host: Option<Child>,
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in [&mut self.guest, &mut self.host].into_iter().flatten() {
            // A process that has ended cannot be killed.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Processes {
    /// Creates no process yet. They find the files where the operating system shows ours.
    pub fn new(args: &Args, state: &File, shared: &Shared) -> anyhow::Result<Self> {
        let path = |file: &File| PathBuf::from(format!("/proc/{}/fd/{}", id(), file.as_raw_fd()));
        let mut options = vec![format!("--cpus={}", args.cpus)];
        options.extend(args.broken.then(|| "--broken".to_owned()));
        Ok(Self { options, files: [path(shared.memory()), path(state)], guest: None, host: None })
    }

    /// Starts the guest.
    pub fn start_guest(&mut self) -> anyhow::Result<()> {
        self.guest = Some(self.start("guest")?);
        Ok(())
    }

    /// Starts a host. There must be no other.
    pub fn start_host(&mut self) -> anyhow::Result<()> {
        ensure!(self.host.is_none(), "two hosts at a time");
        self.host = Some(self.start("host")?);
        Ok(())
    }

    fn start(&self, part: &str) -> anyhow::Result<Child> {
        let mut command = Command::new(current_exe()?);
        let child = command.args(&self.options).arg(part).args(&self.files).spawn();
        child.with_context(|| format!("the {part} does not start"))
    }

    /// Kills the host wherever it is.
    pub fn kill_host(&mut self) -> anyhow::Result<()> {
        let mut host = self.host.take().context("there is no host")?;
        host.kill()?;
        let status = host.wait()?;
        ensure!(!status.success() && status.code().is_none(), "the host had ended: {status}");
        Ok(())
    }

    /// Suspends the host wherever it is, or lets it go on.
    pub fn suspend_host(&self, suspend: bool) -> anyhow::Result<()> {
        let host = self.host.as_ref().context("there is no host")?;
        let signal = if suspend { Signal::STOP } else { Signal::CONT };
        kill_process(Pid::from_child(host), signal)?;
        Ok(())
    }

    /// Checks that both still run, or were never started.
    ///
    /// # Errors
    /// One has ended: it found something.
    pub fn check(&mut self) -> anyhow::Result<()> {
        for (child, name) in [(&mut self.guest, "guest"), (&mut self.host, "host")] {
            let Some(child) = child else { continue };
            if let Some(status) = child.try_wait()? {
                bail!("the {name} ended: {status}");
            }
        }
        Ok(())
    }

    /// Waits until both have ended, as they were told to.
    ///
    /// # Errors
    /// One found something.
    pub fn wait(&mut self) -> anyhow::Result<()> {
        for (child, name) in [(self.guest.take(), "guest"), (self.host.take(), "host")] {
            let Some(mut child) = child else { continue };
            let status = child.wait()?;
            ensure!(status.success(), "the {name} ended: {status}");
        }
        Ok(())
    }
}
