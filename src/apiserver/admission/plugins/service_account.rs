//! Implements `ServiceAccount`: sets a pod's service account, mounts its token, and adds its image pull secrets.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use thiserror::Error;
use uuid::Uuid;

use super::alone::{Alone, Turn};
use super::pods::{items, text};
use super::{Plugin, Request};
use crate::admission::review::Operation;
use crate::kinds::shared::pod_uses;
use crate::object;
use crate::status::Refusal;

pub(super) const PLUGIN: Plugin =
    Plugin { name: "ServiceAccount", mutate: Some(admit), validate: Some(validate), alone: Alone::By(alone) };

/// The service account of a pod that names none.
pub(super) const DEFAULT: &str = "default";
/// The name of the token volume, to which a random suffix is added.
const VOLUME: &str = "kube-api-access-";
/// The path at which containers find the token.
const MOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The lifetime of a token in seconds: a little over an hour, by which API servers recognise the tokens of this volume.
const LIFETIME: i64 = 3_607;
/// The account's annotation that limits pods to the secrets it lists.
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";

fn admit(request: &mut Request<'_>) -> Result<(), Refusal> {
    if !request.creates("", "pods") {
        return Ok(());
    }
    if request.is_mirror_pod() {
        return validate(request);
    }
    if account_name(request.object()).is_empty() {
        let spec = spec_mut(request);
        // Both names of the field are set.
        spec.insert("serviceAccountName".to_owned(), DEFAULT.into());
        spec.insert("serviceAccount".to_owned(), DEFAULT.into());
    }
    let account = account(request)?;
    if is_token_wanted(&account, request.object()) {
        mount_token(request);
    }
    let secrets: Vec<Value> =
        items(&account, "/imagePullSecrets").map(|secret| json!({"name": secret["name"]})).collect();
    if !secrets.is_empty() && items(request.object(), "/spec/imagePullSecrets").next().is_none() {
        spec_mut(request).insert("imagePullSecrets".to_owned(), secrets.into());
    }
    validate(request)
}

fn validate(request: &Request<'_>) -> Result<(), Refusal> {
    if request.is(Operation::Update, ("", "pods", "ephemeralcontainers")) {
        let account = account(request)?;
        let forbidden = |why: Unlisted<'_>| Err(request.forbidden(&why.to_string()));
        return if enforces(&account) {
            limit_containers(&account, request.object(), &EPHEMERAL).or_else(forbidden)
        } else {
            Ok(())
        };
    }
    if !request.creates("", "pods") {
        return Ok(());
    }
    let pod = request.object();
    if request.is_mirror_pod() {
        return mirror(pod).map_err(|why| request.forbidden(why));
    }
    if account_name(pod).is_empty() {
        let why =
            format!("no service account specified for pod {}/{}", request.namespace(), object::name(pod));
        return Err(request.forbidden(&why));
    }
    let account = account(request)?;
    if enforces(&account) {
        limit(&account, pod).map_err(|why| request.forbidden(&why.to_string()))?;
    }
    Ok(())
}

fn spec_mut<'o>(request: &'o mut Request<'_>) -> &'o mut Map<String, Value> {
    object::member_mut(object::map_of(request.object_mut()), "spec")
}

fn account_name(pod: &Value) -> &str {
    text(pod, "/spec/serviceAccountName")
}

fn account(request: &Request<'_>) -> Result<Arc<Value>, Refusal> {
    let (namespace, name) = (request.namespace(), account_name(request.object()));
    request.stored("serviceaccounts", namespace, name).ok_or_else(|| {
        request.forbidden(&format!(
            "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
        ))
    })
}

/// Returns whether to mount a token: the pod decides, or else its account; the default is true.
fn is_token_wanted(account: &Value, pod: &Value) -> bool {
    let of_pod = pod.pointer("/spec/automountServiceAccountToken").and_then(Value::as_bool);
    let of_account = account.get("automountServiceAccountToken").and_then(Value::as_bool);
    of_pod.or(of_account).unwrap_or(true)
}

