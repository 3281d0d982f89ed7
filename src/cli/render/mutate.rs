//! Renders the results of `admit mutate`.

use std::fmt::Write as _;

use admit_analysis::mutate::{Mutant, Operator};
use admit_policy::manifest::Position;
use admit_policy::suite::Outcome;
use serde_json::{Value, json as value};

use super::{Palette, counted, github::Place, lint::frame, sarif as codes};
use crate::cli::Exit;
use crate::cli::mutate::{Judged, Open, Report, Sums, Survivor};

/// The SARIF rules of this command.
const RULES: [(&str, &str); 2] = [
    ("survived", "a change of a rule that no test case sees"),
    ("undecided", "a change that no test case sees, and of which it is not known whether one could"),
];

/// Renders the results for people; `exit` is the exit code of the command.
pub(in crate::cli) fn text(report: &Report, exit: Exit, verbose: bool, palette: Palette) -> String {
    let mut out = String::new();
    for judged in &report.documents {
        if verbose {
            let (kind, name, cases) = (&judged.kind, &judged.name, counted(judged.cases, "case"));
            let _ = writeln!(
                out,
                "{}:{}: {kind} {name}, {cases}: {}",
                judged.file,
                judged.at.line,
                said(judged.sums())
            );
        }
        for Survivor { mutant, at, killing } in &judged.survivors {
            let head = palette.red(&format!("survived[{}]", mutant.operator.as_str()));
            draw(&mut out, (report, judged), (mutant, *at), &head, palette);
            let _ = writeln!(out, "    {}", told(killing.outcome, killing.changed, &killing.message));
            let _ = writeln!(out, "    {}", killing.case);
        }
        for Open { mutant, at, why } in &judged.undecided {
            let head = palette.yellow(&format!("undecided[{}]", mutant.operator.as_str()));
            draw(&mut out, (report, judged), (mutant, *at), &head, palette);
            why.iter().for_each(|why| {
                let _ = writeln!(out, "    {why}");
            });
        }
    }
    if verbose {
        let (seconds, millis) = (report.took.as_secs_f64(), report.took.as_millis().max(1));
        let (run, apart) = (report.run, report.apart);
        let judged = run.saturating_add(apart);
        let rate = u128::from(judged) * 1000 / millis;
        let _ = writeln!(
            out,
            "{judged} changes × cases judged in {seconds:.2} s: {rate} a second ({run} of them run, {apart} do not come to \
             what is changed)"
        );
    }
    let sums = report.sums();
    // The word agrees with the exit code: with a minimum score, it says whether that is reached.
    let word = match exit {
        Exit::Expected => palette.green("OK"),
        Exit::Undecided => palette.yellow("UNDECIDED"),
        _ => palette.red("FAIL"),
    };
    let _ = writeln!(
        out,
        "{word}: {} of {}: {}",
        counted(sums.counted(), "change"),
        counted(report.documents.len(), "document"),
        said(sums)
    );
    out
}

fn said(sums: Sums) -> String {
    let Sums { killed, survived, undecided, equivalent, refused } = sums;
    let mut said = format!("{killed} seen, {survived} not, {undecided} undecided");
    if equivalent > 0 {
        said.push_str(&format!(", {equivalent} more that make no difference"));
    }
    if refused > 0 {
        said.push_str(&format!(", {refused} that a server refuses"));
    }
    format!("{said}; score {} %", score(sums))
}

