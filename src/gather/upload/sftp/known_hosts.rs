//! Verifies host keys by a `known_hosts` file, which is parsed like OpenSSH does.
//!
//! It supports plain names with `*`, `?` and `!`, hashed names, and names in brackets with a port. Keys are compared as bytes, so that
//! no key type needs to be known. Keys marked `@revoked` are rejected for every host; `@cert-authority` is reported as
//! unsupported.

use std::fmt;

use admit_apimachinery::go;
use ring::hmac;

use super::host::known_as;
use super::{Host, HostKeyError};

/// The prefix of a hashed name.
const HASHED: &str = "|1|";

/// Which host keys are accepted.
#[derive(Clone, Debug)]
pub enum Trust {
    Known(KnownHosts),
    /// Any key is accepted, if the operator configured that, with a warning at each connection.
    AcceptAny,
}

/// The entries of a `known_hosts` file.
#[derive(Clone)]
pub struct KnownHosts {
    entries: Vec<Entry>,
}

impl fmt::Debug for KnownHosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KnownHosts({} entries)", self.entries.len())
    }
}

#[derive(Clone)]
struct Entry {
    line: usize,
    mark: Mark,
    hosts: String,
    /// The key as sent by SSH.
    key: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq)]
enum Mark {
    None,
    Revoked,
    CertAuthority,
}

impl KnownHosts {
    /// Parses a known_hosts file.
    ///
    /// # Errors
    /// [`HostKeyError::Line`] for a line that is neither an entry nor a comment: if it was ignored, its key would be missing later
    /// without an explanation.
    pub fn parse(text: &str) -> Result<Self, HostKeyError> {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        let entries = lines
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
            .map(|(line, text)| entry(line, text));
        Ok(Self { entries: entries.collect::<Result<_, _>>()? })
    }

    /// Returns the types of the known keys of `host`, by their SSH names.
    ///
    /// # Errors
    /// [`HostKeyError`] if there is none, so that the server need not be contacted.
    pub(super) fn kinds(&self, host: &Host) -> Result<Vec<String>, HostKeyError> {
        let known = known_as(host);
        let of_host = |entry: &&Entry| matches(&entry.hosts, &known);
        let kinds: Vec<_> = self
            .entries
            .iter()
            .filter(of_host)
            .filter(|entry| entry.mark == Mark::None)
            .filter_map(|entry| kind(&entry.key))
            .collect();
        if !kinds.is_empty() {
            return Ok(kinds);
        }
        match self.entries.iter().filter(of_host).find(|entry| entry.mark == Mark::CertAuthority) {
            Some(entry) => Err(HostKeyError::CertAuthority { line: entry.line, host: known }),
            None => Err(HostKeyError::Unknown(known)),
        }
    }

    /// Checks that `key`, as sent by SSH, is a key of `host`; `presented` names it for people.
    ///
    /// # Errors
    /// [`HostKeyError`] if it is not.
    pub(super) fn check(&self, host: &Host, key: &[u8], presented: &str) -> Result<(), HostKeyError> {
        let known = known_as(host);
        let of_host = || self.entries.iter().filter(|entry| matches(&entry.hosts, &known));
        let told = || (known.clone(), presented.to_owned());
        if let Some(entry) = of_host().find(|entry| entry.mark == Mark::Revoked && entry.key == key) {
            let (host, presented) = told();
            return Err(HostKeyError::Revoked { line: entry.line, host, presented });
        }
        self.kinds(host)?;
        match of_host().any(|entry| entry.mark == Mark::None && entry.key == key) {
            true => Ok(()),
            false => {
                let (host, presented) = told();
                Err(HostKeyError::Differs { host, presented })
            }
        }
    }
}

fn entry(line: usize, text: &str) -> Result<Entry, HostKeyError> {
    let wrong = |reason| HostKeyError::Line { line, reason };
    let mut words = text.split_ascii_whitespace();
    let mut word = || words.next().ok_or_else(|| wrong("hosts, kind and key are expected"));
    let first = word()?;
    let (mark, hosts) = match first {
        "@revoked" => (Mark::Revoked, word()?),
        "@cert-authority" => (Mark::CertAuthority, word()?),
        other if other.starts_with('@') => return Err(wrong("the marks are @revoked and @cert-authority")),
        hosts => (Mark::None, hosts),
    };
    let (named, encoded) = (word()?, word()?);
    let key = go::json::bytes(encoded).map_err(|_| wrong("the key is not base64"))?;
    if kind(&key).as_deref() != Some(named) {
        return Err(wrong("the key is not of the kind that stands before it"));
    }
    Ok(Entry { line, mark, hosts: hosts.to_owned(), key })
}

/// Returns the type of a key: a string with its length at the beginning.
fn kind(key: &[u8]) -> Option<String> {
    let (length, rest) = key.split_first_chunk::<4>()?;
    let kind = rest.get(..usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    String::from_utf8(kind.to_vec()).ok()
}

/// Whether the hosts of an entry include `name`: some pattern matches, and none with `!`.
fn matches(hosts: &str, name: &str) -> bool {
    if let Some(hashed) = hosts.strip_prefix(HASHED) {
        return hashed_is(hashed, name).unwrap_or(false);
    }
    let mut found = false;
    for pattern in hosts.split(',') {
        match pattern.strip_prefix('!') {
            Some(denied) if like(denied, name) => return false,
            Some(_) => {}
            None => found |= like(pattern, name),
        }
    }
    found
}

/// Compares with `salt|hash`, both in base64: the HMAC-SHA-1 of the name.
fn hashed_is(hashed: &str, name: &str) -> Option<bool> {
    let (salt, hash) = hashed.split_once('|')?;
    let (salt, hash) = (go::json::bytes(salt).ok()?, go::json::bytes(hash).ok()?);
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &salt);
    Some(hmac::verify(&key, name.as_bytes(), &hash).is_ok())
}

/// Matches a glob ignoring case: `*` is any characters, `?` is one. Takes time proportional to the product of both lengths.
fn like(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_ascii_lowercase().into_bytes(), name.as_bytes());
    // The position of the last star in the pattern, and the position in the name that it extends to.
    let mut star: Option<(usize, usize)> = None;
    let (mut at, mut in_name) = (0, 0);
    while let Some(byte) = name.get(in_name) {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, in_name));
                at += 1;
            }
            Some(expected) if *expected == b'?' || expected == byte => {
                at += 1;
                in_name += 1;
            }
            _ => match star {
                Some((behind, taken)) => {
                    star = Some((behind, taken + 1));
                    at = behind + 1;
                    in_name = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests;
