//! Lists which authorizers an API server consults for a SubjectAccessReview under an AuthorizationConfiguration, in order, as far as
//! that is known without consulting any of them.
//!
//! Read from plugin/pkg/authorizer/webhook and pkg/authorization/cel of k8s.io/apiserver 1.36.

use admit_apimachinery::field_error::{FieldError, together};
use admit_cel::{Node, Value};
use bumpalo::Bump;
use serde_json::Value as Json;

use super::expressions::{About, Compiled, Yields};
use super::review::AccessReview;
use crate::read::decode::{DecodeError, Fields};
use crate::report::options::EvalOptions;
use crate::report::recording::Expression;
use crate::schema::metadata::configuration;

/// The authorizers of an AuthorizationConfiguration.
///
/// ```
/// use admit_policy::EvalOptions;
/// use admit_policy::server_config::{AccessReview, Asked, Authorizers};
/// use serde_json::json;
///
/// let configuration = json!({
///     "apiVersion": "apiserver.config.k8s.io/v1",
///     "kind": "AuthorizationConfiguration",
///     "authorizers": [
///         {"type": "Webhook", "name": "ours", "webhook": {
///             "timeout": "3s", "subjectAccessReviewVersion": "v1", "matchConditionSubjectAccessReviewVersion": "v1",
///             "failurePolicy": "Deny", "connectionInfo": {"type": "InClusterConfig"},
///             "matchConditions": [{"expression": "request.resourceAttributes.namespace == 'shop'"}],
///         }},
///         {"type": "RBAC", "name": "rbac"},
///     ],
/// });
/// let authorizers = Authorizers::compile(&configuration).unwrap();
/// assert_eq!(authorizers.expressions().len(), 1);
/// let ask = |spec| {
///     let review = AccessReview::read(&spec).unwrap();
///     let turns = authorizers.ask(&review, EvalOptions::default());
///     turns.into_iter().map(|turn| turn.asked).collect::<Vec<_>>()
/// };
/// let list = json!({"user": "ann", "resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "demo"}});
/// assert_eq!(ask(list), [Asked::Skipped, Asked::Called]);
/// let path = json!({"user": "ann", "nonResourceAttributes": {"verb": "get", "path": "/healthz"}});
/// let Some(Asked::Denied(why)) = ask(path).into_iter().next() else { panic!("is not denied") };
/// assert!(why.ends_with("no such key: resourceAttributes"), "{why}");
/// ```
#[derive(Debug)]
pub struct Authorizers(Vec<Authorizer>);

#[derive(Debug)]
struct Authorizer {
    name: String,
    kind: String,
    denies_on_error: bool,
    conditions: Vec<Compiled>,
}

/// What happens to one authorizer. [`Authorizers`] has an example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    pub name: String,
    /// The type, such as `Webhook` or `RBAC`.
    pub kind: String,
    pub asked: Asked,
}

/// Whether an authorizer is consulted.
///
/// ```
/// use admit_policy::server_config::Asked;
///
/// let failed = Asked::Failed("no such key: name".to_owned());
/// assert_eq!((failed.as_str(), failed.error()), ("failed", Some("no such key: name")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It is; where it has no opinion, so are those after it.
    Called,
    /// It allows everything.
    Allowed,
    /// A match condition does not hold.
    Skipped,
    /// A match condition fails and the authorizer is skipped: `failurePolicy` is `NoOpinion`.
    Failed(String),
    /// A match condition has no value, and the request is denied: `failurePolicy` is `Deny`.
    Denied(String),
    /// An earlier one decided.
    NotReached,
}

impl Asked {
    /// The word that suites have for it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Called => "called",
            Self::Allowed => "allowed",
            Self::Skipped => "skipped",
            Self::Failed(_) => "failed",
            Self::Denied(_) => "denied",
            Self::NotReached => "not reached",
        }
    }

    /// Returns the server's error message if a condition fails.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Failed(error) | Self::Denied(error) => Some(error),
            Self::Called | Self::Allowed | Self::Skipped | Self::NotReached => None,
        }
    }
}

impl Authorizers {
    /// Compiles a configuration.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn compile(document: &Json) -> Result<Self, Vec<FieldError>> {
        let problems = super::problems(super::AUTHORIZATION, document);
        if !problems.is_empty() {
            return Err(problems);
        }
        let read = || Fields::of(document, "")?.objects("authorizers");
        let authorizers = read().map_err(|error| vec![configuration::wrong_type(&error)])?;
        authorizers.iter().map(Authorizer::read).collect::<Result<_, _>>().map(Self)
    }

    /// Every expression, in the order of the document.
    #[must_use]
    pub fn expressions(&self) -> Vec<Expression<'_>> {
        self.0.iter().flat_map(|authorizer| &authorizer.conditions).map(Compiled::listed).collect()
    }

    /// Returns what happens to each authorizer, in order.
    #[must_use]
    pub fn ask(&self, review: &AccessReview, options: EvalOptions<'_>) -> Vec<Turn> {
        let mut is_decided = false;
        let turn = |authorizer: &Authorizer| {
            let asked = if is_decided { Asked::NotReached } else { authorizer.asked(review, options) };
            is_decided |= matches!(asked, Asked::Allowed | Asked::Denied(_));
            Turn { name: authorizer.name.clone(), kind: authorizer.kind.clone(), asked }
        };
        self.0.iter().map(turn).collect()
    }
}

impl Authorizer {
    fn read(fields: &Fields<'_>) -> Result<Self, Vec<FieldError>> {
        let text = |fields: &Fields<'_>, key: &str| fields.string(key).map_err(|error| wrong_type(&error));
        let webhook = fields.object("webhook").map_err(|error| wrong_type(&error))?;
        let mut conditions = Vec::new();
        for condition in webhook.objects("matchConditions").map_err(|error| wrong_type(&error))? {
            let (written, at) = (text(&condition, "expression")?, condition.path_of("expression"));
            let compiled =
                About::Request.compile(Yields::Truth, &written, &at).map_err(|error| vec![*error])?;
            conditions.push(compiled.0);
        }
        Ok(Self {
            name: text(fields, "name")?,
            kind: text(fields, "type")?,
            denies_on_error: text(&webhook, "failurePolicy")? == "Deny",
            conditions,
        })
    }

    fn asked(&self, review: &AccessReview, options: EvalOptions<'_>) -> Asked {
        if self.kind == "AlwaysAllow" {
            return Asked::Allowed;
        }
        let arena = Bump::new();
        let request = Value::untyped(Node::from_json(review.request()));
        let mut errors = Vec::new();
        for condition in &self.conditions {
            let failed =
                |why: String| format!("cel evaluation error: expression '{}' {why}", condition.text());
            match condition.eval(request, &arena, options) {
                Ok(Value::Bool(true)) => {}
                // Whatever failed before it.
                Ok(Value::Bool(false)) => return Asked::Skipped,
                Ok(_) => errors.push(failed("eval result type should be bool".to_owned())),
                Err(error) => errors.push(failed(format!("resulted in error: {error}"))),
            }
        }
        match (together(errors.into_iter()), self.denies_on_error) {
            (none, _) if none.is_empty() => Asked::Called,
            (error, true) => Asked::Denied(error),
            (error, false) => Asked::Failed(error),
        }
    }
}

fn wrong_type(error: &DecodeError) -> Vec<FieldError> {
    vec![configuration::wrong_type(error)]
}
