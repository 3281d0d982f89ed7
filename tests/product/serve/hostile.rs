//! Rows 15 to 18: policies that are made to hurt, loaded and asked by a running `admit serve`, which is the child process
//! that must not end.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::server::{Place, Serving, policy, review};
use crate::soak::{Random, percent, scaled};
use crate::support::https::Client;
use crate::support::reliability::Row;

const MIB: usize = 1024 * 1024;
/// How much longer an unoptimised build on a busy machine may take than is asked.
const PATIENCE: u32 = if cfg!(debug_assertions) { 40 } else { 1 };

/// Chains of operators and nests of constructs: what stands before, is repeated, and stands after.
const CHAINS: &[(&str, &str)] = &[
    ("1", " + 1"),
    ("1", " - 1"),
    ("1", " * 1"),
    ("1", " / 1"),
    ("1", " % 2"),
    ("'a'", " + 'a'"),
    ("[1]", " + [1]"),
    ("true", " && true"),
    ("false", " || false"),
    ("true", " == true"),
    ("true", " != true"),
    ("dyn(1)", " < dyn(1)"),
    ("dyn(1)", " in [dyn(1)]"),
    ("object", ".a"),
    ("object", ".?a"),
    ("object", "['a']"),
    ("object", "[?'a']"),
    ("'a'", ".trim()"),
    ("[1]", ".map(x, x)"),
    ("[1]", ".filter(x, true)"),
    ("optional.of(1)", ".optMap(x, x)"),
    ("optional.of(1)", ".or(optional.of(1))"),
];
const NESTS: &[(&str, &str, &str)] = &[
    ("(", "1", ")"),
    ("[", "1", "]"),
    ("{1: ", "1", "}"),
    ("!", "true", ""),
    ("-", "1", ""),
    ("true ? ", "1", " : 1"),
    ("true ? 1 : ", "1", ""),
    ("1 + (", "1", ")"),
    ("true && (", "true", ")"),
    ("size([", "1", "])"),
    ("dyn(", "1", ")"),
    ("[1].all(x, ", "true", ")"),
    ("[1].exists(x, ", "true", ")"),
    ("[1].map(x, ", "1", ")"),
    ("{'a': 1}.transformMap(k, v, ", "1", ")"),
    ("has({'a': ", "1", "}.a)"),
    ("optional.of(", "1", ")"),
    ("[?optional.of(", "1", ")]"),
    ("'%s'.format([", "1", "])"),
    ("cel.bind(x, 1, ", "1", ")"),
];

/// Whatever the expression is, a policy of it compiles if the expression does.
fn any(expression: &str) -> String {
    format!("dyn({expression}) != 'nothing'")
}

