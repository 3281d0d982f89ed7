//! Formats an event as one line of text, for `--audit-log-format=legacy`.

use admit_apimachinery::go::quote;
use admit_apimachinery::pointer::text;
use jiff::Timestamp;
use serde_json::Value;

/// Returns the line, with a line feed.
pub(super) fn line(received: Timestamp, event: &Value) -> String {
    let known = |pointer: &str| Some(text(event, pointer)).filter(|text| !text.is_empty());
    let or = |pointer: &str, otherwise: &'static str| quote(known(pointer).unwrap_or(otherwise));
    let user = known("/user/username");
    let groups = list(event.pointer("/user/groups")).filter(|groups| user.is_some() && !groups.is_empty());
    let other = event.get("impersonatedUser").filter(|other| !other.is_null());
    let other_groups = other.and_then(|other| list(other.get("groups")));
    let code = event.pointer("/responseStatus/code").and_then(Value::as_u64);
    let mut line = format!("{received} AUDIT:");
    for (name, value) in [
        ("id", quote(text(event, "/auditID"))),
        ("stage", quote(text(event, "/stage"))),
        ("ip", or("/sourceIPs/0", "<unknown>")),
        ("method", quote(text(event, "/verb"))),
        ("user", quote(user.unwrap_or("<none>"))),
        ("groups", quote(groups.as_deref().unwrap_or("<none>"))),
        ("as", quote(other.map_or("<self>", |other| text(other, "/username")))),
        ("asgroups", quote(other_groups.as_deref().unwrap_or("<lookup>"))),
        ("user-agent", quote(text(event, "/userAgent"))),
        ("namespace", or("/objectRef/namespace", "<none>")),
        ("uri", quote(text(event, "/requestURI"))),
        ("response", code.map_or_else(|| "\"<deferred>\"".to_owned(), |code| format!("\"{code}\""))),
    ] {
        line.push_str(&format!(" {name}={value}"));
    }
    line.push('\n');
    line
}

/// Formats the strings of a list in quotes, joined with commas.
fn list(list: Option<&Value>) -> Option<String> {
    let texts = list?.as_array()?.iter().filter_map(Value::as_str);
    Some(texts.map(quote).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_those_of_kubernetes() {
        let received: Timestamp = "2026-05-06T07:08:09.012345Z".parse().unwrap();
        let whole = json!({
            "auditID": "1-2", "stage": "ResponseComplete", "sourceIPs": ["127.0.0.1", "::1"], "verb": "get",
            "user": {"username": "ann", "groups": ["a", "system:authenticated"]},
            "impersonatedUser": {"username": "bob", "groups": ["b"]}, "userAgent": "kubectl/\"v1\"",
            "objectRef": {"namespace": "default"}, "requestURI": "/api/v1", "responseStatus": {"code": 200},
        });
        let text = line(received, &whole);
        let expected = r#"2026-05-06T07:08:09.012345Z AUDIT: id="1-2" stage="ResponseComplete" ip="127.0.0.1" method="get" user="ann" groups="\"a\",\"system:authenticated\"" as="bob" asgroups="\"b\"" user-agent="kubectl/\"v1\"" namespace="default" uri="/api/v1" response="200""#;
        assert_eq!(text.trim_end(), expected);
        let text = line(
            received,
            &json!({"auditID": "1", "stage": "RequestReceived", "verb": "list", "user": {},
            "requestURI": "/"}),
        );
        let expected = r#"2026-05-06T07:08:09.012345Z AUDIT: id="1" stage="RequestReceived" ip="<unknown>" method="list" user="<none>" groups="<none>" as="<self>" asgroups="<lookup>" user-agent="" namespace="<none>" uri="/" response="<deferred>""#;
        assert_eq!(text, format!("{expected}\n"));
    }
}
