//! Parses the remote configuration: what the service that analyses archives requests in addition, independent of the cluster. It may
//! request log lines; requests for more while alerts fire are recorded and not followed.
//!
//! It is untrusted input: if any part exceeds the limits here, all of it is rejected, and the built-in configuration is used, which
//! requests nothing. The configuration in use is in every archive.

use std::collections::BTreeSet;
use std::sync::Arc;

use regex_automata::meta::{BuildError, Config, Regex};
use serde::Deserialize;
use serde_json::{Value, json};

/// The path of the configuration in the archive, where it always has room.
pub const PATH: &str = "insights-operator/remote-configuration.json";
/// The largest configuration in bytes: it is in every archive in addition to the records. Those of the service take some ten kilobytes.
pub const MAX_CONFIGURATION: usize = 1024 * 1024;
/// The most logs that may be requested: for each, Pods are listed.
const MAX_REQUESTS: usize = 200;
/// The most strings that may be searched in one log, all in one pass.
const MAX_MESSAGES: usize = 1_000;
/// The most conditional rules: each is repeated in a record with its result.
const MAX_RULES: usize = 1_000;
/// The largest size in bytes of a compiled pattern and of its caches: patterns are untrusted.
const MAX_COMPILED: usize = 512 * 1024;
/// The longest namespace name after the required prefix.
const MAX_NAMESPACE: usize = 128;
/// The required prefixes of namespaces: only those of the platform may be requested.
const NAMESPACES: [&str; 2] = ["openshift-", "kube-"];

/// A valid configuration.
#[derive(Clone, Debug)]
pub struct Remote {
    /// The document as it was received.
    document: Value,
    /// The URL that it came from; None if it is built in.
    pub(super) endpoint: Option<String>,
    pub(super) logs: Vec<Arc<LogRequest>>,
}

/// A request for log lines of some Pods.
#[derive(Clone, Debug)]
pub(super) struct LogRequest {
    pub(super) namespace: String,
    pub(super) pods: Regex,
    pub(super) messages: Regex,
    /// Whether to read the log before the last restart.
    pub(super) previous: bool,
}

