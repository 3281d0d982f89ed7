//! Decodes a body as an object of the kind in the request's path, and reports fields that this kind does not have.
//! Values are converted to canonical form; defaults and validation are left to the registry.

use std::sync::LazyLock;

use admit_apimachinery::bounded::MAX_PATHS;
use admit_apimachinery::go;
use admit_apimachinery::weight::{Budget, TooHeavy};
use serde_json::{Map, Value};

use super::document::{Document, Unread};
use super::read::{Body, Format, MAX_BODY, PARSE_ERROR, parse};
use super::registered::{is_registered, is_taken_too};
use super::{literal, yaml};
use crate::builtin::decode::{self, Joined, decode_within};
use crate::builtin::{TypeId, tables};
use crate::emptied::Place;
use crate::kinds::strategy;
use crate::object;
use crate::resources::ResourceInfo;
use crate::served::CustomVersion;
use crate::status::Refusal;

const NUMBER_ERROR: &str = "json: cannot unmarshal number ";

/// An object ready for the registry.
#[derive(Debug)]
pub(crate) struct Received {
    pub object: Value,
    /// Errors of strict decoding: `unknown field "spec.bogus"`, `duplicate field "metadata"`.
    pub strict: Vec<String>,
    /// Lists and maps of a built-in kind that were sent empty, and are not in `object`.
    pub emptied: Vec<Place>,
}

/// Reads a body as an object of a built-in kind that is sent to a subresource of `info`.
///
/// # Errors
/// 400 in Kubernetes' words.
pub(crate) fn receive_kind(
    info: &ResourceInfo,
    (group, version, kind): (&str, &str, &str),
    body: &Body,
) -> Result<Received, Refusal> {
    let sent = ResourceInfo {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        builtin: true,
        ..info.clone()
    };
    receive(&sent, None, body)
}

/// Reads a body as delete options. Contents of another kind are not read: the caller, who knows the request, reports it.
///
/// # Errors
/// 400 in Kubernetes' words.
pub(crate) fn receive_delete_options(body: &Body) -> Result<Value, Refusal> {
    let Document { value: options, duplicates } =
        parse(body).map_err(|why| why.refusal(Refusal::bad_request))?;
    if let Some(why) = unnamed(&options) {
        return Err(Refusal::bad_request(why));
    }
    if !matches!(options, Value::Object(_) | Value::Null) {
        return Err(Refusal::bad_request(go::json::without_kind(&options)));
    }
    let is_other = text(&options, "kind").is_some_and(|kind| kind != "DeleteOptions");
    match *DELETE_OPTIONS {
        Some(id) if !is_other && options.is_object() => {
            let received = joined(id, body, &duplicates).and_then(|joined| {
                let options = joined.map_or(options, |joined| joined.value);
                typed(id, options, Some(body))
            });
            Ok(received.map_err(|why| why.refusal(Refusal::bad_request))?.object)
        }
        _ => Ok(options),
    }
}

static DELETE_OPTIONS: LazyLock<Option<TypeId>> =
    LazyLock::new(|| tables().by_openapi_name("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"));

/// Builds the error for a body that fails strict validation.
#[must_use]
pub(crate) fn strict_refusal(
    (_, version, kind): (&str, &str, &str),
    body: &Body,
    received: &Received,
) -> Refusal {
    let objections = match body.format {
        Format::Yaml => yaml::strict_text(&received.strict),
        Format::Json | Format::Protobuf => received.strict.join(", "),
    };
    Refusal::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {kind}: strict decoding error: {objections}"
    ))
}

