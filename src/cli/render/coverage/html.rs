//! Renders coverage as one self-contained HTML page: every expression with its text, and what no case reached.

use std::fmt::Write as _;

use super::{CoverageReport, Covered, missed, summary};
use crate::cli::render::escaped;

const HEAD: &str = "<!doctype html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<title>admit test: coverage</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; }
pre { background: #f5f5f5; padding: .5rem .8rem; overflow-x: auto; }
section { border-left: .3rem solid #2e7d32; padding-left: .8rem; margin: 1rem 0; }
section.part { border-color: #f9a825; }
section.none { border-color: #c62828; }
h3 { font-size: 1rem; margin: 0; }
</style>
</head>
<body>
<h1>Coverage</h1>
";

pub(in crate::cli) fn html(report: &CoverageReport) -> String {
    let mut out = HEAD.to_owned();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "<p>{}</p>", summary(&report.expressions));
    for expressions in report.files() {
        let file = expressions.first().map_or("", |first| first.file.as_str());
        let _ = writeln!(out, "<h2>{}</h2>\n<p>{}</p>", escaped(file), summary(expressions));
        expressions.iter().for_each(|expression| draw(&mut out, expression));
    }
    out.push_str("</body>\n</html>\n");
    out
}

fn draw(out: &mut String, expression: &Covered) {
    let missed = missed(expression);
    let class = match (expression.evaluations, missed.as_slice()) {
        (0, _) => "none",
        (_, []) => "all",
        _ => "part",
    };
    let _ = writeln!(
        out,
        "<section class=\"{class}\">\n<h3>{} (line {})</h3>\n<p>evaluations: {}</p>\n<pre>{}</pre>",
        escaped(&expression.path),
        expression.line,
        expression.evaluations,
        escaped(&expression.text),
    );
    if !missed.is_empty() {
        out.push_str("<ul>\n");
        for line in missed {
            let _ = writeln!(out, "<li>{}</li>", escaped(&line));
        }
        out.push_str("</ul>\n");
    }
    out.push_str("</section>\n");
}
