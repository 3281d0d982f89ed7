//! JSON text as an API server reads it: order, repeats, and text that is none.

use admit_policy::json::{JsonError, parse};
use serde_json::{Value, json};

#[test]
fn members_keep_their_order_however_many_there_are() {
    for count in 0..200 {
        let members: Vec<String> = (0..count).rev().map(|n| format!("\"k{n}\": [{{\"n\": {n}}}]")).collect();
        let text = format!("{{{}}}", members.join(", "));
        let document = parse(text.as_bytes()).unwrap();
        let expected: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document.value.to_string(), expected.to_string());
        assert!(document.duplicates.is_empty());
    }
}

#[test]
fn repeats_are_named_in_the_order_of_the_text_and_the_last_one_counts() {
    let cases: [(&str, Value, &[&str]); 5] = [
        (r#"{"a": 1, "a": 2, "a": 3}"#, json!({"a": 3}), &["a"]),
        // The inner object is whole before the outer one.
        (r#"{"a": 1, "a": 2, "b": {"x": 1, "x": 2}}"#, json!({"a": 2, "b": {"x": 2}}), &["a", "b.x"]),
        (r#"{"b": {"x": 1, "x": 2}, "a": 1, "a": 2}"#, json!({"b": {"x": 2}, "a": 2}), &["b.x", "a"]),
        (r#"{"a": 1, "a": {"x": 1, "x": 2}}"#, json!({"a": {"x": 2}}), &["a", "a.x"]),
        (
            r#"{"l": [0, {"m": {"k": 1, "k": 2}}, {"k": 1, "k": 2}]}"#,
            json!({"l": [0, {"m": {"k": 2}}, {"k": 2}]}),
            &["l[1].m.k", "l[2].k"],
        ),
    ];
    for (text, value, duplicates) in cases {
        let document = parse(text.as_bytes()).unwrap();
        assert_eq!(document.value, value, "{text}");
        assert!(document.duplicates.paths().eq(duplicates.iter().copied()), "{text}");
    }
}

#[test]
fn a_repeat_is_found_however_far_apart() {
    let mut members: Vec<String> = (0..500).map(|n| format!("\"k{n}\": {n}")).collect();
    members.push("\"k3\": true".to_owned());
    members.push("\"k499\": false".to_owned());
    let document = parse(format!("{{{}}}", members.join(",")).as_bytes()).unwrap();
    assert!(document.duplicates.paths().eq(["k3", "k499"]));
    assert_eq!((document.duplicates.count(), document.duplicates.are_within(&[])), (2, false));
    assert_eq!((&document.value["k3"], &document.value["k499"]), (&json!(true), &json!(false)));
    assert_eq!(document.value.as_object().unwrap().keys().nth(3).unwrap(), "k3", "where it stood first");
}

#[test]
fn what_is_no_text_is_replaced() {
    let cases: [(&[u8], &str); 5] = [
        (b"\"a\xffb\"", "a\u{fffd}b"),
        (b"\"\\n\xc3\"", "\n\u{fffd}"),
        ("\"ä\\u00e4ä\"".as_bytes(), "äää"),
        (b"\"\\ud83d\\ude00\"", "😀"),
        (b"\"\\ud83dx\"", "\u{fffd}x"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(parse(bytes).unwrap().value, json!(expected));
    }
}

#[test]
fn repeats_beyond_the_first_are_counted_and_long_names_are_cut() {
    let long = "k".repeat(100_000);
    let inner: String = (0..150).map(|n| format!("\"m{n}\":0,\"m{n}\":1,")).collect();
    let text = format!("{{\"{long}\":{{\"o\":{{{inner}\"z\":0}}}}}}");
    let repeats = parse(text.as_bytes()).unwrap().duplicates;
    assert_eq!((repeats.count(), repeats.paths().count()), (150, 100));
    assert!(repeats.paths().all(|path| path.starts_with("kkk") && path.len() < 600), "{repeats:?}");
    assert!(repeats.paths().next().unwrap().ends_with("….o.m0"));
    assert!(!repeats.are_within(&[["k", "o"]]));
    // One name over and over is told once, and looked for no more than it takes.
    let many = format!("{{{}\"a\":0}}", "\"a\":0,".repeat(200_000));
    let repeats = parse(many.as_bytes()).unwrap().duplicates;
    assert_eq!((repeats.count(), repeats.paths().count()), (200_000, 1));
}

#[test]
fn values_that_weigh_too_much_are_refused() {
    let text = format!("[{}0]", "0,".repeat(1_500_000));
    let refused = parse(text.as_bytes()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "more values than a text of 3000003 bytes may hold: they would take more than 40777240 bytes of memory; divide \
         it into several objects"
    );
    assert!(matches!(refused, JsonError::TooHeavy(_)));
}
