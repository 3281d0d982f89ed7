//! Transfers one file: writes it under a temporary name with pipelined writes, compares the size, then renames it.
//!
//! INVARIANT: bytes count as written only if the server has confirmed them and all bytes before them. After a disconnect, only the
//! rest is sent if the server's last bytes read back equal; otherwise the whole file is.
//!
//! Drop boxes accept files and permit nothing else: no rename, no size, no reading. There, the file is written under its final name,
//! and reported as delivered but not verified.

use std::fs::Metadata;
use std::future::Future;
use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesOrdered;
use russh_sftp::client::error::Error as Trouble;
use russh_sftp::protocol::{FileAttributes, OpenFlags, Packet, Status, StatusCode};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio::time::timeout;
use tracing::{info, warn};

use super::session::{POSIX_RENAME, Session};
use super::{RemoteName, SftpError};

/// The most bytes that are sent and not confirmed, which is all that is in memory of a file. It is twice the receive window of OpenSSH
/// servers, so that they never wait for this side.
const IN_FLIGHT: usize = 4 * 1024 * 1024;
/// How many bytes must read back equal before the rest is sent after a disconnect.
const COMPARED: u64 = 1024 * 1024;
/// The number of bytes of one read.
const READ: u32 = 32 * 1024;

/// A file that is on the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivered {
    /// Its path on the server.
    pub name: String,
    pub bytes: u64,
    /// Whether the server reported the right size.
    pub verified: bool,
}

/// A file that is being sent, over one or more connections.
pub(super) struct Sending {
    local: PathBuf,
    known: Metadata,
    remote: RemoteName,
    /// The number of bytes from the start that a server has confirmed.
    confirmed: u64,
    /// Whether it was written to the end, so that only the rename may be missing.
    whole: bool,
    in_place: Option<bool>,
}

/// Where an attempt continues.
enum From {
    /// After this number of bytes.
    Byte(u64),
    /// The file has its final name: the response to the last rename was lost.
    Named,
}

impl Sending {
    pub(super) async fn of(local: &Path, remote: &RemoteName) -> Result<Self, SftpError> {
        let unreadable = |source| SftpError::Local { path: local.to_owned(), source };
        let known = tokio::fs::metadata(local).await.map_err(unreadable)?;
        if !known.is_file() {
            return Err(unreadable(io::Error::other("it is no file")));
        }
        Ok(Self {
            local: local.to_owned(),
            known,
            remote: remote.clone(),
            confirmed: 0,
            whole: false,
            in_place: None,
        })
    }

    pub(super) fn confirmed(&self) -> u64 {
        self.confirmed
    }

    /// Sends what is missing, over one connection.
    pub(super) async fn attempt(
        &mut self,
        session: &Session,
        idle: Duration,
    ) -> Result<Delivered, SftpError> {
        let remote = Remote { session, idle };
        let in_place = match self.in_place {
            Some(in_place) => in_place,
            None => !remote.renames(&self.remote.partial()).await?,
        };
        self.in_place = Some(in_place);
        if in_place {
            return self.write_in_place(&remote).await;
        }
        let partial = self.remote.partial();
        let verified = match self.goes_on(&remote, &partial).await? {
            From::Named => return Ok(self.delivered(true)),
            From::Byte(start) => self.write(&remote, &partial, start).await?,
        };
        match remote.rename(&partial, self.remote.as_str()).await? {
            Ok(()) => Ok(self.delivered(verified)),
            // A rename of an existing file is refused differently from one of a missing file.
            Err(status) if refuses(&status) => {
                remote.remove(&partial).await;
                self.in_place = Some(true);
                self.write_in_place(&remote).await
            }
            Err(status) => Err(remote.refused("rename", &partial, &status)),
        }
    }

    async fn write_in_place(&mut self, remote: &Remote<'_>) -> Result<Delivered, SftpError> {
        info!(name = %self.remote, "the server lets nothing be renamed: the file is written in place");
        let name = self.remote.as_str().to_owned();
        // Existing contents cannot be verified here, so all of the file is sent again.
        let verified = self.write(remote, &name, 0).await?;
        Ok(self.delivered(verified))
    }

    fn delivered(&self, verified: bool) -> Delivered {
        Delivered { name: self.remote.to_string(), bytes: self.known.len(), verified }
    }

