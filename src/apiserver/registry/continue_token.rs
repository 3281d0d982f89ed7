//! Continue tokens of lists: the state that is listed and the place in it where the next page begins, in the form that
//! kube-apiserver gives them.

use admit_apimachinery::go::base64::{Alphabet, Padding, decode};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::call::Call;
use crate::object;
use crate::resources::Scope;
use crate::status::Refusal;
use crate::store::Revision;

/// Where the next page begins.
#[derive(Debug)]
pub(super) struct Place {
    /// The state of the first page; none for the newest one, which may differ from it.
    pub revision: Option<Revision>,
    namespace: String,
    name: String,
    /// The key that the token names.
    key: String,
}

/// The revision of tokens that go on in the newest state.
const NEWEST: i64 = -1;
const VERSION: &str = "meta.k8s.io/v1";

impl Place {
    /// The namespace and name behind which the page begins.
    pub(super) fn key(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }

    /// The token of the same place in the newest state.
    pub(super) fn anew(&self) -> String {
        written(NEWEST, &self.key)
    }

    /// # Errors
    /// 400 with what is wrong with the token.
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
        // A key that leads out of what is listed.
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

/// The token of what follows `last` in a list of the call; empty where nothing does. A list of the newest state comes out of
/// upstream's cache, whose keys begin with a slash: `cached`.
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
