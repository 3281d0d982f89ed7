//! Holds one of the compared rule sets, from a version of a CustomResourceDefinition or from a policy for one kind, and asks the engine
//! for its verdict on a request.

use std::sync::Arc;

use admit_cel::Checked;
use admit_cel::syntax::Ast;
use admit_policy::crd::CompiledCrd;
use admit_policy::crd::rules::{Limits, Recorder, RuleEnv, RuleTree, Subject as RuleSubject, decl_type};
use admit_policy::manifest::{Document, LoadError};
use admit_policy::schema::{Rule, Schema};
use admit_policy::{
    ExpressionId, Keep, LoadOptions, Origin, Path, PolicySet, Recording, Skipped, Verdict, with_system_fields,
};
use serde_json::{Value, json};

use super::matched::Matched;
use super::stable::env_of_policies;
use super::subject::{SideError, Subject, compiled};
use super::{Said, Undecided, undecided};

/// One of the compared rule sets.
#[derive(Debug)]
pub struct Side {
    pub(super) rules: Rules,
}

#[derive(Debug)]
pub(super) enum Rules {
    Definition(Box<DefinitionRules>),
    Policy(Box<PolicyRules>),
}

#[derive(Debug)]
pub(super) struct DefinitionRules {
    pub(super) schema: Schema,
    /// The compiled definition; `None` for an assumption.
    pub(super) crd: Option<Arc<CompiledCrd>>,
    tree: RuleTree,
    /// Path of the schema in the definition.
    pub(super) place: String,
}

#[derive(Debug)]
pub(super) struct PolicyRules {
    set: PolicySet,
    pub(super) variables: Vec<Clause>,
    pub(super) conditions: Vec<Clause>,
    pub(super) validations: Vec<Clause>,
    pub(super) ignores_errors: bool,
    /// Whether a failing audit annotation denies requests too.
    pub(super) annotates: bool,
    pub(super) matched: Matched,
}

/// An expression of a policy.
#[derive(Debug)]
pub(super) struct Clause {
    pub(super) name: String,
    pub(super) field: String,
    pub(super) checked: Checked,
}

impl Clause {
    pub(super) fn ast(&self) -> &Ast {
        self.checked.ast()
    }
}

impl Side {
    /// Takes the rules of the subject's version in a definition.
    ///
    /// # Errors
    /// If a server rejects the definition, or it lacks that version.
    pub fn definition(definition: &Value, subject: &Subject) -> Result<Self, SideError> {
        let crd = compiled(definition)?;
        let mut versions = crd.definition().versions.iter().enumerate();
        let (at, version) = versions
            .find(|(_, version)| version.name == subject.version)
            .ok_or_else(|| SideError::new(format!("there is no version {}", subject.version)))?;
        let schema = version.schema.as_deref().cloned().unwrap_or_default();
        let tree = RuleTree::compile(&schema, true);
        let place = format!("spec.versions[{at}].schema.openAPIV3Schema");
        let crd = Some(Arc::new(crd));
        Ok(Self { rules: Rules::Definition(Box::new(DefinitionRules { schema, crd, tree, place })) })
    }

    /// Parses an expression that is assumed to hold for the objects of another side.
    ///
    /// # Errors
    /// If the expression is invalid.
    pub fn assumption(text: &str, like: &Self, subject: &Subject) -> Result<Self, SideError> {
        if let Rules::Policy(_) = like.rules {
            let policy = json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
                "metadata": {"name": "that"},
                "spec": {
                    "matchConstraints": {"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"],
                        "operations": ["CREATE", "UPDATE"], "resources": ["*"]}]},
                    "validations": [{"expression": text}],
                },
            });
            const PLACE: &str = "spec.validations[0].expression: ";
            return Self::policy(&policy, subject).map_err(|error| {
                let told = error.message.strip_prefix(PLACE).unwrap_or(&error.message);
                SideError::new(told)
            });
        }
        let mut schema = subject.without_rules();
        let rule = Rule {
            rule: text.to_owned(),
            message: String::new(),
            message_expression: String::new(),
            reason: None,
            field_path: String::new(),
            optional_old_self: None,
        };
        if let Some(decl) = decl_type(&schema, true) {
            let checked = RuleEnv::new(&decl).checked(&rule);
            checked.map_err(|error| SideError::new(error.to_string()))?;
        }
        schema.rules = vec![rule];
        let tree = RuleTree::compile(&schema, true);
        Ok(Self {
            rules: Rules::Definition(Box::new(DefinitionRules {
                schema,
                crd: None,
                tree,
                place: "--that".to_owned(),
            })),
        })
    }

    /// Takes a ValidatingAdmissionPolicy, for objects of the subject's kind.
    ///
    /// # Errors
    /// If a server rejects the policy.
    pub fn policy(policy: &Value, subject: &Subject) -> Result<Self, SideError> {
        let set = with_binding(policy, subject)?;
        let env = env_of_policies();
        let clauses = |list: &str, named: bool| {
            let items = policy.pointer(&format!("/spec/{list}")).and_then(Value::as_array);
            let items = items.into_iter().flatten().enumerate();
            items
                .map(|(at, item)| {
                    let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default();
                    let field = format!("spec.{list}[{at}].expression");
                    let checked = env.compile(text("expression")).map_err(|error| SideError {
                        field: field.clone(),
                        message: format!("{field}: {error}"),
                    })?;
                    Ok(Clause {
                        name: if named { text("name").to_owned() } else { String::new() },
                        field,
                        checked,
                    })
                })
                .collect::<Result<Vec<_>, SideError>>()
        };
        Ok(Self {
            rules: Rules::Policy(Box::new(PolicyRules {
                set,
                variables: clauses("variables", true)?,
                conditions: clauses("matchConditions", false)?,
                validations: clauses("validations", false)?,
                ignores_errors: policy.pointer("/spec/failurePolicy") == Some(&json!("Ignore")),
                annotates: policy.pointer("/spec/auditAnnotations").and_then(Value::as_array).is_some(),
                matched: Matched::of(policy, subject),
            })),
        })
    }

    /// Returns the requests that a policy matches and that are not modelled.
    pub(super) fn not_followed(&self, at: usize) -> Option<Undecided> {
        let Rules::Policy(rules) = &self.rules else { return None };
        Some(undecided(rules.matched.others.as_deref()?).of(at, "spec.matchConstraints"))
    }

    /// Returns the engine's verdict on a request.
    #[must_use]
    pub fn said(&self, subject: &Subject, new: &Value, old: Option<&Value>) -> Said {
        match &self.rules {
            Rules::Definition(rules) => rules.said(new, old),
            Rules::Policy(rules) => rules.said(subject, new, old),
        }
    }
}

