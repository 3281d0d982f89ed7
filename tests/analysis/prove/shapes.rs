//! Random schemas of any shape, values that they take or nearly take, and schemas that are changed here and there.

use serde_json::{Map, Value, json};

use super::dice::Dice;

/// Names of properties, keys of maps and what is undeclared in open objects: few, so that versions meet.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

const TEXTS: &[&str] = &["", "a", "b", "ab", "abc", "1", "10%", "1Gi", "500m", "1s", "90s", "2h", "é", "A-b"];
const TIMES: &[&str] =
    &["2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00", "1999-12-31T23:59:59.5Z", "2024-01-01", "x"];
const SPANS: &[&str] = &["1s", "1m30s", "90s", "2h", "0s", "3 days", "x"];

/// A schema for a value in this depth.
pub(super) fn schema(dice: &mut Dice, depth: usize) -> Value {
    let mut schema = match dice.roll(if depth == 0 { 8 } else { 14 }) {
        0 => json!({"type": "boolean"}),
        1 => integer(dice),
        2 | 3 => text(dice),
        4 => timed(dice),
        5 => json!({"x-kubernetes-int-or-string": true}),
        6 => json!({"type": "number"}),
        7 => open(dice),
        8 => json!({"type": "object", "additionalProperties": schema(dice, depth - 1)}),
        9 => list(dice, depth - 1),
        10 => keyed(dice, depth - 1),
        _ => object(dice, depth - 1),
    };
    decorate(dice, &mut schema);
    schema
}

fn integer(dice: &mut Dice) -> Value {
    let mut schema = json!({"type": "integer"});
    if dice.roll(4) == 0 {
        schema["format"] = dice.pick(&["int32", "int64"]).into();
    }
    schema
}

fn text(_: &mut Dice) -> Value {
    json!({"type": "string"})
}

fn timed(dice: &mut Dice) -> Value {
    let format = dice.pick(&["date-time", "duration", "date", "ipv4", "byte", "uuid", "made-up"]);
    json!({"type": "string", "format": format})
}

fn open(dice: &mut Dice) -> Value {
    let mut schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    if dice.roll(3) == 0 {
        schema["x-kubernetes-embedded-resource"] = true.into();
    }
    schema
}

fn list(dice: &mut Dice, depth: usize) -> Value {
    let mut schema = json!({"type": "array", "items": self::schema(dice, depth)});
    match dice.roll(4) {
        0 => schema["x-kubernetes-list-type"] = "set".into(),
        1 => schema["x-kubernetes-list-type"] = "atomic".into(),
        _ => {}
    }
    schema
}

fn keyed(dice: &mut Dice, depth: usize) -> Value {
    let mut item = object(dice, depth);
    let keys = if dice.roll(4) == 0 { json!(["k", "j"]) } else { json!(["k"]) };
    item["properties"]["k"] = json!({"type": "string"});
    item["properties"]["j"] = json!({"type": "integer"});
    item["required"] = keys.clone();
    if dice.roll(3) == 0 {
        item["properties"]["k"]["default"] = "a".into();
    }
    // One that may get its keys later.
    if dice.roll(4) == 0 {
        return json!({"type": "array", "items": item});
    }
    json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys})
}

