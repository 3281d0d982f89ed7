//! Negotiates the content type of a response: its media type, and the form of the object (itself, a Table, or metadata
//! only).

use http::{HeaderMap, header};

use crate::call::{Call, Query};
use crate::resources::go_package;
use crate::status::Refusal;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    #[default]
    Whole,
    /// A Table, with the version of `meta.k8s.io`.
    Table(&'static str),
    /// Metadata only: the version of `meta.k8s.io`, and whether a list was requested.
    Metadata(&'static str, bool),
}

/// The parsed `Accept` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    Json(Form),
    /// JSON with line breaks and indentation.
    Pretty(Form),
    Yaml(Form),
    /// Protobuf, for built-in kinds as a whole or their metadata.
    Protobuf(Form),
    /// No clause can be served.
    Nothing,
}

impl Default for Accepted {
    fn default() -> Self {
        Self::Json(Form::Whole)
    }
}

/// The forms of a response beside JSON and YAML.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offered {
    pub(super) protobuf: bool,
    pub(super) tables: bool,
}

impl Offered {
    pub(super) const ALL: Self = Self { protobuf: true, tables: true };
}

pub(super) const TYPES: [&str; 3] =
    ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

impl Accepted {
    /// Parses the header; without one, JSON is accepted.
    pub(super) fn parse(headers: &HeaderMap, query: &str, offered: Offered) -> Self {
        match Self::media_type(headers, offered) {
            Self::Json(form) if wants_pretty(headers, query) => Self::Pretty(form),
            other => other,
        }
    }

    /// Like [`Self::parse`], for documents that have only one form: clauses for other forms are skipped.
    pub(super) fn parse_whole(headers: &HeaderMap, query: &str) -> Self {
        let clauses = clauses(headers);
        if clauses.is_empty() {
            return Self::parse(headers, query, Offered::ALL);
        }
        let whole = |accepted: &Self| accepted.form() == Form::Whole;
        match clauses.iter().find_map(|clause| clause.accepted().filter(whole)) {
            Some(Self::Json(_)) if wants_pretty(headers, query) => Self::Pretty(Form::Whole),
            Some(accepted) => accepted,
            None => Self::Nothing,
        }
    }

    fn media_type(headers: &HeaderMap, offered: Offered) -> Self {
        let clauses = clauses(headers);
        if clauses.is_empty() {
            return Self::default();
        }
        let served = |accepted: &Self| {
            (offered.protobuf || !matches!(accepted, Self::Protobuf(_)))
                && (offered.tables || !matches!(accepted.form(), Form::Table(_)))
        };
        clauses.iter().find_map(|clause| clause.accepted().filter(served)).unwrap_or(Self::Nothing)
    }

    pub(super) fn form(&self) -> Form {
        match self {
            Self::Json(form) | Self::Pretty(form) | Self::Yaml(form) | Self::Protobuf(form) => *form,
            Self::Nothing => Form::Whole,
        }
    }

    /// # Errors
    /// 406 if no clause can be served.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        if *self == Self::Nothing { Err(Refusal::not_acceptable(&TYPES)) } else { Ok(()) }
    }

    /// Checks that a list, or a single object, can be shown in the requested form.
    pub(super) fn check_shape(&self, call: &Call, listing: bool) -> Result<(), Refusal> {
        let Form::Metadata(_, list) = self.form() else { return Ok(()) };
        let (asked, held) = match (list, listing) {
            (true, false) => ("PartialObjectMetadataList", "not a list"),
            (false, true) => ("PartialObjectMetadata", "a list"),
            _ => return Ok(()),
        };
        let Some(go_type) = go_type(call, listing) else {
            return Err(Refusal::unclassified("content is not a list"));
        };
        Err(Refusal::not_acceptable_form(format!(
            "you requested {asked}, but the requested object is {held} (*{go_type})"
        )))
    }
}

/// The Go type of what a request answers, which errors name; None for a custom object, whose kind is data.
fn go_type(call: &Call, listing: bool) -> Option<String> {
    let info = &call.info;
    match call.subresource.and_then(|subresource| subresource.own_kind(info)) {
        Some((_, version, kind)) if !info.builtin => Some(format!("{version}.{kind}")),
        Some((group, _, kind)) => Some(format!("{}.{kind}", go_package(group))),
        None if info.builtin => {
            let kind = if listing { &info.list_kind } else { &info.kind };
            Some(format!("{}.{kind}", go_package(&info.group)))
        }
        None => listing.then(|| "unstructured.UnstructuredList".to_owned()),
    }
}

