//! Where a PersistentVolume comes from: one row for each kind of source, in the order in which kube-apiserver looks.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;
use admit_apimachinery::names;

use crate::kinds::field::Field;
use crate::kinds::shared::texts::{dns_label, driver_name, given, no_backsteps, subdomain};

/// What is known of one kind of source.
pub(super) struct Source {
    /// The member of the specification.
    pub(super) name: &'static str,
    /// Where its errors are told.
    pub(super) place: &'static str,
    /// Where it is told that there is another source already.
    pub(super) second: &'static str,
    /// Checks the source of the volume named.
    pub(super) validate: fn(&Field<'_>, &str, &mut FieldErrors),
}

const fn row(name: &'static str, validate: fn(&Field<'_>, &str, &mut FieldErrors)) -> Source {
    Source { name, place: name, second: name, validate }
}

/// All kinds.
pub(super) const SOURCES: &[Source] = &[
    row("hostPath", host_path),
    Source {
        place: "persistentDisk",
        ..row("gcePersistentDisk", |disk, _, errors| partition(disk, "pdName", errors))
    },
    row("awsElasticBlockStore", |disk, _, errors| partition(disk, "volumeID", errors)),
    row("glusterfs", glusterfs),
    row("flocker", flocker),
    row("nfs", nfs),
    row("rbd", rbd),
    row("quobyte", quobyte),
    Source { second: "cephFS", ..row("cephfs", |source, _, errors| some(source, "monitors", errors)) },
    row("iscsi", iscsi),
    row("cinder", |source, _, errors| {
        given(&source.get("volumeID"), errors);
        secret(&source.get("secretRef"), errors);
    }),
    row("fc", fibre_channel),
    row("flexVolume", flex_volume),
    row("azureFile", azure_file),
    row("vsphereVolume", |source, _, errors| given(&source.get("volumePath"), errors)),
    row("photonPersistentDisk", |source, _, errors| given(&source.get("pdID"), errors)),
    row("portworxVolume", |source, _, errors| given(&source.get("volumeID"), errors)),
    row("azureDisk", azure_disk),
    row("scaleIO", |source, _, errors| {
        for name in ["gateway", "system", "volumeName"] {
            given(&source.get(name), errors);
        }
    }),
    row("local", |source, _, errors| path(&source.get("path"), errors)),
    row("storageos", storage_os),
    row("csi", csi),
];

fn path(path: &Field<'_>, errors: &mut FieldErrors) {
    given(path, errors);
    no_backsteps(path, errors);
}

fn some(source: &Field<'_>, name: &'static str, errors: &mut FieldErrors) {
    let list = source.get(name);
    if list.is_empty() {
        errors.add(|| list.required(""));
    }
}

/// A reference to a secret, by its name and namespace.
fn secret(reference: &Field<'_>, errors: &mut FieldErrors) {
    if reference.is_set() {
        given(&reference.get("name"), errors);
        given(&reference.get("namespace"), errors);
    }
}

fn host_path(source: &Field<'_>, _: &str, errors: &mut FieldErrors) {
    const TYPES: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    path(&source.get("path"), errors);
    if !source.get("path").is_empty() && !TYPES.contains(&source.get("type").text()) {
        errors.add(|| source.get("type").not_supported(&TYPES));
    }
}

fn partition(disk: &Field<'_>, name: &'static str, errors: &mut FieldErrors) {
    given(&disk.get(name), errors);
    let partition = disk.get("partition");
    if partition.integer().is_some_and(|number| !(0..=255).contains(&number)) {
        // Zero is none.
        errors.add(|| partition.invalid("must be between 1 and 255, inclusive"));
    }
}

fn glusterfs(source: &Field<'_>, _: &str, errors: &mut FieldErrors) {
    given(&source.get("endpoints"), errors);
    given(&source.get("path"), errors);
    let namespace = source.get("endpointsNamespace");
    if namespace.is_set() && namespace.is_empty() {
        errors
            .add(|| namespace.invalid("if the endpointnamespace is set, it must be a valid namespace name"));
    } else if namespace.is_set() {
        dns_label(&namespace, errors);
    }
}

fn flocker(source: &Field<'_>, _: &str, errors: &mut FieldErrors) {
    let (name, uuid) = (source.get("datasetName"), source.get("datasetUUID"));
    if name.is_empty() && uuid.is_empty() {
        errors.add(|| source.required("one of datasetName and datasetUUID is required"));
    }
    if !name.is_empty() && !uuid.is_empty() {
        let why = "datasetName and datasetUUID can not be specified simultaneously";
        errors.add(|| source.invalid_as("resource", why));
    }
    if name.text().contains('/') {
        errors.add(|| name.invalid("must not contain '/'"));
    }
}

