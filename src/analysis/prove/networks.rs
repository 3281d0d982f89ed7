//! Translates functions on IP addresses, networks (CIDR) and URLs.

use admit_cel::syntax::{Expr, ExprId};

use super::document::World;
use super::eval::Evaluator;
use super::literal::Given;
use super::parser::{Parser, URL_TEXTS, number};
use super::readings::{Address, Edges, Network};
use super::term::{Sort, Term};
use super::value::{Outcome, Url, Value};
use super::{Undecided, undecided};

/// First and last address of each range, for IPv4 and for IPv6.
type Ranges = (&'static [(u32, u32)], &'static [(u128, u128)]);

const fn v6(first_group: u16, bits: u32) -> (u128, u128) {
    let first = (first_group as u128) << 112;
    (first, first | (u128::MAX >> bits))
}

const LOOPBACK: Ranges = (&[(0x7f00_0000, 0x7fff_ffff)], &[(1, 1)]);
const UNSPECIFIED: Ranges = (&[(0, 0)], &[(0, 0)]);
const LINK_LOCAL: Ranges = (&[(0xa9fe_0000, 0xa9fe_ffff)], &[v6(0xfe80, 10)]);
const MULTICAST: Ranges = (&[(0xe000_0000, 0xefff_ffff)], &[v6(0xff00, 8)]);
const BROADCAST: Ranges = (&[(u32::MAX, u32::MAX)], &[]);
/// The four bits between the multicast prefix and the scope are flags.
const LINK_LOCAL_MULTICAST: Ranges = (
    &[(0xe000_0000, 0xe000_00ff)],
    &[
        v6(0xff02, 16),
        v6(0xff12, 16),
        v6(0xff22, 16),
        v6(0xff32, 16),
        v6(0xff42, 16),
        v6(0xff52, 16),
        v6(0xff62, 16),
        v6(0xff72, 16),
        v6(0xff82, 16),
        v6(0xff92, 16),
        v6(0xffa2, 16),
        v6(0xffb2, 16),
        v6(0xffc2, 16),
        v6(0xffd2, 16),
        v6(0xffe2, 16),
        v6(0xfff2, 16),
    ],
);

/// Returns the ranges that a predicate such as `isLoopback` tests; `None` for any other function.
const fn ranges_of(function: &str) -> Option<Ranges> {
    Some(match function.as_bytes() {
        b"isLoopback" => LOOPBACK,
        b"isUnspecified" => UNSPECIFIED,
        b"isLinkLocalUnicast" => LINK_LOCAL,
        b"isLinkLocalMulticast" => LINK_LOCAL_MULTICAST,
        _ => return None,
    })
}

