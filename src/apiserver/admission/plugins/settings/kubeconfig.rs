//! Reads a kubeconfig: the backend of its current context, or its users.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use admit_apimachinery::go::json;
use admit_apimachinery::pointer::{items, text};
use admit_policy::webhook::Client;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::sections::{AdmissionConfiguration, SettingsError, parsed};
use crate::callout::{self, Callee, Credentials};

/// The timeout that client-go uses for backends of kubeconfigs.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Fields of clusters and users that upstream supports and this server does not.
const NOT_BUILT: [&str; 6] =
    ["auth-provider", "exec", "as", "insecure-skip-tls-verify", "proxy-url", "tokenFile"];

/// Returns the backend of the current context of the kubeconfig in `path`.
///
/// # Errors
/// If the file cannot be read, names no backend, or uses a field that is not supported.
pub(super) fn backend(configuration: &AdmissionConfiguration, path: &str) -> Result<Callee, SettingsError> {
    let path = PathBuf::from(path);
    let document = parsed(&configuration.file(&path)?)?;
    let wrong = |why: &str| wrong(&path, why);
    let named = |list: &str, part: &str, name: &str| -> Value {
        let found = items(&document, list).iter().find(|item| text(item, "/name") == name);
        found.and_then(|item| item.get(part)).cloned().unwrap_or_default()
    };
    let current = text(&document, "/current-context");
    let context = named("/contexts", "context", current);
    if current.is_empty() || context.is_null() {
        return Err(wrong("it has no current context"));
    }
    let cluster = named("/clusters", "cluster", text(&context, "/cluster"));
    let user = named("/users", "user", text(&context, "/user"));
    refuse_not_built(&path, &cluster)?;
    let server = text(&cluster, "/server");
    if !server.starts_with("https://") {
        return Err(wrong("the server of its cluster has to begin with https://"));
    }
    let source = Source { configuration, folder: path.parent().unwrap_or_else(|| Path::new("")) };
    let authority = source.pem(&cluster, "certificate-authority")?;
    if authority.is_empty() {
        let why = "certificate-authority or certificate-authority-data of its cluster is needed: the machine's own \
                   authorities are not trusted here";
        return Err(wrong(why));
    }
    let callee = Callee {
        client: Client::Url(server.to_owned()),
        ca_bundle: authority.into_bytes(),
        timeout: TIMEOUT,
        credentials: Credentials {
            server_name: text(&cluster, "/tls-server-name").to_owned(),
            ..source.credentials(&path, &user)?
        },
        is_insecure: false,
    };
    callee.check().map_err(|error| wrong(&error.to_string()))?;
    Ok(callee)
}

/// The users of a kubeconfig by name, and the user of its current context.
pub(super) struct Users {
    pub(super) users: BTreeMap<String, Credentials>,
    pub(super) current: Option<String>,
}

/// Returns the users of the kubeconfig in `path`.
///
/// # Errors
/// If the file cannot be read, or a user is invalid or duplicate.
pub(super) fn users(configuration: &AdmissionConfiguration, path: &str) -> Result<Users, SettingsError> {
    let path = PathBuf::from(path);
    let document = parsed(&configuration.file(&path)?)?;
    let source = Source { configuration, folder: path.parent().unwrap_or_else(|| Path::new("")) };
    let mut users = BTreeMap::new();
    for named in items(&document, "/users") {
        let name = text(named, "/name");
        let credentials = source.credentials(&path, named.get("user").unwrap_or(&Value::Null))?;
        callout::check(&credentials).map_err(|error| wrong(&path, &format!("user {name}: {error}")))?;
        if users.insert(name.to_owned(), credentials).is_some() {
            return Err(wrong(&path, &format!("duplicate name \"{name}\" in list of users")));
        }
    }
    let current = text(&document, "/current-context");
    let context = items(&document, "/contexts").iter().find(|context| text(context, "/name") == current);
    let current = context.map(|context| text(context, "/context/user").to_owned());
    Ok(Users { users, current })
}

fn wrong(path: &Path, why: &str) -> SettingsError {
    SettingsError::Text(format!("`{}`: {why}", path.display()))
}

/// # Errors
/// If a field of a cluster or user is set that is not supported here.
fn refuse_not_built(path: &Path, part: &Value) -> Result<(), SettingsError> {
    let is_said =
        |field: &&str| part.get(*field).is_some_and(|said| !said.is_null() && *said != Value::Bool(false));
    match NOT_BUILT.into_iter().find(is_said) {
        Some(field) => Err(SettingsError::FieldNotBuilt(format!("{field} in `{}`", path.display()))),
        None => Ok(()),
    }
}

fn authorization(user: &Value) -> String {
    let (token, name) = (text(user, "/token"), text(user, "/username"));
    if !token.is_empty() {
        return format!("Bearer {token}");
    }
    let pair = format!("{name}:{}", text(user, "/password"));
    if name.is_empty() { String::new() } else { format!("Basic {}", STANDARD.encode(pair)) }
}

/// Reads files relative to the folder of a kubeconfig.
struct Source<'c> {
    configuration: &'c AdmissionConfiguration,
    folder: &'c Path,
}

impl Source<'_> {
    /// Returns the credentials of a user of the kubeconfig in `path`.
    fn credentials(&self, path: &Path, user: &Value) -> Result<Credentials, SettingsError> {
        refuse_not_built(path, user)?;
        Ok(Credentials {
            certificate: self.pem(user, "client-certificate")?,
            key: self.pem(user, "client-key")?,
            authorization: authorization(user),
            server_name: String::new(),
        })
    }

    /// Returns the contents of `<field>-data`, or else of the file that the field names; empty if neither is set.
    fn pem(&self, part: &Value, field: &str) -> Result<String, SettingsError> {
        let data = text(part, &format!("/{field}-data"));
        if !data.is_empty() {
            let bytes =
                json::bytes(data).map_err(|error| SettingsError::Text(format!("{field}-data: {error}")))?;
            return String::from_utf8(bytes)
                .map_err(|error| SettingsError::Text(format!("{field}-data: {error}")));
        }
        match text(part, &format!("/{field}")) {
            "" => Ok(String::new()),
            path => self.configuration.file(&self.folder.join(path)),
        }
    }
}
