//! Row 37 of the table, as far as it is about SFTP: whatever goes wrong on the way, no half file is ever seen under its name, the
//! next upload delivers, and what went wrong has a name. A round in the short form, twenty in the full one.

use std::fs;
use std::sync::atomic::Ordering;
use std::time::Duration;

use admit::gather::tunnel::Proxies;
use admit::gather::upload::sftp::{HostKeyError, Patience, Sftp, SftpError};
use serde_json::json;

use super::{BRIEF, Local, REMOTE, client, content, delivered, of, remote};
use crate::soak::{Random, scaled};
use crate::support::relay::{FakeProxy, Manner, Relay};
use crate::support::reliability::Row;
use crate::support::sshd::{Sshd, Wanted, keygen};

const ROUNDS: usize = 20;
/// What is sent for a login, a subsystem and a name, before the first byte of a file.
const GREETING: u64 = 4_000;

/// Looks at what is there under the final name: nothing, or all of it.
fn never_half(sshd: &Sshd, size: usize) -> bool {
    match fs::read(sshd.home().join(REMOTE)) {
        Ok(found) => {
            assert!(found == content(size), "half a file is seen under its name: {} of {size}", found.len());
            true
        }
        Err(_) => false,
    }
}

/// A client whose connection is cut once in each tenth: it gives up there, as one that is killed does, and comes again.
async fn cuts(rounds: usize, row: &mut Row) {
    const SIZE: usize = 3_000_000;
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let local = Local::of(SIZE);
    let (mut random, mut cut, mut whole) = (Random(0x5eed), 0, 0);
    for _ in 0..rounds {
        for tenth in 0..10_u64 {
            let _ = fs::remove_file(sshd.home().join(REMOTE));
            let within = random.below(SIZE / 10) as u64;
            let relay = Relay::start(sshd.address, vec![GREETING + tenth * SIZE as u64 / 10 + within]).await;
            let known = sshd.known_as(&format!("[127.0.0.1]:{}", relay.address.port()));
            let once = Patience { attempts: 1, ..BRIEF };
            let first = Sftp { patience: once, ..client(&relay.address, &known) };
            let error = first.upload(&local.path(), &remote()).await;
            cut += usize::from(matches!(error, Err(SftpError::Lost { .. } | SftpError::TimedOut { .. })));
            assert_eq!(never_half(&sshd, SIZE), error.is_ok(), "{error:?}");
            // Another process, which knows nothing of what came before.
            let sent = client(&relay.address, &known).upload(&local.path(), &remote()).await.unwrap();
            assert_eq!(sent, delivered(SIZE as u64, true));
            assert!(never_half(&sshd, SIZE));
            assert_eq!(sshd.files(), [REMOTE], "something is left behind");
            whole += 1;
            assert_eq!(relay.taken.load(Ordering::SeqCst), 2);
        }
    }
    assert_eq!(cut, whole, "not every connection was cut");
    row.measured(json!({"cuts": cut, "half files": 0, "delivered": whole}));
}

/// A disk that is full at some byte of the file, which then leaves room for what fits.
async fn full_disks(rounds: usize, row: &mut Row) {
    const DISK: usize = 2 * 1024 * 1024;
    let Some(sshd) = Sshd::start(&Wanted { disk: Some(DISK), ..Wanted::default() }) else { return };
    let mut random = Random(0xd15c);
    for _ in 0..rounds {
        let too_large = Local::of(DISK + 1 + random.below(4 * DISK));
        let error = of(&sshd).upload(&too_large.path(), &remote()).await.unwrap_err();
        assert!(matches!(error, SftpError::Full { .. }) && !error.may_pass(), "{error}");
        // What did not fit is gone: else what fits would not, in one of the next rounds.
        let size = 1 + random.below(DISK / 2);
        let fits = Local::of(size);
        assert_eq!(of(&sshd).upload(&fits.path(), &remote()).await.unwrap(), delivered(size as u64, true));
    }
    row.measured(json!({"full disks": rounds}));
}

/// A stranger with the address of the server: what it is sent is no login. What is sent to a proxy is a request for a connection.
async fn strangers(rounds: usize, row: &mut Row) {
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let dir = tempfile::tempdir().unwrap();
    for round in 0..rounds {
        let key = dir.path().join(format!("{round}"));
        keygen("ed25519", &key);
        let other = fs::read_to_string(key.with_extension("pub")).unwrap();
        let name = format!("[127.0.0.1]:{}", sshd.address.port());
        let error = client(&sshd.address, &format!("{name} {other}")).preflight().await.unwrap_err();
        assert!(matches!(&error, SftpError::HostKey(HostKeyError::Differs { .. })), "{error}");
        assert!(!error.may_pass());
        let log = sshd.log_until("Connection closed by");
        assert!(!log.contains("userauth-request"), "{log}");
    }
    row.measured(json!({"other host keys": rounds, "logins sent to them": 0}));
}

async fn proxies(rounds: usize, row: &mut Row) {
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let mut seen = 0;
    for _ in 0..rounds {
        for (manner, words) in [
            (Manner::Login(sshd.address, "u", "p"), "(407)"),
            (Manner::Answer("HTTP/1.1 502 Bad Gateway\r\n\r\n"), "502 Bad Gateway"),
            (Manner::Silent, "answers nothing within"),
        ] {
            for under_tls in [false, true] {
                let proxy = FakeProxy::start(manner.clone(), under_tls).await;
                let dir = tempfile::tempdir().unwrap();
                fs::write(dir.path().join("ca.pem"), &proxy.ca).unwrap();
                let scheme = if under_tls { "https" } else { "http" };
                let url = format!("{scheme}://u:canary-4718@{}", proxy.address);
                let mut sftp = of(&sshd);
                sftp.proxy = Proxies { https: url, ..Proxies::default() }.to_sftp(&sftp.host).unwrap();
                sftp.proxy_ca = Some(dir.path().join("ca.pem"));
                sftp.patience.handshake = Duration::from_secs(1);
                let error = sftp.upload(&Local::of(10).path(), &remote()).await.unwrap_err();
                assert!(error.to_string().contains(words), "{words}: {error}");
                assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
                seen += 1;
            }
        }
    }
    row.measured(json!({"proxies that do not connect": seen}));
}

async fn no_subsystem(rounds: usize, row: &mut Row) {
    let Some(sshd) = Sshd::start(&Wanted { subsystem: "", ..Wanted::default() }) else { return };
    for _ in 0..rounds {
        let error = of(&sshd).upload(&Local::of(10).path(), &remote()).await.unwrap_err();
        assert_eq!(error.to_string(), "SFTP subsystem not available on the server");
    }
    row.measured(json!({"servers without the subsystem": rounds}));
}

#[tokio::test(flavor = "multi_thread")]
async fn row_37_uploads_by_sftp_a_round() {
    let mut row = Row::short(37, "a round of faults");
    cuts(1, &mut row).await;
    full_disks(1, &mut row).await;
    strangers(1, &mut row).await;
    proxies(1, &mut row).await;
    no_subsystem(1, &mut row).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes long; scripts/soak runs it"]
async fn row_37_uploads_by_sftp() {
    let rounds = scaled(ROUNDS);
    let mut row = Row::full(37, "rounds of faults", crate::soak::percent());
    cuts(rounds, &mut row).await;
    full_disks(rounds, &mut row).await;
    strangers(rounds, &mut row).await;
    proxies(rounds, &mut row).await;
    no_subsystem(rounds, &mut row).await;
}
