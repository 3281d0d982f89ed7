//! What goes wrong on the way, and its words.

use std::fs;
use std::sync::atomic::Ordering;

use admit::gather::upload::sftp::{Sftp, SftpError};
use tokio::net::TcpListener;

use super::{BRIEF, Local, REMOTE, client, content, delivered, of, remote};
use crate::support::relay::Relay;
use crate::support::sshd::{PASSWORD, Sshd, Wanted};

const CANARY: &str = "another-canary-4712";

/// Where what is known does not matter, because nobody is reached.
fn nobody(address: &impl ToString) -> Sftp {
    let known = "* ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPKSUTyz1HwHReFVvD5obVsALAgJRNarH4TRpNePnAS";
    client(address, known)
}

#[tokio::test]
async fn a_wrong_password_is_told_once_and_never_shown() {
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    for username in ["case", "nobody-of-the-name"] {
        let mut sftp = of(&sshd);
        (sftp.credentials.username, sftp.credentials.password) = (username.to_owned(), CANARY.to_owned());
        let error = sftp.preflight().await.unwrap_err();
        assert_eq!(error.to_string(), "Authentication failed: username or password is incorrect");
        assert!(!error.may_pass());
        assert!(!format!("{error:?} {sftp:?}").contains(CANARY), "{error:?} {sftp:?}");
    }
    let log = sshd.log_until("Failed password for invalid user") + &sshd.log();
    assert_eq!(log.matches("Failed password").count(), 2, "{log}");
    assert!(!format!("{:?}", of(&sshd)).contains(PASSWORD));
}

#[tokio::test]
async fn a_server_that_is_not_there() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = nobody(&address).preflight().await.unwrap_err();
    let expected = format!("Connection refused: SFTP server is not running or port is blocked ({address})");
    assert_eq!((error.to_string(), error.may_pass()), (expected, true));

    let error = nobody(&"no-such-host.invalid").preflight().await.unwrap_err();
    assert!(error.to_string().starts_with("DNS resolution failed: no-such-host.invalid: "), "{error}");
}

/// Three tries, and no more.
#[tokio::test]
async fn a_server_that_says_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut sftp = nobody(&listener.local_addr().unwrap());
    sftp.patience.handshake = std::time::Duration::from_millis(200);
    let mut taken = Vec::new();
    let error = {
        let looking = sftp.preflight();
        let mut looking = std::pin::pin!(looking);
        loop {
            tokio::select! {
                biased;
                accepted = listener.accept() => taken.push(accepted.unwrap()),
                looked = &mut looking => break looked.unwrap_err(),
            }
        }
    };
    assert!(error.to_string().starts_with("Connection timed out: 127.0.0.1:"), "{error}");
    assert_eq!(taken.len(), usize::try_from(BRIEF.attempts).unwrap());
}

#[tokio::test]
async fn a_server_without_the_subsystem() {
    for subsystem in ["", "/bin/false"] {
        let Some(sshd) = Sshd::start(&Wanted { subsystem, ..Wanted::default() }) else { return };
        let error = of(&sshd).preflight().await.unwrap_err();
        assert_eq!(error.to_string(), "SFTP subsystem not available on the server", "`{subsystem}`");
        assert!(!error.may_pass());
    }
}

/// At every tenth of the file, and in the login.
#[tokio::test]
async fn a_cut_costs_what_was_not_confirmed() {
    const SIZE: u64 = 12_000_000;
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let local = Local::of(usize::try_from(SIZE).unwrap());
    for tenth in 0..10 {
        let relay = Relay::start(sshd.address, vec![SIZE * tenth / 10 + 1_500]).await;
        let known = sshd.known_as(&format!("[127.0.0.1]:{}", relay.address.port()));
        let sent = client(&relay.address, &known).upload(&local.path(), &remote()).await.unwrap();
        assert_eq!(sent, delivered(SIZE, true), "{tenth}");
        assert!(fs::read(sshd.home().join(REMOTE)).unwrap() == content(usize::try_from(SIZE).unwrap()));
        assert_eq!(sshd.files(), [REMOTE]);
        assert_eq!(relay.taken.load(Ordering::SeqCst), 2);
        // What was under way, the framing of both connections, and nothing of what the server had confirmed.
        let sent = relay.sent.load(Ordering::SeqCst);
        assert!(sent < SIZE + 5_000_000, "{tenth}: {sent} bytes were sent for {SIZE}");
    }
}

