//! Row 1: reviews with broken bytes and broken structure. An independent reading of the same bytes says what must be denied.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Random, percent, scaled};
use crate::serve::server::{Place, policy, review};
use crate::support::https::Client;
use crate::support::reliability::Row;

const MIB: usize = 1024 * 1024;
const EACH: usize = 100_000;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes long; scripts/soak runs it"]
async fn row_01_mutated_reviews() {
    let mut row = Row::full(1, "mutated reviews over TLS", percent());
    let place = Place::new();
    place.write(
        "policies/a.yaml",
        &policy("a", "has(object.data) && has(object.data.v) && object.data.v == 'good'"),
    );
    let serving = place.start(&[]);
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    let base = review("the-uid", &json!({"v": "bad", "list": [1, {"deep": [null, "x"]}]}));
    let tree: Value = serde_json::from_str(&base).unwrap();
    let mut random = Random(0x5eed_0001);
    // What a process needs once is not growth.
    let mut settled = None;
    let (mut slowest, mut reconnects, mut denied, mut allowed) = (Duration::ZERO, 0, 0, 0);
    let each = scaled(EACH);
    for number in 0..2 * each {
        let body = if number < each { bytes(&base, &mut random) } else { structure(&tree, &mut random) };
        let started = Instant::now();
        let answered = match client.post("/validate", body.clone()).await {
            Ok(answered) => answered,
            Err(error) => panic!("no answer ({error}) to {}", String::from_utf8_lossy(&body)),
        };
        slowest = slowest.max(started.elapsed());
        assert!(matches!(answered.code.as_u16(), 200 | 400), "{}", answered.code);
        if answered.headers.get("connection").is_some_and(|value| value == "close") {
            reconnects += 1;
            client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
        }
        let passed = answered.code == 200 && answered.json()["response"]["allowed"] == true;
        *(if passed { &mut allowed } else { &mut denied }) += 1;
        assert!(!passed || may_pass(&body), "let through: {}", String::from_utf8_lossy(&body));
        if number == each / 10 {
            settled = Some(serving.memory());
        }
    }
    let grown = serving.memory().saturating_sub(settled.unwrap());
    let (_, metrics) = serving.observed("/metrics").await;
    assert!(metrics.contains("admit_panics_total 0\n"), "{metrics}");
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    assert!(grown < 20 * MIB, "{grown} bytes more");
    row.measured(json!({
        "requests": 2 * each, "denied": denied, "allowed": allowed, "failOpen": 0, "panics": 0,
        "slowestMs": slowest.as_millis(), "grownMiB": grown / MIB, "reconnects": reconnects,
    }));
}

/// Whether a reader that is not ours finds no reason to deny: another resource than the policy's, or a good value.
fn may_pass(body: &[u8]) -> bool {
    // Bytes that are no UTF-8 are read as servers in Go read them: replaced.
    let Ok(review) = serde_json::from_str::<Value>(&String::from_utf8_lossy(body)) else { return false };
    let request = &review["request"];
    let resource = &request["resource"];
    let is = |value: &Value, wanted: &str| value.as_str().unwrap_or_default() == wanted;
    let matched = is(&resource["group"], "")
        && is(&resource["version"], "v1")
        && is(&resource["resource"], "configmaps")
        && is(&request["subResource"], "");
    let named = ["version", "resource"].iter().all(|key| !is(&resource[key], ""));
    named && !matched || request["object"]["data"]["v"] == "good"
}

/// Changes from one to four bytes: replaced, removed, inserted, or a piece of the text repeated.
fn bytes(base: &str, random: &mut Random) -> Vec<u8> {
    let mut bytes = base.as_bytes().to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(5) {
            0 => bytes[at] = u8::try_from(random.below(256)).unwrap(),
            1 if bytes.len() > 1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, *random.of(b"{}[]\",:0\\ud\0\xff ")),
            3 => bytes.truncate(at.max(1)),
            _ => {
                let end = (at + random.below(64)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

/// Changes one place of the tree: removed, replaced by another kind of value, or renamed.
fn structure(tree: &Value, random: &mut Random) -> Vec<u8> {
    let mut tree = tree.clone();
    for _ in 0..=random.below(3) {
        change(&mut tree, random);
    }
    tree.to_string().into_bytes()
}

fn change(value: &mut Value, random: &mut Random) {
    let strange = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!(""),
        json!("good\u{0}"),
        json!([]),
        json!({}),
    ];
    if random.one_in(4) {
        *value = random.of(&strange).clone();
        return;
    }
    match value {
        Value::Object(map) if !map.is_empty() => {
            let key = map.keys().nth(random.below(map.len())).unwrap().clone();
            match random.below(6) {
                0 => drop(map.remove(&key)),
                1 => {
                    let moved = map.remove(&key).unwrap();
                    map.insert(key.to_uppercase(), moved);
                }
                2 => drop(map.insert(format!("x{key}"), random.of(&strange).clone())),
                _ => change(&mut map[&key], random),
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let at = random.below(items.len());
            change(&mut items[at], random);
        }
        other => *other = random.of(&strange).clone(),
    }
}
