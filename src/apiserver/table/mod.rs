//! Renders the Tables that `kubectl get` prints: the columns of a kind, and a row of cells per object.
//!
//! Input: the resource row, an object or a list of objects as JSON, the client's options, the time. Output: the
//! Table. Built-in kinds have columns and cells of their own, custom kinds those of their CRD.

mod builtin;
mod computed;
mod controllers;
mod duration;
mod jsonpath;
mod texts;
mod values;
mod workloads;

use admit_apimachinery::go;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use self::jsonpath::{Budget, JsonPath};
pub(crate) use self::texts::selector_text;
use crate::builtin::{decode, tables};
use crate::interrupt;
use crate::kinds::{Habit, has, strategy};
use crate::object;
use crate::resources::{PrinterColumn, ResourceInfo, SCALE};

/// Which part of the object each row includes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Include {
    #[default]
    Metadata,
    Object,
    None,
}

/// What the client requests.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    pub include: Include,
    /// The requested version of `meta.k8s.io`: `v1` or `v1beta1`.
    pub version: &'a str,
    /// Whether columns are included; a watch has them in its first event only.
    pub headers: bool,
    /// The time to which ages are computed.
    pub now: Timestamp,
}

/// Renders the Table of an object, or of a list of objects (a value with `items`).
#[must_use]
pub fn render(info: &ResourceInfo, value: &Value, options: &Options<'_>) -> Value {
    let mut table = Map::new();
    table.insert("kind".into(), "Table".into());
    table.insert("apiVersion".into(), format!("meta.k8s.io/{}", options.version).into());
    table.insert("metadata".into(), table_metadata(value));
    let printer = Printer::of(info, value);
    table.insert(
        "columnDefinitions".into(),
        if options.headers { printer.definitions().into() } else { Value::Null },
    );
    let mut objects: Vec<&Value> = match value.get("items") {
        Some(Value::Array(items)) => items.iter().collect(),
        _ => vec![value],
    };
    if has(info, Habit::ShownByPrecedence) {
        objects.sort_by(|one, other| precedence(one).cmp(&precedence(other)));
    }
    let row = |object| {
        interrupt::checkpoint();
        printer.row(info, object, options)
    };
    let rows: Vec<Value> = objects.into_iter().map(row).collect();
    // Upstream has null instead of no rows for a kind without columns of its own.
    let plain = matches!(&printer, Printer::Builtin(kind) if kind.is_plain());
    table.insert("rows".into(), if plain && rows.is_empty() { Value::Null } else { rows.into() });
    Value::Object(table)
}

fn precedence(object: &Value) -> (i64, &str) {
    let told = object.pointer("/spec/matchingPrecedence").and_then(Value::as_i64);
    (told.unwrap_or_default(), object::name(object))
}

/// Copies the metadata that Tables have from a list or an object.
fn table_metadata(value: &Value) -> Value {
    let mut metadata = Map::new();
    for name in ["resourceVersion", "continue", "remainingItemCount"] {
        if let Some(found) = value.pointer(&format!("/metadata/{name}")).filter(|found| **found != "") {
            metadata.insert(name.to_owned(), found.clone());
        }
    }
    Value::Object(metadata)
}

/// Whether the value is the scale of an object; custom kinds of other groups may have the same name.
fn is_scale(value: &Value) -> bool {
    let (group, version, kind) = SCALE;
    let named = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    named("kind") == kind && named("apiVersion").split_once('/') == Some((group, version))
}

