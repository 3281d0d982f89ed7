//! Renders coverage as an lcov tracefile (geninfo(1)): a function for each expression, a line for its position, and a
//! branch for each outcome of its parts.

use std::fmt::Write as _;

use super::{CoverageReport, Covered, Share};

pub(in crate::cli) fn lcov(report: &CoverageReport) -> String {
    let mut out = String::new();
    report.files().for_each(|expressions| draw_file(&mut out, expressions));
    out
}

/// Writing to a string cannot fail.
fn draw_file(out: &mut String, expressions: &[Covered]) {
    let file = expressions.first().map_or("", |first| first.file.as_str());
    let _ = write!(out, "TN:admit\nSF:{file}\n");
    for Covered { line, path, .. } in expressions {
        let _ = writeln!(out, "FN:{line},{path}");
    }
    for Covered { path, evaluations, .. } in expressions {
        let _ = writeln!(out, "FNDA:{evaluations},{path}");
    }
    let (reached, taken) = (Share::of_expressions(expressions), Share::of_branches(expressions));
    let _ = write!(out, "FNF:{}\nFNH:{}\n", reached.all, reached.hit);
    for (block, expression) in expressions.iter().enumerate() {
        for (number, (_, hit)) in expression.branches.iter().enumerate() {
            let count = match (expression.evaluations, hit) {
                (0, _) => "-",
                (_, false) => "0",
                (_, true) => "1",
            };
            let _ = writeln!(out, "BRDA:{},{block},{number},{count}", expression.line);
        }
    }
    let _ = write!(out, "BRF:{}\nBRH:{}\n", taken.all, taken.hit);
    // Expressions on the same line (in YAML's flow style) share it.
    let lines: Vec<(usize, u64)> = expressions
        .chunk_by(|left, right| left.line == right.line)
        .filter_map(|chunk| Some((chunk.first()?.line, chunk.iter().map(|e| e.evaluations).sum())))
        .collect();
    for (line, count) in &lines {
        let _ = writeln!(out, "DA:{line},{count}");
    }
    let hit = lines.iter().filter(|(_, count)| *count > 0).count();
    let _ = write!(out, "LF:{}\nLH:{hit}\nend_of_record\n", lines.len());
}
