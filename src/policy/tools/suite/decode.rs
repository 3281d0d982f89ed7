//! Parses a Suite document into typed cases. A case inherits what it leaves out from the suite's `defaults`; its
//! objects are merge patches on those of the defaults, and its `patch` makes the new object from the old one as
//! `kubectl patch` does.

use std::sync::Arc;
use std::time::SystemTime;

use jiff::Timestamp;
use serde_json::Value;
use thiserror::Error;

use super::expect::text;
use super::{
    API_VERSION, Accepted, Case, Expectation, ExpectedReason, Outcome, StatesCase, StatesOf, Suite, place,
    target,
};
use crate::patch::{self, NoPatch, PatchError};
use crate::read::decode::{Fields, FieldsError, known, wrong};
use crate::request::access::{ANSWER_FIELDS, AccessAnswers};
use crate::request::{GroupVersionKind, Operation, UserInfo};
use crate::set::builtins::{Builtins, StrategicError};
use crate::set::load::is_suite;

/// The fields of a suite.
pub const SUITE_FIELDS: &[&str] = &[
    "apiVersion",
    "kind",
    "documents",
    "defaults",
    "cases",
    "states",
    "accepted",
    "authentication",
    "authorization",
    "webhooks",
    "devices",
];
/// The fields of an item of `accepted`.
pub const ACCEPTED_FIELDS: &[&str] = &["policy", "family", "path", "reason"];
/// The fields of an item of `states`.
pub const STATES_FIELDS: &[&str] = &["name", "kind", "field", "state", "where", "as", "expect"];
/// The fields of a case, and of `defaults`.
pub const CASE_FIELDS: &[&str] = &[
    "name",
    "policies",
    "operation",
    "resource",
    "subresource",
    "namespace",
    "requestName",
    "object",
    "oldObject",
    "patch",
    "patchType",
    "options",
    "dryRun",
    "user",
    "groups",
    "params",
    "namespaces",
    "authorizer",
    "now",
    "expect",
];
/// The fields of `expect`.
pub const EXPECT_FIELDS: &[&str] =
    &["outcome", "message", "reason", "field", "annotations", "object", "idempotent"];

impl Suite {
    /// Whether `document` is a suite, by its `apiVersion` and `kind`.
    pub fn is(document: &Value) -> bool {
        is_suite(document)
    }

    /// Reads a suite that knows nothing of built-in kinds: their objects are patched like all others.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn decode(document: &Value) -> Result<Self, FieldsError> {
        Self::decode_knowing(document, None)
    }

    /// Parses a suite; `builtins` applies patches to its objects of built-in kinds.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn decode_knowing(document: &Value, builtins: Option<&dyn Builtins>) -> Result<Self, FieldsError> {
        let fields = Fields::of(document, "")?;
        let version = fields.string("apiVersion")?;
        if version != API_VERSION {
            return Err(wrong("apiVersion", format!("must be `{API_VERSION}`, not `{version}`")));
        }
        known(&fields, SUITE_FIELDS)?;
        let defaults = fields.object("defaults")?;
        known(&defaults, CASE_FIELDS)?;
        let cases: Vec<Case> = fields
            .objects("cases")?
            .iter()
            .map(|case| Layered { case, defaults: &defaults, builtins }.decode())
            .collect::<Result<_, _>>()?;
        let states: Vec<StatesCase> =
            fields.objects("states")?.iter().map(states).collect::<Result<_, _>>()?;
        let accepted: Vec<Accepted> =
            fields.objects("accepted")?.iter().map(accepted).collect::<Result<_, _>>()?;
        let sent = |case: &Fields<'_>| {
            let layered = Layered { case, defaults: &defaults, builtins };
            layered.decode_expecting(|_| Ok(Expectation::of(Outcome::Allow)))
        };
        let places = place::decode(&fields, &sent)?;
        if cases.is_empty() && states.is_empty() && accepted.is_empty() && places.is_empty() {
            return Err(wrong("cases", "must have at least one case"));
        }
        Ok(Self { documents: fields.strings("documents")?, cases, states, accepted, places })
    }
}