fn nfs(source: &Field<'_>, _: &str, errors: &mut FieldErrors) {
    let path = source.get("path");
    given(&source.get("server"), errors);
    given(&path, errors);
    if !path.text().starts_with('/') {
        errors.add(|| path.invalid("must be an absolute path"));
    }
}

fn rbd(source: &Field<'_>, _: &str, errors: &mut FieldErrors) {
    some(source, "monitors", errors);
    given(&source.get("image"), errors);
}

fn quobyte(source: &Field<'_>, _: &str, errors: &mut FieldErrors) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let (registry, tenant) = (source.get("registry"), source.get("tenant"));
    if registry.is_empty() {
        errors.add(|| registry.required(PAIRS));
    } else if tenant.text().len() > 64 {
        errors.add(|| tenant.required("must be a UUID and may not exceed a length of 64 characters"));
    } else {
        for _ in registry.text().split(',').filter(|pair| !go::netip::is_host_and_port(pair)) {
            errors.add(|| registry.invalid(PAIRS));
        }
    }
    given(&source.get("volume"), errors);
}

/// The three forms of names of initiators: `iqn.2015-02.example.com:test`, `eui.` and `naa.` with digits.
fn is_initiator(name: &str) -> bool {
    let digits = |text: &str, count: usize| {
        let mut letters = text.chars();
        letters.next().is_some()
            && letters.all(|c| c.is_ascii_alphanumeric())
            && text.chars().count() == count.saturating_add(1)
    };
    if let Some(rest) = name.strip_prefix("eui") {
        return digits(rest, 16);
    }
    if let Some(rest) = name.strip_prefix("naa") {
        return digits(rest, 32);
    }
    let qualified = || {
        let (date, rest) = name.strip_prefix("iqn.")?.split_once('.')?;
        let (year, month) = date.split_once('-')?;
        let numbers = [year, month].iter().all(|part| part.bytes().all(|b| b.is_ascii_digit()));
        let (domain, target) = rest.split_once(':')?;
        let named =
            !domain.is_empty() && domain.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b));
        let odd = |c: char| c.is_ascii_whitespace() || ",;*&$|".contains(c);
        Some(
            numbers
                && (year.len(), month.len()) == (4, 2)
                && named
                && !target.is_empty()
                && !target.contains(odd),
        )
    };
    qualified().unwrap_or_default()
}

fn initiator(name: &Field<'_>, errors: &mut FieldErrors) {
    if !is_initiator(name.text()) {
        errors.add(|| name.invalid("must be valid format"));
    }
}

fn iscsi(source: &Field<'_>, volume: &str, errors: &mut FieldErrors) {
    let (portal, iqn, name) = (source.get("targetPortal"), source.get("iqn"), source.get("initiatorName"));
    given(&portal, errors);
    if name.is_set() && volume.len().saturating_add(portal.text().len()).saturating_add(1) > 64 {
        let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                   iscsi.initiatorName is specified.";
        errors.add(|| source.get("targetportal").with(portal.value()).invalid(why));
    }
    if iqn.is_empty() {
        errors.add(|| iqn.required(""));
    } else {
        initiator(&iqn, errors);
    }
    source.get("lun").in_range(0, 255, errors);
    let reference = source.get("secretRef");
    let authenticates = source.get("chapAuthDiscovery").flag() || source.get("chapAuthSession").flag();
    if authenticates && !reference.is_set() {
        errors.add(|| reference.required(""));
    }
    if reference.is_set() {
        given(&reference.get("name"), errors);
    }
    if name.is_set() {
        initiator(&source.get("initiatorname").with(name.value()), errors);
    }
}

fn fibre_channel(source: &Field<'_>, _: &str, errors: &mut FieldErrors) {
    let (names, ids, lun) = (source.get("targetWWNs"), source.get("wwids"), source.get("lun"));
    if names.is_empty() && ids.is_empty() {
        errors.add(|| names.required("must specify either targetWWNs or wwids, but not both"));
    }
    if !names.is_empty() && !ids.is_empty() {
        errors.add(|| names.invalid("targetWWNs and wwids can not be specified simultaneously"));
    }
    if !names.is_empty() && !lun.is_set() {
        errors.add(|| lun.required("lun is required if targetWWNs is specified"));
    } else if !names.is_empty() {
        lun.in_range(0, 255, errors);
    }
}

