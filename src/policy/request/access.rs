//! Answers authorization checks from a predefined list, for test suites and checks without a cluster.

use serde_json::{Value, json};

use crate::read::decode::{DecodeError, Fields, FieldsError, known};
use crate::request::UserInfo;
use crate::request::host::{Access, AccessAttributes};

/// The fields of one answer. Fields of the request are compared as strings; omitted ones match everything.
pub const ANSWER_FIELDS: &[&str] = &[
    "user",
    "path",
    "verb",
    "group",
    "version",
    "resource",
    "subresource",
    "namespace",
    "name",
    "fieldSelector",
    "labelSelector",
    "allowed",
    "reason",
];

/// A list of answers, the first that fits the question counts. What none fits is not allowed, as by an authorizer
/// that has no opinion.
///
/// ```
/// use admit_policy::{AccessAnswers, AccessAttributes, UserInfo};
/// use serde_json::json;
///
/// let answers = AccessAnswers::read(&json!([{"verb": "get", "path": "/healthz", "allowed": true}]))?;
/// let get = |path: &str| AccessAttributes::Path { verb: "get".to_owned(), path: path.to_owned() };
/// assert!(answers.answer(&UserInfo::default(), &get("/healthz")).allowed);
/// assert!(!answers.answer(&UserInfo::default(), &get("/metrics")).allowed);
/// # Ok::<(), admit_policy::FieldsError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessAnswers {
    rules: Vec<AccessAnswer>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct AccessAnswer {
    /// Fields of the question, by name.
    conditions: Vec<(String, String)>,
    access: Access,
}

impl AccessAnswers {
    /// Reads a list of answers, as suites have it under `authorizer`.
    ///
    /// # Errors
    /// The first field that is wrong.
    pub fn read(list: &Value) -> Result<Self, FieldsError> {
        let document = json!({"authorizer": list});
        let answers = Fields::of(&document, "")?.objects("authorizer")?;
        for answer in &answers {
            known(answer, ANSWER_FIELDS)?;
        }
        Ok(Self::decode(&answers)?)
    }

    /// Parses a list of answers; the caller rejects unknown fields.
    pub(crate) fn decode(items: &[Fields<'_>]) -> Result<Self, DecodeError> {
        let rule = |fields: &Fields<'_>| {
            let asked = fields.keys().filter(|key| !matches!(key.as_str(), "allowed" | "reason"));
            Ok(AccessAnswer {
                conditions: asked
                    .map(|key| Ok((key.clone(), fields.string(key)?)))
                    .collect::<Result<_, _>>()?,
                access: Access { allowed: fields.bool("allowed")?, reason: fields.string("reason")? },
            })
        };
        Ok(Self { rules: items.iter().map(rule).collect::<Result<_, _>>()? })
    }

    /// Whether `user` may do what `attributes` say.
    #[must_use]
    pub fn answer(&self, user: &UserInfo, attributes: &AccessAttributes) -> Access {
        let question = question(user, attributes);
        let fits = |rule: &&AccessAnswer| {
            rule.conditions.iter().all(|(key, value)| {
                question.iter().any(|(asked, answer)| asked == key && *answer == value.as_str())
            })
        };
        match self.rules.iter().find(fits) {
            Some(rule) => rule.access.clone(),
            None => Access { allowed: false, reason: String::new() },
        }
    }
}

/// Returns the attributes of the request, in the order of [`ANSWER_FIELDS`].
fn question<'q>(user: &'q UserInfo, attributes: &'q AccessAttributes) -> Vec<(&'static str, &'q str)> {
    let mut asked = vec![("user", user.username.as_str())];
    match attributes {
        AccessAttributes::Path { verb, path } => asked.extend([("verb", verb.as_str()), ("path", path)]),
        AccessAttributes::Resource {
            verb,
            group,
            version,
            resource,
            subresource,
            namespace,
            name,
            field_selector,
            label_selector,
        } => asked.extend([
            ("verb", verb.as_str()),
            ("group", group),
            ("version", version),
            ("resource", resource),
            ("subresource", subresource),
            ("namespace", namespace),
            ("name", name),
            ("fieldSelector", field_selector),
            ("labelSelector", label_selector),
        ]),
    }
    asked
}