/// Builds a policy set in which a binding without conditions binds the policy, for this kind only: the claim assumes that it matches.
fn with_binding(policy: &Value, subject: &Subject) -> Result<PolicySet, SideError> {
    let mut policy = policy.clone();
    let name = policy.pointer("/metadata/name").cloned().unwrap_or_default();
    if let Some(spec) = policy.get_mut("spec").and_then(Value::as_object_mut) {
        let rule = json!({"apiGroups": [subject.kind.group], "apiVersions": ["*"], "operations": ["*"],
            "resources": [subject.plural]});
        spec.insert("matchConstraints".to_owned(), json!({"resourceRules": [rule]}));
    }
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "prove"}, "spec": {"policyName": name, "validationActions": ["Deny"]},
    });
    let documents = [policy, binding].map(|value| Document::unwritten("prove".into(), value));
    let set = PolicySet::load_with(&documents, LoadOptions { ignore_unknown: true });
    set.map_err(|errors| {
        SideError::of_fields(errors.into_iter().map(|LoadError { field, message, .. }| {
            let told =
                if message.starts_with(field.as_str()) { message } else { format!("{field}: {message}") };
            (field, told)
        }))
    })
}

impl DefinitionRules {
    fn said(&self, new: &Value, old: Option<&Value>) -> Said {
        let recording = Recording::new(Keep { traces: 10_000, outcomes: 0, value_bytes: 0 });
        let id = ExpressionId {
            origin: Origin::Definition { name: String::new(), version: String::new() },
            path: String::new(),
        };
        let recorder = Some(Recorder { recording: &recording, schema: &id });
        let subject =
            RuleSubject { schema: &self.schema, path: &Path::Nil, new, old, ratchet: false, recorder };
        let found = self.tree.evaluate(&subject, &Limits::default());
        let messages: Vec<String> = found.errors.into_vec().iter().map(ToString::to_string).collect();
        let recorded = recording.finish();
        let failed = recorded
            .iter()
            .filter(|(id, _)| id.path.ends_with(".rule"))
            .any(|(_, recorded)| recorded.traces.iter().any(|trace| trace.outcome.is_err()));
        Said { denied: !messages.is_empty(), failed, messages }
    }
}

impl PolicyRules {
    fn said(&self, subject: &Subject, new: &Value, old: Option<&Value>) -> Said {
        let mut host = self.set.documents().clone();
        host.ensure_namespace(
            new.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or("default"),
        );
        let mut request = subject.request(new, old);
        with_system_fields(&mut request, &host, None);
        let decision = self.set.decide(&request, &host);
        let mut said = Said { denied: !decision.allowed(), ..Said::default() };
        for outcome in &decision.outcomes {
            if let Some(Skipped::Failed { message }) = &outcome.skipped {
                said.failed = true;
                said.messages.push(message.clone());
            }
            for rule in &outcome.rules {
                match &rule.verdict {
                    Verdict::Admitted => {}
                    Verdict::Failed { message, .. } => said.messages.push(message.clone()),
                    Verdict::Errored { message, .. } => {
                        said.failed = true;
                        said.messages.push(message.clone());
                    }
                }
            }
        }
        said
    }
}
