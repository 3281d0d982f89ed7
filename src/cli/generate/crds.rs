//! Generates the CustomResourceDefinitions of the objects that the shipped policies guard, and of policy exceptions. The files of
//! `deploy/crds` are compiled into the program, so that it can install them in a cluster without a checkout.

const DEFINITIONS: &[(&str, &str)] = &[
    ("clusteroperators.yaml", include_str!("../../../deploy/crds/clusteroperators.yaml")),
    ("clusterpolicyexceptions.yaml", include_str!("../../../deploy/crds/clusterpolicyexceptions.yaml")),
    ("cyndipipelines.yaml", include_str!("../../../deploy/crds/cyndipipelines.yaml")),
    ("datagathers.yaml", include_str!("../../../deploy/crds/datagathers.yaml")),
    ("insightsdatagathers.yaml", include_str!("../../../deploy/crds/insightsdatagathers.yaml")),
    ("mustgathers.yaml", include_str!("../../../deploy/crds/mustgathers.yaml")),
    ("observabilityaddons.yaml", include_str!("../../../deploy/crds/observabilityaddons.yaml")),
    ("policyexceptions.yaml", include_str!("../../../deploy/crds/policyexceptions.yaml")),
];

/// Returns the name and the contents of each file.
pub(in crate::cli) fn all() -> impl Iterator<Item = (&'static str, String)> {
    DEFINITIONS.iter().map(|(name, text)| (*name, (*text).to_owned()))
}

/// The namespace of the conversion Service in the files.
const NAMESPACE: &str = "namespace: admit-system\n";
const METADATA: &str = "metadata:\n";

/// Returns the files for an installation in `namespace`, and with `injected` for an authority that cert-manager fills in.
pub(super) fn installed(namespace: &str, injected: bool) -> impl Iterator<Item = (&'static str, String)> {
    let service = format!("namespace: {namespace}\n");
    let annotations =
        format!("{METADATA}  annotations:\n    cert-manager.io/inject-ca-from: {namespace}/admit\n");
    all().map(move |(name, text)| {
        if !text.contains(NAMESPACE) {
            return (name, text);
        }
        let text = text.replacen(NAMESPACE, &service, 1);
        (name, if injected { text.replacen(METADATA, &annotations, 1) } else { text })
    })
}

pub(super) fn names() -> Vec<String> {
    DEFINITIONS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// Returns all files as one YAML stream.
pub(super) fn stream() -> String {
    DEFINITIONS.iter().map(|(_, text)| *text).collect::<Vec<_>>().join("---\n")
}
