//! Reads the credentials for webhooks: the sections of `MutatingAdmissionWebhook` and `ValidatingAdmissionWebhook` name a
//! kubeconfig with a user for each webhook. Its clusters are ignored.
//!
//! Read from staging/src/k8s.io/apiserver/pkg/util/webhook/authentication.go of Kubernetes 1.36.

use std::collections::BTreeMap;
use std::path::Path;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::go::url;
use admit_apimachinery::pointer::text;
use admit_policy::webhook::{Client, Service};
use serde_json::Value;

use super::kubeconfig::{self, Users};
use super::sections::{AdmissionConfiguration, SettingsError, of_kind};
use crate::callout::Credentials;

const FIELDS: [&str; 4] = ["apiVersion", "kind", KUBECONFIG, MANIFESTS];
const KUBECONFIG: &str = "kubeConfigFile";
const MANIFESTS: &str = "staticManifestsDir";

/// Credentials by the webhooks they are for: `name.namespace.svc`, `*.namespace.svc`, `*`, or a host and a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::admission) struct WebhookUsers {
    users: BTreeMap<String, Credentials>,
    /// The user of the current context, for all other webhooks.
    current: Option<String>,
}

impl WebhookUsers {
    /// # Errors
    /// If the section is of another kind, or it or the kubeconfig cannot be read.
    pub(super) fn read(
        section: &Value,
        configuration: &AdmissionConfiguration,
    ) -> Result<Self, SettingsError> {
        of_kind(section, "WebhookAdmissionConfiguration", &["apiserver.config.k8s.io/v1"])?;
        let mut fields = section.as_object().into_iter().flatten().map(|(name, _)| name);
        if let Some(unknown) = fields.find(|name| !FIELDS.contains(&name.as_str())) {
            return Err(SettingsError::Text(format!("strict decoding error: unknown field \"{unknown}\"")));
        }
        let said = |field: &str| text(section, &format!("/{field}")).to_owned();
        if !said(MANIFESTS).is_empty() {
            return Err(SettingsError::FieldNotBuilt(MANIFESTS.to_owned()));
        }
        let path = said(KUBECONFIG);
        if path.is_empty() {
            return Ok(Self::default());
        }
        if !Path::new(&path).is_absolute() {
            let error = FieldError::invalid(KUBECONFIG, path.as_str(), "must be an absolute file path");
            return Err(SettingsError::invalid(&[error]));
        }
        let Users { users, current } = kubeconfig::users(configuration, &path)?;
        Ok(Self { users, current })
    }

    /// Returns the credentials for a webhook, if there are any.
    pub(in crate::admission) fn of(&self, client: &Client) -> Option<&Credentials> {
        if self.users.is_empty() { None } else { self.for_target(&target(client)) }
    }

    fn for_target(&self, target: &str) -> Option<&Credentials> {
        let starred = |target: &str, dot: usize| self.users.get(&format!("*{}", target.get(dot..)?));
        let named = |target: &str| {
            let exactly = self.users.get(target);
            exactly.or_else(|| target.match_indices('.').find_map(|(dot, _)| starred(target, dot)))
        };
        named(target)
            .or_else(|| target.strip_suffix(":443").and_then(named))
            .or_else(|| self.users.get("*"))
            .or_else(|| self.users.get(self.current.as_deref()?))
    }
}

/// Returns the host and port of a webhook.
fn target(client: &Client) -> String {
    match client {
        Client::Service(Service { namespace, name, port, .. }) => format!("{name}.{namespace}.svc:{port}"),
        Client::Url(text) => {
            let host = url::parse(text).map(|url| url.host()).unwrap_or_default();
            let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
            if has_port { host } else { format!("{host}:443") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(names: &[&str], current: Option<&str>) -> WebhookUsers {
        let user = |name: &&str| {
            let credentials = Credentials { authorization: (*name).to_owned(), ..Credentials::default() };
            ((*name).to_owned(), credentials)
        };
        WebhookUsers { users: names.iter().map(user).collect(), current: current.map(str::to_owned) }
    }

    fn service(port: i64) -> Client {
        let (name, namespace, path) = ("hook".to_owned(), "demo".to_owned(), String::new());
        Client::Service(Service { namespace, name, path, port })
    }

    #[test]
    fn the_user_that_is_for_it_most_of_all_is_taken() {
        let all = [
            "hook.demo.svc:443",
            "*.demo.svc:443",
            "*.svc:443",
            "hook.demo.svc",
            "*.demo.svc",
            "*.svc",
            "*",
            "me",
        ];
        for first in 0..all.len() {
            let users = users(&all[first..], Some("me"));
            assert_eq!(users.of(&service(443)).unwrap().authorization, all[first]);
        }
        assert_eq!(users(&["me"], None).of(&service(443)), None);
        assert_eq!(users(&["a"], Some("me")).of(&service(443)), None);
        assert_eq!(users(&[], Some("me")).of(&service(443)), None);
    }

    #[test]
    fn ports_other_than_that_of_https_are_named() {
        let known = users(&["hook.demo.svc", "*.svc:8443"], None);
        assert_eq!(known.of(&service(8443)).unwrap().authorization, "*.svc:8443");
        assert_eq!(known.of(&service(9443)), None);
        let known = users(&["a.example", "127.0.0.1:8443", "[::1]:8443"], None);
        for (url, user) in [
            ("https://a.example/path", Some("a.example")),
            ("https://a.example:443", Some("a.example")),
            ("https://a.example:444", None),
            ("https://127.0.0.1:8443/x", Some("127.0.0.1:8443")),
            ("https://[::1]:8443", Some("[::1]:8443")),
        ] {
            let found = known.of(&Client::Url(url.to_owned())).map(|user| user.authorization.as_str());
            assert_eq!(found, user, "{url}");
        }
    }
}