#[tokio::test(flavor = "multi_thread")]
async fn row_15_chains_and_nests_end_no_process() {
    chains_and_nests(&[1, 10, 100, 1_000, 10_000], Row::short(15, "chains and nests up to 10,000")).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long; scripts/soak runs it"]
async fn row_15_chains_and_nests_in_full() {
    let row = Row::full(15, "chains and nests up to 100,000", 100);
    chains_and_nests(&[1, 10, 90, 100, 240, 250, 1_000, 2_500, 10_000, 30_000, 100_000], row).await;
}

async fn chains_and_nests(sizes: &[usize], mut row: Row) {
    let place = Place::new();
    let mut names = BTreeSet::new();
    for size in sizes {
        let chains = CHAINS.iter().map(|(start, more)| format!("{start}{}", more.repeat(*size)));
        let nests = NESTS
            .iter()
            .map(|(open, inner, close)| format!("{}{inner}{}", open.repeat(*size), close.repeat(*size)));
        for (number, expression) in chains.chain(nests).enumerate() {
            let name = format!("x{size}-{number}");
            place.write(&format!("policies/{name}.yaml"), &policy(&name, &any(&expression)));
            names.insert(name);
        }
    }
    let all = names.len();
    // Every file that is refused is named; the others are loaded, and asked.
    let output = place.fails(&[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let refused: BTreeSet<String> = said
        .lines()
        .filter_map(|line| line.split_once("policies/")?.1.split_once(".yaml:"))
        .map(|(name, _)| name.to_owned())
        .collect();
    for name in &refused {
        assert!(names.remove(name), "{name}");
        std::fs::remove_file(place.path(&format!("policies/{name}.yaml"))).unwrap();
    }
    assert!(names.len() > CHAINS.len() + NESTS.len(), "only {names:?} compile");
    let serving = place.start(&["--timeout", "600"]);
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    for name in &names {
        let answered = client.post(&format!("/validate/{name}"), review("u", &json!({}))).await.unwrap();
        assert_eq!(
            (answered.code.as_u16(), &answered.json()["response"]["uid"]),
            (200, &json!("u")),
            "{name}"
        );
    }
    let (_, metrics) = serving.observed("/metrics").await;
    assert!(metrics.contains("admit_panics_total 0\n"), "{metrics}");
    row.measured(json!({
        "expressions": all, "refusedAtLoad": refused.len(), "evaluated": names.len(), "aborts": 0,
    }));
    assert!(serving.terminate().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn row_16_costly_expressions_are_stopped() {
    const EXPRESSIONS: usize = 12;
    let mut row = Row::short(16, "nested comprehensions over 3 MiB");
    let place = Place::new();
    let nested = "object.data.all(a, object.data.all(b, object.data.all(c, a + b + c >= 0)))";
    place.write("policies/none.yaml", &policy("none", "true"));
    place.write("policies/one.yaml", &policy("one", nested));
    let many = (0..EXPRESSIONS).map(|n| format!("  - expression: \"{nested} && {n} >= 0\"\n"));
    let validation = format!("  - expression: {nested:?}\n    message: many says no\n");
    let text = policy("many", nested);
    assert!(text.contains(&validation));
    place.write("policies/many.yaml", &text.replace(&validation, &many.collect::<String>()));
    let serving = place.start(&["--timeout", "600"]);
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    let body = review("u", &json!(vec![1_234_567; 3 * MIB / 8]));
    assert!(body.len() > 3 * MIB);
    let mut took = Vec::new();
    for name in ["none", "one", "many"] {
        let started = Instant::now();
        let answered = client.post(&format!("/validate/{name}"), body.clone()).await.unwrap().json();
        took.push(started.elapsed());
        assert_eq!(answered["response"]["allowed"], name == "none", "{answered}");
        if name != "none" {
            let message = answered["response"]["status"]["message"].as_str().unwrap();
            assert!(message.contains("cost limit exceeded") || message.contains("budget"), "{message}");
        }
    }
    let expression = took[1].saturating_sub(took[0]);
    row.measured(json!({
        "reviewMiB": body.len() / MIB, "readingMs": took[0].as_millis(), "expressionMs": expression.as_millis(),
        "expressions": EXPRESSIONS, "requestMs": took[2].as_millis(),
    }));
    assert!(expression < Duration::from_millis(150) * PATIENCE, "{took:?}");
    assert!(took[2] < Duration::from_millis(1_200) * PATIENCE, "{took:?}");
}

/// Expressions that brought other engines down: by nesting, by macros in macros, by long literals, and by what error
/// recovery does with brackets that never close.
fn bombs() -> Vec<String> {
    let around =
        |open: &str, close: &str, times: usize| format!("{}1{}", open.repeat(times), close.repeat(times));
    vec![
        around("(", ")", 50_000),
        around("[", "]", 50_000),
        around("{1:", "}", 30_000),
        "(".repeat(99_000),
        "[".repeat(99_000),
        "{".repeat(99_000),
        "[{(".repeat(30_000),
        "a?".repeat(49_000),
        "a.b(".repeat(24_000),
        "!".repeat(99_000),
        "-".repeat(99_000),
        "'".repeat(99_001),
        "\\".repeat(99_000),
        "`".repeat(99_001),
        "//".repeat(40_000),
        "b'\\".repeat(24_000),
        "9".repeat(99_000),
        "1.".repeat(49_000),
        "1e".repeat(49_000),
        "\u{1f980}".repeat(99_000),
        "\u{0}".repeat(99_000),
        around("[1].map(x, ", ")", 7_000),
        around("[1].all(x, ", ")", 24),
        around("optional.of(1).optMap(x, optional.of(x).optMap(y, ", "))", 24),
        around("[[1].map(x, ", "].map(y, [y, y])[0])", 24),
        format!("[1]{}", ".map(x, [x, x])".repeat(60)),
        format!("{{{}}}", "1:1,".repeat(24_000)),
        format!("has({}a.b)", "has(a.b) && ".repeat(8_000)),
        "x.exists_one(".repeat(7_000),
        "cel.bind(a, [1,2,3], ".repeat(4_000),
        format!("'a'.matches('{}')", "(a+)+".repeat(15_000)),
        format!("1{}", " in [1".repeat(15_000)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn row_17_parser_bombs_are_refused() {
    parser_bombs(2, Row::short(17, "bombs and 1,000 mutants")).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long; scripts/soak runs it"]
async fn row_17_parser_bombs_in_full() {
    parser_bombs(scaled(200), Row::full(17, "bombs and 100,000 mutants", percent())).await;
}

/// Batches of bad policies, one reload each, which a good set outlives.
async fn parser_bombs(batches: usize, mut row: Row) {
    const BATCH: usize = 500;
    let place = Place::new();
    place.write("policies/a.yaml", &policy("a", "object.data.v != 'bad'"));
    let serving = place.start(&[]);
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    let mut random = Random(0x5eed_0017);
    let seeds: Vec<String> = CHAINS
        .iter()
        .map(|(start, more)| format!("{start}{}", more.repeat(8)))
        .chain(
            NESTS.iter().map(|(open, inner, close)| format!("{}{inner}{}", open.repeat(8), close.repeat(8))),
        )
        .collect();
    for batch in 0..=batches {
        let bad =
            if batch == 0 { bombs() } else { (0..BATCH).map(|_| mutant(&seeds, &mut random)).collect() };
        // One that cannot compile makes the whole batch one that cannot.
        let bad = bad.iter().map(String::as_str).chain(["object."]);
        let text = bad.enumerate().map(|(number, text)| policy(&format!("b{number}"), text) + "---\n");
        place.write("policies/b.yaml", &format!("{}# {batch}\n", text.collect::<String>()));
        let failures = format!("admit_reloads_total{{part=\"policies\",result=\"failure\"}} {}\n", batch + 1);
        serving.until("/metrics", |metrics| metrics.contains(&failures)).await;
        let answered = client.post("/validate", review("u", &json!({"v": "bad"}))).await.unwrap();
        assert_eq!(answered.json()["response"]["allowed"], false);
    }
    let peak = serving.peak_memory();
    row.measured(json!({
        "bombs": bombs().len(), "mutants": batches * BATCH, "crashes": 0, "peakMiB": peak / MIB,
    }));
    assert!(peak < 256 * MIB, "{} MiB", peak / MIB);
}

/// A seed with some pieces removed, repeated, or put elsewhere.
fn mutant(seeds: &[String], random: &mut Random) -> String {
    let mut text: Vec<char> = random.of(seeds).chars().collect();
    for _ in 0..=random.below(6) {
        if text.is_empty() {
            break;
        }
        let at = random.below(text.len());
        let end = (at + 1 + random.below(16)).min(text.len());
        let piece: Vec<char> = text[at..end].to_vec();
        match random.below(4) {
            0 => drop(text.drain(at..end)),
            1 => drop(text.splice(at..at, piece.repeat(1 + random.below(40)))),
            2 => text.insert(
                at,
                *random.of(&['(', ')', '[', ']', '{', '}', '.', '?', '"', '\'', '\\', '0', 'r', '\u{1f980}']),
            ),
            _ => {
                let other: Vec<char> = random.of(seeds).chars().collect();
                text.splice(at..at, other);
            }
        }
    }
    text.into_iter().collect()
}

/// What makes engines that backtrack take for ever, and engines that do not take long.
fn evil_patterns() -> Vec<String> {
    let mut patterns: Vec<String> = [
        "(a+)+$",
        "(a*)*$",
        "(a|a)*$",
        "(a|aa)+$",
        "(a|a?)+$",
        "(.*a){12}$",
        "([a-z]+)*$",
        "(a+){10}$",
        "^(a+)+$",
        "(a?){50}a$",
        "(x+x+)+y",
        "(.*)(.*)(.*)[^a]$",
        "(.*){9}z",
        "a*a*a*a*a*b",
        "(a|b|ab)*c",
        "^(([a-z])+.)+[A-Z]$",
        "(\\\\w+\\\\s?)*$",
        "(?:a(?:a(?:a)*)*)*$",
        "[a-z]*[a-z]*[a-z]*9",
        ".*.*.*.*=",
        "(a{1,50})*b",
        "a{500}b",
        "(a{30}){30}b",
        "(?i)(a+)+Z$",
        "(?s).*.*.*z",
        "\\\\b(a+)+\\\\b!",
        "(^a+)*$",
        "($a?)+",
        "(a+|b+|c+)*d",
        "(((a+)+)+)+!",
    ]
    .map(ToOwned::to_owned)
    .to_vec();
    patterns.extend((1..=20).map(|n| format!("(a{{0,{n}}})*{}$", "a?".repeat(n % 8))));
    patterns
}

#[tokio::test(flavor = "multi_thread")]
async fn row_18_patterns_take_linear_time() {
    // In the short form an eighth of the input: unoptimised automata take long for the whole.
    patterns(MIB / if cfg!(debug_assertions) { 8 } else { 1 }, Row::short(18, "evil patterns")).await;
}

async fn patterns(input: usize, mut row: Row) {
    let place = Place::new();
    let evil = evil_patterns();
    assert_eq!(evil.len(), 50);
    for (number, pattern) in evil.iter().enumerate() {
        let name = format!("p{number}");
        place.write(
            &format!("policies/{name}.yaml"),
            &policy(&name, &format!("!object.data.v.matches('{pattern}')")),
        );
    }
    place.write("policies/none.yaml", &policy("none", "has(object.data.v)"));
    let serving = place.start(&["--timeout", "600"]);
    let mut client = Client::connect(serving.webhook, &place.tls()).await.unwrap();
    let body = review("u", &json!({"v": "a".repeat(input) + "!"}));
    let mut ask = async |name: &str| -> (Value, Duration) {
        let started = Instant::now();
        let answered = client.post(&format!("/validate/{name}"), body.clone()).await.unwrap();
        (answered.json()["response"]["status"]["message"].clone(), started.elapsed())
    };
    let (_, reading) = ask("none").await;
    let (mut slowest, mut by_cost) = (Duration::ZERO, 0);
    for number in 0..evil.len() {
        let (message, took) = ask(&format!("p{number}")).await;
        by_cost += usize::from(message.as_str().is_some_and(|text| text.contains("cost limit exceeded")));
        slowest = slowest.max(took.saturating_sub(reading));
    }
    let refused = refused_patterns(&place, &serving).await;
    row.measured(json!({
        "inputKiB": input / 1024, "patterns": evil.len(), "stoppedByCost": by_cost, "slowestMs": slowest.as_millis(),
        "tooLarge": refused, "tooLargeRefused": refused,
    }));
    assert!(by_cost < evil.len() / 2, "{by_cost}");
    assert!(slowest < Duration::from_millis(50) * PATIENCE, "{slowest:?}");
}

/// Patterns that are too large, by their text or by what they compile to, are mistakes of the policy.
async fn refused_patterns(place: &Place, serving: &Serving) -> usize {
    let around =
        |open: &str, close: &str, times: usize| format!("{}a{}", open.repeat(times), close.repeat(times));
    let patterns = [
        "a{1001}".to_owned(),
        "((a{100}){100}){100}".to_owned(),
        "(a{1000}){1000}".to_owned(),
        "[\\\\pL\\\\pN]{900}".repeat(60),
        around("(", ")", 20_000),
        around("(?:", ")+", 12_000),
    ];
    for (number, pattern) in patterns.iter().enumerate() {
        place.write("policies/large.yaml", &policy("large", &format!("'a'.matches('{pattern}')")));
        let failures =
            format!("admit_reloads_total{{part=\"policies\",result=\"failure\"}} {}\n", number + 1);
        serving.until("/metrics", |metrics| metrics.contains(&failures)).await;
    }
    patterns.len()
}
