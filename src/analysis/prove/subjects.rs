//! Finds the kinds that rules are about: the served versions of a definition, or the resources that a policy's match constraints name.

use admit_policy::Builtins;
use admit_policy::matching::is_exempt;
use serde_json::{Value, json};

use super::subject::{SideError, Subject};

/// The kinds that rules are about.
///
/// ```
/// use admit_analysis::prove::Kinds;
/// use serde_json::json;
///
/// let policy = json!({
///     "kind": "ValidatingAdmissionPolicy",
///     "spec": {"matchConstraints": {"resourceRules": [
///         {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["cats"]},
///     ]}},
/// });
/// let kinds = Kinds::of(&policy, &[], None).unwrap();
/// assert!(kinds.subjects.is_empty());
/// assert_eq!(kinds.unknown, ["cats.example.com"]);
/// ```
#[derive(Debug, Default)]
pub struct Kinds {
    /// The kinds whose schema is known.
    pub subjects: Vec<Subject>,
    /// Resources that neither a definition nor the server knows, as `RESOURCE.GROUP`.
    pub unknown: Vec<String>,
}

/// A definition that cannot be used, and why.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct KindsError {
    /// Its index.
    pub definition: usize,
    /// The reason.
    pub error: SideError,
}

impl Kinds {
    /// Finds the kinds of a policy: those of `definitions`, and built-in ones if a catalogue of them is given. Policies never apply to
    /// policies.
    ///
    /// # Errors
    /// For a definition that a server rejects.
    pub fn of(
        policy: &Value,
        definitions: &[&Value],
        builtins: Option<&'static dyn Builtins>,
    ) -> Result<Self, KindsError> {
        let mut kinds = Self::default();
        let rules = policy.pointer("/spec/matchConstraints/resourceRules").and_then(Value::as_array);
        for rule in rules.into_iter().flatten() {
            let groups: Vec<&str> = texts(rule, "apiGroups").collect();
            for resource in texts(rule, "resources") {
                for group in &groups {
                    kinds.add(Named { rule, group, resource }, definitions, builtins)?;
                }
            }
        }
        Ok(kinds)
    }

    /// Returns the kind of each served version of a definition.
    ///
    /// # Errors
    /// If a server rejects the definition.
    pub fn declared(definition: &Value) -> Result<Vec<Subject>, SideError> {
        served(definition).map(|version| Subject::new(definition, Some(version))).collect()
    }

    fn add(
        &mut self,
        named: Named<'_>,
        definitions: &[&Value],
        builtins: Option<&'static dyn Builtins>,
    ) -> Result<(), KindsError> {
        let mut is_known = false;
        for (index, definition) in definitions.iter().enumerate() {
            if !named.is_declared(definition) {
                continue;
            }
            is_known = true;
            let declared = Self::declared(definition);
            for subject in declared.map_err(|error| KindsError { definition: index, error })? {
                self.push(subject);
            }
        }
        let catalogue = builtins.and_then(Builtins::catalogue);
        for served in catalogue.into_iter().flat_map(|catalogue| &catalogue.kinds) {
            if !named.is(&served.kind.group, Some(&served.kind.version), &served.plural) {
                continue;
            }
            is_known = true;
            if !is_exempt(&served.kind) {
                builtins
                    .and_then(|builtins| Subject::builtin(builtins, &served.kind))
                    .into_iter()
                    .for_each(|subject| self.push(subject));
            }
        }
        let unknown = named.text();
        if !is_known && !self.unknown.contains(&unknown) {
            self.unknown.push(unknown);
        }
        Ok(())
    }

    fn push(&mut self, subject: Subject) {
        if !self.subjects.iter().any(|known| known.kind() == subject.kind()) {
            self.subjects.push(subject);
        }
    }
}

/// One group and resource of a match rule.
#[derive(Clone, Copy)]
struct Named<'r> {
    rule: &'r Value,
    group: &'r str,
    resource: &'r str,
}

impl Named<'_> {
    fn plural(&self) -> &str {
        self.resource.split('/').next().unwrap_or_default()
    }

    fn is(&self, group: &str, version: Option<&str>, plural: &str) -> bool {
        let is_version = |asked: &str| asked == "*" || version.is_none_or(|version| version == asked);
        (self.group == "*" || self.group == group)
            && (self.plural() == "*" || self.plural() == plural)
            && texts(self.rule, "apiVersions").any(is_version)
    }

    /// Reports whether it is the kind of a definition, all of whose served versions are used.
    fn is_declared(&self, definition: &Value) -> bool {
        let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        self.is(text("/spec/group"), None, text("/spec/names/plural"))
    }

    fn text(&self) -> String {
        if self.group.is_empty() {
            self.plural().to_owned()
        } else {
            format!("{}.{}", self.plural(), self.group)
        }
    }
}

/// Returns the strings of a list in a match rule.
pub(super) fn texts<'r>(rule: &'r Value, list: &str) -> impl Iterator<Item = &'r str> {
    rule.get(list).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Returns the names of the served versions.
fn served(definition: &Value) -> impl Iterator<Item = &str> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let served = versions.into_iter().flatten().filter(|version| version.get("served") == Some(&json!(true)));
    served.filter_map(|version| version.get("name").and_then(Value::as_str))
}