impl Evaluator<'_, '_, '_> {
    /// Translates a function on addresses, networks or URLs; `None` for any other.
    pub(super) fn network_call(
        &mut self,
        function: &str,
        is_member: bool,
        all: &[ExprId],
    ) -> Option<Result<Outcome, Undecided>> {
        Some(match (function, is_member, all) {
            ("isIP" | "ip" | "ip.isCanonical", false, [text]) => self.parse(*text, Parser::Address, function),
            ("isCIDR" | "cidr", false, [text]) => self.parse(*text, Parser::Network, function),
            ("isURL" | "url", false, [text]) => self.parse(*text, Parser::Url, function),
            (
                "family"
                | "isLoopback"
                | "isUnspecified"
                | "isLinkLocalUnicast"
                | "isLinkLocalMulticast"
                | "isGlobalUnicast",
                true,
                [address],
            ) => self.of_address(*address, function),
            ("ip" | "prefixLength" | "masked", true, [network]) => self.of_network(*network, function),
            ("containsIP" | "containsCIDR", true, [network, part]) => self.within(function, *network, *part),
            ("getQuery", true, [_]) => Err(undecided("the query parameters of a URL")),
            (getter, true, [url]) if URL_TEXTS.contains(&getter) => self.of_url(*url, getter),
            _ => return None,
        })
    }

    fn parse(&mut self, text: ExprId, parser: Parser, function: &str) -> Result<Outcome, Undecided> {
        let span = self.ast.span(text);
        let text = self.eval(text)?;
        self.each(&text, &mut |this, value| match value {
            Value::Text(text) => {
                this.world.note_parser(parser, *text, span);
                this.parsed_value(parser, *text, function)
            }
            value => this.no_overload(value),
        })
    }

    fn parsed_value(&mut self, parser: Parser, text: Term, function: &str) -> Result<Outcome, Undecided> {
        let parsed = self.world.parsed(parser, text)?;
        let terms = &mut self.world.terms;
        let error = terms.not(parsed.good);
        if matches!(function, "isIP" | "isCIDR" | "isURL") {
            return Ok(self.world.good(Value::Bool(parsed.good)));
        }
        let value = match (parser, parsed.parts.as_slice()) {
            (Parser::Address, [_, _, is_canonical]) if function == "ip.isCanonical" => {
                Value::Bool(*is_canonical)
            }
            (Parser::Address, [is_v4, number, _]) => {
                Value::Address(Address { is_v4: *is_v4, number: *number })
            }
            (Parser::Network, [is_v4, number, prefix]) => {
                let address = Address { is_v4: *is_v4, number: *number };
                Value::Network(Network { address, prefix: *prefix })
            }
            (Parser::Url, [scheme, host, hostname, port, path, count, is_read]) => {
                let is_good = terms.and(&[parsed.good, *is_read]);
                let texts = [*scheme, *host, *hostname, *port, *path];
                return Ok(Outcome {
                    error: terms.not(is_good),
                    value: Value::Url(Url { texts, count: *count }),
                });
            }
            _ => return Err(undecided("parts of an address or URL that are not known")),
        };
        Ok(Outcome { error, value })
    }

    fn of_address(&mut self, address: ExprId, function: &str) -> Result<Outcome, Undecided> {
        let address = self.eval(address)?;
        self.each(&address, &mut |this, value| {
            let Value::Address(address) = value else { return this.no_overload(value) };
            let world = &mut *this.world;
            let value = match (function, ranges_of(function)) {
                (_, Some(ranges)) => Value::Bool(world.is_in(*address, ranges)),
                ("family", _) => {
                    let (four, six) = (world.terms.int(4), world.terms.int(6));
                    Value::Int(world.terms.ite(address.is_v4, four, six))
                }
                _ => {
                    let others = [BROADCAST, UNSPECIFIED, LOOPBACK, MULTICAST, LINK_LOCAL];
                    let others = others.map(|ranges| world.is_in(*address, ranges));
                    let is_other = world.terms.or(&others);
                    Value::Bool(world.terms.not(is_other))
                }
            };
            Ok(world.good(value))
        })
    }

    fn of_network(&mut self, network: ExprId, function: &str) -> Result<Outcome, Undecided> {
        let network = self.eval(network)?;
        self.each(&network, &mut |this, value| {
            let Value::Network(network) = value else { return this.no_overload(value) };
            let value = match function {
                "ip" => Value::Address(network.address),
                "prefixLength" => Value::Int(network.prefix),
                _ => {
                    let edges = this.world.edges(*network);
                    let address = Address { number: edges.first, ..network.address };
                    let masked = Network { address, prefix: network.prefix };
                    if !this.world.readings.edges.iter().any(|(known, _)| *known == masked) {
                        this.world.readings.edges.push((masked, edges));
                    }
                    Value::Network(masked)
                }
            };
            Ok(this.world.good(value))
        })
    }

    fn within(&mut self, function: &str, network: ExprId, part: ExprId) -> Result<Outcome, Undecided> {
        let span = self.ast.span(part);
        let (network, part) = (self.eval(network)?, self.eval(part)?);
        self.both(&network, &part, &mut |this, network, part| {
            let Value::Network(network) = network else { return this.no_overload(network) };
            let part = match part {
                Value::Text(text) => {
                    let (parser, reads) = match function {
                        "containsIP" => (Parser::Address, "ip"),
                        _ => (Parser::Network, "cidr"),
                    };
                    this.world.note_parser(parser, *text, span);
                    this.parsed_value(parser, *text, reads)?
                }
                value => this.world.good(value.clone()),
            };
            let (address, prefix) = match (&part.value, function) {
                (Value::Address(address), "containsIP") => (*address, None),
                (Value::Network(inner), "containsCIDR") => (inner.address, Some(inner.prefix)),
                (value, _) => return this.no_overload(value),
            };
            let edges = this.world.edges(*network);
            let terms = &mut this.world.terms;
            let mut holds = vec![
                terms.eq(network.address.is_v4, address.is_v4),
                terms.le(edges.first, address.number),
                terms.le(address.number, edges.last),
            ];
            holds.extend(prefix.map(|inner| terms.le(network.prefix, inner)));
            let value = Value::Bool(terms.and(&holds));
            Ok(Outcome { error: part.error, value })
        })
    }

    fn of_url(&mut self, url: ExprId, getter: &str) -> Result<Outcome, Undecided> {
        let url = self.eval(url)?;
        self.each(&url, &mut |this, value| {
            let Value::Url(url) = value else { return this.no_overload(value) };
            let text = URL_TEXTS.iter().zip(url.texts).find(|(name, _)| **name == getter);
            let (_, text) = text.ok_or_else(|| undecided("a part of a URL"))?;
            Ok(this.world.good(Value::Text(text)))
        })
    }

    /// Returns whether a query map equals `{}`, if that is what is compared.
    pub(super) fn is_no_query(
        &mut self,
        left: ExprId,
        right: ExprId,
        is_negated: bool,
    ) -> Option<Result<Outcome, Undecided>> {
        let is_nothing = |id: ExprId| matches!(self.ast.expr(id), Expr::Map(entries) if entries.is_empty());
        let query = if is_nothing(right) {
            left
        } else if is_nothing(left) {
            right
        } else {
            return None;
        };
        let count = self.keys_of_query(query)?;
        Some(count.and_then(|count| {
            self.each(&count, &mut |this, value| {
                let Value::Int(count) = value else { return this.no_overload(value) };
                let zero = this.world.terms.int(0);
                let is_none = this.world.terms.eq(*count, zero);
                let holds = if is_negated { this.world.terms.not(is_none) } else { is_none };
                Ok(this.world.good(Value::Bool(holds)))
            })
        }))
    }

    /// Returns the number of keys if the expression is the query of a URL; nothing else of a query is modelled.
    pub(super) fn keys_of_query(&mut self, query: ExprId) -> Option<Result<Outcome, Undecided>> {
        let Expr::Call { function, target: Some(url), .. } = self.ast.expr(query) else { return None };
        if **function != *"getQuery" {
            return None;
        }
        Some(self.eval(*url).and_then(|url| {
            self.each(&url, &mut |this, value| match value {
                Value::Url(url) => Ok(this.world.good(Value::Int(url.count))),
                value => this.no_overload(value),
            })
        }))
    }
}

