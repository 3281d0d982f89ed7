//! Defines the settings of the generated manifests: one table for both the flags of `admit generate manifests --set`
//! and the values of the chart.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::cli::value_parsers::{self, ValueError};

/// The setting that is the release's namespace in a chart.
pub(super) const NAMESPACE: &str = "namespace";

struct Row {
    name: &'static str,
    default: &'static str,
    /// The allowed values; empty if any string is allowed that passes `check`.
    choices: &'static [&'static str],
    check: Check,
    doc: &'static str,
}

#[derive(Clone, Copy)]
enum Check {
    Choice,
    Count,
    Text,
    /// `any`, or networks separated by commas.
    Networks,
}

/// The value instead of networks that allows calls from everywhere.
const ANY: &str = "any";

const ROWS: &[Row] = &[
    Row {
        name: "image",
        default: concat!("admit:", env!("CARGO_PKG_VERSION")),
        choices: &[],
        check: Check::Text,
        doc: "Image of all Pods.",
    },
    Row {
        name: "replicas",
        default: "2",
        choices: &[],
        check: Check::Count,
        doc: "Number of replicas of the webhook, and of the controllers (of which one is active at a time).",
    },
    Row {
        name: "certificates",
        default: "secret",
        choices: &["secret", "self-managed", "cert-manager"],
        check: Check::Choice,
        doc: "Where the serving certificate comes from: `secret`, a Secret `admit-tls` that you create (`admit certs`), \
              `self-managed` by the webhook, or `cert-manager`. certs/README.md compares them.",
    },
    Row {
        name: "watchCluster",
        default: "true",
        choices: &["true", "false"],
        check: Check::Choice,
        doc: "Whether the webhook watches the namespaces of its cluster and the params that no file contains. With `false` it \
              needs no RBAC rules, and policies that need either refuse what they match; `self-managed` certificates need \
              `true`.",
    },
    Row {
        name: "clusterExceptions",
        default: "false",
        choices: &["false", "true"],
        check: Check::Choice,
        doc: "Whether the webhook applies the PolicyExceptions and ClusterPolicyExceptions of its cluster and admits what they \
              name. Whoever may create them can bypass policies: review your roles first, including those with `*`. Needs \
              `watchCluster=true`.",
    },
    Row {
        name: "failurePolicy",
        default: "Fail",
        choices: &["Fail", "Ignore"],
        check: Check::Choice,
        doc: "How requests are treated while no replica answers: `Fail` refuses them, `Ignore` admits them.",
    },
    Row {
        name: "callers",
        default: "anyone",
        choices: &["anyone", "client-certificate"],
        check: Check::Choice,
        doc: "Which clients the webhook answers: `anyone` who reaches its port, or with `client-certificate` only the API \
              server, by its client certificate. The CA for it is `ca.crt` of a ConfigMap `admit-client-ca` that you create, \
              its common name is `clientSubject`. deploy/README.md describes how to give an API server a certificate, and what \
              an open port means.",
    },
    Row {
        name: "clientSubject",
        default: "kube-apiserver",
        choices: &[],
        check: Check::Text,
        doc: "Common name of the client certificate that the API server presents to webhooks.",
    },
    Row {
        name: "apiServers",
        default: ANY,
        choices: &[],
        check: Check::Networks,
        doc: "Networks that the API servers call from, separated by commas (10.0.0.4/32,10.0.0.5/32): all other callers are \
              blocked, except Pods of namespaces with the label `admit.dev/api-server: enabled`. With `any`, nobody is \
              blocked.",
    },
    Row {
        name: "runner",
        default: "in-process",
        choices: &["in-process", "job"],
        check: Check::Choice,
        doc: "Where a DataGather runs: `in-process` in the controllers, or in a `job` of its own, so that only its service \
              account `gather` may read the cluster.",
    },
    Row {
        name: "monitoring",
        default: "false",
        choices: &["false", "true"],
        check: Check::Choice,
        doc: "Whether to create a ServiceMonitor and a Grafana dashboard; needs the CRDs of the Prometheus operator.",
    },
];

/// Why a setting is rejected.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(super) enum SettingError {
    #[error("`{0}` is not of the form NAME=VALUE")]
    Form(String),
    #[error("there is no setting `{name}`; there are {}", names())]
    Unknown { name: String },
    #[error("the namespace cannot be `{0}`: {1}")]
    Namespace(String, ValueError),
    #[error("`certificates=self-managed` needs `watchCluster=true`: the webhook keeps them in the cluster")]
    Unwatched,
    #[error("`clusterExceptions=true` needs `watchCluster=true`: exceptions lie in the cluster")]
    UnwatchedExceptions,
    #[error("`{name}` cannot be `{value}`: it is {expected}")]
    Value { name: String, value: String, expected: String },
}

