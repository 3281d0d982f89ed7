//! Replaces addresses, domains, words and patterns in texts by rules; equal matches have equal replacements within an archive.

use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, Ipv6Addr};

use regex_automata::Input;
use regex_automata::meta::{Config, Regex};
use regex_automata::util::syntax;

use super::PatternError;
use super::find::{Address, Finder, Found, Kind};
use super::rules::{Replace, What};

/// The most labels of one kind. An archive of a large cluster has some ten thousand addresses; more labels would take memory and
/// tell a reader nothing.
const MAX_LABELS: usize = 1_000_000;
/// The longest match in bytes that gets its own label: a pattern may match a whole line.
const MAX_LABELLED: usize = 1_024;
/// The most bytes of a buffer that are kept for the next text.
const MAX_SPARE: usize = 4 * 1024 * 1024;
/// The largest size in bytes of a user's compiled pattern.
const MAX_PATTERN: usize = 4 * 1024 * 1024;

/// The number of replacements by kind.
pub type Counts = BTreeMap<&'static str, u64>;

/// The replacements of one archive. Each archive has its own, so that no table is shared between archives.
#[derive(Debug)]
pub struct Replacer {
    steps: Vec<Step>,
    given: Given,
    counts: Counts,
    /// The output buffer of the next step; texts are long, so allocating it each time would be slow.
    spare: Vec<u8>,
}

/// The labels assigned so far, by number.
#[derive(Debug, Default)]
struct Given {
    /// Archives consist largely of addresses, so these are looked up by value and not by text.
    addresses: HashMap<Address, usize>,
    texts: HashMap<(&'static str, Vec<u8>), usize>,
    /// The number of labels of each kind.
    last: BTreeMap<&'static str, usize>,
}

#[derive(Debug)]
struct Step {
    find: Find,
    consistent: bool,
    in_paths: bool,
    in_contents: bool,
}

#[derive(Debug)]
enum Find {
    Addresses(Finder),
    /// Strings with their replacements, by the number of the matching pattern.
    Texts(Regex, Vec<String>),
    Domains(Regex),
    Pattern(Regex),
}

impl Replacer {
    /// Prepares `rules`, which are applied one after the other; `domains` are those of the cluster, for rules that name none.
    ///
    /// # Errors
    /// [`PatternError`] for an invalid pattern.
    pub fn new(rules: &[Replace], domains: &[String]) -> Result<Self, PatternError> {
        let mut steps = Vec::new();
        for Replace { what, consistent, in_paths, in_contents } in rules {
            let find = match what {
                What::Ip => Some(Find::Addresses(Finder::new(&[Kind::V6, Kind::V4, Kind::Dashed])?)),
                What::Mac => Some(Find::Addresses(Finder::new(&[Kind::Mac])?)),
                What::Domains(named) => {
                    let named = if named.is_empty() { domains } else { named };
                    literal(named.iter().map(String::as_str), true)?.map(Find::Domains)
                }
                What::Texts(texts) => literal(longest(texts).map(|(from, _)| from), false)?.map(|pattern| {
                    Find::Texts(pattern, longest(texts).map(|(_, to)| to.to_owned()).collect())
                }),
                What::Regex(pattern) => Some(Find::Pattern(compiled(std::slice::from_ref(pattern))?)),
            };
            let (consistent, in_paths, in_contents) = (*consistent, *in_paths, *in_contents);
            steps.extend(find.map(|find| Step { find, consistent, in_paths, in_contents }));
        }
        Ok(Self { steps, given: Given::default(), counts: Counts::new(), spare: Vec::new() })
    }

    /// Replaces in a path. Its components stay separate.
    pub fn path(&mut self, path: &str) -> String {
        let replaced = self.replaced(path.as_bytes().to_vec(), |step| step.in_paths);
        String::from_utf8_lossy(&replaced).into_owned()
    }

    /// Replaces in contents. A match must be within one call.
    pub fn contents(&mut self, text: Vec<u8>) -> Vec<u8> {
        self.replaced(text, |step| step.in_contents)
    }

