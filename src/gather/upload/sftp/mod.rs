//! The client of an SFTP server: one archive, to the folder of a support case.
//!
//! ```text
//!  Host ─► tunnel (direct, or CONNECT by a proxy) ─► session (host key, then login) ─► transfer ─► Delivered
//! ```
//!
//! Decides whom to trust (`known_hosts`), what is sent before trust (nothing but the names of algorithms), how a file
//! gets its name (under a temporary one, renamed when it is whole), what a cut costs (what was not confirmed yet), and which
//! failures may pass. Uses nothing of ours but `tunnel` and `telemetry`. Left to others:
//! what the archive holds, and when it is sent.

mod error;
mod host;
mod known_hosts;
mod name;
mod session;
mod transfer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing::warn;

use crate::gather::tunnel::{Addresses, Hop, Host, Proxy, Route, Stream, Waits, client_tls};
use crate::telemetry::Secrets;

pub use error::{HostKeyError, SftpError};
pub use known_hosts::{KnownHosts, Trust};
pub use name::{NameError, RemoteName};
pub use transfer::Delivered;

use transfer::Sending;

/// Who logs in. Shows itself to nobody.
#[derive(Clone)]
pub struct Credentials {
    pub username: String,
    pub password: String,
}

impl Credentials {
    /// What no text about this server may show.
    fn secrets(&self) -> Secrets {
        Secrets::of([self.password.as_str()])
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

/// How long each part of an upload may take, and how often what may pass is tried.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For one address to take a connection.
    pub connect: Duration,
    /// For each answer up to the open subsystem: proxy, host key, login.
    pub handshake: Duration,
    /// For a server that confirms nothing of what it was sent.
    pub idle: Duration,
    /// Attempts in a row that confirm nothing new, the first included.
    pub attempts: u32,
    /// Wait before the second of them; doubled before each further one.
    pub wait: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            handshake: Duration::from_secs(30),
            idle: Duration::from_mins(1),
            attempts: 6,
            wait: Duration::from_secs(5),
        }
    }
}

impl Patience {
    /// That of a first look: three tries of seconds, since somebody waits for the answer.
    pub fn preflight() -> Self {
        Self {
            connect: Duration::from_secs(5),
            handshake: Duration::from_secs(10),
            attempts: 3,
            wait: Duration::from_secs(1),
            ..Self::default()
        }
    }
}

/// Longest wait between attempts.
const MAX_WAIT: Duration = Duration::from_mins(2);

/// One server, and how to get in.
#[derive(Clone, Debug)]
pub struct Sftp {
    pub host: Host,
    pub credentials: Credentials,
    pub trust: Trust,
    pub proxy: Option<Proxy>,
    /// PEM file of authorities to trust for a proxy that speaks TLS, besides the system's.
    pub proxy_ca: Option<PathBuf>,
    pub patience: Patience,
}

impl Sftp {
    /// Looks whether an upload could begin: the server is reached, is the right one, takes the login and speaks SFTP.
    ///
    /// # Errors
    /// The last attempt's [`SftpError`], in words that the owner of the account understands.
    pub async fn preflight(&self) -> Result<(), SftpError> {
        let mut tries = Tries::of(self.patience);
        loop {
            match session::open(self).await {
                Ok(session) => {
                    session.close().await;
                    return Ok(());
                }
                Err(error) => tries.again(error, false).await?,
            }
        }
    }

    /// Sends the file `local` to be `remote`, again from where it broke off while that may pass.
    ///
    /// # Errors
    /// The last attempt's [`SftpError`].
    pub async fn upload(&self, local: &Path, remote: &RemoteName) -> Result<Delivered, SftpError> {
        let mut sending = Sending::of(local, remote).await?;
        let mut tries = Tries::of(self.patience);
        let mut farthest = 0;
        loop {
            let error = match self.attempt(&mut sending).await {
                Ok(delivered) => return Ok(delivered),
                Err(error) => error,
            };
            let progressed = sending.confirmed() > farthest;
            farthest = farthest.max(sending.confirmed());
            tries.again(error, progressed).await?;
        }
    }

    /// A connection to the server, by its proxy where it has one. Whoever names the server has the password sent there, and is
    /// asked no more about its address.
    async fn connect(&self) -> Result<Box<dyn Stream>, SftpError> {
        let Patience { connect, handshake, .. } = self.patience;
        let tls = || client_tls(self.proxy_ca.as_deref());
        let hop = self.proxy.clone().map(|proxy| Hop::new(proxy, tls)).transpose()?;
        let waits = Waits { connect, handshake, answer: handshake };
        let route = Route { host: &self.host, hop: hop.as_ref(), addresses: &Addresses::All, waits };
        Ok(route.open().await?)
    }

    async fn attempt(&self, sending: &mut Sending) -> Result<Delivered, SftpError> {
        let session = session::open(self).await?;
        let sent = sending.attempt(&session, self.patience.idle).await;
        session.close().await;
        sent
    }
}

/// Attempts in a row that came to nothing.
struct Tries {
    patience: Patience,
    in_vain: u32,
    wait: Duration,
}

impl Tries {
    fn of(patience: Patience) -> Self {
        Self { patience, in_vain: 0, wait: patience.wait }
    }

    /// Waits for the next attempt, or gives the error back where there is none.
    async fn again(&mut self, error: SftpError, progressed: bool) -> Result<(), SftpError> {
        if progressed {
            *self = Self::of(self.patience);
        }
        self.in_vain += 1;
        if !error.may_pass() || self.in_vain >= self.patience.attempts {
            return Err(error);
        }
        warn!(%error, attempt = self.in_vain, wait = ?self.wait, "SFTP server not reached or lost, trying again");
        tokio::time::sleep(self.wait).await;
        self.wait = self.wait.saturating_mul(2).min(MAX_WAIT);
        Ok(())
    }
}
