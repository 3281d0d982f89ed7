//! Uploads of archives by proxies that are asked to connect: of this test, and `tinyproxy` where the machine has it.

use std::fs;
use std::process::{Command, Stdio};

use admit::gather::tunnel::{Proxies, ProxyError};
use admit::gather::upload::{Outlet, TransportError, UploadError, Uploaded};
use serde_json::json;

use super::ingress::{Answers, FakeIngress, NAMED_URL};
use super::{CANARY, Files, NOW, ca, loopback};
use crate::support::relay::{FakeProxy, Manner};
use crate::support::reliability::Row;

const LOGIN: Option<(&str, &str)> = Some(("us@r", "p:ss@w%rd"));

fn by(url: &str) -> Proxies {
    Proxies { https: url.to_owned(), ..Proxies::default() }
}

/// Uploads to the service under the name that only proxies know.
async fn upload(
    files: &Files,
    service: &FakeIngress,
    proxy: &FakeProxy,
    proxies: Proxies,
) -> Result<Uploaded, UploadError> {
    fs::write(files.path("ca.pem"), &service.ca_pem).unwrap();
    fs::write(files.path("proxy-ca.pem"), &proxy.ca).unwrap();
    let outlet = Outlet::new(Some(&files.path("ca.pem")), Some(&files.path("proxy-ca.pem")), &loopback());
    let client = files.client(outlet.unwrap().transport(proxies), NAMED_URL);
    client.upload(&files.path("archive"), NOW).await
}

#[tokio::test]
async fn a_proxy_connects_in_the_clear_and_under_tls() {
    let files = Files::new(CANARY);
    for (under_tls, scheme) in [(false, "http"), (true, "https")] {
        let service = FakeIngress::start(Answers::accept("abc")).await;
        let proxy = FakeProxy::start(Manner::Quiet(service.address, LOGIN), under_tls).await;
        let url = |login: &str| format!("{scheme}://{login}{}", proxy.address);
        for login in ["us%40r:p%3Ass%40w%25rd@", "us%40r:p:ss@w%rd@"] {
            let sent = upload(&files, &service, &proxy, by(&url(login))).await;
            assert_eq!(sent.unwrap().request_id, "abc", "{scheme} {login}");
        }
        assert_eq!(proxy.requests()[0], "CONNECT ingest.example.test:443 HTTP/1.1");
        assert_eq!(service.uploads()[0].authorization, format!("Bearer {CANARY}"));
        assert_eq!(service.uploads()[0].parts[0].content, fs::read(files.path("archive")).unwrap());
        for login in ["", "us%40r:canary-wrong@"] {
            let error = upload(&files, &service, &proxy, by(&url(login))).await.unwrap_err();
            assert!(error.to_string().contains("(407)") && !error.may_pass(), "{error}");
            assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        }
        assert_eq!(service.uploads().len(), 2, "{scheme}");
    }
}

/// The authority of a proxy speaks for the proxy alone, and that of the service for the service.
#[tokio::test]
async fn an_authority_is_trusted_for_its_own() {
    let files = Files::new(CANARY);
    let service = FakeIngress::start(Answers::accept("abc")).await;
    let proxy = FakeProxy::start(Manner::Quiet(service.address, None), true).await;
    let url = format!("https://u:canary@{}", proxy.address);
    fs::write(files.path("service.pem"), &service.ca_pem).unwrap();
    fs::write(files.path("proxy.pem"), &proxy.ca).unwrap();
    for (ca, proxy_ca, asked) in [("service.pem", "service.pem", 0), ("proxy.pem", "proxy.pem", 1)] {
        let outlet = Outlet::new(Some(&files.path(ca)), Some(&files.path(proxy_ca)), &loopback()).unwrap();
        let client = files.client(outlet.transport(by(&url)), NAMED_URL);
        let error = client.upload(&files.path("archive"), NOW).await.unwrap_err();
        assert!(error.to_string().contains("certificate"), "{error}");
        assert_eq!(proxy.requests().len(), asked, "{ca}");
    }
    assert!(service.uploads().is_empty());
}

