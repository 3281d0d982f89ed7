//! Decodes query parameters, and validates them as `meta/v1` option objects, with Kubernetes' error messages.

use std::num::{IntErrorKind, ParseIntError};

use admit_apimachinery::go;
use serde_json::{Value, json};

use crate::status::{Cause, Refusal};

/// The decoded parameters of a query; of equal names the first counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses a query; tolerates empty pairs, a second `?`, and invalid escapes (skipped, as by Go's parser).
    #[must_use]
    pub(crate) fn parse(raw: &str) -> Self {
        let pairs = raw.trim_start_matches('?').split('&').filter(|pair| !pair.is_empty());
        Self(pairs.filter_map(pair).collect())
    }

    #[must_use]
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.get(name).unwrap_or_default().to_owned()
    }

    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
    }

    /// Returns a boolean parameter: `0` and `false`, in any case, are false; anything else is true, also an empty value.
    /// None if it is absent.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.get(name).map(|text| text != "0" && !text.eq_ignore_ascii_case("false"))
    }

    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|error: ParseIntError| {
                let why = match error.kind() {
                    IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                    _ => "invalid syntax",
                };
                Refusal::bad_request(format!("strconv.ParseInt: parsing {}: {why}", go::quote(text)))
            }),
        }
    }
}

fn pair(text: &str) -> Option<(String, String)> {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    Some((unescape(key)?, unescape(value)?))
}

/// Decodes percent-encoding, and `+` as a blank; None for an invalid escape.
#[must_use]
pub(crate) fn unescape(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let high = char::from(bytes.next()?).to_digit(16)?;
                let low = char::from(bytes.next()?).to_digit(16)?;
                out.push(u8::try_from(high * 16 + low).ok()?);
            }
            other => out.push(other),
        }
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

/// How unknown and duplicate fields of a body are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// The parsed `CreateOptions`, `UpdateOptions` or `PatchOptions`.
#[derive(Clone, Debug)]
pub(crate) struct WriteOptions {
    /// The kind of the options (`CreateOptions`…), for refusals and admission reviews.
    pub kind: &'static str,
    pub dry_run: bool,
    pub field_manager: String,
    /// The field manager: without `fieldManager`, the first part of the client's user agent.
    pub manager: String,
    /// Whether an applied configuration takes fields from other managers.
    pub force: bool,
    pub field_validation: FieldValidation,
    /// The parameter as sent; empty when it was not.
    pub field_validation_text: String,
}

impl WriteOptions {
    /// Returns the options of the server's own writes.
    #[must_use]
    pub(crate) fn own() -> Self {
        Self {
            kind: "CreateOptions",
            dry_run: false,
            field_manager: String::new(),
            manager: "kube-apiserver".to_owned(),
            force: false,
            field_validation: FieldValidation::Ignore,
            field_validation_text: String::new(),
        }
    }

    /// Returns the same with a field manager for a part of the server.
    #[must_use]
    pub(crate) fn of(manager: &str) -> Self {
        Self { manager: manager.to_owned(), ..Self::own() }
    }

    /// # Errors
    /// 422 for unsupported values.
    pub(crate) fn parse(kind: &'static str, query: &Query, user_agent: &str) -> Result<Self, Refusal> {
        Self::checked(kind, query, user_agent, Vec::new())
    }

    /// Parses the options of a patch; only an apply patch may set `force`, and it must set the field manager.
    ///
    /// # Errors
    /// 422 for unsupported values.
    pub(crate) fn parse_patch(query: &Query, user_agent: &str, apply: bool) -> Result<Self, Refusal> {
        let mut causes = Vec::new();
        if apply && query.text("fieldManager").is_empty() {
            causes.push(Cause::required("fieldManager", "is required for apply patch"));
        }
        if !apply && query.get("force").is_some() {
            causes.push(Cause::forbidden("force", "may not be specified for non-apply patch"));
        }
        Self::checked("PatchOptions", query, user_agent, causes)
    }

