//! Renders coverage as one self-contained HTML page: an index of the files, then every expression with its cost and marks around
//! the parts that no case reached.

use std::fmt::Write as _;

use admit_cel::PER_CALL_LIMIT;

use super::marks::marked;
use super::{CoverageReport, Covered, Share, missed, of_limit, summary};
use crate::cli::render::escaped;

const STYLE: &str = include_str!("page.css");

/// Writing to a string cannot fail.
macro_rules! line {
    ($out:expr, $($arg:tt)*) => {{
        let _ = writeln!($out, $($arg)*);
    }};
}

pub(in crate::cli) fn html(report: &CoverageReport) -> String {
    let mut out = String::new();
    line!(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">");
    line!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    line!(out, "<title>admit test: coverage</title>\n<style>\n{STYLE}</style>\n</head>\n<body>");
    line!(out, "<h1>Coverage</h1>\n<p>{}</p>", summary(&report.expressions));
    index(&mut out, report);
    for (number, expressions) in report.files().enumerate() {
        line!(out, "<h2 id=\"f{number}\">{}</h2>", escaped(file(expressions)));
        line!(out, "<p>{}</p>", summary(expressions));
        expressions.iter().for_each(|expression| draw(&mut out, expression));
    }
    out.push_str("</body>\n</html>\n");
    out
}

/// Renders a row for each file, and the totals.
fn index(out: &mut String, report: &CoverageReport) {
    line!(
        out,
        "<table>\n<thead><tr><th>file</th><th colspan=\"2\">expressions</th><th colspan=\"2\">branches</th>"
    );
    line!(out, "<th colspan=\"2\">greatest cost</th></tr></thead>\n<tbody>");
    for (number, expressions) in report.files().enumerate() {
        row(out, &format!("<a href=\"#f{number}\">{}</a>", escaped(file(expressions))), expressions);
    }
    row(out, "all", &report.expressions);
    line!(out, "</tbody>\n</table>");
    line!(
        out,
        "<p>Costs are drawn on a logarithmic scale up to the limit of one evaluation, {PER_CALL_LIMIT}.</p>"
    );
}

fn row(out: &mut String, name: &str, expressions: &[Covered]) {
    let shares = [Share::of_expressions(expressions), Share::of_branches(expressions)];
    let cost = expressions.iter().map(|expression| expression.cost).max().unwrap_or_default();
    line!(out, "<tr class=\"{}\"><td>{name}</td>", class(shares));
    for share in shares {
        let (percent, Share { hit, all }) = (share.percent(), share);
        line!(out, "<td>{}</td><td class=\"number\">{hit} of {all}</td>", bar("", percent));
    }
    line!(
        out,
        "<td>{}</td><td class=\"number\">{cost}</td></tr>",
        bar(" cost", of_limit(cost, PER_CALL_LIMIT))
    );
}

fn draw(out: &mut String, expression: &Covered) {
    let Covered { path, line, evaluations, cost, .. } = expression;
    let only = std::slice::from_ref(expression);
    let class = class([Share::of_expressions(only), Share::of_branches(only)]);
    line!(out, "<section class=\"{class}\">\n<h3>{} (line {line})</h3>", escaped(path));
    let bar = bar(" cost", of_limit(*cost, PER_CALL_LIMIT));
    line!(
        out,
        "<p>evaluations: {evaluations}; greatest cost: {bar} {cost}</p>\n<pre>{}</pre>",
        marked(expression)
    );
    let missed = missed(expression);
    if !missed.is_empty() {
        line!(out, "<ul>");
        missed.iter().for_each(|missed| line!(out, "<li>{}</li>", escaped(missed)));
        line!(out, "</ul>");
    }
    line!(out, "</section>");
}

fn file(expressions: &[Covered]) -> &str {
    expressions.first().map_or("", |first| first.file.as_str())
}

fn class([expressions, branches]: [Share; 2]) -> &'static str {
    match (expressions.hit, expressions.hit == expressions.all && branches.hit == branches.all) {
        (_, true) => "all",
        (0, false) => "none",
        (_, false) => "part",
    }
}

fn bar(class: &str, percent: f64) -> String {
    format!("<span class=\"bar{class}\"><i style=\"width: {percent:.1}%\"></i></span>")
}
