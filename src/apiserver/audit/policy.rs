//! Parses and evaluates the policy of an audit log, `audit.k8s.io/v1` `Policy`: which requests are written, at which level and
//! stages. The first rule that a request matches decides; a request that matches none is not written.

mod rule;

use std::collections::BTreeMap;

use admit_apimachinery::yaml::{self, Position, YamlError};
use admit_policy::AccessAttributes;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Value, json};
use thiserror::Error;

use self::rule::Rule;
use crate::identity::Identity;

/// The audit level: how much of a request is written.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Level {
    None,
    Metadata,
    Request,
    RequestResponse,
}

impl Level {
    const ALL: [Self; 4] = [Self::None, Self::Metadata, Self::Request, Self::RequestResponse];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }
}

/// The audit stage at which an event is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stage {
    RequestReceived,
    ResponseStarted,
    ResponseComplete,
    Panic,
}

impl Stage {
    const ALL: [Self; 4] =
        [Self::RequestReceived, Self::ResponseStarted, Self::ResponseComplete, Self::Panic];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
            Self::Panic => "Panic",
        }
    }
}

/// The decision of a policy about a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recorded {
    pub(crate) level: Level,
    pub(crate) omits_managed_fields: bool,
    /// Whether each stage is omitted, in the order of [`Stage::ALL`].
    omitted: [bool; 4],
}

impl Recorded {
    pub(crate) fn at(&self, stage: Stage) -> bool {
        let omitted = Stage::ALL.iter().zip(self.omitted).any(|(known, omitted)| omitted && *known == stage);
        self.level != Level::None && !omitted
    }
}

/// Decides which requests an audit log holds, and how much of them: an `audit.k8s.io/v1` `Policy`.
///
/// ```
/// use admit_apiserver::AuditPolicy;
///
/// let policy = "
/// apiVersion: audit.k8s.io/v1
/// kind: Policy
/// omitStages: [RequestReceived]
/// rules:
/// - level: None
///   users: [system:kube-proxy]
///   verbs: [watch]
/// - level: Metadata
/// ";
/// assert!(AuditPolicy::parse(policy).is_ok());
/// let error = AuditPolicy::parse(&policy.replace("Metadata", "Everything")).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"9:3: rules[1].level: "Everything" is none of None, Metadata, Request, RequestResponse"#
/// );
/// ```
#[derive(Clone, Debug)]
pub struct AuditPolicy {
    rules: Vec<(Rule, Recorded)>,
    unknown: Vec<(Position, String)>,
}

/// Says why a text is not a valid policy, and where.
#[derive(Debug, Error)]
#[error("{}:{}: {kind}", position.line, position.column)]
pub struct AuditPolicyError {
    pub position: Position,
    pub kind: AuditPolicyErrorKind,
}

/// Says what is wrong with a policy.
#[derive(Debug, Error)]
pub enum AuditPolicyErrorKind {
    #[error("{0}")]
    Yaml(String),
    #[error("it is no audit policy: {0}")]
    Document(serde_json::Error),
    /// The field has the wrong type.
    #[error("{field}: {error}")]
    Type { field: String, error: serde_json::Error },
    #[error("it is a `{kind}` of `{api_version}`; a `Policy` of `audit.k8s.io/v1` is wanted")]
    Kind { kind: String, api_version: String },
    #[error("it has no rules")]
    NoRules,
    /// The field has an invalid value.
    #[error("{field}: {problem}")]
    Field { field: String, problem: String },
}

impl AuditPolicy {
    /// Parses a policy in YAML or JSON.
    ///
    /// # Errors
    /// If the text is not a policy, or a field is invalid.
    pub fn parse(text: &str) -> Result<Self, AuditPolicyError> {
        let trees = yaml::parse(text).map_err(|YamlError { position, message, .. }| AuditPolicyError {
            position,
            kind: AuditPolicyErrorKind::Yaml(message),
        })?;
        let first = trees.into_iter().next();
        let (value, positions) = first.map(|tree| (tree.value, tree.positions)).unwrap_or_default();
        Self::read(&value, |field| positions.find(field))
            .map_err(|kind| AuditPolicyError { position: positions.find(kind.field()), kind })
    }

    fn read(document: &Value, at: impl Fn(&str) -> Position) -> Result<Self, AuditPolicyErrorKind> {
        let document: Document = decoded("", document)?;
        if document.kind != "Policy" || document.api_version != "audit.k8s.io/v1" {
            let Document { kind, api_version, .. } = document;
            return Err(AuditPolicyErrorKind::Kind { kind, api_version });
        }
        let unknown = document.other.into_keys().filter(|name| name != "metadata");
        let mut unknown: Vec<_> = unknown.map(|name| (at(&name), name)).collect();
        let everywhere = stages("omitStages", &document.omit_stages)?;
        let mut rules = Vec::with_capacity(document.rules.len());
        for (index, rule) in document.rules.iter().enumerate() {
            let path = format!("rules[{index}]");
            let rule: Rule = decoded(&path, rule)?;
            unknown
                .extend(rule.other.keys().map(|name| format!("{path}.{name}")).map(|path| (at(&path), path)));
            let level = rule.check(&path)?;
            let mut omitted = stages(&format!("{path}.omitStages"), &rule.omit_stages)?;
            omitted.iter_mut().zip(everywhere).for_each(|(omitted, everywhere)| *omitted |= everywhere);
            let omits_managed_fields = rule.omit_managed_fields.unwrap_or(document.omit_managed_fields);
            rules.push((rule, Recorded { level, omits_managed_fields, omitted }));
        }
        if rules.is_empty() { Err(AuditPolicyErrorKind::NoRules) } else { Ok(Self { rules, unknown }) }
    }

