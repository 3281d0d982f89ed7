//! Implements URLs as Go parses them.

use admit_apimachinery::go::url;

use crate::library::{Context, Overload, cost, mismatch};
use crate::value::{EvalError, List, Map, Opaque, Url, Value};
use Value::{Bool, String};

pub(super) const ROWS: &[Overload] = &[
    Overload::new(
        "string_to_url",
        "url(string) -> kubernetes.URL",
        |context, args| match args {
            [String(text)] => parse(context, text),
            _ => mismatch(),
        },
        "Reads an absolute URL or an absolute path.",
    )
    .costs_by_name(cost::estimate_rewrite_first, cost::traverse_first),
    Overload::new(
        "url_get_scheme",
        "kubernetes.URL.getScheme() -> string",
        |_, args| part(args, |url| url.scheme),
        "The scheme; empty without one.",
    ),
    Overload::new(
        "url_get_host",
        "kubernetes.URL.getHost() -> string",
        |_, args| part(args, |url| url.host),
        "The host with its port; IPv6 addresses in brackets.",
    ),
    Overload::new(
        "url_get_hostname",
        "kubernetes.URL.getHostname() -> string",
        |_, args| part(args, |url| url.hostname),
        "The host without port and brackets.",
    ),
    Overload::new(
        "url_get_port",
        "kubernetes.URL.getPort() -> string",
        |_, args| part(args, |url| url.port),
        "The port; empty without one.",
    ),
    Overload::new(
        "url_get_escaped_path",
        "kubernetes.URL.getEscapedPath() -> string",
        |_, args| part(args, |url| url.escaped_path),
        "The path with its escapes.",
    ),
    Overload::new(
        "url_get_query",
        "kubernetes.URL.getQuery() -> map(string, list(string))",
        |_, args| match args {
            [Value::Opaque(Opaque::Url(url))] => Ok(Value::Map(url.query)),
            _ => mismatch(),
        },
        "The values of each key of the query.",
    ),
    Overload::new(
        "is_url_string",
        "isURL(string) -> bool",
        |_, args| match args {
            [String(text)] => Ok(Bool(url::check_request(text).is_ok())),
            _ => mismatch(),
        },
        "Whether `url` reads a string.",
    ),
];

fn part<'a>(args: &[Value<'a>], part: for<'u> fn(&'u Url<'a>) -> &'a str) -> Result<Value<'a>, EvalError> {
    match args {
        [Value::Opaque(Opaque::Url(url))] => Ok(String(part(url))),
        _ => mismatch(),
    }
}

fn parse<'a>(context: &Context<'a>, text: &str) -> Result<Value<'a>, EvalError> {
    let fail = |cause: url::UrlError| {
        EvalError::other(format!("URL parse error during conversion from string: {cause}"))
    };
    url::check_request(text).map_err(fail)?;
    let parsed = url::parse(text).map_err(fail)?;
    let url = Url {
        text: context.str(&parsed.to_string())?,
        scheme: context.str(&parsed.scheme)?,
        host: context.str(&parsed.host())?,
        hostname: context.str(&parsed.hostname())?,
        port: context.str(&parsed.port())?,
        escaped_path: context.str(&parsed.escaped_path())?,
        query: query(context, &parsed)?,
    };
    Ok(Value::Opaque(Opaque::Url(context.keep(url)?)))
}

fn query<'a>(context: &Context<'a>, url: &url::Url) -> Result<Map<'a>, EvalError> {
    let mut entries = Vec::new();
    for (key, values) in url.query() {
        let values: Vec<_> = values.iter().map(|value| context.text(value)).collect::<Result<_, _>>()?;
        let values = context.slice(values.len(), values.into_iter())?;
        entries.push((context.text(&key)?, Value::List(List::Values(values))));
    }
    context.slice(entries.len(), entries.into_iter()).map(Map::Values)
}
