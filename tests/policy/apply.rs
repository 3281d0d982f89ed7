//! What would come of applying objects: pairing, what is sent at all, and who decides.

use std::sync::Arc;

use admit_policy::apply::{Applied, Change, FieldValidation, Options, PairError, Paired, Rehearsal, pair};
use serde_json::{Value, json};

use crate::support::{set, widgets};

const VERSIONS: &str = "  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: &schema
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, minimum: 5, x-kubernetes-validations: [{rule: self >= oldSelf}]}
              colour: {type: string, default: red}
          status: {type: object, properties: {ready: {type: boolean}}}
  - {name: v2, served: true, storage: false, schema: *schema, subresources: {status: {}}}
";

fn widget(version: &str, rest: &Value) -> Arc<Value> {
    let mut object =
        json!({"apiVersion": format!("example.com/{version}"), "kind": "Widget", "metadata": {"name": "a"}});
    for (key, value) in rest.as_object().into_iter().flatten() {
        object[key] = value.clone();
    }
    Arc::new(object)
}

fn apply(new: Arc<Value>, old: Option<Arc<Value>>, field_validation: FieldValidation) -> Applied {
    let set = set(&widgets(VERSIONS));
    let old: Vec<_> = old.into_iter().collect();
    let Paired { pairs, left } = pair(&[new], &old, set.documents(), "default").expect("they pair");
    assert!(left.is_empty());
    let options = Options { field_validation, ..Options::default() };
    Rehearsal::new(&set, [], options).apply(&pairs[0])
}

/// Change, and the causes of the refusal.
fn told(applied: &Applied) -> (Change, Vec<String>) {
    let causes = applied.refusal.iter().flat_map(|status| status.causes());
    (applied.change, causes.map(|cause| format!("{}: {}", cause.field, cause.message)).collect())
}

#[test]
fn an_object_is_created_updated_or_not_sent_at_all() {
    let spec = |size: i64| json!({"spec": {"size": size}});
    let stored = json!({
        "metadata": {"name": "a", "namespace": "default", "uid": "u", "annotations":
            {"kubectl.kubernetes.io/last-applied-configuration": "{}"}},
        "spec": {"size": 6, "colour": "red"}, "status": {"ready": true},
    });
    let shrinks = "spec.size: Invalid value: 5: failed rule: self >= oldSelf";
    let small = "spec.size: Invalid value: 4: spec.size in body should be greater than or equal to 5";
    type Case<'c> = (Arc<Value>, Option<Arc<Value>>, Change, &'c [&'c str]);
    let cases: [Case<'_>; 6] = [
        (widget("v1", &spec(6)), None, Change::Create, &[]),
        (widget("v1", &spec(4)), None, Change::Create, &[small]),
        (widget("v1", &spec(7)), Some(widget("v1", &stored)), Change::Update, &[]),
        (widget("v1", &spec(5)), Some(widget("v1", &stored)), Change::Update, &[shrinks]),
        // Defaults, and what the server and kubectl add, are no change; nor is another version of the same object.
        (widget("v1", &spec(6)), Some(widget("v1", &stored)), Change::Unchanged, &[]),
        (widget("v2", &spec(6)), Some(widget("v1", &stored)), Change::Unchanged, &[]),
    ];
    for (new, old, change, causes) in cases {
        let applied = apply(new.clone(), old, FieldValidation::Strict);
        assert_eq!(told(&applied), (change, causes.iter().map(ToString::to_string).collect()), "{new}");
    }
}

#[test]
fn names_in_messages_are_quoted_as_go_quotes() {
    let new = widget("v1", &json!({"metadata": {"name": "a\"\u{200b}"}, "spec": {"size": 6}}));
    let status = apply(new, None, FieldValidation::Strict).refusal.expect("a refusal");
    let begins = r#"Widget.example.com "a\"\u200b" is invalid: metadata.name: Invalid value: "#;
    assert!(status.message.starts_with(begins), "{}", status.message);
}

#[test]
fn what_was_wrong_before_may_stay_wrong() {
    let old = widget("v1", &json!({"spec": {"size": 3}}));
    let recoloured = widget("v1", &json!({"spec": {"size": 3, "colour": "blue"}}));
    assert_eq!(told(&apply(recoloured, Some(old), FieldValidation::Strict)), (Change::Update, Vec::new()));
}

#[test]
fn unknown_fields_refuse_warn_or_pass() {
    let new = || widget("v1", &json!({"spec": {"size": 6, "color": "red"}}));
    let strict = apply(new(), None, FieldValidation::Strict);
    let status = strict.refusal.expect("a refusal");
    assert_eq!((status.code, &*status.reason), (400, "BadRequest"));
    assert_eq!(
        status.message,
        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \"spec.color\""
    );
    let warned = apply(new(), None, FieldValidation::Warn);
    assert!(warned.refusal.is_none());
    assert_eq!(warned.warnings, ["unknown field \"spec.color\""]);
    let ignored = apply(new(), None, FieldValidation::Ignore);
    assert!(ignored.refusal.is_none() && ignored.warnings.is_empty());
}

#[test]
fn objects_pair_by_kind_namespace_and_name() {
    let set = set(&widgets(VERSIONS));
    let object = |kind: &str, metadata: Value| {
        Arc::new(json!({"apiVersion": "v1", "kind": kind, "metadata": metadata}))
    };
    let new = [
        object("ConfigMap", json!({"name": "a"})),
        object("ConfigMap", json!({"name": "a", "namespace": "other"})),
        object("Namespace", json!({"name": "a"})),
        object("ConfigMap", json!({"generateName": "a-"})),
        object("ConfigMap", json!({"generateName": "a-"})),
    ];
    let old = [
        object("ConfigMap", json!({"name": "b"})),
        object("Namespace", json!({"name": "a", "namespace": "ignored"})),
        object("ConfigMap", json!({"name": "a", "namespace": "default"})),
    ];
    let Paired { pairs, left } = pair(&new, &old, set.documents(), "default").expect("they pair");
    let told: Vec<_> = pairs.iter().map(|pair| (pair.identity.to_string(), pair.old.is_some())).collect();
    let expected = [
        ("ConfigMap default/a", true),
        ("ConfigMap other/a", false),
        ("Namespace a", true),
        ("ConfigMap default/a-XXXXX", false),
        ("ConfigMap default/a-XXXXX", false),
    ];
    assert_eq!(told, expected.map(|(identity, paired)| (identity.to_owned(), paired)));
    assert_eq!(left, [0]);

    let wrong = [
        object("ConfigMap", json!({"name": "a"})),
        object("ConfigMap", json!({"name": "a", "namespace": "default"})),
        object("ConfigMap", json!({})),
        Arc::new(json!({"a": 1})),
    ];
    let errors = pair(&wrong, &[], set.documents(), "default").expect_err("they cannot be applied together");
    assert_eq!(
        errors,
        [
            (1, PairError::Duplicate { identity: "ConfigMap default/a".to_owned(), first: 0 }),
            (2, PairError::NoName),
            (3, PairError::NoKind)
        ]
    );
}
