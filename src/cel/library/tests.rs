//! Tests invariants of every row.

use std::collections::HashSet;

use super::{Context, Functions, Offer, Signature, Version, kubernetes, overloads};
use crate::value::{List, Value};

#[test]
fn ids_are_unique_signatures_parse_and_rows_are_documented() {
    let mut ids = HashSet::new();
    for row in overloads().chain(kubernetes::jsonpatch::ROWS) {
        assert!(ids.insert(row.id), "{} twice", row.id);
        assert!(Signature::parse(row.signature).is_some(), "{}: {}", row.id, row.signature);
        assert!(row.doc.ends_with('.') && !row.doc.contains('\n'), "{}: {}", row.id, row.doc);
    }
}

#[test]
fn arguments_choose_the_overload_and_failures_are_worded_as_the_reference_words_them() {
    let functions =
        Functions::kubernetes(Offer { compatible: Version(1, 36), release: Version(1, 36), books: true });
    let arena = bumpalo::Bump::new();
    let context = Context { arena: &arena };
    let choose = |name, args: &[Value<'static>]| {
        let row = functions.get(name).unwrap().choose(args).map_err(|error| error.to_string())?;
        (row.implementation)(&context, args).map(|_| row.id).map_err(|error| error.to_string())
    };
    assert_eq!(choose("_+_", &[Value::Int(1), Value::Int(1)]), Ok("add_int64"));
    assert_eq!(choose("size", &[Value::String("a")]), Ok("size_string"));
    for (name, args, text) in [
        ("_+_", &[Value::Int(1), Value::Double(1.0)][..], "no such overload"),
        ("_+_", &[Value::Null, Value::Null], "no such overload: _+_"),
        ("_<_", &[Value::Null, Value::Null], "no such overload: _<_"),
        ("int", &[Value::Bytes(b"1")], "no such overload: int(bytes)"),
        ("size", &[Value::Int(1)], "no such overload: size"),
        ("contains", &[Value::Int(1), Value::String("")], "no such overload"),
        ("sort", &[Value::List(List::Values(&[Value::Null]))], "list elements must be comparable"),
    ] {
        assert_eq!(choose(name, args), Err(text.to_owned()), "{name}");
    }
}
