//! What is written is read back, by this reader and by another one; what stands unquoted is what go-yaml 2 makes of it.

use admit_apimachinery::go;
use admit_apimachinery::yaml::{parse, parse_values, write, write_sorted};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn read(text: &str) -> Value {
    let mut trees = parse_values(text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
    assert_eq!(trees.len(), 1, "{text}");
    assert_eq!(trees[0].duplicates, [], "{text}");
    trees.remove(0).value
}

/// Texts, each with what stands for it behind a key.
const TEXTS: &[(&str, &str)] = &[
    // Numbers, of any reader.
    ("0x1F", "\"0x1F\""),
    ("0o7", "\"0o7\""),
    ("010", "\"010\""),
    ("0b1", "\"0b1\""),
    ("-0b1", "\"-0b1\""),
    ("08", "\"08\""),
    ("1_000", "\"1_000\""),
    ("1e3", "\"1e3\""),
    ("1e+3", "\"1e+3\""),
    ("+1", "\"+1\""),
    (".5", "\".5\""),
    ("5.", "\"5.\""),
    ("1e400", "\"1e400\""),
    ("99999999999999999999", "\"99999999999999999999\""),
    (".inf", "\".inf\""),
    ("-.Inf", "\"-.Inf\""),
    (".nan", "\".nan\""),
    (".NaN", "\".NaN\""),
    ("190:20:30.15", "\"190:20:30.15\""),
    ("1:30", "\"1:30\""),
    // Times.
    ("2001-01-01", "\"2001-01-01\""),
    ("2001-1-1", "\"2001-1-1\""),
    ("2001-01-01T10:00:00Z", "\"2001-01-01T10:00:00Z\""),
    ("2001-01-01 10:00:00.5", "\"2001-01-01 10:00:00.5\""),
    // Words.
    ("y", "\"y\""),
    ("N", "\"N\""),
    ("YES", "\"YES\""),
    ("yes", "\"yes\""),
    ("no", "\"no\""),
    ("NO", "\"NO\""),
    ("on", "\"on\""),
    ("Off", "\"Off\""),
    ("OFF", "\"OFF\""),
    ("true", "\"true\""),
    ("False", "\"False\""),
    ("~", "\"~\""),
    ("null", "\"null\""),
    ("NULL", "\"NULL\""),
    ("", "\"\""),
    ("<<", "\"<<\""),
    ("=", "\"=\""),
    // Indicators.
    ("- a", "'- a'"),
    ("-", "'-'"),
    ("? a", "'? a'"),
    ("?", "'?'"),
    (": a", "': a'"),
    (":", "':'"),
    ("#a", "'#a'"),
    ("&a", "'&a'"),
    ("*a", "'*a'"),
    ("!a", "'!a'"),
    ("|", "'|'"),
    (">", "'>'"),
    ("%a", "'%a'"),
    ("@a", "'@a'"),
    ("`a", "'`a'"),
    ("'a'", "'''a'''"),
    ("\"a\"", "'\"a\"'"),
    ("{a", "'{a'"),
    ("[a", "'[a'"),
    ("}", "'}'"),
    ("]", "']'"),
    (",", "','"),
    ("---", "'---'"),
    ("...", "'...'"),
    ("a: b", "'a: b'"),
    ("a #b", "'a #b'"),
    ("a:", "'a:'"),
    // Blanks, and what nobody sees.
    (" a", "' a'"),
    ("a ", "'a '"),
    ("a\tb", "\"a\\tb\""),
    ("\ta", "\"\\ta\""),
    ("a\rb", "\"a\\rb\""),
    ("a\r\nb", "\"a\\r\\nb\""),
    ("\0\u{7}\u{8}\u{b}\u{c}\u{1b}\u{1}\u{7f}", "\"\\0\\a\\b\\v\\f\\e\\x01\\x7F\""),
    ("a\u{85}b", "\"a\\Nb\""),
    ("a\u{2028}b\u{2029}", "\"a\\Lb\\P\""),
    ("\u{feff}a", "\"\\uFEFFa\""),
    ("\u{ffff}", "\"\\uFFFF\""),
    ("\u{1f600}", "\"\\U0001F600\""),
    ("back\\slash \t\"", "\"back\\\\slash \\t\\\"\""),
    // Lines.
    ("a\nb", "|-\n  a\n  b"),
    ("a\nb\n", "|\n  a\n  b"),
    ("a\n\n", "|+\n  a\n"),
    ("\n", "|2+\n"),
    ("\na", "|2-\n\n  a"),
    ("  a\nb", "|2-\n    a\n  b"),
    ("a\n  b\n\n c\n", "|\n  a\n    b\n\n   c"),
    ("# a\n- b: c\n---\n", "|\n  # a\n  - b: c\n  ---"),
    ("a \nb", "\"a \\nb\""),
    ("a\n ", "\"a\\n \""),
    ("a\n\tb", "\"a\\n\\tb\""),
    // What needs no quotes.
    ("a", "a"),
    ("a b-c", "a b-c"),
    ("-a", "-a"),
    ("--", "--"),
    ("?a", "?a"),
    (":a", ":a"),
    ("a:b#c", "a:b#c"),
    ("it's {[,]} \"x\"", "it's {[,]} \"x\""),
    ("1.2.3", "1.2.3"),
    ("10Gi", "10Gi"),
    ("0x", "0x"),
    ("2001-01-01-a", "2001-01-01-a"),
    ("1:60", "1:60"),
    ("Yes!", "Yes!"),
    ("ü\u{a0}漢", "ü\u{a0}漢"),
    ("$(a) {{ b }}", "$(a) {{ b }}"),
];

#[test]
fn texts_are_quoted_where_they_would_be_read_as_something_else() {
    for (text, expected) in TEXTS {
        let written = write(&json!({"v": text}));
        assert_eq!(written, format!("v: {expected}\n"), "{text:?}");
        assert_eq!(read(&written), json!({"v": text}), "{written}");
        let other: Value =
            serde_saphyr::from_str(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
        assert_eq!(other, json!({"v": text}), "{written}");
    }
}

/// Whatever stands without quotes is read as the text; what has double ones would not be, by this reader or by others.
#[test]
fn quotes_are_there_for_a_reason() {
    let of_others = ["=", "<<", "1e400", "190:20:30.15", "1:30"];
    for (text, expected) in TEXTS.iter().filter(|(text, _)| text.chars().all(|c| matches!(c, ' '..='~'))) {
        let plain = parse_values(&format!("v: {text}\n")).ok().map(|mut trees| trees.remove(0).value);
        let same = plain == Some(json!({"v": text}));
        match expected.chars().next() {
            Some('\'') => {}
            Some('"') => {
                assert_ne!(same, !of_others.contains(text) && !text.starts_with("2001-"), "{text:?}")
            }
            _ => assert!(same, "{text:?}"),
        }
    }
}

#[test]
fn texts_are_keys_and_items_and_documents() {
    for (text, _) in TEXTS {
        let member = Map::from_iter([((*text).to_owned(), json!([text, [text, {"a": text}]]))]);
        for value in [Value::Object(member), json!([text]), json!([[[text], text]]), json!(text)] {
            let written = write(&value);
            assert_eq!(read(&written), value, "{written}");
        }
    }
}

#[test]
fn collections_are_written_as_kubectl_shows_them() {
    let value = json!({
        "kind": "A", "apiVersion": "v1", "list": [{"b": 1, "a": [{"x": []}]}, [1, [2]], {}],
        "map": {"none": {}, "null": null, "flag": true}, "numbers": [1, -1, 1.0, 0.5, 1e22, 1e-7, 1_234_567.5],
    });
    let sorted = "apiVersion: v1\nkind: A\nlist:\n- a:\n  - x: []\n  b: 1\n- - 1\n  - - 2\n- {}\nmap:\n  flag: true\n  \
                  none: {}\n  \"null\": null\nnumbers:\n- 1\n- -1\n- 1\n- 0.5\n- 1e+22\n- 1e-07\n- 1.2345675e+06\n";
    assert_eq!(write_sorted(&value), sorted);
    assert!(write(&value).starts_with("kind: A\napiVersion: v1\nlist:\n- b: 1\n  a:\n  - x: []\n"));
    assert_eq!(write(&json!({})), "{}\n");
    assert_eq!(write(&json!([])), "[]\n");
    assert_eq!(write(&json!(null)), "null\n");
    let long = "k".repeat(129);
    assert_eq!(write(&json!({(long.clone()): {"a": 1}, "b": 2})), format!("? {long}\n: a: 1\nb: 2\n"));
}

#[test]
fn long_texts_are_folded_at_single_blanks() {
    let words = |blank: &str| vec!["word"; 30].join(blank);
    let written = write(&json!({"v": words(" ")}));
    assert_eq!(written.lines().map(str::len).collect::<Vec<_>>(), [82, 71], "{written}");
    for text in [
        words(" "),
        words("  "),
        words(" - "),
        words(" ? "),
        words(": "),
        words(" \t "),
        format!("{} ", words("   ")),
        format!(" '{}", words(" ")),
        format!("{}\t ", "x".repeat(100)),
        format!("{}\t  ", "x".repeat(100)),
        format!("\t{}", words("  # ")),
    ] {
        for value in [json!({"v": text}), json!([[text]]), json!({(text.clone()): {"a": [text]}})] {
            let written = write(&value);
            assert_eq!(read(&written), value, "{written}");
            assert_eq!(serde_saphyr::from_str::<Value>(&written).unwrap(), value, "{written}");
        }
    }
}

#[test]
fn merge_keys_merge_maps_and_lists_of_maps() {
    let base = "a: &a {x: 1, z: 1}\nb: &b {x: 2, u: 2}\nv:\n";
    for (map, expected) in [
        ("  <<: *a\n  x: 3\n", json!({"x": 3, "z": 1})),
        ("  x: 3\n  <<: *a\n", json!({"x": 3, "z": 1})),
        ("  <<: [*a, *b]\n", json!({"x": 1, "z": 1, "u": 2})),
        ("  <<: [{x: 5}, *b]\n  u: 6\n", json!({"x": 5, "u": 6})),
        ("  !!merge <<: *a\n", json!({"x": 1, "z": 1})),
        ("  <<: []\n", json!({})),
        // In quotes it is a name like any other.
        ("  '<<': 1\n", json!({"<<": 1})),
        ("  \"<<\": *a\n  x: 3\n", json!({"<<": {"x": 1, "z": 1}, "x": 3})),
        ("  !!str <<: 1\n", json!({"<<": 1})),
    ] {
        assert_eq!(read(&format!("{base}{map}"))["v"], expected, "{map}");
    }
    for map in ["  <<: 1\n", "  <<:\n", "  <<: [*a, 1]\n"] {
        let refused = parse(&format!("{base}{map}")).unwrap_err();
        assert!(refused.message.contains("a merge key takes"), "{refused}");
        assert_eq!((refused.position.line, refused.too_much), (4, false));
    }
}

fn texts() -> impl Strategy<Value = String> {
    let pieces = "[-a~?:#&*!|>%@`'\"{}\\[\\],.0-9x_eE+=<yYnN \\n]{0,12}";
    let words =
        proptest::sample::select(TEXTS.iter().map(|(text, _)| (*text).to_owned()).collect::<Vec<_>>());
    let long = vec(prop_oneof![4 => "[a-z]{1,12}", 1 => words.clone(), 1 => Just(String::new())], 10..40);
    prop_oneof![
        4 => words.clone(),
        4 => pieces,
        2 => "(?s).{0,12}",
        2 => (words.clone(), "[ \\n\\t:#-]{0,3}", words).prop_map(|(a, b, c)| format!("{a}{b}{c}")),
        1 => long.prop_map(|words| words.join(" ")),
    ]
}

fn values() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => any::<f64>().prop_filter_map("JSON has no such number", |float| {
            serde_json::Number::from_f64(float).map(|number| go::json::reread(&number).into())
        }),
        6 => texts().prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 24, 5, |inner| {
        let members = vec((texts(), inner.clone()), 0..5);
        prop_oneof![
            vec(inner, 0..5).prop_map(Value::from),
            members.prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_written_is_read_back(value in values()) {
        for written in [write(&value), write_sorted(&value)] {
            prop_assert_eq!(&read(&written), &value, "{}", written);
        }
        prop_assert_eq!(parse(&write(&value)).unwrap().remove(0).value, value);
    }
}
