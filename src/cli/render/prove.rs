//! Renders the results of `admit prove`.

use std::fmt::Write as _;

use admit_analysis::prove::{Counterexample, Said, Verdict};
use admit_policy::manifest::Position;
use serde_json::{Value, json as value};

use super::{counted, github::Place, sarif as codes};
use crate::cli::prove::Answer;

/// The SARIF rules of this command.
const RULES: [(&str, &str); 2] = [
    ("refuted", "a claim that does not hold for all objects"),
    ("undecided", "a claim of which it is not known"),
];

/// Renders the results for people.
pub(in crate::cli) fn text(answers: &[Answer]) -> String {
    let palette = super::Palette::of_stdout();
    let mut out = String::new();
    let (mut held, mut refuted, mut open) = (0_usize, 0_usize, 0_usize);
    for answer in answers {
        let head = format!("{} {}: {}", answer.claim, answer.shown().join(" "), answer.kind);
        match &answer.verdict {
            Verdict::Holds { up_to } => {
                held = held.saturating_add(1);
                let bound =
                    up_to.map_or_else(String::new, |count| format!(" up to {}", counted(count, "item")));
                let _ = writeln!(out, "{}{bound}: {head}", palette.green("holds"));
            }
            Verdict::Refuted(found) => {
                refuted = refuted.saturating_add(1);
                let _ = writeln!(out, "{}: {head}", palette.red("does not hold"));
                if let (Some(at), Some((file, line))) = (&answer.at, answer.places.last()) {
                    let _ = writeln!(out, "    {file}:{}: {}", line.line, at.place);
                }
                counterexample(&mut out, answer, found);
            }
            Verdict::Undecided(undecided) => {
                open = open.saturating_add(1);
                let _ = writeln!(out, "{}: {head}", palette.yellow("undecided"));
                for (one, (file, at)) in undecided.iter().zip(&answer.undecided_at) {
                    let field = one.field.as_ref().map_or_else(String::new, |field| format!(" ({field})"));
                    let _ = writeln!(out, "    {file}:{}: {}{field}", at.line, one.what);
                }
            }
        }
    }
    let _ =
        writeln!(out, "{}: {held} hold, {refuted} not, {open} undecided", counted(answers.len(), "claim"));
    out
}

fn counterexample(out: &mut String, answer: &Answer, found: &Counterexample) {
    if let Some(old) = &found.old_object {
        let _ = writeln!(out, "    old: {old}");
    }
    let new = if found.old_object.is_some() { "new: " } else { "" };
    let through = if found.subresource.is_empty() {
        String::new()
    } else {
        format!(" (through /{})", found.subresource)
    };
    let _ = writeln!(out, "    {new}{}{through}", found.object);
    for (name, said) in answer.shown().into_iter().zip(&found.said) {
        let _ = writeln!(out, "    {name} {}", says(said));
    }
}

fn says(said: &Said) -> String {
    let verdict = if said.denied { "denies it" } else { "admits it" };
    if said.messages.is_empty() {
        verdict.to_owned()
    } else {
        format!("{verdict}: {}", said.messages.join("; "))
    }
}

/// Renders one JSON document.
pub(in crate::cli) fn json(answers: &[Answer], solver: Option<&str>) -> String {
    let claims: Vec<Value> = answers.iter().map(claim).collect();
    super::json(&value!({"solver": solver, "claims": claims}))
}

fn claim(answer: &Answer) -> Value {
    let compared = answer.names.iter().zip(&answer.places);
    let compared: Vec<Value> =
        compared.map(|(name, (file, at))| value!({"name": name, "file": file, "line": at.line})).collect();
    let (verdict, mut up_to, mut counterexample, mut open) =
        (word(&answer.verdict), None, Value::Null, Vec::new());
    match &answer.verdict {
        Verdict::Holds { up_to: bound } => up_to = *bound,
        Verdict::Refuted(found) => {
            let said = found.said.iter();
            let said: Vec<Value> = said
                .map(|said| value!({"denied": said.denied, "failed": said.failed, "messages": said.messages}))
                .collect();
            counterexample = value!({
                "object": found.object,
                "oldObject": found.old_object,
                "subresource": found.subresource,
                "said": said,
            });
        }
        Verdict::Undecided(undecided) => {
            open = undecided
                .iter()
                .zip(&answer.undecided_at)
                .map(|(one, (file, at))| {
                    value!({"what": one.what, "field": one.field, "file": file, "line": at.line})
                })
                .collect();
        }
    }
    value!({
        "claim": answer.claim, "compared": compared, "kind": answer.kind, "verdict": verdict, "upTo": up_to,
        "at": answer.at.as_ref().map(|at| value!({"place": at.place, "field": at.field})),
        "counterexample": counterexample, "undecided": open,
    })
}

const fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Holds { .. } => "holds",
        Verdict::Refuted(_) => "refuted",
        Verdict::Undecided(_) => "undecided",
    }
}

/// A claim that is not proved: its level, code, text and position.
type Finding = (&'static str, &'static str, String, (String, Position));

fn findings(answers: &[Answer]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for answer in answers {
        let head = format!("{} {} ({})", answer.claim, answer.shown().join(" "), answer.kind);
        match &answer.verdict {
            Verdict::Holds { .. } => {}
            Verdict::Refuted(found) => {
                let Some(place) = answer.places.last() else { continue };
                let at = answer.at.as_ref().map_or_else(String::new, |at| format!(" by {}", at.place));
                let text = format!("{head} does not hold{at} for {}", found.object);
                findings.push(("error", "refuted", text, place.clone()));
            }
            Verdict::Undecided(undecided) => {
                for (one, place) in undecided.iter().zip(&answer.undecided_at) {
                    findings.push(("warning", "undecided", format!("{head}: {}", one.what), place.clone()));
                }
            }
        }
    }
    findings
}

/// Renders SARIF for code scanning.
pub(in crate::cli) fn sarif(answers: &[Answer]) -> String {
    let results: Vec<Value> = findings(answers)
        .into_iter()
        .map(|(level, code, text, (file, at))| codes::result(code, level, &text, &file, at))
        .collect();
    codes::document(&RULES, &results)
}

/// Renders annotations of source lines.
pub(in crate::cli) fn github(answers: &[Answer]) -> String {
    let mut out = String::new();
    for (level, code, text, (file, at)) in findings(answers) {
        super::github::annotate(&mut out, level, Place { file: &file, at, title: code }, &text);
    }
    out
}
