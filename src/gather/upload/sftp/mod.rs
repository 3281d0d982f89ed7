//! Implements the SFTP client that uploads an archive to the folder of a support case.
//!
//! ```text
//!  Host ─► tunnel (direct, or CONNECT by a proxy) ─► session (host key, then login) ─► transfer ─► Delivered
//! ```
//!
//! It decides which host keys to trust (`known_hosts`), what is sent before that (only the names of algorithms), how a file
//! is named (temporarily, and renamed when it is complete), what is sent again after a disconnect (what was not confirmed), and which
//! failures are temporary. It uses only `tunnel` and `telemetry` of this crate. The contents of the archive, and the time of the
//! upload, are decided elsewhere.

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

/// The login. `Debug` hides it.
#[derive(Clone)]
pub struct Credentials {
    pub username: String,
    pub password: String,
}

impl Credentials {
    /// Returns the secrets that no message about this server may contain.
    fn secrets(&self) -> Secrets {
        Secrets::of([self.password.as_str()])
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

/// The timeouts of the steps of an upload, and the number of retries.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For a TCP connection to one address.
    pub connect: Duration,
    /// For each response until the subsystem is open: proxy, host key, login.
    pub handshake: Duration,
    /// For a server that confirms nothing of what was sent.
    pub idle: Duration,
    /// The number of attempts in a row without progress, including the first.
    pub attempts: u32,
    /// The wait before the second of them; doubled before each further one.
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
    /// Returns the settings of a preflight check: three attempts with short timeouts, since somebody waits for the answer.
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

/// The longest wait between attempts.
const MAX_WAIT: Duration = Duration::from_mins(2);

/// A server, with the login and settings.
#[derive(Clone, Debug)]
pub struct Sftp {
    pub host: Host,
    pub credentials: Credentials,
    pub trust: Trust,
    pub proxy: Option<Proxy>,
    /// The PEM file of authorities to trust for a TLS proxy, besides the system's.
    pub proxy_ca: Option<PathBuf>,
    pub patience: Patience,
}

impl Sftp {
    /// Checks that an upload could begin: the server is reachable, has the right key, accepts the login and speaks SFTP.
    ///
    /// # Errors
    /// The last attempt's [`SftpError`], in words for the owner of the account.
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

    /// Uploads the file `local` as `remote`; continues after temporary failures where it stopped.
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

    /// Connects to the server, through its proxy if it has one. Any address is permitted: whoever names the server also decides
    /// that the password is sent there.
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

/// Counts failed attempts in a row.
struct Tries {
    patience: Patience,
    in_vain: u32,
    wait: Duration,
}

impl Tries {
    fn of(patience: Patience) -> Self {
        Self { patience, in_vain: 0, wait: patience.wait }
    }

    /// Waits for the next attempt, or returns the error if there is none.
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
