//! Expressions over a document: evaluation ends within its limits, and data of the declared type finds its overloads.
//!
//! The first byte chooses: a tape of [`generated`], or a text over a fixed document without declared type.
#![no_main]

use std::sync::Arc;

use admit_cel::{Bindings, Env, EvalError, Evaluation, Mode, Node, Type, Value, Version};
use bumpalo::Bump;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value as Json, json};

#[path = "../../cel/generated.rs"]
mod generated;

/// Time for a run is bounded by the cost limit; this keeps one of them short.
const LIMIT: u64 = 100_000;
const MEMORY: usize = 8 << 20;

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    if choice % 2 == 0 {
        let tape = &mut generated::Tape::new(rest);
        let (document, text) = (tape.document(), tape.expression());
        if let Some(Err(error)) = run(&text, &document, true) {
            assert!(!error.to_string().starts_with("no such overload"), "{text}: {error}");
        }
    } else if let Ok(text) = std::str::from_utf8(rest) {
        let document = json!({
            "s": "text", "i": 7, "d": 1.5, "b": true, "z": null, "l": [3, 1, 2], "n": ["b", "a"], "m": {"k": {"v": 1}},
            "q": "100Mi", "t": "2024-01-01T00:00:00Z", "u": "https://h:1/p?q=1", "a": "10.0.0.1", "v": "1.2.3"
        });
        let _ = run(text, &document, false);
    }
});

fn run(text: &str, document: &Json, is_declared: bool) -> Option<Result<(), EvalError>> {
    let decl = is_declared.then(generated::declared);
    let ty = decl.as_ref().map_or(Type::Dyn, |decl| Type::Object(Arc::clone(decl)));
    let env = Env::kubernetes(Version(1, 36), Mode::Stored).with_variable("self", ty);
    let program = env.program(&env.compile(text).ok()?).ok()?;
    let arena = Bump::new();
    let mut bindings = Bindings::new(&program);
    bindings.set("self", Value::from_node(&arena, Node::from_json(document), decl.as_deref()).ok()?);
    let mut cx = Evaluation::new(&arena).per_call_limit(LIMIT).max_arena_bytes(MEMORY);
    Some(program.eval(&bindings, &mut cx).map(|_| ()))
}
