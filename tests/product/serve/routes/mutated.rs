//! Reviews that were changed at random, by bytes and by structure: none panics, none loses its uid's denial, and what is
//! denied stays denied while it means the same. Short forms; seeds are fixed, so that a failure can be looked at again.

use http::StatusCode;
use serde_json::{Value, json};

use super::support::{Answered, Server, config_map, policy, server};
use crate::soak::Random;
use crate::support::reliability::Row;

const ROUNDS: u32 = 3_000;
const SEED: u64 = 0x5eed_ad31_7000_0001;

fn denied_review() -> Value {
    let mut review: Value = serde_json::from_str(&config_map("u1")).unwrap();
    review["request"]["object"] = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "labels": {"a": "b"}},
        "data": {"secret": "yes", "other": "no"}, "list": [1, 2.5, "three", null, {"four": [4]}],
    });
    review
}

fn denying() -> Server {
    server(&[policy("p", "!has(object.data.secret) || object.data.secret != 'yes'")])
}

/// What the server answers once its turn comes: on a machine that stands still for long enough it is first told to come back.
async fn answered(server: &Server, bytes: Vec<u8>) -> Answered {
    for _ in 0..100 {
        let answer = server.post_bytes("/validate", bytes.clone()).await;
        if answer.code != StatusCode::TOO_MANY_REQUESTS {
            return answer;
        }
    }
    panic!("it never has time: {}", server.metrics());
}

/// Row 1: whatever is done to the bytes, the answer is a review that says no, or an error of the request. It may say yes
/// only when the changed review is a review that the policy admits.
#[tokio::test]
async fn row_01_mutated_bytes_are_answered() {
    let mut row = Row::short(1, "mutated bytes, without sockets");
    let (server, mut random) = (denying(), Random(SEED));
    let original = denied_review().to_string().into_bytes();
    for round in 0..ROUNDS {
        let mut bytes = original.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] = u8::try_from(random.below(256)).unwrap(),
                1 if bytes.len() > 1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, b"{}[]\",:\\0"[random.below(9)]),
                _ => bytes.truncate(at.max(1)),
            }
        }
        let answer = answered(&server, bytes.clone()).await;
        let text = String::from_utf8_lossy(&bytes);
        match answer.code.as_u16() {
            200 if answer.json["response"]["allowed"] == true => {
                let changed: Value =
                    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{round}: {e}: {text}"));
                let request = &changed["request"];
                let meant = request["object"]["data"]["secret"] == "yes"
                    && request["resource"]["resource"] == "configmaps"
                    && request["resource"]["group"] == ""
                    && request["resource"]["version"] == "v1"
                    && !request["subResource"].is_string();
                assert!(!meant, "{round}: allowed: {text}");
            }
            200 => assert!(answer.json["response"]["uid"].is_string(), "{round}: {text}"),
            400 => assert_eq!(answer.json["kind"], "Status", "{round}: {text}"),
            other => panic!("{round}: {other}: {text}"),
        }
    }
    assert!(server.metrics().contains("admit_panics_total 0\n"), "{}", server.metrics());
    row.measured(json!({"mutants": ROUNDS, "letThrough": 0, "panics": 0}));
}

/// Row 2: order, white space, escapes, further fields and further items change nothing about a denial.
#[tokio::test]
async fn row_02_a_denial_survives_what_means_the_same() {
    let mut row = Row::short(2, "mutants that mean the same, without sockets");
    let (server, mut random) = (denying(), Random(SEED));
    for round in 0..ROUNDS {
        let text = written(&denied_review(), &mut random, 0);
        let answer = answered(&server, text.clone().into_bytes()).await;
        assert_eq!(answer.json["response"]["allowed"], false, "{round}: {text}");
        assert_eq!(answer.json["response"]["status"]["reason"], "Invalid", "{round}: {text}");
        assert_eq!(answer.json["response"]["uid"], "u1", "{round}: {text}");
    }
    row.measured(json!({"mutants": ROUNDS, "flips": 0}));
}

/// `value` as another writer would have written it.
fn written(value: &Value, random: &mut Random, depth: usize) -> String {
    let space = ["", " ", "\n\t", "  "][random.below(4)];
    match value {
        Value::Object(members) => {
            let mut members: Vec<(String, Value)> = members.clone().into_iter().collect();
            // What clients write may hold more; an envelope's unknown fields are those of a newer API server.
            if random.below(3) == 0 {
                members.push((format!("x{}", random.below(1_000)), json!({"more": [depth, null]})));
            }
            for at in (1..members.len()).rev() {
                members.swap(at, random.below(at + 1));
            }
            let members: Vec<String> = members
                .iter()
                .map(|(key, value)| {
                    format!("{space}{}{space}:{}", quoted(key, random), written(value, random, depth + 1))
                })
                .collect();
            format!("{{{}{space}}}", members.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| written(item, random, depth + 1)).collect();
            format!("[{space}{}]", items.join(","))
        }
        Value::String(text) => quoted(text, random),
        other => format!("{other}{space}"),
    }
}

fn quoted(text: &str, random: &mut Random) -> String {
    let escaped: String = text
        .chars()
        .map(|c| if random.below(5) == 0 { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() })
        .collect();
    format!("\"{escaped}\"")
}
