//! Rows 23 to 25: policies and certificates that change under load.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Bench, percent, scaled};
use crate::serve::server::{Place, policy, review};
use crate::support::https::Client;
use crate::support::reliability::Row;

/// Of the row; unoptimised builds need as much for a handshake alone.
const SEEN: Duration = Duration::from_millis(if cfg!(debug_assertions) { 10_000 } else { 1_000 });

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes long; scripts/soak runs it"]
async fn row_23_bad_edits_under_load() {
    let mut row = Row::full(23, "bad edits under load", percent());
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "object.data.v != 'bad'"));
    place.write("review.json", &review("u", &json!({"v": "bad"})));
    let serving = place.start(&[]);
    let (_, before) = serving.observed("/policies").await;
    let file = place.path("review.json").display().to_string();
    // Longer than the edits can take; ended with them.
    let bench =
        Bench::start(&place, &serving, &["-f", &file, "--rate", "2000", "-d", "3600", "--timeout", "60"]);
    let edits = scaled(1_000);
    let broken = ["a: [".to_owned(), policy("b", "object."), policy("a", "true"), "kind: X".to_owned()];
    for edit in 0..edits {
        // Never the same twice in a row: an edit that changes nothing is none.
        place.write("policies/b.yaml", &format!("{}\n# {edit}\n", broken[edit % broken.len()]));
        let failures = format!("admit_reloads_total{{part=\"policies\",result=\"failure\"}} {}", edit + 1);
        serving.until("/metrics", |metrics| metrics.contains(&failures)).await;
    }
    assert_eq!(serving.observed("/policies").await.1, before);
    bench.interrupt();
    let report = bench.report();
    assert_eq!((&report["allowed"], &report["failed"]), (&0.into(), &0.into()), "{report}");
    row.measured(json!({
        "edits": edits, "requests": report["requests"], "requestsPerSecond": report["requestsPerSecond"],
        "changedAnswers": report["allowed"],
    }));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes long; scripts/soak runs it"]
async fn row_43_vandalised_folders_under_load() {
    let mut row = Row::full(43, "vandalised folders under load", percent());
    crate::serve::files::vandalised(scaled(10), 8, &mut row).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes long; scripts/soak runs it"]
async fn row_24_swaps_under_load() {
    const CLIENTS: usize = 16;
    let mut row = Row::full(24, "policy sets swapped under load", percent());
    // Both sets deny, each under two names: an answer of both at once, or of none, would be of no complete set.
    let set = |name: &str| {
        let text = policy(&format!("{name}-1"), "false") + "---\n" + &policy(&format!("{name}-2"), "true");
        text.replace("validationActions: [Deny]", "validationActions: [Deny, Audit]")
    };
    let place = Place::new();
    place.write("policies/p.yaml", &set("a"));
    let serving = place.start(&[]);
    let requests = scaled(1_000_000) / CLIENTS;
    let mut clients = tokio::task::JoinSet::new();
    let started = Instant::now();
    for _ in 0..CLIENTS {
        let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
        clients.spawn(async move {
            let body = review("u", &json!({}));
            let mut seen = [0, 0];
            for _ in 0..requests {
                let text = client.post("/validate", body.clone()).await.unwrap().text();
                let of = ["a-1", "b-1"].map(|name| text.contains(name));
                assert!(of[0] != of[1], "{text}");
                seen[usize::from(of[1])] += 1;
            }
            seen
        });
    }
    let (mut swaps, mut seen) = (0_u32, [0, 0]);
    let mut pace = tokio::time::interval(Duration::from_millis(120));
    while !clients.is_empty() {
        tokio::select! {
            _ = pace.tick() => {
                swaps += 1;
                place.write("policies/p.yaml", &set(if swaps % 2 == 0 { "a" } else { "b" }));
            }
            Some(ended) = clients.join_next() => {
                let one = ended.unwrap();
                seen = [seen[0] + one[0], seen[1] + one[1]];
            }
        }
    }
    let took = started.elapsed();
    let (_, metrics) = serving.observed("/metrics").await;
    let loaded = "admit_reloads_total{part=\"policies\",result=\"success\"} ";
    let loaded = metrics.lines().find_map(|line| line.strip_prefix(loaded)).unwrap();
    assert!(!metrics.contains("part=\"policies\",result=\"failure\""), "{metrics}");
    row.measured(json!({
        "requests": requests * CLIENTS, "mixed": 0, "ofFirst": seen[0], "ofSecond": seen[1], "written": swaps,
        "swaps": loaded.parse::<u32>().unwrap(), "seconds": took.as_secs(),
    }));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes long; scripts/soak runs it"]
async fn row_25_certificates_under_load() {
    let mut row = Row::full(25, "certificates rotated under load", percent());
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "true"));
    let serving = place.start(&[]);
    let rotations = scaled(100);
    let bench =
        Bench::start(&place, &serving, &["-c", "200", "-d", "3600", "--rate", "1000", "--timeout", "60"]);
    let mut slowest = Duration::ZERO;
    let mut pace = tokio::time::interval(Duration::from_millis(600));
    for _ in 0..rotations {
        pace.tick().await;
        let leaf = place.renew();
        let (_, shown) = x509_parser::pem::parse_x509_pem(leaf.certificate_pem.as_bytes()).unwrap();
        let written = Instant::now();
        while Client::connect(serving.webhook, &place.tls()).await.unwrap().certificate != shown.contents {
            assert!(written.elapsed() < Duration::from_secs(20), "the new certificate is not shown");
        }
        slowest = slowest.max(written.elapsed());
    }
    bench.interrupt();
    let report = bench.report();
    assert_eq!(report["failed"], 0, "{report}");
    assert!(report["connections"].as_u64() <= Some(200), "a connection ended: {report}");
    assert!(slowest < SEEN, "{slowest:?}");
    row.measured(json!({
        "rotations": rotations, "connections": report["connections"], "requests": report["requests"], "failed": 0,
        "slowestSeenMs": slowest.as_millis(),
    }));
}