    /// Returns the number of replacements so far by kind.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the originals with their labels, for those who may see the originals.
    pub fn into_table(self) -> BTreeMap<String, String> {
        let Given { addresses, texts, .. } = self.given;
        let label = |kind, number| {
            let mut out = Vec::new();
            label(kind, number, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        };
        let addresses = addresses.into_iter().map(|(address, number)| {
            let (kind, original) = written(address);
            (original, label(kind, number))
        });
        let texts = texts.into_iter().map(|((kind, original), number)| {
            (String::from_utf8_lossy(&original).into_owned(), label(kind, number))
        });
        addresses.chain(texts).collect()
    }

    fn replaced(&mut self, mut text: Vec<u8>, wanted: impl Fn(&Step) -> bool) -> Vec<u8> {
        let Self { steps, given, counts, spare } = self;
        for step in steps.iter().filter(|step| wanted(step)) {
            let mut labels = Labels { given, counts, consistent: step.consistent };
            if step.find.replace(&text, spare, &mut labels) {
                std::mem::swap(&mut text, spare);
            }
        }
        if spare.capacity() > MAX_SPARE {
            *spare = Vec::new();
        }
        text
    }
}

/// Sorts longer strings first, since one may be a prefix of another.
fn longest(texts: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    let mut all: Vec<_> = texts.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
    all.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
    all.into_iter()
}

/// Creates a pattern that matches the literals `texts`; with `domains`, ignoring case and only at label boundaries.
fn literal<'t>(texts: impl Iterator<Item = &'t str>, domains: bool) -> Result<Option<Regex>, PatternError> {
    let mut texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
    if domains {
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    }
    let patterns: Vec<String> = texts
        .into_iter()
        .map(|text| {
            let text = escaped(text);
            if domains { format!(r"(?i-u:\b{text}\b)") } else { text }
        })
        .collect();
    if patterns.is_empty() { Ok(None) } else { compiled(&patterns).map(Some) }
}

/// Escapes `text` for a pattern.
fn escaped(text: &str) -> String {
    let sign = |c: char| if c.is_ascii_punctuation() { format!("\\{c}") } else { c.to_string() };
    text.chars().map(sign).collect()
}

/// Compiles patterns for bytes, line by line: the input need not be UTF-8.
fn compiled(patterns: &[String]) -> Result<Regex, PatternError> {
    let config = Config::new().utf8_empty(false).nfa_size_limit(Some(MAX_PATTERN));
    Regex::builder()
        .configure(config)
        .syntax(syntax::Config::new().utf8(false).multi_line(true))
        .build_many(patterns)
        .map_err(|error| PatternError(error.to_string()))
}

impl Find {
    /// Writes `text` to `out` with replacements; returns whether there are any.
    fn replace(&self, text: &[u8], out: &mut Vec<u8>, labels: &mut Labels<'_>) -> bool {
        out.clear();
        // Everything before `done` is written; the next search starts at `from`.
        let (mut done, mut from) = (0, 0);
        while let Some((range, found)) = self.find(text, from) {
            from = range.end.max(range.start + 1);
            let original = text.get(range.clone()).unwrap_or_default();
            if original.is_empty() {
                continue;
            }
            if done == 0 {
                out.reserve(text.len() + text.len() / 8);
            }
            out.extend_from_slice(text.get(done..range.start).unwrap_or_default());
            done = range.start;
            if labels.write(found, original, out) {
                done = range.end;
            }
        }
        if done == 0 {
            return false;
        }
        out.extend_from_slice(text.get(done..).unwrap_or_default());
        true
    }

    /// Returns the next match from `from` on.
    fn find(&self, text: &[u8], from: usize) -> Option<(std::ops::Range<usize>, Hidden<'_>)> {
        if from > text.len() {
            return None;
        }
        match self {
            Self::Addresses(finder) => {
                finder.find(text, from).map(|Found { range, address }| (range, Hidden::Address(address)))
            }
            Self::Texts(pattern, instead) => {
                let found = pattern.search(&Input::new(text).range(from..))?;
                let instead = instead.get(found.pattern().as_usize()).map_or("", String::as_str);
                Some((found.range(), Hidden::Word(instead)))
            }
            Self::Domains(pattern) => {
                Some((pattern.search(&Input::new(text).range(from..))?.range(), Hidden::Text(DOMAIN)))
            }
            Self::Pattern(pattern) => {
                Some((pattern.search(&Input::new(text).range(from..))?.range(), Hidden::Text(PATTERN)))
            }
        }
    }
}

/// A match, with how it is hidden.
#[derive(Clone, Copy)]
enum Hidden<'f> {
    Address(Address),
    /// A string with a fixed replacement.
    Word(&'f str),
    /// A string that gets a label of this kind.
    Text(&'static str),
}

const V4: &str = "IPv4 addresses";
const V6: &str = "IPv6 addresses";
const MAC: &str = "MAC addresses";
const DOMAIN: &str = "domains";
const PATTERN: &str = "patterns";

/// The table of labels, and the settings for assigning them.
struct Labels<'l> {
    given: &'l mut Given,
    counts: &'l mut Counts,
    consistent: bool,
}

impl Labels<'_> {
    fn count(&mut self, kind: &'static str) {
        *self.counts.entry(kind).or_default() += 1;
    }

