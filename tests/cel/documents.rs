//! Reading JSON: numbers, text, limits, keys that come twice, and where errors are.

use admit_cel::document::{DuplicateKeys, ReadErrorKind, parse};
use admit_cel::{Node, ReadLimits};
use bumpalo::Bump;
use serde_json::{Value as Json, json};

fn read(text: &str) -> Result<Json, (usize, String)> {
    read_within(text, &ReadLimits::default())
}

fn read_within(text: &str, limits: &ReadLimits) -> Result<Json, (usize, String)> {
    let arena = Bump::new();
    parse(&arena, text.as_bytes(), limits)
        .map(|node| node.to_json())
        .map_err(|error| (error.offset, error.kind_name().to_owned()))
}

trait KindName {
    fn kind_name(&self) -> &'static str;
}

impl KindName for admit_cel::ReadError {
    fn kind_name(&self) -> &'static str {
        match self.kind {
            ReadErrorKind::UnexpectedEnd => "end",
            ReadErrorKind::UnexpectedCharacter { .. } => "character",
            ReadErrorKind::TrailingText => "trailing",
            ReadErrorKind::InvalidEscape => "escape",
            ReadErrorKind::ControlCharacter => "control",
            ReadErrorKind::NumberOutOfRange => "range",
            ReadErrorKind::DuplicateKey(_) => "duplicate",
            ReadErrorKind::TooLong { .. } => "long",
            ReadErrorKind::TooDeep { .. } => "deep",
            ReadErrorKind::TooManyValues { .. } => "many",
        }
    }
}

#[test]
fn documents_read_as_written() {
    for (text, expected) in [
        ("null", json!(null)),
        (" [ ] ", json!([])),
        ("{}", json!({})),
        (r#"{"a":[1,{"b":null}],"c":"x"}"#, json!({"a": [1, {"b": null}], "c": "x"})),
        (r#""\u00e9\n\ud83d\ude00\/""#, json!("é\n😀/")),
        (r#""\ud800x\udc00""#, json!("\u{fffd}x\u{fffd}")),
        ("[[[1],2],3]", json!([[[1], 2], 3])),
    ] {
        assert_eq!(read(text), Ok(expected), "{text}");
    }
}

#[test]
fn numbers_are_integers_while_they_fit() {
    let arena = Bump::new();
    let node = |text: &'static str| parse(&arena, text.as_bytes(), &ReadLimits::default()).unwrap();
    assert!(matches!(node("9223372036854775807"), Node::Int(i64::MAX)));
    assert!(matches!(node("-9223372036854775808"), Node::Int(i64::MIN)));
    assert!(matches!(node("9223372036854775808"), Node::Double(d) if d == 9_223_372_036_854_775_808.0));
    assert!(matches!(node("1.0"), Node::Double(d) if d == 1.0));
    assert!(matches!(node("1e2"), Node::Double(d) if d == 100.0));
    assert!(matches!(node("1.38e-23"), Node::Double(d) if d == 1.38e-23));
    assert!(matches!(node("-0"), Node::Int(0)));
}

#[test]
fn errors_say_where() {
    for (text, offset, kind) in [
        ("", 0, "end"),
        ("[1,]", 3, "character"),
        ("{\"a\" 1}", 5, "character"),
        ("{a:1}", 1, "character"),
        ("01", 1, "trailing"),
        ("1 2", 2, "trailing"),
        ("\"a", 2, "end"),
        ("\"\\x\"", 2, "escape"),
        ("\"\\u12g4\"", 3, "escape"),
        ("\"\n\"", 1, "control"),
        ("1e999", 5, "range"),
        ("tru", 0, "character"),
        ("[", 1, "end"),
        ("[1}", 2, "character"),
        ("-", 1, "end"),
    ] {
        assert_eq!(read(text), Err((offset, kind.to_owned())), "{text}");
    }
}

#[test]
fn limits_hold() {
    let limits = ReadLimits { max_bytes: 60, max_depth: 3, max_values: 6, ..ReadLimits::default() };
    assert!(read_within("[[[1]]]", &limits).is_ok());
    assert_eq!(read_within("[[[[1]]]]", &limits), Err((3, "deep".to_owned())));
    assert_eq!(read_within("[1,2,3,4,5,6]", &limits), Err((11, "many".to_owned())));
    assert_eq!(read_within(&" ".repeat(61), &limits), Err((60, "long".to_owned())));
    // Far deeper than any stack, were reading recursive.
    let deep = "[".repeat(1_000_000);
    let limits = ReadLimits { max_depth: 2_000_000, max_values: 2_000_000, ..ReadLimits::default() };
    assert_eq!(read_within(&deep, &limits), Err((1_000_000, "end".to_owned())));
}

#[test]
fn keys_that_come_twice_follow_the_policy() {
    let text = r#"{"a":1,"b":2,"a":3}"#;
    assert_eq!(read(text), Ok(json!({"a": 3, "b": 2})));
    let limits = ReadLimits { duplicate_keys: DuplicateKeys::Refuse, ..ReadLimits::default() };
    assert_eq!(read_within(text, &limits), Err((19, "duplicate".to_owned())));
    let many: Vec<_> = (0..100).map(|i| format!("\"k{}\":{i}", i % 50)).collect();
    let read = read(&format!("{{{}}}", many.join(","))).unwrap();
    assert_eq!(read.as_object().unwrap().len(), 50);
    assert_eq!(read["k7"], 57);
}

#[test]
fn large_objects_find_every_key() {
    let members: Vec<_> = (0..1000).map(|i| format!("\"key{i}\":{i}")).collect();
    let text = format!("{{{}}}", members.join(","));
    let arena = Bump::new();
    let Node::Map(map) = parse(&arena, text.as_bytes(), &ReadLimits::default()).unwrap() else {
        panic!("no object")
    };
    for i in 0..1000 {
        assert!(matches!(map.get(&format!("key{i}")), Some(Node::Int(n)) if n == i), "key{i}");
    }
    assert!(map.get("key1000").is_none());
}

/// Names are compared in words: of every length, the name itself is found and one that differs in any one byte is not.
#[test]
fn names_of_every_length_are_told_apart() {
    for length in 0..40 {
        let name: String = "abcdefgh".chars().cycle().take(length).collect();
        let json = json!({ &*name: 1 });
        let node = Node::from_json(&json);
        let Node::Map(map) = node else { panic!("no object") };
        assert!(map.get(&name).is_some(), "{name:?}");
        for at in 0..length {
            let other = format!("{}x{}", &name[..at], &name[at + 1..]);
            assert!(map.get(&other).is_none(), "{other:?} in {name:?}");
        }
        assert!(map.get(&format!("{name}a")).is_none() && map.get(&format!("a{name}x")).is_none());
    }
}

#[test]
fn bytes_that_are_no_text_read_as_replacement_characters() {
    let arena = Bump::new();
    let node = parse(&arena, b"\"a\xffb\"", &ReadLimits::default()).unwrap();
    assert!(matches!(node, Node::String("a\u{fffd}b")));
}

#[test]
fn a_serde_value_reads_as_its_text_does() {
    let json = json!({"a": [1, 2.5, "x", null, true], "big": u64::MAX});
    assert_eq!(Node::from_json(&json).to_json()["a"], json["a"]);
    let Node::Map(map) = Node::from_json(&json) else { panic!("no object") };
    assert!(matches!(map.get("big"), Some(Node::Double(_))));
}
