//! Opens a session with a server: checks its host key before anything else, logs in with a password, and starts the SFTP subsystem.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use russh::client::{self, AuthResult, Handle, KeyboardInteractiveAuthResponse};
use russh::keys::{HashAlg, PublicKeyOrCertificate};
use russh::{ChannelMsg, Disconnect, MethodKind, MethodSet, Preferred, cipher};
use russh_sftp::client::{Config, RawSftpSession};
use tokio::time::timeout;
use tracing::warn;

use super::host::known_as;
use super::{Host, HostKeyError, Sftp, SftpError, Trust};
use crate::telemetry::{Outside, Secrets};

/// The extension for a rename that replaces an existing file.
pub(super) const POSIX_RENAME: &str = "posix-rename@openssh.com";
/// The most prompts of a server in one login.
const MAX_QUESTIONS: usize = 8;
/// The library's timeout is disabled, because this client measures progress itself: a write waits for all earlier ones.
const REQUEST_TIMEOUT: Duration = Duration::from_hours(24);
/// The timeout for closing the session.
const GOODBYE: Duration = Duration::from_secs(2);
/// The empty text of the disconnect message.
const NO_WORDS: &str = "";

/// An open SFTP subsystem.
pub(super) struct Session {
    pub(super) sftp: RawSftpSession,
    /// The most bytes of one write.
    pub(super) chunk: usize,
    /// Whether a rename may replace an existing file.
    pub(super) replaces: bool,
    pub(super) host: String,
    pub(super) secrets: Secrets,
    connection: Handle<Guard>,
}

/// The size of writes if the server states no limit; every server must accept it.
const CHUNK: usize = 32 * 1024;
/// The largest size of writes.
const MAX_CHUNK: usize = 255 * 1024;

impl Session {
    /// Returns a message of the server or about the connection, without secrets.
    pub(super) fn tell(&self, text: impl AsRef<[u8]>) -> Outside {
        Outside::of(text, &self.secrets)
    }

    /// Closes the session; gives up after two seconds if the server does not respond.
    pub(super) async fn close(self) {
        let _ = self.sftp.close_session();
        let leaving = self.connection.disconnect(Disconnect::ByApplication, NO_WORDS, NO_WORDS);
        let _ = timeout(GOODBYE, leaving).await;
    }
}

/// Verifies the server's key before anything else is sent.
struct Guard {
    host: Host,
    trust: Trust,
}

