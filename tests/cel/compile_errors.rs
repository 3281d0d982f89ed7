//! Expressions that Kubernetes refuses, each with the whole text of its answer (corpus `cel-compile-errors`).

use std::sync::Arc;

use admit_cel::{Env, Mode, Type, Version, parse_type};

use crate::corpora::rows;

/// `wrapper_string` is the corpus' name of a nullable string.
fn variable_type(text: &str) -> Type {
    let nullable =
        text.strip_prefix("wrapper_").and_then(parse_type).map(|inner| Type::Wrapper(Arc::new(inner)));
    nullable.or_else(|| parse_type(text)).unwrap_or_else(|| panic!("no type: {text}"))
}

/// The answer to one row in place of the recorded one, or none where they agree.
fn disagreement(base: &Env, row: &serde_json::Value) -> Option<String> {
    let mut env = base.clone();
    for (name, variable) in row["vars"].as_object().into_iter().flatten() {
        let text = variable["type"].as_str().unwrap();
        env = env.with_variable(name, variable_type(text));
    }
    let answer = match env.compile(row["expr"].as_str().unwrap()) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => format!("compilation failed: {error}"),
    };
    (answer != row["error"]).then_some(answer)
}

#[test]
fn refusals_agree_to_the_character() {
    let Some(corpus) = testing::corpus("cel-compile-errors").unwrap() else { return };
    let base = Env::kubernetes(Version(1, 36), Mode::New);
    let (mut passed, mut failed) = (0, 0);
    for row in rows(&corpus) {
        match disagreement(&base, &row) {
            None => passed += 1,
            Some(answer) => {
                failed += 1;
                if failed <= 20 {
                    println!("{} {}\n  want {}\n  got  {answer}", row["id"], row["expr"], row["error"]);
                }
            }
        }
    }
    println!("cel-compile-errors: {passed} passed, {failed} failed");
    assert_eq!(failed, 0);
}