/// Returns the score with one digit after the point, rounded down.
fn score(sums: Sums) -> String {
    let tenths = sums.score();
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn draw(
    out: &mut String,
    (report, judged): (&Report, &Judged),
    (mutant, at): (&Mutant, Position),
    head: &str,
    palette: Palette,
) {
    let _ = writeln!(out, "{}:{}:{}: {head}: {}", judged.file, at.line, at.column, change(mutant));
    let line = report.texts.get(&judged.file).and_then(|text| text.lines().nth(at.line.saturating_sub(1)));
    if let Some(line) = line {
        frame(out, line, at, palette);
    }
}

/// Returns the mutation in words.
fn change(mutant: &Mutant) -> String {
    if mutant.becomes.is_empty() {
        format!("without `{}`, no case fails", mutant.was)
    } else if mutant.operator == Operator::Clause && mutant.becomes == "true" {
        "without this rule, no case fails".to_owned()
    } else {
        format!("with `{}` for `{}`, no case fails", mutant.becomes, mutant.was)
    }
}

/// Returns how the mutation changes the outcome of the case.
fn told(outcome: Outcome, changed: Outcome, message: &str) -> String {
    let message = if message.is_empty() { String::new() } else { format!(" ({message})") };
    format!(
        "this case would: it expects {}, and comes to {} then{message}",
        outcome.as_str(),
        changed.as_str()
    )
}

/// Renders one JSON document.
pub(in crate::cli) fn json(report: &Report) -> String {
    let documents: Vec<Value> = report.documents.iter().map(document).collect();
    super::json(&value!({
        "solver": report.solver, "documents": documents, "summary": sums(report.sums()),
    }))
}

fn document(judged: &Judged) -> Value {
    let survivors: Vec<Value> = judged
        .survivors
        .iter()
        .map(|Survivor { mutant, at, killing }| {
            let mut shown = shown(mutant, *at);
            if let Some(map) = shown.as_object_mut() {
                map.insert("case".to_owned(), killing.case.clone());
                map.insert("outcome".to_owned(), killing.outcome.as_str().into());
                map.insert("changedOutcome".to_owned(), killing.changed.as_str().into());
            }
            shown
        })
        .collect();
    let undecided: Vec<Value> = judged
        .undecided
        .iter()
        .map(|Open { mutant, at, why }| {
            let mut shown = shown(mutant, *at);
            if let Some(map) = shown.as_object_mut() {
                map.insert("why".to_owned(), value!(why));
            }
            shown
        })
        .collect();
    value!({
        "kind": judged.kind, "name": judged.name, "file": judged.file, "line": judged.at.line, "cases": judged.cases,
        "survived": survivors, "undecided": undecided, "summary": sums(judged.sums()),
    })
}

fn shown(mutant: &Mutant, at: Position) -> Value {
    value!({
        "operator": mutant.operator.as_str(), "field": mutant.field, "line": at.line, "column": at.column,
        "was": mutant.was, "becomes": mutant.becomes,
    })
}

fn sums(sums: Sums) -> Value {
    let Sums { killed, survived, undecided, equivalent, refused } = sums;
    let score: f64 = score(sums).parse().unwrap_or_default();
    value!({
        "killed": killed, "survived": survived, "undecided": undecided, "equivalent": equivalent, "refused": refused,
        "score": score,
    })
}

/// An undetected mutation: its level, code, text and position.
type Finding<'r> = (&'static str, &'static str, String, (&'r str, Position));

fn findings(report: &Report) -> Vec<Finding<'_>> {
    let mut findings = Vec::new();
    for judged in &report.documents {
        for Survivor { mutant, at, killing } in &judged.survivors {
            let told = told(killing.outcome, killing.changed, &killing.message);
            let text = format!("{}\n{told}: {}", change(mutant), killing.case);
            findings.push(("error", "survived", text, (judged.file.as_str(), *at)));
        }
        for Open { mutant, at, why } in &judged.undecided {
            let text = format!("{}: {}", change(mutant), why.join("; "));
            findings.push(("warning", "undecided", text, (judged.file.as_str(), *at)));
        }
    }
    findings
}

/// Renders SARIF for code scanning.
pub(in crate::cli) fn sarif(report: &Report) -> String {
    let results: Vec<Value> = findings(report)
        .into_iter()
        .map(|(level, code, text, (file, at))| codes::result(code, level, &text, file, at))
        .collect();
    codes::document(&RULES, &results)
}

/// Renders annotations of source lines.
pub(in crate::cli) fn github(report: &Report) -> String {
    let mut out = String::new();
    for (level, code, text, (file, at)) in findings(report) {
        super::github::annotate(&mut out, level, Place { file, at, title: code }, &text);
    }
    out
}
