//! Row 26: certificates that renew themselves, seen by callers whose clocks and bundles are not of this moment.

use std::sync::Arc;

use admit::admission::tls::{Lives, Managed, Renewal};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use serde_json::json;
use time::{Duration, OffsetDateTime};

use crate::support::reliability::Row;

pub(super) const NAME: &str = "admit.admit-system.svc";

pub(super) fn verifies(bundle: &str, leaf: &str, now: OffsetDateTime) -> bool {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let leaf = CertificateDer::from_pem_slice(leaf.as_bytes()).unwrap();
    let name = ServerName::try_from(NAME).unwrap();
    let seconds = u64::try_from(now.unix_timestamp()).unwrap();
    let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
    verifier.verify_server_cert(&leaf, &[], &name, &[], now).is_ok()
}

/// Lets time pass in `step`s, and holds every bundle that callers have against what is served, by clocks that go wrong by
/// `clocks`; how often an authority, a leaf, and a bundle were made, made and held.
fn live(lives: Lives, step: Duration, steps: i32, clocks: &[Duration]) -> [usize; 3] {
    let names = [NAME.to_owned()];
    let start = OffsetDateTime::from_unix_timestamp(1_790_000_000).unwrap();
    let (mut managed, mut given) = (Managed::default(), String::new());
    let [mut authorities, mut leaves, mut held] = [0; 3];
    for number in 0..steps {
        let now = start + step * number;
        // Callers are given each bundle some steps late.
        let distributed = number % 5 == 0;
        if distributed {
            given.clone_from(&managed.bundle);
        }
        match managed.renew(&names, lives, distributed && !given.is_empty(), now).unwrap() {
            Renewal::Nothing => {}
            Renewal::Bundle => authorities += 1,
            Renewal::Leaf => leaves += 1,
        }
        if given.is_empty() || managed.certificate.is_empty() {
            continue;
        }
        for (bundle, clock) in
            [&given, &managed.bundle].into_iter().flat_map(|b| clocks.iter().map(move |c| (b, c)))
        {
            assert!(
                verifies(bundle, &managed.certificate, now + *clock),
                "step {number}, a clock off by {clock}"
            );
            held += 1;
        }
    }
    [authorities, leaves, held]
}

/// A clock that is ahead by more than a certificate lives refuses every certificate, so that ten minutes ahead are tried
/// with lives of hours, and ten minutes behind with lives of a minute.
#[test]
fn row_26_every_bundle_verifies_what_is_served() {
    let mut row = Row::short(26, "lives of a minute over ten, of hours over two days");
    let minutes = Lives { authority: Duration::seconds(180), leaf: Duration::seconds(60) };
    let [authorities, leaves, held] =
        live(minutes, Duration::seconds(1), 600, &[Duration::ZERO, -Duration::minutes(10)]);
    assert!((4..=7).contains(&authorities) && (10..=20).contains(&leaves), "{authorities} {leaves}");
    row.measured(
        json!({"ofAMinute": {"authorities": authorities, "leaves": leaves, "held": held, "refused": 0}}),
    );

    let hours = Lives { authority: Duration::hours(9), leaf: Duration::hours(3) };
    let ten = Duration::minutes(10);
    let [authorities, leaves, held] = live(hours, Duration::minutes(3), 960, &[-ten, Duration::ZERO, ten]);
    assert!(authorities >= 6 && leaves >= 20, "{authorities} {leaves}");
    row.measured(
        json!({"ofHours": {"authorities": authorities, "leaves": leaves, "held": held, "refused": 0}}),
    );
}
