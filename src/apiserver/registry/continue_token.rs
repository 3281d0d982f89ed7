//! Encodes and decodes continue tokens of lists: the revision that is listed and the position of the next page, in the form
//! of kube-apiserver.

use admit_apimachinery::go::base64::{Alphabet, Padding, decode};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::call::Call;
use crate::object;
use crate::resources::Scope;
use crate::status::Refusal;
use crate::store::Revision;

/// The position of the next page.
#[derive(Debug)]
pub(super) struct Place {
    /// The revision of the first page; None for the newest state, which may differ from it.
    pub revision: Option<Revision>,
    namespace: String,
    name: String,
    /// The key in the token.
    key: String,
}

/// The revision in tokens that continue in the newest state.
const NEWEST: i64 = -1;
const VERSION: &str = "meta.k8s.io/v1";

impl Place {
    /// Returns the namespace and name after which the page begins.
    pub(super) fn key(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }

    /// Returns the token of the same position in the newest state.
    pub(super) fn anew(&self) -> String {
        written(NEWEST, &self.key)
    }

    /// # Errors
    /// 400 that says why the token is invalid.
    pub(super) fn read(token: &str, call: &Call) -> Result<Self, Refusal> {
        let invalid = |why: &str| {
            Refusal::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        };
        let bytes = decode(token, Alphabet::Url, Padding::Absent)
            .map_err(|at| invalid(&format!("illegal base64 data at input byte {at}")))?;
        let value = admit_policy::json::parse(&bytes).map_err(|error| invalid(&error.to_string()))?.value;
        let text = |member: &str| value.get(member).and_then(Value::as_str).unwrap_or_default();
        if text("v") != VERSION {
            return Err(invalid(&format!("server does not recognize this encoded version {}", text("v"))));
        }
        let revision = value.get("rv").and_then(Value::as_i64).unwrap_or_default();
        if revision == 0 {
            return Err(invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
        }
        let start = text("start");
        if start.is_empty() {
            return Err(invalid("encoded start key empty (version meta.k8s.io/v1)"));
        }
        let key = start.strip_prefix('/').unwrap_or(start);
        // A key that leaves the listed prefix.
        if !key.is_empty() && key.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(invalid(start));
        }
        let (namespace, name) = if !call.namespace.is_empty() {
            (call.namespace.as_str(), key)
        } else if call.info.scope == Scope::Namespaced {
            key.split_once('/').unwrap_or((key, ""))
        } else {
            ("", key)
        };
        Ok(Self {
            revision: u64::try_from(revision).ok(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            key: key.to_owned(),
        })
    }
}

/// Returns the token of what follows `last` in a list; empty if nothing does. `cached`: whether upstream answers from its
/// cache, as for the newest state, where keys begin with a slash.
pub(super) fn next(revision: Revision, last: Option<&Value>, call: &Call, cached: bool) -> String {
    let Some(last) = last else { return String::new() };
    let (namespace, name) = (object::namespace(last), object::name(last));
    let slash = if cached { "/" } else { "" };
    let within = if call.namespace.is_empty() && !namespace.is_empty() {
        format!("{namespace}/")
    } else {
        String::new()
    };
    written(i64::try_from(revision).unwrap_or(i64::MAX), &format!("{slash}{within}{name}\0"))
}

fn written(revision: i64, key: &str) -> String {
    URL_SAFE_NO_PAD.encode(json!({"v": VERSION, "rv": revision, "start": key}).to_string())
}