pub(super) fn object(dice: &mut Dice, depth: usize) -> Value {
    let mut properties = Map::new();
    for name in NAMES {
        if dice.roll(3) > 0 {
            properties.insert(name.to_owned(), schema(dice, depth));
        }
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if dice.roll(8) == 0 {
        schema["x-kubernetes-preserve-unknown-fields"] = true.into();
    }
    if dice.roll(12) == 0 {
        schema["x-kubernetes-embedded-resource"] = true.into();
    }
    schema
}

/// Keywords, a default and rules, each now and then.
fn decorate(dice: &mut Dice, schema: &mut Value) {
    if dice.roll(3) == 0 {
        keyword(dice, schema);
    }
    if dice.roll(8) == 0 {
        schema["nullable"] = true.into();
    }
    if dice.roll(7) == 0 {
        let value = value(dice, schema);
        schema["default"] = value;
    }
    if dice.roll(5) == 0 {
        rule(dice, schema);
    }
}

/// Sets a keyword that says something of such a value.
pub(super) fn keyword(dice: &mut Dice, schema: &mut Value) {
    let few = [0, 1, 2, 3][dice.roll(4)];
    let is_either = schema["x-kubernetes-int-or-string"] == true;
    let (name, value) = match schema["type"].as_str() {
        Some("boolean") => ("enum", json!([true])),
        Some("integer" | "number") => match dice.roll(5) {
            0 => ("minimum", json!(few)),
            1 => ("maximum", json!(few)),
            2 => ("enum", json!([1, few])),
            3 => ("multipleOf", json!(2)),
            _ => ("not", json!({"enum": [few]})),
        },
        Some("string") => match dice.roll(6) {
            0 => ("maxLength", json!(few)),
            1 => ("minLength", json!(1)),
            2 => ("pattern", json!(dice.pick(&["^[ab]*$", "b$", "^[0-9]+%?$"]))),
            3 => ("enum", json!(["a", "ab", ""])),
            4 => ("format", json!(dice.pick(&["date-time", "duration", "ipv4", "byte", "uri"]))),
            _ => ("anyOf", json!([{"maxLength": 1}, {"pattern": "^a"}])),
        },
        Some("array") => match dice.roll(3) {
            0 => ("maxItems", json!(few)),
            1 => ("minItems", json!(1)),
            _ => ("not", json!({"maxItems": 0})),
        },
        Some("object") => match dice.roll(5) {
            0 => ("maxProperties", json!(few)),
            1 => ("minProperties", json!(1)),
            2 if schema["properties"].is_object() => {
                ("oneOf", json!([{"required": ["a"]}, {"required": ["b"]}]))
            }
            3 => ("not", json!({"required": ["c"]})),
            _ => ("required", json!([dice.pick(&NAMES)])),
        },
        _ if is_either => match dice.roll(5) {
            0 => ("pattern", json!("^[0-9]+%$")),
            1 => ("maximum", json!(few)),
            2 => ("maxLength", json!(few)),
            3 => ("enum", json!([1, "a"])),
            _ => ("anyOf", json!([{"type": "integer"}, {"type": "string"}])),
        },
        _ => return,
    };
    let is_key = name == "required" && !schema["required"].is_null();
    if is_key {
        schema["required"]
            .as_array_mut()
            .expect("names")
            .extend(value.as_array().into_iter().flatten().cloned());
    } else {
        schema[name] = value;
    }
}

/// What rules say of texts of a format.
fn about_texts(format: &str) -> &'static [&'static str] {
    match format {
        "date-time" | "date" => {
            &["self < timestamp('2024-06-01T00:00:00Z')", "self >= oldSelf", "self.getHours('+01:00') > 0"]
        }
        "duration" => &["self > duration('1m')", "self == oldSelf", "self.getMinutes() < 5"],
        _ => &[
            "self.size() < 3",
            "self == oldSelf",
            "self.startsWith('a') || self.endsWith('%')",
            "isQuantity(self) && quantity(self).isGreaterThan(quantity('1'))",
            "quantity(self).compareTo(quantity(oldSelf)) >= 0",
            "!format.dns1123Label().validate(self).hasValue()",
            "duration(self) > duration('1m')",
            "self.matches('^a') == oldSelf.matches('^a')",
            "self in ['a', 'b'] || int(self) > 3",
        ],
    }
}

