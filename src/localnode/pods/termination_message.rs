//! Reads the termination message of a container: what it wrote to the file for that, or if it failed and requests that, the end of
//! its log.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Container;

use super::super::log::Writing;
use super::super::supervise::protocol::Mount;
use crate::private;

/// The default path of the file in containers.
const USUAL: &str = "/dev/termination-log";
/// How many bytes of the end of the file a kubelet reads.
const MAX_FILE: u64 = 4 * 1024;
/// How many bytes and lines of the end of a log it reads.
const MAX_LOG: (usize, u64) = (2 * 1024, 80);

/// The file for the termination message of a container.
pub(super) struct TerminationMessage {
    file: PathBuf,
    target: PathBuf,
    falls_back: bool,
}

impl TerminationMessage {
    /// Returns that of a container of the Pod with `folder`.
    pub(super) fn of(folder: &Path, container: &Container) -> Self {
        let target = container.termination_message_path.as_deref().filter(|path| !path.is_empty());
        Self {
            file: folder.join("words").join(&container.name),
            target: target.unwrap_or(USUAL).into(),
            falls_back: container.termination_message_policy.as_deref() == Some("FallbackToLogsOnError"),
        }
    }

    /// Creates a new file for the next run, and returns its mount.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub(super) fn mount(&self) -> io::Result<Mount> {
        if let Some(above) = self.file.parent() {
            private::make_folder(above)?;
        }
        private::replace(&self.file, "")?;
        Ok(Mount { source: self.file.clone(), target: self.target.clone(), read_only: false })
    }

    /// Returns the message of the container, which ended with `code`.
    pub(super) async fn last(&self, code: i32, log: &Writing) -> Option<String> {
        let written = end_of(&self.file).unwrap_or_default();
        let said = match written.is_empty() && self.falls_back && code != 0 {
            true => log.end(MAX_LOG.0, MAX_LOG.1).await.unwrap_or_default(),
            false => written,
        };
        (!said.is_empty()).then(|| String::from_utf8_lossy(&said).into_owned())
    }
}

/// Reads the end of the file, if it is one: the container may have replaced it by anything.
fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    if !path.symlink_metadata()?.is_file() {
        return Ok(Vec::new());
    }
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(MAX_FILE)))?;
    let mut end = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut end)?;
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::super::super::log::{Logs, Stream};
    use super::*;

    #[tokio::test]
    async fn the_file_speaks_first_and_the_log_of_a_failure_where_it_is_asked_to() {
        let folder = tempfile::tempdir().unwrap();
        let logs = Logs::new(folder.path());
        let writing = logs.begin(&folder.path().join("logs"), 0).unwrap();
        let lines: String = (0..200).map(|line| format!("line {line} {}\n", "x".repeat(20))).collect();
        writing.log.clone().take(lines.as_bytes(), Stream::Out).await;
        let of = |policy: &str| {
            let policy = Some(policy.to_owned());
            TerminationMessage::of(
                folder.path(),
                &Container {
                    name: "c".to_owned(),
                    termination_message_policy: policy,
                    ..Container::default()
                },
            )
        };
        let (file, log) = (of("File"), of("FallbackToLogsOnError"));
        let mount = file.mount().unwrap();
        assert_eq!(mount.target, Path::new("/dev/termination-log"));
        assert_eq!((file.last(1, &writing).await, log.last(0, &writing).await), (None, None));
        let end = log.last(1, &writing).await.unwrap();
        assert!(end.ends_with(&lines[lines.len() - 100..]) && end.len() == MAX_LOG.0, "{end}");
        std::fs::write(&mount.source, "y".repeat(5_000) + "!").unwrap();
        let said = log.last(1, &writing).await.unwrap();
        assert!(said.len() == 4_096 && said.ends_with("y!"));
        std::fs::remove_file(&mount.source).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &mount.source).unwrap();
        assert_eq!(file.last(0, &writing).await, None);
    }
}
