//! Renders the findings of `admit lint`.

use std::fmt::Write as _;

use admit_policy::lint::{CODES, Finding, PlacedCost, RULE_LIMIT, Report, Severity, VERSION_LIMIT};
use admit_policy::manifest::Position;
use serde_json::{Value, json};

use super::github::{Place, annotate};
use super::releases::Asked;
use super::{Palette, counted, releases, sarif};
use admit_language::Texts;
use admit_language::lint::{OF_FILES, REFUSED, TAKEN};

/// How the findings are judged.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Verdict<'v> {
    /// The number of silenced findings, which are not in the report.
    pub(in crate::cli) silenced: usize,
    /// Whether warnings are treated as failures.
    pub(in crate::cli) denied: bool,
    /// The results of the releases, if any were requested.
    pub(in crate::cli) asked: Option<&'v Asked>,
}

/// Renders the findings by position, the costs, and the totals.
pub(in crate::cli) fn text(report: &Report, verdict: Verdict<'_>, texts: &Texts, verbose: bool) -> String {
    let (mut out, palette) = (String::new(), Palette::of_stdout());
    for finding in report.findings.iter().filter(|finding| verbose || finding.severity > Severity::Note) {
        draw(&mut out, finding, texts, palette);
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
    if let Some(asked) = verdict.asked {
        out.push_str(&releases::text(asked, verbose));
    }
    out.push_str(&sums(report, verdict, verbose, palette));
    out.push('\n');
    out
}

fn draw(out: &mut String, finding: &Finding, texts: &Texts, palette: Palette) {
    let Finding { code, severity, mistake, help } = finding;
    let word = match severity {
        Severity::Error => palette.red(&format!("error[{code}]")),
        Severity::Warning => palette.yellow(&format!("warning[{code}]")),
        Severity::Note => format!("note[{code}]"),
    };
    let place = format!("{}:{}:{}", mistake.file, mistake.position.line, mistake.position.column);
    let told = told(finding);
    let source = texts.get(&mistake.file).and_then(|text| text.line(mistake.position.line));
    // A compile error quotes the expression with a caret below; here the line of the file is shown instead.
    match source.filter(|_| mistake.message.contains(QUOTED)) {
        Some(source) => {
            let _ = writeln!(out, "{place}: {word}: {}", unquoted(&told));
            frame(out, source, mistake.position, palette);
        }
        None => {
            let _ = writeln!(out, "{place}: {word}: {told}");
        }
    }
    if !help.is_empty() {
        let _ = writeln!(out, "    help: {help}");
    }
}

/// The beginning of a compiler's quotation of an expression.
const QUOTED: &str = "\n | ";
/// The most characters of a line that are shown before and after the token.
const SHOWN: usize = 60;

/// Removes the lines that a compiler quotes.
fn unquoted(message: &str) -> String {
    let lines: Vec<&str> = message.lines().filter(|line| !line.starts_with(" | ")).collect();
    lines.join("\n")
}

/// Renders the line of the file, and a caret below the token.
pub(super) fn frame(out: &mut String, source: &str, at: Position, palette: Palette) {
    let column = at.column.saturating_sub(1);
    let skipped = column.saturating_sub(SHOWN);
    let cut = |from: usize, most: usize| source.chars().skip(from).take(most).collect::<String>();
    let (start, end) = (if skipped > 0 { "…" } else { "" }, column.saturating_add(SHOWN));
    let tail = if source.chars().count() > end { "…" } else { "" };
    let shown = cut(skipped, end.saturating_sub(skipped));
    let number = at.line.to_string();
    let blank = " ".repeat(number.len());
    let before = column.saturating_sub(skipped).saturating_add(start.chars().count());
    let _ = writeln!(out, "    {number} | {start}{shown}{tail}");
    let _ = writeln!(out, "    {blank} | {}{}", " ".repeat(before), palette.red("^"));
}

/// Returns field and problem; a message that begins with its field has both already.
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

/// Returns the share of the limit of one rule, with one digit after the point, rounded down.
fn percent(cost: u64) -> String {
    let tenths = cost.saturating_mul(1000) / RULE_LIMIT;
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn sums(report: &Report, verdict: Verdict<'_>, verbose: bool, palette: Palette) -> String {
    let (errors, warnings) = (count(report, Severity::Error), count(report, Severity::Warning));
    let mut sums = format!("{}, {}", counted(errors, "error"), counted(warnings, "warning"));
    let word = if errors > 0 || verdict.denied {
        palette.red("FAIL")
    } else if verdict.asked.is_some_and(Asked::is_late) {
        palette.yellow("UNDECIDED")
    } else {
        palette.green("OK")
    };
    match (count(report, Severity::Note), verbose) {
        (0, _) => {}
        (notes, true) => sums.push_str(&format!(", {}", counted(notes, "note"))),
        (notes, false) => sums.push_str(&format!(", {} (-v)", counted(notes, "note"))),
    }
    if verdict.silenced > 0 {
        sums.push_str(&format!(", {} silenced", verdict.silenced));
    }
    if verdict.denied {
        sums.push_str("; denied by --deny");
    }
    format!("{word}: {sums}")
}

fn count(report: &Report, severity: Severity) -> usize {
    report.findings.iter().filter(|finding| finding.severity == severity).count()
}

/// Renders one document: `{"findings": […], "costs": […], "summary"}`, and `"releases": […], "unknown": […]` if releases were
/// requested.
pub(in crate::cli) fn json(report: &Report, verdict: Verdict<'_>) -> String {
    let findings: Vec<Value> = report.findings.iter().map(finding_json).collect();
    let costs: Vec<Value> = report.costs.iter().map(cost_json).collect();
    let summary = json!({"errors": count(report, Severity::Error), "warnings": count(report, Severity::Warning),
               "notes": count(report, Severity::Note), "silenced": verdict.silenced});
    let limits = json!({"rule": RULE_LIMIT, "version": VERSION_LIMIT});
    let mut document = json!({"findings": findings, "costs": costs, "limits": limits, "summary": summary});
    if let (Some(asked), Some(fields)) = (verdict.asked, document.as_object_mut()) {
        fields.insert("releases".to_owned(), releases::json(&asked.files).into());
        fields.insert("unknown".to_owned(), releases::unknown(&asked.unknown).into());
    }
    super::json(&document)
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

/// Renders SARIF for code scanning.
pub(in crate::cli) fn sarif(report: &Report) -> String {
    let errors = [("not-yaml", "The text is no YAML."), ("refused", "A server would not store this.")];
    let rules = errors.into_iter().chain(CODES).chain(OF_FILES).chain(REFUSED).chain(TAKEN);
    let rules: Vec<(&str, &str)> = rules.collect();
    let results: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| {
            let Finding { code, severity, mistake, help: _ } = finding;
            sarif::result(code, severity.as_str(), &with_help(finding), &mistake.file, mistake.position)
        })
        .collect();
    sarif::document(&rules, &results)
}

/// Renders annotations for GitHub Actions.
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
