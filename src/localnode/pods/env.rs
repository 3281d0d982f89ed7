//! Builds the environment of a container from the Pod, its Secrets and ConfigMaps, which the caller has read. No I/O.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVar, Pod};
use kube::ResourceExt as _;

use super::super::NODE;
use super::ADDRESS;

/// The default search path for programs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The strings of a Secret or ConfigMap by key.
pub(super) type Texts = BTreeMap<String, String>;

/// The kind of a referenced object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::localnode) enum Kind {
    Secret,
    ConfigMap,
}

impl Kind {
    pub(in crate::localnode) fn word(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::ConfigMap => "configmap",
        }
    }
}

/// The objects that were read; None for those that do not exist.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources(pub(super) BTreeMap<(Kind, String), Option<Texts>>);

/// Why the environment cannot be built: a message for the status, which never contains a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Missing(String);

/// Returns the objects that a container's environment refers to.
pub(super) fn named(container: &Container) -> Vec<(Kind, String)> {
    let whole = container.env_from.iter().flatten().flat_map(|from| {
        let secret = from.secret_ref.as_ref().map(|of| (Kind::Secret, of.name.clone()));
        let map = from.config_map_ref.as_ref().map(|of| (Kind::ConfigMap, of.name.clone()));
        secret.into_iter().chain(map)
    });
    let keys = container.env.iter().flatten().filter_map(|var| var.value_from.as_ref()).flat_map(|from| {
        let secret = from.secret_key_ref.as_ref().map(|of| (Kind::Secret, of.name.clone()));
        let map = from.config_map_key_ref.as_ref().map(|of| (Kind::ConfigMap, of.name.clone()));
        secret.into_iter().chain(map)
    });
    whole.chain(keys).collect()
}

/// Builds the environment: the variables that every container has, those `given` by the node, then `envFrom`, then `env`, each
/// overriding the earlier ones.
///
/// # Errors
/// For a missing object or key that is not optional.
pub(super) fn environment(
    pod: &Pod,
    container: &Container,
    given: &[(String, String)],
    sources: &Sources,
) -> Result<Vec<(String, String)>, Missing> {
    let mut env =
        BTreeMap::from([("PATH".to_owned(), PATH.to_owned()), ("HOSTNAME".to_owned(), pod.name_any())]);
    env.extend(given.iter().cloned());
    for from in container.env_from.iter().flatten() {
        let prefix = from.prefix.as_deref().unwrap_or_default();
        let secret = from.secret_ref.as_ref().map(|of| (Kind::Secret, &of.name, of.optional));
        let map = from.config_map_ref.as_ref().map(|of| (Kind::ConfigMap, &of.name, of.optional));
        for (kind, name, optional) in secret.into_iter().chain(map) {
            let texts = sources.whole(kind, name, optional == Some(true))?;
            let texts = texts.into_iter().flatten().filter(|(key, _)| is_name(key));
            env.extend(texts.map(|(key, value)| (format!("{prefix}{key}"), value.clone())));
        }
    }
    for var in container.env.iter().flatten() {
        if let Some(value) = value(pod, container, var, sources, &env)? {
            env.insert(var.name.clone(), value);
        }
    }
    Ok(env.into_iter().collect())
}

fn value(
    pod: &Pod,
    container: &Container,
    var: &EnvVar,
    sources: &Sources,
    env: &BTreeMap<String, String>,
) -> Result<Option<String>, Missing> {
    let Some(from) = &var.value_from else {
        return Ok(Some(expanded(var.value.as_deref().unwrap_or_default(), env)));
    };
    if let Some(field) = &from.field_ref {
        return field_of(pod, &field.field_path).map(Some);
    }
    if let Some(of) = &from.secret_key_ref {
        return sources.key(Kind::Secret, &of.name, &of.key, of.optional == Some(true));
    }
    if let Some(of) = &from.config_map_key_ref {
        return sources.key(Kind::ConfigMap, &of.name, &of.key, of.optional == Some(true));
    }
    let why = format!(
        "env {} of container {} has a source that this machine does not know",
        var.name, container.name
    );
    Err(Missing(why))
}

impl Sources {
    fn whole(&self, kind: Kind, name: &str, optional: bool) -> Result<Option<&Texts>, Missing> {
        match self.0.get(&(kind, name.to_owned())) {
            Some(Some(texts)) => Ok(Some(texts)),
            _ if optional => Ok(None),
            _ => Err(Missing(format!("{} {name:?} not found", kind.word()))),
        }
    }

    fn key(&self, kind: Kind, name: &str, key: &str, optional: bool) -> Result<Option<String>, Missing> {
        let Some(texts) = self.whole(kind, name, optional)? else { return Ok(None) };
        match texts.get(key) {
            Some(text) => Ok(Some(text.clone())),
            None if optional => Ok(None),
            None => Err(Missing(format!(
                "couldn't find key {key} in {} {name}",
                match kind {
                    Kind::Secret => "Secret",
                    Kind::ConfigMap => "ConfigMap",
                }
            ))),
        }
    }
}

