//! Checks CRDs: the cost of their rules, rules that are constant or never run, and expressions in messages.

use std::collections::HashSet;

use admit_apimachinery::go;

use super::answers::Answers;
use super::{Finding, PlacedCost, cost, message, policies, warning};
use crate::crd::{CompiledCrd, Definition};
use crate::read::manifest::Document;
use crate::schema::Schema;
use crate::set::load::UnknownField;

/// Returns the costs of the rules of a definition, even if a server would reject it for them.
pub(super) fn costs(document: &Document, definition: &Definition) -> Vec<PlacedCost> {
    let versions = definition.versions.iter().enumerate();
    let costs = versions.filter_map(|(index, version)| {
        let path = schema_path(index);
        let costs = cost::costs(version.schema.as_deref()?, &path);
        Some(costs.into_iter().map(|rule| PlacedCost {
            file: document.file.clone(),
            position: document.position(&rule.path),
            definition: definition.name.clone(),
            version: version.name.clone(),
            rule,
        }))
    });
    costs.flatten().collect()
}

/// Fields that a definition does not have, where its reader drops them without a word.
pub(super) fn dropped(document: &Document, unknown: &[UnknownField]) -> Vec<Finding> {
    let dropped = unknown.iter().filter(|field| !field.refused);
    let finding = |field: &UnknownField| {
        let help = "servers drop it without a word";
        warning(document, "unknown-field", &field.path, "unknown field".to_owned(), help)
    };
    dropped.map(finding).collect()
}

fn schema_path(version: usize) -> String {
    format!("spec.versions[{version}].schema.openAPIV3Schema")
}

pub(super) fn lint(document: &Document, crd: &CompiledCrd, answers: &mut Answers) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut run = HashSet::new();
    for version in crd.versions() {
        for expression in version.expressions() {
            run.insert(expression.id.path.clone());
            let is_rule = expression.id.path.ends_with(".rule");
            let answer = if is_rule { answers.constant(&expression) } else { None };
            findings.extend(answer.map(|answer| {
                let (problem, help) = if answer {
                    ("cannot be false", "it refuses nothing")
                } else {
                    ("cannot be true", "it refuses every object that has the field")
                };
                let problem = format!("`{}` {problem}", expression.text.trim());
                warning(document, "constant-rule", &expression.id.path, problem, help)
            }));
        }
    }
    let mut formats = Formats { document, known: HashSet::new(), findings: Vec::new() };
    for (index, version) in crd.definition().versions.iter().enumerate() {
        if let Some(schema) = &version.schema {
            rules(document, schema, &schema_path(index), &run, &mut findings);
            formats.unchecked(schema, &schema_path(index));
        }
    }
    findings.append(&mut formats.findings);
    findings
}

/// Formats that no server checks, each reported once, as in servers' warnings.
struct Formats<'d> {
    document: &'d Document,
    known: HashSet<String>,
    findings: Vec<Finding>,
}

impl Formats<'_> {
    fn unchecked(&mut self, schema: &Schema, path: &str) {
        if let Some(format) = schema.unchecked_format()
            && self.known.insert(format.to_owned())
        {
            let problem = format!("unrecognized format {}", go::quote(format));
            let help = "no server checks values against it";
            let at = format!("{path}.format");
            self.findings.push(warning(self.document, "unchecked-format", &at, problem, help));
        }
        for (step, child) in schema.steps() {
            self.unchecked(child, &format!("{path}.{step}"));
        }
    }
}

fn rules(
    document: &Document,
    schema: &Schema,
    path: &str,
    run: &HashSet<String>,
    findings: &mut Vec<Finding>,
) {
    for (index, rule) in schema.rules.iter().enumerate() {
        let at = format!("{path}.x-kubernetes-validations[{index}]");
        if !run.contains(&format!("{at}.rule")) {
            let problem = format!("`{}` is never run", rule.rule.trim());
            let help = "no server looks for rules here: put it on the field itself";
            findings.push(warning(document, "rule-not-run", &format!("{at}.rule"), problem, help));
        }
        if message::is_expression(&rule.message) {
            findings.push(policies::in_message(document, &format!("{at}.message"), &rule.message));
        }
    }
    for (step, child) in schema.steps() {
        rules(document, child, &format!("{path}.{step}"), run, findings);
    }
}
