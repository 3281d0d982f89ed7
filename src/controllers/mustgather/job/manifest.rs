//! Builds the manifest of the Job.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Map, Value, json};

use super::{BACKOFF_LIMIT, OWNER, copy_name, place};
use crate::controllers::mustgather::crd::{GatherSpec, MustGather, Sftp};
use crate::controllers::mustgather::settings::Rules;
use crate::gather::tunnel::Proxies;

/// The names of the containers after gathering.
const UPLOAD: &str = "upload";
const OBFUSCATE: &str = "obfuscate";
/// The output folder of the obfuscating container.
const OBFUSCATED: &str = "/must-gather-obfuscated";
const OUTPUT: &str = "/must-gather";
const WORK: &str = "/must-gather-upload";
const RUN: &str = "/run/must-gather";
const PROGRAM: &str = "/run/must-gather/admit";
const CERTIFICATES: &str = "/etc/pki/tls/certs";
/// The path where Kubernetes mounts the account's token, unless there is another mount.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const INFRA: &str = "node-role.kubernetes.io/infra";
/// The exit codes of an upload that must not be retried.
const UPLOAD_FAILED: [i32; 2] = [2, 4];

/// The inputs of a Job besides the object.
#[derive(Debug)]
pub struct Creation {
    pub now: Timestamp,
    /// The proxies: those of the object, then of the cluster, then of this process.
    pub proxies: Proxies,
    pub limit: Option<Duration>,
    /// Host keys of the operator, for Secrets without any.
    pub known_hosts: Option<String>,
    /// The obfuscation; None without one.
    pub hiding: Option<Obfuscation>,
    /// The gathering image, if the object names one.
    pub image: Option<String>,
}

/// The obfuscation of what was gathered.
#[derive(Debug)]
pub struct Obfuscation {
    /// The rules, unless they are the default ones.
    pub rules: Option<String>,
    /// The cluster's domains.
    pub domains: Vec<String>,
}

/// Builds the Job.
///
/// # Errors
/// Never in practice: the fields are those of a Job.
pub fn manifest(object: &MustGather, creation: &Creation, rules: &Rules) -> Result<Job, serde_json::Error> {
    let (namespace, name) = place(object, rules.job_namespace.as_deref());
    let uid = object.uid().unwrap_or_default();
    let prefix = prefix(creation.now, &uid);
    let gathers = object.spec.source().is_none();
    let last = match object.spec.sftp() {
        Some(sftp) => Some((UPLOAD, upload(object, sftp, creation, rules, &prefix))),
        None => creation.hiding.as_ref().map(|hiding| (OBFUSCATE, obfuscate(object, hiding, rules, &prefix))),
    };
    let name_of_last = last.as_ref().map(|(name, _)| *name);
    let mut containers: Vec<Value> = gathers.then(|| gather(object, creation, rules)).into_iter().collect();
    containers.extend(last.map(|(_, container)| container));
    let mut spec = json!({
        "backoffLimit": BACKOFF_LIMIT,
        "template": {
            "metadata": {"labels": {OWNER: uid}},
            "spec": {
                "restartPolicy": "Never",
                "serviceAccountName": object.spec.account(),
                "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": {"matchExpressions": [{"key": INFRA, "operator": "Exists"}]}},
                ]}},
                "tolerations": [{"key": INFRA, "operator": "Exists", "effect": "NoSchedule"}],
                "initContainers": gathers.then(|| program(rules)).into_iter().collect::<Vec<_>>(),
                "containers": containers.into_iter().map(|it| mounted(it, object, rules, &prefix)).collect::<Vec<_>>(),
                "volumes": volumes(object, rules),
            },
        },
    });
    if let Some(last) = name_of_last {
        // An upload has its own retries. When it has given up, gathering again does not help.
        spec["podFailurePolicy"] = json!({"rules": [{
            "action": "FailJob",
            "onExitCodes": {"containerName": last, "operator": "In", "values": UPLOAD_FAILED},
        }]});
    }
    let mut metadata = json!({"name": name, "namespace": namespace, "labels": {OWNER: uid}});
    if rules.job_namespace.is_none() {
        metadata["ownerReferences"] = json!([object.controller_owner_ref(&())]);
    }
    serde_json::from_value(json!({"metadata": metadata, "spec": spec}))
}

/// Returns the name of the archive without its extension, which is also the folder of a run on a persistent volume.
fn prefix(now: Timestamp, uid: &str) -> String {
    let short: String = uid.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    format!("must-gather.local.{}.{short}", now.strftime("%Y%m%dT%H%M%SZ"))
}

/// Returns the security context of containers with this program.
fn restricted() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "runAsNonRoot": true,
        "capabilities": {"drop": ["ALL"]},
    })
}