/// Returns a field of the Pod as a string.
///
/// # Errors
/// For an unsupported path.
pub(super) fn field_of(pod: &Pod, path: &str) -> Result<String, Missing> {
    let spec = pod.spec.as_ref();
    let subscript =
        |of: &str| Some(path.strip_prefix(of)?.strip_prefix("['")?.strip_suffix("']")?.to_owned());
    if let Some(key) = subscript("metadata.labels") {
        return Ok(pod.labels().get(&key).cloned().unwrap_or_default());
    }
    if let Some(key) = subscript("metadata.annotations") {
        return Ok(pod.annotations().get(&key).cloned().unwrap_or_default());
    }
    let listed = |map: &BTreeMap<String, String>| {
        let lines: Vec<String> = map.iter().map(|(key, value)| format!("{key}={value:?}")).collect();
        lines.join("\n")
    };
    Ok(match path {
        "metadata.name" => pod.name_any(),
        "metadata.namespace" => pod.namespace().unwrap_or_default(),
        "metadata.uid" => pod.uid().unwrap_or_default(),
        "metadata.labels" => listed(pod.labels()),
        "metadata.annotations" => listed(pod.annotations()),
        "spec.nodeName" => NODE.to_owned(),
        "spec.serviceAccountName" => {
            spec.and_then(|spec| spec.service_account_name.clone()).unwrap_or_else(|| "default".to_owned())
        }
        "status.hostIP" | "status.podIP" | "status.hostIPs" | "status.podIPs" => ADDRESS.to_owned(),
        _ => return Err(Missing(format!("field {path} of the Pod is not known"))),
    })
}

/// Expands `$(NAME)` for known variables, and `$$` to a dollar sign; everything else stays.
pub(super) fn expanded(text: &str, env: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            match env.get(name) {
                Some(value) => out.push_str(value),
                None => out.push_str(&format!("$({name})")),
            }
            rest = after;
        } else {
            out.push('$');
        }
    }
    out.push_str(rest);
    out
}

/// Whether a key is a valid name of a variable.
fn is_name(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'=')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod() -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"app": "x", "b": "y"}},
            "spec": {"containers": []},
        }))
        .unwrap()
    }

    fn built(container: serde_json::Value, sources: &Sources) -> Result<BTreeMap<String, String>, Missing> {
        let container = serde_json::from_value(container).unwrap();
        environment(&pod(), &container, &[("GIVEN".to_owned(), "1".to_owned())], sources)
            .map(|env| env.into_iter().collect())
    }

    #[test]
    fn later_sources_win_and_references_are_expanded() {
        let texts = |pairs: &[(&str, &str)]| {
            Some(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<Texts>())
        };
        let sources = Sources(BTreeMap::from([
            ((Kind::Secret, "s".to_owned()), texts(&[("password", "hush"), ("a=b", "no")])),
            ((Kind::ConfigMap, "m".to_owned()), texts(&[("MODE", "map"), ("OTHER", "o")])),
        ]));
        let env = built(
            json!({
                "name": "c",
                "envFrom": [{"configMapRef": {"name": "m"}}, {"prefix": "S_", "secretRef": {"name": "s"}},
                    {"secretRef": {"name": "gone", "optional": true}}],
                "env": [
                    {"name": "MODE", "value": "own"}, {"name": "TWICE", "value": "$(MODE)-$(NONE)-$$(MODE)-$"},
                    {"name": "PW", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}},
                    {"name": "OPT", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "no", "optional": true}}},
                    {"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
                ],
            }),
            &sources,
        )
        .unwrap();
        let of = |name: &str| env.get(name).map(String::as_str);
        assert_eq!(of("MODE"), Some("own"));
        assert_eq!(of("OTHER"), Some("o"));
        assert_eq!(of("TWICE"), Some("own-$(NONE)-$(MODE)-$"));
        assert_eq!((of("PW"), of("S_password"), of("S_a=b")), (Some("hush"), Some("hush"), None));
        assert_eq!((of("OPT"), of("ME"), of("APP"), of("GIVEN")), (None, Some("p"), Some("x"), Some("1")));
    }

    #[test]
    fn what_is_missing_is_named_without_values() {
        let none = Sources::default();
        let of = |from: serde_json::Value| {
            built(json!({"name": "c", "env": [{"name": "A", "valueFrom": from}]}), &none)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(of(json!({"secretKeyRef": {"name": "s", "key": "k"}})), "secret \"s\" not found");
        assert_eq!(of(json!({"configMapKeyRef": {"name": "m", "key": "k"}})), "configmap \"m\" not found");
        let known = Sources(BTreeMap::from([((Kind::Secret, "s".to_owned()), Some(Texts::new()))]));
        let container = json!({"name": "c", "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]});
        assert_eq!(built(container, &known).unwrap_err().to_string(), "couldn't find key k in Secret s");
        assert!(of(json!({"resourceFieldRef": {"resource": "limits.cpu"}})).contains("does not know"));
    }
}
