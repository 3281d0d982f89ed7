//! Uploads through proxies that are asked to connect: of this test, and `tinyproxy` where the machine has it.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use admit::gather::tunnel::Proxies;
use admit::gather::upload::sftp::{Sftp, SftpError};

use super::{Local, REMOTE, client, content, delivered, remote};
use crate::support::relay::{FakeProxy, Manner};
use crate::support::sshd::{Sshd, Wanted};

/// A name that only a proxy knows.
const NAME: &str = "sftp.example.test:2022";

/// A client of a server that is reached by `url` alone.
fn by(url: &str, sshd: &Sshd) -> Sftp {
    let mut sftp = client(&NAME, &sshd.known_as("[sftp.example.test]:2022"));
    let proxies = Proxies { https: url.to_owned(), ..Proxies::default() };
    sftp.proxy = proxies.to_sftp(&sftp.host).unwrap();
    sftp
}

#[tokio::test]
async fn a_proxy_connects_in_the_clear_and_under_tls() {
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let local = Local::of(1_000_000);
    for (under_tls, scheme) in [(false, "http"), (true, "https")] {
        let manner = Manner::Login(sshd.address, "us@r", "p:ss@w%rd");
        let proxy = FakeProxy::start(manner, under_tls).await;
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("ca.pem"), &proxy.ca).unwrap();
        let url = |login: &str| format!("{scheme}://{login}{}", proxy.address);
        let send = async |login: &str| {
            let mut sftp = by(&url(login), &sshd);
            sftp.proxy_ca = Some(dir.path().join("ca.pem"));
            sftp.upload(&local.path(), &remote()).await
        };
        for login in ["us%40r:p%3Ass%40w%25rd@", "us%40r:p:ss@w%rd@"] {
            assert_eq!(send(login).await.unwrap(), delivered(1_000_000, true), "{scheme} {login}");
        }
        assert!(fs::read(sshd.home().join(REMOTE)).unwrap() == content(1_000_000));
        assert_eq!(proxy.requests()[0], "CONNECT sftp.example.test:2022 HTTP/1.1");
        for login in ["", "us%40r:canary-wrong@"] {
            let error = send(login).await.unwrap_err();
            assert!(error.to_string().contains("(407)") && !error.may_pass(), "{error}");
            assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_proxy_of_an_unknown_authority_is_told_nothing() {
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let proxy = FakeProxy::start(Manner::Connect(sshd.address), true).await;
    let other = FakeProxy::start(Manner::Silent, true).await;
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("ca.pem"), &other.ca).unwrap();
    let mut sftp = by(&format!("https://u:p@{}", proxy.address), &sshd);
    sftp.proxy_ca = Some(dir.path().join("ca.pem"));
    let error = sftp.preflight().await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    assert!(proxy.requests().is_empty());
}

#[tokio::test]
async fn a_proxy_that_does_not_connect() {
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let huge: &'static str = String::leak("HTTP/1.1 200 OK\r\n".to_owned() + &"X: y\r\n".repeat(10_000));
    for (answer, words, may_pass, tries) in [
        ("HTTP/1.1 502 Bad Gateway\r\n\r\n", "does not connect: 502 Bad Gateway", true, 3),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", "does not connect: 403 Forbidden", false, 1),
        ("SSH-2.0-OpenSSH_9.2\r\n\r\n", "does not answer as HTTP has it", false, 1),
        ("HTTP/1.1 200 OK\r\n", "broke off", true, 3),
        (huge, "broke off", true, 3),
    ] {
        let proxy = FakeProxy::start(Manner::Answer(answer), false).await;
        let error = by(&format!("http://{}", proxy.address), &sshd).preflight().await.unwrap_err();
        assert!(error.to_string().contains(words), "{words}: {error}");
        assert_eq!((error.may_pass(), proxy.requests().len()), (may_pass, tries), "{words}: {error}");
    }
    let proxy = FakeProxy::start(Manner::Silent, false).await;
    let mut sftp = by(&format!("http://{}", proxy.address), &sshd);
    sftp.patience.handshake = Duration::from_millis(200);
    let error = sftp.preflight().await.unwrap_err();
    assert!(error.to_string().contains("answers nothing within 0 s"), "{error}");
    let error = by("http://127.0.0.1:1", &sshd).preflight().await.unwrap_err();
    assert!(
        matches!(&error, SftpError::Proxy(_)) && error.to_string().contains("Connection refused"),
        "{error}"
    );
}

/// What another wrote.
#[tokio::test]
async fn tinyproxy_connects() {
    if Command::new("tinyproxy").arg("-v").stdout(Stdio::null()).status().is_err() {
        return testing::skip(testing::Need::Other, "no tinyproxy on the PATH");
    }
    let Some(sshd) = Sshd::start(&Wanted::default()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let port = testing::free_port().unwrap();
    let config =
        format!("Port {port}\nListen 127.0.0.1\nTimeout 60\nBasicAuth robot s3cret\nMaxClients 10\n");
    fs::write(dir.path().join("config"), config).unwrap();
    let mut command = Command::new("tinyproxy");
    command.arg("-d").arg("-c").arg(dir.path().join("config")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut sftp = client(&sshd.address, &sshd.known_hosts());
    // It is asked again until it listens.
    sftp.patience.attempts = 12;
    let mut send = async |login: &str| {
        let url = format!("http://{login}127.0.0.1:{port}");
        sftp.proxy = Proxies { http: url, ..Proxies::default() }.to_sftp(&sftp.host).unwrap();
        sftp.upload(&Local::of(500_000).path(), &remote()).await
    };
    let sent = send("robot:s3cret@").await;
    let refused = send("").await;
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(sent.unwrap(), delivered(500_000, true));
    assert!(refused.unwrap_err().to_string().contains("(407)"));
}