    /// Writes the replacement of `original`; returns false and writes nothing for addresses that reveal nothing.
    fn write(&mut self, found: Hidden<'_>, original: &[u8], out: &mut Vec<u8>) -> bool {
        match found {
            Hidden::Address(address) => return self.address(address, out),
            Hidden::Word(instead) => {
                self.count("words");
                out.extend_from_slice(instead.as_bytes());
            }
            Hidden::Text(kind) => self.text(kind, original, out),
        }
        true
    }

    fn address(&mut self, address: Address, out: &mut Vec<u8>) -> bool {
        match address {
            Address::V4(Ipv4Addr::LOCALHOST | Ipv4Addr::UNSPECIFIED)
            | Address::V6(Ipv6Addr::LOCALHOST | Ipv6Addr::UNSPECIFIED)
            | Address::Mac([0, 0, 0, 0, 0, 0] | [255, 255, 255, 255, 255, 255]) => return false,
            Address::V4(_) => self.of_address(V4, address, "xxx.xxx.xxx.xxx", out),
            Address::V6(v6) => {
                if let Some(inner) = v6.to_ipv4_mapped() {
                    let before = out.len();
                    out.extend_from_slice(b"::ffff:");
                    let written = self.address(Address::V4(inner), out);
                    if !written {
                        out.truncate(before);
                    }
                    return written;
                }
                self.of_address(V6, address, "xxxx:xxxx:xxxx:xxxx:xxxx:xxxx:xxxx:xxxx", out);
            }
            Address::Mac(_) => self.of_address(MAC, address, "xx:xx:xx:xx:xx:xx", out),
        }
        true
    }

    fn of_address(&mut self, kind: &'static str, address: Address, hidden: &str, out: &mut Vec<u8>) {
        self.count(kind);
        let mut number = None;
        if self.consistent {
            number = self.given.addresses.get(&address).copied();
            if number.is_none() {
                number = self.number(kind);
                self.given.addresses.extend(number.map(|number| (address, number)));
            }
        }
        match number {
            Some(number) => label(kind, number, out),
            None => out.extend_from_slice(hidden.as_bytes()),
        }
    }

    fn text(&mut self, kind: &'static str, original: &[u8], out: &mut Vec<u8>) {
        self.count(kind);
        let mut number = None;
        if self.consistent && original.len() <= MAX_LABELLED {
            // Domains are compared ignoring case.
            let text = if kind == DOMAIN { original.to_ascii_lowercase() } else { original.to_vec() };
            let key = (kind, text);
            number = self.given.texts.get(&key).copied();
            if number.is_none() {
                number = self.number(kind);
                self.given.texts.extend(number.map(|number| (key, number)));
            }
        }
        match number {
            Some(number) => label(kind, number, out),
            None => out.resize(out.len() + original.len(), b'x'),
        }
    }

    /// Returns the number of a new label of this kind; None if there are too many.
    fn number(&mut self, kind: &'static str) -> Option<usize> {
        let last = self.given.last.entry(kind).or_default();
        if *last >= MAX_LABELS {
            return None;
        }
        *last += 1;
        Some(*last)
    }
}

/// Returns the kind of an address, and its notation in tables.
fn written(address: Address) -> (&'static str, String) {
    match address {
        Address::V4(address) => (V4, address.to_string()),
        Address::V6(address) => (V6, address.to_string()),
        Address::Mac(bytes) => (MAC, bytes.map(|byte| format!("{byte:02x}")).join(":")),
    }
}