/// What rules say of such a value.
fn about(schema: &Value) -> &'static [&'static str] {
    match schema["type"].as_str() {
        Some("boolean") => &["self || oldSelf", "self", "self == oldSelf"],
        Some("integer") => &["self > 1", "self >= oldSelf", "self != oldSelf + 1", "[self, 2].max() == self"],
        Some("string") => about_texts(schema["format"].as_str().unwrap_or_default()),
        Some("array") if schema["x-kubernetes-list-map-keys"].is_array() => &[
            "self.all(x, x.k != 'ab')",
            "self.exists_one(x, x.k == 'a')",
            "self.map(x, x.k).exists(k, k == 'b')",
            "self.all(i, x, i == 0 || x.k > self[i - 1].k)",
            "oldSelf.all(o, self.exists(x, x.k == o.k))",
            "self.filter(x, has(x.j) && x.j > 1).size() < 2",
            "self == oldSelf",
            "self.transformMap(i, x, x.k).all(i, k, i < 2 || k != '')",
        ],
        Some("array") => &[
            "self.size() >= oldSelf.size()",
            "self.all(x, self.exists_one(y, x == y))",
            "self.all(i, x, i < 2 || x == self[0])",
            "self.exists(i, x, i == size(self) - 1)",
            "self == oldSelf",
            "self[?1].hasValue() || self[?0].optMap(x, x == x).orValue(true)",
            "self.exists(x, x in oldSelf)",
        ],
        Some("object") if schema["additionalProperties"].is_object() => &[
            "self.all(k, k.size() > 1 || k in ['a', 'b'])",
            "self.exists(k, v, k == 'a' && v == v)",
            "oldSelf.all(k, k in self)",
            "self.all(k, v, !(k in oldSelf) || oldSelf[k] == v)",
            "self[?'a'].hasValue()",
            "self.size() < 2",
            "self == oldSelf",
        ],
        Some("object") => &[
            "has(self.a) == has(self.b)",
            "!has(oldSelf.a) || has(self.a)",
            "self == oldSelf",
            "self.?a.hasValue() || !has(self.c)",
            "has(self.a) && has(self.b) ? self.a == self.b : true",
            "self.?a == oldSelf.?a",
            "!has(self.d) || self.d == self.d",
            "has(self.metadata) && self.metadata.name == 'a'",
            "self.?b.orValue(self.?a) == self.?a",
        ],
        None => &[
            "type(self) == int ? self > 1 : self.matches('^[0-9]+%$')",
            "self == oldSelf",
            "type(self) == type(oldSelf)",
            "string(self).size() < 3",
        ],
        _ => &["self > 1.0", "self >= oldSelf"],
    }
}

/// Adds a rule about such a value.
pub(super) fn rule(dice: &mut Dice, schema: &mut Value) {
    let text = dice.pick(about(schema));
    let mut rule = json!({"rule": text});
    if text.contains("oldSelf") && dice.roll(4) == 0 {
        rule["optionalOldSelf"] = true.into();
        rule["rule"] = dice
            .pick(&[
                "oldSelf.hasValue() || self != self",
                "!oldSelf.hasValue() || oldSelf.value() == self",
                "oldSelf == optional.of(self)",
            ])
            .into();
    }
    match &mut schema["x-kubernetes-validations"] {
        Value::Array(rules) => rules.push(rule),
        rules => *rules = json!([rule]),
    }
}

/// A schema, changed here and there.
pub(super) fn changed(dice: &mut Dice, old: &Value, depth: usize) -> Value {
    let mut new = old.clone();
    match dice.roll(18) {
        0 => return schema(dice, depth),
        1 | 2 => keyword(dice, &mut new),
        3 => rule(dice, &mut new),
        4 => {
            let all: Vec<String> =
                new.as_object().expect("a schema").keys().filter(|key| is_droppable(key)).cloned().collect();
            if !all.is_empty() {
                new.as_object_mut().expect("a schema").shift_remove(&all[dice.roll(all.len())]);
            }
        }
        5 => new["nullable"] = (new["nullable"] != true).into(),
        6 => {
            let value = value(dice, &new);
            new["default"] = value;
        }
        7 if new["type"] == "object" && new["additionalProperties"].is_null() => {
            let name = dice.pick(&["x-kubernetes-embedded-resource", "x-kubernetes-preserve-unknown-fields"]);
            new[name] = true.into();
        }
        8 if new["type"] == "array" => {
            let has_keys = new["items"]["properties"]["k"].is_object();
            let kind =
                dice.pick(if has_keys { &["set", "atomic", "map", "map"] } else { &["set", "atomic"] });
            new["x-kubernetes-list-type"] = kind.into();
            if kind == "map" {
                new["x-kubernetes-list-map-keys"] = json!(["k"]);
            } else {
                new.as_object_mut().expect("a schema").shift_remove("x-kubernetes-list-map-keys");
            }
        }
        _ => {}
    }
    let below = depth.saturating_sub(1);
    for part in ["items", "additionalProperties"] {
        if new[part].is_object() {
            let child = changed(dice, &new[part], below);
            new[part] = child;
        }
    }
    if let Value::Object(properties) = &mut new["properties"] {
        let names: Vec<String> = properties.keys().cloned().collect();
        for name in names {
            if dice.roll(20) == 0 && NAMES.contains(&&*name) {
                properties.shift_remove(&name);
            } else {
                let child = changed(dice, &properties[&name], below);
                properties.insert(name, child);
            }
        }
        if dice.roll(8) == 0 {
            properties.insert(dice.pick(&NAMES).to_owned(), schema(dice, below));
        }
    }
    let empty: Vec<&str> = ["items", "additionalProperties", "properties"]
        .into_iter()
        .filter(|key| new[key].is_null())
        .collect();
    for key in empty {
        new.as_object_mut().expect("a schema").shift_remove(key);
    }
    new
}