/// Mounts the token in each container that mounts nothing at that path, from an existing token volume or a new one.
fn mount_token(request: &mut Request<'_>) {
    let pod = request.object();
    let is_token = |volume: &&Value| {
        volume.get("projected").is_some_and(Value::is_object) && text(volume, "/name").starts_with(VOLUME)
    };
    let existing = items(pod, "/spec/volumes").find(is_token).map(|volume| text(volume, "/name").to_owned());
    let has_mount =
        |container: &Value| items(container, "/volumeMounts").any(|mount| mount["mountPath"] == MOUNT);
    let lists = ["initContainers", "containers"];
    let needed = lists.iter().any(|list| items(pod, &format!("/spec/{list}")).any(|one| !has_mount(one)));
    if !needed {
        return;
    }
    let name = existing.clone().unwrap_or_else(|| format!("{VOLUME}{}", random()));
    let spec = spec_mut(request);
    for list in lists {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if !has_mount(container) {
                let mount = json!({"name": name, "readOnly": true, "mountPath": MOUNT});
                push(object::map_of(container), "volumeMounts", mount);
            }
        }
    }
    if existing.is_none() {
        push(spec, "volumes", json!({"name": name, "projected": token_volume()}));
    }
}

fn push(map: &mut Map<String, Value>, list: &str, item: Value) {
    match map.get_mut(list).and_then(Value::as_array_mut) {
        Some(items) => items.push(item),
        None => {
            map.insert(list.to_owned(), json!([item]));
        }
    }
}

/// Returns the projected volume with the token, the server's CA and the namespace.
fn token_volume() -> Value {
    json!({"sources": [
        {"serviceAccountToken": {"expirationSeconds": LIFETIME, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [
            {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
        ]}},
    ], "defaultMode": 0o644})
}

fn random() -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let bytes = Uuid::new_v4();
    let letters =
        bytes.as_bytes().iter().take(5).filter_map(|byte| LETTERS.get(usize::from(*byte) % LETTERS.len()));
    letters.map(|letter| char::from(*letter)).collect()
}

/// Checks a mirror pod, which may not refer to service accounts, secrets or tokens.
fn mirror(pod: &Value) -> Result<(), &'static str> {
    if !account_name(pod).is_empty() {
        return Err("a mirror pod may not reference service accounts");
    }
    if pod_uses::secrets(pod).next().is_some() {
        return Err("a mirror pod may not reference secrets");
    }
    let mut sources = items(pod, "/spec/volumes").flat_map(|volume| items(volume, "/projected/sources"));
    if sources.any(|source| source.get("serviceAccountToken").is_some_and(Value::is_object)) {
        return Err("a mirror pod may not use ServiceAccountToken volume projections");
    }
    Ok(())
}

fn enforces(account: &Value) -> bool {
    // What Go's `ParseBool` accepts as true.
    const TRUE: [&str; 6] = ["1", "t", "T", "TRUE", "true", "True"];
    object::meta_map(account, "annotations").any(|(key, value)| key == ENFORCE && TRUE.contains(&value))
}

/// A list of containers, and the name of one of them in messages.
struct Containers {
    list: &'static str,
    called: &'static str,
}

const INIT: Containers = Containers { list: "initContainers", called: "init container" };
const MAIN: Containers = Containers { list: "containers", called: "container" };
const EPHEMERAL: Containers = Containers { list: "ephemeralContainers", called: "ephemeral container" };

/// Says which secret of a pod its service account does not list.
#[derive(Debug, Error)]
enum Unlisted<'p> {
    #[error(
        "volume with secret.secretName=\"{secret}\" is not allowed because service account {owner} does not reference that secret"
    )]
    Volume { secret: &'p str, owner: &'p str },
    #[error(
        "imagePullSecrets[{at}].name=\"{secret}\" is not allowed because service account {owner} does not reference that \
         imagePullSecret"
    )]
    PullSecret { at: usize, secret: &'p str, owner: &'p str },
    #[error(
        "{called} {container} with envVar {variable} referencing secret.secretName=\"{secret}\" is not allowed because \
         service account {owner} does not reference that secret"
    )]
    Variable { called: &'static str, container: &'p str, variable: &'p str, secret: &'p str, owner: &'p str },
    #[error(
        "{called} {container} with envFrom referencing secret.secretName=\"{secret}\" is not allowed because service account \
         {owner} does not reference that secret"
    )]
    Variables { called: &'static str, container: &'p str, secret: &'p str, owner: &'p str },
}

