//! Credentials for Kafka Connect: a Basic login or a bearer token, from a file or a Secret. They are read on first
//! use, and again once they are refused, so that a change takes effect. They are never logged or displayed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use admit_apimachinery::go;
use http::HeaderValue;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use crate::outside::{self, Unreadable};
use crate::telemetry::{Secrets, with_causes};

/// The source of the credentials: a file or a Secret.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LoginSource {
    /// A file with `USER:PASSWORD`.
    LoginFile(PathBuf),
    /// A file with a token.
    TokenFile(PathBuf),
    /// A Secret with `username` and `password`, or with `token`.
    Secret { namespace: String, name: String },
}

/// Why there are no usable credentials.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error("cannot read the login of Kafka Connect from {}: {why}", .path.display())]
    File { path: PathBuf, why: String },
    #[error("{} has {what}", .path.display())]
    OfFile { path: PathBuf, what: Mistake },
    #[error("cannot read Secret {secret}: {}", with_causes(.source))]
    Secret { secret: String, source: Box<kube::Error> },
    #[error("Secret {secret} has {what}")]
    OfSecret { secret: String, what: Mistake },
    #[error("Secret {0} is in no cluster that is known here")]
    NoCluster(String),
}

/// An error in the credentials. Messages do not contain them.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Mistake {
    #[error("no USER:PASSWORD in one line")]
    NoLogin,
    #[error("no token in one line")]
    NoToken,
    #[error("neither username and password nor token")]
    NoKeys,
}

/// The Authorization header. Its value is marked as sensitive, and not printed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Header(pub(super) HeaderValue);

impl Header {
    fn basic(user: &str, password: &str) -> Result<Self, Mistake> {
        if user.is_empty() || user.contains(':') || has_controls(user) || has_controls(password) {
            return Err(Mistake::NoLogin);
        }
        Self::of("Basic", &go::base64::encode(format!("{user}:{password}"))).ok_or(Mistake::NoLogin)
    }

    fn bearer(token: &str) -> Result<Self, Mistake> {
        let token = token.trim();
        if token.is_empty() || token.contains(char::is_whitespace) {
            return Err(Mistake::NoToken);
        }
        Self::of("Bearer", token).ok_or(Mistake::NoToken)
    }

    fn of(scheme: &str, secret: &str) -> Option<Self> {
        let mut value = HeaderValue::try_from(format!("{scheme} {secret}")).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }

    /// Returns the secrets that no message may contain.
    pub(super) fn secrets(&self) -> Secrets {
        let text = self.0.to_str().unwrap_or_default();
        Secrets::of(text.split_once(' ').map(|(_, secret)| secret))
    }
}

fn has_controls(text: &str) -> bool {
    text.contains(char::is_control)
}

/// The login for one Kafka Connect cluster. Clones share it.
#[derive(Clone)]
pub(super) struct Login {
    source: LoginSource,
    client: Option<Client>,
    known: Arc<Mutex<Option<Header>>>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Login").field(&self.source).finish()
    }
}

impl Login {
    /// Creates a login; a file is read now, so that an invalid one is reported at the start.
    pub(super) fn new(source: LoginSource) -> Result<Self, LoginError> {
        if let LoginSource::LoginFile(path) | LoginSource::TokenFile(path) = &source {
            of_file(&source, path, outside::text(path, outside::MAX_PEM))?;
        }
        Ok(Self { source, client: None, known: Arc::default() })
    }

    /// Sets the cluster that contains the Secret.
    pub(super) fn of(self, client: &Client) -> Self {
        Self { client: Some(client.clone()), ..self }
    }

    /// Returns the Secret with the login.
    pub(super) fn secret(&self) -> Option<(&str, &str)> {
        match &self.source {
            LoginSource::Secret { namespace, name } => Some((namespace, name)),
            LoginSource::LoginFile(_) | LoginSource::TokenFile(_) => None,
        }
    }

    /// Returns the cached header, or reads it.
    pub(super) async fn header(&self) -> Result<Header, LoginError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(known) => Ok(known),
            None => self.read().await,
        }
    }

    /// Reads the login again; returns it if it differs from the `refused` one.
    pub(super) async fn other_than(&self, refused: &Header) -> Result<Option<Header>, LoginError> {
        Ok(Some(self.read().await?).filter(|now| now != refused))
    }

    async fn read(&self) -> Result<Header, LoginError> {
        let read = match &self.source {
            LoginSource::LoginFile(path) | LoginSource::TokenFile(path) => {
                let file = path.clone();
                let text = outside::in_time(move || outside::text(&file, outside::MAX_PEM)).await;
                of_file(&self.source, path, text.and_then(|text| text))?
            }
            LoginSource::Secret { namespace, name } => self.of_secret(namespace, name).await?,
        };
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(read.clone());
        Ok(read)
    }

    async fn of_secret(&self, namespace: &str, name: &str) -> Result<Header, LoginError> {
        let secret = || format!("{namespace}/{name}");
        let client = self.client.clone().ok_or_else(|| LoginError::NoCluster(secret()))?;
        let found = Api::<Secret>::namespaced(client, namespace).get(name).await;
        let found =
            found.map_err(|source| LoginError::Secret { secret: secret(), source: Box::new(source) })?;
        in_secret(&found).map_err(|what| LoginError::OfSecret { secret: secret(), what })
    }
}

