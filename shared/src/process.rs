//! Which process this is. A forked child is another one, even if it has the same number, as in a PID namespace of its
//! own. A child that was made by another call than `fork`, such as `clone` itself, is told by its number only.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nix::libc::pthread_atfork;

/// How many times this process and its ancestors were forked since the first of them asked.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// Called in each child, after it is forked.
unsafe extern "C" fn count() {
    // Relaxed: the child has one thread.
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A process, as it knows itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    id: u32,
    forks: usize,
}

impl Process {
    /// Returns the process that calls.
    pub fn this() -> Self {
        static IS_COUNTED: AtomicBool = AtomicBool::new(false);
        // Not a `Once`, on which a child would wait for a thread of its parent. If several threads register the handler,
        // it counts by more than one.
        // Relaxed: orders nothing.
        if !IS_COUNTED.load(Ordering::Relaxed) {
            // SAFETY: the handler may be called in any child: it changes an atomic number. If there is no memory for
            // it, the process's number has to do.
            unsafe { pthread_atfork(None, None, Some(count)) };
            IS_COUNTED.store(true, Ordering::Relaxed);
        }
        // Relaxed: it only changes while this process has one thread.
        Self { id: std::process::id(), forks: FORKS.load(Ordering::Relaxed) }
    }

    /// Returns whether it is the process that calls. No system call but that for its number.
    pub fn is_this(self) -> bool {
        // Relaxed: as above.
        self.id == std::process::id() && self.forks == FORKS.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use nix::libc::_exit;
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, fork};

    use super::Process;

    #[test]
    fn a_child_with_the_same_number_is_another_process() {
        let parent = Process::this();
        assert!(parent.is_this());
        // SAFETY: the child only looks at itself, and ends.
        match unsafe { fork() }.expect("a process") {
            ForkResult::Parent { child } => {
                assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
                assert!(parent.is_this());
            }
            ForkResult::Child => {
                let same = Process { id: std::process::id(), ..parent };
                let is_known = same.is_this() || !Process::this().is_this();
                // SAFETY: ends the child, and nothing of the parent's with it.
                unsafe { _exit(i32::from(is_known)) }
            }
        }
    }
}