    fn checked(
        kind: &'static str,
        query: &Query,
        user_agent: &str,
        mut causes: Vec<Cause>,
    ) -> Result<Self, Refusal> {
        let field_manager = query.text("fieldManager");
        if field_manager.len() > MANAGER_LIMIT {
            causes.push(Cause::too_long("fieldManager", MANAGER_LIMIT));
        }
        causes.extend(unprintable(&field_manager));
        let dry_run = query.all("dryRun");
        causes.extend(dry_run_cause(&dry_run));
        let text = query.text("fieldValidation");
        let field_validation = match text.as_str() {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                causes.push(Cause::unsupported("fieldValidation", &other.into(), &supported));
                FieldValidation::Warn
            }
        };
        if causes.is_empty() {
            Ok(Self {
                kind,
                dry_run: !dry_run.is_empty(),
                manager: if field_manager.is_empty() {
                    client_name(user_agent)
                } else {
                    field_manager.clone()
                },
                field_manager,
                force: query.flag("force").unwrap_or(false),
                field_validation,
                field_validation_text: text,
            })
        } else {
            Err(invalid_options(kind, causes))
        }
    }

    /// Returns the options as an admission review carries them.
    #[must_use]
    pub(crate) fn to_value(&self) -> Value {
        let mut options = json!({"kind": self.kind, "apiVersion": "meta.k8s.io/v1"});
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        if !self.field_manager.is_empty() {
            options["fieldManager"] = self.field_manager.as_str().into();
        }
        if !self.field_validation_text.is_empty() {
            options["fieldValidation"] = self.field_validation_text.as_str().into();
        }
        options
    }
}

/// The longest field manager, in bytes.
const MANAGER_LIMIT: usize = 128;

/// Returns the `User-Agent` up to the first slash, printable and cut to the longest field manager.
fn client_name(user_agent: &str) -> String {
    let mut name = String::new();
    let product = user_agent.split('/').next().unwrap_or_default();
    for letter in product.chars().filter(|letter| !letter.is_control()) {
        if name.len() + letter.len_utf8() > MANAGER_LIMIT {
            break;
        }
        name.push(letter);
    }
    name
}

fn unprintable(field_manager: &str) -> Option<Cause> {
    let (at, c) = field_manager.char_indices().find(|(_, c)| c.is_control())?;
    let why = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
    Some(Cause::invalid("fieldManager", &field_manager.into(), &why))
}

fn dry_run_cause(values: &[&str]) -> Option<Cause> {
    let ok = values.iter().all(|value| *value == "All");
    (!ok).then(|| Cause::unsupported("dryRun", &json!(values), &["All"]))
}

pub(super) fn invalid_options(kind: &str, causes: Vec<Cause>) -> Refusal {
    Refusal::invalid_kind("meta.k8s.io", kind, "", causes)
}

/// What happens to dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Foreground,
    Background,
    Orphan,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub dry_run: bool,
    pub grace_period_seconds: Option<i64>,
    pub propagation: Option<Propagation>,
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    /// The document, for admission reviews.
    pub raw: Value,
}

/// The kinds that a body of options may have in any group and version, although none is one of options of a deletion.
const UNVERSIONED: [&str; 7] = [
    "APIGroup",
    "APIGroupList",
    "APIResourceList",
    "APIVersions",
    "CreateOptions",
    "Status",
    "UpdateOptions",
];
/// Such kinds of `meta.k8s.io/v1`.
const META: [&str; 8] = [
    "GetOptions",
    "ListOptions",
    "PartialObjectMetadata",
    "PartialObjectMetadataList",
    "PatchOptions",
    "Table",
    "TableOptions",
    "WatchEvent",
];