fn of_file(
    source: &LoginSource,
    path: &Path,
    text: Result<String, Unreadable>,
) -> Result<Header, LoginError> {
    let path = path.to_owned();
    let text = match text {
        Ok(text) => text,
        Err(why) => return Err(LoginError::File { path, why: why.to_string() }),
    };
    let read = match source {
        LoginSource::TokenFile(_) => Header::bearer(&text),
        LoginSource::LoginFile(_) | LoginSource::Secret { .. } => {
            let line = text.trim_end_matches(['\n', '\r']);
            line.split_once(':')
                .ok_or(Mistake::NoLogin)
                .and_then(|(user, password)| Header::basic(user, password))
        }
    };
    read.map_err(|what| LoginError::OfFile { path, what })
}

fn in_secret(secret: &Secret) -> Result<Header, Mistake> {
    let text = |key: &str| secret.data.as_ref()?.get(key).and_then(|bytes| str::from_utf8(&bytes.0).ok());
    match (text("username"), text("password"), text("token")) {
        (Some(user), Some(password), _) => Header::basic(user, password),
        (_, _, Some(token)) => Header::bearer(token),
        _ => Err(Mistake::NoKeys),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    fn file(token: bool, text: &str) -> Result<Header, LoginError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("login");
        std::fs::write(&path, text).unwrap();
        let source =
            if token { LoginSource::TokenFile(path.clone()) } else { LoginSource::LoginFile(path.clone()) };
        of_file(&source, &path, outside::text(&path, outside::MAX_PEM))
    }

    fn secret(pairs: &[(&str, &str)]) -> Result<Header, Mistake> {
        let data = pairs.iter().map(|(k, v)| ((*k).to_owned(), ByteString(v.as_bytes().to_vec()))).collect();
        in_secret(&Secret { data: Some(data), ..Secret::default() })
    }

    #[test]
    fn cy_10_logins_are_read_from_files_and_secrets() {
        let basic = HeaderValue::from_static("Basic cm9ib3Q6aHVudGVyOjI=");
        let bearer = HeaderValue::from_static("Bearer hunter2");
        assert_eq!(file(false, "robot:hunter:2\n").unwrap().0, basic);
        assert_eq!(file(true, " hunter2\n").unwrap().0, bearer);
        let both = [("username", "robot"), ("password", "hunter:2"), ("token", "x")];
        assert_eq!(secret(&both).unwrap().0, basic);
        assert_eq!(secret(&[("token", "hunter2")]).unwrap().0, bearer);
        assert!(file(false, "robot:hunter2").unwrap().0.is_sensitive());
    }

    #[test]
    fn cy_10_what_is_no_login_is_refused_and_not_shown() {
        for (token, text) in [
            (false, "hunter2"),
            (false, ":hunter2"),
            (false, "robot:hunter2\nanother:hunter2"),
            (false, ""),
            (true, ""),
            (true, "hunter2 hunter2"),
            (true, "hunter2\u{e9}\u{7f}"),
        ] {
            let error = file(token, text).unwrap_err().to_string();
            assert!(error.contains("in one line") && !error.contains("hunter2"), "{error}");
        }
        assert_eq!(secret(&[("username", "robot")]), Err(Mistake::NoKeys));
        assert_eq!(secret(&[("username", "a:b"), ("password", "c")]), Err(Mistake::NoLogin));
        let none = Login::new(LoginSource::TokenFile("/nonexistent/token".into())).unwrap_err().to_string();
        assert!(
            none.starts_with("cannot read the login of Kafka Connect from /nonexistent/token:"),
            "{none}"
        );
    }

    #[test]
    fn logins_show_themselves_to_nobody() {
        let known = Arc::new(Mutex::new(Some(Header::basic("robot", "hunter2").unwrap())));
        let source = LoginSource::Secret { namespace: "n".to_owned(), name: "s".to_owned() };
        let login = Login { source, client: None, known: Arc::clone(&known) };
        assert_eq!(format!("{login:?}"), "Login(Secret { namespace: \"n\", name: \"s\" })");
        let header = known.lock().unwrap().clone().unwrap();
        assert!(!format!("{header:?}").contains("cm9ib3"), "{header:?}");
        let shown =
            crate::telemetry::Outside::of("no robot:hunter2, no cm9ib3Q6aHVudGVyMg==", &header.secrets());
        assert_eq!(shown.as_str(), "no [redacted], no [redacted]");
    }
}
