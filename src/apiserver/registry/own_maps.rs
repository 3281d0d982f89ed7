//! Maintains the ConfigMaps with which the server informs other parts of a cluster: the CAs of its clients, and the
//! time since when the use of tokens in Secrets is tracked.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use super::Registry;
use super::field_ownership::Ownership;
use super::update::Change;
use crate::call::WriteOptions;
use crate::object;
use crate::status::Refusal;

const NAMESPACE: &str = "kube-system";
const MAPS: &str = "configmaps";

const CLIENTS: &str = "extension-apiserver-authentication";
const CLIENTS_KEY: &str = "client-ca-file";

const TOKENS: &str = "kube-apiserver-legacy-service-account-token-tracking";
const TOKENS_KEY: &str = "since";

/// The line width of PEM.
const LINE: usize = 64;

impl Registry {
    /// Creates missing ConfigMaps, and adds missing CAs to existing ones.
    ///
    /// # Errors
    /// If the store refuses one of them.
    pub(crate) async fn create_own_maps(&self, authorities: Option<&str>) -> Result<(), Refusal> {
        let now = object::seconds(self.clock.now());
        let today = now.split('T').next().unwrap_or_default();
        self.make(("", MAPS), NAMESPACE, map(TOKENS, &json!({TOKENS_KEY: today}))).await?;
        let Some(authorities) = authorities else { return Ok(()) };
        let known = certificates(authorities);
        self.make(("", MAPS), NAMESPACE, map(CLIENTS, &json!({CLIENTS_KEY: to_pem(&known)}))).await?;
        self.add_authorities(&known).await
    }

    async fn add_authorities(&self, known: &[CertificateDer<'static>]) -> Result<(), Refusal> {
        let served = self.served();
        let Some(info) = served.table.find("", "v1", MAPS) else { return Ok(()) };
        let make = |live: &mut Arc<Value>| {
            let mut next = (**live).clone();
            let data = object::member_mut(object::map_of(&mut next), "data");
            let mut all = certificates(data.get(CLIENTS_KEY).and_then(Value::as_str).unwrap_or_default());
            for one in known {
                if !all.contains(one) {
                    all.push(one.clone());
                }
            }
            data.insert(CLIENTS_KEY.to_owned(), to_pem(&all).into());
            Ok(next)
        };
        let change = Change { make: &make, uid_is_precondition: false, ownership: Ownership::Tracked };
        let call = self.own_call(info, NAMESPACE).admitted();
        self.change(&call, CLIENTS, &change, &WriteOptions::own()).await.map(drop)
    }
}

fn map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}, "data": data})
}

/// Returns the certificates that can be parsed.
fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).filter_map(Result::ok).collect()
}

/// Encodes the certificates only, without other text of the file.
fn to_pem(certificates: &[CertificateDer<'_>]) -> String {
    let mut pem = String::new();
    for certificate in certificates {
        pem.push_str("-----BEGIN CERTIFICATE-----\n");
        let text = BASE64_STANDARD.encode(certificate);
        for (at, character) in text.chars().enumerate() {
            if at > 0 && at % LINE == 0 {
                pem.push('\n');
            }
            pem.push(character);
        }
        pem.push_str("\n-----END CERTIFICATE-----\n");
    }
    pem
}
