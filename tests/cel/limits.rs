//! Limits: cost, deadline, memory, depth. What they stop, they stop for good.

use std::cell::Cell;

use admit_cel::{Bindings, Env, EvalError, Evaluation, List, Mode, Type, Value, Version};
use bumpalo::Bump;

fn env() -> Env {
    Env::kubernetes(Version(1, 36), Mode::New).with_variable("l", Type::List(Type::Int.into()))
}

/// Runs an expression over a list of 200 numbers.
fn run(
    text: &str,
    set: impl for<'a> FnOnce(Evaluation<'a>) -> Evaluation<'a>,
) -> (Result<String, EvalError>, u64) {
    let env = env();
    let program = env.program(&env.compile(text).unwrap()).unwrap();
    let arena = Bump::new();
    let mut bindings = Bindings::new(&program);
    bindings.set(
        "l",
        Value::List(List::Values(arena.alloc_slice_fill_iter((0..200_i32).map(|i| Value::Int(i.into()))))),
    );
    let mut cx = set(Evaluation::new(&arena));
    let outcome = program.eval(&bindings, &mut cx).map(|value| value.to_json(&arena).unwrap().to_string());
    (outcome, cx.cost())
}

#[test]
fn the_cost_limit_ends_an_evaluation_whatever_stands_around_it() {
    let nested = "l.all(x, l.all(y, l.all(z, x + y + z >= 0)))";
    for text in [nested.to_owned(), format!("{nested} || true"), format!("[{nested}].exists(x, x)")] {
        let (outcome, cost) = run(&text, |cx| cx);
        assert_eq!(outcome, Err(EvalError::CostLimitExceeded), "{text}");
        assert_eq!(cost, 1_000_001, "{text}");
    }
    let (outcome, cost) = run("l.all(x, x >= 0)", |cx| cx.per_call_limit(10));
    assert_eq!((outcome, cost), (Err(EvalError::CostLimitExceeded), 11));
}

#[test]
fn a_budget_is_shared_and_may_be_overspent_once() {
    let env = env();
    let program = env.program(&env.compile("1 + 1 == 2").unwrap()).unwrap();
    let arena = Bump::new();
    let bindings = Bindings::new(&program);
    let mut cx = Evaluation::new(&arena).budget(5);
    for left in [Some(3), Some(1), None, None] {
        program.eval(&bindings, &mut cx).unwrap();
        assert_eq!((cx.cost(), cx.budget_left()), (2, left));
    }
}

#[test]
fn the_deadline_is_asked_every_hundred_iterations() {
    let env = env();
    let program = env.program(&env.compile("l.all(x, l.all(y, x >= 0)) || true").unwrap()).unwrap();
    let arena = Bump::new();
    let mut bindings = Bindings::new(&program);
    bindings.set(
        "l",
        Value::List(List::Values(arena.alloc_slice_fill_iter((0..200_i32).map(|i| Value::Int(i.into()))))),
    );
    let asked = Cell::new(0);
    let expired = || {
        asked.set(asked.get() + 1);
        asked.get() == 3
    };
    let mut cx = Evaluation::new(&arena).deadline(&expired);
    assert_eq!(program.eval(&bindings, &mut cx).unwrap_err(), EvalError::Interrupted);
    assert_eq!(asked.get(), 3);
    // Three iterations of the inner fold cost four each, and every start of it one more.
    assert!(cx.cost() < 300 * 8, "{}", cx.cost());
}

#[test]
fn an_arena_that_is_full_ends_an_evaluation() {
    let (outcome, _) = run("l.map(x, l.map(y, l)).size() > 0", |cx| cx.max_arena_bytes(100_000));
    assert_eq!(outcome, Err(EvalError::MemoryLimitExceeded));
}

#[test]
fn depth_within_the_parsers_limit_fits_a_small_stack() {
    let expressions = [
        format!("{}1{}", "(".repeat(120), ")".repeat(120)),
        format!("{}true", "!dyn(".repeat(60)) + &")".repeat(60),
        format!("1{}", " + 1".repeat(120)),
        format!("{}1{} == [1]", "[".repeat(120), "]".repeat(120)),
        format!("{}[1]{}", "[1].map(x, ".repeat(20), ")".repeat(20)),
        format!("{}1", "l.size() > 0 ? 1 : ".repeat(60)),
    ];
    let worker = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
        for text in expressions {
            let env = env();
            let Ok(checked) = env.compile(&text) else { continue };
            let program = env.program(&checked).unwrap();
            let arena = Bump::new();
            // Whatever the answer: that there is one is the point.
            let _ = program.eval(&Bindings::new(&program), &mut Evaluation::new(&arena));
        }
    });
    worker.unwrap().join().unwrap();
}

/// Each of these would need gigabytes; none of them costs much before it is made.
#[test]
fn results_of_absurd_size_are_refused() {
    let doubled = (0..40).fold("[l]".to_owned(), |text, _| format!("{text}.map(x, x + x)"));
    let text = (0..40).fold("['ab']".to_owned(), |text, _| format!("{text}.map(x, x + x)"));
    let replaced =
        (0..6).fold("['abcdefgh']".to_owned(), |text, _| format!("{text}.map(x, x.replace('', x))"));
    for text in [
        "lists.range(9000000000).size()".to_owned(),
        format!("{doubled}[0].size()"),
        format!("{text}[0].size()"),
        format!("{replaced}[0].size()"),
    ] {
        let (outcome, _) = run(&text, |cx| cx.per_call_limit(u64::MAX));
        let refusals = [EvalError::MemoryLimitExceeded, EvalError::CostLimitExceeded];
        assert!(outcome.as_ref().is_err_and(|error| refusals.contains(error)), "{text:.60}: {outcome:?}");
    }
}

/// What folding saves and macros hide: the empty list or map that a macro starts from, and the list of the one element
/// that every round adds.
#[test]
fn without_folding_every_literal_is_paid_for() {
    let env = env();
    for (text, folded, as_written) in [
        ("[7, 8]", 0, 10),
        ("[7, 8].map(i, i)", 27, 47),
        ("[7, 8].map(i, 0)", 5, 45),
        ("[7, 8].filter(i, i > 7)", 18, 38),
        ("[7].filter(i, i / 0 > 7)", 4, 14),
        ("[].transformMap(i, v, v)", 1, 41),
        ("7 in [7, 8]", 0, 12),
    ] {
        let cost = |env: &Env| {
            let program = env.program(&env.compile(text).unwrap()).unwrap();
            let arena = Bump::new();
            let mut cx = Evaluation::new(&arena);
            let _ = program.eval(&Bindings::new(&program), &mut cx);
            cx.cost()
        };
        assert_eq!((cost(&env), cost(&env.without_folding())), (folded, as_written), "{text}");
    }
}