/// Cut again and again, an upload ends as long as each connection brings something.
#[tokio::test]
async fn a_connection_that_never_holds_delivers_all_the_same() {
    const SIZE: u64 = 24_000_000;
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let local = Local::of(usize::try_from(SIZE).unwrap());
    let relay = Relay::start(sshd.address, vec![6_500_000; 20]).await;
    let known = sshd.known_as(&format!("[127.0.0.1]:{}", relay.address.port()));
    let sent = client(&relay.address, &known).upload(&local.path(), &remote()).await.unwrap();
    assert_eq!(sent, delivered(SIZE, true));
    assert!(fs::read(sshd.home().join(REMOTE)).unwrap() == content(usize::try_from(SIZE).unwrap()));
    // One that brings nothing is given up.
    let relay = Relay::start(sshd.address, vec![3_000; 20]).await;
    let known = sshd.known_as(&format!("[127.0.0.1]:{}", relay.address.port()));
    let error = client(&relay.address, &known).upload(&local.path(), &remote()).await.unwrap_err();
    assert!(matches!(error, SftpError::Lost { .. }), "{error}");
    assert_eq!(relay.taken.load(Ordering::SeqCst), 3);
}

/// What was changed on the server meanwhile is not gone on from.
#[tokio::test]
async fn a_file_that_reads_back_differently_is_sent_again() {
    const SIZE: u64 = 20_000_000;
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let local = Local::of(usize::try_from(SIZE).unwrap());
    let relay = Relay::start(sshd.address, vec![SIZE / 2]).await;
    let known = sshd.known_as(&format!("[127.0.0.1]:{}", relay.address.port()));
    let mut sftp = client(&relay.address, &known);
    sftp.patience.wait = std::time::Duration::from_secs(3);
    let partial = sshd.home().join(format!("{REMOTE}.part"));
    let spoiling = async {
        // Once the server has noticed that the client is gone.
        let spoilt = tokio::task::spawn_blocking({
            move || {
                sshd.log_until("Starting session");
                sshd.log_until("do_cleanup");
                let size = fs::metadata(&partial).unwrap().len();
                fs::write(&partial, vec![0; usize::try_from(size).unwrap()]).unwrap();
                sshd
            }
        });
        spoilt.await.unwrap()
    };
    let (local_path, name) = (local.path(), remote());
    let (sent, sshd) = tokio::join!(sftp.upload(&local_path, &name), spoiling);
    assert_eq!(sent.unwrap(), delivered(SIZE, true));
    assert!(fs::read(sshd.home().join(REMOTE)).unwrap() == content(usize::try_from(SIZE).unwrap()));
    assert!(relay.sent.load(Ordering::SeqCst) > SIZE + SIZE / 2 - 1_000_000);
}

#[tokio::test]
async fn a_full_disk_is_named() {
    let wanted = Wanted { disk: Some(2 * 1024 * 1024), ..Wanted::default() };
    let Some(sshd) = Sshd::start(&wanted) else { return };
    let local = Local::of(5_000_000);
    let error = of(&sshd).upload(&local.path(), &remote()).await.unwrap_err();
    assert!(matches!(&error, SftpError::Full { size: 5_000_000, sent, .. } if *sent < 2_200_000), "{error}");
    assert!(!error.may_pass());
    // What does not fit was removed: what fits does.
    let small = Local::of(1_500_000);
    assert_eq!(of(&sshd).upload(&small.path(), &remote()).await.unwrap(), delivered(1_500_000, true));
}

#[tokio::test]
async fn a_file_that_is_not_there_is_no_upload() {
    let error = nobody(&"127.0.0.1:9").upload("/no/such/file".as_ref(), &remote()).await.unwrap_err();
    assert!(error.to_string().contains("cannot read /no/such/file"), "{error}");
}
