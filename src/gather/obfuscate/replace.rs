//! Texts with what rules replace in them: addresses, domains, words, patterns; the same for the same throughout one archive.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use regex_automata::meta::{Config, Regex};
use regex_automata::util::syntax;

use super::PatternError;
use super::find::{Address, Finder, Found, Kind};
use super::rules::{Replace, What};

/// Labels of one kind. An archive of a large cluster has some ten thousand addresses; behind so many each costs its memory and
/// tells a reader nothing.
const MAX_LABELS: usize = 1_000_000;
/// Bytes of a text that gets a label of its own: what a pattern finds may be a whole line.
const MAX_LABELLED: usize = 1_024;
/// Bytes that a pattern of somebody else's may take when it is compiled.
const MAX_PATTERN: usize = 4 * 1024 * 1024;

/// What rules have replaced, by kind.
pub type Counts = BTreeMap<&'static str, u64>;

/// One archive's replacements. Each archive gets its own, so no table outlives or leaks into another.
#[derive(Debug)]
pub struct Replacer {
    steps: Vec<Step>,
    labels: BTreeMap<&'static str, BTreeMap<Vec<u8>, usize>>,
    counts: Counts,
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
    /// Texts by the number of the pattern that finds them, with what each becomes.
    Texts(Regex, Vec<String>),
    Domains(Regex),
    Pattern(Regex),
}

impl Replacer {
    /// Replaces as `rules` say, one after the other; `domains` are those of the cluster, for rules that name none.
    ///
    /// # Errors
    /// [`PatternError`] for a pattern that does not compile.
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
        Ok(Self { steps, labels: BTreeMap::new(), counts: Counts::new() })
    }

    /// A path with what is replaced in paths. A part of it stays a part.
    pub fn path(&mut self, path: &str) -> String {
        let replaced = self.replaced(path.as_bytes().to_vec(), |step| step.in_paths);
        String::from_utf8_lossy(&replaced).into_owned()
    }

    /// Contents with what is replaced in contents. What is to be found has to stand in one piece.
    pub fn contents(&mut self, text: Vec<u8>) -> Vec<u8> {
        self.replaced(text, |step| step.in_contents)
    }

    /// What was replaced so far, by kind.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Original to label, for whoever has the originals.
    pub fn into_table(self) -> BTreeMap<String, String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let labels = self.labels.into_iter();
        labels
            .flat_map(|(kind, labels)| {
                labels.into_iter().map(move |(original, number)| (text(&original), label(kind, number)))
            })
            .collect()
    }

    fn replaced(&mut self, mut text: Vec<u8>, wanted: impl Fn(&Step) -> bool) -> Vec<u8> {
        let Self { steps, labels, counts } = self;
        for step in steps.iter().filter(|step| wanted(step)) {
            let mut labels = Labels { all: labels, counts, consistent: step.consistent };
            text = step.find.replaced(text, &mut labels);
        }
        text
    }
}

/// Longer texts first: one may begin with another.
fn longest(texts: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    let mut all: Vec<_> = texts.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
    all.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
    all.into_iter()
}

/// A pattern for each of `texts` as it stands; for domains, in any case and not as a part of a longer name's label.
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

/// A pattern that finds `text` as it stands.
fn escaped(text: &str) -> String {
    let sign = |c: char| if c.is_ascii_punctuation() { format!("\\{c}") } else { c.to_string() };
    text.chars().map(sign).collect()
}

/// Patterns over bytes, line by line: what is looked through need not be UTF-8.
fn compiled(patterns: &[String]) -> Result<Regex, PatternError> {
    let config = Config::new().utf8_empty(false).nfa_size_limit(Some(MAX_PATTERN));
    Regex::builder()
        .configure(config)
        .syntax(syntax::Config::new().utf8(false).multi_line(true))
        .build_many(patterns)
        .map_err(|error| PatternError(error.to_string()))
}

impl Find {
    fn replaced(&self, text: Vec<u8>, labels: &mut Labels<'_>) -> Vec<u8> {
        let (mut out, mut done) = (Vec::new(), 0);
        while let Some((range, instead)) = self.next(&text, done, labels) {
            if out.capacity() == 0 {
                out.reserve(text.len() + text.len() / 8);
            }
            out.extend_from_slice(text.get(done..range.start).unwrap_or_default());
            out.extend_from_slice(&instead);
            done = range.end;
        }
        if done == 0 {
            return text;
        }
        out.extend_from_slice(text.get(done..).unwrap_or_default());
        out
    }

