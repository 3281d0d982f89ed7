//! Converts an object or list to the requested form: whole, a Table, or metadata only.

use admit_apimachinery::go;
use axum::response::Response;
use serde_json::{Value, json};

use super::accept::{Accepted, Form};
use super::respond;
use crate::call::{Call, Query};
use crate::registry::Answer;
use crate::resources::ResourceInfo;
use crate::status::Refusal;
use crate::table;

/// Builds the response for an object or list in the requested form.
///
/// # Errors
/// 406 for a form that it does not have, 400 for an invalid option of a Table.
pub(super) fn shown_as(
    call: &Call,
    query: &Query,
    accepted: &Accepted,
    (code, object): (u16, &Value),
) -> Result<Response, Refusal> {
    let form = presented(call, query, accepted, object)?;
    Ok(respond::document(code, form.as_ref().unwrap_or(object), accepted))
}

/// Like [`shown_as`], for the answer to a change, which was made if there is an error.
pub(super) fn shown(
    call: &Call,
    query: &Query,
    accepted: &Accepted,
    answer: &Answer,
) -> Result<Response, Refusal> {
    if *accepted == Accepted::Json(Form::Whole)
        && let Some(stored) = &answer.stored
    {
        return Ok(respond::json_text(answer.code, [stored.text(), b"\n"].concat()));
    }
    shown_as(call, query, accepted, (answer.code, &answer.object))
}

/// Converts the object or list to a Table or to metadata; None if it is shown whole, as a Status always is.
fn presented(
    call: &Call,
    query: &Query,
    accepted: &Accepted,
    object: &Value,
) -> Result<Option<Value>, Refusal> {
    let kind = object.get("kind").and_then(Value::as_str);
    if kind == Some("Status") && object.get("apiVersion") == Some(&"v1".into()) {
        return Ok(None);
    }
    let is_list =
        kind == Some(call.info.list_kind.as_str()) && object.get("items").is_some_and(Value::is_array);
    accepted.check_shape(call, is_list)?;
    include_is_known(accepted, query)?;
    Ok(match accepted.form() {
        Form::Whole => None,
        Form::Metadata(version, _) => Some(metadata_only(&call.info, object, version)),
        Form::Table(version) => {
            let options =
                table::Options { include: include(query), version, headers: true, now: call.clock.now() };
            let mut table = table::render(&call.info, object, &options);
            drop_empty_token(&mut table["metadata"]);
            Some(table)
        }
    })
}

/// Removes an empty continue token, which only whole lists of custom resources show.
fn drop_empty_token(metadata: &mut Value) {
    if metadata.get("continue").and_then(Value::as_str) == Some("") {
        crate::object::set_field(metadata, "continue", None);
    }
}

fn metadata_only(info: &ResourceInfo, object: &Value, version: &str) -> Value {
    let Some(items) = object.get("items").and_then(Value::as_array) else {
        return table::partial_metadata(info, object, version);
    };
    let mut meta = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
    drop_empty_token(&mut meta);
    let items: Vec<Value> = items.iter().map(|item| table::partial_metadata(info, item, version)).collect();
    // Upstream's list is nil, not empty, if it has no items.
    let items = if items.is_empty() { Value::Null } else { Value::Array(items) };
    json!({
        "kind": "PartialObjectMetadataList", "apiVersion": format!("meta.k8s.io/{version}"), "metadata": meta,
        "items": items
    })
}

fn include_is_known(accepted: &Accepted, query: &Query) -> Result<(), Refusal> {
    let text = query.get("includeObject").unwrap_or_default();
    if matches!(text, "" | "Object" | "None" | "Metadata") || !matches!(accepted.form(), Form::Table(_)) {
        return Ok(());
    }
    Err(Refusal::bad_request(format!(
        "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', 'Object', \
         'None', or empty",
        go::quote(text)
    )))
}

pub(super) fn include(query: &Query) -> table::Include {
    match query.get("includeObject") {
        Some("Object") => table::Include::Object,
        Some("None") => table::Include::None,
        _ => table::Include::Metadata,
    }
}