/// Why a connection was not made.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error(transparent)]
    Key(#[from] HostKeyError),
    #[error(transparent)]
    Ssh(#[from] russh::Error),
}

impl client::Handler for Guard {
    type Error = Stopped;

    async fn check_server_key(&mut self, presented: &PublicKeyOrCertificate) -> Result<bool, Stopped> {
        let key = presented.public_key();
        let shown = format!("{} {}", key.algorithm(), key.fingerprint(HashAlg::Sha256));
        match &self.trust {
            Trust::AcceptAny => {
                let host = known_as(&self.host);
                warn!(
                    host,
                    key = shown,
                    "host key accepted unseen: whoever answers for the host gets the password"
                );
            }
            Trust::Known(known) => {
                let bytes = key.to_bytes().map_err(russh::Error::from)?;
                known.check(&self.host, &bytes, &shown)?;
            }
        }
        Ok(true)
    }
}

/// Opens a session.
pub(super) async fn open(sftp: &Sftp) -> Result<Session, SftpError> {
    let config = config(sftp)?;
    let stream = sftp.connect().await?;
    let guard = Guard { host: sftp.host.clone(), trust: sftp.trust.clone() };
    let opening = Opening { sftp, secrets: sftp.credentials.secrets() };
    let connecting = client::connect_stream(Arc::new(config), stream, guard);
    let connection =
        timeout(sftp.patience.handshake, connecting).await.map_err(|_| opening.silent("handshake"))?;
    let mut connection = connection.map_err(|stopped| match stopped {
        Stopped::Key(error) => SftpError::HostKey(error),
        Stopped::Ssh(error) => opening.failed(&error),
    })?;
    opening.login(&mut connection).await?;
    let mut channel = opening.within("channel", connection.channel_open_session()).await?;
    opening.within("subsystem", channel.request_subsystem(true, "sftp")).await?;
    loop {
        match timeout(sftp.patience.handshake, channel.wait())
            .await
            .map_err(|_| opening.silent("subsystem"))?
        {
            Some(ChannelMsg::Success) => break,
            Some(ChannelMsg::WindowAdjusted { .. }) => {}
            _ => return Err(SftpError::NoSubsystem),
        }
    }
    let config = Config { request_timeout_secs: REQUEST_TIMEOUT.as_secs(), ..Config::default() };
    opening.greet(RawSftpSession::new_with_config(channel.into_stream(), config), connection).await
}

/// Returns the offered algorithms: only key types that are known for the host, so that a server with several presents one of these.
fn config(sftp: &Sftp) -> Result<client::Config, SftpError> {
    let mut preferred = Preferred { cipher: ciphers(has_aes()), ..Preferred::DEFAULT };
    if let Trust::Known(known) = &sftp.trust {
        let kinds = known.kinds(&sftp.host)?;
        let of_kind = |name: &str| kinds.iter().any(|kind| kind == name);
        let offered = preferred.key.iter().filter(|algorithm| match algorithm.as_str() {
            "rsa-sha2-256" | "rsa-sha2-512" => of_kind("ssh-rsa"),
            // It uses SHA-1.
            "ssh-rsa" => false,
            name => of_kind(name),
        });
        preferred.key = Cow::Owned(offered.cloned().collect());
    }
    Ok(client::Config { preferred, ..client::Config::default() })
}

/// Returns the ciphers, the fastest first: the server uses the first that it supports. With AES instructions on both ends, AES-GCM
/// takes a fraction of the time of ChaCha20; without them here, ChaCha20 is faster.
fn ciphers(has_aes: bool) -> Cow<'static, [cipher::Name]> {
    let usual = Preferred::DEFAULT.cipher;
    if !has_aes {
        return usual;
    }
    let of_aes = [cipher::AES_128_GCM, cipher::AES_256_GCM];
    let others = usual.iter().copied().filter(|name| !of_aes.contains(name));
    Cow::Owned(of_aes.into_iter().chain(others).collect())
}

/// Whether this processor has the instructions that AES-GCM uses.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn has_aes() -> bool {
    std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq")
}

#[cfg(target_arch = "aarch64")]
fn has_aes() -> bool {
    std::arch::is_aarch64_feature_detected!("aes")
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
fn has_aes() -> bool {
    false
}

/// A session that is being opened.
struct Opening<'s> {
    sftp: &'s Sftp,
    secrets: Secrets,
}

