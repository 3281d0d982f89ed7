//! Definitions from registration to the verdict on an update.

use admit_policy::crd::{CompiledCrd, ValidateOptions, Validation};
use serde_json::{Value, json};

fn definition(spec_schema: &Value) -> Value {
    testing::definition(
        "widgets.example.com",
        "Widget",
        "Namespaced",
        &json!({"type": "object", "properties": {"spec": spec_schema}}),
    )
}

fn refusals(spec_schema: &Value) -> Vec<String> {
    let refused = CompiledCrd::compile(&definition(spec_schema)).err().unwrap_or_default();
    refused.iter().map(ToString::to_string).collect()
}

fn widget(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec})
}

fn validation(spec_schema: &Value, new: &Value, old: Option<&Value>) -> Validation {
    let old = old.map(widget);
    match CompiledCrd::compile(&definition(spec_schema)) {
        Ok(compiled) => {
            compiled.versions()[0].validate(&widget(new), old.as_ref(), &ValidateOptions::default())
        }
        // Told in place of what is expected.
        Err(errors) => Validation { errors, ..Validation::default() },
    }
}

fn errors(spec_schema: &Value, new: &Value, old: Option<&Value>) -> Vec<String> {
    validation(spec_schema, new, old).errors.iter().map(ToString::to_string).collect()
}

const SPEC: &str = "spec.validation.openAPIV3Schema.properties[spec]";

#[test]
fn absent_names_are_filled_in() {
    let compiled = CompiledCrd::compile(&definition(&json!({"type": "object"}))).expect("a definition");
    let names = &compiled.definition().names;
    assert_eq!((names.singular.as_str(), names.list_kind.as_str()), ("widget", "WidgetList"));
    assert_eq!(compiled.definition().group_resource(), "widgets.example.com");
}

#[test]
fn every_mistake_of_a_definition_is_told() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {}, "b": {"type": "string", "pattern": "("}},
        "allOf": [{"properties": {"c": {"maxLength": 1}}}],
    });
    assert_eq!(
        refusals(&schema),
        [
            format!(
                "{SPEC}.properties[a].type: Required value: must not be empty for specified object fields"
            ),
            format!(
                "{SPEC}.properties[b].pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: \
                 error parsing regexp: missing closing ): `(`"
            ),
        ]
    );
}

#[test]
fn a_rule_that_does_not_compile_is_shown_with_a_caret() {
    let schema = json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.x > 1"}]});
    let lines = refusals(&schema);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].ends_with(
            "\"OptionalOldSelf\":null}: compilation failed: ERROR: <input>:1:5: undefined field 'x'\n | self.x > 1\n | ....^"
        ),
        "{}",
        lines[0]
    );
}

#[test]
fn an_old_value_cannot_be_asked_for_in_an_atomic_list() {
    let schema = json!({"type": "object", "properties": {"l": {
        "type": "array",
        "maxItems": 5,
        "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]},
    }}});
    assert_eq!(
        refusals(&schema),
        [format!(
            "{SPEC}.properties[l].items.x-kubernetes-validations[0].rule: Invalid value: \"self >= oldSelf\": oldSelf \
             cannot be used on the uncorrelatable portion of the schema within {SPEC}.properties[l]"
        )]
    );
}

#[test]
fn an_update_may_not_change_what_objects_depend_on() {
    let old = definition(&json!({"type": "object"}));
    let mut new = old.clone();
    new["spec"]["names"]["plural"] = "gadgets".into();
    let errors = CompiledCrd::compile_update(&new, &old).map(|_| ()).expect_err("a refusal");
    let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(lines, ["spec.names.plural: Invalid value: \"gadgets\": field is immutable"]);
}

#[test]
fn items_of_map_lists_find_their_old_values_wherever_they_stand() {
    let schema = json!({"type": "object", "properties": {"l": {
        "type": "array", "maxItems": 5,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {
            "type": "object", "required": ["k"],
            "properties": {"k": {"type": "string"}, "n": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": "self.n >= oldSelf.n", "message": "may not shrink"}],
        },
    }}});
    let old = json!({"l": [{"k": "a", "n": 5}, {"k": "b", "n": 1}]});
    let new = json!({"l": [{"k": "new", "n": 0}, {"k": "b", "n": 1}, {"k": "a", "n": 4}]});
    assert_eq!(errors(&schema, &new, Some(&old)), ["spec.l[2]: Invalid value: may not shrink"]);
}

#[test]
fn an_optional_old_value_is_none_on_creation() {
    let rule = json!({"rule": "self > 10 || oldSelf.hasValue()", "optionalOldSelf": true});
    let schema = json!({"type": "object", "properties": {
        "n": {"type": "integer", "x-kubernetes-validations": [rule]},
    }});
    assert_eq!(
        errors(&schema, &json!({"n": 1}), None),
        ["spec.n: Invalid value: 1: failed rule: self > 10 || oldSelf.hasValue()"]
    );
    assert!(errors(&schema, &json!({"n": 2}), Some(&json!({"n": 1}))).is_empty());
}

#[test]
fn an_optional_old_value_of_another_type_cannot_be_asked_for() {
    let schema = json!({"type": "integer", "x-kubernetes-validations": [
        {"rule": "oldSelf.hasValue() && oldSelf.value() <= self", "optionalOldSelf": true}]});
    let expected = "spec: Invalid value: \"integer\": unsupported conversion to ref.Val: (*errors.errorString)invalid \
                    data, expected int, got string evaluating rule: oldSelf.hasValue() && oldSelf.value() <= self";
    assert_eq!(errors(&schema, &json!(5), Some(&json!("4"))), [expected]);
}

#[test]
fn what_did_not_change_is_let_pass_with_a_warning() {
    let schema = json!({"type": "object", "properties": {
        "n": {"type": "integer", "maximum": 5, "x-kubernetes-validations": [{"rule": "self % 2 == 0"}]},
        "m": {"type": "integer"},
    }});
    let found = validation(&schema, &json!({"n": 7, "m": 1}), Some(&json!({"n": 7})));
    assert_eq!(found.errors, []);
    assert_eq!(found.warnings, ["spec.n: Invalid value: 7: failed rule: self % 2 == 0"]);
    assert_eq!(errors(&schema, &json!({"n": 9}), Some(&json!({"n": 7}))).len(), 2);
}

#[test]
fn rules_wait_until_the_object_has_the_right_shape() {
    let schema = json!({"type": "object", "properties": {
        "n": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}]},
    }});
    assert_eq!(
        errors(&schema, &json!({"n": "x"}), None),
        [
            r#"spec.n: Invalid value: "string": spec.n in body must be of type integer: "string""#,
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; \
             correct the existing errors to complete validation",
        ]
    );
}

