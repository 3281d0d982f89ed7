//! Manages the certificates that a webhook creates for itself: an authority and a serving certificate, which are renewed while the
//! old ones are still valid, and the CA bundle by which callers trust both.
//!
//! INVARIANT: callers with the current bundle, or the one before it, trust the served certificate. A new authority
//! is therefore first added to the bundle, and signs only once [`Managed::renew`] is called with `distributed`, which says that
//! callers have it; the old one stays in the bundle until it expires.
//!
//! If the clock was ahead for a while, there may be certificates with a validity in the future, which clients with the right time
//! reject: they are treated as expired.

use admit_apimachinery::go;
use time::{Duration, OffsetDateTime};
use x509_parser::pem::Pem;

use super::authority::{Authority, AuthorityError, Identity, Life, domains};

/// The validity of new certificates.
#[derive(Clone, Copy, Debug)]
pub struct Lives {
    pub authority: Duration,
    pub leaf: Duration,
}

impl Default for Lives {
    fn default() -> Self {
        Self { authority: Duration::days(365), leaf: Duration::days(90) }
    }
}

/// The contents of a Secret of type `kubernetes.io/tls`, with the authority; all PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Managed {
    /// `ca.crt`: the certificates of all trusted authorities, newest first.
    pub bundle: String,
    /// `ca.key`: the key of the newest authority.
    pub authority_key: String,
    /// `tls.crt`
    pub certificate: String,
    /// `tls.key`
    pub key: String,
}

/// What has changed, and what the caller has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// Nothing has changed.
    Nothing,
    /// The bundle has a new authority: it must be distributed to callers before the next renewal.
    Bundle,
    /// There is a new serving certificate.
    Leaf,
}

impl std::fmt::Debug for Managed {
    /// Does not print keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Managed").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl Managed {
    /// Renews what is missing, unreadable, not valid for all DNS names `names`, past two thirds of its validity at
    /// `now`, or not valid yet. It does one step per call: callers must have the bundle of one renewal (`distributed` is true) before the
    /// new authority may sign.
    ///
    /// # Errors
    /// When no certificate can be issued for `names`.
    pub fn renew(
        &mut self,
        names: &[String],
        lives: Lives,
        distributed: bool,
        now: OffsetDateTime,
    ) -> Result<Renewal, AuthorityError> {
        let newest = self.authorities().next().unwrap_or_default();
        let usable = Authority::from_pem(&newest, &self.authority_key).ok();
        let Some(authority) = usable.filter(|_| is_fresh(&newest, now)) else {
            self.announce(lives, now)?;
            return Ok(Renewal::Bundle);
        };
        let domains = domains(&self.certificate);
        let needed = !is_fresh(&self.certificate, now)
            || self.key.is_empty()
            || !self.is_trusted(now)
            || !names.iter().all(|name| domains.contains(name));
        // While the old certificate is valid, an authority that callers do not know yet signs nothing.
        let overdue = self.certificate.is_empty() || !is_valid(&self.certificate, now);
        if !needed || !(distributed || overdue) {
            return Ok(Renewal::Nothing);
        }
        let leaf = authority.issue_server_for(names, now, lives.leaf)?;
        (self.certificate, self.key) = (leaf.certificate_pem, leaf.key_pem);
        Ok(Renewal::Leaf)
    }

    /// Returns the serving certificate and its key; None before the first renewals.
    #[must_use]
    pub fn identity(&self) -> Option<Identity> {
        let made = !self.certificate.is_empty() && !self.key.is_empty();
        made.then(|| Identity { certificate_pem: self.certificate.clone(), key_pem: self.key.clone() })
    }

    /// Puts a new authority before those that are still valid.
    fn announce(&mut self, lives: Lives, now: OffsetDateTime) -> Result<(), AuthorityError> {
        let (authority, key) = Authority::make(now, lives.authority)?;
        let mut bundle = authority.certificate_pem().to_owned();
        for old in self.authorities().filter(|old| is_valid(old, now)) {
            bundle.push_str(&old);
        }
        (self.bundle, self.authority_key) = (bundle, key);
        Ok(())
    }

