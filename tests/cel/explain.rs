//! Observing evaluations: the outcome of every sub-expression with its place, and the branches that were taken.

use admit_cel::{
    Bindings, BranchKind, Coverage, Env, EvalError, Evaluation, Mode, Program, Trace, Type, Value, Version,
};
use bumpalo::Bump;

fn program(text: &str) -> Program {
    let env =
        Env::kubernetes(Version(1, 36), Mode::New).with_variables([("s", Type::String), ("d", Type::Dyn)]);
    env.program(&env.compile(text).unwrap()).unwrap()
}

/// What is observed with `s` and `d` as they are given, as `text@rounds = value`.
fn observed(text: &str, s: &str, d: &str) -> Vec<String> {
    let program = program(text);
    let arena = Bump::new();
    let document =
        admit_cel::document::parse(&arena, d.as_bytes(), &admit_cel::ReadLimits::default()).unwrap();
    let mut bindings = Bindings::new(&program);
    bindings.set("s", Value::String(s)).set("d", Value::untyped(document));
    let mut trace = Trace::new(1_000);
    let mut cx = Evaluation::new(&arena);
    let outcome = program.observe(&bindings, &mut cx, &mut trace);
    let cost = cx.cost();
    let plain = program.eval(&bindings, &mut cx);
    assert_eq!(outcome.map(|value| value.preview(99)), plain.map(|value| value.preview(99)), "{text}");
    assert_eq!(cost, cx.cost(), "{text}: observing costs nothing");
    let entries = trace.entries().iter().map(|entry| {
        let rounds = match &*entry.rounds {
            [] => String::new(),
            rounds => format!("@{rounds:?}"),
        };
        let outcome = match &entry.outcome {
            Ok(value) => value.preview(40),
            Err(error) => format!("error: {error}"),
        };
        format!("{}{rounds} = {outcome}", entry.span.of(text))
    });
    entries.collect()
}

/// An expression, and what is observed of it, with `s` and `d` as the test binds them.
const OBSERVED: [(&str, &[&str]); 10] = [
    (
        "size(s) > 2 && s.startsWith('ab')",
        &[
            "s = \"abc\"",
            "size(s) = 3",
            "2 = 2",
            "size(s) > 2 = true",
            "s = \"abc\"",
            "'ab' = \"ab\"",
            "s.startsWith('ab') = true",
            "size(s) > 2 && s.startsWith('ab') = true",
        ],
    ),
    // Every link of a chain, the error where it arises and in what is around it.
    (
        "d.a.b.c",
        &[
            "d = {\"a\": {\"b\": {}}, \"l\": [1, 2]}",
            "d.a = {\"b\": {}}",
            "d.a.b = {}",
            "d.a.b.c = error: no such key: c",
        ],
    ),
    ("has(d.a.x)", &["d = {\"a\": {\"b\": {}}, \"l\": [1, 2]}", "d.a = {\"b\": {}}", "has(d.a.x) = false"]),
    (
        "d.?a.b.orValue(1)",
        &[
            "d = {\"a\": {\"b\": {}}, \"l\": [1, 2]}",
            "d.?a = optional.of({\"b\": {}})",
            "d.?a.b = optional.of({})",
            "d.?a.b.orValue(1) = {}",
        ],
    ),
    (
        "d.l[d.l[0] - 1]",
        &[
            "d = {\"a\": {\"b\": {}}, \"l\": [1, 2]}",
            "d.l = [1, 2]",
            "d = {\"a\": {\"b\": {}}, \"l\": [1, 2]}",
            "d.l = [1, 2]",
            "d.l[0] = 1",
            "1 = 1",
            "d.l[0] - 1 = 0",
            "d.l[d.l[0] - 1] = 1",
        ],
    ),
    (
        "(s == 'x' ? 1 : d.l[1]) + 1",
        &[
            "s = \"abc\"",
            "s == 'x' = false",
            "d = {\"a\": {\"b\": {}}, \"l\": [1, 2]}",
            "d.l = [1, 2]",
            "d.l[1] = 2",
            "s == 'x' ? 1 : d.l[1] = 2",
            "1 = 1",
            "(s == 'x' ? 1 : d.l[1]) + 1 = 3",
        ],
    ),
    (
        "[1, 2].exists(i, [3].all(j, i < j))",
        &[
            "[1, 2] = [1, 2]",
            "[3]@[0] = [3]",
            "i@[0, 0] = 1",
            "j@[0, 0] = 3",
            "i < j@[0, 0] = true",
            "[3].all(j, i < j)@[0] = true",
            "[1, 2].exists(i, [3].all(j, i < j)) = true",
        ],
    ),
    (
        "[s].map(x, x + 'd')",
        &[
            "s = \"abc\"",
            "[s] = [\"abc\"]",
            "x@[0] = \"abc\"",
            "'d'@[0] = \"d\"",
            "x + 'd'@[0] = \"abcd\"",
            "[s].map(x, x + 'd') = [\"abcd\"]",
        ],
    ),
    // Macros without a fold of their own show what was written in them, and nothing that they add.
    (
        "d.?l.optMap(l, size(l))",
        &[
            "d = {\"a\": {\"b\": {}}, \"l\": [1, 2]}",
            "d.?l = optional.of([1, 2])",
            "d = {\"a\": {\"b\": {}}, \"l\": [1, 2]}",
            "d.?l = optional.of([1, 2])",
            "l = [1, 2]",
            "size(l) = 2",
            "d.?l.optMap(l, size(l)) = optional.of(2)",
        ],
    ),
    (
        "[2, 1].sortBy(x, -x)",
        &[
            "[2, 1] = [2, 1]",
            "x@[0] = 2",
            "-x@[0] = -2",
            "x@[1] = 1",
            "-x@[1] = -1",
            "[2, 1].sortBy(x, -x) = [2, 1]",
        ],
    ),
];