fn program(rules: &Rules) -> Value {
    json!({
        "name": "program",
        "image": rules.image,
        "args": ["run-gather", "--copy-to", PROGRAM],
        "securityContext": restricted(),
        "volumeMounts": [{"name": "run", "mountPath": RUN}, {"name": "no-token", "mountPath": TOKEN, "readOnly": true}],
    })
}

fn gather(object: &MustGather, creation: &Creation, rules: &Rules) -> Value {
    let seconds = creation.limit.map_or(0, |limit| limit.as_secs() + u64::from(limit.subsec_nanos() > 0));
    let mut command = vec![PROGRAM.to_owned(), "run-gather".to_owned()];
    command.extend(["--output", OUTPUT, "--state", RUN, "--timeout"].map(str::to_owned));
    command.extend([seconds.to_string(), "--".to_owned()]);
    let image = creation.image.as_ref().or(rules.gather_image.as_ref());
    command.extend(gather_command(object, rules, image.is_some()));
    let mut env = proxy_variables(&creation.proxies, true);
    if let Some(GatherSpec { since, since_time, .. }) = &object.spec.gather_spec {
        env.extend(since.iter().map(|since| variable("MUST_GATHER_SINCE", since)));
        env.extend(since_time.iter().map(|time| variable("MUST_GATHER_SINCE_TIME", time)));
    }
    json!({
        "name": "gather",
        "image": image.unwrap_or(&rules.image),
        "command": command,
        "env": env,
        "volumeMounts": [{"name": "must-gather-output", "mountPath": OUTPUT}, {"name": "run", "mountPath": RUN}],
    })
}

/// Returns the command of the object, or else that of gathering images, or else this program's.
fn gather_command(object: &MustGather, rules: &Rules, theirs: bool) -> Vec<String> {
    let audit = object.spec.audit();
    let own = object.spec.gather_spec.clone().unwrap_or_default();
    let mut command = match (theirs, own.command.is_empty()) {
        (_, false) => own.command,
        (true, true) if audit => vec!["/usr/bin/gather_audit_logs".to_owned()],
        (true, true) => vec!["/usr/bin/gather".to_owned()],
        (false, true) => {
            let mut command: Vec<String> =
                [PROGRAM, "must-gather", "--output", OUTPUT].map(str::to_owned).to_vec();
            command.extend(["--name".to_owned(), folder(&rules.image)]);
            command.extend(audit.then(|| "--audit".to_owned()));
            command
        }
    };
    command.extend(own.args);
    command
}

/// Converts the name of an image to that of a folder.
fn folder(image: &str) -> String {
    let name: String = image.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if name.is_empty() { "admit".to_owned() } else { name }
}

fn upload(object: &MustGather, sftp: &Sftp, creation: &Creation, rules: &Rules, prefix: &str) -> Value {
    let uid = object.uid().unwrap_or_default();
    let secret = match rules.job_namespace {
        Some(_) => copy_name(&uid),
        None => sftp.case_management_account_secret_ref.name.clone(),
    };
    let from = |name: &str, key: &str, optional: bool| {
        let key = json!({"name": secret, "key": key, "optional": optional});
        json!({"name": name, "valueFrom": {"secretKeyRef": key}})
    };
    let mut env = vec![
        from("username", "username", false),
        from("password", "password", false),
        variable("caseid", &sftp.case_id),
        variable("host", &sftp.host),
        variable("must_gather_output", OUTPUT),
        variable("must_gather_upload", WORK),
        variable("internal_user", if sftp.internal_user { "true" } else { "false" }),
        variable("FILENAME_PREFIX", prefix),
        variable("message_file", "/dev/termination-log"),
    ];
    env.push(match &creation.known_hosts {
        Some(known) => variable("known_hosts", known),
        None => from("known_hosts", "known_hosts", true),
    });
    if rules.accept_any_host_key {
        env.push(variable("accept_any_host_key", "true"));
    }
    if rules.trusted_ca.is_some() {
        env.push(variable("proxy_ca", &format!("{CERTIFICATES}/ca-bundle.crt")));
    }
    env.extend(rules.proxy_ca.iter().map(|pem| variable("proxy_ca_pem", pem)));
    env.extend(proxy_variables(&creation.proxies, false));
    env.extend(waits(object));
    if let Some(hiding) = &creation.hiding {
        env.push(variable("obfuscate", "true"));
        env.extend(hidden(hiding));
    }
    json!({
        "name": UPLOAD,
        "image": rules.image,
        "args": ["upload"],
        "env": env,
        "securityContext": restricted(),
        "volumeMounts": [
            {"name": "must-gather-output", "mountPath": OUTPUT, "readOnly": true},
            {"name": "must-gather-upload", "mountPath": WORK},
            {"name": "run", "mountPath": RUN},
            {"name": "no-token", "mountPath": TOKEN, "readOnly": true},
        ],
    })
}

