//! What each Kubernetes release lets expressions use: the table of apiserver's `pkg/cel/environment/base.go`, one
//! expression for every library, option and validator that a release brought.

use admit_cel::{Env, Mode, Type, Version};

/// An expression, and the first release in which it compiles.
const BROUGHT: &[(&str, Version)] = &[
    ("url('https://a/b').getHost() == 'a'", Version(1, 0)),
    ("'abc'.find('b') == 'b'", Version(1, 0)),
    ("[1, 2].isSorted() && [1].sum() == 1 && [1].max() == [1].min() && [1].indexOf(1) == 0", Version(1, 0)),
    ("'ab'.charAt(0) == 'a' && 'a b'.split(' ').join('-') == 'a-b' && ' a '.trim() == 'a'", Version(1, 0)),
    ("[1, 2].all(x, x > 0) && [1].exists_one(x, x == 1) && has({'a': 1}.a)", Version(1, 0)),
    ("authorizer.path('/healthz').check('get').allowed()", Version(1, 27)),
    (
        "authorizer.group('').resource('pods').namespace('a').name('b').check('get').reason() == ''",
        Version(1, 27),
    ),
    ("authorizer.serviceAccount('a', 'b').errored", Version(9, 0)),
    ("1 < 2.0 && 1u >= 1", Version(1, 28)),
    ("optional.of(1).orValue(2) == 1 && {'a': 1}.?a.hasValue() && [?optional.none()] == []", Version(1, 28)),
    ("optional.of(1).optMap(x, x + 1).value() == 2", Version(1, 28)),
    ("quantity('1Ki').isGreaterThan(quantity('1')) && isQuantity('1')", Version(1, 28)),
    ("'%d'.format([1]) == '1' && strings.quote('a') == '\"a\"'", Version(1, 29)),
    ("sets.contains([1], [1])", Version(1, 29)),
    (
        "ip('1.1.1.1').family() == 4 && isIP('::1') && cidr('10.0.0.0/8').containsIP('10.1.1.1')",
        Version(1, 30),
    ),
    ("format.dns1123Label().validate('a').hasValue()", Version(1, 31)),
    (
        "authorizer.group('').resource('pods').fieldSelector('a=b').labelSelector('c').check('list').allowed()",
        Version(1, 31),
    ),
    ("[1].all(i, v, i < v) && {'a': 1}.transformMap(k, v, v + 1) == {'a': 2}", Version(1, 32)),
    ("[1].transformList(i, v, v) == [1] && [1].existsOne(i, v, v == 1)", Version(1, 32)),
    ("semver('1.2.3').major() == 1 && isSemver('v1.0', true)", Version(1, 33)),
    ("[2, 1].sort() == [1, 2] && [[1]].flatten() == [1] && lists.range(2) == [0, 1]", Version(1, 34)),
    ("[2, 1].sortBy(x, -x) == [2, 1] && [1, 1].distinct() == [1] && [1].first().hasValue()", Version(1, 34)),
    ("[1, 2].slice(0, 1) == [1] && [1].reverse() == [1]", Version(1, 34)),
    ("[1, 2].includes(2) && 'a'.includes('a')", Version(1, 37)),
    ("math.greatest(1, 2) == 2", Version(9, 0)),
    ("base64.encode(b'a') == ''", Version(9, 0)),
    ("cel.bind(x, 1, x) == 1", Version(9, 0)),
    ("'a'.reverse() == 'a'", Version(9, 0)),
    ("{'a b': 1}.`a b` == 1", Version(9, 0)),
    ("[1, 'a'].size() == 2", Version(9, 0)),
];

/// An expression, and the first release that looks at its constants and refuses it.
const REFUSED: &[(&str, Version)] = &[
    ("duration('x') == duration('1s')", Version(1, 29)),
    ("timestamp('x') == timestamp(0)", Version(1, 29)),
    ("'a'.matches('[')", Version(1, 29)),
    ("'%z'.format([1]) == ''", Version(1, 0)),
];

fn env(minor: u16, mode: Mode) -> Env {
    Env::kubernetes(Version(1, minor), mode)
        .with_variable("authorizer", Type::Opaque("kubernetes.authorization.Authorizer".into()))
}

#[test]
fn new_expressions_use_what_their_release_has() {
    for minor in 27..=37 {
        let env = env(minor, Mode::New);
        for (text, since) in BROUGHT {
            let expected = *since <= Version(1, minor);
            let compiled = env.compile(text);
            assert_eq!(compiled.is_ok(), expected, "1.{minor}: {text}: {compiled:?}");
        }
        for (text, since) in REFUSED {
            assert_eq!(env.compile(text).is_err(), *since <= Version(1, minor), "1.{minor}: {text}");
        }
    }
}

/// What is stored was written for some release that may be newer than the one in force.
#[test]
fn stored_expressions_use_what_any_known_release_has() {
    for minor in 27..=37 {
        let env = env(minor, Mode::Stored);
        let newest = Version(1, minor.max(36));
        for (text, since) in BROUGHT {
            let expected = *since <= newest;
            assert_eq!(env.compile(text).is_ok(), expected, "1.{minor}: {text}: {:?}", env.compile(text));
        }
        for (text, _) in REFUSED {
            assert!(env.compile(text).is_err(), "1.{minor}: {text}");
        }
        assert_eq!((env.version(), env.mode()), (Version(1, minor), Mode::Stored));
    }
}