fn flex_volume(source: &Field<'_>, _: &str, errors: &mut FieldErrors) {
    given(&source.get("driver"), errors);
    for (key, option) in source.get("options").entries() {
        let domain = format!(".{}", key.split('/').next().unwrap_or_default().to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            errors.add(|| option.invalid_as(key, "kubernetes.io and k8s.io namespaces are reserved"));
        }
    }
}

fn azure_file(source: &Field<'_>, _: &str, errors: &mut FieldErrors) {
    given(&source.get("secretName"), errors);
    given(&source.get("shareName"), errors);
    let namespace = source.get("secretNamespace");
    if namespace.is_set() {
        given(&namespace, errors);
    }
}

fn azure_disk(source: &Field<'_>, _: &str, errors: &mut FieldErrors) {
    const MANAGED: &str =
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    const BLOB: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    let (uri, kind) = (source.get("diskURI"), source.get("kind"));
    given(&source.get("diskName"), errors);
    given(&uri, errors);
    source.get("cachingMode").one_of(&["None", "ReadOnly", "ReadWrite"], errors);
    kind.one_of(&["Dedicated", "Managed", "Shared"], errors);
    match kind.text() {
        "" => {}
        "Managed" if !uri.text().starts_with("/subscriptions/") => {
            errors.add(|| uri.not_supported(&[MANAGED]))
        }
        "Managed" => {}
        _ if !uri.text().starts_with("https://") => errors.add(|| uri.not_supported(&[BLOB])),
        _ => {}
    }
}

fn storage_os(source: &Field<'_>, _: &str, errors: &mut FieldErrors) {
    let (name, namespace) = (source.get("volumeName"), source.get("volumeNamespace"));
    if name.is_empty() {
        errors.add(|| name.required(""));
    } else {
        dns_label(&name, errors);
    }
    if !namespace.is_empty() {
        dns_label(&namespace, errors);
    }
    secret(&source.get("secretRef"), errors);
}

fn csi(source: &Field<'_>, _: &str, errors: &mut FieldErrors) {
    driver_name(&source.get("driver"), errors);
    given(&source.get("volumeHandle"), errors);
    let references = [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ];
    for reference in references.map(|name| source.get(name)).iter().filter(|reference| reference.is_set()) {
        let (name, namespace) = (reference.get("name"), reference.get("namespace"));
        given(&name, errors);
        given(&namespace, errors);
        if !name.is_empty() {
            subdomain(&name, errors);
        }
        if !namespace.is_empty() {
            namespace.problems(names::dns1123_label(namespace.text()), errors);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn texts(name: &str, source: &Value) -> Vec<String> {
        let row = SOURCES.iter().find(|row| row.name == name).expect("a kind of source");
        let mut errors = FieldErrors::default();
        (row.validate)(&Field::root(source), "volume", &mut errors);
        errors.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn each_kind_says_what_is_wrong() {
        let cases = [
            (
                "nfs",
                json!({"path": "a"}),
                vec!["server: Required value", "path: Invalid value: \"a\": must be an absolute path"],
            ),
            (
                "fc",
                json!({"targetWWNs": ["a"]}),
                vec!["lun: Required value: lun is required if targetWWNs is specified"],
            ),
            (
                "iscsi",
                json!({"targetPortal": "p", "iqn": "eui.1", "chapAuthSession": true}),
                vec!["iqn: Invalid value: \"eui.1\": must be valid format", "secretRef: Required value"],
            ),
            ("iscsi", json!({"targetPortal": "p", "iqn": "iqn.2015-02.example.com:test"}), vec![]),
            (
                "flexVolume",
                json!({"driver": "d", "options": {"a.k8s.io/b": ""}}),
                vec![
                    "options[a.k8s.io/b]: Invalid value: \"a.k8s.io/b\": kubernetes.io and k8s.io namespaces are reserved",
                ],
            ),
            (
                "azureDisk",
                json!({"diskName": "d", "diskURI": "u", "kind": "Managed"}),
                vec![
                    "diskURI: Unsupported value: \"u\": supported values: \"/subscriptions/{sub-id}/resourcegroups/\
                 {group-name}/providers/microsoft.compute/disks/{disk-id}\"",
                ],
            ),
            (
                "quobyte",
                json!({"registry": "a:1,b", "volume": "v"}),
                vec![
                    "registry: Invalid value: \"a:1,b\": must be a host:port pair or multiple pairs separated by commas",
                ],
            ),
            (
                "csi",
                json!({"driver": "d", "volumeHandle": "h", "nodePublishSecretRef": {"name": "s"}}),
                vec!["nodePublishSecretRef.namespace: Required value"],
            ),
        ];
        for (name, source, expected) in cases {
            assert_eq!(texts(name, &source), expected, "{name}");
        }
    }
}