/// Builds the obfuscating container; the result stays on the volume, beside the original.
fn obfuscate(object: &MustGather, hiding: &Obfuscation, rules: &Rules, prefix: &str) -> Value {
    let place = object.spec.source().or(object.spec.volume());
    let path = place.map_or("", |place| place.sub_path.trim_matches('/'));
    // An earlier collection has its own folder; a new one is in a folder below the path.
    let (above, name) = match object.spec.source() {
        Some(_) => path.rsplit_once('/').unwrap_or(("", path)),
        None => (path, "must-gather"),
    };
    let name = format!("{name}.obfuscated.{prefix}");
    let mut mount = json!({"name": "must-gather-output", "mountPath": OBFUSCATED});
    if !above.is_empty() {
        mount["subPath"] = json!(above);
    }
    let mut env =
        vec![variable("must_gather_output", OUTPUT), variable("message_file", "/dev/termination-log")];
    env.extend(waits(object));
    env.extend(hidden(hiding));
    json!({
        "name": OBFUSCATE,
        "image": rules.image,
        "args": ["obfuscate", "--output", format!("{OBFUSCATED}/{name}")],
        "env": env,
        "securityContext": restricted(),
        "volumeMounts": [
            {"name": "must-gather-output", "mountPath": OUTPUT, "readOnly": true},
            mount,
            {"name": "run", "mountPath": RUN},
            {"name": "no-token", "mountPath": TOKEN, "readOnly": true},
        ],
    })
}

/// Returns the variable with the folder where the end of gathering is marked, if something is gathered.
fn waits(object: &MustGather) -> Option<Value> {
    object.spec.source().is_none().then(|| variable("must_gather_state", RUN))
}

fn hidden(hiding: &Obfuscation) -> Vec<Value> {
    let domains =
        (!hiding.domains.is_empty()).then(|| variable("obfuscation_domains", &hiding.domains.join(",")));
    let rules = hiding.rules.as_ref().map(|rules| variable("obfuscation_rules", rules));
    domains.into_iter().chain(rules).collect()
}

fn variable(name: &str, value: &str) -> Value {
    json!({"name": name, "value": value})
}

/// Returns the proxy variables: in lower case for this program, with `both` also in upper case for other images.
fn proxy_variables(proxies: &Proxies, both: bool) -> Vec<Value> {
    let values =
        [("http_proxy", &proxies.http), ("https_proxy", &proxies.https), ("no_proxy", &proxies.none)];
    let set = values.into_iter().filter(|(_, value)| !value.is_empty());
    set.flat_map(|(name, value)| {
        let upper = both.then(|| variable(&name.to_ascii_uppercase(), value));
        std::iter::once(variable(name, value)).chain(upper)
    })
    .collect()
}

/// Adds the mounts that every container gets: the certificates, and a folder of a persistent volume.
fn mounted(mut container: Value, object: &MustGather, rules: &Rules, prefix: &str) -> Value {
    let Some(mounts) = container.get_mut("volumeMounts").and_then(Value::as_array_mut) else {
        return container;
    };
    let path = match (object.spec.source(), object.spec.volume()) {
        (Some(source), _) => source.sub_path.trim_matches('/').to_owned(),
        (None, Some(volume)) => match volume.sub_path.trim_matches('/') {
            "" => prefix.to_owned(),
            above => format!("{above}/{prefix}"),
        },
        (None, None) => String::new(),
    };
    for mount in mounts.iter_mut().filter(|mount| mount["mountPath"] == OUTPUT && !path.is_empty()) {
        mount["subPath"] = Value::String(path.clone());
    }
    if rules.trusted_ca.is_some() {
        mounts.push(json!({"name": "trusted-ca", "mountPath": CERTIFICATES, "readOnly": true}));
    }
    container
}

fn volumes(object: &MustGather, rules: &Rules) -> Vec<Value> {
    let claim = object.spec.source().or(object.spec.volume());
    let mut output = Map::new();
    output.insert("name".to_owned(), json!("must-gather-output"));
    match claim {
        Some(volume) => {
            output.insert("persistentVolumeClaim".to_owned(), json!({"claimName": volume.claim.name}))
        }
        None => output.insert("emptyDir".to_owned(), json!({})),
    };
    let mut volumes = vec![Value::Object(output)];
    volumes
        .extend(["must-gather-upload", "run", "no-token"].map(|name| json!({"name": name, "emptyDir": {}})));
    if let Some(name) = &rules.trusted_ca {
        let map = json!({"name": name, "optional": true, "items": [{"key": "ca-bundle.crt", "path": "ca-bundle.crt"}]});
        volumes.push(json!({"name": "trusted-ca", "configMap": map}));
    }
    volumes
}