fn limit<'p>(account: &'p Value, pod: &'p Value) -> Result<(), Unlisted<'p>> {
    let owner = object::name(account);
    for volume in
        items(pod, "/spec/volumes").filter(|volume| volume.get("secret").is_some_and(Value::is_object))
    {
        let secret = text(volume, "/secret/secretName");
        if !lists(account, "secrets", secret) {
            return Err(Unlisted::Volume { secret, owner });
        }
    }
    limit_containers(account, pod, &INIT)?;
    limit_containers(account, pod, &MAIN)?;
    for (at, secret) in items(pod, "/spec/imagePullSecrets").enumerate() {
        let secret = text(secret, "/name");
        if !lists(account, "imagePullSecrets", secret) {
            return Err(Unlisted::PullSecret { at, secret, owner });
        }
    }
    Ok(())
}

fn limit_containers<'p>(account: &'p Value, pod: &'p Value, which: &Containers) -> Result<(), Unlisted<'p>> {
    let (called, owner) = (which.called, object::name(account));
    for container in items(pod, &format!("/spec/{}", which.list)) {
        let (of, container) = (container, text(container, "/name"));
        for variable in items(of, "/env") {
            let Some(secret) = variable.pointer("/valueFrom/secretKeyRef").filter(|it| it.is_object()) else {
                continue;
            };
            let secret = text(secret, "/name");
            if !lists(account, "secrets", secret) {
                let variable = text(variable, "/name");
                return Err(Unlisted::Variable { called, container, variable, secret, owner });
            }
        }
        for source in items(of, "/envFrom") {
            let Some(secret) = source.get("secretRef").filter(|it| it.is_object()) else { continue };
            let secret = text(secret, "/name");
            if !lists(account, "secrets", secret) {
                return Err(Unlisted::Variables { called, container, secret, owner });
            }
        }
    }
    Ok(())
}

fn lists(account: &Value, list: &str, secret: &str) -> bool {
    account.get(list).and_then(Value::as_array).into_iter().flatten().any(|one| text(one, "/name") == secret)
}