impl Opening<'_> {
    async fn within<T>(
        &self,
        what: &'static str,
        work: impl Future<Output = Result<T, russh::Error>>,
    ) -> Result<T, SftpError> {
        let done = timeout(self.sftp.patience.handshake, work).await.map_err(|_| self.silent(what))?;
        done.map_err(|error| self.failed(&error))
    }

    fn silent(&self, what: &'static str) -> SftpError {
        SftpError::TimedOut { host: self.sftp.host.to_string(), what, within: self.sftp.patience.handshake }
    }

    fn failed(&self, error: &russh::Error) -> SftpError {
        let host = self.sftp.host.to_string();
        let reason = Outside::of(error.to_string(), &self.secrets);
        match error {
            russh::Error::NoCommonAlgo { .. } | russh::Error::Version => {
                SftpError::Algorithms { host, reason }
            }
            _ => SftpError::Lost { host, reason },
        }
    }

    /// Queries the authentication methods, and sends the password by one of them.
    async fn login(&self, connection: &mut Handle<Guard>) -> Result<(), SftpError> {
        let user = &self.sftp.credentials.username;
        let asked = self.within("login", connection.authenticate_none(user)).await?;
        let AuthResult::Failure { remaining_methods: methods, .. } = asked else { return Ok(()) };
        if methods.contains(&MethodKind::Password) {
            let password = &self.sftp.credentials.password;
            let answer = self.within("login", connection.authenticate_password(user, password)).await?;
            return match answer {
                AuthResult::Success => Ok(()),
                AuthResult::Failure { partial_success: true, remaining_methods }
                    if remaining_methods.contains(&MethodKind::KeyboardInteractive) =>
                {
                    self.answer_questions(connection).await
                }
                AuthResult::Failure { .. } => Err(self.refused(connection, &methods)),
            };
        }
        if methods.contains(&MethodKind::KeyboardInteractive) {
            return self.answer_questions(connection).await;
        }
        Err(self.refused(connection, &methods))
    }

    /// Answers prompts without echo with the password; a server with other prompts is an error.
    async fn answer_questions(&self, connection: &mut Handle<Guard>) -> Result<(), SftpError> {
        let user = self.sftp.credentials.username.clone();
        let starting = connection.authenticate_keyboard_interactive_start(user, None);
        let mut said = self.within("login", starting).await?;
        for _ in 0..MAX_QUESTIONS {
            let prompts = match said {
                KeyboardInteractiveAuthResponse::Success => return Ok(()),
                KeyboardInteractiveAuthResponse::Failure { .. } => break,
                KeyboardInteractiveAuthResponse::InfoRequest { prompts, .. } => prompts,
            };
            let answer = |prompt: &client::Prompt| match prompt.echo {
                true => String::new(),
                false => self.sftp.credentials.password.clone(),
            };
            let answers = prompts.iter().map(answer).collect();
            let answering = connection.authenticate_keyboard_interactive_respond(answers);
            said = self.within("login", answering).await?;
        }
        Err(self.refused(connection, &MethodSet::empty()))
    }

    /// Creates the error of a rejected login; a lost connection looks the same, and is told apart here.
    fn refused(&self, connection: &Handle<Guard>, methods: &MethodSet) -> SftpError {
        let takes = |kind| methods.contains(&kind);
        if connection.is_closed() {
            let reason = Outside::of("it was closed during the login", &self.secrets);
            return SftpError::Lost { host: self.sftp.host.to_string(), reason };
        }
        if methods.is_empty() || takes(MethodKind::Password) || takes(MethodKind::KeyboardInteractive) {
            return SftpError::Authentication;
        }
        SftpError::NoMethod(methods.iter().map(<&str>::from).collect::<Vec<_>>().join(", "))
    }

    /// Negotiates the version, and reads the server's limits.
    async fn greet(&self, sftp: RawSftpSession, connection: Handle<Guard>) -> Result<Session, SftpError> {
        let within = self.sftp.patience.handshake;
        // A misconfigured subsystem accepts the request, and ends.
        let version = timeout(within, sftp.init()).await.map_err(|_| self.silent("greeting of SFTP"))?;
        let version = version.map_err(|_| SftpError::NoSubsystem)?;
        let mut chunk = CHUNK;
        if version.extensions.contains_key(russh_sftp::extensions::LIMITS)
            && let Ok(Ok(limits)) = timeout(within, sftp.limits()).await
        {
            let most = usize::try_from(limits.max_write_len).unwrap_or(MAX_CHUNK).min(MAX_CHUNK);
            chunk = chunk.max(most);
        }
        Ok(Session {
            sftp,
            chunk,
            replaces: version.extensions.contains_key(POSIX_RENAME),
            host: self.sftp.host.to_string(),
            secrets: self.secrets.clone(),
            connection,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_cipher_of_this_processor_is_asked_for_first_and_none_is_left_out() {
        let names =
            |has_aes| ciphers(has_aes).iter().map(|name| name.as_ref().to_owned()).collect::<Vec<_>>();
        let (with, without) = (names(true), names(false));
        assert_eq!(with[0], "aes128-gcm@openssh.com");
        assert_eq!(with[1], "aes256-gcm@openssh.com");
        assert_eq!(without[0], "chacha20-poly1305@openssh.com");
        assert!(without.iter().all(|name| with.contains(name)), "{with:?} {without:?}");
        assert!(
            !with
                .iter()
                .chain(&without)
                .any(|name| name == "none" || name == "clear" || name.contains("cbc"))
        );
    }
}
