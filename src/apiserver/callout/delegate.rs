//! Sends requests to the Services of APIServices, in the name of users that this server has authenticated: who they are is told in
//! headers. Read from handler_proxy.go of kube-aggregator 1.36 and round_trippers.go of client-go.

use admit_policy::webhook::Client;
use admit_serving::EndsClosed;
use axum::body::Body;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use uuid::Uuid;

use super::Callee;
use super::client::{connect, secured};
use super::failure::NotSent;
use super::service::{self, Place};
use crate::identity::Identity;
use crate::objects::Objects;

const USER: &str = "x-remote-user";
const UID: &str = "x-remote-uid";
const GROUP: &str = "x-remote-group";
const EXTRA: &str = "x-remote-extra-";

/// Where a request is sent.
#[derive(Debug)]
pub(crate) struct Backend<'c> {
    callee: &'c Callee,
    place: Place,
}

impl<'c> Backend<'c> {
    /// Selects an endpoint.
    ///
    /// # Errors
    /// If the Service has none.
    pub(crate) fn of(objects: &dyn Objects, callee: &'c Callee) -> Result<Self, NotSent> {
        let place = match &callee.client {
            Client::Service(wanted) => service::locate(objects, wanted, Uuid::new_v4().as_u64_pair().1)?,
            Client::Url(_) => Place { host: String::new(), port: 443 },
        };
        Ok(Self { callee, place })
    }

    /// Returns host and port, as URLs have them.
    pub(crate) fn authority(&self) -> String {
        let Place { host, port } = &self.place;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// Sends a request and returns the response, whose body comes as it is sent.
    ///
    /// # Errors
    /// If there is no response.
    pub(crate) async fn send(self, request: Request<Body>) -> Result<Response<Incoming>, NotSent> {
        let host = self.place.host.clone();
        let stream = connect(self.place).await?;
        let stream: EndsClosed<TlsStream<TcpStream>> = EndsClosed(secured(self.callee, host, stream).await?);
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends with the response, or when nobody reads that any more.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a delegate ended");
            }
        });
        Ok(sender.send_request(request).await?)
    }
}

/// Replaces what headers say of the user.
///
/// # Errors
/// If a name of the user, a group or an extra cannot be told in a header: without it, the request would be somebody else's.
pub(crate) fn introduce(user: &Identity, headers: &mut HeaderMap) -> Result<(), NotSent> {
    let told: Vec<HeaderName> = headers.keys().filter(|name| is_about_user(name)).cloned().collect();
    for name in told {
        headers.remove(name);
    }
    let mut add = |name: &str, value: &str| -> Result<(), NotSent> {
        let name = HeaderName::try_from(name).map_err(http::Error::from)?;
        headers.append(name, HeaderValue::try_from(value).map_err(http::Error::from)?);
        Ok(())
    };
    add(USER, &user.username)?;
    if !user.uid.is_empty() {
        add(UID, &user.uid)?;
    }
    user.groups.iter().try_for_each(|group| add(GROUP, group))?;
    for (key, values) in &user.extra {
        let name = format!("{EXTRA}{}", escaped(key));
        values.iter().try_for_each(|value| add(&name, value))?;
    }
    Ok(())
}

fn is_about_user(name: &HeaderName) -> bool {
    let name = name.as_str();
    [USER, UID, GROUP].contains(&name) || name.starts_with(EXTRA)
}

/// Escapes what names of headers cannot have, and the sign of escapes itself.
fn escaped(key: &str) -> String {
    let mut escaped = String::new();
    for byte in key.bytes() {
        match byte {
            b'%' => escaped.push_str("%25"),
            b'!' | b'#' | b'$' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|'
            | b'~' => {
                escaped.push(char::from(byte));
            }
            byte if byte.is_ascii_alphanumeric() => escaped.push(char::from(byte)),
            byte => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn users_are_told_in_headers_that_nobody_else_sets() {
        let mut headers = HeaderMap::new();
        for name in ["x-remote-user", "x-remote-uid", "x-remote-group", "x-remote-extra-a", "accept"] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static("forged"));
        }
        let extra = BTreeMap::from([("example.com/a b%".to_owned(), vec!["1".to_owned(), "2".to_owned()])]);
        let user = Identity { extra, ..Identity::new("ann", ["devs".to_owned()]) };
        introduce(&user, &mut headers).unwrap();
        let mut told: Vec<String> =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        told.sort();
        assert_eq!(
            told,
            [
                "accept: forged",
                "x-remote-extra-example.com%2fa%20b%25: 1",
                "x-remote-extra-example.com%2fa%20b%25: 2",
                "x-remote-group: devs",
                "x-remote-group: system:authenticated",
                "x-remote-user: ann",
            ]
        );
    }

    #[test]
    fn a_user_that_no_header_can_tell_is_not_introduced() {
        let told = |user: Identity| introduce(&user, &mut HeaderMap::new()).is_ok();
        assert!(told(Identity::new("\u{fc}", ["a b".to_owned()])));
        assert!(!told(Identity::new("ann\nx-remote-group: system:masters", [])));
        assert!(!told(Identity::new("ann", ["a\0".to_owned()])));
        let extra = BTreeMap::from([("scope".to_owned(), vec!["\r\n".to_owned()])]);
        assert!(!told(Identity { extra, ..Identity::new("ann", []) }));
    }
}
