//! The custom resource definitions of the objects that the shipped policies guard. The files of `deploy/crds` are part
//! of the program, so that a machine with nothing but the program can bring them into a cluster.

const DEFINITIONS: &[(&str, &str)] = &[
    ("clusteroperators.yaml", include_str!("../../../deploy/crds/clusteroperators.yaml")),
    ("cyndipipelines.yaml", include_str!("../../../deploy/crds/cyndipipelines.yaml")),
    ("datagathers.yaml", include_str!("../../../deploy/crds/datagathers.yaml")),
    ("mustgathers.yaml", include_str!("../../../deploy/crds/mustgathers.yaml")),
    ("observabilityaddons.yaml", include_str!("../../../deploy/crds/observabilityaddons.yaml")),
];

/// Name of the file and its text.
pub(in crate::cli) fn all() -> impl Iterator<Item = (&'static str, String)> {
    DEFINITIONS.iter().map(|(name, text)| (*name, (*text).to_owned()))
}

pub(super) fn names() -> Vec<String> {
    DEFINITIONS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// All of them as one stream of documents.
pub(super) fn stream() -> String {
    DEFINITIONS.iter().map(|(_, text)| *text).collect::<Vec<_>>().join("---\n")
}
