//! Any text: checking, estimating and planning end, whatever the types of variables.
#![no_main]

use std::sync::Arc;

use admit_cel::{Env, Mode, SizeHints, Type, Version};
use libfuzzer_sys::fuzz_target;

#[path = "../../cel/generated.rs"]
#[expect(dead_code, reason = "of the generator only the type of the variable is needed")]
mod generated;

fuzz_target!(|text: &str| {
    let decl = generated::declared();
    let env = Env::kubernetes(Version(1, 36), Mode::Stored)
        .with_variable("self", Type::Object(Arc::clone(&decl)))
        .with_variable("x", Type::Dyn);
    let Ok(checked) = env.compile(text) else { return };
    let _ = checked.estimate(&SizeHints { root: Some(decl) });
    let _ = env.program(&checked);
});
