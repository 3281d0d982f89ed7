//! Uploads by SFTP against OpenSSH's server, and what stands between: whom the client trusts, what arrives, what a cut costs,
//! which words a failure has. Without root, or without the server, a test says that it was skipped.

mod faults;
mod proxies;
mod rounds;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use admit::gather::upload::sftp::{
    Credentials, Delivered, HostKeyError, KnownHosts, Patience, RemoteName, Sftp, SftpError, Trust,
};

use crate::support::relay::Relay;
use crate::support::sshd::{DROP_BOX, PASSWORD, Sshd, USER, Wanted, keygen};

/// No test waits longer for what does not come.
const BRIEF: Patience = Patience {
    connect: Duration::from_secs(10),
    handshake: Duration::from_secs(10),
    idle: Duration::from_secs(20),
    attempts: 3,
    wait: Duration::from_millis(20),
};

/// A file of `size` bytes that no run of which repeats.
pub(crate) fn content(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()
    };
    (0..size.div_ceil(4)).flat_map(|_| next()).take(size).collect()
}

/// A file to send, in a folder of its own.
struct Local {
    dir: tempfile::TempDir,
}

impl Local {
    fn of(size: usize) -> Self {
        let local = Self { dir: tempfile::tempdir().unwrap() };
        fs::write(local.path(), content(size)).unwrap();
        local
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("archive")
    }
}

fn remote() -> RemoteName {
    RemoteName::new("0123", "must-gather.tar.gz", None).unwrap()
}

const REMOTE: &str = "0123_must-gather.tar.gz";

/// A client of the server at `address`, which knows it by `known`.
fn client(address: &impl ToString, known: &str) -> Sftp {
    Sftp {
        host: address.to_string().parse().unwrap(),
        credentials: Credentials { username: USER.to_owned(), password: PASSWORD.to_owned() },
        trust: Trust::Known(KnownHosts::parse(known).unwrap()),
        proxy: None,
        proxy_ca: None,
        patience: BRIEF,
    }
}

fn of(sshd: &Sshd) -> Sftp {
    client(&sshd.address, &sshd.known_hosts())
}

fn delivered(bytes: u64, verified: bool) -> Delivered {
    Delivered { name: REMOTE.to_owned(), bytes, verified }
}

#[tokio::test]
async fn a_file_arrives_whole_under_its_name() {
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    for size in [0, 1, 255 * 1024, 9_000_001] {
        let local = Local::of(size);
        of(&sshd).preflight().await.unwrap();
        let sent = of(&sshd).upload(&local.path(), &remote()).await.unwrap();
        assert_eq!(sent, delivered(size as u64, true));
        assert!(fs::read(sshd.home().join(REMOTE)).unwrap() == content(size), "{size}");
        assert_eq!(sshd.files(), [REMOTE]);
    }
}

#[tokio::test]
async fn a_file_of_the_house_lies_in_the_folder_of_its_user() {
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let local = Local::of(10);
    let remote = RemoteName::new("0123", "a.tar.gz", Some(USER)).unwrap();
    let error = of(&sshd).upload(&local.path(), &remote).await.unwrap_err();
    assert!(matches!(&error, SftpError::Refused { doing: "create", .. }), "{error}");
    let folder = sshd.home().join(USER);
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let sent = of(&sshd).upload(&local.path(), &remote).await.unwrap();
    assert_eq!(sent.name, "case/0123_a.tar.gz");
    assert_eq!(fs::read(folder.join("0123_a.tar.gz")).unwrap(), content(10));
}

#[tokio::test]
async fn every_kind_of_host_key_is_checked() {
    for key in ["ed25519", "ecdsa", "rsa"] {
        let Some(sshd) = Sshd::start(&Wanted { key, ..Wanted::default() }) else { return };
        of(&sshd).preflight().await.unwrap();
        let port = sshd.address.port();
        // Of a server that is known by another name, or under another key.
        let elsewhere = client(&sshd.address, &sshd.known_as("other.example.com"));
        let error = elsewhere.preflight().await.unwrap_err();
        let unknown = HostKeyError::Unknown(format!("[127.0.0.1]:{port}"));
        assert!(matches!(&error, SftpError::HostKey(found) if *found == unknown), "{error}");
    }
}

#[tokio::test]
async fn a_server_of_another_key_is_told_nothing() {
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let dir = tempfile::tempdir().unwrap();
    keygen("ed25519", &dir.path().join("other"));
    let other = fs::read_to_string(dir.path().join("other.pub")).unwrap();
    let name = format!("[127.0.0.1]:{}", sshd.address.port());
    let error = client(&sshd.address, &format!("{name} {other}")).preflight().await.unwrap_err();
    assert!(
        matches!(&error, SftpError::HostKey(HostKeyError::Differs { presented, .. }) if presented.contains("SHA256:")),
        "{error}"
    );
    let revoked = format!("{}@revoked * {}", sshd.known_hosts(), sshd.known_as("").trim_start());
    let error = client(&sshd.address, &revoked).preflight().await.unwrap_err();
    assert!(matches!(&error, SftpError::HostKey(HostKeyError::Revoked { line: 2, .. })), "{error}");
    // The log of a server that logs everything knows of no login, not even of a name.
    let log = sshd.log_until("Connection closed by") + &sshd.log_until("Connection closed by");
    assert_eq!(log.matches("SSH2_MSG_KEXINIT received").count(), 2, "{log}");
    assert!(!log.contains("userauth-request"), "{log}");
    of(&sshd).preflight().await.unwrap();
    sshd.log_until("userauth-request for user case");
}

#[tokio::test]
async fn any_key_is_accepted_where_the_operator_says_so() {
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let sftp = Sftp { trust: Trust::AcceptAny, ..of(&sshd) };
    sftp.preflight().await.unwrap();
}

#[tokio::test]
async fn a_password_is_also_an_answer_to_a_question() {
    let wanted = Wanted { keyboard_interactive: true, ..Wanted::default() };
    let Some(sshd) = Sshd::start(&wanted) else { return };
    let local = Local::of(100);
    let sent = of(&sshd).upload(&local.path(), &remote()).await.unwrap();
    assert_eq!(sent, delivered(100, true));
    let mut sftp = of(&sshd);
    sftp.credentials.password = "another-password".to_owned();
    let error = sftp.preflight().await.unwrap_err();
    assert!(matches!(error, SftpError::Authentication), "{error}");
}

/// Where nothing can be renamed, looked at or read, the file is written in place, and nothing else is left behind.
#[tokio::test]
async fn a_drop_box_takes_a_file_unverified() {
    let Some(sshd) = Sshd::start(&Wanted { subsystem: DROP_BOX, ..Wanted::default() }) else { return };
    let local = Local::of(3_000_000);
    let sent = of(&sshd).upload(&local.path(), &remote()).await.unwrap();
    assert_eq!(sent, delivered(3_000_000, false));
    assert!(fs::read(sshd.home().join(REMOTE)).unwrap() == content(3_000_000));
    assert_eq!(sshd.files(), [REMOTE]);
    // Of what was cut nothing can be gone on from: all of it is sent again.
    let relay = Relay::start(sshd.address, vec![2_000_000]).await;
    let known = sshd.known_as(&format!("[127.0.0.1]:{}", relay.address.port()));
    let sent = client(&relay.address, &known).upload(&local.path(), &remote()).await.unwrap();
    assert_eq!(sent, delivered(3_000_000, false));
    assert!(fs::read(sshd.home().join(REMOTE)).unwrap() == content(3_000_000));
    assert_eq!(sshd.files(), [REMOTE]);
}
