//! Renders a specification in the API server's internal form, as some refusals print it: Go's names, every field
//! whether set or not, and the few places where the API server's own types differ from the published ones.

use serde_json::{Map, Value};

use super::model::{Field, Tables, TypeId, TypeRef};

/// What the network and the namespaces of a pod are is part of its security context inside.
const IN_CONTEXT: [&str; 5] = ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"];

/// Numbers that are always there inside, and may be left out in what is published.
const NUMBERS: [(&str, &str); 5] = [
    ("RollingUpdateDaemonSet", "maxSurge"),
    ("RollingUpdateDaemonSet", "maxUnavailable"),
    ("RollingUpdateDeployment", "maxSurge"),
    ("RollingUpdateDeployment", "maxUnavailable"),
    ("RollingUpdateStatefulSetStrategy", "partition"),
];

/// Fields of a pod's specification that stand elsewhere inside: after which field each does.
const MOVED: [(&str, &str); 3] = [
    ("setHostnameAsFQDN", "subdomain"),
    ("preemptionPolicy", "priority"),
    ("enableServiceLinks", "overhead"),
];

/// The internal form of `value`, a message of type `id`.
#[must_use]
pub(crate) fn internal(tables: &Tables, id: TypeId, value: &Value) -> Value {
    let mut out = Map::new();
    let name = tables.get(id).name;
    for field in ordered(tables, id) {
        if name == "PodSpec" && (field.name == "serviceAccount" || IN_CONTEXT.contains(&field.name)) {
            continue;
        }
        let found = value.get(field.name).unwrap_or(&Value::Null);
        if field.name == "metadata" {
            // Metadata has its published form inside as well, and stands beside the other fields.
            out.extend(found.as_object().cloned().unwrap_or_default());
            continue;
        }
        let shown = if (name, field.name) == ("PodSpec", "securityContext") {
            security_context(tables, field, value)
        } else if found.is_null() && NUMBERS.contains(&(name, field.name)) {
            0.into()
        } else {
            shown(tables, &field.kind, found)
        };
        out.insert(member_name(name, field.name), shown);
    }
    Value::Object(out)
}

fn ordered(tables: &Tables, id: TypeId) -> Vec<&Field> {
    let mut fields = tables.flat_fields(id);
    let moves: &[(&str, &str)] = match tables.get(id).name {
        "PodSpec" => &MOVED,
        "PodSecurityContext" => &[("fsGroupChangePolicy", "fsGroup")],
        "Volume" | "VolumeSource" => &[("quobyte", "rbd")],
        "PersistentVolumeSpec" => &[("quobyte", "rbd"), ("flexVolume", "iscsi")],
        _ => &[],
    };
    for (name, after) in moves {
        let place = |wanted: &str, fields: &[&Field]| fields.iter().position(|field| field.name == wanted);
        let Some(from) = place(name, &fields) else { continue };
        let field = fields.remove(from);
        let at = place(after, &fields).map_or(fields.len(), |at| at + 1);
        fields.insert(at, field);
    }
    fields
}

/// The security context with what the specification says beside it.
fn security_context(tables: &Tables, field: &Field, spec: &Value) -> Value {
    let given = spec.get(field.name).filter(|context| !context.is_null());
    let said = IN_CONTEXT.iter().any(|name| spec.get(*name).is_some_and(|value| !value.is_null()));
    let (Some(id), true) = (field.kind.message(), given.is_some() || said) else { return Value::Null };
    let mut out = Map::new();
    for name in IN_CONTEXT {
        let is_flag = name.starts_with("host") && name != "hostUsers";
        let unset = if is_flag { Value::Bool(false) } else { Value::Null };
        out.insert(go_name(name), spec.get(name).cloned().unwrap_or(unset));
    }
    if let Value::Object(rest) = internal(tables, id, given.unwrap_or(&Value::Null)) {
        out.extend(rest);
    }
    Value::Object(out)
}

fn shown(tables: &Tables, kind: &TypeRef, value: &Value) -> Value {
    match (kind, value) {
        (TypeRef::Pointer(_), Value::Null) => Value::Null,
        (TypeRef::Pointer(inner), value) => shown(tables, inner, value),
        // Types that all groups share have no internal form.
        (TypeRef::Message(id), value)
            if tables.get(*id).package.openapi.starts_with("io.k8s.apimachinery") =>
        {
            value.clone()
        }
        (TypeRef::Message(id), value) => internal(tables, *id, value),
        (TypeRef::List(inner), Value::Array(items)) => {
            items.iter().map(|item| shown(tables, inner, item)).collect()
        }
        (TypeRef::Map(inner), Value::Object(members)) => {
            members.iter().map(|(key, value)| (key.clone(), shown(tables, inner, value))).collect()
        }
        (TypeRef::String | TypeRef::Enum(_), Value::Null) => "".into(),
        (TypeRef::Quantity, Value::Null) => "0".into(),
        (TypeRef::Bool, Value::Null) => false.into(),
        (TypeRef::Int32 | TypeRef::Int64 | TypeRef::Float64 | TypeRef::IntOrString, Value::Null) => 0.into(),
        (_, value) => value.clone(),
    }
}