    /// Returns where to continue: after what was confirmed and reads back equal, or else from the start.
    async fn goes_on(&mut self, remote: &Remote<'_>, partial: &str) -> Result<From, SftpError> {
        if self.confirmed == 0 && !self.whole {
            return Ok(From::Byte(0));
        }
        let found = match remote.size(partial).await? {
            Ok(found) => found,
            Err(status) if self.whole && status.status_code == StatusCode::NoSuchFile => {
                let named =
                    remote.size(self.remote.as_str()).await?.is_ok_and(|size| size == self.known.len());
                return Ok(if named { From::Named } else { From::Byte(0) });
            }
            Err(_) => 0,
        };
        let at = found.min(self.confirmed);
        let first = at.saturating_sub(COMPARED);
        if at == 0 || remote.read(partial, first, at).await? != Some(self.own(first, at).await?) {
            warn!(name = partial, at, "what the server has is not what was sent: sending all of it again");
            return Ok(From::Byte(0));
        }
        info!(name = partial, at, "going on where the connection was cut");
        Ok(From::Byte(at))
    }

    fn unreadable(&self, source: io::Error) -> SftpError {
        match source.kind() {
            io::ErrorKind::UnexpectedEof => SftpError::Changed { path: self.local.clone() },
            _ => SftpError::Local { path: self.local.clone(), source },
        }
    }

    async fn open(&self, start: u64) -> Result<File, SftpError> {
        let opening = async {
            let mut file = File::open(&self.local).await?;
            file.seek(SeekFrom::Start(start)).await?;
            Ok(file)
        };
        opening.await.map_err(|error| self.unreadable(error))
    }

    /// Reads the bytes of the local file from `first` up to `end`.
    async fn own(&self, first: u64, end: u64) -> Result<Vec<u8>, SftpError> {
        let mut file = self.open(first).await?;
        let mut bytes = vec![0; usize::try_from(end - first).unwrap_or(0)];
        file.read_exact(&mut bytes).await.map_err(|error| self.unreadable(error))?;
        Ok(bytes)
    }

    /// Writes the file from `start` on; returns whether the server then reports the right size.
    async fn write(&mut self, remote: &Remote<'_>, name: &str, start: u64) -> Result<bool, SftpError> {
        self.confirmed = start;
        self.whole = false;
        let flags = match start {
            0 => OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::TRUNCATE,
            _ => OpenFlags::WRITE,
        };
        let opened = remote.ask(remote.session.sftp.open(name, flags, FileAttributes::empty())).await?;
        let handle = opened.map_err(|status| remote.refused("create", name, &status))?.handle;
        let written = match self.stream(remote, &handle, start).await? {
            // Some servers report exceeded quotas only now.
            Ok(()) => remote.ask(remote.session.sftp.close(&*handle)).await?.map(drop),
            refused => refused,
        };
        if let Err(status) = written {
            let answer = remote.session.tell(&status.error_message);
            remote.remove(name).await;
            let (sent, size) = (self.confirmed, self.known.len());
            return Err(SftpError::Full { name: name.to_owned(), sent, size, answer });
        }
        let now = tokio::fs::metadata(&self.local).await.map_err(|error| self.unreadable(error))?;
        if now.len() != self.known.len() || now.modified().ok() != self.known.modified().ok() {
            return Err(SftpError::Changed { path: self.local.clone() });
        }
        self.whole = true;
        match remote.size(name).await? {
            Ok(found) if found == self.known.len() => Ok(true),
            Ok(found) => Err(SftpError::Size { name: name.to_owned(), found, size: self.known.len() }),
            Err(_) => Ok(false),
        }
    }

    /// Keeps as many writes in flight as permitted, and counts confirmed bytes.
    async fn stream(
        &mut self,
        remote: &Remote<'_>,
        handle: &str,
        start: u64,
    ) -> Result<Result<(), Status>, SftpError> {
        let chunk = remote.session.chunk;
        let mut file = self.open(start).await?;
        file.set_max_buf_size(chunk);
        let (mut at, size) = (start, self.known.len());
        let mut flying = FuturesOrdered::new();
        loop {
            while at < size && flying.len() < (IN_FLIGHT / chunk).max(1) {
                let length = usize::try_from(size - at).unwrap_or(chunk).min(chunk);
                let mut bytes = vec![0; length];
                file.read_exact(&mut bytes).await.map_err(|error| self.unreadable(error))?;
                let write = remote.session.sftp.write(handle, at, bytes);
                flying.push_back(async move { write.await.map(|_| length as u64) });
                at += length as u64;
            }
            let next = async { flying.next().await.transpose() };
            match remote.ask(next).await? {
                Ok(Some(length)) => self.confirmed += length,
                Ok(None) => return Ok(Ok(())),
                Err(status) => return Ok(Err(status)),
            }
        }
    }
}

