//! What was found in policies and definitions.

use std::fmt::Write as _;

use admit_policy::lint::cost::{RULE_LIMIT, VERSION_LIMIT};
use admit_policy::lint::{Finding, PlacedCost, Report, Severity};
use serde_json::{Value, json};

use super::github::{Place, annotate};
use super::{Palette, counted, sarif};

/// Every finding by place, the costs, the sums.
pub(in crate::cli) fn text(report: &Report, verbose: bool, palette: Palette) -> String {
    let mut out = String::new();
    for finding in report.findings.iter().filter(|finding| verbose || finding.severity > Severity::Note) {
        draw(&mut out, finding, palette);
    }
    let mut costs: Vec<&PlacedCost> =
        report.costs.iter().filter(|cost| verbose || cost.rule.cost >= RULE_LIMIT / 100).collect();
    costs.sort_by_key(|cost| std::cmp::Reverse(cost.rule.cost));
    if !costs.is_empty() {
        let _ = writeln!(
            out,
            "estimated costs, in per cent of the {RULE_LIMIT} that a rule may reach (all rules of a version: \
             {VERSION_LIMIT})"
        );
    }
    for cost in costs {
        draw_cost(&mut out, cost);
    }
    out.push_str(&sums(report, palette));
    out.push('\n');
    out
}

fn draw(out: &mut String, finding: &Finding, palette: Palette) {
    let Finding { code, severity, mistake, help } = finding;
    let word = match severity {
        Severity::Error => palette.red(&format!("error[{code}]")),
        Severity::Warning => format!("warning[{code}]"),
        Severity::Note => format!("note[{code}]"),
    };
    let place = format!("{}:{}:{}", mistake.file, mistake.position.line, mistake.position.column);
    let _ = writeln!(out, "{place}: {word}: {}", told(finding));
    if !help.is_empty() {
        let _ = writeln!(out, "    help: {help}");
    }
}

/// Field and problem; a message that opens with its field has both already.
fn told(finding: &Finding) -> String {
    let mistake = &finding.mistake;
    if mistake.field.is_empty() || mistake.message.starts_with(&mistake.field) {
        return mistake.message.clone();
    }
    format!("{}: {}", mistake.field, mistake.message)
}

fn draw_cost(out: &mut String, cost: &PlacedCost) {
    let PlacedCost { file, position, definition, version, rule } = cost;
    let percent = percent(rule.cost);
    let _ =
        writeln!(out, "  {percent:>7} %  {definition}/{version}  {file}:{}  {}", position.line, rule.path);
    let runs = if rule.runs == 1 { "once".to_owned() } else { format!("up to {} times", rule.runs) };
    let _ = writeln!(out, "             cost {}, runs {runs}", rule.cost);
    let advice = rule.advice();
    if !advice.is_empty() {
        let _ = writeln!(out, "             {advice}");
    }
}

/// Of the limit of one rule, with one digit after the point, rounded down.
fn percent(cost: u64) -> String {
    let tenths = cost.saturating_mul(1000) / RULE_LIMIT;
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn sums(report: &Report, palette: Palette) -> String {
    let (errors, warnings) = (count(report, Severity::Error), count(report, Severity::Warning));
    let sums = format!("{}, {}", counted(errors, "error"), counted(warnings, "warning"));
    let word = if errors > 0 { palette.red("FAIL") } else { palette.green("OK") };
    match count(report, Severity::Note) {
        0 => format!("{word}: {sums}"),
        notes => format!("{word}: {sums}, {}", counted(notes, "note")),
    }
}

fn count(report: &Report, severity: Severity) -> usize {
    report.findings.iter().filter(|finding| finding.severity == severity).count()
}

/// One document: `{"findings": […], "costs": […], "summary"}`.
pub(in crate::cli) fn json(report: &Report) -> String {
    let findings: Vec<Value> = report.findings.iter().map(finding_json).collect();
    let costs: Vec<Value> = report.costs.iter().map(cost_json).collect();
    let summary = json!({"errors": count(report, Severity::Error), "warnings": count(report, Severity::Warning),
               "notes": count(report, Severity::Note)});
    let limits = json!({"rule": RULE_LIMIT, "version": VERSION_LIMIT});
    super::json(&json!({"findings": findings, "costs": costs, "limits": limits, "summary": summary}))
}

fn finding_json(finding: &Finding) -> Value {
    let Finding { code, severity, mistake, help } = finding;
    json!({
        "code": code, "severity": severity.as_str(),
        "file": &*mistake.file, "line": mistake.position.line, "column": mistake.position.column,
        "field": mistake.field, "message": mistake.message, "help": help,
    })
}

fn cost_json(cost: &PlacedCost) -> Value {
    let PlacedCost { file, position, definition, version, rule } = cost;
    let causes: Vec<Value> = rule
        .causes
        .iter()
        .map(|cause| {
            json!({"field": cause.field, "bound": cause.bound, "tried": cause.tried, "cost": cause.cost})
        })
        .collect();
    json!({
        "file": &**file, "line": position.line, "definition": definition, "version": version,
        "path": rule.path, "cost": rule.cost, "runs": rule.runs, "causes": causes,
    })
}

/// For code scanning.
pub(in crate::cli) fn sarif(report: &Report) -> String {
    const RULES: [(&str, &str); 14] = [
        ("not-yaml", "The text is no YAML."),
        ("refused", "A server would not store this."),
        ("unused-variable", "No expression uses the variable."),
        ("unused-params", "No expression uses the params."),
        ("constant-rule", "The answer is the same for every object."),
        ("rule-not-run", "The rule stands where no server looks for rules."),
        ("cel-in-message", "An expression stands where only text is shown."),
        ("no-binding", "No binding names the policy."),
        ("no-policy", "The binding names no policy."),
        ("binding-matches-nothing", "No request matches both the policy and the binding."),
        ("params-not-bound", "Policy and binding do not agree on params."),
        ("matches-nothing", "No request can match."),
        ("type-check", "The expression does not fit the types of the objects that the policy speaks about."),
        ("not-type-checked", "The types of the objects are not known."),
    ];
    let results: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| {
            let Finding { code, severity, mistake, help: _ } = finding;
            sarif::result(code, severity.as_str(), &with_help(finding), &mistake.file, mistake.position)
        })
        .collect();
    sarif::document(&RULES, &results)
}

/// For GitHub Actions.
pub(in crate::cli) fn github(report: &Report) -> String {
    let mut out = String::new();
    for finding in report.findings.iter().filter(|finding| finding.severity > Severity::Note) {
        let Finding { code, severity, mistake, help: _ } = finding;
        let place = Place { file: &mistake.file, at: mistake.position, title: code };
        annotate(&mut out, severity.as_str(), place, &with_help(finding));
    }
    let (errors, warnings) = (count(report, Severity::Error), count(report, Severity::Warning));
    let _ = writeln!(out, "{}, {}", counted(errors, "error"), counted(warnings, "warning"));
    out
}

fn with_help(finding: &Finding) -> String {
    let told = told(finding);
    if finding.help.is_empty() { told } else { format!("{told}\n{}", finding.help) }
}
