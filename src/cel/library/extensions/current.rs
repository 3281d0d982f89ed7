//! Implements where the current string and network libraries differ from those of Kubernetes: `format` without a locale, `reverse`,
//! positions beyond the end are errors, IPv4-mapped addresses are accepted. A row replaces the Kubernetes row of the same id.

use std::net::IpAddr;

use admit_apimachinery::go::{netip, quote};

use super::format::format_plain;
use super::strings;
use crate::library::{Context, Overload, cost, mismatch};
use crate::value::{EvalError, Opaque, Value};
use Value::{Int, String};

pub(in crate::library) const ROWS: &[Overload] = &[
    Overload::new(
        "string_format",
        "string.format(list(dyn)) -> string",
        format_plain,
        "The string with its clauses (`%s`, `%d`, `%f`, `%e`, `%b`, `%o`, `%x`, `%X`) filled from a list.",
    )
    .costs(cost::estimate_traverse_first, cost::traverse_first),
    Overload::new(
        "string_index_of_string_int",
        "string.indexOf(string, int) -> int",
        |_, args| match args {
            [String(text), String(part), Int(from)] => {
                within(text, *from, strings::index_of(text, part, *from))
            }
            _ => mismatch(),
        },
        "The position of the first occurrence from a position on, or -1.",
    )
    .costs_by_name(cost::estimate_scan, cost::scan),
    Overload::new(
        "string_last_index_of_string_int",
        "string.lastIndexOf(string, int) -> int",
        |_, args| match args {
            [String(text), String(part), Int(from)] => {
                within(text, *from, strings::last_index_from(text, part, *from))
            }
            _ => mismatch(),
        },
        "The position of the last occurrence that starts at or before a position, or -1.",
    )
    .costs_by_name(cost::estimate_scan, cost::scan),
    Overload::new(
        "string_reverse",
        "string.reverse() -> string",
        reverse,
        "The characters in reverse order.",
    )
    .costs_by_name(cost::estimate_traverse_first, cost::traverse_first),
    Overload::new("string_to_ip", "ip(string) -> net.IP", address, "Reads an IP address.")
        .costs_by_name(cost::estimate_traverse_first, cost::traverse_first),
];

fn within<'a>(
    text: &str,
    position: i64,
    found: Result<Value<'a>, EvalError>,
) -> Result<Value<'a>, EvalError> {
    let size = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    if position > size { Err(strings::out_of_range(position)) } else { found }
}

fn reverse<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [String(text)] = args else { return mismatch() };
    context.reserve(text.len())?;
    context.text(&text.chars().rev().collect::<std::string::String>())
}

fn address<'a>(_: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [String(text)] = args else { return mismatch() };
    let parsed = netip::parse_address(text)
        .map_err(|cause| EvalError::other(format!("IP Address {} parse error: {cause}", quote(text))))?;
    if parsed.has_zone {
        return Err(EvalError::other(format!("IP address {} with zone value is not allowed", quote(text))));
    }
    let address = match parsed.address {
        IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or(parsed.address, IpAddr::V4),
        IpAddr::V4(_) => parsed.address,
    };
    Ok(Value::Opaque(Opaque::Ip(address)))
}
