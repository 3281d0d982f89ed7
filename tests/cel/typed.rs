//! Documents seen through declared types: nulls, names, formats, sets and map lists.

use std::sync::Arc;

use admit_cel::{
    Bindings, DeclField, DeclKind, DeclType, Env, Evaluation, ListType, Mode, Node, Type, Value, Version,
};
use bumpalo::Bump;
use serde_json::{Value as Json, json};

fn decl(kind: DeclKind) -> Arc<DeclType> {
    Arc::new(DeclType { kind, nullable: false, max_elements: None, min_serialized_size: 0 })
}

fn scalar(ty: Type) -> Arc<DeclType> {
    decl(DeclKind::Scalar(ty))
}

fn list(items: Arc<DeclType>, list_type: ListType) -> Arc<DeclType> {
    decl(DeclKind::List { items, list_type })
}

/// An object; fields are `(property, name in expressions, type)`.
fn object(fields: &[(&str, &str, Arc<DeclType>)]) -> Arc<DeclType> {
    let mut fields: Vec<_> = fields
        .iter()
        .map(|(name, cel_name, decl)| DeclField {
            name: (*name).into(),
            cel_name: (*cel_name).into(),
            decl: Arc::clone(decl),
            required: false,
        })
        .collect();
    fields.sort_by(|a, b| a.cel_name.cmp(&b.cel_name));
    decl(DeclKind::Object { name: "selfType0".into(), fields: fields.into() })
}

/// The declared type of `self` in these tests.
fn declared() -> Arc<DeclType> {
    let keyed = object(&[("k", "k", scalar(Type::String)), ("v", "v", scalar(Type::Int))]);
    let value = object(&[("x", "x", scalar(Type::Int))]);
    let by_name = decl(DeclKind::Map { key: scalar(Type::String), value });
    object(&[
        ("my-field", "my__dash__field", scalar(Type::Int)),
        ("number", "number", scalar(Type::Double)),
        ("text", "text", scalar(Type::String)),
        ("when", "when", scalar(Type::Timestamp)),
        ("day", "day", decl(DeclKind::Date)),
        ("whens", "whens", list(scalar(Type::Timestamp), ListType::Atomic)),
        ("days", "days", list(decl(DeclKind::Date), ListType::Atomic)),
        ("span", "span", scalar(Type::Duration)),
        ("data", "data", scalar(Type::Bytes)),
        ("either", "either", scalar(Type::Dyn)),
        ("set", "set", list(scalar(Type::String), ListType::Set)),
        ("numbers", "numbers", list(scalar(Type::Double), ListType::Set)),
        ("spans", "spans", list(scalar(Type::Duration), ListType::Set)),
        ("lists", "lists", list(list(scalar(Type::String), ListType::Atomic), ListType::Set)),
        ("nested", "nested", list(list(scalar(Type::String), ListType::Atomic), ListType::Atomic)),
        ("keyed", "keyed", list(keyed, ListType::Map(["k".into()].into()))),
        ("inner", "inner", object(&[("deep", "deep", object(&[("x", "x", scalar(Type::Int))]))])),
        ("by_name", "by_name", by_name),
        ("atomic", "atomic", list(scalar(Type::String), ListType::Atomic)),
        ("map", "map", decl(DeclKind::Map { key: scalar(Type::String), value: scalar(Type::Int) })),
    ])
}

fn eval(text: &str, this: &Json, old: &Json) -> Result<Json, String> {
    let decl = declared();
    let env = Env::kubernetes(Version(1, 36), Mode::New)
        .with_variable("self", Type::Object(Arc::clone(&decl)))
        .with_variable("oldSelf", Type::Object(Arc::clone(&decl)));
    let checked = env.compile(text).map_err(|error| error.to_string())?;
    let program = env.program(&checked).map_err(|error| error.to_string())?;
    let arena = Bump::new();
    let mut bindings = Bindings::new(&program);
    for (name, json) in [("self", this), ("oldSelf", old)] {
        let node = Node::from_json(json);
        let value = Value::from_node(&arena, node, Some(&decl)).map_err(|error| error.to_string())?;
        bindings.set(name, value);
    }
    let mut cx = Evaluation::new(&arena);
    let value = program.eval(&bindings, &mut cx).map_err(|error| error.to_string())?;
    value.to_json(&arena).map_err(|error| error.to_string())
}

