//! Tests that planning changes no result: recorded expressions are planned in three ways, and the results compared.

use bumpalo::Bump;
use serde_json::Value as Json;

use super::{Env, Mode};
use crate::eval::{Bindings, Evaluation};
use crate::library::Version;
use crate::plan::{Options, PatternSum, ProgramError};

/// Returns the value or error as text, and the cost.
fn outcome(env: &Env, text: &str, options: Options) -> Option<Result<(String, u64), ProgramError>> {
    let checked = env.compile(text).ok()?;
    let program = match env.plan(&checked, options, &mut PatternSum::default()) {
        Ok(program) => program,
        Err(error) => return Some(Err(error)),
    };
    let arena = Bump::new();
    let mut cx = Evaluation::new(&arena);
    let outcome = program.eval(&Bindings::new(&program), &mut cx);
    let text = match outcome {
        Ok(value) => value.to_json(&arena).map_or_else(|_| value.go_text(), |json| json.to_string()),
        Err(error) => error.to_string(),
    };
    Some(Ok((text, cx.cost())))
}

/// Recorded expressions that name no variables.
fn expressions() -> Vec<String> {
    let Some(corpus) = testing::corpus("cel-expressions").unwrap() else { return Vec::new() };
    let mut expressions = Vec::new();
    for file in std::fs::read_dir(corpus)
        .unwrap()
        .flatten()
        .filter(|file| file.path().extension().is_some_and(|e| e == "jsonl"))
    {
        for line in std::fs::read_to_string(file.path()).unwrap().lines() {
            // Rows beyond serde_json's nesting are about depth alone.
            let Ok(row) = serde_json::from_str::<Json>(line) else { continue };
            if row.get("vars").is_none() && row.get("panic").is_none() {
                expressions.push(row["expr"].as_str().unwrap().to_owned());
            }
        }
    }
    expressions
}

#[test]
fn folds_of_macros_answer_and_cost_what_their_expansions_do() {
    let env = Env::kubernetes(Version(1, 36), Mode::New);
    for text in expressions() {
        let told = outcome(&env, &text, Options::default());
        let spelled = outcome(&env, &text, Options { tells_macros: false, ..Options::default() });
        assert_eq!(told, spelled, "{text}");
    }
}

#[test]
fn constant_folding_changes_no_value() {
    let env = Env::kubernetes(Version(1, 36), Mode::New);
    for text in expressions() {
        let folded = outcome(&env, &text, Options::default());
        let plain = outcome(&env, &text, Options { folds: false, tells_macros: false, ..Options::default() });
        match (folded, plain) {
            (Some(Ok((folded, _))), Some(Ok((plain, _)))) => assert_eq!(folded, plain, "{text}"),
            // What folding finds wrong with a program, evaluation may absorb.
            (Some(Err(_)), Some(Ok(_))) | (None, None) => {}
            (folded, plain) => assert_eq!(folded, plain, "{text}"),
        }
    }
}

#[test]
fn a_variable_is_used_unless_a_comprehension_hides_it() {
    let env = Env::kubernetes(Version(1, 36), Mode::New)
        .with_variable("x", crate::types::Type::List(crate::types::Type::Int.into()));
    for (text, uses) in [
        ("x.size() == 0", true),
        ("[1].all(x, x == 1)", false),
        ("[1].all(y, y in x)", true),
        ("x.all(x, x == 1)", true),
        ("[1].exists(y, [2].exists(x, x > y))", false),
        ("{'x': 1}.x == 1", false),
    ] {
        assert_eq!(env.compile(text).unwrap().uses_variable("x"), uses, "{text}");
    }
}