/// Whether the status means that the server does not permit or support the operation at all.
fn refuses(status: &Status) -> bool {
    matches!(status.status_code, StatusCode::PermissionDenied | StatusCode::OpUnsupported)
}

/// Sends requests to the server.
struct Remote<'s> {
    session: &'s Session,
    idle: Duration,
}

impl Remote<'_> {
    /// Returns a response, or the error status of the server. A timeout or a lost connection is an error.
    async fn ask<T>(
        &self,
        asking: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<Result<T, Status>, SftpError> {
        let host = || self.session.host.clone();
        let answer = timeout(self.idle, asking).await.map_err(|_| SftpError::TimedOut {
            host: host(),
            what: "answer",
            within: self.idle,
        })?;
        match answer {
            Ok(answer) => Ok(Ok(answer)),
            Err(Trouble::Status(status)) => Ok(Err(status)),
            Err(other) => Err(SftpError::Lost { host: host(), reason: self.session.tell(other.to_string()) }),
        }
    }

    fn refused(&self, doing: &'static str, name: &str, status: &Status) -> SftpError {
        let answer = self.session.tell(format!("{}: {}", status.status_code, status.error_message));
        SftpError::Refused { doing, name: name.to_owned(), answer }
    }

    async fn size(&self, name: &str) -> Result<Result<u64, Status>, SftpError> {
        Ok(self.ask(self.session.sftp.stat(name)).await?.map(|found| found.attrs.size.unwrap_or(0)))
    }

    /// Reads the bytes of a remote file from `first` up to `end`; None if it cannot be read or is shorter.
    async fn read(&self, name: &str, first: u64, end: u64) -> Result<Option<Vec<u8>>, SftpError> {
        let sftp = &self.session.sftp;
        let opened = self.ask(sftp.open(name, OpenFlags::READ, FileAttributes::empty())).await?;
        let Ok(opened) = opened else { return Ok(None) };
        let wanted = usize::try_from(end - first).unwrap_or(0);
        let mut bytes = Vec::with_capacity(wanted);
        while bytes.len() < wanted {
            let at = first + bytes.len() as u64;
            let most = READ.min(u32::try_from(wanted - bytes.len()).unwrap_or(READ));
            match self.ask(sftp.read(&*opened.handle, at, most)).await? {
                Ok(read) if !read.data.is_empty() => bytes.extend_from_slice(&read.data),
                _ => break,
            }
        }
        // The bytes were read, so an error while closing does not matter.
        let _ = self.ask(sftp.close(&*opened.handle)).await?;
        Ok((bytes.len() == wanted).then_some(bytes))
    }

    /// Whether renaming is permitted: tries it with a missing file, so that nothing is left behind if it is not.
    async fn renames(&self, partial: &str) -> Result<bool, SftpError> {
        let asked = self.rename(&format!("{partial}.0"), &format!("{partial}.1")).await?;
        Ok(!asked.is_err_and(|status| refuses(&status)))
    }

    async fn rename(&self, from: &str, to: &str) -> Result<Result<(), Status>, SftpError> {
        let sftp = &self.session.sftp;
        if !self.session.replaces {
            return Ok(self.ask(sftp.rename(from, to)).await?.map(drop));
        }
        let names = [from, to].map(str::as_bytes);
        let lengths = names.map(|name| u32::try_from(name.len()).unwrap_or(u32::MAX).to_be_bytes());
        let data: Vec<u8> =
            names.iter().zip(&lengths).flat_map(|(name, length)| [length, *name].concat()).collect();
        let asking = async {
            match sftp.extended(POSIX_RENAME, data).await? {
                Packet::Status(status) if status.status_code == StatusCode::Ok => Ok(()),
                Packet::Status(status) => Err(Trouble::Status(status)),
                _ => Err(Trouble::UnexpectedPacket),
            }
        };
        self.ask(asking).await
    }

    /// Removes a useless file; if that fails, the error that is reported says what it is.
    async fn remove(&self, name: &str) {
        let _ = self.ask(self.session.sftp.remove(name)).await;
    }
}
