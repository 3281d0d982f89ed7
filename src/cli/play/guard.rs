//! Answers only requests that come from the page itself, not from other pages that are open in the same browser.
//!
//! The listener is on the loopback address, which keeps other machines out. A page of another origin could still reach it by a
//! name of its own that is resolved to 127.0.0.1, or by a request that needs no permission: hence the checks of `Host` and
//! `Origin`. The headers of answers forbid the page to load anything from elsewhere.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, ORIGIN, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode};

/// Host names that mean this machine.
const OWN: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// The Content-Security-Policy: everything is loaded from here, and only images may come from the script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

fn of_every_answer() -> [(HeaderName, &'static str); 5] {
    [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ]
}

/// Rejects requests from elsewhere, and adds the security headers to every response.
pub(super) async fn guarded(request: Request, next: Next) -> Response {
    let mut response = match refusal(request.headers()) {
        None => next.run(request).await,
        Some(why) => (StatusCode::FORBIDDEN, why).into_response(),
    };
    for (name, value) in of_every_answer() {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Returns why a request is rejected, or `None` if it is answered.
fn refusal(headers: &HeaderMap) -> Option<String> {
    let Some(host) = headers.get(HOST).and_then(|host| host.to_str().ok()) else {
        return Some("a request needs the header Host".to_owned());
    };
    // The port may differ from that of the listener if it is forwarded.
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
    let name = name.map_or(host, |(name, _)| name);
    if !OWN.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Some(format!("Host must be one of {}: open the address that was printed", OWN.join(", ")));
    }
    let origin = headers.get(ORIGIN)?;
    let is_own = origin.to_str().is_ok_and(|origin| origin == format!("http://{host}"));
    (!is_own).then(|| "Origin must be that of this page".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(host: Option<&'static str>, origin: Option<&'static str>) -> bool {
        let mut headers = HeaderMap::new();
        let mut insert = |name, value: Option<&'static str>| {
            if let Some(value) = value {
                headers.insert(name, HeaderValue::from_static(value));
            }
        };
        insert(HOST, host);
        insert(ORIGIN, origin);
        refusal(&headers).is_some()
    }

    #[test]
    fn only_pages_of_this_server_may_ask() {
        for host in ["127.0.0.1:8080", "localhost:1", "LOCALHOST", "[::1]:80", "[::1]"] {
            assert!(!refused(Some(host), None), "{host}");
        }
        for host in [
            "example.com",
            "127.0.0.1.example.com:80",
            "localhost.example.com",
            "127.0.0.1:x",
            "",
            "10.0.0.1",
        ] {
            assert!(refused(Some(host), None), "{host}");
        }
        assert!(refused(None, None));
        assert!(!refused(Some("127.0.0.1:80"), Some("http://127.0.0.1:80")));
        for origin in [
            "null",
            "http://127.0.0.1:81",
            "https://127.0.0.1:80",
            "http://localhost:80",
            "http://evil.example",
        ] {
            assert!(refused(Some("127.0.0.1:80"), Some(origin)), "{origin}");
        }
    }
}
