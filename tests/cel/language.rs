//! What the environments offer beyond Kubernetes' libraries: messages that every environment can construct, the language
//! of `Env::standard`, extension libraries that Kubernetes refuses, expressions that are not checked.

use admit_cel::{Bindings, Checked, CompileError, Env, Evaluation, Extra, Mode, Type, Value, Version};
use bumpalo::Bump;

fn kubernetes() -> Env {
    Env::kubernetes(Version(1, 36), Mode::New)
}

/// The value in CEL notation, or the text of the error of whatever stage.
fn outcome(env: &Env, compile: impl Fn(&Env, &str) -> Result<Checked, CompileError>, text: &str) -> String {
    let checked = match compile(env, text) {
        Ok(checked) => checked,
        Err(error) => {
            return error.diagnostics().first().map_or_else(String::new, |first| first.message.clone());
        }
    };
    let program = match env.program(&checked) {
        Ok(program) => program,
        Err(error) => return error.to_string(),
    };
    let arena = Bump::new();
    let mut bindings = Bindings::new(&program);
    bindings.set("n", Value::Int(7));
    match program.eval(&bindings, &mut Evaluation::new(&arena)) {
        Ok(value) => value.preview(200),
        Err(error) => error.to_string(),
    }
}

#[test]
fn messages_that_every_environment_knows_become_values() {
    let env = kubernetes().with_variable("n", Type::Int);
    for (text, expected) in [
        ("google.protobuf.Int64Value{value: n}", "7"),
        ("google.protobuf.Int32Value{}", "0"),
        (
            "google.protobuf.Int32Value{value: 2147483648}",
            "field type conversion error for google.protobuf.Int32Value.value value type: integer overflow",
        ),
        (
            "google.protobuf.UInt32Value{value: 4294967296u}",
            "field type conversion error for google.protobuf.UInt32Value.value value type: unsigned integer overflow",
        ),
        ("google.protobuf.FloatValue{value: 0.1}", "0.10000000149011612"),
        ("google.protobuf.BoolValue{value: true} || false", "true"),
        ("google.protobuf.StringValue{value: 'a'} + 'b'", "\"ab\""),
        ("google.protobuf.BytesValue{}", "b\"\""),
        ("google.protobuf.Duration{seconds: 3, nanos: 5}", "duration(\"3.000000005s\")"),
        ("google.protobuf.Timestamp{seconds: 1, nanos: -1}", "timestamp(\"1970-01-01T00:00:00.999999999Z\")"),
        (
            "google.protobuf.Struct{fields: {'a': dyn(1), 'b': dyn([dyn(1u), dyn(b'x'), dyn(null)])}}",
            "{\"a\": 1.0, \"b\": [1.0, \"eA==\", null]}",
        ),
        ("google.protobuf.Struct{}.size()", "0"),
        ("google.protobuf.Empty{}", "google.protobuf.Empty{}"),
        ("google.protobuf.Empty{} == google.protobuf.Empty{}", "true"),
        ("dyn(google.protobuf.Empty{}) == dyn(n) || google.protobuf.Empty{} == null", "false"),
        ("type(google.protobuf.Empty{}) == google.protobuf.Empty", "true"),
        ("google.protobuf.Empty{}.anything", "undefined field 'anything'"),
        ("google.protobuf.Empty{anything: 1}", "undefined field 'anything'"),
        ("dyn(google.protobuf.Empty{}).anything", "no such field 'anything'"),
        ("has(dyn(google.protobuf.Empty{}).anything)", "no such field 'anything'"),
        ("dyn(google.protobuf.Empty{})[0]", "no such overload"),
        ("optional.ofNonZeroValue(google.protobuf.Empty{}).hasValue()", "false"),
        ("google.protobuf.Struct{fields: {'a': dyn(google.protobuf.Empty{})}}", "{\"a\": {}}"),
        (
            "google.protobuf.ListValue{values: [dyn(duration('90s')), dyn(9007199254740993)]}",
            "[\"90s\", \"9007199254740993\"]",
        ),
        ("google.protobuf.Value{}", "null"),
        ("google.protobuf.Value{number_value: 2.5}", "2.5"),
        ("google.protobuf.Value{null_value: google.protobuf.NullValue.NULL_VALUE}", "null"),
        ("google.protobuf.StringValue{?value: optional.none()}", "\"\""),
        ("google.protobuf.StringValue{?value: optional.of('x')}", "\"x\""),
        (
            "google.protobuf.Value{?number_value: 1.0}",
            "expected type 'optional_type(double)' but found 'double'",
        ),
        ("google.protobuf.StringValue{val: 'a'}", "undefined field 'val'"),
        (
            "google.protobuf.StringValue{value: 1}",
            "expected type of field 'value' is 'string' but provided type is 'int'",
        ),
        ("google.protobuf.Int32Value{value: 1} == 1", "true"),
        ("google.protobuf.Any{}", "anypb.UnmarshalNew() failed for type \"\": proto: invalid empty type URL"),
        (
            "google.protobuf.Struct == map",
            "program instantiation failed: reference to undefined type: google.protobuf.Struct",
        ),
        ("int{value: 1}", "'int' is not a message type"),
        ("n{value: 1}", "'int' is not a type"),
        ("Foo{a: 1}", "undeclared reference to 'Foo' (in container '')"),
    ] {
        assert_eq!(outcome(&env, Env::compile, text), expected, "{text}");
    }
}

