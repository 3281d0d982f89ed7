//! Tests of YAML parsing: what values text becomes, and the positions of its parts.

use admit_policy::manifest::{Document, Position, parts, read, read_leniently};
use serde_json::{Value, json};

fn value(text: &str) -> Value {
    let mut documents = read("a.yaml", text).expect("the text is YAML");
    assert_eq!(documents.len(), 1, "{text}");
    documents.remove(0).value
}

fn error(text: &str) -> String {
    let errors = read("a.yaml", text).expect_err("the text is none");
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn scalars_read_as_kubernetes_reads_them() {
    let cases = [
        ("yes", json!(true)),
        ("off", json!(false)),
        ("'yes'", json!("yes")),
        ("~", json!(null)),
        ("010", json!(8)),
        ("0x1F", json!(31)),
        ("1_000", json!(1000)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("18446744073709551615", json!(u64::MAX)),
        ("1.0", json!(1)),
        ("1.5", json!(1.5)),
        ("1e3", json!(1000)),
        ("1e22", json!(1e22)),
        ("2001-01-01", json!("2001-01-01")),
        ("1.2.3", json!("1.2.3")),
        ("+", json!("+")),
        ("!!str 5", json!("5")),
        ("\"a\\tb\"", json!("a\tb")),
    ];
    for (text, expected) in cases {
        assert_eq!(value(&format!("v: {text}")), json!({"v": expected}), "{text}");
    }
}

#[test]
fn keys_become_text() {
    assert_eq!(value("y: 1\nn: 2\n3: 4\nnull: 5"), json!({"true": 1, "false": 2, "3": 4, "null": 5}));
}

#[test]
fn aliases_and_merges_expand() {
    let text = "base: &b {x: 1, y: 2}\nother: *b\nmerged:\n  <<: *b\n  x: 3";
    let expected =
        json!({"base": {"x": 1, "true": 2}, "other": {"x": 1, "true": 2}, "merged": {"x": 3, "true": 2}});
    assert_eq!(value(text), expected);
}

#[test]
fn documents_and_lists_come_apart() {
    let text = "---\n---\nkind: A\n---\nkind: List\nitems:\n- kind: B\n- kind: BList\n  items: [{kind: C}]\n";
    let kinds: Vec<_> = read("a.yaml", text)
        .unwrap()
        .into_iter()
        .map(|d| d.value["kind"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds, ["A", "B", "C"]);
}

#[test]
fn json_is_read_too() {
    assert_eq!(value("{\"a\": [1, \"\\u00e9\", {\"b\": null}]}\n"), json!({"a": [1, "é", {"b": null}]}));
}

#[test]
fn fields_are_found_in_the_text() {
    let text = "spec:\n  rules:\n  - expression: a\n    map:\n      a.b/c: 1\n";
    let document = read("a.yaml", text).unwrap().remove(0);
    let at = |field: &str| {
        let position = document.position(field);
        (position.line, position.column)
    };
    assert_eq!(at("spec.rules[0].expression"), (3, 5));
    assert_eq!(at("spec.rules[0].map[a.b/c]"), (5, 7));
    assert_eq!(at("spec.rules[0].absent.deeper"), (3, 5));
    assert_eq!(at("spec.rules[7]"), (2, 3));
    assert_eq!(at(""), (1, 1));
}

#[test]
fn a_schema_is_found_under_its_version() {
    let text =
        "spec:\n  versions:\n  - name: v1\n    schema:\n      openAPIV3Schema:\n        type: object\n";
    let document = read("a.yaml", text).unwrap().remove(0);
    assert_eq!(document.position("spec.validation.openAPIV3Schema.type").line, 6);
}

#[test]
fn mistakes_name_their_place() {
    assert_eq!(error("a: 1\nb: 2\na: 3\n"), "a.yaml:3:1: key `a` is already set in this map");
    assert!(error("a: [1\nb: 2").starts_with("a.yaml:2:"), "{}", error("a: [1\nb: 2"));
    assert!(error("a: .nan").ends_with("`.nan` is no JSON value"));
    assert!(error("? [a]\n: 1").ends_with("a map's key must be a scalar"));
    assert!(error("a: &x [*x]").contains("a.yaml:1:"));
}

#[test]
fn bombs_are_refused() {
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let below = level - 1;
        laughs.push_str(&format!("a{level}: &a{level} [{}]\n", vec![format!("*a{below}"); 10].join(", ")));
    }
    assert!(error(&laughs).contains("aliases count as often as they are used"), "{}", error(&laughs));
    assert!(error(&"[".repeat(100_000)).starts_with("a.yaml:1:"));
    let nested: String = (0..300).map(|level| format!("{}- \n", " ".repeat(level))).collect();
    assert!(
        error(&nested).contains("nested deeper") || error(&nested).contains("not YAML"),
        "{}",
        error(&nested)
    );
}

#[test]
fn lists_stand_for_their_items() {
    let kinds = |text: &str| -> Vec<(String, String)> {
        let text_of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let documents = read("a.yaml", text).unwrap().into_iter();
        documents.map(|found| (text_of(&found.value["apiVersion"]), text_of(&found.value["kind"]))).collect()
    };
    let of = |found: &[(&str, &str)]| -> Vec<(String, String)> {
        found.iter().map(|(version, kind)| ((*version).to_owned(), (*kind).to_owned())).collect()
    };
    let mixed =
        "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret}, {apiVersion: a/v1, kind: B}]}";
    assert_eq!(kinds(mixed), of(&[("v1", "Secret"), ("a/v1", "B")]));
    let typed = "{apiVersion: a/v1, kind: WidgetList, items: [{metadata: {name: x}}, {kind: Widget, apiVersion: a/v2}]}";
    assert_eq!(kinds(typed), of(&[("a/v1", "Widget"), ("a/v2", "Widget")]));
    assert_eq!(kinds("{apiVersion: a/v1, kind: WidgetList, items: []}"), []);
    let own = "{apiVersion: a/v1, kind: AllowList, items: [x, y]}";
    assert_eq!(kinds(own), of(&[("a/v1", "AllowList")]), "an object whose kind ends so");
}

/// More values than a text may have, in documents of which each has few.
#[test]
fn documents_one_by_one_are_bounded_one_by_one() {
    let list = format!("[{}]", "0,".repeat(2_000));
    let text = format!("a: {list}\n---\n").repeat(600);
    assert!(error(&text).contains("aliases count as often as they are used"), "{}", error(&text));
    let whole = parts("a.yaml", &text).map(|part| part.unwrap().documents.len()).sum::<usize>();
    assert_eq!(whole, 600);
    let lines = parts("a.yaml", &text).flat_map(|part| part.unwrap().documents).map(|it| it.here().line);
    assert_eq!(lines.take(3).collect::<Vec<_>>(), [1, 3, 5]);
}

/// One document alone is refused as it would be in a text of its own, and nothing comes after it.
#[test]
fn one_of_many_documents_may_be_too_much() {
    let laughs: String =
        (1..8).map(|n| format!("l{n}: &l{n} [{}]\n", format!("*l{},", n - 1).repeat(10))).collect();
    let text = format!("a: 1\n---\nl0: &l0 [0]\n{laughs}---\nb: 1\n");
    let read: Vec<_> = parts("a.yaml", &text).collect();
    assert_eq!(read.len(), 2);
    assert_eq!(read[0].as_ref().unwrap().documents[0].value, json!({"a": 1}));
    let refused = read[1].as_ref().unwrap_err();
    assert!(refused.message.contains("aliases count as often as they are used"), "{refused}");
    assert!(refused.position.line > 3, "{refused}");
}

#[test]
fn anchors_of_earlier_documents_are_told_of() {
    let read: Vec<_> = parts("a.yaml", "a: &x 1\n---\nb: *x\n---\nc: 1\n").collect();
    assert_eq!(read.len(), 2);
    let refused = read[1].as_ref().unwrap_err();
    assert!(refused.message.contains("anchors end with their document"), "{refused}");
}

#[test]
fn keys_set_twice_are_told_by_document() {
    let read: Vec<_> = parts("a.yaml", "a: 1\na: 2\n---\n---\nb: 1\n").map(Result::unwrap).collect();
    let told: Vec<_> = read.iter().map(|part| (part.documents.len(), part.duplicates.len())).collect();
    assert_eq!(told, [(1, 1), (0, 0), (1, 0)]);
    assert_eq!(read[0].duplicates[0].position, Position { line: 2, column: 1 });
}

/// The same documents, whether all are read at a time or each by itself.
#[test]
fn items_of_lists_come_one_by_one_as_they_do_together() {
    let typed = "apiVersion: a/v1\nitems:\n- metadata: {name: x}\n- kind: Widget\n  apiVersion: a/v2\nkind: WidgetList\n";
    for text in [
        "apiVersion: v1\nitems:\n- {kind: A, b: 1}\n- kind: List\n  items: [{kind: B}, {kind: C}]\nkind: List\nmetadata: {}\n",
        "{\"kind\": \"List\", \"apiVersion\": \"v1\", \"items\": [{\"kind\": \"A\"}, {\"kind\": \"B\"}]}",
        typed,
        &format!("a: 1\n---\n{typed}---\n---\n{typed}"),
        "kind: AllowList\nitems: [x, y]\n",
        "kind: WidgetList\nitems: [{metadata: {}}, {spec: 1}]\n",
        "items: [{kind: A}]\n",
        "kind: ConfigMap\nitems: [{kind: A}]\n",
        "kind: List\nitems: []\n",
        "kind: List\nitems: {a: 1}\n",
        "kind: List\nitems: [{kind: A}]\nitems: [{kind: B}]\n",
        "kind: List\nitems: [{kind: A}]\nkind: ConfigMap\n",
        "kind: !!binary TGlzdA==\nitems: [{kind: A}]\n",
        "a: &a {kind: List}\n<<: *a\nitems: [{kind: A}]\n",
        "kind: List\na: &a [{kind: A}]\nitems: *a\n",
        "kind: List\nitems: &a [{kind: A}]\nb: *a\n",
        "&a {kind: List, items: [{kind: A}]}\n",
        "kind: List\nitems: [&a {kind: A}, *a, {kind: B, c: *a}]\nd: *a\n",
        "kind: AList\nitems: [&a {metadata: {}}, *a]\n",
        "? [kind]\n: List\nitems: [{kind: A}]\n",
        "kind: 5List\nitems: [{kind: A}, null, 3, [x]]\n",
        "- items: [{kind: A}]\n",
        "kind: List\nitems:\n- {kind: A}\n- {kind: B\n",
        // Lists within lists.
        "kind: List\nitems:\n- {kind: List, items: [{kind: A, c: 1}, {kind: B}]}\n- {kind: C}\n",
        "items:\n- items: [{kind: A}, {items: [{kind: B, kind: C}], kind: List}, 3]\n  kind: List\n- {kind: D}\nkind: List\n",
        "{kind: PodList, items: [{kind: List, items: [{metadata: {}}]}, {metadata: {}}, {kind: MapList, items: [{metadata: {}}]}]}\n",
        "{kind: List, items: [{kind: PodList, items: [{metadata: {}}, {a: 1}]}, {kind: B}]}\n",
        "{kind: List, items: [{kind: List, items: []}, {kind: PodList, items: [], items: [{kind: A}]}, {kind: B}]}\n",
        "{kind: List, items: [{kind: B, items: [{kind: List, items: [{kind: A}]}]}, {kind: List, items: [{kind: C}]}]}\n",
        "{kind: List, items: [&a {kind: List, items: [{kind: A}]}, *a, {kind: List, items: &b [{kind: B}]}, {c: *b}]}\n",
        "{kind: List, items: [{kind: List, items: [&a {kind: A}, *a]}, {kind: List, items: [*a]}, *a]}\n",
        "{kind: X, items: [{kind: List, items: [{kind: A}]}]}\n---\n{kind: List, items: [{kind: List, items: [{kind: A}]}]}\n",
        "{kind: ListList, items: [{items: [{kind: A}], metadata: {}}]}\n",
        "{kind: List, items: [{<<: {kind: List}, items: [{kind: A}]}, {\"kind\": \"List\", \"items\": [{kind: B}]}]}\n",
        "{kind: List, items: [{kind: List, items: [{kind: A}, {kind: B]}]}\n",
    ] {
        let shown = |documents: &[Document]| -> Vec<String> {
            documents.iter().map(|found| format!("{} {:?}", found.value, found.position("c"))).collect()
        };
        let together =
            read_leniently("a.yaml", text).map(|(documents, duplicates)| (shown(&documents), duplicates));
        let mut single = (Vec::new(), Vec::new());
        let mut mistake = None;
        for part in parts("a.yaml", text) {
            match part {
                Ok(part) => {
                    single.0.extend(shown(&part.documents));
                    single.1.extend(part.duplicates);
                }
                Err(error) => mistake = Some(error),
            }
        }
        match together {
            Ok(together) => assert_eq!((together, None), (single, mistake), "{text}"),
            Err(errors) => assert_eq!(Some(&errors[0]), mistake.as_ref(), "{text}"),
        }
    }
}

/// More values than a document may have, in a list as `kubectl get -o yaml` writes it: each item has few.
#[test]
fn items_of_a_list_are_bounded_one_by_one() {
    let item = format!("- a: [{}]\n  a: 2\n", "0,".repeat(2_000));
    let text = format!("apiVersion: v1\nitems:\n{}kind: List\n", item.repeat(600));
    assert!(error(&text).contains("aliases count as often as they are used"), "{}", error(&text));
    let read: Vec<_> = parts("a.yaml", &text).map(Result::unwrap).collect();
    assert_eq!(read.iter().map(|part| part.documents.len()).sum::<usize>(), 600);
    assert!(read.iter().all(|part| part.documents.len() < 2), "an item at a time");
    assert_eq!(read.iter().map(|part| part.duplicates.len()).sum::<usize>(), 600);
    assert_eq!(read[1].documents[0].here().line, 5);
}

/// Lists within lists, as one gets who puts the output of commands together, are read item by item as well; and however deep
/// they are, in memory that the text does not set.
#[test]
fn items_of_lists_within_lists_come_one_by_one() {
    let item = format!("{{kind: A, a: [{}]}},", "0,".repeat(2_000));
    let inner = format!("{{items: [{}], kind: List}},", item.repeat(170));
    let text = format!("{{items: [{}{item}], kind: List}}", inner.repeat(3));
    assert!(error(&text).contains("aliases count as often as they are used"), "{}", error(&text));
    let mut count = 0;
    for part in parts("a.yaml", &text) {
        let documents = part.unwrap().documents.len();
        assert!(documents < 2, "an item at a time");
        count += documents;
    }
    assert_eq!(count, 511);

    for depth in [60, 120] {
        let (open, close) = ("{kind: List, items: [".repeat(depth), "]}".repeat(depth));
        let text = format!("{open}{{kind: A}}, {{kind: B}}{close}");
        let read: Vec<_> = parts("a.yaml", &text).map(Result::unwrap).collect();
        assert_eq!(read.iter().map(|part| part.documents.len()).sum::<usize>(), 2, "{depth}");
    }
    let deep = "{items: [".repeat(100_000);
    assert!(parts("a.yaml", &deep).any(|part| part.is_err()), "an error, and no crash");
}

/// What an item keeps for those after it counts for all of them.
#[test]
fn anchors_of_items_are_bounded_together() {
    let item = |number: usize| format!("- &a{number} [{}]\n", "0,".repeat(2_000));
    let text = format!("kind: List\nitems:\n{}", (0..600).map(item).collect::<String>());
    let refused = parts("a.yaml", &text).find_map(Result::err).unwrap();
    assert!(refused.message.contains("aliases count as often as they are used"), "{refused}");
    // Those of lists within lists, too.
    let list = |number: usize| format!("- kind: List\n  items:\n  - &a{number} [{}]\n", "0,".repeat(2_000));
    let text = format!("kind: List\nitems:\n{}", (0..600).map(list).collect::<String>());
    let refused = parts("a.yaml", &text).find_map(Result::err).unwrap();
    assert!(refused.message.contains("aliases count as often as they are used"), "{refused}");
}
