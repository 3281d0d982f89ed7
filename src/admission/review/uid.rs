//! The uid of a review that cannot be read: found by scanning, so that a denial can carry it whatever is wrong with the
//! rest. An answer without the uid is a failed call to the API server, which `failurePolicy: Ignore` lets through.

/// The first `request.uid` of the text, if the text is sound up to there. Nesting costs nothing: only the position in
/// the two outermost objects is kept.
pub(in crate::admission) fn recover(body: &[u8]) -> Option<String> {
    let mut scan = Scan { body, at: 0 };
    let mut depth = 0_usize;
    let mut in_request = false;
    let mut key: Option<&[u8]> = None;
    while let Some(byte) = scan.next_token() {
        match byte {
            b'{' | b'[' => {
                // Only an object below the key `request` of the outermost object counts, not a list in its place.
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
                    return unquoted(text);
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

    /// The raw text of the string whose quote was just passed.
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
            assert_eq!(recover(text.as_bytes()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn nesting_of_any_depth_is_passed_over() {
        let deep = "[".repeat(100_000);
        let text = format!(r#"{{"request":{{"object":{deep}{},"uid":"u1"}}}}"#, "]".repeat(100_000));
        assert_eq!(recover(text.as_bytes()).as_deref(), Some("u1"));
    }
}