/// The name in Go of a field of the type `owner`.
fn member_name(owner: &str, name: &str) -> String {
    /// Those that are no other way of writing the published one.
    const OTHERWISE: [(&str, &str, &str); 10] = [
        ("RBD", "image", "RBDImage"),
        ("RBD", "monitors", "CephMonitors"),
        ("RBD", "pool", "RBDPool"),
        ("RBD", "user", "RadosUser"),
        ("ISCSI", "chapAuthDiscovery", "DiscoveryCHAPAuth"),
        ("ISCSI", "chapAuthSession", "SessionCHAPAuth"),
        ("AzureDisk", "diskURI", "DataDiskURI"),
        ("Glusterfs", "endpoints", "EndpointsName"),
        ("PhotonPersistentDisk", "pdID", "PdID"),
        ("ContainerStatus", "lastState", "LastTerminationState"),
    ];
    let own = OTHERWISE.iter().find(|(of, given, _)| *given == name && owner.starts_with(of));
    own.map_or_else(|| go_name(name), |(_, _, own)| (*own).to_owned())
}

/// The field's name in Go: abbreviations in capitals.
fn go_name(name: &str) -> String {
    const ABBREVIATIONS: [(&str, &str); 37] = [
        ("apiGroup", "APIGroup"),
        ("apiVersion", "APIVersion"),
        ("awsElastic", "AWSElastic"),
        ("ca", "CA"),
        ("cephfs", "CephFS"),
        ("cel", "CEL"),
        ("cidr", "CIDR"),
        ("cidrs", "CIDRs"),
        ("csi", "CSI"),
        ("dns", "DNS"),
        ("fc", "FC"),
        ("fsGroup", "FSGroup"),
        ("fsType", "FSType"),
        ("gcePersistent", "GCEPersistent"),
        ("gid", "GID"),
        ("gmsa", "GMSA"),
        ("grpc", "GRPC"),
        ("http", "HTTP"),
        ("ip", "IP"),
        ("ips", "IPs"),
        ("iqn", "IQN"),
        ("iscsi", "ISCSI"),
        ("nfs", "NFS"),
        ("os", "OS"),
        ("pd", "PD"),
        ("qos", "QOS"),
        ("rbd", "RBD"),
        ("seLinux", "SELinux"),
        ("ssl", "SSL"),
        ("storageos", "StorageOS"),
        ("tcp", "TCP"),
        ("tls", "TLS"),
        ("ttl", "TTL"),
        ("tty", "TTY"),
        ("uid", "UID"),
        ("url", "URL"),
        ("wwids", "WWIDs"),
    ];
    let whole_word = |rest: &str| rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_uppercase());
    for (short, long) in ABBREVIATIONS {
        if let Some(rest) = name.strip_prefix(short).filter(|rest| whole_word(rest)) {
            return format!("{long}{rest}");
        }
    }
    let mut letters = name.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::builtin::tables;

    #[test]
    fn every_field_is_printed_with_its_inner_name() {
        let id = tables().by_openapi_name("io.k8s.api.core.v1.PodSpec").expect("a pod's specification");
        let selector = json!({"matchLabels": {"a": "b"}});
        let spec = json!({"containers": [{"name": "c", "livenessProbe": {"httpGet": {"port": "web"}}}],
            "volumes": [{"name": "v"}], "topologySpreadConstraints": [{"labelSelector": selector}],
            "hostNetwork": true, "dnsPolicy": "ClusterFirst"});
        let inside = internal(tables(), id, &spec);
        assert_eq!(inside["DNSPolicy"], "ClusterFirst");
        assert_eq!(inside["SecurityContext"]["HostNetwork"], true);
        assert_eq!(inside["SecurityContext"]["FSGroup"], Value::Null);
        assert_eq!(inside["Containers"][0]["LivenessProbe"]["HTTPGet"]["Port"], "web");
        assert_eq!(inside["Containers"][0]["TTY"], false);
        let names: Vec<&String> = inside.as_object().expect("an object").keys().collect();
        let place = |name: &str| names.iter().position(|own| *own == name);
        assert_eq!(
            place("SetHostnameAsFQDN").zip(place("Subdomain")).map(|(one, other)| one - other),
            Some(1)
        );
        assert_eq!(place("HostNetwork"), None);
        assert_eq!(inside["TopologySpreadConstraints"][0]["LabelSelector"], selector);
        let volume = inside["Volumes"][0].as_object().expect("an object").keys();
        let after = volume.skip_while(|name| *name != "RBD").nth(1).map(String::as_str);
        assert_eq!(after, Some("Quobyte"));
    }
}
