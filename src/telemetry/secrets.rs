//! Finds known secrets in texts from outside, in every encoding in which they may appear, and hides them.

use std::collections::HashSet;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The replacement of a secret.
pub(super) const HIDDEN: &str = "[redacted]";
/// So many bytes of a secret in a row count as the secret: an echo may be cut off, or joined to something else. So many equal
/// bytes are no coincidence.
const TELLING: usize = 8;
/// Shorter secrets are not hidden: the position of the replacements would reveal them.
const SHORTEST: usize = 4;

/// Secrets in a searchable form. `Debug` hides them.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Every run of [`TELLING`] bytes of every encoding, in lower case.
    runs: HashSet<[u8; TELLING]>,
    /// Whole encodings that are shorter, in lower case.
    short: Vec<Vec<u8>>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(..)")
    }
}

impl Secrets {
    /// How many bytes after a position are needed to know whether a secret begins there.
    pub(super) const OVERLAP: usize = TELLING;

    /// Prepares secrets: in plain text, in base64 of any kind and with any prefix (`Basic`), in URLs, JSON and HTML. If a secret is a
    /// login in base64 (`user:password`), its decoded form is hidden too.
    #[must_use]
    pub fn of<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let mut known = Self::default();
        for secret in secrets {
            known.learn(secret.as_bytes());
            let login = STANDARD.decode(secret).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            if let Some((login, (_, password))) =
                login.as_ref().and_then(|text| Some((text, text.split_once(':')?)))
            {
                known.learn(login.as_bytes());
                known.learn(password.as_bytes());
            }
        }
        known
    }

    /// Combines the secrets with those of `other`.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.runs.extend(&other.runs);
        self.short.extend_from_slice(&other.short);
        self
    }

    fn learn(&mut self, secret: &[u8]) {
        if secret.len() < SHORTEST {
            return;
        }
        let whole = [secret.to_vec(), in_url(secret), in_html(secret)].into_iter().chain(in_json(secret));
        for spelling in whole.chain((0..3).flat_map(|shift| in_base64(secret, shift))) {
            let spelling = spelling.to_ascii_lowercase();
            self.runs.extend(spelling.windows(TELLING).filter_map(|run| <[u8; TELLING]>::try_from(run).ok()));
            if (SHORTEST..TELLING).contains(&spelling.len()) {
                self.short.push(spelling);
            }
        }
    }

    /// Hides the secrets in `text`; invalid UTF-8 is replaced.
    #[must_use]
    pub fn hide(&self, text: &[u8]) -> String {
        self.hide_cut(text, text.len())
    }

    /// Hides the secrets in the first `shown` bytes of `text`, including one that continues after them.
    pub(super) fn hide_cut(&self, text: &[u8], shown: usize) -> String {
        if self.runs.is_empty() && self.short.is_empty() {
            return String::from_utf8_lossy(text.get(..shown).unwrap_or(text)).into_owned();
        }
        let lower = text.to_ascii_lowercase();
        let mut hidden = vec![false; text.len()];
        let mut mark = |at: usize, length: usize| {
            hidden.iter_mut().skip(at).take(length).for_each(|byte| *byte = true);
        };
        for (at, run) in lower.windows(TELLING).enumerate() {
            if <&[u8; TELLING]>::try_from(run).is_ok_and(|run| self.runs.contains(run)) {
                mark(at, TELLING);
            }
        }
        for spelling in &self.short {
            for (at, run) in lower.windows(spelling.len()).enumerate() {
                if run == spelling {
                    mark(at, spelling.len());
                }
            }
        }
        let mut out = Vec::with_capacity(shown);
        let mut before = false;
        for (byte, hidden) in text.iter().zip(hidden).take(shown) {
            match (hidden, before) {
                (false, _) => out.push(*byte),
                (true, false) => out.extend_from_slice(HIDDEN.as_bytes()),
                (true, true) => {}
            }
            before = hidden;
        }
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// Percent-encodes all but unreserved characters. The case of digits does not matter.
fn in_url(secret: &[u8]) -> Vec<u8> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let encoded = secret.iter().map(|byte| match plain(byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02x}"),
    });
    encoded.collect::<String>().into_bytes()
}