/// Reads a POST or PUT body as an object of `info`'s kind.
///
/// # Errors
/// 400 in Kubernetes' words.
pub(crate) fn receive(
    info: &ResourceInfo,
    custom: Option<&CustomVersion>,
    body: &Body,
) -> Result<Received, Refusal> {
    let unrecognized = |error: &str| {
        let sample = summary(&body.bytes);
        Refusal::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {error} ({sample})",
            info.kind
        ))
    };
    let Document { value, duplicates } = parse(body).map_err(|why| {
        why.refusal(|error| {
            // For a number error upstream has already determined the kind.
            let number = error.strip_prefix(PARSE_ERROR).filter(|error| error.starts_with(NUMBER_ERROR));
            number.map_or_else(|| unrecognized(&error), |error| unhandled_as(info, error))
        })
    })?;
    if let Some(error) = unnamed(&value) {
        return Err(unrecognized(&error));
    }
    // Custom resources have no Go type: member names are compared exactly.
    let text = if custom.is_some() { exact_text } else { text };
    if custom.is_some() && matches!(value, Value::Object(_) | Value::Null) && text(&value, "kind").is_none() {
        let body = String::from_utf8_lossy(&body.bytes);
        return Err(unrecognized(&format!("Object 'Kind' is missing in '{body}'")));
    }
    let value = match value {
        Value::Null => Value::Object(Map::new()),
        Value::Object(_) => value,
        other => return Err(unrecognized(&go::json::without_kind(&other))),
    };
    let api_version = text(&value, "apiVersion");
    let api_version =
        api_version.unwrap_or_else(|| if custom.is_some() { String::new() } else { info.api_version() });
    let kind = text(&value, "kind").unwrap_or_else(|| info.kind.clone());
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let unhandled = |error: String| {
        Refusal::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {}: {error}",
            info.kind
        ))
    };
    let is_expected =
        kind == info.kind && (api_version == info.api_version() || is_taken_too(&api_version, &kind));
    if custom.is_none() && !is_expected {
        return Err(wrong_kind(info, (&kind, &api_version), &unhandled));
    }
    let custom_type = custom.filter(|_| is_expected);
    let received = read_as(info, custom_type, Document { value, duplicates }, body);
    let mut received = received.map_err(|why| why.refusal(unhandled))?;
    if custom.is_some() {
        if api_version != info.api_version() {
            return Err(wrong_version(info, &api_version));
        }
        // The right version with another kind is reported by validation.
        object::set_field(&mut received.object, "kind", Some(kind.into()));
    }
    Ok(received)
}

/// Decodes a parsed body, and collects the errors of strict decoding.
fn read_as(
    info: &ResourceInfo,
    custom: Option<&CustomVersion>,
    Document { value, duplicates }: Document,
    body: &Body,
) -> Result<Received, Unread> {
    let id = tables().kind(&info.group, &info.version, &info.kind).filter(|_| info.builtin);
    let joined = id.map_or(Ok(None), |id| joined(id, body, &duplicates))?;
    let (value, in_order) = joined.map_or((value, None), |joined| (joined.value, Some(joined.strict)));
    let mut received = canonical(info, custom, value, Some(body), Nulls::Dropped)?;
    if let Some(in_order) = in_order {
        received.strict = in_order;
    } else {
        let duplicates = duplicates.iter().map(|path| duplicate_text(body.format, path));
        received.strict.splice(0..0, duplicates);
    }
    // sigs.k8s.io/json limits the number of all errors together.
    received.strict.truncate(MAX_PATHS);
    Ok(received)
}

/// Joins the members of a built-in type that repeat in a JSON body, if any do.
fn joined(id: TypeId, body: &Body, duplicates: &[String]) -> Result<Option<Joined>, Unread> {
    let are_joined = body.format == Format::Json && !duplicates.is_empty();
    are_joined.then(|| decode::joined(tables(), id, &body.bytes).map_err(too_heavy)).transpose()
}

/// Decodes a patched object again: like [`receive`] after parsing, without messages about the request's body.
///
/// # Errors
/// When the value cannot be decoded.
pub(crate) fn recheck(
    info: &ResourceInfo,
    custom: Option<&CustomVersion>,
    value: Value,
) -> Result<Received, Unread> {
    canonical(info, custom, value, None, Nulls::Dropped)
}

/// Like [`recheck`], for the result of a merged configuration: nulls that its schema does not allow are kept.
///
/// # Errors
/// When the value cannot be decoded.
pub(crate) fn recheck_merged(
    info: &ResourceInfo,
    custom: Option<&CustomVersion>,
    value: Value,
) -> Result<Received, Unread> {
    canonical(info, custom, value, None, Nulls::Kept)
}

/// How to treat nulls that the schema of a custom resource neither allows nor has a default for.
#[derive(Clone, Copy)]
enum Nulls {
    Dropped,
    Kept,
}