/// A value for every setting, and the namespace.
#[derive(Clone, Debug)]
pub(super) struct Settings(BTreeMap<&'static str, String>);

impl Settings {
    /// Returns the defaults, overridden by `chosen` (`NAME=VALUE`).
    ///
    /// # Errors
    /// When there is no such setting, or the value is invalid.
    pub(super) fn new(namespace: &str, chosen: &[String]) -> Result<Self, SettingError> {
        let mut values: BTreeMap<_, _> = ROWS.iter().map(|row| (row.name, row.default.to_owned())).collect();
        let namespace = value_parsers::label(namespace)
            .map_err(|form| SettingError::Namespace(namespace.to_owned(), form))?;
        values.insert(NAMESPACE, namespace);
        for pair in chosen {
            let (name, value) = pair.split_once('=').ok_or_else(|| SettingError::Form(pair.clone()))?;
            let row = ROWS
                .iter()
                .find(|row| row.name == name)
                .ok_or_else(|| SettingError::Unknown { name: name.to_owned() })?;
            row.check(value)?;
            values.insert(row.name, value.to_owned());
        }
        let is = |name: &str, value: &str| values.get(name).is_some_and(|chosen| chosen == value);
        if is("certificates", "self-managed") && is("watchCluster", "false") {
            return Err(SettingError::Unwatched);
        }
        if is("clusterExceptions", "true") && is("watchCluster", "false") {
            return Err(SettingError::UnwatchedExceptions);
        }
        Ok(Self(values))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(super) fn is_known(name: &str) -> bool {
        name == NAMESPACE || ROWS.iter().any(|row| row.name == name)
    }

    /// Returns `values.yaml` of the chart.
    pub(super) fn chart_values() -> String {
        let mut text =
            "# Resources, node selectors and the like are for an overlay or a post-renderer.\n".to_owned();
        for row in ROWS {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n# {}\n{}: {}\n", row.doc, row.name, row.default);
        }
        text
    }

    /// Returns `values.schema.json` of the chart, by which Helm rejects what [`Settings::new`] rejects.
    pub(super) fn chart_schema() -> Value {
        let mut properties: Map<String, Value> =
            ROWS.iter().map(|row| (row.name.to_owned(), row.schema())).collect();
        // Values that Helm passes to subcharts.
        properties.insert("global".to_owned(), json!({}));
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
            // As `SettingError::Unwatched` and its sibling; Helm has filled the defaults in.
            "if": {"anyOf": [
                {"properties": {"certificates": {"const": "self-managed"}}},
                {"properties": {"clusterExceptions": {"enum": spellings("true")}}},
            ]},
            "then": {"properties": {"watchCluster": {"enum": spellings("true")}}},
        })
    }

    /// Returns the list of settings for `--help`.
    pub(super) fn help() -> String {
        let mut text = "Settings:\n".to_owned();
        for row in ROWS {
            let _ = writeln!(text, "  {} [default: {}]\n      {}", row.name, row.default, row.doc);
        }
        text
    }
}

impl Row {
    /// Returns the schema of a value: numbers and YAML booleans may be written with or without quotes.
    fn schema(&self) -> Value {
        let choices = || self.choices.iter().flat_map(|choice| spellings(choice)).collect::<Vec<_>>();
        let mut schema = match self.check {
            Check::Choice => json!({"enum": choices()}),
            Check::Count => json!({"type": "integer", "minimum": 1, "maximum": u16::MAX}),
            Check::Text => json!({"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9./:@_-]*$"}),
            Check::Networks => {
                let network = "[0-9A-Fa-f.:]+/[0-9]{1,3}";
                json!({"type": "string", "pattern": format!("^({ANY}|{network}(,{network})*)$")})
            }
        };
        schema["description"] = self.doc.into();
        schema
    }

    fn check(&self, value: &str) -> Result<(), SettingError> {
        let expected = match self.check {
            Check::Choice if self.choices.contains(&value) => return Ok(()),
            Check::Choice => format!("one of {}", self.choices.join(", ")),
            Check::Count if value.parse::<u16>().is_ok_and(|count| count > 0) => return Ok(()),
            Check::Count => "a number from 1 on".to_owned(),
            // Characters that need quotes in YAML are not valid in image names either.
            Check::Text
                if value.starts_with(|c: char| c.is_ascii_alphanumeric()) && value.chars().all(is_plain) =>
            {
                return Ok(());
            }
            Check::Text => "a name of letters, digits and ./:@_-".to_owned(),
            Check::Networks if value == ANY || value.split(',').all(is_network) => return Ok(()),
            Check::Networks => {
                format!("`{ANY}`, or networks like 10.0.0.4/32 or fd00::4/128 with commas between them")
            }
        };
        Err(SettingError::Value { name: self.name.to_owned(), value: value.to_owned(), expected })
    }
}

fn spellings(choice: &str) -> Vec<Value> {
    let bare = choice.parse::<bool>().ok().map(Value::from);
    bare.into_iter().chain([choice.into()]).collect()
}

fn is_network(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.bytes().all(|byte| byte.is_ascii_digit()) && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || "./:@_-".contains(character)
}

fn names() -> String {
    ROWS.iter().map(|row| format!("`{}`", row.name)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked() {
        let refused = |pair: &str| Settings::new("ns", &[pair.to_owned()]).unwrap_err().to_string();
        assert_eq!(refused("replicas=0"), "`replicas` cannot be `0`: it is a number from 1 on");
        assert_eq!(
            refused("certificates=none"),
            "`certificates` cannot be `none`: it is one of secret, self-managed, cert-manager"
        );
        assert!(refused("image=a b").contains("cannot be `a b`"));
        assert!(refused("size=1").starts_with("there is no setting `size`; there are `image`, "));
        let unwatched = ["certificates=self-managed", "watchCluster=false"].map(str::to_owned);
        assert_eq!(Settings::new("ns", &unwatched).unwrap_err(), SettingError::Unwatched);
        let unwatched = ["clusterExceptions=true", "watchCluster=false"].map(str::to_owned);
        assert_eq!(Settings::new("ns", &unwatched).unwrap_err(), SettingError::UnwatchedExceptions);
        for networks in
            ["", "10.0.0.1", "10.0.0.1/33", "10.0.0.1/32,", "fd00::/129", "any,10.0.0.1/32", "10.0.0.1/+8"]
        {
            assert!(
                refused(&format!("apiServers={networks}")).contains("is `any`, or networks"),
                "{networks}"
            );
        }
        assert!(Settings::new("ns", &["apiServers=10.0.0.1/32,fd00::/8".to_owned()]).is_ok());
        assert_eq!(refused("image"), "`image` is not of the form NAME=VALUE");
    }
}
