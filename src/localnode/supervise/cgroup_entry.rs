//! Into the container's control groups and out again. What is started inside stays there; the supervisor itself does not, so that the
//! container's limits are not used up by it, and it can tell of the container's end.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;

use super::protocol::Order;

/// The files, opened before the supervisor sees nothing but what its container sees. A process is moved by writing 0.
pub(super) struct CgroupEntry(Vec<(File, File)>);

impl CgroupEntry {
    /// # Errors
    /// When a group is not there, or is somebody else's.
    pub(super) fn open(order: &Order) -> io::Result<Self> {
        let open = |path| OpenOptions::new().write(true).open(path);
        let doors = order.doors.iter().map(|door| Ok((open(&door.inside)?, open(&door.back)?)));
        doors.collect::<io::Result<_>>().map(Self)
    }

    /// Does something inside. Nobody else may at the same time.
    ///
    /// # Errors
    /// When the kernel does not let this process in: then it was not done.
    pub(super) fn inside<T>(&self, start: impl FnOnce() -> T) -> io::Result<T> {
        let entered = self.0.iter().try_for_each(|(inside, _)| inside.write_all_at(b"0", 0));
        let started = entered.map(|()| start());
        for (_, back) in &self.0 {
            // One that cannot leave dies with the container, which is seen as its end.
            let _ = back.write_all_at(b"0", 0);
        }
        started
    }
}
