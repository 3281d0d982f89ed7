//! Defines the functions that parse a string into parts: addresses, networks and URLs. The engine parses constants; for given parts,
//! this lists the strings that have them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use admit_cel::{Bindings, Env, Evaluation, Mode, Opaque, Program, Type, Value, Version};

use super::literal::Given;
use super::term::Sort;

/// A function that parses a string into parts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Parser {
    /// `ip`: whether it is IPv4, its number, whether it is in canonical form.
    Address,
    /// `cidr`: whether it is IPv4, the number of its address, its prefix length.
    Network,
    /// `url`: scheme, host, hostname, port, path, number of query keys, and whether `url` accepts it (`isURL` accepts more).
    Url,
}

/// The getters of a URL whose results are strings.
pub(super) const URL_TEXTS: [&str; 5] = ["getScheme", "getHost", "getHostname", "getPort", "getEscapedPath"];

static PROGRAMS: LazyLock<[Option<Program>; 5]> = LazyLock::new(|| {
    let env = Env::kubernetes(Version(1, 36), Mode::Stored).with_variable("t", Type::String);
    let getters: Vec<String> = URL_TEXTS.iter().map(|getter| format!("url(t).{getter}()")).collect();
    let url = format!("[{}, string(size(url(t).getQuery()))]", getters.join(", "));
    ["ip(t)", "ip.isCanonical(t)", "cidr(t)", "isURL(t)", &url]
        .map(|text| env.program(&env.compile(text).ok()?).ok())
});

/// Maps an IPv6 address to a signed number that keeps the order: half of the addresses are negative.
pub(super) const fn number(address: u128) -> i128 {
    (address ^ (1 << 127)).cast_signed()
}

/// Returns whether an address is IPv4, and its number.
fn numbered(address: IpAddr) -> (bool, i128) {
    match address {
        IpAddr::V4(address) => (true, i128::from(address.to_bits())),
        IpAddr::V6(address) => (false, number(address.to_bits())),
    }
}

impl Parser {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Address => "the value of `ip` of a string",
            Self::Network => "the value of `cidr` of a string",
            Self::Url => "the value of `url` of a string",
        }
    }

    /// Returns the sorts of the parts.
    pub(super) const fn sorts(self) -> &'static [Sort] {
        match self {
            Self::Address => &[Sort::Bool, Sort::Int, Sort::Bool],
            Self::Network => &[Sort::Bool, Sort::Int, Sort::Int],
            Self::Url => &[Sort::Text, Sort::Text, Sort::Text, Sort::Text, Sort::Text, Sort::Int, Sort::Bool],
        }
    }

    /// Parses a string; `None` if it is invalid.
    pub(super) fn parts(self, text: &str) -> Option<Vec<Given>> {
        let arena = bumpalo::Bump::new();
        let [ip, is_canonical, cidr, is_url, url] = &*PROGRAMS;
        let call = |program: &'static Option<Program>| {
            let program = program.as_ref()?;
            let mut bindings = Bindings::new(program);
            bindings.set("t", Value::String(text));
            program.eval(&bindings, &mut Evaluation::new(&arena)).ok()
        };
        match self {
            Self::Address => {
                let Some(Value::Opaque(Opaque::Ip(address))) = call(ip) else { return None };
                let (is_v4, number) = numbered(address);
                let is_canonical = matches!(call(is_canonical), Some(Value::Bool(true)));
                Some(vec![Given::Bool(is_v4), Given::Int(number), Given::Bool(is_canonical)])
            }
            Self::Network => {
                let Some(Value::Opaque(Opaque::Cidr(address, prefix))) = call(cidr) else { return None };
                let (is_v4, number) = numbered(address);
                Some(vec![Given::Bool(is_v4), Given::Int(number), Given::Int(prefix.into())])
            }
            Self::Url => {
                let Some(Value::Bool(true)) = call(is_url) else { return None };
                let read = match call(url) {
                    Some(Value::List(list)) => list.to_slice(&arena).ok()?,
                    _ => &[],
                };
                let mut parts: Vec<Given> = (0..URL_TEXTS.len())
                    .map(|at| match read.get(at) {
                        Some(Value::String(text)) => Given::Text((*text).to_owned()),
                        _ => Given::Text(String::new()),
                    })
                    .collect();
                let count = match read.last() {
                    Some(Value::String(count)) => count.parse().ok()?,
                    _ => 0,
                };
                parts.extend([Given::Int(count), Given::Bool(!read.is_empty())]);
                Some(parts)
            }
        }
    }

    /// Returns invalid strings of several forms.
    pub(super) const fn unreadable(self) -> &'static [&'static str] {
        match self {
            Self::Address => {
                &["x", "", "1.2.3", "01.2.3.4", "1.2.3.4.5", "::ffff:1.2.3.4", "1:2", "1.2.3.4/5"]
            }
            Self::Network => &["x", "", "1.2.3.4", "1.2.3.4/33", "1.2.3.4/01", "::1", "::/129", "1.2.3.4/"],
            Self::Url => &["x", "", "a b", "a.b", "http://[", "https://a:b", "https://%"],
        }
    }

    /// Returns strings: first those with these parts, then others that share some or none of them.
    pub(super) fn spellings(self, parts: &[Given]) -> Vec<String> {
        let mut texts = match (self, parts) {
            (Self::Address, [Given::Bool(is_v4), Given::Int(number), ..]) => addresses(*is_v4, *number),
            (Self::Network, [Given::Bool(is_v4), Given::Int(number), Given::Int(prefix)]) => {
                let addresses = addresses(*is_v4, *number);
                addresses.into_iter().map(|address| format!("{address}/{prefix}")).collect()
            }
            (Self::Url, parts) => urls(parts),
            _ => Vec::new(),
        };
        let is_url = self == Self::Url;
        texts.retain(|text| self.parts(text).is_some_and(|read| is_url || read == parts));
        texts.sort_by_key(|text| {
            let read = self.parts(text).unwrap_or_default();
            read.iter().zip(parts).filter(|(one, other)| one != other).count()
        });
        texts.dedup();
        // Short strings, for fields with a small maximum length.
        texts.extend(self.usual().iter().map(|text| (*text).to_owned()));
        texts
    }

    const fn usual(self) -> &'static [&'static str] {
        match self {
            Self::Address => &["::1", "10.0.0.1", "1::"],
            Self::Network => &["::/0", "10.0.0.0/8", "1::/16"],
            Self::Url => &["/", "a:", "http://a"],
        }
    }
}

