//! Finds all descendants of this process through `/proc`, waits for them, and kills them.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{self, Signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::protocol::Report;

/// The offset of exit codes for processes that a signal ended, as in shells.
const BY_SIGNAL: i32 = 128;
/// How soon killed processes are searched again.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits for one child, and reaps all others meanwhile; `other` receives their exit codes.
pub(super) fn wait_for(child: Pid, other: impl Fn(Pid, i32)) -> Report {
    loop {
        match waitpid(None::<Pid>, None) {
            Ok(WaitStatus::Exited(pid, code)) if pid == child => return Report::Ended { code, signal: None },
            Ok(WaitStatus::Signaled(pid, by, _)) if pid == child => {
                return Report::Ended { code: BY_SIGNAL + by as i32, signal: Some(by as i32) };
            }
            Ok(WaitStatus::Exited(pid, code)) => other(pid, code),
            Ok(WaitStatus::Signaled(pid, by, _)) => other(pid, BY_SIGNAL + by as i32),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => {
                let message = format!("cannot wait for the container: {error}");
                return Report::Failed { message };
            }
        }
    }
}

/// Kills all descendants, and waits until they have ended.
pub(super) fn kill_all() {
    loop {
        kill_below();
        match waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG)) {
            Err(Errno::ECHILD) => return,
            // Processes that were forked meanwhile are found the next time.
            Ok(WaitStatus::StillAlive) => std::thread::sleep(PAUSE),
            Ok(_) | Err(_) => {}
        }
    }
}

/// Kills the container's process group, and processes that left it.
pub(super) fn kill(child: Pid) {
    let _ = signal::killpg(child, Signal::SIGKILL);
    kill_below();
}

fn kill_below() {
    let parents = parents();
    let mut below = vec![Pid::this().as_raw()];
    let mut at = 0;
    while let Some(&parent) = below.get(at) {
        below.extend(parents.iter().filter(|(_, of)| **of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    for pid in below.into_iter().skip(1) {
        let _ = signal::kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
}

/// Returns each process with its parent.
fn parents() -> BTreeMap<i32, i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    processes
        .filter_map(|pid: i32| {
            Some((pid, parent_in(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))
        })
        .collect()
}

/// Parses the fourth field; the second is a name in parentheses with arbitrary characters.
fn parent_in(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_are_read_past_any_name() {
        assert_eq!(parent_in("12 (sh) S 7 12 12 0"), Some(7));
        assert_eq!(parent_in("12 (a) b) R 1) S 9 12"), Some(9));
        assert_eq!(parent_in("nothing"), None);
        let own = Pid::this().as_raw();
        assert_eq!(parents().get(&own), Some(&Pid::parent().as_raw()));
    }
}