#[test]
fn every_sub_expression_is_told_in_the_order_of_its_completion() {
    for (text, expected) in OBSERVED {
        let observed = observed(text, "abc", r#"{"a": {"b": {}}, "l": [1, 2]}"#);
        assert_eq!(observed, expected, "{text}");
    }
}

#[test]
fn a_trace_keeps_so_much_and_counts_the_rest() {
    let program = program("[1, 2, 3].map(x, x)");
    let arena = Bump::new();
    let mut trace = Trace::new(2);
    program.observe(&Bindings::new(&program), &mut Evaluation::new(&arena), &mut trace).unwrap();
    assert_eq!((trace.entries().len(), trace.omitted()), (2, 3));
}

/// The branches of an expression, as `kind text when`, those that evaluations with each of `strings` took marked `+`.
fn coverage(text: &str, strings: &[&str]) -> Vec<String> {
    let program = program(text);
    let mut total = Coverage::new(&program);
    for s in strings {
        let arena = Bump::new();
        let mut bindings = Bindings::new(&program);
        bindings.set("s", Value::String(s));
        let mut once = Coverage::new(&program);
        let outcome = program.observe(&bindings, &mut Evaluation::new(&arena), &mut once);
        assert!(!matches!(outcome, Err(EvalError::Internal(_))), "{text}");
        total.merge(&once);
    }
    assert_eq!(total.hits(), total.branches().filter(|(_, hit)| *hit).count());
    let shown = total.branches().map(|(branch, hit)| {
        let when = match branch.when {
            Some(when) => format!(" {when}"),
            None => String::new(),
        };
        format!("{}{:?} {}{when}", if hit { "+" } else { "-" }, branch.kind, branch.span.of(text))
    });
    shown.collect()
}

#[test]
fn branches_are_told_from_the_text_and_marked_by_evaluations() {
    let cases: [(&str, &[&str], &[&str]); 6] = [
        (
            "s == 'a' || s.size() > 1 && s != 'bb'",
            &["a", "cc"],
            &[
                "+Result s == 'a' || s.size() > 1 && s != 'bb' true",
                "-Result s == 'a' || s.size() > 1 && s != 'bb' false",
                "+Or s == 'a' true",
                "+Or s == 'a' false",
                "+Or s.size() > 1 && s != 'bb' true",
                "-Or s.size() > 1 && s != 'bb' false",
                "+And s.size() > 1 true",
                "-And s.size() > 1 false",
                "+And s != 'bb' true",
                "-And s != 'bb' false",
            ],
        ),
        ("s == 'a' ? 1 : 2", &["a"], &["+Then 1", "-Else 2"]),
        (
            "[1, 2].filter(x, x > size(s))",
            &["a"],
            &["+Predicate x > size(s) true", "+Predicate x > size(s) false"],
        ),
        (
            "[s].filter(x, x == 'a').map(x, x + x)",
            &["b"],
            &["-Predicate x == 'a' true", "+Predicate x == 'a' false", "-Body x + x"],
        ),
        ("optional.ofNonZeroValue(s).orValue('none')", &["a"], &["-Fallback 'none'"]),
        ("optional.ofNonZeroValue(s).orValue('none')", &["a", ""], &["+Fallback 'none'"]),
    ];
    for (text, strings, expected) in cases {
        assert_eq!(coverage(text, strings), expected, "{text}");
    }
    assert!(program("size(s)").branches().iter().all(|branch| branch.kind != BranchKind::Result));
}