/// Every expression is true of `self` and `oldSelf`.
fn assert_true(this: &Json, old: &Json, expressions: &[&str]) {
    for text in expressions {
        assert_eq!(eval(text, this, old), Ok(json!(true)), "{text}");
    }
}

#[test]
fn fields_are_found_by_escaped_names_and_nulls_are_absent() {
    let this = json!({"my-field": 1, "text": null, "map": {"a-b": 2}});
    assert_true(
        &this,
        &json!({}),
        &[
            "self.my__dash__field == 1",
            "has(self.my__dash__field)",
            "!has(self.text)",
            "!has(oldSelf.text)",
            "self.?text.orValue('x') == 'x'",
            "self.map['a-b'] == 2",
            "self.map.all(k, k == 'a-b')",
            "!has(self.map) || self.map.size() == 1",
        ],
    );
    assert_eq!(eval("self.text == ''", &this, &json!({})), Err("no such key: text".to_owned()));
}

#[test]
fn scalars_have_their_declared_type() {
    let this = json!({
        "number": 1, "when": "2020-01-01T00:00:00.5+01:00", "span": "1h30m", "data": "aGk_", "either": 5,
        "whens": ["2020-01-01T00:00:00", "2021-01-01T00:00:00Z"], "day": "2020-02-29", "days": ["2021-02-01"],
    });
    assert_true(
        &this,
        &json!({"either": "50%", "number": 2.5}),
        &[
            "self.number == 1.0",
            "type(self.number) == double",
            "self.when == timestamp('2019-12-31T23:00:00.5Z')",
            "self.span == duration('90m')",
            "self.data == b'hi?'",
            "type(self.either) == int && type(oldSelf.either) == string",
            "self.whens[0].getFullYear() == 2020",
            "self.whens.all(w, w < timestamp('2022-01-01T00:00:00Z'))",
            "timestamp('2021-01-01T00:00:00Z') in self.whens",
            "self.day.getDayOfYear() == 59 && self.day == timestamp('2020-02-29T00:00:00Z')",
            "timestamp('2021-02-01T00:00:00Z') in self.days",
        ],
    );
    let wrong = eval("self.number > 0.0", &json!({"number": "1"}), &json!({}));
    assert_eq!(wrong, Err("invalid data, expected float, got string".to_owned()));
    let member = |rule: &str, this: Json| eval(rule, &this, &json!({}));
    let not_a_text = || Err("invalid data, expected string, got int64".to_owned());
    assert_eq!(member("'x' in self.atomic", json!({"atomic": [1, "y"]})), not_a_text());
    assert_eq!(member("'y' in self.atomic", json!({"atomic": [1, "y"]})), Ok(json!(true)));
    let not_a_number = || Err("invalid data, expected int, got string".to_owned());
    assert_eq!(member("'a' in self.map", json!({"map": {"a": "1"}})), not_a_number());
    assert_eq!(member("'b' in self.map", json!({"map": {"a": "1"}})), Ok(json!(false)));
    let null = eval("self.set.size() == 1 && self.set[0] == 'x'", &json!({"set": [null]}), &json!({}));
    assert_eq!(null, Err("invalid data, got null for schema with nullable=false".to_owned()));
}

