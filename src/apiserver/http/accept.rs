//! Negotiates the content type of a response: its media type, and the form of the object (itself, a Table, or metadata
//! only).

use http::{HeaderMap, header};

use crate::call::Query;
use crate::resources::ResourceInfo;
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

pub(super) const TYPES: [&str; 3] =
    ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

impl Accepted {
    /// Parses the header; without one, JSON is accepted. `protobuf`: whether the response has a protobuf form.
    pub(super) fn parse(headers: &HeaderMap, query: &str, protobuf: bool) -> Self {
        match Self::media_type(headers, protobuf) {
            Self::Json(form) if wants_pretty(headers, query) => Self::Pretty(form),
            other => other,
        }
    }

    /// Like [`Self::parse`], for documents that have only one form: clauses for other forms are skipped.
    pub(super) fn parse_whole(headers: &HeaderMap, query: &str) -> Self {
        let clauses = clauses(headers);
        if clauses.is_empty() {
            return Self::parse(headers, query, true);
        }
        let whole = |accepted: &Self| accepted.form() == Form::Whole;
        match clauses.iter().find_map(|clause| clause.accepted().filter(whole)) {
            Some(Self::Json(_)) if wants_pretty(headers, query) => Self::Pretty(Form::Whole),
            Some(accepted) => accepted,
            None => Self::Nothing,
        }
    }

    fn media_type(headers: &HeaderMap, protobuf: bool) -> Self {
        let clauses = clauses(headers);
        if clauses.is_empty() {
            return Self::default();
        }
        let served = |accepted: &Self| protobuf || !matches!(accepted, Self::Protobuf(_));
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

    /// Like [`Self::check`], for reads of built-in kinds: upstream's router for these does not match media type ranges, and
    /// refuses unknown types with a message of its own.
    pub(super) fn check_for(
        &self,
        info: &ResourceInfo,
        headers: &HeaderMap,
        listing: bool,
    ) -> Result<(), Refusal> {
        if !info.builtin || is_routed(headers, &TYPES) {
            return self.check();
        }
        let streams = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
        let mut available = TYPES.to_vec();
        if listing {
            available.extend(streams);
        }
        Err(Refusal::no_representation(&available))
    }

    /// Checks that a list, or a single object, can be shown in the requested form.
    pub(super) fn check_shape(&self, info: &ResourceInfo, listing: bool) -> Result<(), Refusal> {
        let Form::Metadata(_, list) = self.form() else { return Ok(()) };
        match (list, listing) {
            (true, false) if info.builtin => Err(Refusal::not_acceptable_form(format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list (*{}.{})",
                info.go_package(),
                info.kind
            ))),
            (true, false) => Err(Refusal::unclassified("content is not a list")),
            (false, true) => {
                let held = if info.builtin {
                    format!("*{}.{}", info.go_package(), info.list_kind)
                } else {
                    "*unstructured.UnstructuredList".to_owned()
                };
                Err(Refusal::not_acceptable_form(format!(
                    "you requested PartialObjectMetadata, but the requested object is a list ({held})"
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Checks a header as the router of built-in documents does: without media type ranges, and with a message of its own.
///
/// # Errors
/// 406 if none of `types` is accepted.
pub(super) fn check_routed(headers: &HeaderMap, types: &[&str]) -> Result<(), Refusal> {
    if is_routed(headers, types) { Ok(()) } else { Err(Refusal::no_representation(types)) }
}

fn is_routed(headers: &HeaderMap, types: &[&str]) -> bool {
    let clauses = clauses(headers);
    let routed = |clause: &Clause| clause.media_type == "*/*" || types.contains(&clause.media_type.as_str());
    clauses.is_empty() || clauses.iter().any(routed)
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
    let mut clause =
        Clause { media_type: parts.next().unwrap_or_default().to_lowercase(), ..Clause::default() };
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
