//! Reviews that were changed at random, by bytes and by structure: none panics, none loses its uid's denial, and what is
//! denied stays denied while it means the same. Short forms; seeds are fixed, so that a failure can be looked at again.

use serde_json::{Map, Value, json};

use super::support::{Server, config_map, policy, server};

const ROUNDS: u32 = 3_000;
const SEED: u64 = 0x5eed_ad31_7000_0001;

/// xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

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

/// Row 1: whatever is done to the bytes, the answer is a review that says no, or an error of the request. It may say yes
/// only when the changed review is a review that the policy admits.
#[tokio::test]
async fn row_01_mutated_bytes_are_answered() {
    let (server, mut random) = (denying(), Random(SEED));
    let original = denied_review().to_string().into_bytes();
    for round in 0..ROUNDS {
        let mut bytes = original.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] = u8::try_from(random.below(256)).unwrap(),
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, b"{}[]\",:\\0"[random.below(9)]),
                _ => bytes.truncate(at.max(1)),
            }
        }
        let answer = server.post_bytes("/validate", bytes.clone()).await;
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
}

/// Row 2: order, white space, escapes, further fields and further items change nothing about a denial.
#[tokio::test]
async fn row_02_a_denial_survives_what_means_the_same() {
    let (server, mut random) = (denying(), Random(SEED));
    for round in 0..ROUNDS {
        let text = written(&denied_review(), &mut random, 0);
        let answer = server.post("/validate", &text).await;
        assert_eq!(answer.json["response"]["allowed"], false, "{round}: {text}");
        assert_eq!(answer.json["response"]["status"]["reason"], "Invalid", "{round}: {text}");
        assert_eq!(answer.json["response"]["uid"], "u1", "{round}: {text}");
    }
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

/// Row 12: numbers that JSON or a double cannot hold are refused, and the others are what they say.
#[tokio::test]
async fn row_12_numbers() {
    let object = |number: &str| {
        let object = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","n":{number}}}"#);
        config_map("u1").replacen(r#""object":{}"#, &format!(r#""object":{object}"#), 1)
    };
    let nothing = server(&[]);
    for number in
        ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "01", "+1", ".5", "1.", "0x1", "1e", "--1", "1_0"]
    {
        let answer = nothing.post("/validate", &object(number)).await;
        assert_eq!(answer.json["response"]["allowed"], false, "{number}");
        assert_eq!(answer.json["response"]["uid"], "u1", "{number}");
    }
    for (number, expression) in [
        ("1", "object.n == 1 && type(object.n) == int"),
        ("1.0", "object.n == 1.0 && type(object.n) == double"),
        ("1e0", "type(object.n) == double"),
        ("-0", "object.n == 0 && type(object.n) == int"),
        ("9223372036854775807", "object.n == 9223372036854775807"),
        ("-9223372036854775808", "object.n < -9223372036854775807"),
        ("9223372036854775808", "type(object.n) == double"),
        ("18446744073709551616", "object.n == 18446744073709551616.0"),
    ] {
        let answer = server(&[policy("p", expression)]).post("/validate", &object(number)).await;
        assert_eq!(answer.json["response"]["allowed"], true, "{number}: {expression}: {}", answer.json);
    }
}

/// Row 13: text is data as it stands, without normalisation.
#[tokio::test]
async fn row_13_text_is_plain_data() {
    for text in
        ["\0", "\u{202e}", "\u{200b}", "\u{430}dmin", "e\u{301}", "\u{e9}", "\u{1f980}", "\u{feff}", "\r\n"]
    {
        let mut data = Map::new();
        data.insert("v".to_owned(), text.into());
        let mut review: Value = serde_json::from_str(&config_map("u1")).unwrap();
        review["request"]["object"] = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data});
        let same =
            format!("object.data.v == {}", serde_json::to_string(text).unwrap().replace("\\u0000", "\\x00"));
        let answer = server(&[policy("p", &same)]).post("/validate", &review.to_string()).await;
        assert_eq!(answer.json["response"]["allowed"], true, "{same}: {}", answer.json);
    }
}
