//! The checker: types of expressions, names in containers, static costs over declared types.

use std::sync::Arc;

use admit_cel::{
    Bounds, CompileError, DeclField, DeclKind, DeclType, Env, EvalError, ListType, Mode, Overload,
    SignatureError, SizeHints, Type, Version, parse_type,
};

fn env(variables: &[(&str, &str)]) -> Env {
    let types = variables.iter().map(|(name, ty)| (*name, parse_type(ty).unwrap()));
    Env::kubernetes(Version(1, 36), Mode::New).with_variables(types)
}

fn first_line(error: &CompileError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

#[test]
fn types_follow_from_parts() {
    let env = env(&[
        ("d", "dyn"),
        ("l", "list(int)"),
        ("m", "map(string, list(int))"),
        ("o", "optional_type(int)"),
    ]);
    let cases = [
        ("[]", "list(dyn)"),
        ("[[], [1]]", "list(list(int))"),
        ("{}", "map(dyn, dyn)"),
        ("{'a': []}", "map(string, list(dyn))"),
        ("d.a.b[0]", "dyn"),
        ("m.a[0]", "int"),
        ("m.?a", "optional_type(list(int))"),
        ("m.?a[0]", "optional_type(int)"),
        ("o.orValue(0)", "int"),
        ("o.optMap(v, string(v))", "optional_type(string)"),
        ("l.map(x, [x])", "list(list(int))"),
        ("m.transformMap(k, v, v.size())", "map(string, int)"),
        ("d ? 1 : 2", "int"),
        ("d == 1 ? d : 2", "dyn"),
        ("type(1)", "type(int)"),
        ("d + 1", "int"),
        ("d + d", "dyn"),
        ("[1, 2][d]", "int"),
        ("[?o, ?optional.none()]", "list(int)"),
        ("type(d) == google.protobuf.Timestamp", "bool"),
        ("size(d) + 1", "int"),
    ];
    for (text, expected) in cases {
        let checked = env.compile(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(checked.output_type().to_string(), expected, "{text}");
    }
}

#[test]
fn type_names_survive_reading_and_writing() {
    for text in [
        "list(map(string, optional_type(wrapper(int))))",
        "type(list(dyn))",
        "map(int, net.IP)",
        "kubernetes.Quantity",
        "list(A)",
    ] {
        assert_eq!(parse_type(text).unwrap().to_string(), text);
    }
    for (text, stands_for) in [
        ("google.protobuf.Struct", "map(string, dyn)"),
        ("google.protobuf.ListValue", "list(dyn)"),
        ("list(google.protobuf.Any)", "list(dyn)"),
        ("google.protobuf.UInt32Value", "wrapper(uint)"),
        ("google.protobuf.Duration", "duration"),
        ("google.protobuf.FieldMask", "google.protobuf.FieldMask"),
    ] {
        assert_eq!(parse_type(text).unwrap().to_string(), stands_for);
    }
    for text in ["lst(int)", "list(int", "map(int)", "", "a b"] {
        assert_eq!(parse_type(text), None, "{text}");
    }
}

#[test]
fn releases_decide_what_is_known() {
    let accepts = |minor, text: &str| Env::kubernetes(Version(1, minor), Mode::New).compile(text).is_ok();
    for (text, since) in [
        ("optional.none()", 28),
        ("[1].exists(i, v, v == i)", 32),
        ("[1].sortBy(x, x) == [1]", 34),
        ("type(1) == net.IP", 30),
        ("{?'a': optional.none()} == {}", 28),
    ] {
        assert!(!accepts(since - 1, text), "{text} before 1.{since}");
        assert!(accepts(since, text), "{text} from 1.{since} on");
    }
    for text in ["cel.bind(x, 1, x)", "math.greatest(1, 2)", "base64.encode(b'a')", "a.`b`"] {
        assert!(!accepts(36, text), "{text}");
    }
}

fn scalar(ty: Type, max_elements: Option<u64>) -> Arc<DeclType> {
    Arc::new(DeclType { max_elements, ..DeclType::unbounded(DeclKind::Scalar(ty)) })
}

/// An object with a name of at most 10 characters, at most 5 tags of at most 20, and a number.
fn document() -> Arc<DeclType> {
    let items = scalar(Type::String, Some(20));
    let tags = DeclKind::List { items, list_type: ListType::Atomic };
    let field =
        |name: &str, decl| DeclField { name: name.into(), cel_name: name.into(), decl, required: false };
    let fields = [
        field("name", scalar(Type::String, Some(10))),
        field("number", scalar(Type::Int, None)),
        field("tags", Arc::new(DeclType { max_elements: Some(5), ..DeclType::unbounded(tags) })),
    ];
    let kind = DeclKind::Object { name: "Document".into(), fields: fields.into() };
    Arc::new(DeclType { max_elements: Some(0), ..DeclType::unbounded(kind) })
}

#[test]
fn sizes_come_from_the_declared_type() {
    let decl = document();
    let env = env(&[]).with_variable("self", Type::Object(Arc::clone(&decl)));
    let sizes = SizeHints { root: Some(decl) };
    let cases = [
        ("self.name.contains('ab')", (2, 3)),
        // Two for the range, one for the result, and at most five rounds of two for the condition and three for the step.
        ("self.tags.all(t, t.startsWith('a'))", (3, 28)),
        ("has(self.name)", (1, 1)),
        // A number is of no size, so that comparing costs nothing.
        ("self.number == 1", (2, 2)),
    ];
    for (text, (min, max)) in cases {
        let estimate = env.compile(text).unwrap().estimate(&sizes);
        assert_eq!(estimate, Bounds { min, max }, "{text}");
    }
    let unknown = env.compile("self.name.contains('ab')").unwrap().estimate(&SizeHints::default());
    assert_eq!(unknown.max, 1_844_674_407_370_955_266);
}

#[test]
fn objects_tell_their_fields() {
    let env = env(&[("n", "wrapper(int)")]).with_variable("self", Type::Object(document()));
    for (text, expected) in [
        ("n{}", "ERROR: <input>:1:2: 'wrapper(int)' is not a type"),
        ("self.nme", "ERROR: <input>:1:5: undefined field 'nme'"),
        ("has(self.nme)", "ERROR: <input>:1:4: undefined field 'nme'"),
        (
            "self.name + 1",
            "ERROR: <input>:1:11: found no matching overload for '_+_' applied to '(string, int)'",
        ),
        ("self + 1", "ERROR: <input>:1:6: found no matching overload for '_+_' applied to '(Document, int)'"),
    ] {
        assert_eq!(first_line(&env.compile(text).unwrap_err()), expected, "{text}");
    }
}

/// Abstract types of the caller: parameters follow from arguments, join in literals and give way to `dyn`.
#[test]
fn functions_of_the_caller_are_over_types_of_the_caller() {
    const fn row(id: &'static str, signature: &'static str) -> Overload {
        Overload::new(
            id,
            signature,
            |_, args| args.first().copied().ok_or(EvalError::NoSuchOverload),
            "Its own.",
        )
    }
    const ROWS: &[Overload] = &[
        row("cell_of", "cell(T) -> cell(T)"),
        row("cell_get", "cell(T).get() -> T"),
        row("cell_first", "first(list(cell(T))) -> T"),
        row("either_of", "either(L, R) -> either(L, R)"),
        row("either_merge", "either(T, T).merge() -> cell(T)"),
        row("units_one", "units.one() -> unit"),
    ];
    let env = env(&[("d", "dyn"), ("n", "int")])
        .with_mixed_literals()
        .with_type("cell", 1)
        .with_type("either", 2)
        .with_type("unit", 0)
        .with_functions(ROWS)
        .unwrap();
    let env = env.with_variable("c", env.parse_type("cell(list(int))").unwrap());
    for (text, expected) in [
        ("cell(n)", "cell(int)"),
        ("cell([]).get()", "list(dyn)"),
        ("c.get()[0] + 1", "int"),
        ("c == cell([1])", "bool"),
        ("[cell(1), cell(d)]", "list(cell(dyn))"),
        ("[cell(1), cell('a')]", "list(dyn)"),
        ("first([cell({'a': 1u})])", "map(string, uint)"),
        ("either(1, 'a')", "either(int, string)"),
        ("either(d, 1).merge().get()", "dyn"),
        ("[units.one()]", "list(unit)"),
    ] {
        let checked = env.compile(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(checked.output_type().to_string(), expected, "{text}");
    }
    for (text, expected) in [
        (
            "c == cell(['a'])",
            "found no matching overload for '_==_' applied to '(cell(list(int)), cell(list(string)))'",
        ),
        (
            "either(1, 'a').merge()",
            "found no matching overload for 'merge' applied to 'either(int, string).()'",
        ),
        ("c.value", "type 'cell(list(int))' does not support field selection"),
        (
            "cell(1).all(x, true)",
            "expression of type 'cell(int)' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
    ] {
        let error = env.compile(text).unwrap_err();
        assert_eq!(error.diagnostics()[0].message, expected, "{text}");
    }
    let unknown = Env::standard().with_type("either", 1).with_functions(ROWS);
    assert_eq!(unknown.unwrap_err(), SignatureError("cell(T) -> cell(T)"));
}

/// The deepest expressions the parser lets through are checked and estimated on the stack of a test's thread.
#[test]
fn depth_is_no_danger() {
    let env = env(&[("a", "dyn"), ("l", "list(dyn)")]);
    let nested = |n: usize, open: &str, middle: &str, close: &str| open.repeat(n) + middle + &close.repeat(n);
    for text in [
        nested(248, "a||a&&!dyn(", "a", ")"),
        nested(248, "l.all(x, ", "true", ")"),
        nested(248, "l.map(x, ", "x", ")"),
        nested(123, "l.map(x, a||a&&!dyn(", "x", "))"),
        nested(248, "{'a': ", "a", "}"),
        nested(248, "a.?b.optMap(x, ", "x", ")"),
        "a".to_owned() + &" + 1".repeat(249),
        "a".to_owned() + &".b".repeat(249),
        "a".to_owned() + &".map(x, x)".repeat(249),
    ] {
        let start: String = text.chars().take(30).collect();
        let checked = env.compile(&text).unwrap_or_else(|error| panic!("{start}: {}", first_line(&error)));
        assert!(checked.estimate(&SizeHints::default()).max > 0, "{start}");
    }
}

/// What takes a checker long is refused, or quick.
#[test]
fn hostile_expressions_are_answered() {
    let env = env(&[("l", "list(int)")]);
    let doubling: String =
        (0..100).map(|level| format!("[{{x{level}: x{level}}}].map(x{}, ", level + 1)).collect();
    let refused = [
        (format!("l.map(x0, {doubling}1{}", ")".repeat(101)), "has more than 500 parts"),
        (format!("[{}u]", "u, ".repeat(30_000)), "\n29901 more errors were truncated"),
        (format!("[{}u]", "'a', 1, ".repeat(10_000)), "undeclared reference to 'u'"),
    ];
    for (text, expected) in refused {
        let error = env.compile(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{}", error.chars().take(300).collect::<String>());
    }
    for text in [
        format!("[{}1]", "1, ".repeat(30_000)),
        format!("[{}?optional.of(1)]", "?optional.of(1), ".repeat(5_000)),
        format!("'%s'.format([[{}1]])", "'a', 1, ".repeat(10_000)),
    ] {
        assert!(env.compile(&text).is_ok(), "{}", text.chars().take(30).collect::<String>());
    }
}