    /// Returns unknown fields of the text, each with its position: they are ignored, and most likely a mistake.
    ///
    /// ```
    /// let text = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: None\n  verb: [get]\n";
    /// let policy = admit_apiserver::AuditPolicy::parse(text).unwrap();
    /// let [(position, field)] = policy.unknown_fields() else { panic!("one") };
    /// assert_eq!((position.line, field.as_str()), (5, "rules[0].verb"));
    /// ```
    #[must_use]
    pub fn unknown_fields(&self) -> &[(Position, String)] {
        &self.unknown
    }

    /// Returns what is written of a request; None if no rule matches.
    pub(crate) fn recorded(
        &self,
        attributes: &AccessAttributes,
        user: Option<&Identity>,
    ) -> Option<Recorded> {
        let matching = self.rules.iter().find(|(rule, _)| rule.matches(attributes, user));
        matching.map(|(_, recorded)| *recorded).filter(|recorded| recorded.level != Level::None)
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default, deserialize_with = "or_default")]
    rules: Vec<Value>,
    #[serde(default, deserialize_with = "or_default")]
    omit_stages: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    omit_managed_fields: bool,
    #[serde(flatten)]
    other: BTreeMap<String, Value>,
}

/// Deserializes `null` as the default.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// Deserializes the value at `path`. Every field has a default, so a field that fails to deserialize alone is the wrong one.
fn decoded<T: DeserializeOwned>(path: &str, value: &Value) -> Result<T, AuditPolicyErrorKind> {
    T::deserialize(value).map_err(|error| {
        let wrong = value.as_object().into_iter().flatten().find_map(|(name, member)| {
            let error = T::deserialize(json!({name: member})).err()?;
            let field = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            Some(AuditPolicyErrorKind::Type { field, error })
        });
        wrong.unwrap_or_else(|| match path {
            "" => AuditPolicyErrorKind::Document(error),
            path => AuditPolicyErrorKind::Type { field: path.to_owned(), error },
        })
    })
}

impl AuditPolicyErrorKind {
    /// Returns the wrong field; empty for the whole document.
    fn field(&self) -> &str {
        match self {
            Self::Type { field, .. } | Self::Field { field, .. } => field,
            Self::Kind { .. } => "kind",
            Self::NoRules => "rules",
            Self::Yaml(_) | Self::Document(_) => "",
        }
    }
}

fn wrong(field: String, problem: impl Into<String>) -> AuditPolicyErrorKind {
    AuditPolicyErrorKind::Field { field, problem: problem.into() }
}

