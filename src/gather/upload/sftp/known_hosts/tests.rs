//! Tests entries in the format of `ssh-keygen`, and which servers they match.

use super::*;

const ED25519: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIGPKSUTyz1HwHReFVvD5obVsALAgJRNarH4TRpNePnAS";
const OTHER: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIJ1Hlh9Ef1pCJyv7+cV0xJHgjoQ3wqfEz/2ySDeAZqpA";

fn wire(encoded: &str) -> Vec<u8> {
    go::json::bytes(encoded).unwrap()
}

fn host(text: &str) -> Host {
    text.parse().unwrap()
}

fn known(text: &str) -> KnownHosts {
    KnownHosts::parse(text).unwrap()
}

fn accepted(hosts: &str, name: &str) -> bool {
    known(&format!("{hosts} ssh-ed25519 {ED25519} a comment")).check(&host(name), &wire(ED25519), "K").is_ok()
}

#[test]
fn hosts_are_matched_as_openssh_matches_them() {
    for (hosts, name, expected) in [
        ("sftp.example.com", "sftp.example.com", true),
        ("SFTP.example.com", "sftp.EXAMPLE.com", true),
        ("sftp.example.com", "sftp.example.com:2222", false),
        ("[sftp.example.com]:2222", "sftp.example.com:2222", true),
        ("[sftp.example.com]:2222", "sftp.example.com", false),
        ("a,sftp.example.com,b", "sftp.example.com", true),
        ("*.example.com", "sftp.example.com", true),
        ("*.example.com,!sftp.example.com", "sftp.example.com", false),
        ("*.exa?ple.*", "sftp.example.com", true),
        ("*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ("192.0.2.*", "192.0.2.7", true),
        ("2001:db8::1", "2001:db8::1", true),
        ("[::1]:2222", "[::1]:2222", true),
    ] {
        assert_eq!(accepted(hosts, name), expected, "{hosts} {name}");
    }
}

/// The last entry was created by `ssh-keygen -H`.
#[test]
fn hashed_names() {
    let salt = [7u8; 20];
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &salt);
    let hash = hmac::sign(&key, b"[sftp.example.com]:2222");
    let hosts = format!("|1|{}|{}", go::base64::encode(salt), go::base64::encode(hash.as_ref()));
    assert!(accepted(&hosts, "sftp.example.com:2222"));
    assert!(!accepted(&hosts, "sftp.example.com"));
    assert!(!accepted("|1|nothing", "sftp.example.com"));
    let recorded = "|1|JtAkosO4EacCsRI8YLexlNH2QSY=|AsD7WhKiTOWkN1hwG5PjtVOA4DM=";
    assert!(accepted(recorded, "sftp.example.com:2222"));
    assert!(!accepted(recorded, "sftp.example.com:2223"));
}

#[test]
fn a_key_is_refused_by_name() {
    let text = format!(
        "# ours\n\nsftp.example.com ssh-ed25519 {ED25519}\n@revoked * ssh-ed25519 {OTHER}\n\
         @cert-authority *.test ssh-ed25519 {OTHER}\n"
    );
    let known = known(&text);
    let check = |name, key| known.check(&host(name), &wire(key), "SHA256:x").unwrap_err();
    let sftp = || "sftp.example.com".to_owned();
    let presented = || "SHA256:x".to_owned();
    assert_eq!(
        check("sftp.example.com", OTHER),
        HostKeyError::Revoked { line: 4, host: sftp(), presented: presented() }
    );
    assert_eq!(check("a.example.com", ED25519), HostKeyError::Unknown("a.example.com".to_owned()));
    assert_eq!(check("a.test", ED25519), HostKeyError::CertAuthority { line: 5, host: "a.test".to_owned() });
    let mut changed = wire(ED25519);
    *changed.last_mut().unwrap() ^= 1;
    assert_eq!(
        known.check(&host("sftp.example.com"), &changed, "SHA256:x"),
        Err(HostKeyError::Differs { host: sftp(), presented: presented() })
    );
    assert_eq!(known.kinds(&host("sftp.example.com")).unwrap(), ["ssh-ed25519"]);
}

#[test]
fn a_line_that_is_no_entry_is_named() {
    for line in [
        "sftp.example.com",
        "sftp.example.com ssh-ed25519",
        "sftp.example.com ssh-ed25519 ???",
        "sftp.example.com ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIGPKSUTyz1HwHReFVvD5obVsALAgJRNarH4TRpNePnAS",
        "sftp.example.com ssh-ed25519 AAAA",
        "@trusted a ssh-ed25519 AAAA",
    ] {
        let error = KnownHosts::parse(&format!("# one\n{line}\n")).unwrap_err();
        assert!(matches!(error, HostKeyError::Line { line: 2, .. }), "{line}: {error}");
    }
}
