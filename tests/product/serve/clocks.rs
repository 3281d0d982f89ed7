//! Row 45: certificates that a clock has left behind that was ahead or behind by years, and those that have expired.

use admit::admission::tls::{Authority, Lives, Managed, Renewal};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use time::{Duration, OffsetDateTime};

use super::cluster::bundle;
use super::renewal::{NAME, verifies};
use super::server::{Place, review};
use crate::running::Workplace;
use crate::support::https::{Client, tls};
use crate::support::reliability::Row;

/// How far the clocks go.
const AHEAD: Duration = Duration::days(4_000);

/// What a webhook has when nothing is left to be renewed; how often it was.
fn renewed(managed: &mut Managed, now: OffsetDateTime) -> usize {
    let names = [NAME.to_owned()];
    let rounds =
        (0..8).find(|_| managed.renew(&names, Lives::default(), true, now).unwrap() == Renewal::Nothing);
    rounds.unwrap_or_else(|| panic!("renewed again and again"))
}

#[test]
fn row_45_clocks_that_jump_by_years_and_back() {
    let mut row = Row::short(45, "4,000 days ahead, behind, and back, in memory");
    let start = OffsetDateTime::from_unix_timestamp(1_790_000_000).unwrap();
    let days = [0, 4_000, 0, -4_000, 0, 400, -400, 0, 4_000, -4_000, 4_000, 0];
    let (mut managed, mut renewals) = (Managed::default(), 0);
    for jump in days {
        let now = start + Duration::days(jump);
        renewals += renewed(&mut managed, now);
        assert!(verifies(&managed.bundle, &managed.certificate, now), "after a jump to day {jump}");
        assert_eq!(renewed(&mut managed, now), 0, "once is enough");
        // Replicas whose clocks are a little apart leave it at that.
        for apart in [Duration::minutes(10), -Duration::minutes(10)] {
            assert_eq!(renewed(&mut managed, now + apart), 0, "day {jump}");
        }
    }
    row.measured(json!({"jumps": days.len(), "renewals": renewals, "refused": 0}));
}

/// The Secret that replicas share was written by one whose clock was ahead: whoever starts afterwards makes both anew, and
/// gives callers the new authority.
#[tokio::test(flavor = "multi_thread")]
async fn row_45_a_secret_of_the_future_is_renewed() {
    let mut row = Row::short(45, "a Secret of 4,000 days ahead");
    let cluster = Workplace::new();
    let _running = cluster.start();
    let client = cluster.client().await;
    let now = OffsetDateTime::now_utc();
    let mut ahead = Managed::default();
    renewed(&mut ahead, now + AHEAD);
    let secret = json!({"metadata": {"name": "admit-self-signed"}, "type": "Opaque", "stringData": {
        "ca.crt": ahead.bundle, "ca.key": ahead.authority_key, "tls.crt": ahead.certificate, "tls.key": ahead.key,
    }});
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "admit-system");
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    let hook = json!({"metadata": {"name": "hook"}, "webhooks": [{
        "name": "hook.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "failurePolicy": "Ignore", "clientConfig": {"url": "https://localhost:1/"},
    }]});
    let hooks: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    hooks.create(&PostParams::default(), &serde_json::from_value(hook).unwrap()).await.unwrap();

    let place = Place::new();
    let kubeconfig = cluster.kubeconfig().display().to_string();
    let args = ["--kubeconfig", &kubeconfig, "--cluster-policies", "--webhook-name", "hook"];
    let serving = place.start_self_signed(&args);
    assert_eq!(serving.observed("/readyz").await.0, 200);
    let trusted = bundle(&client, "hook").await;
    assert!(!trusted.contains(ahead.bundle.trim()), "nobody is to trust the authority of the future");
    let settings = tls(&trusted, None, &[&rustls::version::TLS13]);
    let mut caller = Client::connect(serving.webhook, &settings).await.unwrap();
    assert_eq!(caller.post("/validate", review("u", &json!({}))).await.unwrap().code, 200);
    assert!(serving.terminate().success());
    row.measured(json!({"renewed": ["authority", "leaf"], "refused": 0}));
}

/// Certificates of files are somebody else's to renew: what nobody accepts is told by name, and passes when it is mended.
#[tokio::test(flavor = "multi_thread")]
async fn row_45_files_that_nobody_accepts_are_told_by_name() {
    let mut row = Row::short(45, "an early certificate of files");
    let place = Place::new();
    let write = |made: OffsetDateTime| {
        let names = ["localhost".to_owned()];
        let leaf = place.authority.issue_server(&names, made).unwrap();
        place.write("tls.crt", &leaf.certificate_pem);
        place.write("tls.key", &leaf.key_pem);
    };
    let now = OffsetDateTime::now_utc();
    // It begins in an hour: `Authority` dates back by one.
    write(now + Duration::hours(2));
    let serving = place.start(&["--shutdown-delay", "0"]);
    let (code, text) = serving.observed("/readyz").await;
    assert!(code == 503 && text.contains("[-]certificate failed: not valid before 20"), "{code} {text}");
    place.renew();
    serving.until("/readyz", |text| text.contains("[+]certificate ok")).await;
    // One that begins later does not take the place of one that is accepted.
    write(OffsetDateTime::now_utc() + Duration::hours(2));
    serving.log_until(|log| log.contains("not valid before"));
    assert_eq!(serving.observed("/readyz").await.0, 200);
    row.measured(json!({"cases": 3, "right": 3}));
}

/// The folder of `admit up`: an authority of the future is no authority.
#[test]
fn row_45_an_authority_of_the_future_is_made_anew() {
    let mut row = Row::short(45, "the authority of a folder");
    let (folder, now) = (tempfile::tempdir().unwrap(), OffsetDateTime::now_utc());
    let ahead = Authority::open(folder.path(), now + AHEAD).unwrap().certificate_pem().to_owned();
    let mended = Authority::open(folder.path(), now).unwrap();
    assert_ne!(mended.certificate_pem(), ahead);
    row.measured(json!({"madeAnew": 1}));
}
