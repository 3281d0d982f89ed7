//! Generates a minimal value for a schema, from types, bounds, enums and formats. Patterns are not solved.

use serde_json::{Map, Value, json};

use crate::schema::{Checks, Schema, SchemaType};

/// Items and letters of a sample: larger minima are left unmet.
const MOST: i64 = 64;

/// Returns a sample of the schema: its default, else only what it requires.
pub(super) fn of(schema: &Schema) -> Value {
    if let Some(default) = &schema.default {
        return default.clone();
    }
    if let Some(first) = schema.checks.enumeration.iter().find(|member| !member.is_null()) {
        return first.clone();
    }
    if schema.int_or_string {
        return json!(1);
    }
    match &schema.schema_type {
        Some(SchemaType::Object) | None => object(schema),
        Some(SchemaType::Array) => array(schema),
        Some(SchemaType::String) => json!(text(&schema.checks)),
        Some(SchemaType::Integer) => json!(integer(&schema.checks)),
        Some(SchemaType::Number) => number(&schema.checks),
        Some(SchemaType::Boolean) => json!(false),
        Some(SchemaType::Other(_)) => Value::Null,
    }
}

fn object(schema: &Schema) -> Value {
    let required = schema.checks.required.iter();
    let fields: Map<String, Value> =
        required.filter_map(|name| Some((name.to_string(), of(schema.child(name)?)))).collect();
    Value::Object(fields)
}

fn array(schema: &Schema) -> Value {
    let count = schema.checks.min_items.unwrap_or(0).clamp(0, MOST);
    let item = schema.items.as_deref().map_or(Value::Null, of);
    Value::Array((0..count).map(|_| item.clone()).collect())
}

fn text(checks: &Checks) -> String {
    let sample = match checks.format.as_deref() {
        Some("date-time") => "2025-01-01T00:00:00Z",
        Some("date") => "2025-01-01",
        Some("duration") => "1h",
        Some("byte") => "YQ==",
        Some("uuid" | "uuid4") => "5f9d1a4e-3b1c-4a6e-9f3d-2c7b8e0a1d2f",
        Some("ipv4" | "ip") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        Some("cidr") => "192.0.2.0/24",
        Some("mac") => "00:00:5e:00:53:01",
        Some("email") => "someone@example.com",
        Some("hostname") => "example.com",
        Some("uri") => "https://example.com",
        _ => "sample",
    };
    let at_least = usize::try_from(checks.min_length.unwrap_or(0).clamp(0, MOST)).unwrap_or(0);
    let missing = at_least.saturating_sub(sample.len());
    let text = format!("{sample}{}", "x".repeat(missing));
    match checks.max_length.and_then(|max| usize::try_from(max).ok()) {
        Some(max) => text.chars().take(max).collect(),
        None => text,
    }
}

/// The least number of at least 1, or the greatest below that.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a sample beyond every integer is none that could be met"
)]
fn integer(checks: &Checks) -> i64 {
    let above = checks
        .minimum
        .map_or(1.0, |min| if checks.exclusive_minimum { min.floor() + 1.0 } else { min.ceil() });
    let below =
        checks.maximum.map(|max| if checks.exclusive_maximum { max.ceil() - 1.0 } else { max.floor() });
    let multiple =
        checks.multiple_of.filter(|step| *step > 0.0).map_or(above, |step| (above / step).ceil() * step);
    below.map_or(multiple, |below| multiple.min(below)) as i64
}

fn number(checks: &Checks) -> Value {
    let whole = integer(checks);
    let fits = checks.minimum.is_none_or(|min| f64::from(i32::try_from(whole).unwrap_or(i32::MAX)) >= min);
    match checks.minimum {
        Some(min) if !fits => json!(min),
        _ => json!(whole),
    }
}