/// Keywords that may go without another.
fn is_droppable(key: &str) -> bool {
    !matches!(key, "type" | "items" | "properties" | "additionalProperties" | "x-kubernetes-int-or-string")
}

/// A value that such a schema takes, or nearly.
pub(super) fn value(dice: &mut Dice, schema: &Value) -> Value {
    if schema["nullable"] == true && dice.roll(5) == 0 {
        return Value::Null;
    }
    if dice.roll(60) == 0 {
        return Value::Null;
    }
    if let Some(members) = schema["enum"].as_array()
        && dice.roll(4) > 0
    {
        return members[dice.roll(members.len())].clone();
    }
    let number = |dice: &mut Dice| json!([0, 1, 2, 3, 4, -1, 2_147_483_648_i64][dice.roll(7)]);
    match schema["type"].as_str() {
        Some("boolean") => (dice.roll(2) == 0).into(),
        Some("integer") => number(dice),
        Some("number") => {
            if dice.roll(3) == 0 {
                json!([0.5, 1.5, -2.25][dice.roll(3)])
            } else {
                number(dice)
            }
        }
        Some("string") => match schema["format"].as_str() {
            Some("date-time" | "date") if dice.roll(5) > 0 => dice.pick(TIMES).into(),
            Some("duration") if dice.roll(5) > 0 => dice.pick(SPANS).into(),
            Some("ipv4") if dice.roll(3) > 0 => dice.pick(&["1.2.3.4", "::1"]).into(),
            Some("byte") if dice.roll(3) > 0 => dice.pick(&["YQ==", "YQ"]).into(),
            _ => dice.pick(TEXTS).into(),
        },
        Some("array") => {
            let item = schema["items"].clone();
            (0..dice.roll(4)).map(|_| value(dice, &item)).collect()
        }
        Some("object") => of_object(dice, schema),
        _ => {
            if dice.roll(2) == 0 {
                number(dice)
            } else {
                dice.pick(TEXTS).into()
            }
        }
    }
}

/// Anything.
fn any(dice: &mut Dice) -> Value {
    match dice.roll(7) {
        0 => true.into(),
        1 => json!(dice.roll(4)),
        2 | 3 => dice.pick(TEXTS).into(),
        4 => json!([dice.roll(3), dice.roll(3)]),
        5 => json!({dice.pick(&NAMES): dice.roll(3)}),
        _ => json!({"a": "b"}),
    }
}

fn of_object(dice: &mut Dice, schema: &Value) -> Value {
    let mut found = Map::new();
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        for name in NAMES {
            if dice.roll(3) == 0 {
                found.insert(name.to_owned(), any(dice));
            }
        }
        if dice.roll(3) == 0 {
            found.extend(embedded(dice));
        }
    }
    if schema["additionalProperties"].is_object() {
        for name in NAMES {
            if dice.roll(3) == 0 {
                found.insert(name.to_owned(), value(dice, &schema["additionalProperties"]));
            }
        }
    }
    for (name, child) in schema["properties"].as_object().into_iter().flatten() {
        let is_key = matches!(&**name, "k" | "j");
        if dice.roll(if is_key { 8 } else { 2 }) > 0 {
            found.insert(name.clone(), value(dice, child));
        }
    }
    if schema["x-kubernetes-embedded-resource"] == true && dice.roll(8) > 0 {
        found.extend(embedded(dice));
    }
    found.into()
}

fn embedded(dice: &mut Dice) -> Map<String, Value> {
    let mut found = Map::new();
    if dice.roll(8) > 0 {
        found.insert("apiVersion".to_owned(), dice.pick(&["v1", "apps/v1", "a/b/c", ""]).into());
    }
    if dice.roll(8) > 0 {
        found.insert("kind".to_owned(), dice.pick(&["Pod", "Cat", "a b", ""]).into());
    }
    if dice.roll(3) > 0 {
        let all = [
            json!({"name": "a"}),
            json!({"name": "A b"}),
            json!({}),
            json!({"labels": {"a": "b"}}),
            json!({"name": 1}),
        ];
        found.insert("metadata".to_owned(), all[dice.roll(all.len())].clone());
    }
    found
}
