//! Explaining: the outcome of every sub-expression, with its place.

use admit_cel::{Bindings, Env, Evaluation, Mode, Type, Value, Version};
use bumpalo::Bump;

#[test]
fn every_sub_expression_is_noted_in_the_order_of_its_completion() {
    let text = "size(s) > 2 && s.startsWith('ab')";
    let env = Env::kubernetes(Version(1, 36), Mode::New).with_variable("s", Type::String);
    let program = env.program_as_written(&env.compile(text).unwrap()).unwrap();
    let arena = Bump::new();
    let mut bindings = Bindings::new(&program);
    bindings.set("s", Value::String("abc"));
    let mut trace = Vec::new();
    program.explain(&bindings, &mut Evaluation::new(&arena), &mut trace).unwrap();
    let noted: Vec<_> = trace
        .iter()
        .map(|entry| {
            let value = entry.outcome.as_ref().unwrap().to_json(&arena).unwrap().to_string();
            (&text[entry.span.start as usize..entry.span.end as usize], value)
        })
        .collect();
    let values: Vec<_> = noted.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(values, ["\"abc\"", "3", "true", "\"abc\"", "true", "true"], "{noted:?}");
}