#[test]
fn reason_and_field_path_shape_the_error() {
    let rule = json!({
        "rule": "has(self.a)", "message": "give a name", "reason": "FieldValueRequired", "fieldPath": ".meta['x y']",
    });
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "meta": {"type": "object", "additionalProperties": {"type": "string"}}},
        "x-kubernetes-validations": [rule],
    });
    assert_eq!(errors(&schema, &json!({}), None), ["spec.meta[x y]: Required value: give a name"]);
}

#[test]
fn a_message_expression_that_cannot_be_shown_gives_way() {
    let schema = |expression: &str| {
        json!({"type": "object", "properties": {"n": {"type": "integer", "x-kubernetes-validations": [
            {"rule": "self > 5", "messageExpression": expression, "message": "fallback"},
        ]}}})
    };
    let told = |expression| errors(&schema(expression), &json!({"n": 1}), None);
    assert_eq!(told("self == 1 ? ' just one ' : 'few'"), ["spec.n: Invalid value: 1: just one"]);
    assert_eq!(told(r"'two\nlines'"), ["spec.n: Invalid value: 1: fallback"]);
    assert_eq!(told("'  '"), ["spec.n: Invalid value: 1: fallback"]);
}

#[test]
fn a_message_expression_sees_the_old_value_as_it_is() {
    let with = |rule: Value| json!({"type": "string", "maxLength": 9, "x-kubernetes-validations": [rule]});
    let property = |a: &Value| json!({"type": "object", "properties": {"a": a}});
    let told =
        |schema: &Value, old: &str| errors(&property(schema), &json!({"a": "x"}), Some(&json!({"a": old})));
    // The rule asks an optional value; for the message it is none, so that its own methods fail.
    let optional = with(json!({
        "rule": "self == oldSelf.orValue('')", "optionalOldSelf": true, "message": "changed",
        "messageExpression": "oldSelf.hasValue() ? 'was' : 'new'",
    }));
    assert_eq!(told(&optional, "y"), ["spec.a: Invalid value: \"x\": changed"]);
    let plain = with(
        json!({"rule": "self == oldSelf", "message": "changed", "messageExpression": "'was ' + oldSelf"}),
    );
    assert_eq!(told(&plain, "y"), ["spec.a: Invalid value: \"x\": was y"]);
    // No rule of the node is about change: there is no old value.
    let unasked =
        with(json!({"rule": "self != 'x'", "message": "no x", "messageExpression": "'was ' + oldSelf"}));
    assert_eq!(told(&unasked, "y"), ["spec.a: Invalid value: \"x\": no x"]);
}

#[test]
fn a_status_that_was_not_there_was_null() {
    let mut definition = definition(&json!({"type": "object"}));
    let version = &mut definition["spec"]["versions"][0];
    version["subresources"] = json!({"status": {}});
    version["schema"]["openAPIV3Schema"]["properties"]["status"] =
        json!({"type": "string", "nullable": true, "enum": ["a"]});
    let compiled = CompiledCrd::compile(&definition).unwrap();
    let with = |status: Option<Value>| {
        let mut object = widget(&json!({}));
        status.into_iter().for_each(|status| object["status"] = status);
        object
    };
    let refused = |new: &Value, old: Option<Value>| {
        let options = ValidateOptions { status: true, ..ValidateOptions::default() };
        !compiled.versions()[0]
            .validate(&with(Some(new.clone())), Some(&with(old)), &options)
            .errors
            .is_empty()
    };
    for (new, old, expected) in [
        (json!(null), None, false),
        (json!(null), Some(json!(null)), false),
        (json!(null), Some(json!("a")), true),
        (json!("b"), None, true),
        (json!("b"), Some(json!("b")), false),
    ] {
        assert_eq!(refused(&new, old.clone()), expected, "{new} after {old:?}");
    }
}

#[test]
fn a_status_is_checked_alone_and_at_its_place() {
    let mut definition =
        definition(&json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}));
    let version = &mut definition["spec"]["versions"][0];
    version["subresources"] = json!({"status": {}});
    version["schema"]["openAPIV3Schema"]["properties"]["status"] =
        json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}});
    let compiled = CompiledCrd::compile(&definition).expect("a definition");
    let mut object = widget(&json!({}));
    object["status"] = json!({"n": -1});
    let options = ValidateOptions { status: true, ..ValidateOptions::default() };
    let old = widget(&json!({}));
    let found = compiled.version("v1").expect("v1").validate(&object, Some(&old), &options);
    let lines: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
    assert_eq!(lines, ["status.n: Invalid value: -1: n in body should be greater than or equal to 0"]);
}
