//! AdmissionReviews that are right and wrong.

use admit_policy::json::JsonError;
use admit_policy::{Arena, NoReview, Object, Operation, Request, Review, json};
use serde_json::{Value, json};

fn review(changes: &[(&str, Value)]) -> Vec<u8> {
    let mut review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
            "requestKind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "name": "web",
            "namespace": "team",
            "operation": "UPDATE",
            "userInfo": {"username": "alice", "extra": {"scopes": ["a", "b"]}},
            "object": {"metadata": {"name": "web"}},
            "oldObject": null,
            "dryRun": true,
        },
    });
    for (pointer, value) in changes {
        *review.pointer_mut(pointer).expect("the field is there") = value.clone();
    }
    review.to_string().into_bytes()
}

#[test]
fn everything_is_read() {
    let (arena, text) = (Arena::default(), review(&[]));
    let request = Request::from_review(Review::read(&arena, &text).unwrap()).expect("the review is right");
    assert_eq!(request.operation, Operation::Update);
    assert_eq!(request.kind.api_version(), "apps/v1");
    assert_eq!(request.request_resource, request.resource, "what is left out is as the resource");
    assert_eq!(request.user.extra["scopes"], ["a", "b"]);
    assert!(request.old_object.is_none(), "null is absent");
    assert_eq!(*request.object.unwrap().value(), json!({"metadata": {"name": "web"}}));
    assert!(request.dry_run);
}

#[test]
fn what_is_wrong_is_named_with_the_uid_where_there_is_one() {
    let refused = |text: &[u8]| {
        let arena = Arena::default();
        let read = Request::from_review(Review::read(&arena, text).unwrap()).map(|request| request.uid);
        // Decoded before, it is refused for the same reason.
        let decoded = Request::from_review(Review::of(serde_json::from_slice(text).unwrap()));
        let error = read.unwrap_err();
        assert_eq!(decoded.unwrap_err(), error);
        error
    };
    let cases = [
        (
            ("/apiVersion", json!("admission.k8s.io/v1beta1")),
            "apiVersion must be `admission.k8s.io/v1`, not `admission.k8s.io/v1beta1`",
        ),
        (("/kind", json!("Review")), "kind must be `AdmissionReview`, not `Review`"),
        (
            ("/request/operation", json!("PATCH")),
            "request.operation: `PATCH` is not one of CREATE, UPDATE, DELETE, CONNECT",
        ),
        (("/request/resource", json!({})), "request.resource.version: must be specified"),
        (("/request/resource/resource", json!("")), "request.resource.resource: must be specified"),
        (("/request/kind", Value::Null), "request.kind.version: must be specified"),
        (("/request/name", json!(7)), "request.name: must be a string, not a number"),
        (("/request/userInfo/extra", json!([])), "request.userInfo.extra: must be an object, not a list"),
    ];
    for (change, expected) in cases {
        let error = refused(&review(&[change]));
        assert_eq!((error.to_string().as_str(), error.uid.as_deref()), (expected, Some("u-1")));
    }
    assert_eq!(refused(b"[]").to_string(), "must be an object, not a list");
    let error = refused(&review(&[("/request", Value::Null)]));
    assert_eq!((error.to_string().as_str(), error.uid), ("request: must be specified", None));
}