#[test]
fn times_that_are_none_are_told_in_words_of_go() {
    for (field, text, told) in [
        (
            "when",
            "2020-01-01",
            "date-time formatted string 2020-01-01: parsing time \"2020-01-01\" as \"2006-01-02T15:04:05\": cannot parse \"\" as \"T\"",
        ),
        (
            "day",
            "2020-02-30",
            "date formatted string 2020-02-30: parsing time \"2020-02-30\": day out of range",
        ),
        (
            "day",
            "",
            "date formatted string : parsing time \"\" as \"2006-01-02\": cannot parse \"\" as \"2006\"",
        ),
    ] {
        let found = eval(&format!("self.{field} > timestamp(0)"), &json!({field: text}), &json!({}));
        assert_eq!(found, Err(format!("Invalid {told}")), "{text}");
    }
    assert_true(&json!({"when": ""}), &json!({}), &["self.when == timestamp(0)"]);
}

#[test]
fn sets_and_map_lists_compare_and_join_regardless_of_order() {
    let this = json!({
        "set": ["a", "b"], "atomic": ["a", "b"], "keyed": [{"k": "x", "v": 1}, {"k": "y", "v": 2}],
    });
    let old = json!({
        "set": ["b", "a"], "atomic": ["b", "a"], "keyed": [{"k": "y", "v": 2}, {"k": "x", "v": 1}],
    });
    assert_true(
        &this,
        &old,
        &[
            "self.set == oldSelf.set",
            "self.keyed == oldSelf.keyed",
            "self.atomic != oldSelf.atomic",
            "self.set + oldSelf.set == self.set",
            "self.set + ['c'] == oldSelf.set + ['c']",
            "(self.set + ['c', 'a']).size() == 3",
            "(self.keyed + oldSelf.keyed).size() == 2",
            "(self.atomic + oldSelf.atomic).size() == 4",
            "self != oldSelf",
        ],
    );
}

#[test]
fn sets_tell_items_apart_as_they_are_written() {
    let this = json!({"numbers": [1, 2.5], "spans": ["1h"], "set": [1, "b"], "lists": [["a"]]});
    let no_set = json!({"numbers": [1.5, 2.5]});
    assert_true(
        &this,
        &no_set,
        &[
            "oldSelf.numbers == oldSelf.numbers && self.numbers != self.numbers",
            "[1.0, 2.5] == self.numbers && self.numbers != [1.0, 2.5]",
            "(self.numbers + self.numbers).size() == 3",
            "self.spans != self.spans && (self.spans + self.spans).size() == 2",
            "self.set != ['a', 'b'] && ['a', 'b'] != self.set && (self.set + ['b', 'c']).size() == 3",
            "self.lists != []",
        ],
    );
    let given_up = "internal error: runtime error: hash of unhashable type []interface {}";
    for rule in ["self.lists == self.lists || true", "(self.lists + self.lists).size() == 1 || true"] {
        assert_eq!(eval(rule, &this, &no_set), Err(given_up.to_owned()), "{rule}");
    }
}

#[test]
fn map_lists_keep_what_was_there_twice() {
    let this = json!({"keyed": [{"k": "x", "v": 1}, {"k": "x", "v": 2}]});
    let old = json!({"keyed": [{"k": "x", "v": 3}, {"k": "y", "v": 4}, {"k": "y", "v": 5}]});
    assert_true(&this, &old, &["(self.keyed + oldSelf.keyed).map(e, e.v) == [1, 3, 4, 5]"]);
}

