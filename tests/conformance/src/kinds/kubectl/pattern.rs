//! Compares printed text with recorded text that holds placeholders (`<uid:a>`, `<age>`); runs of blanks count as one.

use std::collections::BTreeMap;

/// What placeholders with an index stood for so far in a scenario.
#[derive(Debug, Default)]
pub(super) struct Bindings(BTreeMap<String, String>);

impl Bindings {
    /// Replaces the placeholders in a command's input by what they stood for.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for (placeholder, value) in &self.0 {
            filled = filled.replace(placeholder.as_str(), value);
        }
        filled
    }

    /// Whether `actual` is what `recorded` says; binds placeholders that had no value yet.
    pub(super) fn matches(&mut self, recorded: &str, actual: &str) -> bool {
        let (recorded, actual) = (squeezed(recorded), squeezed(actual));
        let parts = split(&recorded);
        let mut bound = Vec::new();
        if !self.walk(&parts, &actual, &mut bound) {
            return false;
        }
        self.0.extend(bound);
        true
    }

    fn walk(&self, parts: &[Part<'_>], actual: &str, bound: &mut Vec<(String, String)>) -> bool {
        let Some((part, rest)) = parts.split_first() else { return actual.is_empty() };
        match part {
            Part::Literal(text) => {
                actual.strip_prefix(text).is_some_and(|after| self.walk(rest, after, bound))
            }
            Part::Placeholder(name) => {
                let known = self.0.get(*name).cloned().or_else(|| {
                    bound.iter().find(|(placeholder, _)| placeholder == name).map(|(_, value)| value.clone())
                });
                if let Some(known) = known.filter(|_| is_binding(name)) {
                    return actual.strip_prefix(&known).is_some_and(|after| self.walk(rest, after, bound));
                }
                let longest = actual.find(|c| !admits(name, c)).unwrap_or(actual.len());
                // Longest first: a placeholder takes the whole word, unless the text after it needs a part.
                for end in (1..=longest).rev().filter(|end| actual.is_char_boundary(*end)) {
                    let (value, after) = actual.split_at(end);
                    let depth = bound.len();
                    bound.push(((*name).to_owned(), value.to_owned()));
                    if self.walk(rest, after, bound) {
                        return true;
                    }
                    bound.truncate(depth);
                }
                false
            }
        }
    }
}

enum Part<'t> {
    Literal(&'t str),
    Placeholder(&'t str),
}

const KINDS: [&str; 16] = [
    "rv",
    "uid",
    "time",
    "microtime",
    "gen",
    "hash",
    "token",
    "continue",
    "age",
    "duration",
    "tmp",
    "n",
    "klog",
    "server",
    "ip",
    "webhook",
];

fn kind(placeholder: &str) -> &str {
    let inner = placeholder.trim_start_matches('<').trim_end_matches('>');
    inner.split(':').next().unwrap_or(inner)
}

/// Times may be equal by chance, and revisions are only ordered: neither is held to one value.
fn is_binding(placeholder: &str) -> bool {
    matches!(kind(placeholder), "uid" | "gen")
}

fn admits(placeholder: &str, character: char) -> bool {
    match kind(placeholder) {
        "rv" | "n" => character.is_ascii_digit(),
        "uid" => character.is_ascii_hexdigit() || character == '-',
        "gen" => character.is_ascii_alphanumeric(),
        "age" | "duration" => character.is_ascii_alphanumeric() || "<>.".contains(character),
        "time" | "microtime" | "klog" => character != '\n' && character != '"',
        _ => !character.is_whitespace() && character != '"',
    }
}

fn split(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut literal = 0;
    let mut from = 0;
    while let Some(open) = text[from..].find('<').map(|at| at + from) {
        let Some(close) = text[open..].find('>').map(|at| at + open + 1) else { break };
        let candidate = &text[open..close];
        if KINDS.contains(&kind(candidate)) {
            parts.push(Part::Literal(&text[literal..open]));
            parts.push(Part::Placeholder(candidate));
            literal = close;
            from = close;
        } else {
            from = open + 1;
        }
    }
    parts.push(Part::Literal(&text[literal..]));
    parts
}

/// One blank for each run of them, none at the ends of lines. What differs from run to run is evened out: log lines of
/// the client library are left out, lists of causes (made from unordered maps) are sorted, ages counted in days or
/// years, which grow with the corpus, become `AGED`.
fn squeezed(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut causes: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !is_log(line)) {
        let words = line.split([' ', '\t']).filter(|word| !word.is_empty());
        let mut words: Vec<&str> =
            words.map(|word| if is_old(word) { "AGED" } else { released(word) }).collect();
        if words.first().is_some_and(|name| BUILD.contains(&name.trim_matches(['"', ':']))) {
            words.truncate(1);
        }
        if words.first() == Some(&"*") {
            causes.push(words.join(" "));
        } else {
            causes.sort();
            lines.append(&mut causes);
            lines.push(words.join(" "));
        }
    }
    causes.sort();
    lines.append(&mut causes);
    lines.join("\n").trim_end().to_owned()
}

/// Who built a server, when and with what is its own.
const BUILD: [&str; 6] = ["buildDate", "compiler", "gitCommit", "gitTreeState", "goVersion", "platform"];

/// A version without what a build adds to it: `v1.36.2+mine`.
fn released(word: &str) -> &str {
    let version = word.trim_matches(['"', ',']);
    match version.split_once('+') {
        Some((release, _)) if release.starts_with('v') && release.split('.').count() == 3 => release,
        _ if version.starts_with('v') && version.split('.').count() == 3 => version,
        _ => word,
    }
}

/// `E1121 03:21:07.303633   29841 reflector.go:166] …`, or the same as recorded: `E<klog> reflector.go:166] …`.
fn is_log(line: &str) -> bool {
    let is_level = line.starts_with(['E', 'W', 'I']);
    let rest = line.get(1..).unwrap_or_default();
    let dated = rest.get(..4).is_some_and(|date| date.bytes().all(|c| c.is_ascii_digit()));
    is_level && line.contains("reflector.go") && (dated || rest.starts_with("<klog>"))
}

fn is_old(word: &str) -> bool {
    word.strip_suffix('d').is_some_and(|number| {
        let (years, days) = number.split_once('y').unwrap_or(("0", number));
        [years, days].iter().all(|part| part.parse::<u32>().is_ok())
    })
}

#[test]
fn placeholders_stand_for_words_and_stay_the_same() {
    let mut bindings = Bindings::default();
    assert!(bindings.matches("NAME   AGE\none    <age>\n", "NAME AGE\none  5s\n"));
    assert!(bindings.matches("uid: <uid:a>", "uid: 12-ab"));
    assert!(!bindings.matches("uid: <uid:a>", "uid: 12-ac"));
    assert!(!bindings.matches("a <none>", "a b"));
    assert_eq!(bindings.fill("x <uid:a>"), "x 12-ab");
}
