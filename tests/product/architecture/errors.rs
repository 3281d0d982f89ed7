//! Which results have a text for an error: callers cannot tell the cases of such a one apart.

use super::is_test;
use super::paths::{product_tokens, tokens};
use crate::repository::rust_files;

/// Where a text is all that anybody needs, and why. This list may only shrink.
const TEXTS: [(&str, usize, &str); 2] = [
    ("src/analysis/prove/demands.rs", 1, "what cannot be said as a term; it is only printed"),
    (
        "src/controllers/mustgather/fetch.rs",
        1,
        "a stage that is copied and compared, which the client's error cannot be; a condition repeats it",
    ),
];

#[test]
fn errors_have_types() {
    let mut found: Vec<(String, usize)> = rust_files("src")
        .into_iter()
        .filter(|file| !is_test(&file.path))
        .map(|file| (file.path, texts(&product_tokens(&file.text))))
        .filter(|(_, count)| *count > 0)
        .collect();
    found.sort();
    let known = TEXTS.map(|(path, count, _)| (path.to_owned(), count));
    assert_eq!(
        found, known,
        "results whose error is a String, by file: give the error a type, and strike off what is gone"
    );
}

/// How many types are a `Result` whose error is a `String`.
fn texts(tokens: &[String]) -> usize {
    tokens.windows(2).enumerate().filter(|(at, next)| begins(next) && ends_in_text(&tokens[at + 2..])).count()
}

fn begins(next: &[String]) -> bool {
    next[0] == "Result" && next[1] == "<"
}

/// Whether the last argument of a type is `String`; the tokens begin with its first.
fn ends_in_text(tokens: &[String]) -> bool {
    let (mut depth, mut last, mut arguments) = (0_usize, Vec::new(), 1);
    for (at, token) in tokens.iter().enumerate() {
        match token.as_str() {
            ">" if at > 0 && tokens[at - 1] == "-" => {}
            ">" if depth == 0 => return arguments == 2 && last == ["String"],
            "," if depth == 0 => {
                // What is behind the last comma may be nothing.
                if tokens.get(at + 1).is_none_or(|next| next != ">") {
                    (arguments, last) = (arguments + 1, Vec::new());
                }
                continue;
            }
            "<" | "(" | "[" => depth += 1,
            ">" | ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        last.push(token.as_str());
    }
    false
}

#[test]
fn results_are_read_to_their_end() {
    let count = |text: &str| texts(&tokens(text));
    for one in [
        "fn a() -> Result<(), String> {}",
        "fn a(\n    b: u8,\n) -> Result<\n    Vec<(u8, String)>,\n    String,\n> {}",
        "type A = Option<Result<bool, String>>;",
        "fn a(b: fn(&str) -> Result<(), String>) {}",
        "let a = Ok::<_, String>(1); let b: Result<fn(u8) -> u8, String> = c;",
    ] {
        assert_eq!(count(one), 1, "{one}");
    }
    for none in [
        "fn a() -> Result<BTreeMap<String, String>, Error> {}",
        "fn a() -> Result<String> {}",
        "fn a() -> Result<String, Vec<String>> {}",
        "// Result<(), String>",
        "let a = \"Result<(), String>\";",
    ] {
        assert_eq!(count(none), 0, "{none}");
    }
    let tested = "fn a() -> Result<(), String> {}\n#[cfg(test)]\nmod tests { fn b() -> Result<(), String> {} }\n\
        fn c() -> Result<(), String> {}";
    assert_eq!((texts(&product_tokens(tested)), count(tested)), (2, 3));
}
