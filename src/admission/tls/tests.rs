//! Tests the life of an authority: creation, reuse, renewal, expiry.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use time::{Duration, OffsetDateTime};

use super::*;

fn now() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_790_000_000).unwrap()
}

#[test]
fn an_authority_is_reused_until_two_thirds_of_its_life() {
    let folder = tempfile::tempdir().unwrap();
    let first = Authority::open(folder.path(), now()).unwrap();
    let later = Authority::open(folder.path(), now() + Duration::days(6 * 365)).unwrap();
    assert_eq!(first.certificate_pem(), later.certificate_pem());
    let renewed = Authority::open(folder.path(), now() + Duration::days(7 * 365)).unwrap();
    assert_ne!(first.certificate_pem(), renewed.certificate_pem());
}

#[test]
fn an_authority_of_the_future_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let first = Authority::open(folder.path(), now() + Duration::days(4_000)).unwrap();
    let renewed = Authority::open(folder.path(), now()).unwrap();
    assert_ne!(first.certificate_pem(), renewed.certificate_pem());
    assert_eq!(Authority::open(folder.path(), now()).unwrap().certificate_pem(), renewed.certificate_pem());
}

#[test]
fn keys_are_for_the_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    Authority::open(folder.path(), now()).unwrap();
    let mode = fs::metadata(folder.path().join("ca.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn an_expired_authority_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    Authority::open(folder.path(), now()).unwrap();
    let error = Authority::open(folder.path(), now() + Duration::days(11 * 365)).unwrap_err().to_string();
    assert!(error.contains("expired on") && error.contains("delete ca.crt and ca.key"), "{error}");
}

#[test]
fn half_an_authority_and_garbage_are_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ca.crt"), "not a certificate").unwrap();
    let error = Authority::open(folder.path(), now()).unwrap_err().to_string();
    assert!(error.contains("ca.key") && error.contains("delete"), "{error}");
    fs::write(folder.path().join("ca.key"), "not a key").unwrap();
    let error = Authority::open(folder.path(), now()).unwrap_err().to_string();
    assert!(error.contains("holds no usable certificate"), "{error}");
}

#[test]
fn a_leaf_makes_a_server_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::open(folder.path(), now()).unwrap();
    let leaf = authority.issue_server(&["localhost".to_owned(), "127.0.0.1".to_owned()], now()).unwrap();
    let config = server_config(&leaf, Some(authority.certificate_pem())).unwrap();
    assert_eq!(config.alpn_protocols, [b"http/1.1".to_vec()]);
    let stranger = Identity { certificate_pem: leaf.certificate_pem, key_pem: "none".to_owned() };
    assert!(server_config(&stranger, None).is_err());
}
