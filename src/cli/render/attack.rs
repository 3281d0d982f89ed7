//! Renders the results of `admit attack`.

use std::fmt::Write as _;

use admit_analysis::attack::{Ask, Family, Finding};
use admit_policy::manifest::Position;
use serde_json::{Value, json as value};

use super::{counted, github::Place, sarif as codes};
use crate::cli::attack::Answer;

/// Renders the results for people.
pub(in crate::cli) fn text(answers: &[Answer]) -> String {
    let palette = super::Palette::of_stdout();
    let mut out = String::new();
    let (mut past, mut accepted, mut open) = (0_usize, 0_usize, 0_usize);
    for answer in answers {
        let Answer { policy, file, at, attacked, .. } = answer;
        past = past.saturating_add(attacked.findings.len());
        accepted = accepted.saturating_add(answer.accepted.len());
        for found in &attacked.findings {
            let head = format!("{} {}", found.family, found.path);
            let _ = writeln!(out, "{} {policy}: {head} {file}:{}", palette.red("gets past"), at.line);
            let _ = writeln!(out, "    {} ({})", found.what, counted(found.differences, "difference"));
            let first = found.first.iter().map(|(first, _)| ("first:   ", first));
            let denied = std::iter::once(("denied:  ", &found.denied));
            for (word, ask) in denied.chain(first).chain([("admitted:", &found.admitted)]) {
                let _ = writeln!(out, "    {word} {}{}", ask.title(), object(ask));
            }
        }
        for (found, reason) in &answer.accepted {
            let _ = writeln!(
                out,
                "{} {policy}: {} {}: {reason}",
                palette.green("accepted"),
                found.family,
                found.path
            );
        }
        if let Some(why) = attacked.undecided {
            open = open.saturating_add(1);
            let _ = writeln!(out, "{} {policy}: {why} {file}:{}", palette.yellow("undecided"), at.line);
        }
    }
    let count = answers.len();
    let policies = if count == 1 { "policy" } else { "policies" };
    let _ = writeln!(out, "{count} {policies}: {past} get past, {accepted} accepted, {open} undecided");
    out
}

fn object(ask: &Ask) -> String {
    let namespace = if ask.namespace.is_empty() { String::new() } else { format!(" in {}", ask.namespace) };
    let old = ask.old_object.as_ref().map(|old| format!(" from {old}")).unwrap_or_default();
    let new = ask.object.as_ref().map(|new| format!(" {new}")).unwrap_or_default();
    let name = if ask.name.is_empty() { String::new() } else { format!(" {}", ask.name) };
    format!("{name}{namespace}{new}{old}")
}

/// Renders the results as one JSON document.
pub(in crate::cli) fn json(answers: &[Answer]) -> String {
    let policies: Vec<Value> = answers
        .iter()
        .map(|answer| {
            let Answer { policy, file, at, attacked, .. } = answer;
            let findings: Vec<Value> = attacked.findings.iter().map(pair).collect();
            let accepted = answer.accepted.iter().map(|(found, reason)| {
                value!({"family": found.family.as_str(), "path": found.path, "reason": reason})
            });
            value!({
                "policy": policy, "file": file, "line": at.line, "findings": findings,
                "accepted": accepted.collect::<Vec<_>>(), "denied": attacked.denied, "tried": attacked.tried,
                "undecided": attacked.undecided.map(|why| why.to_string()),
            })
        })
        .collect();
    super::json(&value!({"policies": policies}))
}

fn pair(found: &Finding) -> Value {
    value!({
        "family": found.family.as_str(), "path": found.path, "what": found.what, "differences": found.differences,
        "offence": {"path": found.offence, "value": found.value},
        "denied": request(&found.denied, found.denied_outcome),
        "first": found.first.as_ref().map(|(first, outcome)| request(first, outcome)),
        "admitted": request(&found.admitted, found.outcome),
    })
}

fn request(ask: &Ask, outcome: &str) -> Value {
    value!({
        "operation": ask.operation.as_str(), "resource": ask.resource.group_resource(), "subresource": ask.subresource,
        "namespace": ask.namespace, "name": ask.name(), "user": ask.user.username, "object": ask.object, "oldObject": ask.old_object,
        "existing": ask.existing.iter().map(|object| (**object).clone()).collect::<Vec<Value>>(), "outcome": outcome,
    })
}

/// A finding: its level, code, text and position.
type Told<'a> = (&'static str, &'static str, String, (&'a str, Position));

fn told(answers: &[Answer]) -> Vec<Told<'_>> {
    let mut all = Vec::new();
    for answer in answers {
        let place = (answer.file.as_str(), answer.at);
        for found in &answer.attacked.findings {
            let text = format!("{}: {} {}: {}", answer.policy, found.family, found.path, found.what);
            all.push(("error", found.family.as_str(), text, place));
        }
        if let Some(why) = answer.attacked.undecided {
            all.push(("warning", "undecided", format!("{}: {why}", answer.policy), place));
        }
    }
    all
}

/// Renders SARIF for code scanning.
pub(in crate::cli) fn sarif(answers: &[Answer]) -> String {
    let families = Family::ALL.iter().map(|family| (family.as_str(), family.meaning()));
    let rules: Vec<(&str, &str)> =
        families.chain([("undecided", "a policy of which it is not known what gets past")]).collect();
    let results: Vec<Value> = told(answers)
        .into_iter()
        .map(|(level, code, text, (file, at))| codes::result(code, level, &text, file, at))
        .collect();
    codes::document(&rules, &results)
}

/// Renders annotations of source lines.
pub(in crate::cli) fn github(answers: &[Answer]) -> String {
    let mut out = String::new();
    for (level, code, text, (file, at)) in told(answers) {
        super::github::annotate(&mut out, level, Place { file, at, title: code }, &text);
    }
    out
}
