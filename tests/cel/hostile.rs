//! Inputs that are made to hurt: each must come to an answer or an error on a stack of 2 MiB, soon, and without much
//! memory; and before anything large is made.

use std::time::{Duration, Instant};

use admit_cel::{Bindings, Coverage, Env, Evaluation, Mode, Trace, Type, Value, Version};
use bumpalo::Bump;

/// What must come of an input.
#[derive(Clone, Copy)]
enum Expect {
    /// A value, in CEL notation.
    Value(&'static str),
    /// An error of any stage whose text contains this.
    Error(&'static str),
}

use Expect::{Error, Value as Is};

const STACK: usize = 2 << 20;
/// Generous for a debug build on a busy machine; what hangs takes hours.
const SOON: Duration = Duration::from_secs(60);
/// Bytes that one input may add to what the process holds.
const MEMORY: usize = 256 << 20;

const TOO_DEEP: &str = "recursion";
const TOO_LONG: &str = "expression code point size exceeds limit";
const TOO_COSTLY: &str = "actual cost limit exceeded";
const TOO_LARGE: &str = "limit exceeded";

fn around(open: &str, middle: &str, close: &str, times: usize) -> String {
    format!("{}{middle}{}", open.repeat(times), close.repeat(times))
}

/// Texts whose nesting or length is the point.
fn shapes() -> Vec<(String, Expect)> {
    vec![
        (around("(", "1", ")", 10_000), Error(TOO_DEEP)),
        (around("[", "1", "]", 10_000), Error(TOO_DEEP)),
        (around("{1: ", "1", "}", 10_000), Error(TOO_DEEP)),
        (around("true ? ", "1", " : 1", 10_000), Error(TOO_LONG)),
        (around("true ? ", "1", " : 1", 8_000), Error("limit exceeded")),
        (format!("{}1", "true ? 1 : ".repeat(9_000)), Error(TOO_DEEP)),
        (around("size(", "''", ")", 10_000), Error(TOO_DEEP)),
        (around("dyn(", "1", ")", 10_000), Error(TOO_DEEP)),
        (around("[1].all(x, ", "true", ")", 7_000), Error(TOO_DEEP)),
        (around("[1].map(x, ", "x", ")", 7_000), Error(TOO_DEEP)),
        (around("has({'a': ", "{}.a", "}.a)", 7_000), Error("")),
        (format!("1{}", " + 1".repeat(10_000)), Error(TOO_DEEP)),
        (format!("1{}", "+1".repeat(10_000)), Error(TOO_DEEP)),
        (format!("1{}", " < 1".repeat(10_000)), Error(TOO_DEEP)),
        (format!("s{}", ".b".repeat(10_000)), Error(TOO_DEEP)),
        (format!("s{}", "[0]".repeat(10_000)), Error(TOO_DEEP)),
        (format!("s{}", ".?b".repeat(10_000)), Error(TOO_DEEP)),
        (format!("s{}", ".trim()".repeat(10_000)), Error(TOO_DEEP)),
        (format!("true{}", " && true".repeat(10_000)), Is("true")),
        (format!("false{}", " || false".repeat(10_000)), Is("false")),
        (format!("{}true", "!".repeat(10_000)), Is("true")),
        (format!("{}1", "-".repeat(9_999)), Is("-1")),
        (format!("[{}0].size()", "0, ".repeat(100_000)), Error(TOO_LONG)),
        (format!("[{}0].size()", "0,".repeat(40_000)), Is("40001")),
        (
            format!("{{{}'z': 0}}.size()", (0..8_000).map(|i| format!("'{i}': 0,")).collect::<String>()),
            Is("8001"),
        ),
        (format!("size('{}')", "a".repeat(90_000)), Is("90000")),
        (format!("'{}", "a".repeat(90_000)), Error("Syntax error")),
        (format!("'{}'", "\\".repeat(90_001)), Error("Syntax error")),
        ("\u{1F600}".repeat(100_001), Error(TOO_LONG)),
        ("(".repeat(90_000), Error("")),
        ("]".repeat(90_000), Error("")),
        ("'''".repeat(30_000), Error("")),
        ("a.".repeat(40_000), Error("")),
        ("?".repeat(90_000), Error("")),
        ("9".repeat(90_000), Error("invalid int literal")),
        (format!("0x{}", "f".repeat(90_000)), Error("invalid int literal")),
        (format!("1e{} > 0.0", "9".repeat(90_000)), Error("invalid double literal")),
        (format!("0.{} >= 0.0", "9".repeat(90_000)), Is("true")),
        (around("optional.of(1).optMap(x, optional.of(x).optMap(y, ", "y", "))", 200), Error("")),
        (format!("optional.of(1){}", ".optMap(x, x)".repeat(40)), Error("too large")),
    ]
}

/// Calls that would need a great deal of memory or time if they were made.
fn calls() -> Vec<(String, Expect)> {
    let doubled = |start: &str, step: &str| format!("[{start}]{}", format!(".map(x, {step})").repeat(64));
    vec![
        ("lists.range(9000000000).size()".to_owned(), Error(TOO_LARGE)),
        ("lists.range(9223372036854775807).size()".to_owned(), Error(TOO_LARGE)),
        ("lists.range(-9223372036854775808).size()".to_owned(), Is("0")),
        (
            "lists.range(2000).all(x, lists.range(2000).all(y, lists.range(2000).all(z, x + y + z >= 0)))"
                .to_owned(),
            Error(TOO_COSTLY),
        ),
        ("[1].slice(0, 9223372036854775807)".to_owned(), Error("slice")),
        ("[[1]].flatten(9223372036854775807)".to_owned(), Error(TOO_COSTLY)),
        ("lists.range(1000000).distinct().size()".to_owned(), Error(TOO_LARGE)),
        ("lists.range(1000000).sort().size()".to_owned(), Error(TOO_LARGE)),
        ("sets.contains(lists.range(100000), lists.range(100000))".to_owned(), Error(TOO_LARGE)),
        (format!("{}[0].size()", doubled("'ab'", "x + x")), Error(TOO_LARGE)),
        (format!("{}[0].size()", doubled("[1, 2]", "x + x")), Error(TOO_LARGE)),
        (format!("{}[0].size()", doubled("'ab'", "x.replace('', x)")), Error(TOO_LARGE)),
        (format!("{}[0].size()", doubled("'ab'", "x.split('').join(x)")), Error(TOO_LARGE)),
        (format!("{}[0].size()", doubled("'ab'", "'%s%s'.format([x, x])")), Error(TOO_LARGE)),
        (format!("{}[0].size()", doubled("b'ab'", "x + x")), Error(TOO_LARGE)),
        (format!("{}[0].size()", doubled("'\"'", "strings.quote(x)")), Error(TOO_LARGE)),
        ("'%.1000000000f'.format([1.0]).size() < 2000".to_owned(), Is("true")),
        ("'%.99999999999999999999f'.format([1.0])".to_owned(), Error("value out of range")),
        ("'%.999999e'.format([1.0]).size()".to_owned(), Is("999999")),
        ("'%.1000001e'.format([1.0]).size() < 100".to_owned(), Is("true")),
        (format!("'{}'.format([]).size()", "%%".repeat(45_000)), Is("45000")),
        ("s.matches('(a+)+$')".to_owned(), Is("false")),
        ("s.matches('(a|aa)+$')".to_owned(), Is("false")),
        ("s.matches('(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)[^a]x$')".to_owned(), Is("false")),
        ("s.matches('((a{100}){100}){100}')".to_owned(), Error("invalid matches argument")),
        ("s.matches('a{1001}')".to_owned(), Error("invalid matches argument")),
        ("s.matches(t)".to_owned(), Error(TOO_COSTLY)),
        (format!("s.matches('{}')", around("(", "a", ")", 20_000)), Error("invalid matches argument")),
        (
            format!("s.matches('{}')", "[\\\\pL\\\\pN]{900}".repeat(60)),
            Error("its patterns take more than 60 MiB"),
        ),
        (format!("s.matches('{}')", "a?".repeat(20_000)), Error("")),
        ("s.find('a*b').size()".to_owned(), Is("5001")),
        ("sign(quantity('1e999999999'))".to_owned(), Is("1")),
        (format!("sign(quantity('{}'))", "9".repeat(90_000)), Is("1")),
        (format!("sign(quantity('0.{}1'))", "0".repeat(90_000)), Is("1")),
        (format!("semver('1.0.0-{}').major()", "a.".repeat(40_000)), Error("")),
        (format!("isIP('{}')", "1.".repeat(40_000)), Is("false")),
        (format!("isCIDR('{}')", ":".repeat(90_000)), Is("false")),
        (format!("isURL('http://{}')", "[".repeat(80_000)), Is("false")),
        (format!("url('http://a/?{}').getQuery().size()", "a=b&".repeat(20_000)), Is("1")),
        (
            format!("duration('{}s') == duration('0s')", "9".repeat(90_000)),
            Error("invalid duration argument"),
        ),
        (format!("duration('0.{}s') == duration('0s')", "0".repeat(90_000)), Is("true")),
        (format!("timestamp('{}')", "9".repeat(90_000)), Error("invalid timestamp argument")),
        ("timestamp('9999-12-31T23:59:59Z') + duration('24h')".to_owned(), Error("timestamp overflow")),
        ("-9223372036854775808 / -1".to_owned(), Error("integer overflow")),
        ("-(-9223372036854775808)".to_owned(), Error("integer overflow")),
        ("-9223372036854775808 % -1".to_owned(), Error("integer overflow")),
        ("timestamp(0).getHours('Not/AZone')".to_owned(), Error("")),
        (format!("timestamp(0).getHours('{}')", "a/".repeat(40_000)), Error("")),
        (
            format!("format.dns1123Label().validate('{}').value()[0].size() > 0", "a".repeat(90_000)),
            Is("true"),
        ),
    ]
}

/// The value in CEL notation, or the text of the error of whatever stage; and what was put into the arena.
fn outcome(text: &str) -> (Result<String, String>, usize) {
    let env = Env::kubernetes(Version(1, 36), Mode::New).with_variables([
        ("s", Type::String),
        ("t", Type::String),
        ("d", Type::Dyn),
    ]);
    let checked = match env.compile(text) {
        Ok(checked) => checked,
        Err(error) => return (Err(error.to_string()), 0),
    };
    let program = match env.program(&checked) {
        Ok(program) => program,
        Err(error) => return (Err(error.to_string()), 0),
    };
    let arena = Bump::new();
    let (s, t) = (format!("{}b", "a".repeat(5_000)), "(".repeat(50_000));
    let mut bindings = Bindings::new(&program);
    bindings.set("s", Value::String(&s)).set("t", Value::String(&t));
    let outcome = program.eval(&bindings, &mut Evaluation::new(&arena));
    let outcome = outcome.map(|value| value.preview(200)).map_err(|error| error.to_string());
    (outcome, arena.allocated_bytes())
}

/// The ways beside compiling and evaluating that an input may take: without a check, and observed.
fn survives_other_ways(text: &str) {
    let env = Env::standard().with_variables([("s", Type::String), ("d", Type::Dyn)]);
    let Ok(checked) = env.compile_unchecked(text) else { return };
    let _ = checked.uses_variable("s");
    let Ok(program) = env.program(&checked) else { return };
    let _ = program.branches();
    let arena = Bump::new();
    let mut bindings = Bindings::new(&program);
    bindings.set("s", Value::String("a")).set("t", Value::String("b"));
    let (mut trace, mut coverage) = (Trace::new(100), Coverage::new(&program));
    // Whatever the answer: that there is one is the point.
    let mut cx = Evaluation::new(&arena).per_call_limit(10_000);
    let _ = program.observe(&bindings, &mut cx, &mut (&mut trace, &mut coverage));
}

/// What the process holds at most so far; none where the system does not tell.
fn peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<usize>().ok().map(|kib| kib << 10)
}

fn judge(text: &str, expected: Expect) -> Option<String> {
    let (started, before) = (Instant::now(), peak());
    survives_other_ways(text);
    let (outcome, arena) = outcome(text);
    let shown: String = text.chars().take(80).collect();
    let wrong = |what: String| Some(format!("{shown}: {what}"));
    match (&outcome, expected) {
        (Ok(value), Is(wanted)) if value == wanted => {}
        (Err(error), Error(part)) if error.contains(part) => {}
        (Ok(text) | Err(text), _) => {
            return wrong(text.lines().next().unwrap_or_default().chars().take(200).collect());
        }
    }
    if started.elapsed() > SOON {
        return wrong(format!("took {:?}", started.elapsed()));
    }
    if arena > 65 << 20 {
        return wrong(format!("put {arena} bytes into the arena"));
    }
    match before.zip(peak()) {
        Some((before, after)) if after.saturating_sub(before) > MEMORY => {
            wrong(format!("took {} bytes", after - before))
        }
        _ => None,
    }
}

#[test]
fn hostile_inputs_come_to_an_answer_or_an_error() {
    if peak().is_none() {
        println!("SKIPPED in part: this system does not tell how much memory a process holds");
    }
    let worker = std::thread::Builder::new().stack_size(STACK).spawn(|| {
        let inputs = shapes().into_iter().chain(calls());
        inputs.filter_map(|(text, expected)| judge(&text, expected)).collect::<Vec<_>>()
    });
    let wrong = worker.unwrap().join().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