/// Checks a header as the router of built-in documents does: without media type ranges, and with a message of its own.
///
/// # Errors
/// 406 if none of `types` is accepted.
pub(super) fn check_routed(headers: &HeaderMap, types: &[&str]) -> Result<(), Refusal> {
    let text = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_routed = text.is_empty()
        || media_types(text).any(|media_type| media_type == "*/*" || types.contains(&media_type));
    if is_routed { Ok(()) } else { Err(Refusal::no_representation(types)) }
}

/// Returns the media types that a header lists, as written and without parameters.
pub(super) fn media_types(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(|clause| clause.split(';').next().unwrap_or_default().trim_matches(' '))
}

/// Returns whether the client requests indented JSON, or is a program whose output people read (such as curl).
fn wants_pretty(headers: &HeaderMap, query: &str) -> bool {
    let asked = Query::parse(query);
    if let Some(text) = asked.get("pretty").filter(|text| !text.is_empty()) {
        return matches!(text, "1" | "t" | "T" | "true" | "True" | "TRUE");
    }
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|prefix| agent.starts_with(prefix))
}

#[derive(Debug, Default)]
struct Clause {
    media_type: String,
    as_kind: String,
    version: String,
    group: String,
    stream: String,
    pretty: bool,
}

/// Returns the clauses of an `Accept` header, the most preferred first.
fn clauses(headers: &HeaderMap) -> Vec<Clause> {
    let text = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if text.trim().is_empty() {
        return Vec::new();
    }
    let mut clauses: Vec<(f32, Clause)> = text.split(',').map(clause).collect();
    clauses.sort_by(|one, other| other.0.total_cmp(&one.0));
    clauses.into_iter().map(|(_, clause)| clause).collect()
}

fn clause(text: &str) -> (f32, Clause) {
    let mut parts = text.split(';').map(str::trim);
    let mut quality = 1.0;
    let mut clause = Clause { media_type: parts.next().unwrap_or_default().to_owned(), ..Clause::default() };
    for parameter in parts {
        match parameter.split_once('=') {
            Some(("q", value)) => quality = value.parse().unwrap_or(1.0),
            Some(("as", value)) => value.clone_into(&mut clause.as_kind),
            Some(("v", value)) => value.clone_into(&mut clause.version),
            Some(("g", value)) => value.clone_into(&mut clause.group),
            Some(("stream", value)) => value.clone_into(&mut clause.stream),
            Some(("pretty", value)) => clause.pretty = value == "1",
            _ => {}
        }
    }
    (quality, clause)
}

impl Clause {
    fn accepted(&self) -> Option<Accepted> {
        let form = self.form()?;
        if !matches!(self.stream.as_str(), "" | "watch") {
            return None;
        }
        match self.media_type.as_str() {
            "application/json" | "*/*" | "application/*" if self.pretty => Some(Accepted::Pretty(form)),
            "application/json" | "*/*" | "application/*" => Some(Accepted::Json(form)),
            // YAML has no streaming form.
            "application/yaml" if self.stream.is_empty() => Some(Accepted::Yaml(form)),
            "application/vnd.kubernetes.protobuf" if !matches!(form, Form::Table(_)) => {
                Some(Accepted::Protobuf(form))
            }
            _ => None,
        }
    }

    fn form(&self) -> Option<Form> {
        let version = match self.version.as_str() {
            "v1" => Some("v1"),
            "v1beta1" => Some("v1beta1"),
            _ => None,
        };
        match (self.as_kind.as_str(), self.group.as_str(), version) {
            ("", "", _) if self.version.is_empty() => Some(Form::Whole),
            ("Table", "meta.k8s.io", Some(version)) => Some(Form::Table(version)),
            ("PartialObjectMetadata", "meta.k8s.io", Some(version)) => Some(Form::Metadata(version, false)),
            ("PartialObjectMetadataList", "meta.k8s.io", Some(version)) => {
                Some(Form::Metadata(version, true))
            }
            _ => None,
        }
    }
}