/// What the quick reader takes is what the one with kube-apiserver's words takes too, and the same.
#[test]
fn both_readers_agree() {
    let number = |text: &str| format!(r#"{{"request": {{"object": {{"n": {text}}}}}}}"#);
    let mut texts: Vec<Vec<u8>> =
        ["0", "-0", "1.0", "1e3", "-7", "9223372036854775808", "1e999", "01", "-", "1.", "+1"]
            .iter()
            .map(|text| number(text).into_bytes())
            .collect();
    for text in [
        r#""\ud83d\ude00""#,
        r#""\ud83dx""#,
        r#""\ud83d\u0041""#,
        r#""\udc00""#,
        r#""\u12""#,
        r#""\x""#,
        "\"a\u{1}b\"",
        "\"\u{feff}\"",
        "{}",
        "[]",
        "[[], {}]",
        "tru",
        "nullx",
        "[1,]",
        "{\"a\":1,}",
        "{,}",
        "[1 2]",
    ] {
        texts.push(number(text).into_bytes());
        texts.push(format!(r#"{{"{text}": 1, "request": {text}}}"#).into_bytes());
        texts.push(text.as_bytes().to_vec());
    }
    let whole = review(&[("/request/oldObject", json!({"a\"b": [1, {"c": null}], "": "ä\n"}))]);
    texts.extend((0..whole.len()).map(|end| whole[..end].to_vec()));
    texts.extend((0..whole.len()).map(|at| {
        let mut broken = whole.clone();
        broken[at] = 0xff;
        broken
    }));
    texts.push(format!("{}{}", "[".repeat(510), "]".repeat(510)).into_bytes());
    texts.push(format!("{}{}", "[".repeat(513), "]".repeat(513)).into_bytes());
    let mut taken = 0;
    for text in texts.iter().chain([&whole]) {
        let arena = Arena::default();
        let decoded = json::parse(text).map(|document| Review::of(document.value));
        match (Review::read(&arena, text), decoded) {
            (Ok(read), Ok(decoded)) => {
                taken += 1;
                assert_eq!(parts(read), parts(decoded), "{}", String::from_utf8_lossy(text));
            }
            (Err(NoReview::Syntax(read)), Err(JsonError::Syntax(decoded))) => assert_eq!(read, decoded),
            (read, decoded) => panic!("{read:?}, {decoded:?}: {}", String::from_utf8_lossy(text)),
        }
    }
    assert!(taken > 100, "{taken}");
}

/// All that a review holds.
fn parts(review: Review<'_>) -> (Value, [Option<Value>; 3]) {
    let Review { envelope, object, old_object, options } = review;
    let seen = |object: Option<Object<'_>>| object.map(|object| object.node().to_json());
    (envelope, [object, old_object, options].map(seen))
}

#[test]
fn fields_that_stand_twice_are_named() {
    let arena = Arena::default();
    let text = br#"{"request": {"uid": "a", "object": {"a": 1, "b": {"c": 1, "c": 2}, "a": 2}, "uid": "b"}}"#;
    let NoReview::Duplicates(repeats) = Review::read(&arena, text).unwrap_err() else {
        panic!("fields stand twice")
    };
    assert!(repeats.paths().eq(["request.object.b.c", "request.object.a", "request.uid"]));
    assert!(!repeats.are_within(&[["request", "object"]]));
    let text =
        br#"{"request": {"uid": "a", "object": {"b": {"c": 1, "c": 2}}, "oldObject": {"d": 1, "d": 1}}}"#;
    let NoReview::Duplicates(repeats) = Review::read(&arena, text).unwrap_err() else {
        panic!("fields stand twice")
    };
    assert!(repeats.are_within(&[["request", "object"], ["request", "oldObject"]]));
    assert!(!repeats.are_within(&[["request", "object"]]));
}

/// What the fast reader does not take is read by the other, and is changed in the same way.
#[test]
fn objects_that_nest_deep_or_hold_millions_are_read_by_the_other_reader() {
    let arena = Arena::default();
    let nested = format!("{}1{}", "[".repeat(505), "]".repeat(505));
    let text =
        format!(r#"{{"kind": "A", "metadata": {{"name": "a", "resourceVersion": "7"}}, "spec": {nested}}}"#);
    let read = arena.object(&text).expect("an object");
    assert!(matches!(read, Object::Shared(_)));
    assert_eq!((read.text("kind"), read.metadata("name")), (Some("A"), Some("a")));
    let other = arena.with_version(&read, Some("3")).expect("metadata");
    assert_eq!(other.metadata("resourceVersion"), Some("3"));
    assert_eq!(arena.with_version(&other, None).expect("metadata").metadata("resourceVersion"), None);
    let without = arena.object(r#"{"kind": "A"}"#).expect("an object");
    assert!(arena.with_version(&without, Some("3")).is_none());
    let heavy = format!("[{}0]", "0,".repeat(2_000_000));
    assert!(arena.object(&heavy).is_none(), "it takes more memory than its length allows");
}
