//! The shipped custom resource definitions against the recorded ones: the same schema, word for word, with
//! descriptions added for `kubectl explain`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::repository::root;

const PAIRS: &[(&str, &str)] = &[
    ("clusteroperators", "clusteroperator"),
    ("cyndipipelines", "cyndi"),
    ("datagathers", "datagather"),
    ("mustgathers", "mustgather"),
    ("observabilityaddons", "observability-addon"),
];

/// Columns that the shipped definition has and the recorded one has not.
const ADDED_COLUMNS: &[(&str, &str)] = &[("datagathers", "Age")];

/// Versions that the shipped definition serves and the recorded one does not know, with a webhook that converts.
const ADDED_VERSIONS: &[(&str, &[&str])] = &[("datagathers", &["v1alpha2", "v1"])];

/// Takes the versions out that were added, each described like the others.
fn without_added_versions(shipped_name: &str, definition: &mut Value) {
    let Some((_, added)) = ADDED_VERSIONS.iter().find(|(name, _)| *name == shipped_name) else { return };
    let spec = definition["spec"].as_object_mut().unwrap();
    assert_eq!(spec.shift_remove("conversion").unwrap()["strategy"], "Webhook");
    let later = spec["versions"].as_array_mut().unwrap().split_off(1);
    let names: Vec<&str> = later.iter().map(|version| version["name"].as_str().unwrap()).collect();
    assert_eq!(names, *added);
    for mut version in later {
        assert_eq!((&version["served"], &version["storage"]), (&true.into(), &false.into()));
        let mut undescribed = Vec::new();
        strip(&mut version["schema"]["openAPIV3Schema"], "", &mut undescribed);
        assert_eq!(undescribed, Vec::<String>::new(), "{shipped_name}: fields without a description");
    }
}

fn read(path: &Path) -> Value {
    serde_saphyr::from_str(
        &fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())),
    )
    .unwrap()
}

/// Fields of a spec that later versions have besides, and with them the rules that name one.
const ADDED_FIELDS: &[(&str, &[&str])] = &[
    ("datagathers", &["storage"]),
    ("mustgathers", &["serviceAccountName", "gatherSpec", "imageStreamRef", "obfuscate", "storage"]),
];

/// Takes out what was added to the recorded definition.
fn without_added(shipped_name: &str, schema: &mut Value) {
    let Some((_, added)) = ADDED_FIELDS.iter().find(|(name, _)| *name == shipped_name) else { return };
    let spec = schema["properties"]["spec"].as_object_mut().unwrap();
    for field in *added {
        assert!(spec["properties"].as_object_mut().unwrap().shift_remove(*field).is_some(), "{field}");
    }
    let Some(rules) = spec.get_mut("x-kubernetes-validations").and_then(Value::as_array_mut) else { return };
    rules.retain(|rule| !added.iter().any(|field| rule["rule"].as_str().unwrap().contains(field)));
    if rules.is_empty() {
        spec.shift_remove("x-kubernetes-validations");
    }
}

/// Removes every description of a schema, counting the properties that had none.
fn strip(schema: &mut Value, path: &str, undescribed: &mut Vec<String>) {
    let described = schema.as_object_mut().is_some_and(|map| map.shift_remove("description").is_some());
    if !described && path != ".metadata" {
        undescribed.push(path.to_owned());
    }
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        strip(property, &format!("{path}.{name}"), undescribed);
    }
    if let Some(items) = schema.get_mut("items") {
        strip(items, &format!("{path}[]"), undescribed);
    }
}

#[test]
fn shipped_definitions_are_the_recorded_ones_with_descriptions() {
    let Some(corpus) = testing::corpus("seed-policies").unwrap() else { return };
    let recorded = corpus.join("crds");
    for (shipped_name, recorded_name) in PAIRS {
        let mut shipped = read(&root().join(format!("deploy/crds/{shipped_name}.yaml")));
        without_added_versions(shipped_name, &mut shipped);
        let mut undescribed = Vec::new();
        let version = &mut shipped["spec"]["versions"][0];
        strip(&mut version["schema"]["openAPIV3Schema"], "", &mut undescribed);
        assert_eq!(undescribed, Vec::<String>::new(), "{shipped_name}: fields without a description");
        without_added(shipped_name, &mut version["schema"]["openAPIV3Schema"]);
        let columns = version.get_mut("additionalPrinterColumns").and_then(Value::as_array_mut);
        if let Some(columns) = columns {
            columns
                .retain(|column| !ADDED_COLUMNS.contains(&(*shipped_name, column["name"].as_str().unwrap())));
        }
        assert_eq!(shipped, read(&recorded.join(format!("{recorded_name}.yaml"))), "{shipped_name}");
    }
}

/// Each version of the configuration of periodic gatherings as its own release has it; the newest is stored, which alone can say all
/// that the others can.
#[test]
fn the_shipped_configuration_of_gatherings_is_the_recorded_one_in_every_version() {
    let Some(corpus) = testing::corpus("openshift-api").unwrap() else { return };
    let recorded = corpus.join("crds/config");
    let shipped = read(&root().join("deploy/crds/insightsdatagathers.yaml"));
    let versions = shipped["spec"]["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 3);
    for version in versions {
        let name = version["name"].as_str().unwrap();
        let file = "zz_generated.crd-manifests/0000_10_config-operator_01_insightsdatagathers.crd.yaml";
        let mut of_release = read(&recorded.join(name).join(file));
        assert_eq!(of_release["spec"]["names"], shipped["spec"]["names"]);
        let mut version = version.clone();
        assert_eq!(version["storage"], name == "v1", "{name}");
        let mut expected = of_release["spec"]["versions"][0].take();
        expected["storage"] = version["storage"].clone();
        let mut undescribed = Vec::new();
        strip(&mut version["schema"]["openAPIV3Schema"], "", &mut undescribed);
        assert_eq!(undescribed, Vec::<String>::new(), "{name}: fields without a description");
        strip(&mut expected["schema"]["openAPIV3Schema"], "", &mut Vec::new());
        assert_eq!(version, expected, "{name}");
    }
}
