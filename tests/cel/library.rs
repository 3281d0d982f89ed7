//! The table of the library against the recorded answers: whether each row is called by some recorded expression.

use std::collections::BTreeSet;

use admit_cel::{Bindings, Env, Evaluation, Extra, Mode, Value, Version, parse_type};
use bumpalo::Bump;
use serde_json::{Value as Json, json};

use crate::corpora::rows;

/// The release that the answers were recorded from.
const RECORDED: Version = Version(1, 36);

/// Cases for rows that no recorded expression reaches; each is true.
const OWN_CASES: &[&str] = &[
    "sign(quantity('1')) == 1 && sign(quantity('-1')) == -1 && sign(quantity('0')) == 0",
    "optional.unwrap([optional.of(1), optional.none(), optional.of(2)]) == [1, 2]",
];

/// Authorization checks are recorded with the admission policies that use them.
fn is_recorded_elsewhere(row: &admit_cel::Overload) -> bool {
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
    let corpora = ["cel-expressions", "cel-spec"].map(|corpus| testing::corpus(corpus).unwrap());
    let [Some(expressions), Some(spec)] = corpora else { return };
    let base = Env::kubernetes(RECORDED, Mode::New).with_library(Extra::JsonPatch);
    let reached: BTreeSet<_> = [expressions, spec]
        .into_iter()
        .flat_map(|corpus| rows(&corpus).collect::<Vec<_>>())
        .chain(OWN_CASES.iter().map(|text| json!({"expr": text})))
        .flat_map(|row| overloads(&base, &row))
        .collect();
    let missing: Vec<_> = admit_cel::overloads()
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

/// Arguments at the ends of ranges and worse: each call ends with a value or an error, without a panic and without
/// filling the memory.
const HOSTILE: &[&str] = &[
    "quantity('1e2147483647').add(quantity('1')).isInteger()",
    "quantity('1e-2147483648').asApproximateFloat()",
    "quantity('0e2147483647').asInteger()",
    "quantity('1e9999').add(quantity('1')).compareTo(quantity('1e-9999'))",
    "quantity('99999999999999999999e99999999').asApproximateFloat()",
    "quantity('1e2147483647').isGreaterThan(quantity('1e-2147483648'))",
    "quantity('-9223372036854775808').sub(1).sub(9223372036854775807).isInteger()",
    "timestamp('9999-12-31T23:59:59Z').getHours('-99999999999:00')",
    "timestamp('0001-01-01T00:00:00Z').getFullYear('9223372036854775807:59')",
    "timestamp('0001-01-01T00:00:00Z').getDayOfWeek('Asia/Kolkata')",
    "timestamp('9999-12-31T23:59:59.999999999Z') - duration('-1ns')",
    "duration('2562047h47m16.854775807s') + duration('2562047h47m16.854775807s')",
    "-dyn(duration('-2562047h47m16.854775808s'))",
    "'a'.find('(((((a{10}){10}){10}){9})){1}' + '')",
    r"'a'.matches(r'[^\x00-\x{10FFFF}]')",
    r"'a'.matches(r'\pL{1000}')",
    r"'a'.matches(r'(?i)\PL{500}')",
    r"'a'.matches(r'\x{D800}')",
    "'%.999999f %.999999e'.format([1.5, 2.5]).size()",
    "('%.' + '99999999999999999999f').format([1.5])",
    "'x'.charAt(9223372036854775807)",
    "'x'.substring(-9223372036854775807 - 1, 9223372036854775807)",
    "'x'.lastIndexOf('y', 9223372036854775807)",
    "'xé'.replace('', 'aaaa', 9223372036854775807).split('', -1).size()",
    "'é'.lastIndexOf('éé', 0)",
    "lists.range(9223372036854775807)",
    "lists.range(-1)",
    "lists.range(1000).distinct()",
    "sets.equivalent(lists.range(1000), lists.range(1000))",
    "[1].slice(9223372036854775807, 9223372036854775807)",
    "[[[[1]]]].flatten(9223372036854775807)",
    "[double('NaN'), 1.0, double('NaN'), -1.0].sort().size()",
    "cidr('0.0.0.0/0').containsIP('255.255.255.255') && cidr('::/0').masked().containsIP(ip('::1'))",
    "isIP('1:2:3:4:5:6:7:8:9') || isIP('::1.2.3.4%') || isIP(':') || isIP('1::2::')",
    "semver('18446744073709551615.0.0').major()",
    "semver('é', true).minor()",
    "isURL('http://[') || isURL('http://%') || isURL('//%zz@') || isURL('http://a:b@[::1%25]:x')",
    "url('/?%&=&a=%zz&;').getQuery()",
    "format.dns1123LabelPrefix().validate('é-').hasValue()",
    "format.datetime().validate('éTé').hasValue()",
    "int(9223372036854775807.0) > uint(-0.0)",
    "double('0x1p-99999999999') + double('0x' + '1'.replace('1', 'ffffffffffffffffffffffffffffffff') + 'p0')",
];

#[test]
fn hostile_arguments_end_in_a_value_or_an_error() {
    let env = Env::kubernetes(RECORDED, Mode::New);
    for text in HOSTILE {
        let checked = env.compile(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let arena = Bump::new();
        if let Ok(program) = env.program(&checked) {
            let _ = program.eval(&Bindings::new(&program), &mut Evaluation::new(&arena));
        }
    }
}