/// Encodes as JSON, and as Go does, which also escapes characters that are special in HTML.
fn in_json(secret: &[u8]) -> [Vec<u8>; 2] {
    let text = String::from_utf8_lossy(secret);
    let quoted = serde_json::Value::from(&*text).to_string();
    let plain = quoted.trim_matches('"').to_owned();
    let of_go = plain.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    [plain, of_go].map(String::into_bytes)
}

fn in_html(secret: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(secret).replace('&', "&amp;");
    let escapes = [('<', "&lt;"), ('>', "&gt;"), ('"', "&#34;"), ('\'', "&#39;"), ('+', "&#43;")];
    escapes.iter().fold(text, |text, (c, escape)| text.replace(*c, escape)).into_bytes()
}

/// Encodes as base64 after `shift` other bytes (modulo three), in both alphabets: only the characters that depend on the
/// secret alone.
fn in_base64(secret: &[u8], shift: usize) -> [Vec<u8>; 2] {
    let encoded = STANDARD.encode([&vec![0; shift], secret].concat());
    let first = (shift * 8).div_ceil(6);
    let last = ((shift + secret.len()) * 8) / 6;
    let own = encoded.get(first..last).unwrap_or_default();
    [own.to_owned(), own.replace('+', "-").replace('/', "_")].map(String::into_bytes)
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE};

    use super::*;

    const SECRET: &str = "CANARY+TOKEN/4711==<&\"";

    #[test]
    fn a_secret_is_hidden_in_every_spelling() {
        let secrets = Secrets::of([SECRET]);
        let spellings = [
            SECRET.to_owned(),
            SECRET.to_lowercase(),
            format!("Bearer {SECRET}"),
            STANDARD.encode(SECRET),
            STANDARD_NO_PAD.encode(SECRET),
            URL_SAFE.encode(SECRET),
            STANDARD.encode(format!("Bearer {SECRET}")),
            STANDARD.encode(format!("user:{SECRET}")),
            STANDARD.encode(format!("u:{SECRET}")),
            STANDARD.encode(format!("us:{SECRET} and more")),
            "CANARY%2BTOKEN%2F4711%3D%3D%3C%26%22".to_owned(),
            "canary%2btoken%2f4711%3d%3d%3c%26%22".to_owned(),
            r#"CANARY+TOKEN/4711==<&\""#.to_owned(),
            r#"CANARY+TOKEN/4711==\u003c\u0026\""#.to_owned(),
            "CANARY&#43;TOKEN/4711==&lt;&amp;&#34;".to_owned(),
            SECRET[..12].to_owned(),
            SECRET[6..].to_owned(),
        ];
        for spelling in spellings {
            let shown = secrets.hide(format!("a {spelling} b").as_bytes());
            assert!(shown.starts_with("a ") && shown.ends_with(" b"), "{shown}");
            let left = shown.replace(HIDDEN, "");
            assert!(shown.contains(HIDDEN) && left.len() <= 24, "{spelling}: {shown}");
            for part in [&SECRET[..6], "TOKEN", "4711"] {
                assert!(!left.to_lowercase().contains(&part.to_lowercase()), "{spelling}: {shown}");
            }
        }
    }

    #[test]
    fn the_password_of_a_login_is_a_secret() {
        let secrets = Secrets::of([STANDARD.encode("robot:hunter2").as_str()]);
        assert_eq!(secrets.hide(b"robot:hunter2"), HIDDEN);
        assert_eq!(secrets.hide(b"with hunter2, it said"), "with [redacted], it said");
        let both = secrets.and(&Secrets::of(["another-secret"]));
        assert_eq!(both.hide(b"hunter2 or another-secret"), "[redacted] or [redacted]");
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        let secrets = Secrets::of([SECRET, "", "abc"]);
        for text in ["abc", "CANARY", "the token is 4711", "ünï ©"] {
            assert_eq!(secrets.hide(text.as_bytes()), text);
        }
        assert_eq!(format!("{secrets:?}"), "Secrets(..)");
    }
}