impl DeleteOptions {
    /// Parses the options from the body if there is one, otherwise from the query.
    ///
    /// # Errors
    /// 400 for a body of another kind, 422 for unsupported values.
    pub(crate) fn parse(query: &Query, body: Option<Value>) -> Result<Self, Refusal> {
        let raw = match body {
            Some(body) => body,
            None => Self::from_query(query)?,
        };
        let said = |field: &str, unsaid: &'static str| {
            let text = raw.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
            text.unwrap_or(unsaid)
        };
        let (kind, api_version) = (said("kind", "DeleteOptions"), said("apiVersion", "meta.k8s.io/v1"));
        if UNVERSIONED.contains(&kind) || (api_version == "meta.k8s.io/v1" && META.contains(&kind)) {
            let why = format!("converting (v1.{kind}) to (v1.DeleteOptions): unknown conversion");
            return Err(Refusal::bad_request(why));
        }
        if kind != "DeleteOptions" {
            return Err(Refusal::bad_request(format!(
                "no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \
                 \"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27\""
            )));
        }
        let mut causes = Vec::new();
        let dry_run = raw.get("dryRun").and_then(Value::as_array).cloned().unwrap_or_default();
        let dry_run: Vec<&str> = dry_run.iter().map(|value| value.as_str().unwrap_or_default()).collect();
        let propagation = propagation(&raw, &mut causes);
        causes.extend(dry_run_cause(&dry_run));
        if !causes.is_empty() {
            return Err(invalid_options("DeleteOptions", causes));
        }
        let precondition = |field: &str| {
            let value = raw.get("preconditions").and_then(|all| all.get(field)).and_then(Value::as_str);
            value.map(str::to_owned)
        };
        Ok(Self {
            dry_run: !dry_run.is_empty(),
            grace_period_seconds: raw.get("gracePeriodSeconds").and_then(Value::as_i64),
            propagation,
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
            raw: reviewed_delete_options(&raw),
        })
    }

    fn from_query(query: &Query) -> Result<Value, Refusal> {
        let mut options = json!({});
        if let Some(seconds) = query.integer("gracePeriodSeconds")? {
            options["gracePeriodSeconds"] = seconds.into();
        }
        if let Some(policy) = query.get("propagationPolicy") {
            options["propagationPolicy"] = policy.into();
        }
        if let Some(orphan) = query.flag("orphanDependents") {
            options["orphanDependents"] = orphan.into();
        }
        let dry_run = query.all("dryRun");
        if !dry_run.is_empty() {
            options["dryRun"] = json!(dry_run);
        }
        for name in ["uid", "resourceVersion"] {
            if let Some(text) = query.get(name).filter(|text| !text.is_empty()) {
                options["preconditions"][name] = text.into();
            }
        }
        Ok(options)
    }
}

fn reviewed_delete_options(raw: &Value) -> Value {
    let mut options = raw.clone();
    let map = crate::object::map_of(&mut options);
    map.insert("kind".to_owned(), "DeleteOptions".into());
    map.insert("apiVersion".to_owned(), "meta.k8s.io/v1".into());
    options
}

fn propagation(raw: &Value, causes: &mut Vec<Cause>) -> Option<Propagation> {
    let policy = raw.get("propagationPolicy").filter(|policy| !policy.is_null());
    let orphan = raw.get("orphanDependents").and_then(Value::as_bool);
    if let (Some(policy), Some(_)) = (policy, orphan) {
        let why = "orphanDependents and deletionPropagation cannot be both set";
        causes.push(Cause::invalid("propagationPolicy", policy, why));
        return None;
    }
    match (policy.and_then(Value::as_str), orphan) {
        (Some("Foreground"), _) => Some(Propagation::Foreground),
        (Some("Background"), _) => Some(Propagation::Background),
        (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
        (None, Some(false)) => Some(Propagation::Background),
        (None, None) => None,
        (Some(other), None) => {
            let supported = ["Foreground", "Background", "Orphan", "nil"];
            causes.push(Cause::unsupported("propagationPolicy", &other.into(), &supported));
            None
        }
        (Some(_), Some(_)) => None,
    }
}

/// Refuses `export`, which is no longer supported.
///
/// # Errors
/// 400 for a read that sets it.
pub(crate) fn check_export(query: &Query) -> Result<(), Refusal> {
    match query.flag("export") {
        Some(true) => {
            let why = "the export parameter, deprecated since v1.14, is no longer supported";
            Err(Refusal::bad_request(why))
        }
        _ => Ok(()),
    }
}