#[tokio::test]
async fn hosts_of_the_list_are_reached_without_a_proxy() {
    let files = Files::new(CANARY);
    let service = FakeIngress::start(Answers::accept("abc")).await;
    let proxy = FakeProxy::start(Manner::Quiet(service.address, None), false).await;
    for none in
        ["*", ".example.test", "example.test", "ingest.example.test:443", "a.test, INGEST.example.test"]
    {
        let proxies = Proxies { none: none.to_owned(), ..by(&format!("http://{}", proxy.address)) };
        let error = upload(&files, &service, &proxy, proxies).await.unwrap_err();
        assert!(error.to_string().contains("cannot look up `ingest.example.test`"), "{none}: {error}");
    }
    assert!(proxy.requests().is_empty());
    for none in ["ingest.example.test:8443", ".ingest.example.test", "10.0.0.0/8", ""] {
        let proxies = Proxies { none: none.to_owned(), ..by(&format!("http://{}", proxy.address)) };
        upload(&files, &service, &proxy, proxies).await.unwrap();
    }
    assert_eq!(service.uploads().len(), 4);
}

#[tokio::test]
async fn a_proxy_that_does_not_connect() {
    let files = Files::new(CANARY);
    let service = FakeIngress::start(Answers::accept("abc")).await;
    let huge: &'static str = String::leak("HTTP/1.1 200 OK\r\n".to_owned() + &"X: y\r\n".repeat(10_000));
    for (answer, words, may_pass, tries) in [
        ("HTTP/1.1 502 Bad Gateway\r\n\r\n", "does not connect: 502 Bad Gateway", true, 3),
        ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "wants a login, or another (407)", false, 1),
        ("HTTP/1.1 403 dTpjYW5hcnktcHJveHk= canary-proxy\r\n\r\n", "does not connect: 403", false, 1),
        ("SSH-2.0-OpenSSH_9.2\r\n\r\n", "does not answer as HTTP has it", false, 1),
        ("HTTP/1.1 200 OK\r\n", "broke off", true, 3),
        (huge, "broke off", true, 3),
    ] {
        let proxy = FakeProxy::start(Manner::Answer(answer), false).await;
        fs::write(files.path("ca.pem"), &service.ca_pem).unwrap();
        let outlet = Outlet::new(Some(&files.path("ca.pem")), None, &loopback()).unwrap();
        let url = format!("http://u:canary-proxy@{}", proxy.address);
        let mut client = files.client(outlet.transport(by(&url)), NAMED_URL);
        client.pacing.upload_attempts = 3;
        client.pacing.upload_wait = std::time::Duration::ZERO;
        let error = client.upload(&files.path("archive"), NOW).await.unwrap_err();
        assert!(error.to_string().contains(words), "{words}: {error}");
        assert_eq!((error.may_pass(), error.code(), proxy.requests().len()), (may_pass, 0, tries), "{error}");
        let told = format!("{error} {error:?}");
        assert!(!told.contains("canary") && !told.contains("Y2FuYXJ5LXByb3h5"), "{told}");
        assert!(!told.contains("dTpjYW5hcnktcHJveHk"), "{told}");
    }
    assert!(service.uploads().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_silent_proxy_is_given_up_after_half_a_minute() {
    let files = Files::new(CANARY);
    let proxy = FakeProxy::start(Manner::Silent, false).await;
    let outlet = Outlet::new(Some(&ca(&files)), None, &loopback()).unwrap();
    let client = files.client(outlet.transport(by(&format!("http://{}", proxy.address))), NAMED_URL);
    let started = tokio::time::Instant::now();
    let error = client.upload(&files.path("archive"), NOW).await.unwrap_err();
    assert!(
        matches!(&error, UploadError::Transport(TransportError::Proxy(ProxyError::Silent { .. }))),
        "{error:?}"
    );
    assert_eq!(started.elapsed().as_secs(), 30);
}

/// However an address is written, no proxy is asked for one that is not public; and none is asked that is at such an address itself.
#[tokio::test]
async fn row_37_no_proxy_leads_to_addresses_that_are_not_public() {
    let mut row = Row::short(37, "uploads by a proxy to addresses that are not public");
    let files = Files::new(CANARY);
    let service = FakeIngress::start(Answers::accept("abc")).await;
    let proxy = FakeProxy::start(Manner::Quiet(service.address, None), false).await;
    let proxies = by(&format!("http://{}", proxy.address));
    let send = async |url: &str, allowed: &[_]| {
        let outlet = Outlet::new(Some(&ca(&files)), None, allowed).unwrap();
        let mut client = files.client(outlet.transport(proxies.clone()), url);
        client.pacing.upload_attempts = 4;
        client.pacing.upload_wait = std::time::Duration::ZERO;
        client.upload(&files.path("archive"), NOW).await.unwrap_err()
    };
    let hosts = [
        "169.254.169.254",
        "0xa9fea9fe",
        "2852039166",
        "169.254.43518",
        "0251.0376.0251.0376",
        "0xA9.254.0xa9fe",
        "169.254.169.254.",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::]",
        "[fd00:ec2::254]",
        "10.0.0.1",
        "10.1",
        "012.0.0.1",
        "192.168.0.1",
        "172.16.0.1",
        "100.64.0.1",
        "[fe80::1]",
        "[fc00::1]",
        "0.0.0.0",
        "0",
        "0x0",
        "[::]",
        "1.2.3.4.5",
        "127.0.0.2",
        "127.2",
        "0x7f000002",
        "2130706434",
        "[::1]",
        "[::ffff:127.0.0.2]",
    ];
    // The proxy itself is allowed, and nothing else is.
    let allowed = ["127.0.0.1".parse().unwrap()];
    for host in hosts {
        let error = send(&format!("https://{host}/upload"), &allowed).await;
        let forbidden = matches!(&error, UploadError::Transport(TransportError::Forbidden(_)));
        let nothing = error.to_string().contains("cannot look up");
        assert!(forbidden && !error.may_pass() || nothing, "{host}: {error}");
    }
    let error = send(NAMED_URL, &[]).await;
    assert!(error.to_string().contains("--allow-upload-to 127.0.0.1") && !error.may_pass(), "{error}");
    assert!(proxy.requests().is_empty(), "{:?}", proxy.requests());
    row.measured(json!({"spellings": hosts.len(), "requestsToTheProxy": 0}));
}

