//! Reads the token of the upload service from a file or a Secret, for each request, so that a rotated token is used.
//!
//! A [`Token`] is never printed: its `Debug` is a placeholder and it has no `Display`.

use std::fmt;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use serde_json::Value;

use crate::outside::{self, Unreadable};
use crate::telemetry::{Secrets, with_causes};

/// A bearer token.
#[derive(Clone, PartialEq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// Trims and checks a token.
    ///
    /// # Errors
    /// [`TokenError::Empty`] and [`TokenError::SeveralLines`].
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        match text {
            "" => Err(TokenError::Empty),
            _ if text.contains(['\n', '\r']) => Err(TokenError::SeveralLines),
            _ => Ok(Self(text.to_owned())),
        }
    }

    /// Returns the secret that no message may contain.
    pub(super) fn secrets(&self) -> Secrets {
        Secrets::of([self.0.as_str()])
    }

    /// Returns the token for writing it into a Secret.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0.into_bytes()
    }

    /// Returns the token for the request header.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("the upload token is empty")]
    Empty,
    #[error("the upload token has more than one line")]
    SeveralLines,
    #[error("the upload token holds a character that a request header cannot carry")]
    NotAHeader,
    #[error("cannot read the upload token from {}: {source}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot read Secret {namespace}/{name}: {}", with_causes(source))]
    Secret {
        namespace: String,
        name: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("Secret {namespace}/{name} has no {what}")]
    Missing { namespace: String, name: String, what: String },
}

/// The source of the token.
#[derive(Clone)]
pub enum TokenSource {
    File(PathBuf),
    /// A key of a Secret. The key `.dockerconfigjson` contains logins by registry, of which that of `registry` is used.
    Secret {
        client: Client,
        namespace: String,
        name: String,
        key: String,
        registry: String,
    },
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Secret { namespace, name, key, .. } => f
                .debug_struct("Secret")
                .field("namespace", namespace)
                .field("name", name)
                .field("key", key)
                .finish(),
        }
    }
}

impl TokenSource {
    /// Returns the cluster's pull secret as the source, which OpenShift has in this place.
    pub fn pull_secret(client: Client) -> Self {
        Self::Secret {
            client,
            namespace: "openshift-config".to_owned(),
            name: "pull-secret".to_owned(),
            key: DOCKER_CONFIG.to_owned(),
            registry: "cloud.openshift.com".to_owned(),
        }
    }

    /// # Errors
    /// [`TokenError`] when the source has no valid token.
    pub async fn read(&self) -> Result<Token, TokenError> {
        match self {
            Self::File(path) => {
                let file = path.clone();
                let read = outside::in_time(move || outside::text(&file, outside::MAX_PEM)).await;
                let read = read.and_then(|text| text).map_err(Unreadable::into_io);
                Token::parse(&read.map_err(|source| TokenError::File { path: path.clone(), source })?)
            }
            Self::Secret { client, namespace, name, key, registry } => {
                let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
                let secret = secrets.get(name).await.map_err(|source| TokenError::Secret {
                    namespace: namespace.clone(),
                    name: name.clone(),
                    source: Box::new(source),
                })?;
                let missing = |what: String| TokenError::Missing {
                    namespace: namespace.clone(),
                    name: name.clone(),
                    what,
                };
                let data = secret.data.unwrap_or_default().remove(key);
                let data = data.ok_or_else(|| missing(format!("key `{key}`")))?;
                let text = match key.as_str() {
                    DOCKER_CONFIG => login(&data.0, registry),
                    _ => String::from_utf8(data.0).ok(),
                };
                Token::parse(&text.ok_or_else(|| missing(format!("token for {registry}")))?)
            }
        }
    }
}

const DOCKER_CONFIG: &str = ".dockerconfigjson";

fn login(config: &[u8], registry: &str) -> Option<String> {
    let config: Value = serde_json::from_slice(config).ok()?;
    Some(config.get("auths")?.get(registry)?.get("auth")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_line_and_never_shown() {
        let token = Token::parse("  canary-4711\n").unwrap();
        assert_eq!(token.expose(), "canary-4711");
        assert!(!format!("{token:?}").contains("canary"));
        assert!(matches!(Token::parse(" \n"), Err(TokenError::Empty)));
        assert!(matches!(Token::parse("a\nb"), Err(TokenError::SeveralLines)));
    }

    #[test]
    fn the_login_of_one_registry_is_taken_from_a_docker_config() {
        let config = br#"{"auths":{"quay.io":{"auth":"q"},"cloud.openshift.com":{"auth":"c","email":"e"}}}"#;
        assert_eq!(login(config, "cloud.openshift.com").as_deref(), Some("c"));
        assert_eq!(login(config, "example.com"), None);
        assert_eq!(login(b"not json", "quay.io"), None);
    }
}
