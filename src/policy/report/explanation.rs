//! Turns a recorded evaluation into a tree: the expression, and below each part the parts that its value came from.
//!
//! Input: the text and a [`RecordedTrace`]. Output: [`Part`]s. Uninformative parts are left out: literals, and the
//! steps of a path that has a value (`object.spec` below `object.spec.replicas`). Formatting is left to callers.

use admit_cel::{EvalError, Span};

use crate::report::recording::{RecordedOutcome, RecordedTrace};

/// A part of an expression that was evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct Part<'r> {
    /// The part's source text.
    pub text: &'r str,
    /// Within a macro: the index of the item.
    pub round: Option<u32>,
    /// A value in CEL's notation.
    pub outcome: &'r Result<String, EvalError>,
    /// The parts that determined this one's value, in the order of their evaluation.
    pub parts: Vec<Self>,
}

/// Builds the tree of an evaluation of `text`. Usually one root; several if the trace was cut off before the end.
///
/// ```
/// use admit_cel::Span;
/// use admit_policy::{RecordedOutcome, RecordedTrace, explanation};
///
/// let text = "a > 1 && b";
/// let part = |start, end, value: &str| RecordedOutcome {
///     span: Span { start, end },
///     rounds: Box::default(),
///     outcome: Ok(value.to_owned()),
/// };
/// let trace = RecordedTrace {
///     at: String::new(),
///     cost: 3,
///     outcome: Ok("true".to_owned()),
///     parts: vec![part(0, 1, "2"), part(0, 5, "true"), part(9, 10, "true"), part(0, 10, "true")],
///     omitted: 0,
///     change: None,
/// };
/// let tree = explanation::tree(text, &trace);
/// assert_eq!(tree[0].text, text);
/// assert_eq!(tree[0].parts.iter().map(|part| part.text).collect::<Vec<_>>(), ["a > 1", "b"]);
/// ```
pub fn tree<'r>(text: &'r str, trace: &'r RecordedTrace) -> Vec<Part<'r>> {
    let mut open: Vec<Grown<'r>> = Vec::new();
    for outcome in &trace.parts {
        // Children complete before their parent, so those of this part are the last ones.
        let mut first = open.len();
        while first
            .checked_sub(1)
            .and_then(|before| open.get(before))
            .is_some_and(|grown| grown.is_in(outcome))
        {
            first = first.saturating_sub(1);
        }
        let below = open.split_off(first);
        open.push(Grown::new(text, outcome, below));
    }
    open.into_iter().map(|grown| grown.part).collect()
}

/// A part with its place.
struct Grown<'r> {
    span: Span,
    rounds: &'r [u32],
    part: Part<'r>,
}

impl<'r> Grown<'r> {
    fn new(text: &'r str, of: &'r RecordedOutcome, below: Vec<Self>) -> Self {
        let own = of.span.of(text);
        let mut parts = Vec::with_capacity(below.len());
        for child in below {
            let inner = child.rounds.get(of.rounds.len()).copied();
            // A parenthesized expression, or the expansion of a macro.
            if child.span == of.span && inner.is_none() {
                parts.extend(child.part.parts);
            } else if !(child.is_constant() || of.outcome.is_ok() && child.is_on_the_way_to(of.span, own)) {
                parts.push(Part { round: inner, ..child.part });
            }
        }
        Self {
            span: of.span,
            rounds: &of.rounds,
            part: Part { text: of.span.in_parentheses(text), round: None, outcome: &of.outcome, parts },
        }
    }

    fn is_in(&self, outer: &RecordedOutcome) -> bool {
        outer.span.start <= self.span.start
            && self.span.end <= outer.span.end
            && self.rounds.starts_with(&outer.rounds)
    }

    /// Whether the value is visible in the text.
    fn is_constant(&self) -> bool {
        let literal = |c: char| c.is_ascii_digit() || matches!(c, '\'' | '"' | '[' | '{' | '-');
        let text = self.part.text;
        self.part.parts.is_empty()
            && self.part.outcome.is_ok()
            && (text.starts_with(literal) || matches!(text, "true" | "false" | "null"))
    }

    /// Whether this part is a prefix of the whole path or of a presence test: `a.b` in `a.b.c`, `a.b[0]` or `has(a.b.c)`, not in
    /// `a.b.size()`.
    fn is_on_the_way_to(&self, whole: Span, text: &str) -> bool {
        if self.part.text.contains('(') {
            return false;
        }
        if text.starts_with("has(") && text.ends_with(')') {
            return true;
        }
        let length = self.span.end.saturating_sub(whole.start);
        let rest = usize::try_from(length).ok().and_then(|length| text.get(length..)).unwrap_or_default();
        self.span.start == whole.start && rest.starts_with(['.', '[']) && !rest.contains('(')
    }
}

