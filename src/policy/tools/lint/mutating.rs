//! Checks MutatingAdmissionPolicies and their bindings: unused variables and params, constant conditions, policies without bindings and
//! bindings without a policy.

use std::collections::HashSet;

use admit_apimachinery::pointer::text;
use admit_apimachinery::suggest::{self, did_you_mean};
use serde_json::Value;

use super::answers::Answers;
use super::unused::unused_variables;
use super::{Finding, warning};
use crate::read::manifest::Document;
use crate::vap::MutatingPolicy;

/// Bindings without a policy for which the names of all policies are gone through.
const SUGGESTIONS: usize = 100;

pub(super) fn lint(documents: &[&Document]) -> Vec<Finding> {
    let of =
        |kind: &'static str| documents.iter().copied().filter(move |one| text(&one.value, "/kind") == kind);
    let bound: HashSet<&str> = of("MutatingAdmissionPolicyBinding")
        .map(|document| text(&document.value, "/spec/policyName"))
        .collect();
    let mut there: Vec<&str> =
        of("MutatingAdmissionPolicy").map(|document| text(&document.value, "/metadata/name")).collect();
    there.sort_unstable();
    let mut findings = Vec::new();
    for document in of("MutatingAdmissionPolicy") {
        let Ok(policy) = MutatingPolicy::compile(&document.value) else { continue };
        if !bound.contains(&*policy.common().name) {
            let problem = "no binding names this policy".to_owned();
            let help = "without a MutatingAdmissionPolicyBinding it changes nothing";
            findings.push(warning(document, "no-binding", "metadata.name", problem, help));
        }
        findings.extend(unused(document, &policy));
        findings.extend(conditions(document, &policy));
    }
    let missing = of("MutatingAdmissionPolicyBinding")
        .map(|document| (document, text(&document.value, "/spec/policyName")))
        .filter(|(_, name)| !name.is_empty() && there.binary_search(name).is_err());
    findings.extend(missing.enumerate().map(|(at, (document, name))| {
        let near = (at < SUGGESTIONS).then(|| suggest::nearest(name, there.iter().copied())).flatten();
        let problem = format!("there is no policy `{name}`");
        warning(document, "no-policy", "spec.policyName", problem, &did_you_mean(near))
    }));
    findings
}

/// What nothing names can be taken away, and the policy still compiles.
fn unused(document: &Document, policy: &MutatingPolicy) -> Vec<Finding> {
    let texts = policy.expressions();
    let texts = texts.iter().map(|expression| expression.text);
    let variables = unused_variables(document, texts, |without| MutatingPolicy::compile(without).is_ok());
    let params = || {
        let mut without = document.value.clone();
        without.pointer_mut("/spec").and_then(Value::as_object_mut)?.shift_remove("paramKind")?;
        MutatingPolicy::compile(&without).ok()?;
        let problem = "no expression uses `params`".to_owned();
        let help =
            "without params in its namespace the policy may not be evaluated at all; take paramKind out";
        Some(warning(document, "unused-params", "spec.paramKind", problem, help))
    };
    variables.into_iter().chain(params()).collect()
}

fn conditions(document: &Document, policy: &MutatingPolicy) -> Vec<Finding> {
    let expressions = policy.common().expressions().into_iter();
    let conditions = expressions.filter(|expression| expression.id.path.starts_with("spec.matchConditions"));
    let mut answers = Answers::default();
    let finding = |expression: crate::report::recording::Expression<'_>| {
        let (problem, help) = match answers.constant(&expression)? {
            true => ("always holds", "take it out: it excludes nothing"),
            false => ("never holds", "the policy is never evaluated"),
        };
        let problem = format!("`{}` {problem}", expression.text.trim());
        Some(warning(document, "constant-rule", &expression.id.path, problem, help))
    };
    conditions.filter_map(finding).collect()
}