/// Returns the spellings of an address.
fn addresses(is_v4: bool, number: i128) -> Vec<String> {
    if is_v4 {
        return u32::try_from(number)
            .ok()
            .map(|bits| Ipv4Addr::from_bits(bits).to_string())
            .into_iter()
            .collect();
    }
    let address = Ipv6Addr::from_bits(number.cast_unsigned() ^ (1 << 127));
    let groups = |write: fn(u16) -> String| address.segments().map(write).join(":");
    let shown = address.to_string();
    vec![
        shown.clone(),
        groups(|group| format!("{group:x}")),
        groups(|group| format!("{group:04x}")),
        shown.to_ascii_uppercase(),
    ]
}

/// Returns URLs with these parts, or similar ones if no URL has exactly these.
fn urls(parts: &[Given]) -> Vec<String> {
    let mut wanted: Vec<&str> = Vec::new();
    let mut count = 0;
    let mut is_read = true;
    for part in parts {
        match part {
            Given::Text(text) => wanted.push(text),
            Given::Int(number) => count = *number,
            Given::Bool(known) => is_read = *known,
        }
    }
    let [scheme, host, hostname, port, path] = wanted.as_slice() else { return Vec::new() };
    if !is_read {
        return ["//a:b/", "http://a/?#%", "https://a/?#%"].map(str::to_owned).to_vec();
    }
    let query = match usize::try_from(count).unwrap_or(0).min(9) {
        0 => String::new(),
        count => format!(
            "?{}",
            ["a", "b", "c", "d", "e", "f", "g", "h", "i"].get(..count).unwrap_or_default().join("&")
        ),
    };
    let with_port = format!("{hostname}:{port}");
    let mut texts = vec![format!("{path}{query}"), "*".to_owned(), format!("/{query}")];
    for scheme in [scheme, "http", "https", "a"] {
        texts.push(format!("{scheme}:{path}{query}"));
        for host in [host, &*with_port, hostname, "a", ""] {
            for path in [path, "", "/", "/a"] {
                texts.push(format!("{scheme}://{host}{path}{query}"));
            }
        }
    }
    texts
}