#[cfg(test)]
mod tests {
    use super::{Part, tree};
    use crate::report::recording::{RecordedOutcome, RecordedTrace};
    use admit_cel::{EvalError, Span};

    /// Builds a trace of parts, located by their text's last occurrence, in the order of their completion.
    fn trace(text: &str, parts: &[(&str, &[u32], Result<&str, &str>)]) -> RecordedTrace {
        let outcome = |(part, rounds, outcome): &(&str, &[u32], Result<&str, &str>)| {
            let start = u32::try_from(text.rfind(part).unwrap()).unwrap();
            RecordedOutcome {
                span: Span { start, end: start + u32::try_from(part.len()).unwrap() },
                rounds: (*rounds).into(),
                outcome: outcome.map(str::to_owned).map_err(|key| EvalError::NoSuchKey(key.into())),
            }
        };
        let parts: Vec<_> = parts.iter().map(outcome).collect();
        let outcome = parts.last().unwrap().outcome.clone();
        RecordedTrace { at: String::new(), cost: 0, outcome, parts, omitted: 0, change: None }
    }

    fn drawn(parts: &[Part<'_>]) -> String {
        let one = |part: &Part<'_>| {
            let round = part.round.map(|round| format!("#{round} ")).unwrap_or_default();
            let value = part.outcome.as_ref().map_or_else(|error| format!("!{error}"), Clone::clone);
            let below =
                if part.parts.is_empty() { String::new() } else { format!(" {{{}}}", drawn(&part.parts)) };
            format!("{round}{} = {value}{below}", part.text)
        };
        parts.iter().map(one).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn parts_stand_below_what_they_are_part_of() {
        let text = "object.spec.a == 'b' && x.size() > 0";
        let recorded = trace(
            text,
            &[
                ("object", &[], Ok("{}")),
                ("object.spec", &[], Ok("{}")),
                ("object.spec.a", &[], Ok("\"b\"")),
                ("'b'", &[], Ok("\"b\"")),
                ("object.spec.a == 'b'", &[], Ok("true")),
                ("x", &[], Ok("[]")),
                ("x.size()", &[], Ok("0")),
                ("0", &[], Ok("0")),
                ("x.size() > 0", &[], Ok("false")),
                (text, &[], Ok("false")),
            ],
        );
        let expected = format!(
            "{text} = false {{object.spec.a == 'b' = true {{object.spec.a = \"b\"}}; \
             x.size() > 0 = false {{x.size() = 0 {{x = []}}}}}}"
        );
        assert_eq!(drawn(&tree(text, &recorded)), expected);
    }

    #[test]
    fn items_of_macros_are_numbered() {
        let text = "l.all(i, i > 1)";
        let recorded = trace(
            text,
            &[
                ("l", &[], Ok("[2, 1]")),
                ("i > 1", &[0], Ok("true")),
                ("i > 1", &[1], Ok("false")),
                (text, &[], Ok("false")),
            ],
        );
        assert!(drawn(&tree(text, &recorded)).ends_with("#0 i > 1 = true; #1 i > 1 = false}"));
    }

    #[test]
    fn a_path_is_one_part_and_what_was_computed_on_it_another() {
        let text = "has(a.b) ? a.b.filter(x, x)[0].c : d";
        let recorded = trace(
            text,
            &[
                ("a", &[], Ok("{}")),
                ("has(a.b)", &[], Ok("true")),
                ("a.b", &[], Ok("[{}]")),
                ("a.b.filter(x, x)", &[], Ok("[{}]")),
                ("a.b.filter(x, x)[0]", &[], Ok("{}")),
                ("a.b.filter(x, x)[0].c", &[], Ok("1")),
                (text, &[], Ok("1")),
            ],
        );
        let drawn = drawn(&tree(text, &recorded));
        let expected =
            "has(a.b) = true; a.b.filter(x, x)[0].c = 1 {a.b.filter(x, x)[0] = {} {a.b.filter(x, x) = [{}]";
        assert!(drawn.contains(expected), "{drawn}");
    }

    #[test]
    fn where_a_path_ends_early_the_last_value_is_kept() {
        let text = "a.b.c";
        let recorded =
            trace(text, &[("a", &[], Ok("{}")), ("a.b", &[], Ok("{1: 2}")), (text, &[], Err("c"))]);
        assert_eq!(drawn(&tree(text, &recorded)), "a.b.c = !no such key: c {a.b = {1: 2}}");
    }
}
