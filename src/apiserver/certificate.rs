//! The user that a client certificate names: the common name of its subject, and its organizations as groups.
//!
//! Only the subject is read, by walking the DER structure down to it. Whether the certificate is to be trusted was
//! decided before.

use crate::digest;
use crate::identity::Identity;

const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
/// 2.5.4.3
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
/// 2.5.4.10
const ORGANIZATION: [u8; 3] = [0x55, 0x04, 0x0a];

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
const EXPLICIT_VERSION: u8 = 0xa0;

/// None when the certificate cannot be read or has no common name.
pub(crate) fn identity(der: &[u8]) -> Option<Identity> {
    let names = subject(der)?;
    let common_name = names.iter().find(|(kind, _)| *kind == COMMON_NAME).map(|(_, text)| text.clone())?;
    let groups = names.iter().filter(|(kind, _)| *kind == ORGANIZATION).map(|(_, text)| text.clone());
    let mut identity = Identity::new(common_name, groups);
    let id = format!("X509SHA256={}", digest::sha256_hex(der));
    identity.extra.insert(CREDENTIAL_ID.to_owned(), vec![id]);
    Some(identity)
}

/// The attributes of the subject: (object identifier, text).
fn subject(der: &[u8]) -> Option<Vec<(Vec<u8>, String)>> {
    let (certificate, _) = expect(der, SEQUENCE)?;
    let (mut fields, _) = expect(certificate, SEQUENCE)?;
    if let Some((EXPLICIT_VERSION, _, rest)) = element(fields) {
        fields = rest;
    }
    // Serial number, signature algorithm, issuer and validity stand before the subject.
    for _ in 0..4 {
        fields = element(fields)?.2;
    }
    let (mut sets, _) = expect(fields, SEQUENCE)?;
    let mut names = Vec::new();
    while !sets.is_empty() {
        let (mut attributes, rest) = expect(sets, SET)?;
        sets = rest;
        while !attributes.is_empty() {
            let (attribute, rest) = expect(attributes, SEQUENCE)?;
            attributes = rest;
            let (kind, value) = expect(attribute, OBJECT_ID)?;
            let text = String::from_utf8_lossy(element(value)?.1).into_owned();
            names.push((kind.to_vec(), text));
        }
    }
    Some(names)
}

/// The content of the element that stands first, which must have this tag, and what follows it.
fn expect(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = element(der)?;
    (found == tag).then_some((content, rest))
}

/// Tag, content and what follows.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = if *first < 0x80 {
        (usize::from(*first), rest)
    } else {
        // Longer forms say how many bytes the length has; four are more than any certificate needs.
        let count = usize::from(first & 0x7f);
        if count > 4 {
            return None;
        }
        let (bytes, rest) = rest.split_at_checked(count)?;
        (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}