/// Like [`recheck`], for a built-in kind that is sent to a subresource; an unknown kind is returned unchanged.
///
/// # Errors
/// When the value cannot be decoded.
pub(crate) fn recheck_kind(
    (group, version, kind): (&str, &str, &str),
    value: Value,
) -> Result<Received, Unread> {
    match tables().kind(group, version, kind) {
        Some(id) => typed(id, value, None),
        None => Ok(Received { object: value, strict: Vec::new(), emptied: Vec::new() }),
    }
}

fn canonical(
    info: &ResourceInfo,
    custom: Option<&CustomVersion>,
    mut value: Value,
    body: Option<&Body>,
    nulls: Nulls,
) -> Result<Received, Unread> {
    object::set_field(&mut value, "kind", Some(info.kind.as_str().into()));
    object::set_field(&mut value, "apiVersion", Some(info.api_version().into()));
    match (tables().kind(&info.group, &info.version, &info.kind), custom) {
        (Some(id), None) if info.builtin => {
            keep_reset(&mut value);
            let received = typed(id, value, body)?;
            let why = strategy(info).and_then(|strategy| strategy.inconvertible);
            match why.and_then(|why| why(&received.object)) {
                Some(why) => Err(Unread::Inconvertible(why)),
                None => Ok(received),
            }
        }
        _ => custom_object(custom, value, budget(body), nulls),
    }
}

/// An empty `managedFields` requests a reset, like one empty entry; only the latter survives decoding. (For custom
/// resources the empty list is lost without effect.)
fn keep_reset(value: &mut Value) {
    if let Some(Value::Array(entries)) = object::known_meta_mut(value, "managedFields")
        && entries.is_empty()
    {
        entries.push(Value::Object(Map::new()));
    }
}

/// Returns the memory limit of an object with its defaults; for the result of a patch, that of the largest body.
fn budget(body: Option<&Body>) -> Budget {
    Budget::of_text(body.map_or(MAX_BODY, |body| body.bytes.len()))
}

fn too_heavy(limit: TooHeavy) -> Unread {
    Unread::TooMuch(format!("{limit}, with what the server adds to them"))
}

fn typed(id: TypeId, value: Value, body: Option<&Body>) -> Result<Received, Unread> {
    let decoded = decode_within(tables(), id, value, budget(body)).map_err(|error| {
        if let Some(limit) = error.too_heavy() {
            return too_heavy(limit);
        }
        let text = body.filter(|body| body.format == Format::Json).zip(error.number_at());
        let literal = text.and_then(|(body, path)| literal::at(&body.bytes, path));
        Unread::Mistake(literal.map_or_else(|| error.to_string(), |literal| error.with_digits(literal)))
    })?;
    let strict = unknown_texts(&decoded.unknown);
    Ok(Received { object: decoded.value, strict, emptied: decoded.emptied })
}

static OBJECT_META: LazyLock<Option<TypeId>> =
    LazyLock::new(|| tables().by_openapi_name("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"));

/// Reports whether ObjectMeta has a field of this name.
pub(crate) fn is_metadata(field: &str) -> bool {
    OBJECT_META.is_some_and(|id| tables().field(id, field).is_some())
}

fn custom_object(
    custom: Option<&CustomVersion>,
    mut value: Value,
    mut budget: Budget,
    nulls: Nulls,
) -> Result<Received, Unread> {
    let mut unknown = Vec::new();
    if let Some(id) = *OBJECT_META
        && let Some(metadata) = value.get_mut("metadata").filter(|metadata| !metadata.is_null())
    {
        let mut metadata = metadata.take();
        // Go encodes and decodes it again, which sorts members and drops the fraction of whole numbers.
        metadata.sort_all_objects();
        let decoded = decode_within(tables(), id, go::json::rewritten(metadata), budget);
        let decoded = decoded.map_err(|error| match error.too_heavy() {
            Some(limit) => too_heavy(limit),
            None => Unread::Mistake(error.to_string()),
        })?;
        unknown.extend(decoded.unknown.into_iter().map(|path| format!("metadata.{path}")));
        object::set_field(&mut value, "metadata", Some(decoded.value));
    }
    if let Some(custom) = custom {
        unknown.extend(match nulls {
            Nulls::Dropped => custom.prune(&mut value),
            Nulls::Kept => custom.prune_merged(&mut value),
        });
        unknown.extend(custom.read_metadata(&mut value).map_err(|error| Unread::Mistake(error.to_string()))?);
        custom.take_defaults(&value, &mut budget).map_err(too_heavy)?;
    }
    Ok(Received { object: value, strict: unknown_texts(&unknown), emptied: Vec::new() })
}