/// Without a cluster: the default account is assumed to exist, but the plugin runs only if it is given.
fn alone(request: &Request<'_>) -> Turn {
    let is_of_pod =
        request.creates("", "pods") || request.is(Operation::Update, ("", "pods", "ephemeralcontainers"));
    if !is_of_pod || request.is_mirror_pod() {
        return Turn::Acts;
    }
    match text(request.object(), "/spec/serviceAccountName") {
        "" | DEFAULT => {
            Turn::acts_if(request.stored("serviceaccounts", request.namespace(), DEFAULT).is_some())
        }
        name => Turn::named(request, "serviceaccounts", request.namespace(), name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::plugins::tests::{beside, mutated, mutated_beside, pod, refused, refused_beside};

    fn account(name: &str, rest: &Value) -> (&'static str, Value) {
        let mut account = json!({"metadata": {"name": name, "namespace": "n"}});
        object::map_of(&mut account).extend(rest.as_object().cloned().unwrap_or_default());
        ("serviceaccounts", account)
    }

    #[test]
    fn pods_get_the_token_of_their_account() {
        let stored = [account("default", &json!({"imagePullSecrets": [{"name": "pull"}]}))];
        let mut sent = pod();
        sent["spec"]["initContainers"] = json!([{"name": "i"}]);
        sent["spec"]["containers"] = json!([{"name": "a", "volumeMounts": [{"name": "x", "mountPath": "/x"}]},
            {"name": "own", "volumeMounts": [{"name": "x", "mountPath": MOUNT}]}]);
        let made = mutated_beside(&PLUGIN, "pods", &sent, &stored).unwrap().unwrap();
        let spec = &made["spec"];
        assert_eq!(
            (&spec["serviceAccountName"], &spec["serviceAccount"]),
            (&json!("default"), &json!("default"))
        );
        assert_eq!(spec["imagePullSecrets"], json!([{"name": "pull"}]));
        let name = text(spec, "/volumes/0/name");
        assert!(name.starts_with(VOLUME) && name.len() == VOLUME.len() + 5, "{name}");
        assert_eq!(spec["volumes"][0]["projected"], token_volume());
        let mount = json!({"name": name, "readOnly": true, "mountPath": MOUNT});
        assert_eq!(spec["initContainers"][0]["volumeMounts"], json!([mount]));
        assert_eq!(spec["containers"][0]["volumeMounts"][1], mount);
        assert_eq!(items(spec, "/containers/1/volumeMounts").count(), 1);
        // The plugin changes nothing in a second run, as after a webhook.
        assert_eq!(mutated_beside(&PLUGIN, "pods", &made, &stored), Ok(None));
    }

    #[test]
    fn nobody_gets_a_token_who_wants_none() {
        let stored = [account("default", &json!({"automountServiceAccountToken": false}))];
        let mut sent = pod();
        let volumes = |sent: &Value| {
            let made = mutated_beside(&PLUGIN, "pods", sent, &stored).unwrap().unwrap();
            items(&made, "/spec/volumes").count()
        };
        assert_eq!(volumes(&sent), 0);
        sent["spec"]["automountServiceAccountToken"] = true.into();
        assert_eq!(volumes(&sent), 1);
    }

    #[test]
    fn accounts_have_to_be_there() {
        assert_eq!(
            refused(&PLUGIN, "pods", &pod()),
            "pods \"a\" is forbidden: error looking up service account n/default: serviceaccount \"default\" not found"
        );
        let mut mirror = pod();
        mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
        assert_eq!(mutated(&PLUGIN, "pods", &mirror), Ok(None));
        mirror["spec"]["volumes"] = json!([{"name": "v", "secret": {"secretName": "s"}}]);
        assert_eq!(
            refused(&PLUGIN, "pods", &mirror),
            "pods \"a\" is forbidden: a mirror pod may not reference secrets"
        );
        mirror["spec"]["serviceAccountName"] = "default".into();
        assert_eq!(
            refused(&PLUGIN, "pods", &mirror),
            "pods \"a\" is forbidden: a mirror pod may not reference service accounts"
        );
    }

    #[test]
    fn accounts_can_keep_pods_to_their_secrets() {
        let mut strict =
            account("default", &json!({"secrets": [{"name": "s"}], "imagePullSecrets": [{"name": "p"}]}));
        strict.1["metadata"]["annotations"] = json!({(ENFORCE): "true"});
        let told = |pointer: &str, part: Value| {
            let mut sent = pod();
            *beside(&mut sent, pointer) = part;
            let whole = refused_beside(&PLUGIN, "pods", &sent, std::slice::from_ref(&strict));
            whole.trim_start_matches("pods \"a\" is forbidden: ").to_owned()
        };
        let end = "is not allowed because service account default does not reference that";
        assert_eq!(
            told("/spec/volumes", json!([{"name": "v", "secret": {"secretName": "t"}}])),
            format!("volume with secret.secretName=\"t\" {end} secret")
        );
        let env = json!([{"name": "E", "valueFrom": {"secretKeyRef": {"name": "t", "key": "k"}}}]);
        assert_eq!(
            told("/spec/containers/0/env", env),
            format!("container c with envVar E referencing secret.secretName=\"t\" {end} secret")
        );
        assert_eq!(
            told("/spec/initContainers", json!([{"name": "i", "envFrom": [{"secretRef": {"name": "t"}}]}])),
            format!("init container i with envFrom referencing secret.secretName=\"t\" {end} secret")
        );
        assert_eq!(
            told("/spec/imagePullSecrets", json!([{"name": "p"}, {"name": "q"}])),
            format!("imagePullSecrets[1].name=\"q\" {end} imagePullSecret")
        );
    }
}
