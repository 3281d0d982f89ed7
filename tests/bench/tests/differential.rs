//! A second opinion: the `cel` crate on generated expressions. Where it has another answer, the difference must be one
//! of [`DIFFERENCES`], and each of those must still occur.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use admit_cel::{Bindings, Env, Evaluation, Mode, Node, Type, Value, Version};
use bumpalo::Bump;
use serde_json::Value as Json;

#[path = "../../cel/generated.rs"]
mod generated;

use generated::{Tape, declared};

const EXPRESSIONS: u64 = 500;

/// What an engine says: a value, or that there is none.
#[derive(Debug, PartialEq)]
enum Answer {
    Value(Json),
    Error(String),
    Panic,
}

#[derive(Debug)]
struct Case {
    text: String,
    document: Json,
    ours: Answer,
    theirs: Answer,
}

impl Case {
    fn shown(&self) -> String {
        let Self { text, document, ours, theirs } = self;
        format!("{text}\n  self is {document}\n  ours {ours:?}\n  theirs {theirs:?}")
    }
}

/// A known difference: its name, why it is one, and whether a case shows it.
struct Difference(&'static str, &'static str, fn(&Case) -> bool);

/// None at present.
const DIFFERENCES: &[Difference] = &[];

#[test]
fn the_cel_crate_agrees_but_for_known_differences() {
    let peer = Arc::new(cel::Env::stdlib());
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut unexplained = Vec::new();
    for seed in 0..EXPRESSIONS {
        let bytes = bytes(seed);
        let tape = &mut Tape::new(&bytes);
        let (mut document, text) = (tape.document(), tape.expression());
        one_entry(&mut document);
        let case =
            Case { ours: ours(&text, &document), theirs: theirs(&peer, &text, &document), text, document };
        if agree(&case.ours, &case.theirs) {
            continue;
        }
        match DIFFERENCES.iter().find(|Difference(_, _, shows)| shows(&case)) {
            Some(Difference(name, ..)) => *seen.entry(name).or_default() += 1,
            None => unexplained.push(case),
        }
    }
    for Difference(name, reason, _) in DIFFERENCES {
        println!("{:5} {name}: {reason}", seen.get(name).copied().unwrap_or_default());
    }
    let shown: Vec<_> = unexplained.iter().take(20).map(Case::shown).collect();
    assert!(
        unexplained.is_empty(),
        "{} differ without explanation:\n{}",
        unexplained.len(),
        shown.join("\n")
    );
    for Difference(name, ..) in DIFFERENCES {
        assert!(seen.contains_key(name), "{name} does not occur any more: strike it off");
    }
}

/// The same bytes for the same seed, everywhere (xorshift).
fn bytes(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..120).map(|_| next()).collect()
}

/// The crate walks the entries of a map in the random order of a hash table, so that there is one answer to compare only
/// where there is one entry.
fn one_entry(document: &mut Json) {
    if let Some(Json::Object(map)) = document.get_mut("m") {
        let first = map.iter().next().map(|(name, value)| (name.clone(), value.clone()));
        *map = first.into_iter().collect();
    }
}

fn agree(ours: &Answer, theirs: &Answer) -> bool {
    match (ours, theirs) {
        (Answer::Error(_), Answer::Error(_)) => true,
        (Answer::Value(a), Answer::Value(b)) => same(a, b),
        _ => false,
    }
}

/// Equality of JSON, of numbers by value.
fn same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(x), Json::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        _ => a == b,
    }
}

fn ours(text: &str, document: &Json) -> Answer {
    let decl = declared();
    let env =
        Env::kubernetes(Version(1, 36), Mode::New).with_variable("self", Type::Object(Arc::clone(&decl)));
    let checked = env.compile(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let program = match env.program(&checked) {
        Ok(program) => program,
        Err(error) => return Answer::Error(error.to_string()),
    };
    let arena = Bump::new();
    let mut bindings = Bindings::new(&program);
    bindings.set("self", Value::from_node(&arena, Node::from_json(document), Some(&decl)).unwrap());
    let outcome = program.eval(&bindings, &mut Evaluation::new(&arena));
    match outcome.and_then(|value| value.to_json(&arena)) {
        Ok(value) => Answer::Value(value),
        Err(error) => Answer::Error(error.to_string()),
    }
}

fn theirs(env: &Arc<cel::Env>, text: &str, document: &Json) -> Answer {
    let evaluate = || {
        let program = env.compile(text).map_err(|error| error.to_string())?;
        let mut context = cel::Context::with_env(Arc::clone(env));
        context.add_variable_from_value("self", value(document));
        let value = program.execute(&context).map_err(|error| error.to_string())?;
        value.json().map_err(|error| error.to_string())
    };
    match catch_unwind(AssertUnwindSafe(evaluate)) {
        Ok(Ok(value)) => Answer::Value(value),
        Ok(Err(error)) => Answer::Error(error),
        Err(_) => Answer::Panic,
    }
}

/// The document with the number types that it declares: serde would make unsigned integers of the positive ones.
fn value(json: &Json) -> cel::Value {
    match json {
        Json::Null => cel::Value::Null,
        Json::Bool(b) => cel::Value::Bool(*b),
        Json::Number(number) => {
            number.as_i64().map_or_else(|| cel::Value::Float(number.as_f64().unwrap()), cel::Value::Int)
        }
        Json::String(text) => cel::Value::String(Arc::new(text.clone())),
        Json::Array(items) => cel::Value::List(Arc::new(items.iter().map(value).collect())),
        Json::Object(members) => {
            let members: std::collections::HashMap<String, cel::Value> =
                members.iter().map(|(name, member)| (name.clone(), value(member))).collect();
            cel::Value::Map(members.into())
        }
    }
}