fn unhandled_as(info: &ResourceInfo, error: &str) -> Refusal {
    let ResourceInfo { kind, version, .. } = info;
    Refusal::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {error}"))
}

fn unknown_texts(paths: &[String]) -> Vec<String> {
    paths.iter().map(|path| unknown_text(path)).collect()
}

pub(crate) fn unknown_text(path: &str) -> String {
    format!("unknown field \"{path}\"")
}

fn duplicate_text(format: Format, path: &str) -> String {
    match format {
        Format::Json | Format::Protobuf => format!("duplicate field \"{path}\""),
        // The YAML reader knows lines, and returns the whole sentence.
        Format::Yaml => path.to_owned(),
    }
}

/// Builds the error for a built-in kind other than that of the path.
fn wrong_kind(
    info: &ResourceInfo,
    (kind, api_version): (&str, &str),
    unhandled: &dyn Fn(String) -> Refusal,
) -> Refusal {
    if kind == info.kind && is_registered(api_version, kind) {
        return wrong_version(info, api_version);
    }
    unhandled(unlike_kind(info, kind, api_version))
}

/// Returns Go's error for a kind that cannot be converted to a built-in one, or that is not known.
pub(crate) fn unlike_kind(info: &ResourceInfo, kind: &str, api_version: &str) -> String {
    if is_registered(api_version, kind) {
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let package = info.go_package();
        let into = &info.kind;
        return format!("converting ({version}.{kind}) to ({package}.{into}): unknown conversion");
    }
    let scheme = scheme_of(info);
    format!("no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"{scheme}\"")
}

/// Returns where the scheme of a built-in kind is made. CustomResourceDefinitions are served by a separate server upstream, with another
/// scheme.
pub(crate) fn scheme_of(info: &ResourceInfo) -> &'static str {
    match info.group.as_str() {
        "apiextensions.k8s.io" => "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:55",
        _ => "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30",
    }
}

fn wrong_version(info: &ResourceInfo, api_version: &str) -> Refusal {
    Refusal::bad_request(format!(
        "the API version in the data ({api_version}) does not match the expected API version ({})",
        info.api_version()
    ))
}

/// Returns a string at the top of a body by its exact name. Go's reader ignores the case of names, and uses the last match.
fn exact_text(value: &Value, field: &str) -> Option<String> {
    value.get(field).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn text(value: &Value, field: &str) -> Option<String> {
    let mut fitting = value.as_object()?.iter().rev().filter(|(name, _)| name.eq_ignore_ascii_case(field));
    let text = fitting.find_map(|(_, value)| value.as_str());
    text.filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Returns Go's error for a kind or version that is not a string.
pub(crate) fn unnamed(value: &Value) -> Option<String> {
    let named =
        |name: &str| ["apiVersion", "kind"].into_iter().find(|known| known.eq_ignore_ascii_case(name));
    value.as_object()?.iter().find_map(|(name, value)| {
        let field = named(name).filter(|_| !value.is_string() && !value.is_null())?;
        let found = go::json::kind(value);
        Some(format!(
            "{PARSE_ERROR}json: cannot unmarshal {found} into Go struct field .{field} of type string"
        ))
    })
}

/// Returns the beginning of a body: as text if it looks like JSON, else in hexadecimal.
fn summary(bytes: &[u8]) -> String {
    const SHOWN: usize = 30;
    let Some(first) = bytes.first() else { return "<empty>".to_owned() };
    let head = bytes.get(..SHOWN).unwrap_or(bytes);
    let mut text =
        if *first == b'{' { String::from_utf8_lossy(head).into_owned() } else { go::hex::encode(head) };
    if bytes.len() > SHOWN {
        text.push_str(" ...");
    }
    text
}