fn accepted(fields: &Fields<'_>) -> Result<Accepted, FieldsError> {
    known(fields, ACCEPTED_FIELDS)?;
    let must = |key: &str, why: &str| {
        let text = fields.string(key)?;
        if text.is_empty() { Err(wrong(fields.path_of(key), why)) } else { Ok(text) }
    };
    Ok(Accepted {
        policy: must("policy", "must be specified: the name of a policy")?,
        family: must("family", "must be specified, such as `operations`")?,
        path: must("path", "must be specified, as admit attack tells it")?,
        reason: must("reason", "must be specified: why it may get past the policy")?,
    })
}

fn states(fields: &Fields<'_>) -> Result<StatesCase, FieldsError> {
    known(fields, STATES_FIELDS)?;
    let must = |key: &str, why: &str| {
        let text = fields.string(key)?;
        if text.is_empty() { Err(wrong(fields.path_of(key), why)) } else { Ok(text) }
    };
    let expect = fields.strings("expect")?;
    if expect.is_empty() {
        return Err(wrong(fields.path_of("expect"), "must list transitions, such as `New -> Done`"));
    }
    let subject = match (fields.optional_string("field")?, fields.optional_string("state")?) {
        (Some(_), Some(_)) => {
            return Err(wrong(
                fields.path_of("state"),
                "must not stand beside `field`: one of them is drawn",
            ));
        }
        (None, Some(state)) if !state.trim().is_empty() => StatesOf::State(state),
        _ => StatesOf::Field(must(
            "field",
            "must be specified, such as `status.phase`; or `state`, an expression",
        )?),
    };
    Ok(StatesCase {
        name: must("name", "must be specified: results and --run tell cases by it")?,
        kind: fields.optional_string("kind")?,
        subject,
        only: fields.optional_string("where")?,
        users: fields.strings("as")?,
        expect,
    })
}

