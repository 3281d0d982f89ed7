//! Enters the container's control groups, and leaves them again. Processes that are started inside stay there; the supervisor does
//! not, so that it does not count towards the container's limits, and can report the container's end.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;

use super::protocol::Order;

/// The files, opened before the supervisor switches to the container's view. Writing 0 moves this process.
pub(super) struct CgroupEntry(Vec<(File, File)>);

impl CgroupEntry {
    /// # Errors
    /// When a group does not exist, or belongs to another user.
    pub(super) fn open(order: &Order) -> io::Result<Self> {
        let open = |path| OpenOptions::new().write(true).open(path);
        let doors = order.doors.iter().map(|door| Ok((open(&door.inside)?, open(&door.back)?)));
        doors.collect::<io::Result<_>>().map(Self)
    }

    /// Runs `start` inside the groups. Only one thread may do this at a time.
    ///
    /// # Errors
    /// When the kernel refuses to move this process: then `start` did not run.
    pub(super) fn inside<T>(&self, start: impl FnOnce() -> T) -> io::Result<T> {
        let entered = self.0.iter().try_for_each(|(inside, _)| inside.write_all_at(b"0", 0));
        let started = entered.map(|()| start());
        for (_, back) in &self.0 {
            // If leaving fails, the supervisor dies with the container, which counts as the container's end.
            let _ = back.write_all_at(b"0", 0);
        }
        started
    }
}