/// Writes the label with this number, in the format that readers' tools know. It does not use the formatting machinery, because an
/// archive may consist largely of labels.
fn label(kind: &str, number: usize, out: &mut Vec<u8>) {
    let (before, behind): (&str, &str) = match kind {
        V4 => ("x-ipv4-", "-x"),
        V6 => ("x-ipv6-", "-x"),
        MAC => ("x-mac-", "-x"),
        DOMAIN => ("domain", ""),
        _ => ("x-text-", "-x"),
    };
    let (mut digits, mut rest) = ([b'0'; 10], number);
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
    }
    out.extend_from_slice(before.as_bytes());
    out.extend_from_slice(&digits);
    out.extend_from_slice(behind.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::super::rules::Ruleset;
    use super::*;

    fn usual() -> Replacer {
        let domains = ["corp.example".to_owned(), "api.corp.example".to_owned()];
        Replacer::new(&Ruleset::usual().replace, &domains).unwrap()
    }

    fn text(replacer: &mut Replacer, text: &str) -> String {
        String::from_utf8(replacer.contents(text.as_bytes().to_vec())).unwrap()
    }

    fn by(rules: &str) -> Replacer {
        Replacer::new(&Ruleset::parse(rules).unwrap().replace, &[]).unwrap()
    }

    #[test]
    fn the_same_becomes_the_same_in_paths_and_contents() {
        let mut replacer = usual();
        for (given, expected) in [
            ("10.0.0.1:443 to 10.0.0.2", "x-ipv4-0000000001-x:443 to x-ipv4-0000000002-x"),
            ("ip-10-0-0-1.ec2", "ip-x-ipv4-0000000001-x.ec2"),
            ("::ffff:10.0.0.2", "::ffff:x-ipv4-0000000002-x"),
            ("127.0.0.1 0.0.0.0 ::1", "127.0.0.1 0.0.0.0 ::1"),
            ("FE80::1 fe80:0::1", "x-ipv6-0000000001-x x-ipv6-0000000001-x"),
            ("52-54-00-5E-EE-C6 52:54:00:5e:ee:c6", "x-mac-0000000001-x x-mac-0000000001-x"),
            ("api.CORP.example:6443", "domain0000000001:6443"),
            ("x.corp.example notcorp.example", "x.domain0000000002 notcorp.example"),
        ] {
            assert_eq!(text(&mut replacer, given), expected, "{given}");
        }
        assert_eq!(replacer.path("nodes/ip-10-0-0-2.yaml"), "nodes/ip-x-ipv4-0000000002-x.yaml");
        assert_eq!((replacer.counts()[V4], replacer.counts()[MAC]), (5, 2));
        assert_eq!(replacer.into_table()["10.0.0.1"], "x-ipv4-0000000001-x");
    }

    #[test]
    fn rules_are_followed_in_their_order_and_where_they_say() {
        let mut replacer = by(
            "config: {obfuscate: [{type: IP}, {type: MAC, target: FilePath}, {type: Keywords, replacement: {secret: word, secretly: quietly}}, {type: Regex, regex: 'tls.*$'}, {type: Regex, regex: 'id-[0-9]+', replacementType: Consistent}]}",
        );
        assert_eq!(
            text(&mut replacer, "10.0.0.1 52:54:00:5e:ee:c6 secretly secret\nuse tlsv1.2\nid-7 id-8 id-7"),
            "xxx.xxx.xxx.xxx 52:54:00:5e:ee:c6 quietly word\nuse xxxxxxx\nx-text-0000000001-x x-text-0000000002-x x-text-0000000001-x"
        );
        assert_eq!(replacer.path("52:54:00:5e:ee:c6/10.0.0.1"), "xx:xx:xx:xx:xx:xx/10.0.0.1");
    }

    #[test]
    fn patterns_that_are_none_or_take_too_much_are_refused() {
        for pattern in ["(", "(?:(?:[a-z]{1000}){1000}){1000}"] {
            let rule = Replace {
                what: What::Regex(pattern.to_owned()),
                consistent: false,
                in_paths: false,
                in_contents: true,
            };
            assert!(Replacer::new(&[rule], &[]).is_err(), "{pattern}");
        }
    }

    #[test]
    fn an_empty_match_replaces_nothing() {
        let mut replacer = by("config: {obfuscate: [{type: Regex, regex: 'y*'}]}");
        assert_eq!(text(&mut replacer, "ayyb"), "axxb");
    }
}
