//! Follows the redirects of webhooks as Go's HTTP client does: at most ten, after 307 and 308 with the same request, after others with
//! a GET. Read from net/http/client.go of Go 1.25.

use http::{HeaderMap, Method, StatusCode, Uri, header};

use super::failure::NotSent;

const MOST: usize = 10;

/// A request that is to be sent: the first one, or one after a redirect.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    pub(super) method: Method,
    pub(super) uri: Uri,
    /// How many redirects led here.
    followed: usize,
}

impl Hop {
    /// # Errors
    /// If the text is not a URL.
    pub(super) fn first(url: &str) -> Result<Self, NotSent> {
        Ok(Self { method: Method::POST, uri: url.parse()?, followed: 0 })
    }

    /// Whether this is a request to the host of `first`, which alone gets its credentials.
    pub(super) fn is_at(&self, first: &Self) -> bool {
        self.uri.authority() == first.uri.authority()
    }

    /// Returns the request to which a response redirects, if it does.
    ///
    /// # Errors
    /// If it may not be followed, with the URL that messages name.
    pub(super) fn next(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<Option<Self>, (String, NotSent)> {
        let method = match status.as_u16() {
            301..=303 => Method::GET,
            307 | 308 => self.method.clone(),
            _ => return Ok(None),
        };
        let Some(location) = headers.get(header::LOCATION).and_then(|location| location.to_str().ok()) else {
            return Ok(None);
        };
        let refused = |why: NotSent| (location.to_owned(), why);
        if self.followed >= MOST - 1 {
            return Err(refused(NotSent::TooManyRedirects));
        }
        let uri = joined(&self.uri, location).map_err(|why| refused(why.into()))?;
        if uri.scheme_str() != Some("https") {
            return Err(refused(NotSent::LeavesTls));
        }
        Ok(Some(Self { method, uri, followed: self.followed + 1 }))
    }
}

/// Returns the URL that a `Location` names, which may be relative to `base`.
fn joined(base: &Uri, location: &str) -> Result<Uri, http::uri::InvalidUri> {
    let location = location.split('#').next().unwrap_or_default();
    let authority = base.authority().map(http::uri::Authority::as_str).unwrap_or_default();
    let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
    if location.contains("://") {
        location.parse()
    } else if location.starts_with("//") {
        format!("https:{location}").parse()
    } else if location.starts_with('/') {
        format!("https://{authority}{location}").parse()
    } else if location.starts_with('?') {
        format!("https://{authority}{}{location}", base.path()).parse()
    } else {
        format!("https://{authority}{folder}/{location}").parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_may_be_relative() {
        let base = "https://a:1/x/y?timeout=1s".parse().unwrap();
        for (location, expected) in [
            ("https://b/z", "https://b/z"),
            ("//b:2/z", "https://b:2/z"),
            ("/z?a=b#c", "https://a:1/z?a=b"),
            ("z", "https://a:1/x/z"),
            ("?q", "https://a:1/x/y?q"),
        ] {
            assert_eq!(joined(&base, location).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn the_method_is_kept_after_307_and_308_alone() {
        let first = Hop::first("https://a/x").unwrap();
        let headers = HeaderMap::from_iter([(header::LOCATION, "/y".parse().unwrap())]);
        let next = |code: u16, headers: &HeaderMap| {
            let status = StatusCode::from_u16(code).unwrap();
            first.next(status, headers).unwrap().map(|next| (next.method, next.uri.to_string()))
        };
        for (code, method) in [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")] {
            let method = method.parse().unwrap();
            assert_eq!(next(code, &headers), Some((method, "https://a/y".to_owned())), "{code}");
            assert_eq!(next(code, &HeaderMap::new()), None, "{code}");
        }
        assert_eq!((next(200, &headers), next(304, &headers)), (None, None));
    }
}