enum Printer<'a> {
    Builtin(&'static builtin::Kind),
    Custom(Vec<(&'a PrinterColumn, Option<JsonPath>)>),
    /// Only name and age.
    Plain,
}

impl<'a> Printer<'a> {
    fn of(info: &'a ResourceInfo, value: &Value) -> Self {
        if is_scale(value) {
            return builtin::scale(info.builtin).map_or(Self::Plain, Self::Builtin);
        }
        if info.builtin {
            return builtin::kind(&info.group, &info.kind).map_or(Self::Plain, Self::Builtin);
        }
        if info.columns.is_empty() {
            return Self::Plain;
        }
        Self::Custom(info.columns.iter().map(|column| (column, JsonPath::parse(&column.json_path))).collect())
    }

    fn definitions(&self) -> Vec<Value> {
        match self {
            Self::Builtin(kind) => {
                let told = kind.columns.iter().filter(|column| column.is_told());
                told.map(builtin::Column::definition).collect()
            }
            Self::Plain => vec![builtin::name_column(), builtin::age_column()],
            Self::Custom(columns) => {
                let mut definitions = vec![builtin::name_column()];
                definitions.extend(columns.iter().map(|(column, _)| custom_definition(column)));
                definitions
            }
        }
    }

    fn row(&self, info: &ResourceInfo, object: &Value, options: &Options<'_>) -> Value {
        let name = object.pointer("/metadata/name").cloned().unwrap_or_else(|| "".into());
        let mut row = Map::new();
        let cells = match self {
            Self::Builtin(kind) => kind.cells(object, options.now),
            Self::Plain => vec![name, texts::age(object, options.now).into()],
            Self::Custom(columns) => {
                let mut budget = Budget::of_row();
                let mut cells = vec![name];
                cells.extend(columns.iter().map(|(column, path)| {
                    let value = path.as_ref().and_then(|path| path.first(object, &mut budget));
                    value.map_or(Value::Null, |value| custom_cell(column, value, options.now))
                }));
                cells
            }
        };
        row.insert("cells".into(), cells.into());
        if let Some(conditions) = workloads::row_conditions(info, object) {
            row.insert("conditions".into(), conditions);
        }
        row.insert("object".into(), included(info, object, options));
        Value::Object(row)
    }
}

fn included(info: &ResourceInfo, object: &Value, options: &Options<'_>) -> Value {
    match options.include {
        Include::None => Value::Null,
        Include::Object => {
            let mut whole = object.clone();
            if let Some(members) = whole.as_object_mut() {
                members.entry("kind").or_insert_with(|| info.kind.as_str().into());
                members.entry("apiVersion").or_insert_with(|| info.api_version().into());
            }
            whole
        }
        Include::Metadata => partial_metadata(info, object, options.version),
    }
}

/// Reduces an object to its metadata: a `PartialObjectMetadata` of `meta.k8s.io`.
#[must_use]
pub(crate) fn partial_metadata(info: &ResourceInfo, object: &Value, version: &str) -> Value {
    let mut metadata = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
    for derived in strategy(info).map(|strategy| strategy.derived_annotations).unwrap_or_default() {
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.shift_remove(*derived);
        }
    }
    if metadata.get("annotations").and_then(Value::as_object).is_some_and(Map::is_empty) {
        object::set_field(&mut metadata, "annotations", None);
    }
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": decode::ordered_metadata(tables(), metadata)
    })
}

fn custom_definition(column: &PrinterColumn) -> Value {
    let description = if column.description.is_empty() {
        format!("Custom resource definition column (in JSONPath format): {}", column.json_path)
    } else {
        column.description.clone()
    };
    builtin::definition(&column.name, &column.kind, &column.format, &description, column.priority)
}

/// Formats the first value that the column's path selects by the column's type; null if it has another type.
fn custom_cell(column: &PrinterColumn, value: &Value, now: Timestamp) -> Value {
    match (column.kind.as_str(), value) {
        (_, Value::Null) => Value::Null,
        ("string", Value::String(_)) => value.clone(),
        ("string", Value::Number(number)) => number_text(number).into(),
        ("string", other) => go::json::text(other).into(),
        ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(_), _) => value.clone(),
            (None, Some(float)) => json!(truncated(float)),
            (None, None) => Value::Null,
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(text)) => date_cell(text, now).into(),
        _ => Value::Null,
    }
}

/// Formats the age. An empty string, and Go's zero time, are `<unknown>`.
fn date_cell(text: &str, now: Timestamp) -> String {
    const ZERO: i64 = -62_135_596_800;
    match text.parse::<go::Timestamp>().map(|time| time.seconds) {
        _ if text.is_empty() => "<unknown>".to_owned(),
        Ok(ZERO) => "<unknown>".to_owned(),
        Ok(time) => duration::human(now.as_second() - time),
        Err(_) => "<invalid>".to_owned(),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the fraction is meant to go; the cast saturates")]
fn truncated(float: f64) -> i64 {
    float as i64
}

/// Formats a number; floats as Go prints them by default, with an exponent from 1e21 up and below 1e-4.
fn number_text(number: &serde_json::Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    let magnitude = float.abs();
    if magnitude != 0.0 && !(1e-4..1e21).contains(&magnitude) {
        let text = format!("{float:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    format!("{float}")
}