/// As cel-go does; recorded over HTTP in `expression-rules`.
#[test]
fn optionals_lose_what_go_cannot_convert_back() {
    let lost = |text: &str| format!("unsupported conversion to ref.Val: {text}");
    for (text, expected) in [
        ("optional.of(quantity('1')).value().isInteger()", "true".to_owned()),
        ("[optional.of(quantity('1'))].all(x, x.hasValue())", "true".to_owned()),
        ("[optional.of(quantity('1500m'))].all(x, x.value().isInteger())", lost("(*resource.Quantity)1500m")),
        (
            "[optional.of(quantity('1'))].all(x, x == optional.of(quantity('1')))",
            lost("(*resource.Quantity)1"),
        ),
        ("optional.of(7).optMap(x, ip('::1')).value().family() == 6", lost("(netip.Addr)::1")),
        (
            "optional.of(7).optMap(x, cidr('10.0.0.1/8')).orValue(cidr('::/0'))",
            lost("(netip.Prefix)10.0.0.1/8"),
        ),
        ("[optional.of(url('https://a/b'))].map(x, x.value().getHost())", lost("(*url.URL)https://a/b")),
        ("[optional.of(semver('1.2.3'))].map(x, x.value().major())", lost("(semver.Version)1.2.3")),
        (
            "[optional.of(ip('::1'))].map(x, x).map(x, x.value())",
            lost("(*errors.errorString)unsupported conversion to ref.Val: (netip.Addr)::1"),
        ),
        ("[optional.of(optional.of(7))].map(x, x.value())", "[7]".to_owned()),
        ("[optional.of(optional.none())].map(x, x.value())", "[null]".to_owned()),
        (
            "[optional.of(optional.of(7))].all(x, x.value().hasValue())",
            "no such overload: hasValue(int)".to_owned(),
        ),
        ("[optional.of(int)].map(x, dyn(x.value()))", "[\"int\"]".to_owned()),
        ("[optional.of([ip('::1')])].all(x, x.value()[0].family() == 6)", "true".to_owned()),
    ] {
        assert_eq!(outcome(&kubernetes(), Env::compile, text), expected, "{text}");
    }
}

#[test]
fn kubernetes_refuses_what_it_does_not_offer_until_it_is_added() {
    let cases = [
        ("math.greatest(1, 2)", Extra::Math, "2"),
        ("math.least([3, 1, 2])", Extra::Math, "1"),
        ("base64.encode(b'hello')", Extra::Encoders, "\"aGVsbG8=\""),
        ("base64.decode('aGVsbG8')", Extra::Encoders, "b\"hello\""),
        ("base64.decode('a!')", Extra::Encoders, "illegal base64 data at input byte 1"),
        ("cel.bind(x, 2, x * x)", Extra::Bindings, "4"),
    ];
    for (text, extra, expected) in cases {
        let refusal = outcome(&kubernetes(), Env::compile, text);
        assert!(refusal.starts_with("undeclared reference to '"), "{text}: {refusal}");
        let env = kubernetes().with_library(extra);
        assert_eq!(outcome(&env, Env::compile, text), expected, "{text}");
    }
}

