//! Type-checks expressions of policies against the kinds that they match: reports the warnings that a server would
//! write into the policy's status, and the kinds that could not be checked.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Compiled, Finding, Severity, meant, warning};
use crate::matching::Rule;
use crate::read::manifest::Document;
use crate::request::{GroupVersionKind, GroupVersionResource};
use crate::set::documents::Documents;
use crate::vap::{Policy, TypeWarning, Types};

/// Definitions among the documents, then the kinds that are built in.
struct Known<'k> {
    defined: Documents,
    builtin: &'k dyn Types,
}

impl Types for Known<'_> {
    fn kinds(&self, resource: &GroupVersionResource) -> Vec<GroupVersionKind> {
        let defined = self.defined.kinds(resource);
        if defined.is_empty() { self.builtin.kinds(resource) } else { defined }
    }

    fn type_of(&self, kind: &GroupVersionKind) -> Option<admit_cel::Type> {
        self.defined.type_of(kind).or_else(|| self.builtin.type_of(kind))
    }
}

pub(super) fn lint(compiled: &Compiled<'_>, builtin: &dyn Types) -> Vec<Finding> {
    let mut defined = Documents::default();
    compiled.definitions.iter().for_each(|definition| defined.insert_crd(Arc::clone(definition)));
    let known = Known { defined, builtin };
    let mut findings = Vec::new();
    for (document, policy) in &compiled.policies {
        let warnings = policy.check_types(&known);
        if !warnings.is_empty() {
            let kinds = policy.checked_kinds(&known);
            let types: Vec<admit_cel::Type> = kinds.iter().filter_map(|kind| known.type_of(kind)).collect();
            let mut names = BTreeSet::new();
            types.iter().for_each(|of| meant::fields(of, &mut names));
            meant::variables(document, &mut names);
            findings.extend(warnings.into_iter().map(|found| mismatch(document, &found, &names)));
        }
        findings.extend(unchecked(document, policy, &known));
    }
    findings
}

/// A server only warns of these errors, and evaluates the rule anyway.
const TYPE_CHECK: &str =
    "a server only shows this in the policy's status; `# admit:allow type-check` above it silences this";

fn mismatch(document: &Document, found: &TypeWarning, names: &BTreeSet<&str>) -> Finding {
    let meant = meant::help(&found.warning, names.iter().copied());
    let help = if meant.is_empty() { TYPE_CHECK.to_owned() } else { format!("{meant} {TYPE_CHECK}") };
    warning(document, "type-check", &found.field, found.warning.trim_end().to_owned(), &help)
}

/// What kept expressions from being checked, by rule.
fn unchecked(document: &Document, policy: &Policy, known: &Known<'_>) -> Vec<Finding> {
    let rules = policy.constraints.rules.iter().enumerate();
    let notes = rules.filter_map(|(index, rule)| {
        let reason = reason(rule, known)?;
        let field = format!("spec.matchConstraints.resourceRules[{index}]");
        let found = warning(document, "not-type-checked", &field, reason, "");
        Some(Finding { severity: Severity::Note, ..found })
    });
    notes.collect()
}

fn reason(rule: &Rule, known: &Known<'_>) -> Option<String> {
    let is_open = |names: &[String]| names.iter().any(|name| name.contains('*'));
    if is_open(&rule.groups) || is_open(&rule.versions) || is_open(&rule.resources) {
        return Some("types of kinds behind a wildcard are not checked, nor would a server".to_owned());
    }
    let mut missing = Vec::new();
    for group in &rule.groups {
        for version in &rule.versions {
            for resource in rule.resources.iter().filter(|resource| !resource.contains('/')) {
                let asked = GroupVersionResource::new(group.as_str(), version.as_str(), resource.as_str());
                let kinds = known.kinds(&asked);
                if !kinds.iter().any(|kind| known.type_of(kind).is_some()) {
                    let slash = if group.is_empty() { "" } else { "/" };
                    missing.push(format!("{resource} of {group}{slash}{version}"));
                }
            }
        }
    }
    (!missing.is_empty())
        .then(|| format!("types were not checked, for no schema is known of {}", missing.join(", ")))
}
