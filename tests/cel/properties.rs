//! Properties of generated expressions over generated documents.

use std::sync::Arc;

use admit_cel::{
    Bindings, DeclType, Env, EvalError, Evaluation, Mode, Node, Program, SizeHints, Source, Trace, Type,
    Value, Version, syntax,
};
use bumpalo::Bump;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value as Json;

use crate::generated::{Tape, declared};
use crate::syntax::{options, shape};

/// Parts of expressions that the reference's estimator takes for cheaper than its meter does, and why. Recorded costs
/// and estimates hold us to both.
const UNDERESTIMATED: [(&str, &str); 6] = [
    ("startsWith", "the estimate looks at the argument, the meter at the receiver"),
    ("endsWith", "as startsWith"),
    (
        ")[",
        "an index of what a call returned is one operation to the estimator, an operand and a link to the meter",
    ),
    ("][", "the same of a list literal"),
    (".?", "a field selected from an optional is free to the estimator, a link to the meter"),
    ("].", "the estimator takes items of a list literal for empty, whatever their size"),
];

fn tapes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..200)
}

/// The value in CEL notation or the text of the error, and the cost.
fn evaluated(program: &Program, document: &Json, decl: &Arc<DeclType>) -> (Result<String, String>, u64) {
    let arena = Bump::new();
    let mut bindings = Bindings::new(program);
    bindings.set("self", Value::from_node(&arena, Node::from_json(document), Some(decl)).unwrap());
    let mut cx = Evaluation::new(&arena);
    let outcome = program.eval(&bindings, &mut cx);
    (outcome.map(|value| value.preview(10_000)).map_err(|error| error.to_string()), cx.cost())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printing_and_parsing_again_gives_the_same_tree(tape in tapes()) {
        let text = Tape::new(&tape).expression();
        let ast = syntax::parse(&Source::new(&text), &options()).unwrap();
        let printed = ast.to_string();
        let again = syntax::parse(&Source::new(&printed), &options()).unwrap();
        prop_assert_eq!(shape(&ast, ast.root()), shape(&again, again.root()), "{}\nprinted {}", text, printed);
        prop_assert_eq!(again.to_string(), printed);
    }

    #[test]
    fn a_checked_expression_finds_its_overloads_and_costs_no_more_than_estimated(tape in tapes()) {
        let tape = &mut Tape::new(&tape);
        let (document, text) = (tape.document(), tape.expression());
        let decl = declared();
        let env = Env::kubernetes(Version(1, 36), Mode::New)
            .with_variable("self", Type::Object(Arc::clone(&decl)));
        let checked = env.compile(&text).unwrap();
        let estimate = checked.estimate(&SizeHints { root: Some(Arc::clone(&decl)) });
        let Ok(program) = env.program(&checked) else { return Ok(()) };

        let (outcome, cost) = evaluated(&program, &document, &decl);
        if let Err(error) = outcome {
            prop_assert!(!error.starts_with("no such overload"), "{}: {}", text, error);
        }
        if !UNDERESTIMATED.iter().any(|(part, _)| text.contains(part)) {
            prop_assert!(cost <= estimate.max, "{}: cost {} of {:?}", text, cost, estimate);
        }
    }

    #[test]
    fn an_observer_changes_neither_outcome_nor_cost(tape in tapes()) {
        let tape = &mut Tape::new(&tape);
        let (document, text) = (tape.document(), tape.expression());
        let decl = declared();
        // Documents without a declared type are walked in another way.
        for ty in [Type::Object(Arc::clone(&decl)), Type::Dyn] {
            let env = Env::kubernetes(Version(1, 36), Mode::New).with_variable("self", ty.clone());
            // What is dyn may fit where a type does not, and the other way round.
            let Ok(checked) = env.compile(&text) else { continue };
            let Ok(program) = env.program(&checked) else { continue };
            let decl = (ty != Type::Dyn).then_some(&*decl);
            let arena = Bump::new();
            let mut bindings = Bindings::new(&program);
            bindings.set("self", Value::from_node(&arena, Node::from_json(&document), decl).unwrap());
            let shown = |outcome: Result<Value<'_>, EvalError>| {
                outcome.map(|value| value.preview(10_000)).map_err(|error| error.to_string())
            };
            let mut cx = Evaluation::new(&arena);
            let outcome = (shown(program.eval(&bindings, &mut cx)), cx.cost());
            let mut trace = Trace::new(1_000);
            let observed = (shown(program.observe(&bindings, &mut cx, &mut trace)), cx.cost());
            prop_assert_eq!(outcome, observed, "{}", text);
        }
    }

    #[test]
    fn folding_changes_no_outcome_and_saves_cost(tape in tapes()) {
        let tape = &mut Tape::new(&tape);
        let (document, text) = (tape.document(), tape.expression());
        let decl = declared();
        let folding = Env::kubernetes(Version(1, 36), Mode::New)
            .with_variable("self", Type::Object(Arc::clone(&decl)));
        let as_written = folding.without_folding();
        let program = as_written.program(&as_written.compile(&text).unwrap()).unwrap();
        let (expected, most) = evaluated(&program, &document, &decl);
        match folding.program(&folding.compile(&text).unwrap()) {
            Ok(program) => {
                let (outcome, cost) = evaluated(&program, &document, &decl);
                prop_assert_eq!(outcome, expected, "{}", text);
                prop_assert!(cost <= most, "{}: {} folded, {} as written", text, cost, most);
            }
            // What would fail wherever it is evaluated may stand where it is not.
            Err(error) => if let Err(expected) = expected {
                prop_assert!(error.to_string().ends_with(&expected), "{}: {} for {}", text, error, expected);
            }
        }
    }
}