impl World<'_> {
    fn note_parser(&mut self, parser: Parser, text: Term, span: admit_cel::Span) {
        if self.terms.known_text(text).is_none() {
            self.note_reading(parser.name(), Some(span));
        }
    }

    /// Returns the canonical string of an address. Every number has one.
    pub(super) fn written_address(&mut self, address: Address) -> Result<Term, Undecided> {
        if let Some((_, text)) = self.readings.written.iter().find(|(known, _)| *known == address) {
            return Ok(*text);
        }
        let known = self.terms.known_bool(address.is_v4).zip(self.terms.known_int(address.number));
        if let Some((is_v4, number)) = known {
            let parts = [Given::Bool(is_v4), Given::Int(number), Given::Bool(true)];
            let spellings = Parser::Address.spellings(&parts);
            let text =
                spellings.into_iter().find(|text| Parser::Address.parts(text).as_deref() == Some(&parts));
            let text =
                text.ok_or_else(|| undecided("the string form of an address that no string is parsed to"))?;
            return Ok(self.terms.text(&text));
        }
        let text = self.terms.variable(Sort::Text);
        let parsed = self.parsed(Parser::Address, text)?;
        let [is_v4, number, is_canonical] = parsed.parts[..] else {
            return Err(undecided("the string form of an address"));
        };
        let same = [self.terms.eq(is_v4, address.is_v4), self.terms.eq(number, address.number)];
        let holds = self.terms.and(&[parsed.good, is_canonical, same[0], same[1]]);
        self.assumed.push(holds);
        self.readings.written.push((address, text));
        Ok(text)
    }

    fn is_in(&mut self, address: Address, ranges: Ranges) -> Term {
        let (v4, v6) = ranges;
        let v4 = v4.iter().map(|(first, last)| (true, i128::from(*first), i128::from(*last)));
        let v6 = v6.iter().map(|(first, last)| (false, number(*first), number(*last)));
        let mut found = Vec::new();
        for (is_v4, first, last) in v4.chain(v6) {
            let family = if is_v4 { address.is_v4 } else { self.terms.not(address.is_v4) };
            let (first, last) = (self.terms.int(first), self.terms.int(last));
            let (low, high) = (self.terms.le(first, address.number), self.terms.le(address.number, last));
            found.push(self.terms.and(&[family, low, high]));
        }
        self.terms.or(&found)
    }

    /// Returns the first and the last address of a network.
    fn edges(&mut self, network: Network) -> Edges {
        let known = self.readings.edges.iter().find(|(known, _)| *known == network);
        if let Some((_, edges)) = known {
            return *edges;
        }
        let Network { address, prefix } = network;
        if let (Some(is_v4), Some(number), Some(prefix)) = (
            self.terms.known_bool(address.is_v4),
            self.terms.known_int(address.number),
            self.terms.known_int(prefix),
        ) {
            let rest = bits_past(is_v4, prefix);
            // Shifted by 2^127, half of all IPv6 addresses are negative.
            let (first, last) = match rest {
                -1 => (i128::MIN, i128::MAX),
                rest => ((number | rest) ^ rest, number | rest),
            };
            return Edges { first: self.terms.int(first), last: self.terms.int(last) };
        }
        let edges = Edges { first: self.terms.variable(Sort::Int), last: self.terms.variable(Sort::Int) };
        self.readings.edges.push((network, edges));
        let nth = self.terms.variable(Sort::Int);
        let is_v6 = self.terms.not(address.is_v4);
        for (family, bits) in [(address.is_v4, 32), (is_v6, 128)] {
            for length in 0..=bits {
                let length_term = self.terms.int(length);
                let is_so = self.terms.eq(prefix, length_term);
                let when = self.terms.and(&[family, is_so]);
                if self.terms.known_bool(when) != Some(false) {
                    self.assume_edges(when, address.number, edges, nth, bits_past(bits == 32, length));
                }
            }
        }
        edges
    }

    /// Asserts the edges; `rest` is the mask of the bits after the prefix.
    fn assume_edges(&mut self, when: Term, number: Term, edges: Edges, nth: Term, rest: i128) {
        let terms = &mut self.terms;
        let (low, high) = (terms.le(edges.first, number), terms.le(number, edges.last));
        let mut parts = vec![low, high];
        let (least, most) = (terms.int(i128::MIN), terms.int(i128::MAX));
        match rest {
            // Prefix length 0: all IPv6 addresses.
            -1 => parts.extend([terms.eq(edges.first, least), terms.eq(edges.last, most)]),
            // Prefix length 1: the size, 2^127, exceeds `i128`.
            i128::MAX => {
                let (zero, minus_one) = (terms.int(0), terms.int(-1));
                let is_low = terms.lt(number, zero);
                let first = terms.ite(is_low, least, zero);
                let last = terms.ite(is_low, minus_one, most);
                parts.extend([terms.eq(edges.first, first), terms.eq(edges.last, last)]);
            }
            rest => {
                let (size, rest) = (terms.int(rest.saturating_add(1)), terms.int(rest));
                let first = terms.mul(size, nth);
                let last = terms.add(edges.first, rest);
                parts.extend([terms.eq(edges.first, first), terms.eq(edges.last, last)]);
            }
        }
        let holds = terms.and(&parts);
        self.assume(when, holds);
    }
}

/// Returns the mask of the bits after a prefix.
fn bits_past(is_v4: bool, prefix: i128) -> i128 {
    let bits = if is_v4 { 32 } else { 128 };
    let free = u32::try_from(prefix).ok().and_then(|prefix| u32::checked_sub(bits, prefix)).unwrap_or(0);
    1_u128.checked_shl(free).map_or(u128::MAX, |size| size.wrapping_sub(1)).cast_signed()
}
