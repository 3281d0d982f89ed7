//! Finds the uid of a review that cannot be parsed, by scanning, so that a denial can be sent whatever is wrong with the
//! rest. For an API server, a response without the uid is a failed call, which `failurePolicy: Ignore` admits.

use super::id::{ReviewId, ReviewVersion};

/// Returns the first `request.uid` if the text is valid JSON up to there, and the `apiVersion` if it precedes that, as API
/// servers write it; v1beta1 only if `beta` is true. Deep nesting needs no memory: only the position in the two outermost
/// objects is tracked.
pub(in crate::admission) fn recover(body: &[u8], beta: bool) -> Option<ReviewId> {
    let mut version = ReviewVersion::V1;
    let mut scan = Scan { body, at: 0 };
    let mut depth = 0_usize;
    let mut in_request = false;
    let mut key: Option<&[u8]> = None;
    while let Some(byte) = scan.next_token() {
        match byte {
            b'{' | b'[' => {
                // Only an object (not a list) at the key `request` of the outermost object counts.
                in_request = match depth {
                    1 => byte == b'{' && key == Some(b"request"),
                    _ => in_request,
                };
                depth += 1;
                key = None;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                in_request &= depth > 1;
                key = None;
            }
            b'"' => {
                let text = scan.string()?;
                if scan.colon_follows() {
                    key = Some(text);
                } else if in_request && depth == 2 && key.take() == Some(b"uid") {
                    return unquoted(text).map(|uid| ReviewId { uid, version });
                } else if depth == 1 && beta && key.take() == Some(b"apiVersion") {
                    version = unquoted(text).map_or(version, |text| ReviewVersion::of(&text));
                }
            }
            _ => key = key.filter(|_| byte == b':'),
        }
    }
    None
}

struct Scan<'b> {
    body: &'b [u8],
    at: usize,
}

impl<'b> Scan<'b> {
    fn next_token(&mut self) -> Option<u8> {
        let rest = self.body.get(self.at..)?;
        let skipped = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        self.at += skipped + 1;
        rest.get(skipped).copied()
    }

    /// Returns the raw text of the string whose opening quote was just passed.
    fn string(&mut self) -> Option<&'b [u8]> {
        let rest = self.body.get(self.at..)?;
        let mut escaped = false;
        let end = rest.iter().position(|byte| {
            let ends = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            ends
        })?;
        self.at += end + 1;
        rest.get(..end)
    }

    fn colon_follows(&self) -> bool {
        let rest = self.body.get(self.at..).unwrap_or_default();
        rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
    }
}

fn unquoted(raw: &[u8]) -> Option<String> {
    let quoted = [b"\"", raw, b"\""].concat();
    serde_json::from_slice(&quoted).ok().filter(|uid: &String| !uid.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uid_is_found_wherever_the_text_breaks_after_it() {
        let cases: [(&str, Option<&str>); 12] = [
            (r#"{"request":{"uid":"u1"}}"#, Some("u1")),
            (r#"{"request" : { "uid" : "u1", "object":{"a":[1,"#, Some("u1")),
            (r#"{"request":{"object":{"uid":"inner"},"uid":"u1"}}"#, Some("u1")),
            (r#"{"request":{"object":[{"uid":"inner"}],"name":"uid","uid":"u\u0031\n"}"#, Some("u1\n")),
            (r#"{"response":{"uid":"no"},"request":{"uid":"u1"}"#, Some("u1")),
            (r#"{"request":{"userInfo":{"uid":"no"}}}"#, None),
            (r#"{"request":[{"uid":"no"}]}"#, None),
            (r#"{"a":{"request":{"uid":"no"}}}"#, None),
            (r#"{"request":{"uid":7,"name":"no"}}"#, None),
            (r#"{"request":{"uid":""}}"#, None),
            (r#"}}{"request":{"uid":"no"}}"#, None),
            (r#"{"request":{"uid":"u"#, None),
        ];
        for (text, expected) in cases {
            assert_eq!(recover(text.as_bytes(), false).map(|id| id.uid).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn the_version_is_that_of_the_envelope_where_it_counts() {
        let text = r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"u"#;
        for (end, beta, expected) in [
            (r#"1"}"#, true, ReviewVersion::V1beta1),
            (r#"1"}"#, false, ReviewVersion::V1),
            (r#"1","object":{"apiVersion":"v1"}}"#, true, ReviewVersion::V1beta1),
        ] {
            let id = recover(format!("{text}{end}").as_bytes(), beta).unwrap();
            assert_eq!((id.uid.as_str(), id.version), ("u1", expected), "{end} {beta}");
        }
        let inner = r#"{"request":{"apiVersion":"admission.k8s.io/v1beta1","uid":"u1"}}"#;
        assert_eq!(recover(inner.as_bytes(), true).unwrap().version, ReviewVersion::V1);
    }

    #[test]
    fn nesting_of_any_depth_is_passed_over() {
        let deep = "[".repeat(100_000);
        let text = format!(r#"{{"request":{{"object":{deep}{},"uid":"u1"}}}}"#, "]".repeat(100_000));
        assert_eq!(recover(text.as_bytes(), false).map(|id| id.uid).as_deref(), Some("u1"));
    }
}
