//! Renders an expression as HTML with marks around the parts that no case reached.

use admit_cel::Span;

use super::{Covered, missing};
use crate::cli::render::escaped;

/// Renders the expression. The missed outcomes of a part are the title of its mark; marks are nested like parts.
pub(super) fn marked(expression: &Covered) -> String {
    let text = expression.text.as_str();
    let mut marks: Vec<(Span, Vec<&'static str>)> = Vec::new();
    for (branch, _) in expression.branches.iter().filter(|(_, hit)| !hit) {
        match marks.iter_mut().find(|(span, _)| *span == branch.span) {
            Some((_, titles)) => titles.push(missing(branch)),
            None => marks.push((branch.span, vec![missing(branch)])),
        }
    }
    // Spans of a tree are nested or disjoint. Outer spans come first.
    marks.sort_by_key(|(span, _)| (span.start, std::cmp::Reverse(span.end)));
    let mut out = String::new();
    let (mut open, mut at) = (Vec::new(), 0);
    for (Span { start, end }, titles) in marks {
        close(&mut out, text, &mut open, &mut at, start);
        write(&mut out, text, &mut at, start);
        out.push_str(&format!("<mark title=\"{}\">", titles.join(", ")));
        open.push(end);
    }
    close(&mut out, text, &mut open, &mut at, u32::MAX);
    write(&mut out, text, &mut at, u32::MAX);
    out
}

/// Closes the marks that end before `until`, innermost first.
fn close(out: &mut String, text: &str, open: &mut Vec<u32>, at: &mut u32, until: u32) {
    while let Some(end) = open.pop_if(|end| *end <= until) {
        write(out, text, at, end);
        out.push_str("</mark>");
    }
}

/// Writes the text up to `until`.
fn write(out: &mut String, text: &str, at: &mut u32, until: u32) {
    let until = until.min(u32::try_from(text.len()).unwrap_or(u32::MAX));
    out.push_str(&escaped(Span { start: *at, end: until }.of(text)));
    *at = until.max(*at);
}

#[cfg(test)]
mod tests {
    use admit_cel::{Branch, BranchKind};

    use super::*;

    fn marked_at(text: &str, missed: &[(u32, u32, bool)]) -> String {
        let branch = |&(start, end, when)| {
            let kind = BranchKind::And;
            (Branch { kind, when: Some(when), span: Span { start, end } }, false)
        };
        marked(&Covered {
            file: String::new(),
            line: 1,
            path: String::new(),
            text: text.to_owned(),
            evaluations: 1,
            cost: 1,
            branches: missed.iter().map(branch).collect(),
        })
    }

    #[test]
    fn marks_stand_in_marks_and_beside_each_other() {
        assert_eq!(marked_at("a < 'é'", &[]), "a &lt; 'é'");
        assert_eq!(
            marked_at("a && (b || c)", &[(11, 12, true), (0, 1, true), (6, 12, true), (0, 1, false)]),
            "<mark title=\"term never true, term never false\">a</mark> &amp;&amp; (\
             <mark title=\"term never true\">b || <mark title=\"term never true\">c</mark></mark>)"
        );
    }
}
