//! Checks that a CA bundle can be parsed: PEM blocks of which at least one holds a certificate. The contents of a
//! certificate are not checked beyond its outermost frame.

use crate::crd::definition::Definition;
use admit_apimachinery::go;

impl Definition {
    /// Whether the certificates of the conversion webhook can be read; those that are not given can. Without them the
    /// API server stores a definition and does not establish it.
    #[must_use]
    pub fn has_sound_certificates(&self) -> bool {
        let webhook = self.conversion.as_ref().and_then(|conversion| conversion.webhook.as_ref());
        let client = webhook.and_then(|webhook| webhook.client.as_ref());
        client.and_then(|client| client.ca_bundle.as_deref()).is_none_or(|bundle| problem(bundle).is_none())
    }
}

/// Returns what is wrong with the bundle, which is base64-encoded PEM.
pub(super) fn problem(bundle: &str) -> Option<&'static str> {
    let pem = go::json::bytes(bundle).unwrap_or_default();
    let pem = String::from_utf8_lossy(&pem);
    let mut rest = &*pem;
    let mut problem = None;
    while !rest.is_empty() {
        let Some((block, after)) = go::pem::first(rest) else {
            return Some(problem.unwrap_or("unable to parse bytes as PEM block"));
        };
        if block.kind == "CERTIFICATE" {
            if is_sequence(&block.bytes) {
                return None;
            }
            problem.get_or_insert("failed to parse certificate: x509: malformed certificate");
        }
        rest = after;
    }
    Some(problem.unwrap_or("no valid certificate authority data seen"))
}

/// Whether the bytes are one DER sequence from end to end.
fn is_sequence(der: &[u8]) -> bool {
    let Some((0x30, rest)) = der.split_first().map(|(tag, rest)| (*tag, rest)) else { return false };
    let Some((first, rest)) = rest.split_first() else { return false };
    if *first < 0x80 {
        return rest.len() == usize::from(*first);
    }
    let count = usize::from(*first & 0x7f);
    let Some((length, content)) = rest.split_at_checked(count) else { return false };
    let length =
        length.iter().try_fold(0_usize, |sum, byte| sum.checked_mul(256)?.checked_add(usize::from(*byte)));
    length == Some(content.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundles_may_be_written_in_lines() {
        let pem = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
        let bundle = go::base64::encode(pem);
        let (first, second) = bundle.split_at(20);
        assert_eq!(problem(&bundle), None);
        assert_eq!(problem(&format!("{first}\n{second}\n")), None);
        assert_eq!(problem(&bundle.replacen('L', "!", 1)), Some("no valid certificate authority data seen"));
    }
}