    /// The next place from `from` on, and what stands there instead.
    fn next(
        &self,
        text: &[u8],
        mut from: usize,
        labels: &mut Labels<'_>,
    ) -> Option<(std::ops::Range<usize>, Vec<u8>)> {
        loop {
            let (range, instead) = match self {
                Self::Addresses(finder) => {
                    let Found { range, address } = finder.find(text, from)?;
                    (range, labels.address(address))
                }
                Self::Texts(pattern, instead) => {
                    let found = pattern.search(&regex_automata::Input::new(text).range(from..))?;
                    let instead = instead.get(found.pattern().as_usize()).cloned().unwrap_or_default();
                    labels.count("words");
                    (found.range(), Some(instead.into_bytes()))
                }
                Self::Domains(pattern) | Self::Pattern(pattern) => {
                    let found = pattern.search(&regex_automata::Input::new(text).range(from..))?;
                    let kind = if matches!(self, Self::Domains(_)) { DOMAIN } else { PATTERN };
                    let original = text.get(found.range()).unwrap_or_default();
                    (found.range(), labels.text(kind, original))
                }
            };
            match instead {
                Some(instead) if !range.is_empty() => return Some((range, instead)),
                _ => from = range.end.max(range.start + 1),
            }
            if from > text.len() {
                return None;
            }
        }
    }
}

const V4: &str = "IPv4 addresses";
const V6: &str = "IPv6 addresses";
const MAC: &str = "MAC addresses";
const DOMAIN: &str = "domains";
const PATTERN: &str = "patterns";

/// Labels that were given, and whether they are given.
struct Labels<'l> {
    all: &'l mut BTreeMap<&'static str, BTreeMap<Vec<u8>, usize>>,
    counts: &'l mut Counts,
    consistent: bool,
}

impl Labels<'_> {
    fn count(&mut self, kind: &'static str) {
        *self.counts.entry(kind).or_default() += 1;
    }

    /// What stands for an address; none for one that says nothing about a network.
    fn address(&mut self, address: Address) -> Option<Vec<u8>> {
        match address {
            Address::V4(address) => self.ip(address.into()),
            Address::V6(address) => match address.to_ipv4_mapped() {
                Some(inner) => self.ip(inner.into()).map(|label| [b"::ffff:".as_slice(), &label].concat()),
                None => self.ip(address.into()),
            },
            Address::Mac([0, 0, 0, 0, 0, 0] | [255, 255, 255, 255, 255, 255]) => None,
            Address::Mac(bytes) => {
                let bytes = bytes.map(|byte| format!("{byte:02x}"));
                Some(self.labelled(MAC, bytes.join(":").as_bytes(), "xx:xx:xx:xx:xx:xx"))
            }
        }
    }

    fn ip(&mut self, address: IpAddr) -> Option<Vec<u8>> {
        let plain = [
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        ];
        if plain.contains(&address) {
            return None;
        }
        let (kind, hidden) = match address {
            IpAddr::V4(_) => (V4, "xxx.xxx.xxx.xxx"),
            IpAddr::V6(_) => (V6, "xxxx:xxxx:xxxx:xxxx:xxxx:xxxx:xxxx:xxxx"),
        };
        Some(self.labelled(kind, address.to_string().as_bytes(), hidden))
    }

    fn text(&mut self, kind: &'static str, original: &[u8]) -> Option<Vec<u8>> {
        let hidden = "x".repeat(original.len());
        if kind == DOMAIN {
            return Some(self.labelled(kind, &original.to_ascii_lowercase(), &hidden));
        }
        Some(self.labelled(kind, original, &hidden))
    }

    fn labelled(&mut self, kind: &'static str, original: &[u8], hidden: &str) -> Vec<u8> {
        self.count(kind);
        if !self.consistent || original.len() > MAX_LABELLED {
            return hidden.as_bytes().to_vec();
        }
        let labels = self.all.entry(kind).or_default();
        if let Some(number) = labels.get(original) {
            return label(kind, *number).into_bytes();
        }
        if labels.len() >= MAX_LABELS {
            return hidden.as_bytes().to_vec();
        }
        let number = labels.len() + 1;
        labels.insert(original.to_vec(), number);
        label(kind, number).into_bytes()
    }
}

/// What stands for the original of this number: as the tools of readers know it.
fn label(kind: &str, number: usize) -> String {
    match kind {
        V4 => format!("x-ipv4-{number:010}-x"),
        V6 => format!("x-ipv6-{number:010}-x"),
        MAC => format!("x-mac-{number:010}-x"),
        DOMAIN => format!("domain{number:010}"),
        _ => format!("x-text-{number:010}-x"),
    }
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