/// Why a patch cannot be applied to an object.
#[derive(Debug, Error)]
enum ChangeError {
    #[error(transparent)]
    NoPatch(#[from] NoPatch),
    #[error("operation {} at {}: {}", .0.operation, .0.path, .0.kind)]
    Patch(#[from] PatchError),
    /// A server's error about a strategic merge patch.
    #[error("{0}")]
    Strategic(#[from] StrategicError),
    #[error("{} {} is no built-in kind: only those have strategic merge patches", .0.api_version(), .0.kind)]
    NotBuiltin(GroupVersionKind),
    #[error("must be a map of what changes")]
    NoMap,
    #[error("must be a map of what changes, or a list of operations")]
    NoChanges,
    #[error("patchType `{0}` is not one of json, merge, strategic")]
    UnknownType(String),
}

/// Applies `changes` to `object`; the patch type is chosen as by `kubectl patch`: a list is a JSON patch, a map a strategic merge patch
/// if the kind is built in, else a merge patch.
fn patched(
    object: &Value,
    changes: &Value,
    patch_type: Option<&str>,
    builtins: Option<&dyn Builtins>,
) -> Result<Value, ChangeError> {
    let strategic = || {
        let made = builtins.and_then(|kinds| kinds.patched(object, changes));
        made.map(|made| made.map_err(ChangeError::from))
    };
    let merged = || {
        let mut object = object.clone();
        patch::merge(&mut object, changes);
        Ok(object)
    };
    match (patch_type, changes) {
        (None | Some("json"), Value::Array(_)) => {
            let mut object = object.clone();
            patch::apply_as_server(&mut object, &patch::decode(changes)?)?;
            Ok(object)
        }
        (None, Value::Object(_)) => strategic().unwrap_or_else(merged),
        (Some("merge"), Value::Object(_)) => merged(),
        (Some("strategic"), Value::Object(_)) => {
            strategic().unwrap_or_else(|| Err(ChangeError::NotBuiltin(GroupVersionKind::of(object))))
        }
        (Some("json"), _) => Err(NoPatch::NoList.into()),
        (Some("merge" | "strategic"), _) => Err(ChangeError::NoMap),
        (None, _) => Err(ChangeError::NoChanges),
        (Some(other), _) => Err(ChangeError::UnknownType(other.to_owned())),
    }
}

/// A case over the suite's defaults.
struct Layered<'a> {
    case: &'a Fields<'a>,
    defaults: &'a Fields<'a>,
    builtins: Option<&'a dyn Builtins>,
}

impl Layered<'_> {
    fn decode(&self) -> Result<Case, FieldsError> {
        self.decode_expecting(expectation)
    }

    fn decode_expecting(
        &self,
        expect: impl FnOnce(&Fields<'_>) -> Result<Expectation, FieldsError>,
    ) -> Result<Case, FieldsError> {
        known(self.case, CASE_FIELDS)?;
        let name = self.case.string("name")?;
        if name.is_empty() {
            return Err(wrong(
                self.case.path_of("name"),
                "must be specified: results and --run tell cases by it",
            ));
        }
        let old_object = self.merged("oldObject");
        let object = self.object(old_object.as_deref())?;
        if object.is_none() && old_object.is_none() {
            return Err(wrong(self.case.path(), "must have `object`, `oldObject` or both"));
        }
        Ok(Case {
            name,
            policies: self.of("policies").strings("policies")?,
            operation: self.operation(object.as_deref(), old_object.as_deref())?,
            resource: self.of("resource").optional_string("resource")?,
            subresource: self.of("subresource").string("subresource")?,
            namespace: self.of("namespace").optional_string("namespace")?,
            request_name: self.of("requestName").optional_string("requestName")?,
            object,
            old_object,
            options: self.of("options").get("options").cloned().map(Arc::new),
            dry_run: self.of("dryRun").bool("dryRun")?,
            user: self.user()?,
            existing: self.existing()?,
            access: self.access()?,
            now: self.now()?,
            expect: expect(self.case)?,
        })
    }

    /// Returns the layer that sets `key`.
    fn of(&self, key: &str) -> &Fields<'_> {
        if self.case.get(key).is_some() { self.case } else { self.defaults }
    }

    /// The default object, patched with the case's own.
    fn merged(&self, key: &str) -> Option<Arc<Value>> {
        let (default, own) = (self.defaults.get(key), self.case.get(key));
        let mut object = default.or(own)?.clone();
        if let (Some(_), Some(own)) = (default, own) {
            patch::merge(&mut object, own);
        }
        Some(Arc::new(object))
    }

    /// Returns the new object: the default one with the case's own merged over it, or the result of `patch` on the old one (on the
    /// default one, if there is no old one).
    fn object(&self, old: Option<&Value>) -> Result<Option<Arc<Value>>, FieldsError> {
        let fields = self.of("patch");
        let Some(changes) = fields.get("patch") else { return Ok(self.merged("object")) };
        let wrong = |problem: String| wrong(fields.path_of("patch"), problem);
        if self.case.get("object").is_some() {
            return Err(wrong("stands beside `object`: give the new object, or what changes".to_owned()));
        }
        let Some(base) = old.or(self.defaults.get("object")) else {
            return Err(wrong("needs an `oldObject` to change".to_owned()));
        };
        let patch_type = self.of("patchType").optional_string("patchType")?;
        patched(base, changes, patch_type.as_deref(), self.builtins)
            .map(|made| Some(Arc::new(made)))
            .map_err(|error| wrong(error.to_string()))
    }

    /// Returns the operation: the given one, else the one that the objects imply.
    fn operation(
        &self,
        object: Option<&Value>,
        old_object: Option<&Value>,
    ) -> Result<Operation, FieldsError> {
        let fields = self.of("operation");
        match fields.optional_string("operation")? {
            Some(name) => name.parse().map_err(|_| {
                let problem = format!("`{name}` is not one of CREATE, UPDATE, DELETE, CONNECT");
                wrong(fields.path_of("operation"), problem)
            }),
            None => Ok(match (object, old_object) {
                (Some(object), None) => {
                    target::operation(&GroupVersionKind::of(object)).unwrap_or(Operation::Create)
                }
                (None, None) => Operation::Create,
                (Some(_), Some(_)) => Operation::Update,
                (None, Some(_)) => Operation::Delete,
            }),
        }
    }

    fn user(&self) -> Result<UserInfo, FieldsError> {
        let fields = self.of("user");
        let mut user = match fields.get("user") {
            None => UserInfo { username: "admin".to_owned(), ..UserInfo::default() },
            Some(Value::String(name)) => UserInfo { username: name.clone(), ..UserInfo::default() },
            Some(_) => UserInfo::decode(&fields.object("user")?)?,
        };
        user.groups.extend(self.of("groups").strings("groups")?);
        Ok(user)
    }

    fn access(&self) -> Result<Option<Arc<AccessAnswers>>, FieldsError> {
        let fields = self.of("authorizer");
        if fields.get("authorizer").is_none() {
            return Ok(None);
        }
        let answers = fields.objects("authorizer")?;
        for answer in &answers {
            known(answer, ANSWER_FIELDS)?;
        }
        Ok(Some(Arc::new(AccessAnswers::decode(&answers)?)))
    }

    fn now(&self) -> Result<Option<SystemTime>, FieldsError> {
        let fields = self.of("now");
        let Some(text) = fields.optional_string("now")? else { return Ok(None) };
        let time: Timestamp = text.parse().map_err(|_| {
            wrong(fields.path_of("now"), format!("`{text}` must be a time such as 2026-12-31T12:00:00Z"))
        })?;
        Ok(Some(time.into()))
    }

    fn existing(&self) -> Result<Vec<Arc<Value>>, FieldsError> {
        let mut existing = Vec::new();
        for key in ["params", "namespaces"] {
            for (path, item) in self.of(key).list(key)? {
                Fields::of(item, &path)?;
                existing.push(Arc::new(item.clone()));
            }
        }
        Ok(existing)
    }
}

fn expectation(case: &Fields<'_>) -> Result<Expectation, FieldsError> {
    let Some(Value::String(word)) = case.get("expect") else {
        let fields = case.object("expect")?;
        known(&fields, EXPECT_FIELDS)?;
        return Ok(Expectation {
            outcome: outcome(&fields.path_of("outcome"), &fields.string("outcome")?)?,
            message: text(&fields, "message")?,
            reason: reason(&fields)?,
            field: fields.optional_string("field")?,
            annotations: fields.string_map("annotations")?,
            object: expected_object(&fields)?,
            idempotent: fields.bool("idempotent")?,
        });
    };
    outcome(&case.path_of("expect"), word).map(Expectation::of)
}

fn expected_object(fields: &Fields<'_>) -> Result<Option<Value>, FieldsError> {
    match fields.get("object") {
        None => Ok(None),
        Some(object @ Value::Object(_)) => Ok(Some(object.clone())),
        Some(_) => Err(wrong(fields.path_of("object"), "must be a map of what the object has then")),
    }
}

fn outcome(path: &str, word: &str) -> Result<Outcome, FieldsError> {
    const NAMES: &str = "allow, deny, warn, audit, unmatched, error";
    let problem = || match word {
        "" => format!("must be specified: one of {NAMES}"),
        other => format!("`{other}` is not one of {NAMES}"),
    };
    Outcome::from_name(word).ok_or_else(|| wrong(path, problem()))
}

fn reason(fields: &Fields<'_>) -> Result<Option<ExpectedReason>, FieldsError> {
    let Some(name) = fields.optional_string("reason")? else { return Ok(None) };
    match ExpectedReason::from_name(&name) {
        Some(reason) => Ok(Some(reason)),
        None => {
            let names = "Invalid, Forbidden, Unauthorized, RequestEntityTooLarge, nor a cause such as \
                         FieldValueForbidden";
            Err(wrong(fields.path_of("reason"), format!("`{name}` is not one of {names}")))
        }
    }
}
