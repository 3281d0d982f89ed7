//! Validates where a webhook listens: exactly one of a URL and a Service. Admission webhook configurations and the
//! conversion of CRDs use the same form, and are refused with the same messages.

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go::url;
use admit_apimachinery::names;

use crate::read::decode::{DecodeError, Fields};
use crate::read::path::Path;

/// The address of a webhook: a URL or a Service.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Client {
    Url(String),
    Service(Service),
}

/// A Service of the cluster.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Service {
    pub name: String,
    pub namespace: String,
    /// The path, with a leading slash, or empty.
    pub path: String,
    pub port: i64,
}

const DEFAULT_PORT: i64 = 443;

impl Client {
    /// Parses a `clientConfig`; what is wrong with it is added to `errors`.
    pub(crate) fn decode(fields: &Fields<'_>, errors: &mut FieldErrors) -> Result<Option<Self>, DecodeError> {
        let url = fields.optional_string("url")?;
        let service = fields.optional_object("service")?.as_ref().map(Service::decode).transpose()?;
        let before = errors.count();
        check(url.as_deref(), service.as_ref(), &Path::Root(fields.path()), errors);
        Ok(match (url, service) {
            _ if errors.count() > before => None,
            (Some(url), _) => Some(Self::Url(url)),
            (None, service) => service.map(Self::Service),
        })
    }
}

impl Service {
    fn decode(fields: &Fields<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            name: fields.string("name")?,
            namespace: fields.string("namespace")?,
            path: fields.string("path")?,
            port: fields.optional_integer("port")?.unwrap_or(DEFAULT_PORT),
        })
    }
}

/// Complains about the address of a webhook at `path`.
pub(crate) fn check(url: Option<&str>, service: Option<&Service>, path: &Path<'_>, errors: &mut FieldErrors) {
    match (url, service) {
        (Some(url), None) => check_url(url, &path.child("url"), errors),
        (None, Some(service)) => check_service(service, &path.child("service"), errors),
        _ => errors.push(FieldError::required(path, "exactly one of url or service is required")),
    }
}

fn check_url(url: &str, path: &Path<'_>, errors: &mut FieldErrors) {
    if let Err(problem) = url::parse(url) {
        let detail = format!("url must be a valid URL: {problem}; desired format: https://host[/path]");
        errors.push(FieldError::required(path, detail));
        return;
    }
    let mut refuse = |part: &str, detail: &str| errors.push(FieldError::invalid(path, part, detail));
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (scheme, rest) = rest.split_once(':').unwrap_or(("", rest));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.strip_prefix("//").map_or("", |rest| rest.split('/').next().unwrap_or_default());
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let scheme = scheme.to_ascii_lowercase();
    if scheme != "https" {
        refuse(&scheme, "'https' is the only allowed URL scheme; desired format: https://host[/path]");
    }
    if host.is_empty() {
        refuse(host, "host must be specified; desired format: https://host[/path]");
    }
    if let Some(user) = user {
        refuse(user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        refuse(fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        refuse(query, "query parameters are not permitted in the URL");
    }
}

fn check_service(service: &Service, path: &Path<'_>, errors: &mut FieldErrors) {
    // The server hands the two over in each other's place.
    if service.namespace.is_empty() {
        errors.push(FieldError::required(path.child("name"), ""));
    }
    if service.name.is_empty() {
        errors.push(FieldError::required(path.child("namespace"), ""));
    }
    if !(1..=65_535).contains(&service.port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(path.child("port"), service.port, detail));
    }
    check_path(&service.path, &path.child("path"), errors);
}

fn check_path(url_path: &str, at: &Path<'_>, errors: &mut FieldErrors) {
    let mut refuse = |detail: String| errors.push(FieldError::invalid(at, url_path, detail));
    match url_path {
        "" | "/" => return,
        "//" => return refuse("segment[0] may not be empty".to_owned()),
        _ => {}
    }
    let mut rest = url_path.chars();
    if rest.next() != Some('/') {
        refuse("must start with a '/'".to_owned());
    }
    // The first character is skipped, whatever it is.
    let segments = rest.as_str();
    let segments = segments.strip_suffix('/').unwrap_or(segments);
    for (i, segment) in segments.split('/').enumerate() {
        if segment.is_empty() {
            refuse(format!("segment[{i}] may not be empty"));
            continue;
        }
        for problem in names::dns1123_subdomain(segment) {
            refuse(format!("segment[{i}]: {problem}"));
        }
    }
}
