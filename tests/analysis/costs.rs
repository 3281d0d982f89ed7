//! What expressions cost in each release, by the reference's own tables and by the differences between its builds.

use admit_cel::authorization::{Authorizer, Check, Decision};
use admit_cel::{Bindings, Env, Evaluation, Mode, SizeHints, Type, Value, Version};

use crate::rows::{rows, version};

#[derive(Debug)]
struct AllowsAll;

impl Authorizer for AllowsAll {
    fn authorize(&self, _: &Check<'_>) -> Decision {
        Decision { allowed: true, reason: "".into(), error: None }
    }
}

fn env(release: Version) -> Env {
    Env::of_release(release, Mode::Stored)
        .with_variable("authorizer", Type::Opaque("kubernetes.authorization.Authorizer".into()))
        .without_folding()
}

/// The estimate, and the cost when run.
fn costs(env: &Env, text: &str) -> Option<((u64, u64), u64)> {
    let checked = env.compile(text).ok()?;
    let estimate = checked.estimate(&SizeHints::default());
    let program = env.program(&checked).expect(text);
    let arena = bumpalo::Bump::new();
    let mut bindings = Bindings::new(&program);
    bindings.set("authorizer", Value::authorizer(&arena, &AllowsAll));
    let mut cx = Evaluation::new(&arena);
    program.eval(&bindings, &mut cx).unwrap_or_else(|error| panic!("{text}: {error}"));
    Some(((estimate.min, estimate.max), cx.cost()))
}

#[test]
fn costs_are_those_of_the_references_tables() {
    let (mut wrong, mut compared) = (Vec::new(), 0_u32);
    for [first, last, least, most, run, text] in rows::<6>("costs.tsv") {
        let number = |text: &str| text.parse::<u64>().expect("a number");
        let expected = ((number(&least), number(&most)), number(&run));
        for minor in version(&first).1..=version(&last).1 {
            let release = Version(1, minor);
            // The reference's test has libraries before its environments offer them.
            let Some(found) = costs(&env(release), &text) else { continue };
            compared += 1;
            if found != expected {
                wrong.push(format!("1.{minor}: {text}: {found:?}, not {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 700, "{compared}");
}

/// cel-go `interpreter/runtimecost.go` and `checker/cost.go`, v0.26.0 and v0.29.2.
#[test]
fn what_cel_go_0_29_counts_otherwise_is_counted_so_from_1_37_on() {
    let run = |minor, text| costs(&env(Version(1, minor)), text).map(|(_, run)| run);
    let long = format!("'{}'", "x".repeat(100));
    let starts = format!("{long}.startsWith('x')");
    assert_eq!((run(36, &starts), run(37, &starts)), (Some(10), Some(1)));
    let matches = format!("matches({long}, 'xxxxxxxx')");
    assert_eq!((run(36, &matches), run(37, &matches)), (Some(1), Some(22)));
    let estimate = |minor| costs(&env(Version(1, minor)), &matches).map(|(estimate, _)| estimate);
    assert_eq!((estimate(36), estimate(37)), (Some((1, 1)), Some((22, 22))));
}

/// cel-go `checker/cost.go`, v0.17.7, v0.17.8, v0.22.0, v0.23.2: by hand from the walks.
#[test]
fn the_walk_of_the_estimate_is_that_of_the_release() {
    let estimate = |minor: u16, text: &str| {
        let env = Env::of_release(Version(1, minor), Mode::Stored);
        env.compile(text).expect(text).estimate(&SizeHints::default()).max
    };
    // Of the size of a filtered list nothing was known at first: `in` costs the size of the list.
    let filtered = "1 in [1, 2, 3].filter(x, x > 1)";
    assert_eq!(estimate(29, filtered), u64::MAX);
    assert_eq!(estimate(30, filtered), estimate(36, filtered));
    // The items of a literal had no size: comparing each with a text costs up to the length of the text.
    let items = "['a', 'b'].all(x, x == 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')";
    assert_eq!(estimate(32, items) - estimate(33, items), 4);
    let same = "'a' + 'b' == 'ab' && size('abc') == 3";
    assert!((29..=37).all(|minor| estimate(minor, same) == estimate(36, same)));
}
