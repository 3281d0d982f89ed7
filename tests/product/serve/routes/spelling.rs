//! Rows 10 to 13: keys, numbers and text, as JSON spells them and as others would read them.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::support::{config_map, policy, server};
use crate::support::reliability::Row;

/// `config_map` with this text as its object.
fn with_object(object: &str) -> String {
    let body = config_map("u1").replacen(r#""object":{}"#, &format!(r#""object":{object}"#), 1);
    assert!(body.contains(object));
    body
}

/// Row 10: an envelope that says something twice says nothing; an object that does is denied under its uid.
#[tokio::test]
async fn row_10_duplicate_keys_are_refused() {
    let mut row = Row::short(10, "duplicates in envelope and object");
    let server = server(&[]);
    let body = config_map("u1");
    let twice = [
        (r#""uid":"u1""#, r#""uid":"u0","uid":"u1""#),
        (r#""uid":"u1""#, r#""uid":"u1","uid":"u1""#),
        (r#""uid":"u1""#, r#""uid":"u0","u\u0069d":"u1""#),
        (r#""operation":"CREATE""#, r#""operation":"DELETE","operation":"CREATE""#),
        (r#""name":"c""#, r#""name":"c","name":"d""#),
        (r#""namespace":"n""#, r#""namespace":"kube-system","namespace":"n""#),
        (r#""kind":"AdmissionReview""#, r#""kind":"Review","kind":"AdmissionReview""#),
        (r#""apiVersion":"admission.k8s.io/v1""#, r#""apiVersion":"v1","apiVersion":"admission.k8s.io/v1""#),
        (r#""kind":"ConfigMap""#, r#""kind":"Secret","kind":"ConfigMap""#),
        (r#""resource":"configmaps""#, r#""resource":"secrets","resource":"configmaps""#),
        (r#""object":{}"#, r#""object":{},"object":{"a":1}"#),
        (r#""object":{}"#, r#""object":{},"oldObject":null,"oldObject":{}"#),
        (r#""object":{}"#, r#""object":{},"dryRun":true,"dryRun":false"#),
        (r#""object":{}"#, r#""object":{},"userInfo":{"username":"a","username":"b"}"#),
    ];
    for (once, twice) in &twice {
        let changed = body.replacen(once, twice, 1);
        assert_ne!(changed, body);
        assert_eq!(server.post("/validate", &changed).await.code, StatusCode::BAD_REQUEST, "{changed}");
    }
    let objects = [
        r#"{"a":1,"a":2}"#,
        r#"{"a":{"b":1,"b":2}}"#,
        r#"{"a":[{"b":1,"b":1}]}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"metadata":{"labels":{"x":"1","x":"2"}}}"#,
        r#"{"spec":{},"spec":null}"#,
    ];
    for object in objects {
        let answer = server.post("/validate", &with_object(object)).await;
        assert_eq!(
            (answer.code, &answer.json["response"]["uid"]),
            (StatusCode::OK, &json!("u1")),
            "{object}"
        );
        assert_eq!(answer.json["response"]["allowed"], false, "{object}");
    }
    row.measured(json!({"envelopes": twice.len(), "objects": objects.len()}));
}

/// Row 11: keys are compared exactly, as sigs.k8s.io/json does and encoding/json does not.
#[tokio::test]
async fn row_11_other_spellings_of_keys_are_unknown() {
    let mut row = Row::short(11, "spellings");
    // Kelvin sign and long s are what case folding makes a k and an s of.
    let objects = [
        ("data", ["Data", "DATA", "dATA", "daTa", "data ", " data", "d\u{430}ta"].as_slice()),
        ("spec", &["Spec", "SPEC", "\u{17f}pec", "\u{17f}PEC"]),
        ("kinds", &["Kinds", "\u{212a}inds", "kind\u{17f}", "KINDS"]),
    ];
    let mut vectors = 0;
    for (key, spellings) in objects {
        let server = server(&[policy("p", &format!("!has(object.{key})"))]);
        for spelling in spellings {
            let answer = server.post("/validate", &with_object(&json!({*spelling: {}}).to_string())).await;
            assert_eq!(answer.json["response"]["allowed"], true, "{spelling}");
            vectors += 1;
        }
        let escaped = format!("{{\"\\u{:04x}{}\":{{}}}}", u32::from(key.as_bytes()[0]), &key[1..]);
        let answer = server.post("/validate", &with_object(&escaped)).await;
        assert_eq!(answer.json["response"]["allowed"], false, "an escape is no other spelling: {escaped}");
    }
    let server = server(&[]);
    for key in ["Uid", "UID", "u\u{131}d", "uid ", "u\u{456}d"] {
        let body = config_map("u1").replacen(r#""uid""#, &format!("\"{key}\""), 1);
        assert_eq!(server.post("/validate", &body).await.code, StatusCode::BAD_REQUEST, "{key}");
        vectors += 1;
    }
    assert_eq!(vectors, 20);
    row.measured(json!({"vectors": vectors, "known": 0}));
}

/// Row 12: numbers that JSON or a double cannot hold are refused, and the others are what they say.
#[tokio::test]
async fn row_12_numbers() {
    let mut row = Row::short(12, "numbers");
    let object =
        |number: &str| with_object(&format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","n":{number}}}"#));
    let refused = [
        "NaN",
        "nan",
        "Infinity",
        "-Infinity",
        "inf",
        "1e400",
        "-1e400",
        "1e309",
        "01",
        "-01",
        "+1",
        ".5",
        "1.",
        "0x1",
        "1e",
        "1e+",
        "--1",
        "1_0",
        "1,0",
        "0b1",
        "1f",
    ];
    let nothing = server(&[]);
    for number in refused {
        let answer = nothing.post("/validate", &object(number)).await;
        assert_eq!(answer.json["response"]["allowed"], false, "{number}");
        assert_eq!(answer.json["response"]["uid"], "u1", "{number}");
    }
    let exact = [
        ("1", "object.n == 1 && type(object.n) == int"),
        ("1.0", "object.n == 1.0 && type(object.n) == double"),
        ("1e0", "type(object.n) == double"),
        ("1E0", "type(object.n) == double"),
        ("0", "object.n == 0 && type(object.n) == int"),
        ("-0", "object.n == 0 && type(object.n) == int"),
        ("-0.0", "object.n == 0.0 && type(object.n) == double"),
        ("9007199254740993", "object.n == 9007199254740993"),
        ("9223372036854775807", "object.n == 9223372036854775807"),
        ("-9223372036854775808", "object.n < -9223372036854775807"),
        ("9223372036854775808", "type(object.n) == double"),
        ("-9223372036854775809", "type(object.n) == double"),
        ("18446744073709551615", "type(object.n) == double"),
        ("18446744073709551616", "object.n == 18446744073709551616.0"),
        ("1e308", "object.n == 1e308"),
        ("5e-324", "object.n == 5e-324 && object.n > 0.0"),
        ("1e-400", "object.n == 0.0"),
        ("0.1", "object.n == 0.1"),
        ("2.5e2", "object.n == 250.0"),
    ];
    for (number, expression) in exact {
        let answer = server(&[policy("p", expression)]).post("/validate", &object(number)).await;
        assert_eq!(answer.json["response"]["allowed"], true, "{number}: {expression}: {}", answer.json);
    }
    assert_eq!(refused.len() + exact.len(), 40);
    row.measured(json!({"refused": refused.len(), "exact": exact.len()}));
}

/// Row 13: text is data as it stands, without normalisation.
#[tokio::test]
async fn row_13_text_is_plain_data() {
    let mut row = Row::short(13, "text in objects");
    let texts = [
        "\0",
        "a\0b",
        "\u{1}",
        "\u{7f}",
        "\u{85}",
        "\t",
        "\r\n",
        "\u{2028}",
        "\u{2029}",
        "\u{202e}",
        "\u{202d}a\u{202c}",
        "\u{2066}a\u{2069}",
        "\u{200b}",
        "\u{200d}",
        "\u{feff}",
        "\u{ad}",
        "\u{430}dmin",
        "\u{ff41}",
        "e\u{301}",
        "\u{e9}",
        "\u{1f980}",
        "\u{10ffff}",
        "\u{fffd}",
        "\u{e000}",
        "\u{1e9e}\u{df}",
    ];
    for text in texts {
        let mut data = Map::new();
        data.insert("v".to_owned(), text.into());
        let mut review: Value = serde_json::from_str(&config_map("u1")).unwrap();
        review["request"]["object"] = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data});
        let same =
            format!("object.data.v == {}", serde_json::to_string(text).unwrap().replace("\\u0000", "\\x00"));
        let answer = server(&[policy("p", &same)]).post("/validate", &review.to_string()).await;
        assert_eq!(answer.json["response"]["allowed"], true, "{same}: {}", answer.json);
    }
    assert_eq!(texts.len(), 25);
    row.measured(json!({"vectors": texts.len(), "changed": 0}));
}