#[test]
fn the_standard_language_is_that_of_its_suite() {
    let env = Env::standard();
    for (text, expected) in [
        ("[1, 'a', 2.5].size()", "3"),
        ("{'a b': 1}.`a b`", "1"),
        ("'%s %e'.format([['a', 2.5], 1.0])", "\"[a, 2.5] 1.000000e+00\""),
        (
            "'%d'.format(['a'])",
            "error during formatting: decimal clause can only be used on ints, uints, and doubles, was given string",
        ),
        (
            "'%x'.format([true])",
            "error during formatting: only ints, uints, bytes, and strings can be formatted as hex, was given bool",
        ),
        ("'ab'.reverse()", "\"ba\""),
        ("'ab'.indexOf('a', 3)", "index out of range: 3"),
        ("math.bitShiftLeft(1, 64)", "0"),
        ("math.bitShiftRight(-1, 63)", "1"),
        ("math.abs(-9223372036854775808)", "integer overflow"),
        ("math.least()", "math.least() requires at least one argument"),
        ("math.greatest('a')", "math.greatest() invalid single argument value"),
        ("math.greatest(1, 'a')", "math.greatest() simple literal arguments must be numeric"),
        ("math.sign(-0.5)", "-1.0"),
        ("{'a': dyn(null)}.?a.b", "no such key: b"),
        ("{true: 1, true: 2}", "failed with repeated key: true"),
        ("cel.block([1, cel.index(0) + 1], cel.index(1) * 3)", "6"),
        ("ip('::ffff:1.2.3.4') == ip('1.2.3.4')", "true"),
        ("isQuantity('1')", "undeclared reference to 'isQuantity' (in container '')"),
    ] {
        assert_eq!(outcome(&env, Env::compile, text), expected, "{text}");
    }
}

#[test]
fn unchecked_expressions_fail_only_where_they_are_evaluated() {
    let env = Env::standard().with_variable("n", Type::Int);
    for (text, expected) in [
        ("x || true", "true"),
        ("x", "no such attribute(s): x"),
        ("f(1) || n == 7", "true"),
        ("f(1)", "no such overload: f"),
        ("true ? 'a' : 1", "\"a\""),
        ("-(5u)", "no such overload: -_"),
        ("base64.encode(b'a')", "\"YQ==\""),
        ("[1, 2].exists(n, n == 2) && .n == 7", "true"),
        ("type(n) == int", "true"),
    ] {
        assert_eq!(outcome(&env, Env::compile_unchecked, text), expected, "{text}");
    }
}

#[test]
fn what_kubernetes_answers_where_go_shows_through() {
    let env = kubernetes().with_variable("n", Type::Int);
    for (text, expected) in [
        // A name of a type is taken for the name of that type.
        (
            "[type(n)].all(each, each == int)",
            "program instantiation failed: reference to undefined type: each",
        ),
        (
            "optional.of(int).optMap(each, 1)",
            "program instantiation failed: reference to undefined type: each",
        ),
        ("[type(n)].all(uint, uint == type(1u))", "true"),
        ("[[type(n)]].all(each, each.size() == 1)", "true"),
        // What has no hash can neither be a key nor be looked for, and no operator hides it.
        (
            "{bytes(string(n)): 1}.size() == 1 || true",
            "internal error: runtime error: hash of unhashable type types.Bytes",
        ),
        (
            "{semver('1.0.' + string(n)): 1}",
            "internal error: runtime error: hash of unhashable type cel.Semver",
        ),
        (
            "dyn(bytes(string(n))) in {n: 1}",
            "internal error: runtime error: hash of unhashable type types.Bytes",
        ),
        ("dyn(bytes(string(n))) in {}", "false"),
        // Keys: an integer finds no double, a double finds an integer, addresses are equal by value.
        ("{dyn(double(n)): 1}[7]", "no such key: 7"),
        ("{n: 1}[dyn(7.0)]", "1"),
        ("{ip('10.0.0.' + string(n)): 1, ip('10.0.0.7'): 2}.size()", "1"),
        ("{double('NaN'): n}.all(k, v, v == 7)", "true"),
        ("{int: 'a'}.all(k, v, v == 'a')", "true"),
        ("dyn({n: 1})[ip('10.0.0.1')]", "invalid qualifier type: cel.IP"),
        ("{dyn(n): 1, dyn(uint(n)): 2}[7u]", "2"),
        ("{dyn(uint(n)): 1, dyn(n): 2}[dyn(7.0)]", "2"),
        ("{dyn(n): 1, dyn(uint(n)): 2} == {dyn(uint(n)): 2, dyn(n): 1}", "true"),
        // A NaN on the left is refused before the types are looked at.
        ("dyn(double('NaN')) < dyn('a')", "NaN values cannot be ordered"),
        ("dyn('a') < dyn(double('NaN'))", "no such overload"),
        // A constant pattern is compiled ahead, by a body that does not tell what it was given.
        ("dyn(n).find('[0-9]')", "no such overload"),
        ("dyn(n).find(string(n))", "no such overload: find(int, string)"),
        (
            "[[n]].flatten([n][1])",
            "internal error: interface conversion: ref.Val is *types.Err, not types.Int",
        ),
        ("duration(null) == duration('1s')", "invalid duration argument"),
        ("timestamp(null) == null", "invalid timestamp argument"),
    ] {
        assert_eq!(outcome(&env, Env::compile, text), expected, "{text}");
    }
}