/// What another wrote: it hands on to a proxy of this test, which knows the name.
#[tokio::test]
async fn tinyproxy_connects() {
    if Command::new("tinyproxy").arg("-v").stdout(Stdio::null()).status().is_err() {
        return testing::skip(testing::Need::Other, "no tinyproxy on the PATH");
    }
    let files = Files::new(CANARY);
    let service = FakeIngress::start(Answers::accept("abc")).await;
    let behind = FakeProxy::start(Manner::Quiet(service.address, None), false).await;
    let port = testing::free_port().unwrap();
    let config = format!(
        "Port {port}\nListen 127.0.0.1\nTimeout 60\nBasicAuth robot s3cret\nMaxClients 10\nUpstream http {}\n",
        behind.address
    );
    fs::write(files.path("tinyproxy"), config).unwrap();
    let mut command = Command::new("tinyproxy");
    command.arg("-d").arg("-c").arg(files.path("tinyproxy")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // Asked again until it listens.
    let mut send = async |login: &str| {
        loop {
            match upload(&files, &service, &behind, by(&format!("http://{login}127.0.0.1:{port}"))).await {
                Err(error) if error.to_string().contains("Connection refused") => {
                    assert!(child.try_wait().unwrap().is_none(), "{error}");
                    tokio::task::yield_now().await;
                }
                ended => break ended,
            }
        }
    };
    let sent = send("robot:s3cret@").await;
    let refused = send("").await;
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(sent.unwrap().request_id, "abc");
    assert!(refused.unwrap_err().to_string().contains("(407)"));
    assert_eq!(service.uploads().len(), 1);
}
