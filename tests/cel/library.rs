//! The table of the library against the recorded answers: whether each row is called by some recorded expression.

use std::collections::BTreeSet;

use admit_cel::types::parse_type;
use admit_cel::{Bindings, Env, Evaluation, Extra, Mode, Value, Version, library};
use bumpalo::Bump;
use serde_json::{Value as Json, json};

use crate::corpora::{corpora, rows};

/// The release that the answers were recorded from.
const RECORDED: Version = Version(1, 36);

/// Cases for rows that no recorded expression reaches; each is true.
const OWN_CASES: &[&str] = &[
    "sign(quantity('1')) == 1 && sign(quantity('-1')) == -1 && sign(quantity('0')) == 0",
    "optional.unwrap([optional.of(1), optional.none(), optional.of(2)]) == [1, 2]",
];

/// Authorization checks are recorded with the admission policies that use them.
fn is_recorded_elsewhere(row: &library::Overload) -> bool {
    row.signature.contains("kubernetes.authorization.")
}

fn overloads(base: &Env, row: &Json) -> Vec<&'static str> {
    let mut env = base.clone();
    for (name, variable) in row["vars"].as_object().into_iter().flatten() {
        if let Some(ty) = variable["type"].as_str().and_then(parse_type) {
            env = env.with_variable(name, ty);
        }
    }
    match row["expr"].as_str().map(|text| env.compile(text)) {
        Some(Ok(checked)) => checked.overloads().map(|row| row.id).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn every_row_has_a_recorded_case() {
    let Some(corpora) = corpora() else { return };
    let base = Env::kubernetes(RECORDED, Mode::New).with_library(Extra::JsonPatch);
    let reached: BTreeSet<_> = ["cel-expressions", "cel-spec"]
        .into_iter()
        .flat_map(|corpus| rows(&corpora.join(corpus)).collect::<Vec<_>>())
        .chain(OWN_CASES.iter().map(|text| json!({"expr": text})))
        .flat_map(|row| overloads(&base, &row))
        .collect();
    let missing: Vec<_> = library::rows()
        .filter(|row| row.is_in(RECORDED) && !reached.contains(row.id) && !is_recorded_elsewhere(row))
        .map(|row| row.id)
        .collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn own_cases_hold() {
    let env = Env::kubernetes(RECORDED, Mode::New);
    for text in OWN_CASES {
        let arena = Bump::new();
        let program = env.program(&env.compile(text).unwrap()).unwrap();
        let value = program.eval(&Bindings::new(&program), &mut Evaluation::new(&arena));
        assert!(matches!(value, Ok(Value::Bool(true))), "{text}: {value:?}");
    }
}

#[test]
fn later_releases_offer_more() {
    let text = "[1, 2].includes(2) && !'a'.includes('b')";
    assert!(Env::kubernetes(RECORDED, Mode::New).compile(text).is_err());
    let env = Env::kubernetes(Version(1, 37), Mode::New);
    let arena = Bump::new();
    let program = env.program(&env.compile(text).unwrap()).unwrap();
    let mut cx = Evaluation::new(&arena);
    let value = program.eval(&Bindings::new(&program), &mut cx);
    assert!(matches!(value, Ok(Value::Bool(true))), "{value:?}");
}
