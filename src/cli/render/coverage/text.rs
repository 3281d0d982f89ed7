//! Renders coverage for people: a line for each file, and below it the expressions that were not fully reached.

use std::fmt::Write as _;

use super::{CoverageReport, Covered, missed, summary};

pub(in crate::cli) fn text(report: &CoverageReport) -> String {
    let mut out = String::new();
    for expressions in report.files() {
        let file = expressions.first().map_or("", |first| first.file.as_str());
        // Writing to a string cannot fail.
        let _ = writeln!(out, "cover {file}  {}", summary(expressions));
        expressions.iter().for_each(|expression| draw(&mut out, expression));
    }
    let _ = writeln!(out, "coverage: {}", summary(&report.expressions));
    out
}

fn draw(out: &mut String, expression: &Covered) {
    let missed = missed(expression);
    if missed.is_empty() {
        return;
    }
    let _ = writeln!(out, "    {}:{}: {}", expression.file, expression.line, expression.path);
    for line in missed {
        let _ = writeln!(out, "        {line}");
    }
}