    fn authorities(&self) -> impl Iterator<Item = String> + use<> {
        let blocks = Pem::iter_from_buffer(self.bundle.as_bytes()).map_while(Result::ok);
        let certificates: Vec<String> = blocks.map(|block| pem(&block.contents)).collect();
        certificates.into_iter()
    }

    /// Whether the serving certificate is signed by an authority of the bundle that is valid beyond its renewal.
    fn is_trusted(&self, now: OffsetDateTime) -> bool {
        let authorities: Vec<String> = self.authorities().filter(|ca| is_valid(ca, now)).collect();
        authorities.iter().any(|ca| signed_by(&self.certificate, ca))
    }
}

fn pem(der: &[u8]) -> String {
    let text = go::base64::encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

/// Whether a certificate is valid already, and the first two thirds of its validity are not over.
fn is_fresh(certificate: &str, now: OffsetDateTime) -> bool {
    Life::of(certificate).is_ok_and(|life| life.not_before <= now && now < life.renew_at())
}

fn is_valid(certificate: &str, now: OffsetDateTime) -> bool {
    Life::of(certificate).is_ok_and(|life| life.not_before <= now && now < life.not_after)
}

/// Compares the key identifiers, which authorities of this program always write.
fn signed_by(certificate: &str, authority: &str) -> bool {
    let (Some(wanted), Some(own)) =
        (super::authority::signer(certificate), super::authority::key_id(authority))
    else {
        return false;
    };
    wanted == own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_in_the_future_is_made_anew() {
        let now = OffsetDateTime::from_unix_timestamp(1_790_000_000).unwrap();
        let (names, lives, ahead) = (["a".to_owned()], Lives::default(), now + Duration::days(4_000));
        let mut managed = Managed::default();
        let mut renew = |distributed, now| managed.renew(&names, lives, distributed, now).unwrap();
        assert_eq!([renew(true, ahead), renew(true, ahead)], [Renewal::Bundle, Renewal::Leaf]);
        // Callers that still have the old bundle would reject the new certificate.
        assert_eq!([renew(true, now), renew(false, now)], [Renewal::Bundle, Renewal::Leaf]);
        assert_eq!(renew(true, now), Renewal::Nothing);
        assert_eq!(managed.authorities().count(), 1, "nobody is to trust the one of the future in years");
        // A clock that is ahead by less than certificates are backdated is no reason for a renewal.
        assert!(is_fresh(&managed.certificate, now - Duration::minutes(59)));
        assert!(!is_fresh(&managed.certificate, now - Duration::minutes(61)));
    }

    #[test]
    fn what_is_unreadable_is_made_anew() {
        let now = OffsetDateTime::from_unix_timestamp(1_790_000_000).unwrap();
        let names = ["a".to_owned()];
        let mut managed = Managed {
            bundle: "none".to_owned(),
            authority_key: "none".to_owned(),
            certificate: "none".to_owned(),
            key: "none".to_owned(),
        };
        assert_eq!(managed.renew(&names, Lives::default(), true, now).unwrap(), Renewal::Bundle);
        assert_eq!(managed.renew(&names, Lives::default(), true, now).unwrap(), Renewal::Leaf);
        assert_eq!(managed.renew(&names, Lives::default(), true, now).unwrap(), Renewal::Nothing);
        // The Service was renamed, and the Secret kept.
        let renamed = ["b".to_owned(), "a".to_owned()];
        assert_eq!(managed.renew(&renamed, Lives::default(), true, now).unwrap(), Renewal::Leaf);
        assert_eq!(domains(&managed.certificate), renamed);
        // A certificate for more names is valid for fewer: replicas with an older name do not replace it.
        assert_eq!(managed.renew(&names, Lives::default(), true, now).unwrap(), Renewal::Nothing);
        assert!(managed.identity().is_some() && !format!("{managed:?}").contains("PRIVATE"));
    }
}
