//! Implements `serviceaccounts/token`: validates a TokenRequest, checks that the bound object exists, and issues the token.

use std::sync::Arc;

use admit_apimachinery::go;
use serde_json::{Value, json};

use super::Registry;
use super::field_ownership::track_request;
use crate::authentication::{Binding, Issued, Issuer, Lifetime};
use crate::call::{Call, WriteOptions};
use crate::object;
use crate::resources::{ResourceInfo, TOKEN_REQUEST};
use crate::status::{Cause, Refusal};

const GROUP: &str = "authentication.k8s.io";
/// The default and minimum lifetime of a token.
const DEFAULT_SECONDS: i64 = 60 * 60;
const LEAST_SECONDS: i64 = 10 * 60;

impl Registry {
    /// Answers the TokenRequest `asked` for the account `name` of the call.
    ///
    /// # Errors
    /// The refusal of admission, 404 for a missing account or bound object, 400 and 409 for one that does not
    /// match, 422 for a lifetime out of bounds.
    pub(crate) async fn issue_token(
        &self,
        call: &Call,
        name: &str,
        mut asked: Value,
        options: &WriteOptions,
        issuer: &Issuer,
    ) -> Result<Value, Refusal> {
        is_named(call, name, &asked)?;
        let account = self.get_builtin(&Call { subresource: None, ..call.clone() }, name)?;
        if asked.pointer("/spec/expirationSeconds").is_none_or(Value::is_null) {
            asked["spec"]["expirationSeconds"] = DEFAULT_SECONDS.into();
        }
        track_request(call, &mut asked, options)?;
        let asked = self.admitted(call, name, asked, options).await?;
        let seconds = lifetime(&asked)?;
        let mut bindings = vec![Binding {
            kind: "serviceaccount",
            name: name.to_owned(),
            uid: object::uid(&account).to_owned(),
        }];
        bindings.extend(self.bound(call, name, &asked)?);
        let audiences: Vec<String> = asked
            .pointer("/spec/audiences")
            .and_then(Value::as_array)
            .filter(|audiences| !audiences.is_empty())
            .map(|audiences| audiences.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            .unwrap_or_else(|| issuer.audiences.clone());
        let life = Lifetime { from: call.clock.now(), seconds };
        let token = issuer
            .issue(&call.namespace, &bindings, &audiences, life)
            .map_err(|error| Refusal::internal(error.to_string()))?;
        let managers = object::meta(&asked, "managedFields").cloned();
        let mut metadata = json!({
            "name": name, "namespace": call.namespace, "uid": object::uid(&account),
            "creationTimestamp": object::seconds(life.from)
        });
        object::set_field(&mut metadata, "managedFields", managers);
        let bound = asked.pointer("/spec/boundObjectRef").cloned().unwrap_or(Value::Null);
        Ok(json!({
            "kind": "TokenRequest", "apiVersion": format!("{GROUP}/v1"), "metadata": metadata,
            "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": bound},
            "status": {"token": token, "expirationTimestamp": object::seconds(life.end())}
        }))
    }

    /// Returns whether the account and the other bound objects of a token still exist with the same uid.
    pub(crate) fn bindings_hold(&self, issued: &Issued) -> bool {
        !issued.bindings.is_empty()
            && issued.bindings.iter().all(|binding| {
                let found = self.bindable(binding.kind, &issued.namespace, &binding.name);
                found.is_some_and(|(_, object)| object::uid(&object) == binding.uid)
            })
    }

    /// Finds an object that a token can be bound to, by its kind's name in token claims.
    fn bindable(&self, kind: &str, namespace: &str, name: &str) -> Option<(Arc<ResourceInfo>, Arc<Value>)> {
        let (plural, namespace) = match kind {
            "serviceaccount" => ("serviceaccounts", namespace),
            "pod" => ("pods", namespace),
            "secret" => ("secrets", namespace),
            _ => ("nodes", ""),
        };
        let served = self.served();
        let info = served.table.find("", "v1", plural)?;
        let key = crate::store::Key {
            resource: info.storage_key.as_str().into(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        Some((Arc::clone(info), self.store.latest(&key)?.object))
    }

    /// Returns the object to bind the token to beside the account, if one is requested.
    fn bound(&self, call: &Call, account: &str, asked: &Value) -> Result<Option<Binding>, Refusal> {
        let Some(reference) = asked.pointer("/spec/boundObjectRef").filter(|bound| bound.is_object()) else {
            return Ok(None);
        };
        let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
        // Only the group is checked; an apiVersion without one means core.
        let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
        let kind = match (group, text("kind")) {
            ("", "Pod") => "pod",
            ("", "Secret") => "secret",
            ("", "Node") => "node",
            (_, kind) => {
                let version = text("apiVersion");
                let slash = if version.contains('/') { "" } else { "/" };
                let why = format!("cannot bind token to object of type {slash}{version}, Kind={kind}");
                return Err(Refusal::bad_request(why));
            }
        };
        let Some((info, object)) = self.bindable(kind, &call.namespace, text("name")) else {
            return Err(Refusal::not_listed("", &format!("{kind}s"), text("name")));
        };
        if !text("uid").is_empty() && text("uid") != object::uid(&object) {
            let why = format!(
                "the UID in the bound object reference ({}) does not match the UID in record. The object might have been \
                 deleted and then recreated",
                text("uid")
            );
            // Upstream's message has the kind here, and the resource elsewhere.
            let told = ResourceInfo { plural: text("kind").to_owned(), ..ResourceInfo::clone(&info) };
            return Err(Refusal::conflict(&told, text("name"), &why));
        }
        let runs_as = object.pointer("/spec/serviceAccountName").and_then(Value::as_str);
        if kind == "pod" && runs_as != Some(account) {
            return Err(Refusal::bad_request(format!(
                "cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
                go::quote(account)
            )));
        }
        let (name, uid) = (text("name").to_owned(), object::uid(&object).to_owned());
        Ok(Some(Binding { kind, name, uid }))
    }
}

/// Checks that the request names no account other than that of the path.
fn is_named(call: &Call, account: &str, asked: &Value) -> Result<(), Refusal> {
    let is = |field: &str, own: &str| ["", own].contains(&object::meta_str(asked, field));
    if !is("namespace", &call.namespace) {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Refusal::bad_request(why));
    }
    if !is("name", account) {
        let given = object::meta_str(asked, "name");
        let why = "must match the service account name if specified";
        let cause = Cause::invalid("metadata.name", &given.into(), why);
        return Err(Refusal::invalid_kind(GROUP, TOKEN_REQUEST.2, account, vec![cause]));
    }
    Ok(())
}

fn lifetime(asked: &Value) -> Result<i64, Refusal> {
    let given = asked.pointer("/spec/expirationSeconds").unwrap_or(&Value::Null);
    let seconds = given.as_i64().unwrap_or(DEFAULT_SECONDS);
    let why = if seconds < LEAST_SECONDS {
        "may not specify a duration less than 10 minutes"
    } else if seconds > 1 << 32 {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(seconds);
    };
    let cause = Cause::invalid("spec.expirationSeconds", given, why);
    Err(Refusal::invalid_kind(GROUP, TOKEN_REQUEST.2, "", vec![cause]))
}