/// Parts of a declared list or object ask their own type how they compare, which knows no null; `==` itself does. Read off
/// kube-apiserver v1.36.2 by rules on such fields.
#[test]
fn objects_in_declared_lists_do_not_compare_with_null() {
    let this = json!({"keyed": [{"k": "a"}], "atomic": ["x"], "nested": [["x"]],
        "inner": {"deep": {"x": 1}}, "by_name": {"a": {"x": 1}}, "map": {"a": 1}});
    let outcome = |text: &str| match eval(text, &this, &json!({})) {
        Ok(value) => value.to_string(),
        Err(error) => error,
    };
    for (text, expected) in [
        ("null in self.keyed", "no such overload"),
        ("dyn(1) in self.keyed", "no such overload"),
        ("dyn(null) in self.nested", "no such overload"),
        ("dyn(self.nested) == dyn([null])", "no such overload"),
        ("dyn([null]) == dyn(self.nested)", "false"),
        ("dyn(self.nested) == dyn([null, null])", "false"),
        ("dyn(self.keyed[0]) == null", "false"),
        ("self.keyed.exists(e, e == null)", "false"),
        ("[dyn(self.keyed[0])] == [dyn(null)]", "false"),
        ("sets.contains(self.keyed, [dyn(1)])", "no such overload"),
        ("sets.equivalent(self.keyed, [dyn(null)])", "no such overload"),
        ("sets.contains([dyn(1)], self.keyed)", "false"),
        ("sets.intersects(self.keyed, [dyn(1)])", "false"),
        ("sets.intersects([dyn(1)], self.keyed)", "false"),
        ("sets.contains(self.atomic, [dyn(1)])", "false"),
        ("self.keyed.indexOf(dyn(null))", "-1"),
        ("dyn(self.inner) == dyn({'deep': null})", "no such overload"),
        ("dyn(self.inner) == dyn({'deep': dyn(1)})", "no such overload"),
        ("dyn({'deep': null}) == dyn(self.inner)", "false"),
        ("dyn(self.by_name) == dyn({'a': null})", "no such overload"),
        ("dyn({'a': null}) == dyn(self.by_name)", "false"),
        ("dyn(self.map) == dyn({'a': null})", "false"),
    ] {
        assert_eq!(outcome(text), expected, "{text}");
    }
}

/// An optional from which a variable or a selection starts holds plain JSON, as cel-go unwraps it to Go's own values; one that a call
/// returns does not. Read off kube-apiserver v1.36.2.
#[test]
fn optionals_that_are_variables_lose_declared_types() {
    let this = json!({"when": "2024-01-01T00:00:00Z", "my-field": 1, "set": ["a", "b"], "atomic": ["x"],
        "inner": {"deep": {"x": 1}}, "text": null});
    let old = json!({"when": "2024-01-01T00:00:00Z", "my-field": 1, "set": ["b", "a"], "atomic": ["x"],
        "inner": {"deep": {"x": 1, "undeclared": 1}}, "text": null});
    let outcome = |text: &str| match eval(text, &this, &old) {
        Ok(value) => value.to_string(),
        Err(error) => error,
    };
    for (text, expected) in [
        ("[optional.of(self.atomic)].all(o, o.value() == self.atomic)", "true"),
        ("[optional.of(oldSelf.set)].all(o, self.set == o.value())", "true"),
        ("[optional.of(oldSelf.set)].all(o, o.value() == self.set)", "false"),
        ("[optional.of(self)].all(o, dyn(o.value().when) == '2024-01-01T00:00:00Z')", "true"),
        ("[optional.of(self.when)].all(o, o.value() == self.when)", "true"),
        ("optional.of(self).?when.value() == self.when", "false"),
        ("optional.of(self).value().when == self.when", "true"),
        ("[optional.of(self)].all(o, has(o.value().my__dash__field))", "false"),
        ("[optional.of(self)].all(o, has(o.value().text)) && !has(self.text)", "true"),
        ("[optional.of(self.inner)].all(o, self.inner == o.value() && o.value() == self.inner)", "true"),
        ("[optional.of(oldSelf.inner)].all(o, oldSelf.inner == o.value())", "no such overload"),
        ("[optional.of(self)].all(o, o == optional.of(self))", "false"),
    ] {
        assert_eq!(outcome(text), expected, "{text}");
    }
}

/// Computed lists and maps take parts that cannot be compared for equal.
#[test]
fn computed_lists_pass_over_parts_that_do_not_compare() {
    let this = json!({"atomic": ["x"], "inner": {"deep": {"x": 1}}});
    assert_true(
        &this,
        &json!({}),
        &[
            "[dyn(self.atomic)] == [dyn(1)]",
            "!([dyn(1)] == [dyn(self.atomic)])",
            "!([dyn(self.atomic), dyn(1)] == [dyn(1), dyn(2)])",
            "{'a': dyn(self.inner)} == {'a': dyn(1)}",
        ],
    );
}