fn stages(field: &str, named: &[String]) -> Result<[bool; 4], AuditPolicyErrorKind> {
    let known = Stage::ALL.map(Stage::name);
    if let Some((index, name)) = named.iter().enumerate().find(|(_, name)| !known.contains(&name.as_str())) {
        let problem = format!("{name:?} is none of {}", known.join(", "));
        return Err(wrong(format!("{field}[{index}]"), problem));
    }
    Ok(known.map(|stage| named.iter().any(|name| name == stage)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(rule: &str) -> Result<AuditPolicy, AuditPolicyError> {
        AuditPolicy::parse(&format!(
            "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {{level: Request, {rule}}}\n"
        ))
    }

    fn of(group: &str, resource: &str, namespace: &str, name: &str) -> AccessAttributes {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        AccessAttributes::Resource {
            verb: "get".to_owned(),
            group: group.to_owned(),
            version: "v1".to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            field_selector: String::new(),
            label_selector: String::new(),
        }
    }

    #[test]
    fn rules_match_as_kube_apiservers_do() {
        let path = |path: &str| AccessAttributes::Path { verb: "get".to_owned(), path: path.to_owned() };
        let ann = Identity::new("ann", ["devs".to_owned()]);
        let pod = of("", "pods", "a", "p");
        let log = of("", "pods/log", "a", "p");
        let node = of("", "nodes", "", "n");
        let rows = [
            ("", &pod, true),
            ("", &path("/version"), true),
            ("users: [ann]", &pod, true),
            ("users: [bob]", &pod, false),
            ("userGroups: [devs], verbs: [get]", &pod, true),
            ("userGroups: [ops]", &pod, false),
            ("verbs: [list], namespaces: null", &pod, false),
            ("namespaces: [a]", &pod, true),
            ("namespaces: ['']", &node, true),
            ("namespaces: ['']", &pod, false),
            ("namespaces: ['']", &path("/version"), false),
            ("resources: [{group: ''}]", &log, true),
            ("resources: [{group: apps}]", &log, false),
            ("resources: [{group: '*', resources: ['*']}]", &log, true),
            ("resources: [{resources: [pods]}]", &pod, true),
            ("resources: [{resources: [pods]}]", &log, false),
            ("resources: [{resources: [pods/log]}]", &log, true),
            ("resources: [{resources: ['*/log']}]", &log, true),
            ("resources: [{resources: ['*/log']}]", &pod, false),
            ("resources: [{resources: ['pods/*']}]", &log, true),
            ("resources: [{resources: ['pods/*']}]", &pod, true),
            ("resources: [{resources: [pods], resourceNames: [p]}]", &pod, true),
            ("resources: [{resources: [pods], resourceNames: [q]}]", &pod, false),
            ("resources: [{resources: [pods]}]", &path("/version"), false),
            ("nonResourceURLs: ['*']", &path("/version"), true),
            ("nonResourceURLs: ['*']", &pod, false),
            ("nonResourceURLs: [/healthz*]", &path("/healthz/ping"), true),
            ("nonResourceURLs: [/healthz]", &path("/healthz/ping"), false),
        ];
        for (rule, attributes, matches) in rows {
            let recorded = policy(rule).unwrap().recorded(attributes, Some(&ann));
            assert_eq!(recorded.is_some(), matches, "{rule} {attributes:?}");
        }
        assert!(policy("users: [ann]").unwrap().recorded(&pod, None).is_none());
        assert!(policy("").unwrap().recorded(&pod, None).is_some());
    }

    #[test]
    fn what_cannot_be_is_named_by_its_field() {
        for (rule, message) in [
            (
                "nonResourceURLs: [healthz]",
                "4:38: rules[0].nonResourceURLs[0]: \"healthz\" has to begin with `/`",
            ),
            (
                "nonResourceURLs: ['/a*b*']",
                "4:38: rules[0].nonResourceURLs[0]: \"/a*b*\" may have `*` at its end only",
            ),
            (
                "omitStages: [Received]",
                "4:33: rules[0].omitStages[0]: \"Received\" is none of RequestReceived,",
            ),
            (
                "resources: [{group: apps/v1}]",
                "4:33: rules[0].resources[0].group: \"apps/v1\" is no API group",
            ),
            (
                "resources: [{resourceNames: [a]}]",
                "4:33: rules[0].resources[0].resourceNames: names of objects",
            ),
            (
                "nonResourceURLs: [/a], namespaces: [b]",
                "4:20: rules[0].nonResourceURLs: a rule is about resources",
            ),
            ("users: ann", "4:20: rules[0].users: invalid type: string \"ann\", expected a sequence"),
            ("namespaces: [a, 1]", "4:20: rules[0].namespaces: invalid type: integer `1`, expected a string"),
        ] {
            let error = policy(rule).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        for (text, message) in [
            ("", "1:1: it is no audit policy: "),
            ("kind: Policy\nrules: 1\n", "2:1: rules: invalid type: integer `1`, expected a sequence"),
            (
                "kind: Policy\napiVersion: audit.k8s.io/v1\nrules:\n- {}\n- 1\n",
                "4:3: rules[0].level: \"\" is none of",
            ),
            (
                "kind: Policy\napiVersion: audit.k8s.io/v1\nrules:\n- level: None\n- 1\n",
                "5:3: rules[1]: invalid type",
            ),
            ("a: [", "1:4: not YAML: "),
            (
                "{kind: Policy, apiVersion: audit.k8s.io/v1beta1}",
                "1:2: it is a `Policy` of `audit.k8s.io/v1beta1`",
            ),
            ("{kind: Policy, apiVersion: audit.k8s.io/v1}", "1:1: it has no rules"),
            ("kind: Policy\napiVersion: audit.k8s.io/v1\nrules: []\n", "3:1: it has no rules"),
        ] {
            let error = AuditPolicy::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn a_rule_omits_what_all_omit_and_more() {
        let text = "{kind: Policy, apiVersion: audit.k8s.io/v1, omitStages: [RequestReceived], omitManagedFields: true, \
                    rules: [{level: Metadata, users: [ann], omitStages: [ResponseStarted], omitManagedFields: false}, \
                    {level: None, users: [bob]}, {level: RequestResponse}]}";
        let policy = AuditPolicy::parse(text).unwrap();
        let by = |name: &str| policy.recorded(&of("", "pods", "a", "p"), Some(&Identity::new(name, [])));
        let (ann, eve) = (by("ann").unwrap(), by("eve").unwrap());
        assert_eq!(Stage::ALL.map(|stage| ann.at(stage)), [false, false, true, true]);
        assert_eq!(Stage::ALL.map(|stage| eve.at(stage)), [false, true, true, true]);
        assert_eq!((ann.level, eve.level), (Level::Metadata, Level::RequestResponse));
        assert!(!ann.omits_managed_fields && eve.omits_managed_fields && by("bob").is_none());
    }
}