/// Why a configuration is rejected.
#[derive(Debug, thiserror::Error)]
pub enum Invalid {
    #[error("it is larger than {MAX_CONFIGURATION} bytes")]
    TooLarge,
    #[error("it cannot be read: {0}")]
    Undecodable(#[from] serde_json::Error),
    #[error("{what} are more than {limit}")]
    TooMany { what: &'static str, limit: usize },
    #[error("container_logs[{at}].{field}: {why}")]
    Log { at: usize, field: &'static str, why: LogMistake },
}

/// Why a request for a log is rejected.
#[derive(Debug, thiserror::Error)]
pub enum LogMistake {
    #[error("it is none of the platform's (openshift-…, kube-…)")]
    ForeignNamespace,
    #[error("there are none")]
    MissingMessages,
    #[error("it takes more than {MAX_COMPILED} bytes of memory")]
    TooLarge,
    #[error("{}", reason(.0))]
    Pattern(Box<BuildError>),
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    container_logs: Vec<Logs>,
    #[serde(default)]
    conditional_gathering_rules: Vec<Value>,
}

#[derive(Deserialize)]
struct Logs {
    namespace: String,
    pod_name_regex: String,
    messages: BTreeSet<String>,
    #[serde(default)]
    previous: bool,
}

impl Default for Remote {
    /// Returns the built-in configuration, which requests nothing.
    fn default() -> Self {
        let document = json!({"conditional_gathering_rules": [], "container_logs": []});
        Self { document, endpoint: None, logs: Vec::new() }
    }
}

impl Remote {
    /// Parses what was received from `endpoint`.
    ///
    /// # Errors
    /// [`Invalid`] with the first mistake.
    pub fn parse(text: &[u8], endpoint: &str) -> Result<Self, Invalid> {
        if text.len() > MAX_CONFIGURATION {
            return Err(Invalid::TooLarge);
        }
        let document: Value = serde_json::from_slice(text)?;
        // serde would read a list as the fields in their order.
        if !document.is_object() {
            return Err(<serde_json::Error as serde::de::Error>::custom("it is no object").into());
        }
        let Document { container_logs, conditional_gathering_rules } = Document::deserialize(&document)?;
        for (what, count, limit) in [
            ("container_logs", container_logs.len(), MAX_REQUESTS),
            ("conditional_gathering_rules", conditional_gathering_rules.len(), MAX_RULES),
        ] {
            if count > limit {
                return Err(Invalid::TooMany { what, limit });
            }
        }
        let logs = container_logs.into_iter().enumerate().map(|(at, logs)| logs.compile(at).map(Arc::new));
        let logs = logs.collect::<Result<_, _>>()?;
        Ok(Self { document, endpoint: Some(endpoint.to_owned()), logs })
    }

    /// Returns the JSON to store, before obfuscation.
    pub fn text(&self) -> String {
        self.document.to_string()
    }

    /// Returns the version that it states.
    pub(super) fn version(&self) -> &Value {
        self.document.get("version").unwrap_or(&Value::Null)
    }

    /// Returns the conditional rules as received.
    pub(super) fn rules(&self) -> &[Value] {
        let rules = self.document.get("conditional_gathering_rules").and_then(Value::as_array);
        rules.map(Vec::as_slice).unwrap_or_default()
    }
}

impl Logs {
    fn compile(self, at: usize) -> Result<LogRequest, Invalid> {
        let Self { namespace, pod_name_regex, messages, previous } = self;
        let wrong = |field| move |why| Invalid::Log { at, field, why };
        if !is_of_the_platform(&namespace) {
            return Err(wrong("namespace")(LogMistake::ForeignNamespace));
        }
        if messages.is_empty() {
            return Err(wrong("messages")(LogMistake::MissingMessages));
        }
        if messages.len() > MAX_MESSAGES {
            return Err(Invalid::TooMany { what: "messages of a log", limit: MAX_MESSAGES });
        }
        Ok(LogRequest {
            namespace,
            pods: compiled(&[&pod_name_regex]).map_err(wrong("pod_name_regex"))?,
            messages: compiled(&messages.iter().collect::<Vec<_>>()).map_err(wrong("messages"))?,
            previous,
        })
    }
}

fn is_of_the_platform(namespace: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let rest = NAMESPACES.iter().find_map(|prefix| namespace.strip_prefix(prefix));
    rest.is_some_and(|rest| (1..=MAX_NAMESPACE).contains(&rest.len()) && rest.bytes().all(legal))
}

/// Compiles a pattern that matches if any of `patterns` does.
fn compiled(patterns: &[&impl AsRef<str>]) -> Result<Regex, LogMistake> {
    let limits = Config::new()
        .nfa_size_limit(Some(MAX_COMPILED))
        .onepass_size_limit(Some(MAX_COMPILED))
        .hybrid_cache_capacity(MAX_COMPILED);
    Regex::builder().configure(limits).build_many(patterns).map_err(|error| match error.size_limit() {
        Some(_) => LogMistake::TooLarge,
        None => LogMistake::Pattern(Box::new(error)),
    })
}

/// Returns the reason: the cause names the wrong part of the pattern.
fn reason(error: &BuildError) -> String {
    match error.syntax_error() {
        Some(syntax) => syntax.to_string().split_whitespace().collect::<Vec<_>>().join(" "),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(document: &Value) -> Result<Remote, String> {
        Remote::parse(document.to_string().as_bytes(), "https://a.example")
            .map_err(|invalid| invalid.to_string())
    }

    fn logs(namespace: &str, pods: &str, messages: &[&str]) -> Value {
        json!({"container_logs": [{"namespace": namespace, "pod_name_regex": pods, "messages": messages}]})
    }

    #[test]
    fn a_configuration_of_the_service_is_followed() {
        let mut document = logs("openshift-etcd", "^etcd-", &["took too long", "(?i)panic:"]);
        document["version"] = json!("1.2.0");
        document["conditional_gathering_rules"] = json!([{"conditions": []}]);
        let remote = parsed(&document).unwrap();
        assert_eq!(remote.text(), document.to_string());
        assert_eq!((remote.version(), remote.rules().len()), (&json!("1.2.0"), 1));
        let request = &remote.logs[0];
        assert!(request.pods.is_match("etcd-0") && !request.pods.is_match("a-etcd-0") && !request.previous);
        assert!(request.messages.is_match("x PANIC: y") && !request.messages.is_match("all is well"));
        assert!(parsed(&json!({})).is_ok() && Remote::default().logs.is_empty());
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_its_place() {
        let many = vec![logs("kube-system", "a", &["b"])["container_logs"][0].clone(); MAX_REQUESTS + 1];
        for (document, expected) in [
            (logs("default", "a", &["b"]), "container_logs[0].namespace: it is none of the platform's"),
            (logs("openshift-", "a", &["b"]), "namespace"),
            (logs("openshift-a/b", "a", &["b"]), "namespace"),
            (logs("kube-system", "a", &[]), "container_logs[0].messages: there are none"),
            (logs("kube-system", "(", &["b"]), "container_logs[0].pod_name_regex: "),
            (logs("kube-system", "a", &["b", "[z-a]"]), "container_logs[0].messages: "),
            (logs("kube-system", "a", &[r"(\pL{100}){100}"]), "more than 524288 bytes"),
            (json!({"container_logs": many}), "container_logs are more than 200"),
            (json!({"container_logs": [{"namespace": "kube-system"}]}), "pod_name_regex"),
            (json!([]), "cannot be read"),
        ] {
            let refused = parsed(&document).unwrap_err();
            assert!(refused.contains(expected), "{document}: {refused}");
        }
        let large = vec![b' '; MAX_CONFIGURATION + 1];
        assert!(matches!(Remote::parse(&large, ""), Err(Invalid::TooLarge)));
    }
}
